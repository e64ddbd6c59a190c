"""Streams of sessions as the networks of stable-baselines3 read them and act on them. Imports the
library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.vector import VectorActionWrapper, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ...envs.spaces import without_repeats
from ...envs.wrappers.actions import ScoresVectorAction
from ...envs.wrappers.feature_weights import FeatureWeightsVectorAction
from ...envs.wrappers.item_by_item import ItemByItemVector, flat_draft
from .vec_env import StableBaselinesVecEnv


class NumberedLists(VectorActionWrapper):
    """Actions are lists of numbers: number j is ``items[j]``, and a repeated item is shown once.

    Args:
        env: a vector environment whose actions are lists.
        items: ``(L,)`` the order of the items.
    """

    def __init__(self, env: VectorEnv, items: NDArray[np.int64]) -> None:
        super().__init__(env)
        self.autoreset_mode = env.metadata.get("autoreset_mode")
        self.items = items

    def actions(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.items[without_repeats(actions, len(self.items))]


WRAPPERS: dict[str, Callable[..., VectorEnv]] = {
    "rankings": NumberedLists,
    "scores": ScoresVectorAction,
    "weights": lambda envs, items: FeatureWeightsVectorAction(envs),
    "items": ItemByItemVector,
}
"""What turns each kind of actions into lists."""


def adapted(
    envs: VectorEnv, actions: str, items: NDArray[np.int64], by_row: bool
) -> StableBaselinesVecEnv:
    """Return streams with observations that the networks can read, and with actions of a kind.

    Args:
        envs: whose actions are lists.
        actions: a key of `WRAPPERS`.
        items: ``(L,)`` the order in which actions number the items.
        by_row: whether the policy reads the row of features of each candidate.
    """
    with_features = shows_features(envs.single_observation_space)
    envs = WRAPPERS[actions](envs, items)
    if isinstance(envs.single_observation_space, Dict) and not (by_row and with_features):
        envs = FlatObservation(envs)
    return StableBaselinesVecEnv(envs)


def shows_features(space: Any) -> bool:
    """Whether observations of a space have the features of candidates."""
    return isinstance(space, Dict) and "features" in space.spaces


class FlatObservation(VectorWrapper):
    """Observations as one array for each stream, also the last one of an episode: of unfinished
    lists (`ItemByItemVector`) the items and the next position; then the features of all
    candidates, one after another, or the last clicks, with state and sessions left one-hot.

    Args:
        env: a vector environment that observes a `Dict`.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        spaces: Any = env.single_observation_space.spaces  # type: ignore[attr-defined]
        self._one_hot = {
            name: np.eye(int(space.n), dtype=np.int8)
            for name, space in spaces.items()
            if isinstance(space, Discrete)
        }
        empty = {name: np.zeros(space.shape, space.dtype) for name, space in spaces.items()}
        size = len(self.flat(empty))
        has_numbers = bool({"features", "placed"} & spaces.keys())
        space = Box(-1, 1, (size,)) if has_numbers else MultiBinary(size)
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
            rows = seen["features"]
            last = rows.reshape(*rows.shape[:-2], -1).astype(np.float32)
        else:
            clicks = seen["observation"] if "observation" in seen else seen["clicks"]
            one_hot = (rows[seen[name]] for name, rows in self._one_hot.items())
            last = np.concatenate([clicks, *one_hot], axis=-1)
        return flat_draft(seen["placed"], last) if "placed" in seen else last
