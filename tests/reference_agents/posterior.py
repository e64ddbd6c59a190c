"""Agents that sample: PB-MHB from a posterior by Metropolis-Hastings steps, PDGD its lists by Plackett-Luce.

Their pieces are functions of numbers, for tests of the compiled pieces: likelihoods, acceptance ratios, probabilities of lists,
gradients. The keyword arguments after ``*`` are readings that it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp, xlog1py, xlogy

from .reference import CLOSE, Reference, examined_positions

# -------------------------------------------------------------------------------------------------------------- PB-MHB


class PBMHBReference(Reference):
    """PB-MHB: Gauthier et al. 2021 (IDA).

    A point is (θ_1..θ_L, κ_1..κ_K), and a coordinate its number therein. What an agent drew is its state's ``theta`` and
    ``kappa``.

    Args:
        prior: S and F before the first session, of each item at each position.
        best_position_first: the k-th best item stands at the k-th most examined position, not at the k-th.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        c: float = 1000.0,
        n_sweeps: int = 1,
        fix_first: bool = True,
        *,
        prior: float = 0.0,
        best_position_first: bool = True,
    ) -> None:
        super().__init__(n_items, n_positions)
        self.c, self.n_sweeps, self.fix_first = c, n_sweeps, fix_first
        self.prior, self.best_position_first = prior, best_position_first
        self.clicks = np.zeros((n_items, n_positions), int)  # S
        self.shown = np.zeros((n_items, n_positions), int)  # S + F

    # ------------------------------------------------------------------------------------------------------- posterior

    def log_likelihood(self, point: Sequence[float]) -> float:
        """Σ S log(θ κ) + F log(1 - θ κ)"""
        hit = np.outer(point[: self.n_items], point[self.n_items :])
        misses = self.shown - self.clicks
        return float(np.sum(xlogy(self.clicks + self.prior, hit) + xlog1py(misses + self.prior, -hit)))

    def coordinates(self) -> list[int]:
        """The coordinates of a sweep, in its order."""
        first = self.n_items + (1 if self.fix_first else 0)
        return [*range(self.n_items), *range(first, self.n_items + self.n_positions)]

    def sigma(self) -> float:
        """c / sqrt(t), t the coming session."""
        return self.c / math.sqrt(self.t)

    def log_ratio(self, point: Sequence[float], coordinate: int, new: float, sigma: float) -> float:
        """The logarithm of what a uniform number must be below for a coordinate to become ``new``."""
        proposed = np.array(point)
        proposed[coordinate] = new
        before, after = self.log_likelihood(point), self.log_likelihood(proposed)
        if after == -math.inf:
            return -math.inf
        old = float(point[coordinate])
        return after - before + math.log(_mass(old, sigma)) - math.log(_mass(new, sigma))

    def grid_posterior(self, n: int = 50) -> tuple[np.ndarray, np.ndarray]:
        """Of every coordinate of `coordinates`, the mass in n cells of equal width: ``(n,)`` middles and ``(coordinates, n)``.

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
                log_weight += xlogy(clicks + self.prior, hit) + xlog1py(misses + self.prior, -hit)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        others = [tuple(b for b in range(len(free)) if b != a) for a in range(len(free))]
        return middles, np.array([weight.sum(axis=axis) for axis in others])

    # ------------------------------------------------------------------------------------------------------- following

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        theta, kappa = drawn.theta.tolist(), drawn.kappa.tolist()
        places = range(self.n_positions)
        if self.best_position_first:
            places = sorted(places, key=lambda k: -kappa[k])
        best = sorted((theta[item] for item in self.available), reverse=True)[: self.n_positions]
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


# ---------------------------------------------------------------------------------------------------------------- PDGD


def log_probability(scores: Sequence[float], ranking: Sequence[int], among: Sequence[int] | None = None) -> float:
    """The logarithm of a list's Plackett-Luce probability, among all candidates or some."""
    left = list(range(len(scores)) if among is None else among)
    total = 0.0
    for item in ranking:
        total += scores[item] - float(logsumexp([scores[other] for other in left]))
        left.remove(item)
    return total


class PDGDReference(Reference):
    """PDGD: Oosterhuis and de Rijke 2018 (CIKM). Every list has a probability above 0, so all are allowed.

    Rounding does not add up over sessions: weights that agree are taken over.

    Args:
        weighted: pairs have the weight ω, not 1.
        reversed_share: ω is the share of the list with the pair exchanged, not of the list shown.
        among_all: list probabilities are among all candidates, not among those shown.
        one_below: the item one place below the last click is compared, not only those above it.
        both_factors: the gradient of the pair's probability is e^d e^e / (e^d + e^e)², not the 1 - p of its logarithm.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        learning_rate: float = 0.1,
        *,
        weighted: bool = True,
        reversed_share: bool = True,
        among_all: bool = True,
        one_below: bool = True,
        both_factors: bool = True,
    ) -> None:
        super().__init__(n_items, n_positions)
        self.learning_rate = learning_rate
        self.weighted, self.reversed_share, self.among_all = weighted, reversed_share, among_all
        self.one_below, self.both_factors = one_below, both_factors
        self.weights = np.zeros(n_features)
        self.features = np.zeros((n_items, n_features))
        self.step = 0.0  # what the last session's update may have been at most

    def scores(self) -> np.ndarray:
        return self.features @ self.weights

    def pairs(self, clicks: Sequence[int]) -> list[tuple[int, int]]:
        """The positions of the clicked and the unclicked item of each pair."""
        if not any(clicks):
            return []
        below = len(examined_positions(clicks, "last_click")) + (1 if self.one_below else 0)
        clicked = [k for k, click in enumerate(clicks) if click]
        unclicked = [k for k, click in enumerate(clicks[:below]) if not click]
        return [(d, e) for d in clicked for e in unclicked]

    def weight(self, ranking: Sequence[int], a: int, b: int) -> float:
        """ω = P(R') / (P(R) + P(R')), R' with the items of positions a and b exchanged."""
        if not self.weighted:
            return 1.0
        exchanged = list(ranking)
        exchanged[a], exchanged[b] = exchanged[b], exchanged[a]
        among = None if self.among_all else ranking
        scores = self.scores()
        log_odds = log_probability(scores, exchanged, among) - log_probability(scores, ranking, among)
        return float(expit(log_odds if self.reversed_share else -log_odds))

    def gradient(self, ranking: Sequence[int], clicks: Sequence[int]) -> np.ndarray:
        scores, total = self.scores(), np.zeros_like(self.weights)
        for d, e in self.pairs(clicks):
            x, y = self.features[ranking[d]], self.features[ranking[e]]
            ahead = float(scores[ranking[d]] - scores[ranking[e]])
            slope = expit(-ahead) * (expit(ahead) if self.both_factors else 1.0)
            total += self.weight(ranking, d, e) * slope * (x - y)
        return total

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        return super().allows(ranking)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.step = self.learning_rate * len(self.pairs(clicks)) * float(np.abs(self.features).max())
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


PDGD_READINGS = {
    "no weight": {"weighted": False},
    "the share of the list shown": {"reversed_share": False},
    "lists among those shown": {"among_all": False},
    "nothing below the last click": {"one_below": False},
    "the gradient of the logarithm": {"both_factors": False},
    "another rate": {"learning_rate": 0.11},
}
"""Arguments of the readings that it is not, by name."""
