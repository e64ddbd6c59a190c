"""Agents that sample: PB-MHB from a posterior by Metropolis-Hastings steps, PDGD its lists by
Plackett-Luce.

Their pieces are functions of numbers, for tests of the compiled pieces: likelihoods, acceptance
ratios, probabilities of lists, gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp, xlog1py, xlogy

from .reference import CLOSE, Reference, examined_positions

# ------------------------------------------------------------------------------------------- PB-MHB


class PBMHBReference(Reference):
    """PB-MHB: Gauthier et al. 2021 (IDA).

    A point is (θ_1..θ_L, κ_1..κ_K), and a coordinate its number therein. What an agent drew is its
    state's ``theta`` and ``kappa``.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        c: float = 1000.0,
        n_sweeps: int = 1,
        fix_first: bool = True,
    ) -> None:
        super().__init__(n_items, n_positions)
        self.c, self.n_sweeps, self.fix_first = c, n_sweeps, fix_first
        self.clicks = np.zeros((n_items, n_positions), int)  # S
        self.shown = np.zeros((n_items, n_positions), int)  # S + F

    # ------------------------------------------------------------------------------------ posterior

    def log_likelihood(self, point: Sequence[float]) -> float:
        """Σ S log(θ κ) + F log(1 - θ κ)"""
        hit = np.outer(point[: self.n_items], point[self.n_items :])
        misses = self.shown - self.clicks
        return float(np.sum(xlogy(self.clicks, hit) + xlog1py(misses, -hit)))

    def coordinates(self) -> list[int]:
        """The coordinates of a sweep, in its order."""
        first = self.n_items + (1 if self.fix_first else 0)
        return [*range(self.n_items), *range(first, self.n_items + self.n_positions)]

    def sigma(self) -> float:
        """c / sqrt(t), t the coming session."""
        return self.c / math.sqrt(self.t)

    def log_ratio(self, point: Sequence[float], coordinate: int, new: float, sigma: float) -> float:
        """The logarithm of what a uniform number must be below for a coordinate to become
        ``new``.
        """
        proposed = np.array(point)
        proposed[coordinate] = new
        before, after = self.log_likelihood(point), self.log_likelihood(proposed)
        if after == -math.inf:
            return -math.inf
        old = float(point[coordinate])
        return after - before + math.log(_mass(old, sigma)) - math.log(_mass(new, sigma))

    def grid_posterior(self, n: int = 50) -> tuple[np.ndarray, np.ndarray]:
        """Of every coordinate of `coordinates`, the mass in n cells of equal width: ``(n,)``
        middles and ``(coordinates, n)``.

        For up to four coordinates: all cells of their product are weighed.
        """
        middles = (np.arange(n) + 0.5) / n
        free = self.coordinates()
        axes = dict(zip(free, np.meshgrid(*[middles] * len(free), indexing="ij"), strict=True))
        log_weight = np.zeros([n] * len(free))
        for item in range(self.n_items):
            for k in range(self.n_positions):
                hit = axes[item] * axes.get(self.n_items + k, 1.0)
                clicks, misses = self.clicks[item, k], self.shown[item, k] - self.clicks[item, k]
                log_weight += xlogy(clicks, hit) + xlog1py(misses, -hit)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        others = [tuple(b for b in range(len(free)) if b != a) for a in range(len(free))]
        return middles, np.array([weight.sum(axis=axis) for axis in others])

    # ------------------------------------------------------------------------------------ following

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        theta, kappa = drawn.theta.tolist(), drawn.kappa.tolist()
        places = sorted(range(self.n_positions), key=lambda k: -kappa[k])
        best = sorted(theta, reverse=True)[: self.n_positions]
        return (
            super().allows(ranking)
            and all(0 <= x <= 1 for x in theta + kappa)
            and (not self.fix_first or kappa[0] == 1)
            and [theta[ranking[place]] for place in places] == best
        )

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        for position, item in enumerate(ranking):
            self.shown[item, position] += 1
            self.clicks[item, position] += clicks[position]
        super().learn(ranking, clicks)

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicks, "misses": self.shown - self.clicks}


def _mass(x: float, sigma: float) -> float:
    """Φ((1 - x) / σ) - Φ(-x / σ), as a sum: a large σ leaves no digits of the difference."""
    scale = sigma * math.sqrt(2)
    return (math.erf((1 - x) / scale) + math.erf(x / scale)) / 2


# --------------------------------------------------------------------------------------------- PDGD


def log_probability(scores: Sequence[float], ranking: Sequence[int]) -> float:
    """The logarithm of a list's Plackett-Luce probability."""
    left = list(range(len(scores)))
    total = 0.0
    for item in ranking:
        total += scores[item] - float(logsumexp([scores[other] for other in left]))
        left.remove(item)
    return total


class PDGDReference(Reference):
    """PDGD: Oosterhuis and de Rijke 2018 (CIKM). Every list has a probability above 0, so all are
    allowed.

    Rounding does not add up over sessions: weights that agree are taken over.
    """

    edges = {"eta": (0.1, 1e-12, 3.0), "feature_scale": (10.0, 1.0)}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        learning_rate: float = 0.1,
        eta: float | None = None,
        feature_scale: float = 1.0,
    ) -> None:
        super().__init__(n_items, n_positions)
        self.learning_rate = learning_rate if eta is None else eta * feature_scale**2
        self.weights = np.zeros(n_features)
        self.features = np.zeros((n_items, n_features))
        self.step = 0.0  # what the last session's update may have been at most

    def scores(self) -> np.ndarray:
        return self.features @ self.weights

    def pairs(self, clicks: Sequence[int]) -> list[tuple[int, int]]:
        """The positions of the clicked and the unclicked item of each pair."""
        if not any(clicks):
            return []
        below = len(examined_positions(clicks, "last_click")) + 1
        clicked = [k for k, click in enumerate(clicks) if click]
        unclicked = [k for k, click in enumerate(clicks[:below]) if not click]
        return [(d, e) for d in clicked for e in unclicked]

    def weight(self, ranking: Sequence[int], a: int, b: int) -> float:
        """ω = P(R') / (P(R) + P(R')), R' with the items of positions a and b exchanged."""
        exchanged = list(ranking)
        exchanged[a], exchanged[b] = exchanged[b], exchanged[a]
        scores = self.scores()
        return float(expit(log_probability(scores, exchanged) - log_probability(scores, ranking)))

    def gradient(self, ranking: Sequence[int], clicks: Sequence[int]) -> np.ndarray:
        scores, total = self.scores(), np.zeros_like(self.weights)
        for d, e in self.pairs(clicks):
            x, y = self.features[ranking[d]], self.features[ranking[e]]
            ahead = float(scores[ranking[d]] - scores[ranking[e]])
            slope = expit(-ahead) * expit(ahead)
            total += self.weight(ranking, d, e) * slope * (x - y)
        return total

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        return super().allows(ranking)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.step = (
            self.learning_rate * len(self.pairs(clicks)) * float(np.abs(self.features).max())
        )
        self.weights = self.weights + self.learning_rate * self.gradient(ranking, clicks)
        super().learn(ranking, clicks)

    def holds(self) -> dict[str, Any]:
        return {"weights": self.weights}

    def agrees(self, state: Any) -> bool:
        slack = CLOSE * max(self.step, float(np.abs(self.weights).max()))
        agreed = bool(np.allclose(state.weights, self.weights, rtol=0, atol=slack))
        if agreed:
            self.weights = np.array(state.weights)
        return agreed
