"""Wrappers that add the counts of an episode to the observation, so that a policy without memory
can use them.
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
from ..any_env import user_model_of

Infos = dict[str, Any]


class Counts:
    """Counts of what was shown and clicked in the current episodes of B streams.

    Args:
        env: the environment of one stream, or of many.
        clicks: the space of the clicks that a stream observes.
        n_streams: B.

    Attributes:
        shown, clicked: ``(B, L, K)`` how often each item was shown, and clicked, at each position.
        steps: ``(B,)`` the sessions so far.
        space: the observation space of a stream.
    """

    def __init__(self, env: Any, clicks: gym.Space[Any], n_streams: int) -> None:
        model = user_model_of(env)
        if model is None or not model.n_sessions or clicks != MultiBinary(model.n_positions):
            raise ValueError(
                f"{env} observes {clicks}; expected an environment that observes clicks and "
                "has episodes of a fixed length, such as a Queries environment of clickgym"
            )
        n_items, n_positions = model.n_items, model.n_positions
        self.shown, self.clicked = np.zeros((2, n_streams, n_items, n_positions))
        self.steps, self.n_sessions = np.zeros(n_streams), model.n_sessions
        rows = Box(0.0, np.inf, (n_items, 4 * n_positions + 1), np.float32)
        self.space = Dict(clicks=clicks, counts=rows)

    def start(self, streams: Any = slice(None)) -> None:
        """Count the episodes of some streams from 0."""
        self.shown[streams], self.clicked[streams], self.steps[streams] = 0.0, 0.0, 0.0

    def add(self, rankings: NDArray[np.int64], clicks: NDArray[np.int8]) -> None:
        """Count a session of every stream, both ``(B, K)``."""
        rows, positions = np.arange(len(rankings))[:, None], np.arange(rankings.shape[1])
        self.shown[rows, rankings, positions] += 1.0
        self.clicked[rows, rankings, positions] += clicks
        self.steps += 1.0

    def observed(self) -> NDArray[np.float32]:
        """Return the counts ``(B, L, 4 K + 1)``. An item's row holds log(1 + n), where n is the
        number of its displays at each position, then the same for its clicks, then the averages of
        these numbers over all items, and last the part of the episode that is left.
        """
        item_counts = np.log1p(np.concatenate([self.shown, self.clicked], axis=2))
        left = 1.0 - self.steps / self.n_sessions
        mean = np.broadcast_to(item_counts.mean(axis=1, keepdims=True), item_counts.shape)
        time = np.broadcast_to(left[:, None, None], (*item_counts.shape[:2], 1))
        return np.concatenate([item_counts, mean, time], axis=2, dtype=np.float32)


class EpisodeCounts(gym.Wrapper, RecordConstructorArgs):
    """Wrapper that counts the displays and clicks of each item in an episode, for policies without
    memory.

    The observation is a mapping of the ``clicks`` ``(K,)`` and of ``counts`` ``(L, 4K + 1)``. An
    item's row holds log(1 + n), where n is the number of its displays at each position, and then
    the number of its clicks there. Then come the averages of these numbers over all items, and
    last the part of the episode that is left.

    `PlackettLuceActorCritic` scores each item by its row.

    Args:
        env: an environment of queries, whose actions are lists and whose observation is the clicks.

    Raises:
        ValueError: another environment.

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
        self._counts = Counts(env, env.observation_space, 1)
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
    """`EpisodeCounts` for a native vector environment: ``counts`` ``(B, L, 4K + 1)``.

    Args:
        env: a vector environment of this package with ``autoreset_mode="SameStep"``, with actions
            and observations as in `EpisodeCounts`.

    Raises:
        ValueError: another environment.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        if env.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError('expected streams of gym.make_vec(..., autoreset_mode="SameStep")')
        self._counts = Counts(env, env.single_observation_space, env.num_envs)
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
        else:  # infos keep the sessions that ended an episode apart
            last, final = clicks.copy(), infos["final_info"]
            last[ended] = np.stack(infos["final_obs"][ended])
            counts.add(final["ranking"], last)  # has all streams
            rows = counts.observed()
            for b in np.flatnonzero(ended):
                infos["final_obs"][b] = {"clicks": last[b], "counts": rows[b]}
            counts.start(ended)
        return self._observed(clicks), rewards, terminated, truncated, infos

    def _observed(self, clicks: Any) -> dict[str, Any]:
        return {"clicks": clicks, "counts": self._counts.observed()}
