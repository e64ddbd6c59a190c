"""`News`, an environment of another package, registered as ``FrontPage-v0``."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary, MultiDiscrete

L, K = 6, 3
ATTRACTION = np.linspace(0.1, 0.6, L)


class News(gym.Env):
    """A front page of another package. A user may stop reading after any session, so the streams'
    episodes end at different steps.

    Args:
        tells: the entries of ``info``, separated by spaces.
        observes_hour: whether an observation is a dict with the clicks and the hour.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, tells: str = "regret", observes_hour: bool = False) -> None:
        self.tells, self.observes_hour = tells.split(), observes_hour
        self.action_space, clicks = MultiDiscrete([L] * K), MultiBinary(K)
        self.observation_space: Any = (
            Dict(clicks=clicks, hour=Discrete(24)) if observes_hour else clicks
        )

    def _observe(self, clicks: Any) -> Any:
        return {"clicks": clicks, "hour": 5} if self.observes_hour else clicks

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._observe(np.zeros(K, np.int8)), {"optimal_reward": 99.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        rates, optimum = ATTRACTION[action], ATTRACTION[-K:].sum()
        clicks = (self.np_random.random(K) < rates).astype(np.int8)
        info = {
            "regret": float(optimum - rates.sum()),
            "expected_reward": float(rates.sum()),
            "optimal_reward": float(optimum),
            "whole": 1,
        }
        told = {name: info[name] for name in self.tells}
        leaves = bool(self.np_random.random() < 0.3)
        return self._observe(clicks), float(clicks.sum()), leaves, False, told


gym.register("FrontPage-v0", entry_point=News, max_episode_steps=4)
