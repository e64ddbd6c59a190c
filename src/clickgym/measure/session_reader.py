"""Sessions as ``step`` returned them: their clicks, reward and regret, in a single environment or
on a stream of a vector environment, whether it comes from clickgym or from another package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from ..core.errors import Fault
from ..core.messages import short_repr
from ..envs.base_env import name_of
from ..envs.env_properties import (
    changing_users_of,
    check_shows_clicks,
    click_env_of,
    click_vector_size,
    clicks_of,
    read_clicks,
    stream_of,
)


def parallel_obstacle(users: str) -> str:
    """Return why parallel streams do not simulate users who change at fixed sessions, for messages.

    Args:
        users: the name of the class of users.
    """
    return (
        "parallel streams, each with its own count of steps, but users of a "
        f"{users} change at fixed steps"
    )


def check_stream(subject: str, envs: VectorEnv) -> Any:
    """Return an environment that represents each stream of a vector environment, as `stream_of`
    does, after checking that the users of several streams do not change at fixed sessions.

    Args:
        subject: the beginning of the message, such as ``"vec_env steps"``.
        envs: the vector environment.

    Raises:
        ValueError: they change, and there are several streams.
    """
    stream = stream_of(envs)
    if envs.num_envs > 1 and (users := changing_users_of(stream)):
        raise ValueError(
            f"{name_of(stream)}: {subject} {parallel_obstacle(users)}; step a single environment "
            "in RecordRegret"
        )
    return stream


def as_finite(name: str, value: Any) -> float:
    """Return a reward or a regret as a float. Errors call the value ``name``.

    Raises:
        Fault: the value is not a finite number.
    """
    try:
        if not isinstance(value, str | bytes) and math.isfinite(number := float(value)):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise Fault(f"{name} is {short_repr(value)}; expected a finite number")


def regret_of(info: Mapping[str, Any]) -> float:
    """Return the regret of a session from its ``info``: the entry ``regret``, or otherwise
    ``optimal_reward - expected_reward``; nan if ``info`` contains neither.

    Raises:
        Fault: ``regret``, ``optimal_reward`` or ``expected_reward`` is not a finite number.

    Example:
        >>> regret_of({"expected_reward": 0.5, "optimal_reward": 0.75})
        0.25
        >>> regret_of({"expected_reward": 0.5})
        nan
    """
    regret = info.get("regret")
    if regret is not None:
        return as_finite("regret", regret)
    expected, optimum = info.get("expected_reward"), info.get("optimal_reward")
    if expected is None or optimum is None:
        return math.nan
    # `clickgym.envs.simulation.task.State` lists the other places where regret is computed
    return as_finite("optimal_reward", optimum) - as_finite("expected_reward", expected)


class SessionReader:
    """Callable that extracts the clicks, the reward and the regret of a session from the values
    that ``step`` returns.

    The environment may be wrapped, and may come from another package. The clicks are read from the
    observation. If the observation no longer shows clicks, because it was stacked or flattened, the
    clicks come from the simulated users instead. The regret is read from ``info``, and is nan if
    ``info`` does not contain it.

    Args:
        env: the environment, wrapped or not; or a vector environment, for any of its streams.
        space: the space of the observations; by default, the space of ``env``.
        nan_if_changed: what is nan if a wrapper changed the reward of clickgym's users:
            ``"regret"``, unless the wrapper put its own regret into ``info``; or ``"reward"``.

    Raises:
        ValueError: ``env`` comes from another package, and its observations are not clicks.
    """

    def __init__(
        self, env: Any, space: gym.Space[Any] | None = None, nan_if_changed: str = "regret"
    ) -> None:
        click_env: Any = click_env_of(env)
        self.click_env, self.has_clicks, self.nan_if_changed = click_env, True, nan_if_changed
        if click_env is None:
            self.n_positions = check_shows_clicks(env)
        else:
            self.n_positions = click_env.model.n_positions
            self.has_clicks = click_vector_size(space or env.observation_space) == self.n_positions

    def __call__(
        self, observation: Any, reward: Any, info: Mapping[str, Any]
    ) -> tuple[NDArray[np.int8], float, float]:
        """Return the clicks, the reward and the regret of the session that ``step`` simulated.

        Raises:
            Fault: a click is not 0 or 1, or the reward or the regret is not finite.
        """
        reward, regret = as_finite("reward", reward), regret_of(info)
        if self.click_env is not None and not self.click_env.reward_is_own(reward):
            if self.nan_if_changed == "reward":
                reward = math.nan
            elif not self.click_env.regret_is_of(reward, info):
                regret = math.nan
        if self.has_clicks:
            return read_clicks(observation, self.n_positions), reward, regret
        return self.click_env.last_session()[1], reward, regret


def session_readers(envs: VectorEnv) -> list[SessionReader]:
    """Return a `SessionReader` for each stream of a vector environment. Clicks that an observation
    no longer shows, and rewards that a wrapper changed, are noticed only in a ``SyncVectorEnv``,
    whose environments can be asked.

    Raises:
        ValueError: the observations of the streams are not clicks.
    """
    base_env, space = envs.unwrapped, envs.single_observation_space
    if isinstance(base_env, SyncVectorEnv) and click_env_of(base_env.envs[0]) is not None:
        return [SessionReader(env, space, "reward") for env in base_env.envs]
    return [SessionReader(envs)] * envs.num_envs


def observation_at(observations: Any, b: int) -> Any:
    """Return the observation on stream ``b``, given the observations of all streams."""
    if isinstance(observations, Mapping):
        return {name: values[b] for name, values in observations.items()}
    return observations[b]


SESSION_INFOS = ("ranking", "expected_reward", "regret", "optimal_reward")
"""The infos of a step that describe its session."""


def read_stream_session(
    readers: Sequence[SessionReader], outcome: tuple[Any, ...], b: int
) -> tuple[NDArray[np.int8], float, float, dict[str, Any]]:
    """Return the clicks, the reward, the regret and the info of the session on stream ``b``.

    If the step also started the next episode of the stream, with the autoreset mode ``SAME_STEP``,
    the observation and the info come from ``final_obs`` and ``final_info``. With ``NEXT_STEP``, a
    step shows no list on the streams whose episode ended in the step before.

    Args:
        readers: the result of `session_readers`.
        outcome: what ``step`` of the vector environment returned.
        b: the stream.

    Raises:
        Fault: a click is not 0 or 1; or the reward or the regret is not finite; or the regrets are
            integers, as Gymnasium makes them if the first stream's regret is an integer, because
            the other streams' decimals may be lost.
    """
    observations, rewards, _, _, infos = outcome
    if "final_info" in infos and infos["_final_info"][b]:
        observation, infos = infos["final_obs"][b], infos["final_info"]
    else:
        observation = observation_at(observations, b)
    if getattr(infos.get("regret"), "dtype", np.dtype(float)).kind in "iu":
        raise Fault(
            "info['regret'] of a stream is an integer, so Gymnasium cuts off the decimals of all "
            "streams; let the environment return float(regret)"
        )
    info = {
        name: infos[name][b]
        for name in SESSION_INFOS
        if name in infos and (f"_{name}" not in infos or infos[f"_{name}"][b])
    }
    return *readers[b](observation, rewards[b], info), info


def read_all_sessions(
    observations: Any, infos: dict[str, Any]
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the clicks ``(B, K)`` and the infos of the sessions that a step of a `ClickVectorEnv`
    without wrappers played, as arrays over all streams, without a look at single streams.

    Args:
        observations, infos: what the step returned.
    """
    clicks, sessions = clicks_of(observations), infos.get("final_info")
    if sessions is None:
        return clicks, infos
    clicks = clicks.copy()
    for b in np.flatnonzero(infos["_final_obs"]):
        clicks[b] = clicks_of(infos["final_obs"][b])
    return clicks, sessions
