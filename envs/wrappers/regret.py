"""Wrappers that measure regret, reward and clicks of any code that calls ``env.step``, and make a
`Result` of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import ArrayLike, NDArray

from ...core.checks import A_VECTOR_ENV, AN_ENV, check_horizon, check_kind, integers, short
from ...core.faults import Fault, SessionError
from ...core.kernels import clock
from ..any_env import (
    changing_layers,
    check_shows_clicks,
    checked_clicks,
    checked_number,
    clicks_of,
    clicks_shown,
    layers_of,
    own_step_of,
    regret_of,
    users_of,
)
from ..base_env import label_of, name_of
from ..meter import CLICKS, REGRET, REWARD, Meter, checkpoint_steps
from ..result import Result
from ..vector_env import ClickVectorEnv
from .actions import recorded
from .item_by_item import ItemByItem

MANY = 10
"""Episodes of users who may leave in each of several streams, after which it hardly counts that
all streams began with new users.
"""


class _Recorded:
    """What both wrappers measure, as a `Result`."""

    meter: Meter
    _one: Any
    """An environment with the users and the rewards of all streams: a native vector is one."""
    _seed: int | None = None
    _is_under_way = False
    """Whether an episode has begun and has not ended."""
    _is_cut = False
    """Whether an episode of users who may leave was reset before its end."""
    _is_set_back = False
    """Whether the clock of users who change was set back by a seed."""
    _n_streams = 1
    _n_ended = 0
    """Episodes that have ended, of all streams."""
    _started: float | None = None
    _seconds = 0.0

    def _start(self, seed: Any) -> None:
        """Note a reset: its seed is that of the run before the first session, and none later."""
        self._started = clock() if self._started is None else self._started
        if seed is not None or not self.meter.step:
            self._seed = int(seed) if isinstance(seed, int) and not self.meter.step else None
        users = users_of(self._one)
        if self._is_under_way and users is not None and users.may_leave:
            self._is_cut = True
        if seed is not None and self.meter.step and users is not None and len(users.starts) > 1:
            self._is_set_back = True

    def _label(self, n_sessions: int) -> str:
        """Return the name of the environment, another one where users came or changed otherwise
        than in `clickgym.run`.

        Args:
            n_sessions: of the result.
        """
        label, users = label_of(self._one), users_of(self._one)
        if self._is_cut:
            return f"{label}, episodes cut short"
        if self._is_set_back:
            return f"{label}, clock set back"
        is_whole = n_sessions == self.meter.step and not self._is_under_way
        are_few = self._n_ended * n_sessions < MANY * self._n_streams * self.meter.step
        may_leave = users is not None and users.may_leave
        if may_leave and self._n_streams > 1 and are_few and not is_whole:
            return f"{label}, few episodes per stream"
        return label

    def _forget_regret(self) -> None:
        """Make the regret unknown, and warn of it once."""
        if not np.isnan(self.meter.totals[REGRET]):
            warnings.warn(
                f"the regret in {name_of(self._one)} is unknown (nan): a wrapper changes the "
                "reward, and puts no regret of its own into info",
                stacklevel=3,
            )
        self.meter.forget_regret()

    def result(self, agent: str, horizon: int | None = None) -> Result:
        """Return what was measured so far as the result of a run, which `clickgym.Results` shows
        beside others. The environment has another name where users came or changed otherwise than
        in a run: an episode of users who may leave was reset before its end, or fewer than ten
        ended in each of several streams, which all begin with new users; or a seed in the course
        of the sessions set back the clock of users who change.

        Without ``checkpoints`` its steps are those that `clickgym.run` has after as many sessions,
        else those that are reached, and the present session. Its seconds are those from the first
        reset to the last step, the training included.

        Args:
            agent: a name for what chose the lists.
            horizon: the first so many sessions since the wrapper was made; None takes all. Another
                model or agent needs a new environment.

        Raises:
            ValueError: there was no session, or not so many; or they end at no checkpoint.

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
        meter = self.meter
        if not meter.step:
            raise ValueError("no session was measured; step the environment first")
        steps, totals = meter.steps, meter.at_checkpoints[: len(meter.steps)]
        if not meter.keeps_all and (not len(steps) or steps[-1] < meter.step <= meter.horizon):
            steps, totals = np.append(steps, meter.step), np.vstack([totals, meter.totals])
        if horizon is not None:
            last = check_horizon(horizon)
            if last not in steps:
                known = f"1 to {steps[-1]:,}" if meter.keeps_all else short(steps.tolist())
                raise ValueError(f"horizon is {last:,}; the sessions measured are {known}")
            steps, totals = steps[steps <= last], totals[: np.searchsorted(steps, last) + 1]
        if meter.keeps_all:
            steps = checkpoint_steps(int(steps[-1]))
            totals = totals[steps - 1]
        return Result(
            env=self._label(int(steps[-1])),
            instance=getattr(self._one.unwrapped, "instance", "custom"),
            agent=agent,
            seed=self._seed,
            steps=steps,
            regret=totals[:, REGRET].copy(),
            reward=totals[:, REWARD].copy(),
            clicks=totals[:, CLICKS].astype(np.int64),
            metrics={},
            seconds=self._seconds,
            engine="own loop",
        )


class RecordRegret(_Recorded, gym.Wrapper, RecordConstructorArgs):
    """Wrapper that measures regret, reward and clicks of any code that steps the environment: your
    own loop, an agent, an RL library.

    It takes what ``env.step`` returns for what happened. The clicks are those of the observation.
    If it shows none, because it was stacked or flattened, they are those of the users.

    Args:
        env: an environment of this package, wrapped or not; or an environment of another package,
            whose observation is the clicks or a mapping with ``clicks``. Its ``info`` may contain
            ``regret``, or ``expected_reward`` and ``optimal_reward``. Without them the measured
            regret is nan. It is also nan behind a wrapper that changes the reward, unless this
            wrapper puts a ``regret`` of its own into ``info``.
        checkpoints: numbers of sessions at which the totals are kept; sessions after
            the last one are not counted. None keeps them after every session.

    Attributes:
        meter: the totals, over all episodes, and their values at the checkpoints.

    Raises:
        TypeError: ``env`` is no environment, or it is `ItemByItem`, whose steps are no sessions.
        ValueError: the observations of an environment of another package are not clicks.
        SessionError: in ``step``, clicks that are not 0 or 1, a reward or a regret that is not
            finite.

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

    def __init__(self, env: gym.Env, checkpoints: ArrayLike | None = None) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        _check_steps_are_sessions(env)
        self._one, self._click_env = env, own_step_of(env)
        if self._click_env is None:
            self._n_positions = check_shows_clicks(env)
        else:
            self._n_positions = self._click_env.model.n_positions
        self._has_clicks = clicks_shown(env.observation_space) == self._n_positions
        self.meter = _meter_of(checkpoints)
        RecordConstructorArgs.__init__(self, checkpoints=recorded(checkpoints))
        gym.Wrapper.__init__(self, env)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._start(seed)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        try:
            earned, click_env = checked_number("reward", reward), self._click_env
            if click_env is not None and not click_env.regret_is_of(earned, info):
                self._forget_regret()
            if click_env is None or self._has_clicks:
                clicks = checked_clicks(observation, self._n_positions)
            else:
                clicks = click_env.last_session()[1]
            self.meter.add(regret_of(info), earned, int(clicks.sum()))
        except Fault as fault:
            session = self.meter.step + 1
            raise SessionError(f"{name_of(self)}, session {session}: {fault}") from None
        self._is_under_way = not (terminated or truncated)
        self._n_ended += not self._is_under_way
        self._seconds = clock() - (self._started or 0.0)
        return observation, reward, terminated, truncated, info


class RecordVectorRegret(_Recorded, VectorWrapper):
    """`RecordRegret` for a vector environment; sessions are counted step by step, and within a step
    stream by stream.

    The streams have users of their own, so `result` has no seed: they are not those of a run of
    `clickgym.run` with the same seed.

    Args:
        env: a vector environment of this package, native or of Gymnasium's (``"sync"``,
            ``"async"``); a wrapper of it may change rewards, but neither lists nor observations.
            Then the regret is nan, as in `RecordRegret`.
        checkpoints: as in `RecordRegret`, in sessions over all streams together.

    Attributes:
        meter: as in `RecordRegret`.
        on_session: None, or a function that is called with stream, list, clicks and expected reward
            of each session before it is counted.

    Raises:
        TypeError: it is no vector environment, or its streams are `ItemByItem`.
        ValueError: a wrapper changes lists or observations; measure inside of it. Or the streams
            are of two environments or instances.
    """

    _is_regret_told = False
    """Whether a wrapper has put another regret into the infos than that of the users. A regret of 0
    may be either."""

    def __init__(self, env: VectorEnv, checkpoints: ArrayLike | None = None) -> None:
        check_kind("env", env, VectorEnv, A_VECTOR_ENV)
        for name in changing_layers(env, "action", "observation"):
            raise ValueError(
                f"{name} changes lists or observations; measure inside of it: "
                f"{name}(RecordVectorRegret(envs))"
            )
        super().__init__(env)
        self.autoreset_mode = env.metadata.get("autoreset_mode")
        self._one, self._n_streams = _one_of(env), env.num_envs
        _check_steps_are_sessions(self._one)
        self.meter = _meter_of(checkpoints)
        self.on_session: Callable[[int, NDArray[np.int64], NDArray[np.int8], float], object] | None
        self.on_session = None

    def result(self, agent: str, horizon: int | None = None) -> Result:
        """As `RecordRegret.result`, over all streams together.

        Raises:
            ValueError: as there; or the users change, at a session of each stream and not of all.
        """
        users = users_of(self._one)
        if users is not None and len(users.starts) > 1:
            raise ValueError(
                f"the users of {label_of(self._one)} change with the clock of each stream, so the "
                "sessions of all streams are no run; train in one stream"
            )
        return super().result(agent, horizon)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._start(None)
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        clicks, final = clicks_of(observations), infos.get("final_info", {})
        nowhere = np.zeros(self.num_envs, np.bool_)
        ended_now, others = final.get("_regret", nowhere), infos.get("_regret", nowhere)
        if ended_now.any():
            clicks = clicks.copy()
            for b in np.flatnonzero(ended_now).tolist():
                clicks[b] = clicks_of(infos["final_obs"][b])
        regret = np.where(ended_now, final.get("regret", 0.0), infos.get("regret", 0.0))
        measured = np.column_stack([regret, rewards, clicks.sum(axis=1)])
        played = ended_now | others  # a step may only reset a stream (NEXT_STEP)
        if (own := self._earned()) is not None:
            is_own = regret == own[1]
            self._is_regret_told = self._is_regret_told or bool((played & ~is_own).any())
            is_of_users = is_own & ((regret != 0) | (not self._is_regret_told))
            if (played & is_of_users & (rewards != own[0])).any():
                self._forget_regret()
        if self.on_session is None:
            self.meter.add_all(measured[played])
        else:
            for b in np.flatnonzero(played).tolist():
                last = final if ended_now[b] else infos
                if self.meter.step < self.meter.horizon:
                    self.on_session(b, last["ranking"][b], clicks[b], last["expected_reward"][b])
                self.meter.add(*measured[b])
        ended = np.logical_or(terminations, truncations)
        self._is_under_way = not ended.all()
        self._n_ended += int(ended.sum())
        self._seconds = clock() - (self._started or 0.0)
        return observations, rewards, terminations, truncations, infos

    def _earned(self) -> Any:
        """Return rewards and regrets ``(B,)`` of the last sessions, before any wrapper; None if
        there is none, or they are unknown.
        """
        core: Any = self.env.unwrapped
        if isinstance(core, ClickVectorEnv):
            return None if core is self.env else core.earned
        if own_step_of(self._one) is None:
            return None
        if isinstance(core, AsyncVectorEnv):
            return np.transpose(core.get_attr("earned"))
        return np.transpose([env.unwrapped.earned for env in core.envs])


def _one_of(env: VectorEnv) -> Any:
    """Return an environment with the users of a vector environment: its first, or a native vector
    itself. Those of ``"async"`` are in other processes, so others are made.

    Raises:
        ValueError: its environments have two names, and a result has one.
    """
    core = env.unwrapped
    if isinstance(core, AsyncVectorEnv):
        envs = [make() for make in dict.fromkeys(core.env_fns)]
    elif isinstance(core, SyncVectorEnv):
        envs = core.envs
    else:
        return core
    names = [f"{label_of(one)}, {getattr(one.unwrapped, 'instance', 'custom')}" for one in envs]
    for name in names:
        if name != names[0]:
            raise ValueError(
                f"the streams are of two environments, ({names[0]}) and ({name}); expected one, "
                "because all streams are one run"
            )
    return envs[0]


def _check_steps_are_sessions(env: gym.Env) -> None:
    if any(isinstance(layer, ItemByItem) for layer in layers_of(env)):
        raise TypeError(
            "a step of ItemByItem chooses one item and is no session; measure inside of it: "
            "ItemByItem(RecordRegret(env))"
        )


def _meter_of(checkpoints: ArrayLike | None) -> Meter:
    """Return the meter of a wrapper, for checked checkpoints."""
    if checkpoints is None:
        return Meter(None)
    return Meter(np.unique(integers("checkpoints", checkpoints, (None,), 1, whole=True)))
