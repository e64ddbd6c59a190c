"""Hash table that counts how often each leader (a tuple of items) was chosen."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..core.checks import check_count
from ..core.kernels import entry, kernel
from .compiled import CompiledAgent
from .kernels import exploration

FEW = 64


@kernel
def place_in(slots, leaders, n_leaders, leader):
    """Return the slot of a leader in the hash table, or the free slot for it."""
    mixed = np.int64(1)
    for element in leader:
        mixed = (mixed ^ (mixed >> np.int64(29))) * np.int64(6364136223846793005) + np.int64(
            element
        )
    mixed ^= mixed >> np.int64(32)
    slot = mixed & np.int64(len(slots) - 1)
    while slots[slot] >= 0:
        known, same = slots[slot], True
        for i in range(len(leader)):
            if leaders[known, i] != leader[i]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & np.int64(len(slots) - 1)
    return slot


@kernel
def find_leader(state, leader):
    """Return the number of a leader, ``(n,)`` integers; a new leader gets the next number and a
    slot in the hash table.
    """
    slot = place_in(state.slots, state.leaders, state.n_leaders[0], leader)
    if state.slots[slot] < 0:
        number = state.n_leaders[0]
        state.slots[slot] = number
        for i in range(len(leader)):
            state.leaders[number, i] = leader[i]
        state.n_leaders[0] += 1
    return state.slots[slot]


@kernel
def level_of(state, s):
    """Return the level of confidence in the s-th session of a leader: log T, or ``log s + 3 log log
    s`` without a horizon.
    """
    if state.log_horizon >= 0.0:
        return state.log_horizon
    return exploration(s, 3.0) if s >= 3 else np.inf


@kernel
def enter_all(slots, leaders, n_leaders):
    """Enter all leaders into an empty hash table."""
    for number in range(n_leaders):
        slots[place_in(slots, leaders, n_leaders, leaders[number])] = number


class LeaderAgent(CompiledAgent):
    """Base class of the agents that count how often each leader was chosen.

    The state has the fields ``leaders (C, n)``, with n integers for each leader, ``counts (C,)``
    (how often each was chosen), the hash table ``slots (2C,)`` and ``n_leaders (1,)``. C is a power
    of two. Before a chunk of sessions it grows to hold a new leader for each session. C affects
    only the memory: 4 n + 16 bytes for each of C leaders.
    """

    growing: ClassVar[frozenset[str]] = frozenset({"leaders", "counts", "slots"})

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"C": FEW}

    def make_room(self, n_sessions: int) -> None:
        """Enlarge the table, if necessary, to hold a new leader for each of the next sessions."""
        n_leaders, room = int(self.state.n_leaders[0]), len(self.state.counts)
        if n_leaders + check_count("n_sessions", n_sessions, 0) <= room:
            return
        while room < n_leaders + n_sessions:
            room *= 2
        leaders, counts = (
            np.zeros((room, self.state.leaders.shape[1]), np.int32),
            np.zeros(room, np.int64),
        )
        leaders[:n_leaders], counts[:n_leaders] = (
            self.state.leaders[:n_leaders],
            self.state.counts[:n_leaders],
        )
        slots = np.full(2 * room, -1, np.int32)
        entry(enter_all)(slots, leaders, n_leaders)
        self.state = self.state._replace(leaders=leaders, counts=counts, slots=slots)
