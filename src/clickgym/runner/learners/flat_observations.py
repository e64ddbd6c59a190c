"""Observations of learners as one array: clicks and state of stateful users, or features."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, flatdim
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray


class FlatObservation(VectorWrapper):
    """Base class of wrappers whose observations are one array for each stream, also the last one of
    an episode.

    Args:
        env: a vector environment that observes a `Dict`.
        space: of the observation of a stream.
    """

    def __init__(self, env: VectorEnv, space: Box | MultiBinary) -> None:
        super().__init__(env)
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
        raise NotImplementedError


class ObservedState(FlatObservation):
    """Observation: the last clicks, then the state one-hot, then the sessions left one-hot if their
    number is fixed.

    Args:
        env: a vector environment of stateful users.
    """

    def __init__(self, env: VectorEnv) -> None:
        spaces = env.single_observation_space
        assert isinstance(spaces, Dict)
        self._ones = {
            name: np.eye(int(space.n), dtype=np.int8)
            for name, space in spaces.items()
            if isinstance(space, Discrete)
        }
        size = flatdim(spaces["clicks"]) + sum(map(len, self._ones.values()))
        super().__init__(env, MultiBinary(size))

    def flat(self, seen: dict[str, Any]) -> NDArray[np.int8]:
        return np.concatenate(
            [seen["clicks"], *(ones[seen[name]] for name, ones in self._ones.items())], axis=-1
        )


class FlatFeatures(FlatObservation):
    """Observation: the features of all candidates of a stream, one after another.

    Args:
        env: a vector environment that observes a `Dict` of ``features``.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env, Box(-1, 1, (flatdim(env.single_observation_space),)))

    def flat(self, seen: dict[str, Any]) -> NDArray[np.float32]:
        features = seen["features"]
        return features.reshape(*features.shape[:-2], -1).astype(np.float32)
