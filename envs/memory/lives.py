"""The lives of stateful users, session by session, in compiled code. Letters as in
`clickgym.envs.memory.model`.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import kernel
from ..task import Task


class Meeting(NamedTuple):
    """What a session depends on, and whom it meets."""

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


class Life(NamedTuple):
    """The user who is there, as the compiled loop and agents see him."""

    features: NDArray[np.int64]  # (3,) state, 1 in a user's first session, sessions left (or -1)
    optimum: NDArray[np.float64]  # (1,) V* of the state
    ended: NDArray[np.bool_]  # (1,) whether the user has left
    now: NDArray[np.int64]  # (3,) as in `Meeting`, the same array


class Lives(NamedTuple):
    """The same of the users of B streams."""

    features: NDArray[np.int64]  # (B, 3)
    optimum: NDArray[np.float64]  # (B,)
    ended: NDArray[np.bool_]  # (B,)
    now: NDArray[np.int64]  # (B, 3)


@kernel
def meet(users, ranking, uniforms, clicks, examined, reward, cutoff, scratch):
    """One user meets one list; returns what was earned, and what the list and the best ones after
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
def enter(law, life, state):
    life.now[0], life.now[1] = state, max(life.features[2] - 1, 0)
    life.features[0] = state
    life.optimum[0] = law.value[life.now[1], state]


@kernel
def begin(law, life, rng):
    life.ended[0] = False
    life.features[1] = 1
    life.features[2] = law.n_sessions if law.n_sessions > 0 else -1
    enter(law, life, draw_state(law.first, rng))


@kernel
def go_on(law, life, rng):
    """After a session: the user leaves, or comes back in another state."""
    life.features[1] = 0
    if law.n_sessions > 0:
        life.features[2] -= 1
        life.ended[0] = life.features[2] == 0
    else:
        life.ended[0] = rng.random() < law.leaving
    if not life.ended[0]:
        enter(law, life, draw_state(law.transition[life.now[0], life.now[2]], rng))


@kernel
def advance(law, life, users, rng, reward, scratch):
    """What ``step`` does between sessions: where a user has left, the next one comes; else he goes
    on, or leaves.
    """
    if life.ended[0]:
        begin(law, life, rng)
    else:
        go_on(law, life, rng)


@kernel
def next_session(law, life, users, rng, reward, scratch):
    """What the compiled loop does between sessions: where a user leaves, the next one comes."""
    go_on(law, life, rng)
    if life.ended[0]:
        begin(law, life, rng)


@kernel
def load_life(streams, b, life):
    for i in range(3):
        life.features[i], life.now[i] = streams.features[b, i], streams.now[b, i]
    life.optimum[0], life.ended[0] = streams.optimum[b], streams.ended[b]


@kernel
def store_life(streams, b, life):
    for i in range(3):
        streams.features[b, i], streams.now[b, i] = life.features[i], life.now[i]
    streams.optimum[b], streams.ended[b] = life.optimum[0], life.ended[0]


class LifeTask(Task):
    """What is asked of the lists that stateful users meet, and the user who is there; also the
    `Course` of these users, for it never changes: only its user does.

    Args:
        model: the users, all of whose positions count.
        parameters, law: what sessions depend on, and how users come, go on and leave.
        best: ``(D, S, K)`` the optimal lists.
    """

    code, has_memory = 0, True
    next_round, advance = staticmethod(next_session), staticmethod(advance)
    load, store = staticmethod(load_life), staticmethod(store_life)

    def __init__(self, model: Any, parameters: Meeting, law: Law, best: NDArray[np.int64]) -> None:
        self.model, self.parameters, self.pool, self._best = model, parameters, law, best
        self.cutoff = model.n_positions
        self.round = Life(np.zeros(3, np.int64), np.zeros(1), np.ones(1, np.bool_), parameters.now)
        spaces: dict[str, Any] = {
            "clicks": MultiBinary(model.n_positions),
            "state": Discrete(best.shape[1]),
        }
        if law.n_sessions:
            spaces["sessions_left"] = Discrete(law.n_sessions + 1)
        self.observation_space = Dict(spaces)

    def at(self, step: int) -> tuple[LifeTask, int]:
        """The task of every step."""
        return self, sys.maxsize

    def rounds(self, size: int) -> Lives:
        features, now = np.zeros((size, 3), np.int64), np.zeros((size, 3), np.int64)
        return Lives(features, np.zeros(size), np.ones(size, np.bool_), now)

    def best(self, rounds: Any) -> NDArray[np.int64]:
        state, left, _ = np.atleast_2d(rounds.now).T
        return self._best[left, state]

    def observe(self, rounds: Any, clicks: NDArray[np.int8]) -> dict[str, Any]:
        state, _, left = rounds.features.T
        seen = {"clicks": clicks, "state": state.copy()}
        return seen | {"sessions_left": left.copy()} if self.pool.n_sessions else seen
