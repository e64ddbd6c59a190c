"""PBM-PIE and PBM-HB where clicks come late: their references, which learn from any list at any time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clickgym.agents.pbmhb import step_within

from .indices import PBMPIEReference
from .posterior import PBMHBReference
from .reference import CLOSE, Numbered


class LatePBMPIE(Numbered, PBMPIEReference):
    """The start is of the first L displays; what was never seen is never a leader while there are others."""

    def indices(self) -> list[float]:
        return [index if seen else -math.inf for index, seen in zip(super().indices(), self.seen, strict=True)]

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        for k in positions:
            self.seen[ranking[k]] += 1
            self.clicks[ranking[k]] += clicks[k]
            self.shown[ranking[k]][k] += 1
            self.clicked[ranking[k]][k] += clicks[k]

    def replace(self, item: int) -> None:
        self.clicks[item] = self.seen[item] = 0
        self.shown[item], self.clicked[item] = [0] * self.n_positions, [0] * self.n_positions


class LatePBMHB(Numbered, PBMHBReference):
    """One step of the chain a display, by what has come; its random numbers are those of an agent of the same seed."""

    def __init__(self, *arguments: Any, seed: int, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.rng = np.random.default_rng(seed)
        self.point = self.rng.random(self.n_items + self.n_positions)
        if self.fix_first:
            self.point[self.n_items] = 1.0

    def allows(self, ranking: Any, drawn: Any = None, features: Any = None) -> bool:
        """With the steps of the agent; a number is drawn to accept one only where the ratio leaves a choice."""
        self.point = self.point.copy()
        for coordinate in self.coordinates() * self.n_sweeps:
            new = step_within(self.rng, self.point[coordinate], self.sigma())
            ratio = self.log_ratio(self.point, coordinate, new, self.sigma())
            if ratio >= 0 or self.rng.random() < math.exp(ratio):
                self.point[coordinate] = new
        return self.is_at(drawn) and super().allows(ranking, drawn)

    def is_at(self, state: Any) -> bool:
        """Whether the agent's sample is this one, whose digits are then taken over: rounding does not add up."""
        sample = np.concatenate([state.theta, state.kappa])
        is_same = np.allclose(sample, self.point, rtol=CLOSE)
        self.point = sample if is_same else self.point
        return is_same

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        for k in positions:
            self.shown[ranking[k], k] += 1
            self.clicks[ranking[k], k] += clicks[k]

    def replace(self, item: int) -> None:
        self.shown[item] = self.clicks[item] = 0
        self.point[item] = self.rng.random()

    def agrees(self, state: Any) -> bool:
        return super().agrees(state) and self.is_at(state)
