"""The sessions of one environment in turn, as a vector environment for learners, where every
session has other candidates.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.spaces import Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ...core.kernels import entry
from ...envs import ClickEnv
from ...envs.any_env import clicks_of, regret_of
from ...envs.meter import Meter
from ..metrics import Metrics


class SequentialVectorEnv(VectorEnv[Any, NDArray[np.int64], Any]):
    """Vector environment whose streams are the sessions of one environment in turn.

    A policy chooses n lists at once, and they are shown to the next n users, one after the other,
    so that users are those of the environment, whatever n is. A stream observes the ``features``
    ``(L, d)`` of the candidates of its next session, not its last clicks, because these were on
    others.

    Args:
        env: that has been reset; its candidates change from session to session.
        num_envs: n.
        meter: counts the sessions, in their order.
        metrics: what is measured besides.
    """

    action_space: Any
    single_observation_space: Any

    def __init__(self, env: ClickEnv, num_envs: int, meter: Meter, metrics: Metrics) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs, self.meter = num_envs, meter
        self._env, self._metrics = env, metrics
        metrics.contexts(env)  # refused before anything is drawn
        self.single_action_space = env.action_space
        self.action_space = batch_space(env.action_space, num_envs)
        space: Any = env.observation_space
        self.single_observation_space = Dict(features=space["features"])
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, in which the environment goes on; with a seed it begins anew."""
        observation, _ = self._env.reset(seed=seed, options=options)
        self._contexts = self._metrics.contexts(self._env)
        return self._observed(observation), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Show ``(n, K)`` lists to the next n users."""
        rewards, never = np.empty(self.num_envs), np.zeros(self.num_envs, np.bool_)
        for b, ranking in enumerate(np.asarray(actions, np.int64)):
            contexts = self._metrics.before_step(self._contexts)
            observation, rewards[b], _, _, info = self._env.step(ranking)
            clicks = clicks_of(observation)
            if self._metrics.summed and self.meter.step < self.meter.horizon:
                self._metrics.measure(
                    contexts, ranking, clicks, info["expected_reward"], self.meter.totals
                )
            self.meter.add(regret_of(info), rewards[b], int(clicks.sum()))
        return self._observed(observation), rewards, never, never.copy(), {}

    def _observed(self, last: dict[str, Any]) -> Any:
        """The observations ``(n, ...)`` of the streams, from the last of the environment."""
        return {"features": self._next_features(last["features"])}

    def _next_features(self, first: NDArray[np.float64]) -> NDArray[np.float64]:
        """The features ``(n, L, d)`` of the next n sessions, from those of the first: the
        environment will draw the same.
        """
        rng, state = deepcopy(self._env.np_random), deepcopy(self._env.state)
        users = self._env.task.users
        advance = entry(self._env.task.kernels.advance).bound(users, state, 0, rng)
        features = np.tile(first, (self.num_envs, 1, 1))
        for b in range(1, self.num_envs):
            rng.random(self._env.model.n_uniforms)  # the clicks
            advance(users, state, 0, rng)
            features[b] = state.features[0]
        return features
