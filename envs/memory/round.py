"""One round of stateful users, in compiled code: the user who is there, and how he comes, goes
on and leaves.

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
    """What a session depends on."""

    attraction: NDArray[np.float64]  # (S, L) q
    click_rewards: NDArray[np.float64]  # (S, L) r
    worth: NDArray[np.float64]  # (D, S, L + 1) w; D = 1, or a row for each number of sessions left
    now: NDArray[np.int64]  # (3,) s, the row of worth, and the item clicked last; L if none was


class Law(NamedTuple):
    """How users come, go on and leave."""

    first: NDArray[np.float64]  # (S,) cumulated
    transition: NDArray[np.float64]  # (S, L + 1, S) cumulated
    value: NDArray[np.float64]  # (D, S) V*
    leaving: float  # 1/H; 0 where the number of sessions is fixed
    n_sessions: int  # of each user; 0 where they leave at random


class Round(NamedTuple):
    """The user who is there; of B streams all arrays have B rows."""

    observed: NDArray[np.int64]  # (3,) state, 1 in a user's first session, sessions left (or -1)
    optimum: NDArray[np.float64]  # (1,) V* of the state
    ended: NDArray[np.bool_]  # (1,) whether the user has left
    now: NDArray[np.int64]  # (3,) as in `Parameters`, of the task the same array


@kernel
def play(users, ranking, uniforms, clicks, examined, reward, cutoff, scratch):
    """One user sees one list; returns what was earned, and what the list and the best ones after
    it earn in expectation.
    """
    n_positions, state = len(ranking), users.now[0]
    worth = users.worth[users.now[1], state]
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
    users.now[2] = clicked
    return earned, value + reached * worth[-1], -1


@kernel
def draw_state(cumulated, rng):
    uniform, state = rng.random(), 0
    while state < len(cumulated) - 1 and uniform >= cumulated[state]:
        state += 1
    return state


@kernel
def set_state(law, drawn, state):
    drawn.now[0], drawn.now[1] = state, max(drawn.observed[2] - 1, 0)
    drawn.observed[0] = state
    drawn.optimum[0] = law.value[drawn.now[1], state]


@kernel
def draw_user(law, drawn, rng):
    drawn.ended[0] = False
    drawn.observed[1] = 1
    drawn.observed[2] = law.n_sessions if law.n_sessions > 0 else -1
    set_state(law, drawn, draw_state(law.first, rng))


@kernel
def end_session(law, drawn, rng):
    """After a session: the user leaves, or comes back in another state."""
    drawn.observed[1] = 0
    if law.n_sessions > 0:
        drawn.observed[2] -= 1
        drawn.ended[0] = drawn.observed[2] == 0
    else:
        drawn.ended[0] = rng.random() < law.leaving
    if not drawn.ended[0]:
        set_state(law, drawn, draw_state(law.transition[drawn.now[0], drawn.now[2]], rng))


@kernel
def advance(users, reward, law, drawn, rng, scratch):
    """What ``step`` does between sessions: where a user has left, the next one comes; else he goes
    on, or leaves.
    """
    if drawn.ended[0]:
        draw_user(law, drawn, rng)
    else:
        end_session(law, drawn, rng)


@kernel
def next_session(users, reward, law, drawn, rng, scratch):
    """What the compiled loop does between sessions: where a user leaves, the next one comes."""
    end_session(law, drawn, rng)
    if drawn.ended[0]:
        draw_user(law, drawn, rng)


@kernel
def load_round(streams, b, drawn):
    for i in range(3):
        drawn.observed[i], drawn.now[i] = streams.observed[b, i], streams.now[b, i]
    drawn.optimum[0], drawn.ended[0] = streams.optimum[b], streams.ended[b]


@kernel
def store_round(streams, b, drawn):
    for i in range(3):
        streams.observed[b, i], streams.now[b, i] = drawn.observed[i], drawn.now[i]
    streams.optimum[b], streams.ended[b] = drawn.optimum[0], drawn.ended[0]


class StatefulTask(Task):
    """The task of stateful users, whose round is the user who is there.

    Args:
        model: the users, all of whose positions count.
        parameters, law: what sessions depend on, and how users come, go on and leave.
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
        self.round = Round(np.zeros(3, np.int64), np.zeros(1), np.ones(1, np.bool_), parameters.now)
        spaces: dict[str, Any] = {
            "clicks": MultiBinary(model.n_positions),
            "state": Discrete(best.shape[1]),
        }
        if law.n_sessions:
            spaces["sessions_left"] = Discrete(law.n_sessions + 1)
        self.observation_space = Dict(spaces)

    def rounds(self, size: int) -> Round:
        observed, now = np.zeros((2, size, 3), np.int64)
        return Round(observed, np.zeros(size), np.ones(size, np.bool_), now)

    def best(self, rounds: Any) -> NDArray[np.int64]:
        state, left, _ = np.atleast_2d(rounds.now).T
        return self._best[left, state]

    def observe(self, rounds: Any, clicks: NDArray[np.int8]) -> dict[str, Any]:
        state, _, left = rounds.observed.T
        seen = {"clicks": clicks, "state": state.copy()}
        return seen | {"sessions_left": left.copy()} if self.pool.n_sessions else seen
