"""The table that counts how often each leader (a tuple of items) was chosen."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..core.checks import check_count
from ..core.kernels import kernel
from .compiled_agent import CompiledAgent
from .shared_kernels import exploration

FEW = 64


@kernel
def is_leader(state, number, leader):
    """Whether the leader with the given number consists of these integers."""
    for i in range(len(leader)):  # noqa: SIM110 (numba compiles no generators)
        if state.leaders[number, i] != leader[i]:
            return False
    return True


@kernel
def find_leader(state, leader):
    """Return the number of a leader, which is given as ``(n,)`` integers; a new leader gets the
    next number. The search starts with the latest leader.
    """
    number = state.n_leaders[0] - 1
    while number >= 0 and not is_leader(state, number, leader):
        number -= 1
    if number < 0:
        number = state.n_leaders[0]
        for i in range(len(leader)):
            state.leaders[number, i] = leader[i]
        state.n_leaders[0] += 1
    return number


@kernel
def level_of(state, s):
    """Return the level of confidence in the s-th session of a leader: log T, or ``log s + 3 log log
    s`` without a horizon.
    """
    if state.log_horizon >= 0.0:
        return state.log_horizon
    return exploration(s, 3.0) if s >= 3 else np.inf


class LeaderAgent(CompiledAgent):
    """Base class of the agents that count how often each leader was chosen.

    The state has the fields ``leaders (C, n)``, with n integers for each leader, ``counts (C,)``
    (how often each was chosen) and ``n_leaders (1,)``. Before a chunk of sessions C grows to hold a
    new leader for each session, which affects only the memory: 4 n + 8 bytes for each of C leaders.
    """

    growing: ClassVar[frozenset[str]] = frozenset({"leaders", "counts"})

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"C": FEW}

    def make_room(self, n_sessions: int) -> None:
        """Enlarge the table, if necessary, to hold a new leader for each of the next sessions."""
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
