"""The lives of users with a memory, session by session, in compiled code. Letters as in
`clickgym.envs.memory.model`.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import entry, kernel
from ..task import Batch, Sessions, per_stream

Observation = dict[str, Any]


class Meeting(NamedTuple):
    """What a session depends on, and whom it meets."""

    attraction: NDArray[np.float64]  # (S, L) q
    click_rewards: NDArray[np.float64]  # (S, L) r
    worth: NDArray[
        np.float64
    ]  # (D, S, L + 1) w; D = 1, or a row for each number of sessions left after this one
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

    features: NDArray[
        np.int64
    ]  # (3,) what is observed: the state, 1 in a user's first session, the sessions left (or -1)
    optimum: NDArray[np.float64]  # (1,) V* of the state
    ended: NDArray[np.bool_]  # (1,) whether the user has left


@kernel
def meet(users, ranking, uniforms, clicks, examined, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
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
def draw_state(cumulated, rng):  # type: ignore[no-untyped-def]
    uniform, state = rng.random(), 0
    while state < len(cumulated) - 1 and uniform >= cumulated[state]:
        state += 1
    return state


@kernel
def enter(law, life, users, state):  # type: ignore[no-untyped-def]
    left = life.features[2]
    users.now[0], users.now[1] = state, max(left - 1, 0)
    life.features[0] = state
    life.optimum[0] = law.value[users.now[1], state]


@kernel
def begin(law, life, users, rng):  # type: ignore[no-untyped-def]
    life.ended[0] = False
    life.features[1] = 1
    life.features[2] = law.n_sessions if law.n_sessions > 0 else -1
    enter(law, life, users, draw_state(law.first, rng))


@kernel
def go_on(law, life, users, rng):  # type: ignore[no-untyped-def]
    """After a session: the user leaves, or comes back in another state."""
    life.features[1] = 0
    if law.n_sessions > 0:
        life.features[2] -= 1
        life.ended[0] = life.features[2] == 0
    else:
        life.ended[0] = rng.random() < law.leaving
    if not life.ended[0]:
        enter(law, life, users, draw_state(law.transition[users.now[0], users.now[2]], rng))


@kernel
def next_session(law, life, users, rng, reward, scratch):  # type: ignore[no-untyped-def]
    """What the compiled loop does between sessions: where a user leaves, the next one comes."""
    go_on(law, life, users, rng)
    if life.ended[0]:
        begin(law, life, users, rng)


@kernel
def take(numbers, into):  # type: ignore[no-untyped-def]
    for i in range(3):
        into[i] = numbers[i]


@entry
def play_streams(  # type: ignore[no-untyped-def]
    users, scratch, now, rankings, uniforms, clicks, examined, realised, expectation, satisfied
):
    for b in range(len(rankings)):
        take(now[b], users.now)
        realised[b], expectation[b], satisfied[b] = meet(
            users, rankings[b], uniforms[b], clicks[b], examined[b], 0, len(scratch), scratch
        )
        now[b, 2] = users.now[2]


@entry
def draw_streams(law, life, users, rng, only_ended, now, features, optimum, ended):  # type: ignore[no-untyped-def]
    for b in range(len(now)):
        if only_ended and not ended[b]:
            continue
        take(now[b], users.now)
        take(features[b], life.features)
        life.ended[0] = ended[b]
        if life.ended[0]:
            begin(law, life, users, rng)
        else:
            go_on(law, life, users, rng)
        take(users.now, now[b])
        take(life.features, features[b])
        ended[b] = life.ended[0]
        if not ended[b]:
            optimum[b] = life.optimum[0]


class LifeTask:
    """What is asked of the lists that users with a memory meet, and the user who is there; an
    `AnyTask`, and the `Course` of these users, for it never changes: only its user does.

    Args:
        model: the users, all of whose positions count.
        parameters, law: what sessions depend on, and how users come, go on and leave.
        best: ``(D, S, K)`` the optimal lists.
    """

    code = 0
    next_round = staticmethod(next_session)

    def __init__(self, model: Any, parameters: Meeting, law: Law, best: NDArray[np.int64]) -> None:
        self.model, self.parameters, self.pool, self.best = model, parameters, law, best
        self.cutoff = model.n_positions
        self.round = Life(np.zeros(3, np.int64), np.zeros(1), np.ones(1, np.bool_))
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

    def batch(self, size: int) -> _Streams:
        """A user on each stream."""
        return _Streams(self, size)


class _Streams(Batch):
    """The users of B streams."""

    ended: NDArray[np.bool_]

    def __init__(self, task: LifeTask, size: int) -> None:
        self._task, self._scratch = task, np.empty(task.cutoff)
        self._now, self._features = (
            per_stream(task.parameters.now, size),
            per_stream(task.round.features, size),
        )
        self.ended, self.optimal_reward = (
            per_stream(task.round.ended, size)[:, 0],
            per_stream(task.round.optimum, size)[:, 0],
        )
        self.ended[:] = True

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:  # type: ignore[override]  # of the states, and never set
        return self._task.best[self._now[:, 1], self._now[:, 0]]

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        task = self._task
        draw_streams(
            task.pool,
            task.round,
            task.parameters,
            rng,
            only_ended,
            self._now,
            self._features,
            self.optimal_reward,
            self.ended,
        )

    def begin_episode(self, rng: np.random.Generator) -> None:
        self.ended[:] = True
        self.draw(rng)

    def play(self, sessions: Sessions) -> None:
        play_streams(self._task.parameters, self._scratch, self._now, *sessions)

    def observe(self, clicks: NDArray[np.int8]) -> Observation:
        entries = (
            {"sessions_left": self._features[:, 2].copy()} if self._task.pool.n_sessions else {}
        )
        return {"clicks": clicks, "state": self._features[:, 0].copy()} | entries
