"""Wrappers that add an episode's counts of displays and clicks to the observation, for policies
without memory.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ...core.checks import AN_ENV, check_kind
from ..base_env import name_of
from ..env_properties import user_model_of

Infos = dict[str, Any]


class EpisodeCounter:
    """Counts of displays and clicks in the current episodes of B streams.

    Args:
        env: the environment, with one stream or many streams.
        clicks: the observation space of one stream, which must consist of clicks.
        n_streams: B, the number of streams.

    Attributes:
        shown, clicked: ``(B, L, K)`` the number of times that each item was shown, and clicked, at
            each position.
        steps: ``(B,)`` the number of sessions in the episode so far.
        space: the observation space of one stream, with clicks and counts.

    Raises:
        ValueError: the environment observes more than clicks, or its episodes have no fixed length.
    """

    def __init__(self, env: Any, clicks: gym.Space[Any], n_streams: int) -> None:
        model = user_model_of(env)
        if model is None or not model.n_sessions or clicks != MultiBinary(model.n_positions):
            fault = f"observes {clicks}"
            if model is not None and clicks == MultiBinary(model.n_positions):
                fault = "has no episodes of a fixed length"
            raise ValueError(
                f"{name_of(env)} {fault}; expected an environment that observes clicks and "
                "has episodes of a fixed length, such as QueriesPBMRank-v0"
            )
        n_items, n_positions = model.n_items, model.n_positions
        self.shown, self.clicked = np.zeros((2, n_streams, n_items, n_positions))
        self.steps, self.n_sessions = np.zeros(n_streams), model.n_sessions
        rows = Box(0.0, np.inf, (n_items, 4 * n_positions + 1), np.float32)
        self.space = Dict(clicks=clicks, counts=rows)

    def start(self, streams: Any = slice(None)) -> None:
        """Set the counts to 0 on streams where an episode starts; by default, on all streams."""
        self.shown[streams], self.clicked[streams], self.steps[streams] = 0.0, 0.0, 0.0

    def add(self, rankings: NDArray[np.int64], clicks: NDArray[np.int8]) -> None:
        """Add a session on every stream, given the lists ``(B, K)`` and the clicks ``(B, K)``."""
        rows, positions = np.arange(len(rankings))[:, None], np.arange(rankings.shape[1])
        self.shown[rows, rankings, positions] += 1.0
        self.clicked[rows, rankings, positions] += clicks
        self.steps += 1.0

    def observed(self) -> NDArray[np.float32]:
        """Return the counts as observations, ``(B, L, 4 K + 1)`` (see `EpisodeCounts`)."""
        item_counts = np.log1p(np.concatenate([self.shown, self.clicked], axis=2))
        left = 1.0 - self.steps / self.n_sessions
        mean = np.broadcast_to(item_counts.mean(axis=1, keepdims=True), item_counts.shape)
        time = np.broadcast_to(left[:, None, None], (*item_counts.shape[:2], 1))
        return np.concatenate([item_counts, mean, time], axis=2, dtype=np.float32)


class EpisodeCounts(gym.Wrapper, RecordConstructorArgs):
    """Wrapper that adds each item's numbers of displays and clicks in the episode to the
    observation, for policies without memory.

    The observation is a dict with ``clicks`` ``(K,)`` and ``counts`` ``(L, 4K + 1)``. Each item has
    a row of ``counts``. Its first K entries are log(1 + n) for the number n of displays at each
    position, and the next K entries are log(1 + n) for the number n of clicks. Then come the
    averages of these 2K entries over all items. The last entry is the fraction of the episode that
    is left.

    `PlackettLuceActorCritic` computes the score of each item from the item's row.

    Args:
        env: an environment with the prefix ``Queries``, or another environment that observes only
            clicks and has episodes of a fixed length.

    Raises:
        ValueError: the environment observes more than clicks, or its episodes have no fixed length.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = clickgym.envs.EpisodeCounts(gym.make("QueriesPBMRank-v0"))
        >>> env.reset(seed=0)[0]["counts"].shape
        (10, 21)
    """

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._counts = EpisodeCounter(env, env.observation_space, 1)
        self.observation_space = self._counts.space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Infos]:
        clicks, info = self.env.reset(seed=seed, options=options)
        self._counts.start()
        return self._observed(clicks), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Infos]:
        clicks, reward, terminated, truncated, info = self.env.step(action)
        self._counts.add(info["ranking"][None], clicks[None])
        return self._observed(clicks), reward, terminated, truncated, info

    def _observed(self, clicks: Any) -> dict[str, Any]:
        return {"clicks": clicks, "counts": self._counts.observed()[0]}


class EpisodeCountsVector(VectorWrapper):
    """Wrapper like `EpisodeCounts` for a vector environment of clickgym, with ``counts``
    ``(B, L, 4K + 1)``.

    Args:
        env: the vector environment, created with ``autoreset_mode="SameStep"``; its streams meet
            the requirements of `EpisodeCounts`.

    Raises:
        ValueError: the environment observes more than clicks, its episodes have no fixed length, or
            its autoreset mode is not ``"SameStep"``.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> envs = gym.make_vec("QueriesPBMRank-v0", num_envs=4, autoreset_mode="SameStep")
        >>> envs = clickgym.envs.EpisodeCountsVector(envs)
        >>> envs.reset(seed=0)[0]["counts"].shape
        (4, 10, 21)
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError(
                'env has another autoreset mode; pass autoreset_mode="SameStep" to gym.make_vec'
            )
        self._counts = EpisodeCounter(env, env.single_observation_space, env.num_envs)
        self.single_observation_space = self._counts.space
        self.observation_space = batch_space(self._counts.space, env.num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, Infos]:
        clicks, infos = self.env.reset(seed=seed, options=options)
        self._counts.start()
        return self._observed(clicks), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Infos]:
        clicks, rewards, terminated, truncated, infos = self.env.step(actions)
        counts, ended = self._counts, terminated | truncated
        if not ended.any():
            counts.add(infos["ranking"], clicks)
        else:  # the sessions that ended an episode are in final_obs and final_info
            last, final = clicks.copy(), infos["final_info"]
            last[ended] = np.stack(infos["final_obs"][ended])
            counts.add(final["ranking"], last)  # final_info covers all streams
            rows = counts.observed()
            for b in np.flatnonzero(ended):
                infos["final_obs"][b] = {"clicks": last[b], "counts": rows[b]}
            counts.start(ended)
        return self._observed(clicks), rewards, terminated, truncated, infos

    def _observed(self, clicks: Any) -> dict[str, Any]:
        return {"clicks": clicks, "counts": self._counts.observed()}
