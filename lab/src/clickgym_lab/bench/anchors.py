"""Anchors: for each task, the losses of random lists and of the best agent, between which scores
are scaled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DIFFER = 3.0

Scores = NDArray[np.float64]


class Anchor(NamedTuple):
    """The two losses that define the scores of a task: that of random lists and that of the best
    agent.

    Attributes:
        random, best: the losses of random lists and of the best agent.
        agent: who that is.
        horizon: after how many sessions.
        allowance: what is added to all losses before they are compared.
    """

    random: float
    best: float
    agent: str
    horizon: int
    allowance: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether the two losses differ enough for the task to show anything.

        Example:
            >>> Anchor(100.0, 33.0, "A", 1000).kept, Anchor(100.0, 34.0, "A", 1000).kept
            (True, False)
        """
        return self.random > 0 and self.random + self.allowance >= DIFFER * (
            self.best + self.allowance
        )

    def score(self, loss: Scores) -> Scores:
        """Convert losses to scores: 0 is that of random lists, 1 that of the best agent, and the
        scale is logarithmic.

        No loss counts as less than that of one session of random lists.

        Example:
            >>> Anchor(1000.0, 10.0, "TopRank", horizon=1000).score(np.array([1000.0, 100.0, 10.0, 1.0, 0.0]))
            array([0. , 0.5, 1. , 1.5, 1.5])
        """
        floor, more = self.random / self.horizon, self.allowance
        return np.log((self.random + more) / (np.maximum(loss, floor) + more)) / self.scale

    @property
    def scale(self) -> float:
        """The logarithm of the ratio of the two losses, which is a score of 1."""
        best = max(self.best, self.random / self.horizon)
        return math.log((self.random + self.allowance) / (best + self.allowance))
