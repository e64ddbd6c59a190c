"""Wrappers that measure the regret, reward and clicks of any code that calls ``env.step``, and
return the measurements as a `Result`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import (
    AsyncVectorEnv,
    AutoresetMode,
    SyncVectorEnv,
    VectorEnv,
    VectorRewardWrapper,
    VectorWrapper,
)
from gymnasium.wrappers import NormalizeReward
from gymnasium.wrappers.vector import NormalizeReward as NormalizeRewards

from ..core.checks import AN_ENV, check_count, check_horizon, check_kind
from ..core.errors import Fault, SessionError
from ..core.kernels import clock
from ..core.text import counted
from ..envs.base_env import name_of
from ..envs.click_vector_env import ClickVectorEnv
from ..envs.env_properties import label_of, query_of, user_model_of
from ..envs.wrappers.item_by_item import Choices
from .meter import SessionMeter, checkpoint_steps
from .result import (
    MIN_USERS,
    OWN_LOOP,
    RESET_IS_NO_SESSION,
    Result,
    few_users_message,
    same_users_message,
    users_per_stream,
    warn_of_negative_regret,
)
from .session_reader import (
    SessionReader,
    check_stream,
    read_all_sessions,
    read_stream_session,
    session_readers,
)


class _Recorder:
    """Base class of `RecordRegret` and `RecordVectorRegret`, which stores their measurements and
    returns these as a `Result`.
    """

    env: Any
    _stream: Any
    """The environment that gives the result its label: ``env`` itself, or, of a vector environment,
    one stream.
    """
    _first_seeds: tuple[Any, ...] = (None,)
    """The seeds of the last reset before the first session: one, or one for each stream of a
    vector environment of Gymnasium.
    """
    _n_seeds = 1
    """The number of streams to which Gymnasium gives the seeds ``seed``, ``seed + 1``, ..."""
    _resets_next = False
    """Whether a step may only reset a stream: the autoreset mode NEXT_STEP."""
    _n_simulated = 0
    """The number of sessions that the users in this process had simulated after the last measured
    session.
    """
    _n_turns = 0
    """How often a `RecordRegret` was stepped after another one."""

    def _begin(self, stream: Any) -> None:
        self.meter, self._stream = SessionMeter(), stream
        base_env = self.env.unwrapped
        streams = base_env.envs if isinstance(base_env, SyncVectorEnv) else [base_env]
        self._simulators = [e.unwrapped for e in streams if hasattr(e.unwrapped, "n_simulated")]
        self._queries = set[int | None]()
        self._seeds, self._reseeded = set[tuple[Any, ...]](), list[int]()
        self._started = self._seconds = clock()

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if not self.meter.step:
            self._started = clock()
        start = self.env.reset(seed=seed, options=options)
        seeds: tuple[Any, ...] = (seed,)
        if np.ndim(seed):
            seeds = tuple(np.asarray(seed).tolist())
        elif seed is not None and self._n_seeds > 1:
            seeds = tuple(range(seed, seed + self._n_seeds))
        if not self.meter.step:
            self._first_seeds = seeds
        if seed is not None:
            if self.meter.step and seeds in self._seeds:
                self._reseeded.append(self.meter.step)
            self._seeds.add(seeds)
        return start

    def _finish(self, query: int | None = None) -> None:
        """Store the query of a step (None unless users have several queries), and the time and the
        number of simulated sessions after the step.
        """
        self._queries.add(query)
        self._seconds = clock() - self._started
        self._n_simulated = 0
        for simulator in self._simulators:  # summing a list would take 3 % of a step
            self._n_simulated += simulator.n_simulated

    def result(
        self, agent: str, horizon: int | None = None, *, trained: int | None = None
    ) -> Result:
        """Return all measurements so far as the result of one run, for `clickgym.Results`.

        Every session since the first reset counts, even if a second training or an evaluation
        stepped this environment; ``horizon`` leaves out what came after the first training.

        The result has the same checkpoints as a result of `clickgym.run`, and ``seconds`` is the
        time from the first reset to the last step; if the result covers only the first sessions, it
        is their share of this time. ``unrecorded`` is the number of sessions that the environment
        simulated but this wrapper did not measure; it is None for environments from other packages
        and in other processes, because they do not tell. ``reseeded`` is the number of resets with
        a seed that had been used before, which brings the same users back.

        Args:
            agent: the name, for tables and figures, of the agent or program that chose the lists.
            horizon: the number of sessions, from the first session on, that the result covers; by
                default, all sessions. To measure another model or agent, create a new environment.
            trained: the number of sessions from which the agent had already learned in other
                environments; 0 if its training began in this environment. Tables show this number;
                by default, they say that it is unknown.

        Raises:
            ValueError: no session has been measured, or fewer sessions than ``horizon``.

        Warns:
            UserWarning: an environment from another package reported a negative total regret; or
                several `RecordRegret` are stepped in turn, as if they were streams of one training;
                or users have a memory, and each parallel stream had fewer than ten of them, so that
                too many users were new.
        """
        n_measured = self.meter.step
        last = n_measured if horizon is None else check_horizon(horizon)
        if not n_measured:
            raise ValueError("no session has been measured yet; call step before result")
        if last > n_measured:
            raise ValueError(
                f"horizon is {last:,}, but the loop has only "
                f"{counted(n_measured, 'session')} so far"
                + (f"; {RESET_IS_NO_SESSION}" if self._resets_next else "")
            )
        if self._n_turns > max(n_measured / 2, 2):
            warnings.warn(
                f"other environments were stepped between the sessions of {name_of(self._stream)}; "
                "if one training steps them all, it is one run: put RecordVectorRegret around "
                "their SyncVectorEnv, or use clickgym.agents.vec_env",
                stacklevel=2,
            )
        n_streams = getattr(self, "num_envs", 1)
        users, limit = user_model_of(self._stream), _episode_limit(self._stream)
        n_users = users_per_stream(users, last, n_streams, limit)
        if n_users is not None and n_users < MIN_USERS:
            warnings.warn(few_users_message(agent, n_users, n_streams, last), stacklevel=2)
        steps = checkpoint_steps(last)
        regret = self.meter.regret[steps - 1]
        if user_model_of(self._stream) is None:
            warn_of_negative_regret(name_of(self._stream), regret[-1])
        first, *others = self._first_seeds
        is_range = first is not None and others == [*range(first + 1, first + 1 + len(others))]
        return Result(
            env=label_of(self._stream),
            instance=getattr(self._stream.unwrapped, "instance", "custom"),
            agent=agent,
            seed=first,
            steps=steps,
            regret=regret,
            reward=self.meter.reward[steps - 1],
            clicks=self.meter.clicks[steps - 1],
            metrics={},
            seconds=self._seconds * last / n_measured,
            engine=OWN_LOOP,
            query=next(iter(self._queries)) if len(self._queries) == 1 else None,
            trained=None if trained is None else check_count("trained", trained, 0),
            unrecorded=max(self._n_simulated - n_measured, 0) if self._simulators else None,
            reseeded=sum(step < last for step in self._reseeded),
            last_seed=others[-1] if others and is_range else None,
            users_per_stream=n_users,
        )


class RecordRegret(_Recorder, gym.Wrapper, RecordConstructorArgs):
    """Wrapper that measures the regret, reward and clicks of your own loop around ``env.step``.

    `result` returns the same kind of object as `clickgym.run`, so `clickgym.Results` can show your
    loop in one table with other runs. The wrapper counts the clicks in the observation that
    ``env.step`` returns. If the observation no longer shows clicks, because it was stacked or
    flattened, the wrapper asks the simulated users for their clicks instead. If you train on
    several parallel streams, measure all streams together, with `clickgym.agents.vec_env` or
    `RecordVectorRegret`.

    Args:
        env: an environment from clickgym, wrapped or not; or an environment from another package
            whose observation is the clicks, or a dict with ``clicks``. Regret is nan if ``info``
            contains neither ``regret`` nor both ``expected_reward`` and ``optimal_reward``. Regret
            is also nan if a wrapper inside `RecordRegret` changes the reward without putting its
            own ``regret`` into ``info``. Any other object than the users' number counts as the
            wrapper's own, even the same number converted to NumPy or read from JSON.

    Attributes:
        meter: the measurements, with ``step``, the number of sessions so far, and the arrays
            ``regret``, ``reward`` and ``clicks``, the cumulative totals after each session.

    Raises:
        TypeError: ``env`` is not an environment, or ``env`` is an `ItemByItem` wrapper, whose steps
            are not sessions.
        ValueError: ``env`` comes from another package, and its observations are not clicks.
        SessionError: ``step`` returned clicks other than 0 or 1, or a reward or regret that is not
            finite.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = clickgym.RecordRegret(gym.make("PBMRank-v0"))
        >>> observation, info = env.reset(seed=0)
        >>> for _ in range(1234):
        ...     observation, reward, terminated, truncated, info = env.step([0, 1, 2, 3, 4])
        >>> env.meter.step, round(env.meter.regret[-1])
        (1234, 482)
        >>> mine = env.result("mine")
        >>> mine.agent, mine.seed, int(mine.steps[-1]), round(mine.regret[-1])
        ('mine', 0, 1234, 482)
    """

    _last_stepped = 0
    """The id of the object whose method `step` was called last."""

    def __init__(self, env: gym.Env) -> None:
        expected = f"{AN_ENV}; for a vector environment, use RecordVectorRegret"
        check_kind("env", env, gym.Env, expected)
        if isinstance(env.action_space, Choices):
            raise TypeError(
                f"{_ITEM_IS_NO_SESSION}put RecordRegret inside: ItemByItem(RecordRegret(env))"
            )
        self._read_session, self._has_warned = SessionReader(env), False
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._begin(env)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if RecordRegret._last_stepped != id(self):
            RecordRegret._last_stepped = id(self)
            self._n_turns += 1
        query = query_of(self)
        observation, reward, terminated, truncated, info = self.env.step(action)
        try:
            clicks, measured_reward, regret = self._read_session(observation, reward, info)
        except Fault as fault:
            session = self.meter.step + 1
            raise SessionError(f"{name_of(self)}, session {session}: {fault}") from None
        if math.isnan(regret) and user_model_of(self) and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"the regret in {name_of(self)} is unknown (nan), because a wrapper inside "
                "RecordRegret changes the reward; put that wrapper around RecordRegret, or "
                "let it set info['regret']",
                stacklevel=2,
            )
        self.meter.add(regret, measured_reward, int(np.count_nonzero(clicks)))
        self._finish(query)
        return observation, reward, terminated, truncated, info


class RecordVectorRegret(_Recorder, VectorWrapper):
    """Wrapper that measures the sessions of all streams of a vector environment together, as one
    run.

    Args:
        env: a vector environment: what ``gym.make_vec`` returned for an environment id of clickgym,
            which is the fastest; or any other, such as a ``SyncVectorEnv`` or an ``AsyncVectorEnv``
            of environments that `RecordRegret` accepts. Regret is nan if it is not in the infos, as
            in `RecordRegret`. If a wrapper inside changes the rewards, the regret from the infos
            counts, and the rewards are nan. A stream that a step only resets counts no session.

    Attributes:
        meter: the measurements, as in `RecordRegret`, with the sessions of all streams in one
            sequence: step by step, and within each step stream by stream.

    Raises:
        TypeError: ``env`` is not a vector environment, or the streams are wrapped in `ItemByItem`,
            whose steps are not sessions.
        ValueError: the observations of the streams are not clicks, or there are several streams,
            and their users change at fixed sessions.
        SessionError: ``step`` returned clicks other than 0 or 1, or a reward or regret that is not
            finite; or a wrapper inside changes the rewards, and the infos have no regret; or the
            autoreset mode is DISABLED, and a stream whose episode is over was not reset.

    Warns:
        UserWarning: users have a memory, and ``max_episode_steps`` ends episodes before they leave;
            or streams have the same users as those of another run in this process, because the two
            runs have seeds that lie too close together.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> streams = gym.vector.SyncVectorEnv([lambda: gym.make("PBMRank-v0")] * 4)
        >>> envs = clickgym.RecordVectorRegret(streams)
        >>> observations, infos = envs.reset(seed=0)
        >>> for _ in range(25):
        ...     outcome = envs.step([[0, 1, 2, 3, 4]] * 4)
        >>> envs.result("mine")  # doctest: +ELLIPSIS
        <Result of mine in PBMRank-v0, yandex-9982: sessions=100, ..., engine=own loop, ...>
    """

    def __init__(self, env: VectorEnv) -> None:
        expected = (
            "a vector environment, such as gym.make_vec(id, num_envs=4). An environment from "
            "clickgym.agents.vec_env measures regret itself: call its method result"
        )
        check_kind("env", env, VectorEnv, expected)
        if isinstance(env.single_action_space, Choices):
            raise TypeError(
                f"{_ITEM_IS_NO_SESSION}leave ItemByItem out, and use "
                'clickgym.agents.vec_env(env, n_envs, actions="items")'
            )
        stream = check_stream("RecordVectorRegret measures", env)
        _warn_of_short_episodes(stream)
        self._readers = session_readers(env)
        layers = (*_layers(env), *_layers(stream))
        self._reward_wrappers = [type(x).__name__ for x in layers if isinstance(x, REWARD_WRAPPERS)]
        super().__init__(env)
        self._is_compiled = isinstance(env, ClickVectorEnv)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._mode, self._resets_next = mode, mode is AutoresetMode.NEXT_STEP
        self._is_over: Any = None  # a mask of the streams whose episodes are over, if any are
        if isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            self._n_seeds = env.num_envs
        self._begin(stream)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        # a mask of the streams to reset, which Gymnasium removes from the options
        is_reset = (options or {}).get("reset_mask", True)
        start = super().reset(seed=seed, options=options)
        if not self.meter.step and None not in self._first_seeds and self._n_seeds > 1:
            _warn_of_same_users(self._stream, self._first_seeds)
        if self._is_over is not None:
            self._is_over = self._is_over & ~np.array(is_reset)
        return start

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if self._mode is AutoresetMode.DISABLED and np.any(self._is_over):
            raise SessionError(
                f"{name_of(self._stream)}: with AutoresetMode.DISABLED, reset the streams whose "
                'episodes are over: reset(options={"reset_mask": terminated | truncated})'
            )
        outcome = observations, rewards, terminated, truncated, infos = self.env.step(actions)
        only_reset = self._is_over
        if self._mode is not AutoresetMode.SAME_STEP:
            is_over = terminated | truncated
            self._is_over = is_over if is_over.any() else None
        if only_reset is None or not only_reset.all():
            has_played = slice(None) if only_reset is None else ~only_reset
            if self._is_compiled:
                clicks, sessions = read_all_sessions(observations, infos)
                rows = np.column_stack([sessions["regret"], rewards, clicks.sum(axis=1)])
                self.meter.add_all(rows[has_played])
            else:
                for b in np.arange(self.num_envs)[has_played].tolist():
                    self._add(b, outcome)
        self._finish()
        return outcome

    def _add(self, b: int, outcome: tuple[Any, ...]) -> None:
        """Measure the session on stream ``b``, given what ``step`` returned."""
        try:
            clicks, reward, regret, _ = read_stream_session(self._readers, outcome, b)
            if self._reward_wrappers:
                reward = math.nan
            if math.isnan(reward) and math.isnan(regret):
                who = self._reward_wrappers[0] if self._reward_wrappers else "a wrapper"
                raise Fault(
                    f"{who} changes the rewards, and info has no regret, so nothing "
                    "is left to measure; change rewards around RecordVectorRegret, with a wrapper "
                    "from gymnasium.wrappers.vector, or return info as it is"
                )
        except Fault as fault:
            place = f"session {self.meter.step + 1}, stream {b}"
            raise SessionError(f"{name_of(self._stream)}, {place}: {fault}") from None
        self.meter.add(regret, reward, int(clicks.sum()))


def _episode_limit(stream: Any) -> int | None:
    """Return the number of sessions after which a stream's episodes end; None if there is none."""
    own = getattr(stream, "max_episode_steps", None)
    return own or getattr(stream.spec, "max_episode_steps", None)


def _warn_of_short_episodes(stream: Any) -> None:
    """Warn if episodes of users with memory, which end when the user leaves, have a limit."""
    model, limit = user_model_of(stream), _episode_limit(stream)
    if limit and model is not None and model.max_episode_steps is None:
        warnings.warn(
            f"{name_of(stream)}: max_episode_steps={limit} ends episodes before users leave, and "
            "each episode begins with a new user in a first state, so the results cannot be "
            "compared with those of clickgym.run; leave max_episode_steps out",
            stacklevel=3,
        )


_SEEDS: list[tuple[str, tuple[int, ...]]] = []
"""The environments and the seeds of the vector environments of Gymnasium that began a run in this
process.
"""


def _warn_of_same_users(stream: Any, seeds: tuple[int, ...]) -> None:
    """Warn once if a run with another seed has streams with some of these seeds. The same seed may
    be used again, to train another algorithm on the same users.
    """
    label = f"{label_of(stream)}, {getattr(stream.unwrapped, 'instance', 'custom')}"
    if (label, seeds) in _SEEDS:
        return
    for other_label, other in _SEEDS:
        if other_label == label and other[0] != seeds[0] and {*other} & {*seeds}:
            first, second = sorted([other, seeds], key=lambda each: each[0])
            message = same_users_message(first[0], second[0], len(first))
            warnings.warn(
                f"{name_of(stream)}: {message} (Results refuses the two runs)", stacklevel=3
            )
            break
    _SEEDS.append((label, seeds))


def _layers(env: Any) -> Iterator[Any]:
    """Yield an environment's wrappers, from the outside in, and the environment."""
    while isinstance(env, gym.Wrapper | VectorWrapper):
        yield env
        env = env.env
    yield env


REWARD_WRAPPERS = (gym.RewardWrapper, VectorRewardWrapper, NormalizeReward, NormalizeRewards)
"""Gymnasium's wrappers that change rewards."""
_ITEM_IS_NO_SESSION = "a step of ItemByItem chooses one item, so it is not a session; "
