"""Items one by one, for policies that require an array as observation and have no masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, MultiBinary, flatdim
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ..codecs import flat_draft, next_left
from .item_by_item import ItemByItemVector


class ItemByItemArray(VectorWrapper):
    """`ItemByItemVector` for policies that require an array as observation and have no masks.

    A forbidden choice is replaced by the next allowed item in the order of ``items``. An
    observation holds the items on the list, the next position, and the last observation of ``env``.

    Args:
        env, items: as for `ItemByItemVector`; the observations of ``env`` are arrays.
    """

    def __init__(self, env: VectorEnv, items: ArrayLike | None = None) -> None:
        self._by_item = ItemByItemVector(env, items)
        super().__init__(self._by_item)
        last: Any = env.single_observation_space
        lists: Any = env.single_action_space
        size = lists.n_items + lists.n_positions + flatdim(last)
        least, most = (
            (0, 1) if isinstance(last, MultiBinary) else (min(0, np.min(last.low)), np.inf)
        )
        self.single_observation_space = Box(least, most, (size,))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return flat_draft(observations), infos

    def step(self, actions: NDArray[np.integer]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        choices = next_left(actions, self._by_item.action_masks())
        observations, rewards, terminations, truncations, infos = self.env.step(choices)
        if "final_obs" in infos:
            infos["final_obs"][:] = [
                last if last is None else flat_draft(last) for last in infos["final_obs"]
            ]
        return flat_draft(observations), rewards, terminations, truncations, infos
