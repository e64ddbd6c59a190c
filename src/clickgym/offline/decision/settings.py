"""The settings of a decision, checked in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.checks import check_between, check_choice, check_count, check_horizon, check_seed
from ...envs import REWARDS
from ..comparison import some_labels

LEVEL = 0.005
"""The most probable that a list may be no better than that in production and yet be recommended, by its ground."""


@dataclass(frozen=True)
class Settings:
    """The checked settings of `decide`.

    Attributes:
        agents, horizon, runs, seed, reward, cutoff, level: see `decide`.
    """

    agents: tuple[str, ...]
    horizon: int
    runs: int
    seed: int
    reward: str
    cutoff: int | None
    level: float

    @classmethod
    def check(
        cls, agents: Sequence[str], horizon: int, runs: int, seed: int, reward: str, cutoff: int | None, level: float = LEVEL
    ) -> Settings:
        """The settings; an error says what is wrong with one."""
        agents = some_labels("agents", agents)
        horizon, runs, seed = check_horizon(horizon), check_count("runs", runs), check_seed(seed)
        check_choice("reward", reward, REWARDS)
        return cls(agents, horizon, runs, seed, reward, cutoff, check_between("level", level, 0, 0.5))
