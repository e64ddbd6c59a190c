"""Streams of sessions as the networks of stable-baselines3 read them and act on them. Imports the
library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, flatdim
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ...envs.wrappers.actions import LehmerVectorAction, ScoresVectorAction
from ...envs.wrappers.feature_weights import FeatureWeightsVectorAction
from ...envs.wrappers.item_by_item_array import ItemByItemArray
from .vec_env import StableBaselinesVecEnv

WRAPPERS: dict[str, Callable[..., VectorEnv]] = {
    "rankings": lambda envs, items: envs,  # their actions are lists of ids
    "codes": LehmerVectorAction,
    "scores": ScoresVectorAction,
    "weights": lambda envs, items: FlatObservation(FeatureWeightsVectorAction(envs)),
    "items": ItemByItemArray,
}
"""What turns each kind of actions into lists."""


def adapted(envs: VectorEnv, actions: str, items: NDArray[np.int64]) -> StableBaselinesVecEnv:
    """Return streams with observations that the networks can read, and with actions of a kind.

    Args:
        envs: whose actions are lists.
        actions: a key of `WRAPPERS`.
        items: ``(L,)`` the order in which actions number the items.
    """
    space = envs.single_observation_space
    is_by_row = actions in ("rankings", "weights") and shows_features(space)
    if isinstance(space, Dict) and not is_by_row:
        envs = FlatObservation(envs)
    return StableBaselinesVecEnv(WRAPPERS[actions](envs, items))


def shows_features(space: Any) -> bool:
    """Whether observations of a space have the features of candidates."""
    return isinstance(space, Dict) and "features" in space.spaces


class FlatObservation(VectorWrapper):
    """Observations as one array for each stream, also the last one of an episode: the features of
    all candidates, one after another; or the last clicks, then state and sessions left one-hot.

    Args:
        env: a vector environment that observes a `Dict`.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        spaces: Any = env.single_observation_space
        self._one_hot = {
            name: np.eye(int(space.n), dtype=np.int8)
            for name, space in spaces.items()
            if isinstance(space, Discrete)
        }
        space: Box | MultiBinary
        if shows_features(spaces):
            space = Box(-1, 1, (flatdim(spaces["features"]),))
        else:
            space = MultiBinary(flatdim(spaces["clicks"]) + sum(map(len, self._one_hot.values())))
        self.single_observation_space = space
        self.observation_space = batch_space(space, self.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return self.flat(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_obs" in infos:
            infos["final_obs"][:] = [
                last if last is None else self.flat(last) for last in infos["final_obs"]
            ]
        return self.flat(observations), rewards, terminations, truncations, infos

    def flat(self, seen: dict[str, Any]) -> NDArray[Any]:
        """Return the observations of all streams, or that of one, as an array."""
        if "features" in seen:
            features = seen["features"]
            return features.reshape(*features.shape[:-2], -1).astype(np.float32)
        one_hot = (rows[seen[name]] for name, rows in self._one_hot.items())
        return np.concatenate([seen["clicks"], *one_hot], axis=-1)
