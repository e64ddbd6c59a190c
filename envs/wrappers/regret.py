"""Wrappers that measure regret, reward and clicks of any code that calls ``env.step``, and make a
`Result` of them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

from ...core.checks import AN_ENV, check_count, check_horizon, check_kind
from ...core.faults import Fault, SessionError
from ...core.kernels import clock
from ..any_env import (
    check_shows_clicks,
    checked_clicks,
    checked_number,
    clicks_of,
    clicks_shown,
    own_step_of,
    query_of,
    regret_of,
    users_of,
)
from ..base_env import BaseClickEnv, Beginning, label_of, name_of
from ..meter import Record, checkpoint_steps
from ..result import OWN_LOOP, Result
from ..vector_env import ClickVectorEnv
from .item_by_item import Choices

EPISODES = 10
"""Of users who may leave, in each of several streams: with fewer it counts that all streams began
with new users.
"""
VECTORS = "stable_baselines3.common.vec_env.", "gymnasium.vector."
"""The modules in which vector environments step single ones."""


@dataclass
class _Seeds:
    """What a `BaseClickEnv` knows of its seeds, of an environment of another package."""

    reset_seed: int | None = None
    n_seeds: int = 0
    cuts: Counter[int] = field(default_factory=Counter)


class _Recorded:
    """What both wrappers measure, as a `Result`."""

    env: Any
    _n_streams = 1
    _is_stream = False
    """Whether the environment is one of several in a vector."""
    _beginning: Beginning
    _reseeded: int | None = None
    """The number of sessions before the first one with another seed."""
    _n_ended = 0
    """Episodes that have ended, of all streams."""
    _started = _seconds = _first = 0.0

    def _begin(self) -> None:
        core = self.env.unwrapped
        self._seeds: Any = core if isinstance(core, BaseClickEnv) else _Seeds()
        self.meter = Record()
        self._queries: list[int] = []  # of each session, if users have several

    def _start(self, seed: Any) -> None:
        """Note a reset."""
        self._started = self._started or clock()
        if isinstance(self._seeds, _Seeds):
            self._seeds.reset_seed = seed
            self._seeds.n_seeds += seed is not None

    def _note(self) -> None:
        """Note before a session what came since the last one, also by a wrapper inside."""
        if not self.meter.step:
            self._beginning, self._first = Beginning(self.env, self._seeds), clock()
            self._started = self._started or self._first
        elif self._seeds.n_seeds != self._beginning.n_seeds and self._reseeded is None:
            self._reseeded = self.meter.step

    def _finish(self, n_ended: int) -> None:
        """Note that a step has ended so many episodes."""
        self._n_ended += n_ended
        self._seconds = clock() - self._started

    def _label(self, last: int, is_seeded_again: bool) -> str:
        """Return the name of the environment, another one where users came or changed otherwise
        than in `clickgym.run`. No count of sessions shows that.

        Args:
            last: the sessions of the result.
            is_seeded_again: whether another seed came between them.
        """
        label, users, step = label_of(self.env), users_of(self.env), self.meter.step
        unrecorded = self.meter.unrecorded[last - 1]
        other = self._beginning.otherwise(unrecorded, is_seeded_again=is_seeded_again)
        if other or users is None:
            return label + other
        if len(users.starts) > 1 and self._n_streams > 1:
            return f"{label}, one clock per stream"
        is_whole = last == step and not self.env.unwrapped.is_under_way
        are_few = self._n_ended * last < EPISODES * self._n_streams * step
        if users.may_leave and self._n_streams > 1 and are_few and not is_whole:
            return f"{label}, few episodes per stream"
        return label

    def result(
        self, agent: str, horizon: int | None = None, *, trained: int | None = None
    ) -> Result:
        """Return what was measured so far as the result of a run, which `clickgym.Results` shows
        beside others: at the steps that `clickgym.run` has after as many sessions. Its seconds are
        those from the first reset to the last step, the training included.

        ``unrecorded`` of the result counts the sessions that the environment has simulated since it
        was made and that were not measured, because the wrapper came later, or a wrapper inside of
        it played sessions of its own. An environment of another package has no such count.

        The environment has another name where users came or changed otherwise than in a run:
        another seed came between the sessions; a wrapper inside of this one took another
        environment, or answered itself; an episode of users who may leave ended before they
        did, also in a wrapper inside of this one, or fewer than ten ended in each of several
        streams, which all begin with new users; or users who change do so by the clock of each
        stream.

        Args:
            agent: a name for what chose the lists.
            horizon: the first so many sessions since the wrapper was made; None takes all. Another
                model or agent needs a new environment.
            trained: the sessions from which the agent had learned before, in other environments.
                Tables then tell it from agents that began here. 0: it began here; None: not told,
                and tables say so.

        Raises:
            ValueError: there was no session, or not so many.

        Example:
            >>> import gymnasium as gym, clickgym
            >>> env = clickgym.RecordRegret(gym.make("PBMRank-v0"))
            >>> observation, info = env.reset(seed=0)
            >>> for _ in range(1234):
            ...     outcome = env.step([0, 1, 2, 3, 4])
            >>> mine = env.result("mine")
            >>> int(mine.steps[-1]), mine.seed, round(mine.regret[-1])
            (1234, 0, 482)
        """
        meter, last = self.meter, self.meter.step if horizon is None else check_horizon(horizon)
        queries = {*self._queries[:last]}
        if not 0 < last <= meter.step:
            raise ValueError(f"{meter.step:,} sessions were measured; a result of {last:,} is none")
        steps = checkpoint_steps(last)
        is_seeded_again = self._reseeded is not None and self._reseeded < last
        return Result(
            env=self._label(last, is_seeded_again),
            instance=getattr(self.env.unwrapped, "instance", "custom"),
            agent=agent,
            seed=None if is_seeded_again else self._beginning.seed,
            steps=steps,
            regret=meter.regret[steps - 1],
            reward=meter.reward[steps - 1],
            clicks=meter.clicks[steps - 1],
            metrics={},
            seconds=self._seconds,
            engine=OWN_LOOP,
            query=queries.pop() if len(queries) == 1 else None,
            trained=None if trained is None else check_count("trained", trained, 0),
            unrecorded=max(int(meter.unrecorded[last - 1]), 0),
            is_stream=self._is_stream,
            span=(os.getpid(), get_ident(), self._first, self._started + self._seconds),
        )


class RecordRegret(_Recorded, gym.Wrapper, RecordConstructorArgs):
    """Wrapper that measures regret, reward and clicks of any code that steps the environment: your
    own loop, an agent, an RL library.

    What ``env.step`` returns counts as what happened. The clicks are those of the observation. If
    the observation shows none, because it was stacked or flattened, they are those of the users.

    Args:
        env: an environment of this package, wrapped or not; or an environment of another package,
            whose observation is the clicks or a mapping with ``clicks``. Its ``info`` may contain
            ``regret``, or ``expected_reward`` and ``optimal_reward``. Without them the measured
            regret is nan. It is also nan behind a wrapper that changes the reward, unless this
            wrapper puts a ``regret`` of its own into ``info``.

    Attributes:
        meter: the number of sessions over all episodes, ``step``, and the totals after each:
            ``regret``, ``reward`` and ``clicks``.

    Raises:
        TypeError: ``env`` is no environment, or it is `ItemByItem`, whose steps are no sessions.
        ValueError: the observations of an environment of another package are not clicks.
        SessionError: ``step`` returned clicks that are not 0 or 1, or a reward or a regret that is
            not finite.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = clickgym.RecordRegret(gym.make("PBMRank-v0"))
        >>> observation, info = env.reset(seed=0)
        >>> for _ in range(10):
        ...     ranking = env.action_space.sample()
        ...     observation, reward, terminated, truncated, info = env.step(ranking)
        >>> env.meter.step, env.meter.regret.shape
        (10, (10,))
        >>> env.result("mine").agent
        'mine'
    """

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        if isinstance(env.action_space, Choices):
            raise TypeError(
                "a step of ItemByItem chooses one item and is no session; measure inside of it: "
                "ItemByItem(RecordRegret(env))"
            )
        users_env = self._users_env = own_step_of(env)
        if users_env is None:
            self._n_positions = check_shows_clicks(env)
        else:
            self._n_positions = users_env.model.n_positions
        shows_clicks = clicks_shown(env.observation_space) == self._n_positions
        self._has_clicks = users_env is None or shows_clicks
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._begin()
        self._has_queries = users_env is not None and users_env.model.n_queries > 1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._start(seed)
        self._is_stream = self._is_stream or _is_in_vector()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        users_env: Any = self._users_env
        query = query_of(self) if self._has_queries else None
        self._note()
        observation, reward, terminated, truncated, info = self.env.step(action)
        try:
            earned = checked_number("reward", reward)
            if users_env is not None and not users_env.regret_is_of(earned, info):
                self._forget_regret()
            if users_env is None or self._has_clicks:
                clicks = checked_clicks(observation, self._n_positions)
            else:
                clicks = users_env.last_session()[1]
            simulated = None if users_env is None else users_env.n_simulated
            self.meter.add(regret_of(info), earned, int(np.count_nonzero(clicks)), simulated)
            self._queries += [] if query is None else [query]
        except Fault as fault:
            session = self.meter.step + 1
            raise SessionError(f"{name_of(self)}, session {session}: {fault}") from None
        self._finish(terminated or truncated)
        return observation, reward, terminated, truncated, info

    def _forget_regret(self) -> None:
        """Make the regret unknown, and warn of it once."""
        if not np.isnan(self.meter.regret[-1:]).any():
            warnings.warn(
                f"the regret in {name_of(self)} is unknown (nan): a wrapper changes the reward, "
                "and puts no regret of its own into info",
                stacklevel=3,
            )
            self.meter.forget_regret()


class RecordVectorRegret(_Recorded, VectorWrapper):
    """`RecordRegret` for the streams of ``gym.make_vec``; sessions are counted step by step, and
    within a step stream by stream.

    Args:
        env: what ``gym.make_vec`` returned for an id of this package; wrappers belong around this
            one.

    Attributes:
        meter: as in `RecordRegret`, over all streams together.

    Raises:
        TypeError: another environment, or one that is wrapped.
    """

    def __init__(self, env: VectorEnv) -> None:
        expected = (
            "what gym.make_vec(id, num_envs=4) returned, without vectorization_mode, or "
            "clickgym.agents.vec_env(id, 4), which is measured; wrappers belong around "
            "RecordVectorRegret"
        )
        check_kind("env", env, ClickVectorEnv, expected)
        super().__init__(env)
        self._begin()
        self._n_streams = env.num_envs

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._start(seed)
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self._note()
        outcome = observations, rewards, terminated, truncated, infos = self.env.step(actions)
        has_played, clicks, sessions = played(observations, infos)
        if has_played.any():
            rows = np.column_stack([sessions["regret"], rewards, clicks.sum(axis=1)])
            self.meter.add_all(rows[has_played], self.env.unwrapped.n_simulated)
        self._finish(int((terminated | truncated).sum()))
        return outcome


def _is_in_vector() -> bool:
    """Whether the caller is stepped by a vector environment of several, perhaps in a process of its
    own: only the calls that lead here say so.
    """
    frame: Any = sys._getframe(1)
    while frame := frame.f_back:
        if frame.f_globals.get("__name__", "").startswith(VECTORS):
            return getattr(frame.f_locals.get("self"), "num_envs", 2) > 1  # a worker has no self
    return False


def played(
    observations: Any, infos: dict[str, Any]
) -> tuple[NDArray[np.bool_], NDArray[np.int8], dict[str, Any]]:
    """Return of a step of a `ClickVectorEnv` which streams played a session, ``(B,)``, the clicks
    ``(B, K)``, and the infos with ``ranking``, ``regret`` and ``expected_reward``.
    """
    clicks, final = clicks_of(observations), infos.get("final_info")
    if final is None:  # with NEXT_STEP, some may only be reset
        return infos.get("_regret", np.zeros(len(clicks), np.bool_)), clicks, infos
    clicks = clicks.copy()
    for b in np.flatnonzero(infos["_final_obs"]):
        clicks[b] = clicks_of(infos["final_obs"][b])
    return np.ones(len(clicks), np.bool_), clicks, final
