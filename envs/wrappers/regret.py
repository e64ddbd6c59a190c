"""Wrappers that measure regret, reward and clicks of any code that calls ``env.step``, and make a
`Result` of them.
"""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

from ...core.checks import AN_ENV, check_horizon, check_kind
from ...core.faults import Fault, SessionError
from ...core.kernels import clock
from ..any_env import (
    check_shows_clicks,
    checked_clicks,
    checked_number,
    clicks_of,
    clicks_shown,
    own_step_of,
    regret_of,
    users_of,
)
from ..base_env import label_of, name_of
from ..meter import Record, checkpoint_steps
from ..result import Result
from ..vector_env import ClickVectorEnv
from .item_by_item import Choices

EPISODES = 10
"""Of each stream: fewer, and it counts that all streams began with new users."""


class _Recorded:
    """What both wrappers measure, as a `Result`."""

    env: Any

    def _begin(self) -> None:
        self.meter = Record()
        self._seed: int | None = None
        self._started, self._seconds = 0.0, 0.0

    def _start(self, seed: Any) -> None:
        """Note a reset: its seed is that of the run before the first session, and none later."""
        self._started = self._started or clock()
        if seed is not None or not self.meter.step:
            self._seed = None if self.meter.step else seed

    def result(self, agent: str, horizon: int | None = None) -> Result:
        """Return what was measured so far as the result of a run, which `clickgym.Results` shows
        beside others: at the steps that `clickgym.run` has after as many sessions. Its seconds are
        those from the first reset to the last step, the training included.

        Users who may leave are those of a run only if their episodes end by themselves; and users
        who change only if no later `reset` has a seed.

        Args:
            agent: a name for what chose the lists.
            horizon: the first so many sessions since the wrapper was made; None takes all. Another
                model or agent needs a new environment.

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
        if not 0 < last <= meter.step:
            raise ValueError(f"{meter.step:,} sessions were measured; a result of {last:,} is none")
        steps = checkpoint_steps(last)
        return Result(
            env=label_of(self.env),
            instance=getattr(self.env.unwrapped, "instance", "custom"),
            agent=agent,
            seed=self._seed,
            steps=steps,
            regret=meter.regret[steps - 1],
            reward=meter.reward[steps - 1],
            clicks=meter.clicks[steps - 1],
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

    Attributes:
        meter: the totals after each session, over all episodes: ``step``, ``totals``, ``regret``,
            ``reward`` and ``clicks``.

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

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._start(seed)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        users_env = self._users_env
        try:
            earned = checked_number("reward", reward)
            if users_env is not None and not users_env.regret_is_of(earned, info):
                self._forget_regret()
            if users_env is None or self._has_clicks:
                clicks = checked_clicks(observation, self._n_positions)
            else:
                clicks = users_env.last_session()[1]
            self.meter.add([(regret_of(info), earned, int(clicks.sum()))])
        except Fault as fault:
            session = self.meter.step + 1
            raise SessionError(f"{name_of(self)}, session {session}: {fault}") from None
        self._seconds = clock() - self._started
        return observation, reward, terminated, truncated, info

    def _forget_regret(self) -> None:
        """Make the regret unknown, and warn of it once."""
        if not np.isnan(self.meter.totals[0]):
            warnings.warn(
                f"the regret in {name_of(self)} is unknown (nan): a wrapper changes the reward, "
                "and puts no regret of its own into info",
                stacklevel=3,
            )
            self.meter.forget_regret()


class RecordVectorRegret(_Recorded, VectorWrapper):
    """`RecordRegret` for the streams of ``gym.make_vec``; sessions are counted step by step, and
    within a step stream by stream.

    The streams have users of their own, so `result` has no seed: they are not those of a run of
    `clickgym.run` with the same seed.

    Args:
        env: what ``gym.make_vec`` returned for an id of this package; wrappers belong around this
            one. In the mode ``"sync"`` put `RecordRegret` around each environment instead.

    Attributes:
        meter: as in `RecordRegret`, over all streams together.

    Raises:
        TypeError: another environment, or one that is wrapped.
    """

    def __init__(self, env: VectorEnv) -> None:
        expected = "what gym.make_vec(id) returned; wrappers belong around RecordVectorRegret"
        check_kind("env", env, ClickVectorEnv, expected)
        super().__init__(env)
        self._begin()
        self._n_ended = 0  # episodes, of all streams

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._start(None)
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        outcome = observations, rewards, terminated, truncated, infos = self.env.step(actions)
        has_played, clicks, sessions = played(observations, infos)
        if has_played.any():
            rows = np.column_stack([sessions["regret"], rewards, clicks.sum(axis=1)])
            self.meter.add(rows[has_played])
        self._n_ended += int((terminated | truncated).sum())
        self._seconds = clock() - self._started
        return outcome

    def result(self, agent: str, horizon: int | None = None) -> Result:
        """As `RecordRegret.result`, over all streams together.

        Raises:
            ValueError: as there; or the users change, at a session of each stream and not of all.

        Warns:
            UserWarning: users may leave, and few have. All streams begin with new users, so the
                result is not that of a run.
        """
        users: Any = users_of(self.env)
        if len(users.starts) > 1:
            raise ValueError(
                f"the users of {label_of(self.env)} change with the clock of each stream, so the "
                "sessions of all streams are no run; train in one stream"
            )
        if users.may_leave and self._n_ended < EPISODES * self.num_envs:
            warnings.warn(
                f"{self._n_ended:,} episodes ended in {self.num_envs} streams of "
                f"{label_of(self.env)}, which all begin with new users; beside a run of one stream "
                f"expect {EPISODES} of each: fewer streams, or more sessions",
                stacklevel=2,
            )
        return super().result(agent, horizon)


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
