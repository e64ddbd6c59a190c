"""One round of stateful users, in compiled code: the current user, and the draws of a new user, of
the next state and of leaving.

Letters as in `clickgym.envs.memory.model`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import kernel
from ..task import Task


class Parameters(NamedTuple):
    """The parameters of a session."""

    attraction: NDArray[np.float64]  # (S, L) q
    click_rewards: NDArray[np.float64]  # (S, L) r
    worth: NDArray[np.float64]  # (D, S, L + 1) w; D = 1, or a row for each number of sessions left
    status: NDArray[np.int64]  # (3,) s, the row of worth, and the item clicked last or L


class Law(NamedTuple):
    """The probabilities of first states, next states and leaving."""

    first: NDArray[np.float64]  # (S,) cumulative
    transition: NDArray[np.float64]  # (S, L + 1, S) cumulative
    value: NDArray[np.float64]  # (D, S) V*
    leaving: float  # 1/H; 0 if the number of sessions is fixed
    n_sessions: int  # of each user; 0 if users leave at random


class Round(NamedTuple):
    """The current user; for B streams all arrays have B rows."""

    observed: NDArray[np.int64]  # (3,) state, 1 in a user's first session, sessions left (or -1)
    optimum: NDArray[np.float64]  # (1,) V* of the state
    ended: NDArray[np.bool_]  # (1,) whether the user has left
    status: NDArray[np.int64]  # (3,) as in `Parameters`; in the task the same array


@kernel
def simulate(users, ranking, uniforms, clicks, examined, reward, cutoff, scratch):
    """Simulate one session; return the reward, and Q* of the list."""
    n_positions, state = len(ranking), users.status[0]
    worth = users.worth[users.status[1], state]
    clicked, earned = len(worth) - 1, 0.0
    value, reached = 0.0, 1.0
    for k in range(n_positions):
        item = ranking[k]
        q = users.attraction[state, item]
        value += reached * q * worth[item]
        reached *= 1.0 - q
        clicks[k], examined[k] = 0, 0
        if clicked == len(worth) - 1:
            examined[k] = 1
            if uniforms[k] < q:
                clicks[k], clicked, earned = 1, item, users.click_rewards[state, item]
    users.status[2] = clicked
    return earned, value + reached * worth[-1], -1


@kernel
def draw_state(cumulated, rng):
    uniform, state = rng.random(), 0
    while state < len(cumulated) - 1 and uniform >= cumulated[state]:
        state += 1
    return state


@kernel
def set_state(law, current, state):
    current.status[0], current.status[1] = state, max(current.observed[2] - 1, 0)
    current.observed[0] = state
    current.optimum[0] = law.value[current.status[1], state]


@kernel
def draw_user(law, current, rng):
    current.ended[0] = False
    current.observed[1] = 1
    current.observed[2] = law.n_sessions if law.n_sessions > 0 else -1
    set_state(law, current, draw_state(law.first, rng))


@kernel
def end_session(law, current, rng):
    """Draw after a session whether the user leaves, or else the next state."""
    current.observed[1] = 0
    if law.n_sessions > 0:
        current.observed[2] -= 1
        current.ended[0] = current.observed[2] == 0
    else:
        current.ended[0] = rng.random() < law.leaving
    if not current.ended[0]:
        set_state(
            law, current, draw_state(law.transition[current.status[0], current.status[2]], rng)
        )


@kernel
def advance(users, reward, law, current, rng, scratch):
    """Draw what follows a session in ``step``: a new user if the last one has left; otherwise the
    user leaves or stays.
    """
    if current.ended[0]:
        draw_user(law, current, rng)
    else:
        end_session(law, current, rng)


@kernel
def next_session(users, reward, law, current, rng, scratch):
    """Draw what follows a session in the compiled loop: a new user follows at once."""
    end_session(law, current, rng)
    if current.ended[0]:
        draw_user(law, current, rng)


@kernel
def load_round(streams, b, current):
    for i in range(3):
        current.observed[i], current.status[i] = streams.observed[b, i], streams.status[b, i]
    current.optimum[0], current.ended[0] = streams.optimum[b], streams.ended[b]


@kernel
def store_round(streams, b, current):
    for i in range(3):
        streams.observed[b, i], streams.status[b, i] = current.observed[i], current.status[i]
    streams.optimum[b], streams.ended[b] = current.optimum[0], current.ended[0]


class StatefulTask(Task):
    """The task of stateful users, whose round is the current user.

    Args:
        model: the users; all positions count.
        parameters, law: of a session, and of the draws between sessions.
        best: ``(D, S, K)`` the optimal lists.
    """

    code, has_memory = 0, True
    next_round, advance = staticmethod(next_session), staticmethod(advance)
    load, store = staticmethod(load_round), staticmethod(store_round)

    def __init__(
        self, model: Any, parameters: Parameters, law: Law, best: NDArray[np.int64]
    ) -> None:
        self.model, self.parameters, self.pool, self._best = model, parameters, law, best
        self.cutoff = model.n_positions
        self.round = Round(
            np.zeros(3, np.int64), np.zeros(1), np.ones(1, np.bool_), parameters.status
        )
        spaces: dict[str, Any] = {
            "clicks": MultiBinary(model.n_positions),
            "state": Discrete(best.shape[1]),
        }
        if law.n_sessions:
            spaces["sessions_left"] = Discrete(law.n_sessions + 1)
        self.observation_space = Dict(spaces)

    def rounds(self, size: int) -> Round:
        observed, status = np.zeros((2, size, 3), np.int64)
        return Round(observed, np.zeros(size), np.ones(size, np.bool_), status)

    def best(self, rounds: Any) -> NDArray[np.int64]:
        state, left, _ = np.atleast_2d(rounds.status).T
        return self._best[left, state]

    def observe(self, rounds: Any, clicks: NDArray[np.int8]) -> dict[str, Any]:
        state, _, left = rounds.observed.T
        seen = {"clicks": clicks, "state": state.copy()}
        return seen | {"sessions_left": left.copy()} if self.pool.n_sessions else seen
