"""The observation of a learner as one array: features of candidates, or clicks and state of users with a memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, flatdim
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ...envs.codecs import flat_features


class FlatObservation(VectorWrapper):
    """Observation: the features of the coming candidates, candidate by candidate, and nothing else, because the clicks were on
    other candidates. For users with a memory: the last clicks, then the state one-hot, then the sessions left one-hot if their
    number is fixed.

    Args:
        env: a vector environment of users who meet other candidates in every session, or who have a memory.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        spaces = env.single_observation_space
        assert isinstance(spaces, Dict)
        self._ones = {
            name: np.eye(int(space.n), dtype=np.int8) for name, space in spaces.items() if isinstance(space, Discrete)
        }
        if "features" in spaces.spaces:
            self.single_observation_space = Box(-1.0, 1.0, (flatdim(spaces["features"]),))
        else:
            self.single_observation_space = MultiBinary(flatdim(spaces["clicks"]) + sum(map(len, self._ones.values())))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._flat(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_obs" in infos:
            infos["final_obs"][:] = [last if last is None else self._flat(last) for last in infos["final_obs"]]
        return self._flat(observations), rewards, terminations, truncations, infos

    def _flat(self, seen: dict[str, Any]) -> NDArray[Any]:
        if "features" in seen:
            return flat_features(seen)
        return np.concatenate([seen["clicks"], *(ones[seen[name]] for name, ones in self._ones.items())], axis=-1)
