"""The lives of users with a memory, session by session, in compiled code. Letters as in `clickgym.envs.memory.model`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import inner, kernel

if TYPE_CHECKING:
    from .model import CascadeMDP

Observation = dict[str, Any]


class Users(NamedTuple):
    """What a session depends on, and whom it meets."""

    attraction: NDArray[np.float64]  # (S, L) q
    click_rewards: NDArray[np.float64]  # (S, L) r
    worth: NDArray[np.float64]  # (D, S, L + 1) w; D = 1, or a row for each number of sessions left after this one
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

    features: NDArray[np.int64]  # (3,) what is observed: the state, 1 in a user's first session, the sessions left (or -1)
    optimum: NDArray[np.float64]  # (1,) V* of the state
    ended: NDArray[np.bool_]  # (1,) whether the user has left


@kernel
def meet(users, ranking, uniforms, clicks, examined, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    """One user meets one list; returns what was earned, and what the list and the best ones after it earn in expectation."""
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


@inner
def draw_state(cumulated, rng):  # type: ignore[no-untyped-def]
    uniform, state = rng.random(), 0
    while state < len(cumulated) - 1 and uniform >= cumulated[state]:
        state += 1
    return state


@inner
def enter(law, life, users, state):  # type: ignore[no-untyped-def]
    left = life.features[2]
    users.now[0], users.now[1] = state, max(left - 1, 0)
    life.features[0] = state
    life.optimum[0] = law.value[users.now[1], state]


@inner
def begin(law, life, users, rng):  # type: ignore[no-untyped-def]
    life.ended[0] = False
    life.features[1] = 1
    life.features[2] = law.n_sessions if law.n_sessions > 0 else -1
    enter(law, life, users, draw_state(law.first, rng))


@inner
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
def draw_one(law, life, users, rng):  # type: ignore[no-untyped-def]
    if life.ended[0]:
        begin(law, life, users, rng)
    else:
        go_on(law, life, users, rng)


@inner
def take(numbers, into):  # type: ignore[no-untyped-def]
    for i in range(3):
        into[i] = numbers[i]


@kernel
def play_streams(users, life, rankings, uniforms, clicks, examined, scratch, now, realised, expectation):  # type: ignore[no-untyped-def]
    for b in range(len(rankings)):
        take(now[b], users.now)
        realised[b], expectation[b], _ = meet(users, rankings[b], uniforms[b], clicks[b], examined[b], 0, len(scratch), scratch)
        now[b, 2] = users.now[2]


@kernel
def draw_streams(law, life, users, rng, only_ended, now, features, optimum, ended):  # type: ignore[no-untyped-def]
    for b in range(len(now)):
        if only_ended and not ended[b]:
            continue
        take(now[b], users.now)
        take(features[b], life.features)
        life.ended[0] = ended[b]
        draw_one(law, life, users, rng)
        take(users.now, now[b])
        take(life.features, features[b])
        ended[b] = life.ended[0]
        if not ended[b]:
            optimum[b] = life.optimum[0]


class LifeTask:
    """What is asked of the lists that users with a memory meet, and the user who is there; an `AnyTask`."""

    next_round = staticmethod(next_session)

    def __init__(self, model: CascadeMDP) -> None:
        self.model = model
        self.code, self.cutoff = 0, model.n_positions
        fixed = model.n_sessions is not None
        values = np.atleast_2d(model.value)
        later = np.vstack([np.zeros(model.n_states), values[:-1]]) if fixed else values  # of the session after
        worth = np.array([model.worth(value) for value in later])
        self.parameters = Users(model.attraction, model.click_rewards, worth, np.zeros(3, np.int64))
        self.pool = Law(
            model.first.cumsum(),
            model.transition.cumsum(axis=-1),
            values,
            leaving=0.0 if fixed else 1.0 / model.mean_sessions,
            n_sessions=model.n_sessions or 0,
        )
        self.round = Life(np.zeros(3, np.int64), np.zeros(1), np.ones(1, np.bool_))
        self.best = model.best.reshape(len(values), model.n_states, model.n_positions)

    @property
    def ended(self) -> bool:
        """Whether the user has left, so that the next draw brings another."""
        return bool(self.round.ended[0])

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:
        state, row, _ = self.parameters.now
        return self.best[row, state]

    @property
    def optimal_reward(self) -> float:
        return float(self.round.optimum[0])

    def draw(self, rng: np.random.Generator) -> None:
        """The next session of the user, or the first of the next one."""
        draw_one(self.pool, self.round, self.parameters, rng)

    def begin_episode(self, rng: np.random.Generator) -> None:
        """Another user comes."""
        self.round.ended[0] = True
        self.draw(rng)

    def observe(self, clicks: NDArray[np.int8]) -> Observation:
        """The clicks, the state in which the user comes back, and the sessions left where these are fixed."""
        state, _, left = self.round.features
        return {"clicks": clicks, "state": state} | ({} if left < 0 else {"sessions_left": left})

    def batch(self, size: int) -> _Streams:
        """A user on each stream."""
        return _Streams(self, size)


class _Streams:
    """The users of B streams; a `Batch`."""

    def __init__(self, task: LifeTask, size: int) -> None:
        self._task = task
        self._now = np.zeros((size, 3), np.int64)
        self._features = np.zeros((size, 3), np.int64)
        self._scratch = np.empty(task.model.n_positions)
        self.ended = np.ones(size, np.bool_)
        self.optimal_reward = np.zeros(size)

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:
        return self._task.best[self._now[:, 1], self._now[:, 0]]

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        task = self._task
        draw_streams(
            task.pool, task.round, task.parameters, rng, only_ended, self._now, self._features, self.optimal_reward, self.ended
        )

    def begin_episode(self, rng: np.random.Generator) -> None:
        self.ended[:] = True
        self.draw(rng)

    def play(
        self,
        rankings: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        clicks: NDArray[np.int8],
        examined: NDArray[np.int8],
        realised: NDArray[np.float64],
        expectation: NDArray[np.float64],
    ) -> None:
        task = self._task
        play_streams(
            task.parameters, task.round, rankings, uniforms, clicks, examined, self._scratch, self._now, realised, expectation
        )

    def observe(self, clicks: NDArray[np.int8]) -> Observation:
        left = {} if self._task.model.n_sessions is None else {"sessions_left": self._features[:, 2].copy()}
        return {"clicks": clicks, "state": self._features[:, 0].copy()} | left


class Lives:
    """The course of users with a memory: one task, whose user changes."""

    def __init__(self, model: CascadeMDP) -> None:
        self._task = LifeTask(model)
        spaces: dict[str, Any] = {"clicks": MultiBinary(model.n_positions), "state": Discrete(model.n_states)}
        if model.n_sessions is not None:
            spaces["sessions_left"] = Discrete(model.n_sessions + 1)
        self.observation_space = Dict(spaces)

    def at(self, step: int) -> tuple[LifeTask, int]:
        """The task, which never changes; at the first step a new user comes."""
        if step == 0:
            self._task.round.ended[0] = True
        return self._task, sys.maxsize
