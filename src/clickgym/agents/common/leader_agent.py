"""The table that counts how often each leader was chosen. A leader is the list or partition that an
agent currently thinks is best, stored as a tuple of integers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...core.checks import check_count
from ...core.kernels import kernel
from ..compiled_agent import CompiledAgent
from .kl_bounds import exploration

FIRST_ROWS = 64


@kernel
def is_leader(state, row, leader):
    """Return whether the leader in a row of the table equals ``leader``."""
    for i in range(len(leader)):  # noqa: SIM110 (numba cannot compile generators)
        if state.leaders[row, i] != leader[i]:
            return False
    return True


@kernel
def find_leader(state, leader):
    """Return the row of a leader, given as ``(n,)`` integers, in the table; a new leader gets the
    next free row. The search starts with the newest leader.
    """
    row = state.n_leaders[0] - 1
    while row >= 0 and not is_leader(state, row, leader):
        row -= 1
    if row < 0:
        row = state.n_leaders[0]
        for i in range(len(leader)):
            state.leaders[row, i] = leader[i]
        state.n_leaders[0] += 1
    return row


@kernel
def level_of(state, s):
    """Return the confidence level in the s-th session of a leader: log T with a horizon, otherwise
    ``log s + 3 log log s``, which is infinite for s below 3.
    """
    if state.log_horizon >= 0.0:
        return state.log_horizon
    return exploration(s, 3.0) if s >= 3 else np.inf


class LeaderAgent(CompiledAgent):
    """Base class of the agents that count how often each leader was chosen.

    The state has the fields ``leaders`` ``(C, n)``, with n integers for each leader; ``counts``
    ``(C,)``, how often each leader was chosen; and ``n_leaders`` ``(1,)``. Before each chunk of
    sessions, the capacity C grows so that every session could add a new leader. C affects only the
    memory: 4 n + 8 bytes for each of the C rows.
    """

    growing: ClassVar[frozenset[str]] = frozenset({"leaders", "counts"})

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"C": FIRST_ROWS}

    def make_room(self, n_sessions: int) -> None:
        """Enlarge the table, if necessary, so that each of the next sessions can add a leader."""
        least = int(self.state.n_leaders[0]) + check_count("n_sessions", n_sessions, 0)
        capacity = len(self.state.counts)
        if least <= capacity:
            return
        while capacity < least:
            capacity *= 2
        leaders = np.zeros((capacity, self.state.leaders.shape[1]), np.int32)
        counts = np.zeros(capacity, np.int64)
        leaders[: len(self.state.leaders)] = self.state.leaders
        counts[: len(self.state.counts)] = self.state.counts
        self.state = self.state._replace(leaders=leaders, counts=counts)
