"""The observation of a learner for stateful users: clicks and state as one array."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary, flatdim
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray


class ObservedState(VectorWrapper):
    """Observation: the last clicks, then the state one-hot, then the sessions left one-hot if their
    number is fixed.

    Args:
        env: a vector environment of stateful users.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        spaces = env.single_observation_space
        assert isinstance(spaces, Dict)
        self._ones = {
            name: np.eye(int(space.n), dtype=np.int8)
            for name, space in spaces.items()
            if isinstance(space, Discrete)
        }
        size = flatdim(spaces["clicks"]) + sum(map(len, self._ones.values()))
        self.single_observation_space = MultiBinary(size)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._flat(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_obs" in infos:
            infos["final_obs"][:] = [
                last if last is None else self._flat(last) for last in infos["final_obs"]
            ]
        return self._flat(observations), rewards, terminations, truncations, infos

    def _flat(self, seen: dict[str, Any]) -> NDArray[np.int8]:
        return np.concatenate(
            [seen["clicks"], *(ones[seen[name]] for name, ones in self._ones.items())], axis=-1
        )
