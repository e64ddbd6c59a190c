"""The task of users with memory: kernels that simulate a session, and draw the next state or a new
user.

The letters are the same as in `clickgym.envs.users.memory`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import kernel
from ...core.state import IS_FIRST, SESSIONS_LEFT, STATE, Floats, Ints
from ..simulation.task import Kernels, Task


class MemoryConstants(NamedTuple):
    """The constants of a `MemoryTask`. If each user has a fixed number of sessions, the letter D
    is this number, and there is a row for each number of sessions left; otherwise D is 1.
    """

    attraction: NDArray[np.float64]  # (S, L) q
    click_rewards: NDArray[np.float64]  # (S, L) r
    worth: NDArray[np.float64]  # (D, S, L + 1) w
    value: NDArray[np.float64]  # (D, S) V*
    first: NDArray[np.float64]  # (S,) cumulative probabilities of first states
    transition: NDArray[np.float64]  # (S, L + 1, S) cumulative probabilities of next states
    leaving: float  # 1/H; 0 if the number of sessions is fixed
    n_sessions: int  # the number of sessions of each user; 0 if users leave at random


class MemoryState(NamedTuple):
    """The state of users with memory: the current user of each stream."""

    optimum: Annotated[Floats, "B"]  # V* of the user's state
    user: Annotated[Ints, "B 3"]  # s; 1 in the user's first session; sessions left, or -1
    clicked: Annotated[Ints, "B"]  # the item clicked in the last session, or L for no click


@kernel
def sessions_left_row(user):
    """Return the row of ``worth``, ``value`` and the best lists that belongs to a user's number of
    sessions left; 0 if this number is not fixed.
    """
    return max(user[SESSIONS_LEFT] - 1, 0)


@kernel
def session(constants, state, b, ranking, uniforms, clicks, examined):
    """Simulate one session; return the reward, Q* of the list, and -1, because users are never
    satisfied.
    """
    n_positions, s = len(ranking), state.user[b, STATE]
    worth = constants.worth[sessions_left_row(state.user[b]), s]
    clicked, reward = len(worth) - 1, 0.0
    value, examination = 0.0, 1.0
    for k in range(n_positions):
        item = ranking[k]
        q = constants.attraction[s, item]
        value += examination * q * worth[item]
        examination *= 1.0 - q
        clicks[k], examined[k] = 0, 0
        if clicked == len(worth) - 1:
            examined[k] = 1
            if uniforms[k] < q:
                clicks[k], clicked, reward = 1, item, constants.click_rewards[s, item]
    state.clicked[b] = clicked
    return reward, value + examination * worth[-1], -1


@kernel
def draw_state(constants, state, b, cumulated, rng):
    """Draw the user's state in the next session from cumulative probabilities, ``(S,)``."""
    uniform, s = rng.random(), 0
    while s < len(cumulated) - 1 and uniform >= cumulated[s]:
        s += 1
    state.user[b, STATE] = s
    state.optimum[b] = constants.value[sessions_left_row(state.user[b]), s]


@kernel
def begin(constants, state, b, rng):
    state.user[b, IS_FIRST] = 1
    state.user[b, SESSIONS_LEFT] = constants.n_sessions if constants.n_sessions > 0 else -1
    draw_state(constants, state, b, constants.first, rng)


@kernel
def advance(constants, state, b, rng):
    user = state.user[b]
    user[IS_FIRST] = 0
    if constants.n_sessions > 0:
        user[SESSIONS_LEFT] -= 1
        has_left = user[SESSIONS_LEFT] == 0
    else:
        has_left = rng.random() < constants.leaving
    if not has_left:
        draw_state(constants, state, b, constants.transition[user[STATE], state.clicked[b]], rng)
    return has_left


class MemoryTask(Task):
    """Task of users with memory, in which all positions count.

    Args:
        model: the `CascadeMDP`.
        constants: the constants of the kernels.
        best: ``(D, S, K)`` the best list for each number of sessions left and each state.
    """

    kernels = Kernels(session, begin, advance)
    state_type = MemoryState
    fields = {"state": "user"}

    def __init__(self, model: Any, constants: MemoryConstants, best: NDArray[np.int64]) -> None:
        self.model, self.constants, self._best = model, constants, best
        spaces: dict[str, Any] = {
            "clicks": MultiBinary(model.n_positions),
            "state": Discrete(model.n_states),
        }
        if constants.n_sessions:
            spaces["sessions_left"] = Discrete(constants.n_sessions + 1)
        self.observation_space = Dict(spaces)

    def best(self, state: Any) -> NDArray[np.int64]:
        s, _, left = state.user.T
        return self._best[np.maximum(left - 1, 0), s]

    def observe(self, state: Any, b: int | slice, clicks: NDArray[np.int8]) -> dict[str, Any]:
        s, _, left = state.user[b].T
        seen = {"clicks": clicks, "state": s.copy()}
        return seen | {"sessions_left": left.copy()} if self.constants.n_sessions else seen
