"""References of PB-MHB, which draws from a posterior by Metropolis-Hastings steps, and of PDGD,
which draws lists from a Plackett-Luce distribution.

Their parts are functions of numbers, so that tests can compare them with the compiled parts:
likelihoods, acceptance ratios, probabilities of lists, gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, xlog1py, xlogy
from scipy.stats import norm, truncnorm

from .reference import CLOSE, Reference, examined_positions, lists_by

# ------------------------------------------------------------------------------------------- PB-MHB


class PBMHBReference(Reference):
    """Reference of PB-MHB: Gauthier et al. 2021 (IDA).

    A point is (θ_1..θ_L, κ_1..κ_K), and a coordinate is an index into a point. The reference reads
    the agent's draws from its state (``theta`` and ``kappa``).
    """

    edges = {"c": (0.3,), "n_sweeps": (3,), "fix_first": (False,)}

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

    def log_likelihood(self, points: np.ndarray) -> np.ndarray:
        """Return the log-likelihood Σ S log(θ κ) + F log(1 - θ κ) of points ``(n, L + K)``."""
        hit = points[:, : self.n_items, None] * points[:, None, self.n_items :]
        misses = self.shown - self.clicks
        return np.sum(xlogy(self.clicks, hit) + xlog1py(misses, -hit), axis=(1, 2))

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        """Draw lists after Metropolis-Hastings steps from the agent's current point."""
        points = np.tile([*agent.state.theta, *agent.state.kappa], (n, 1))
        first = self.n_items + (1 if self.fix_first else 0)
        sweep = [*range(self.n_items), *range(first, self.n_items + self.n_positions)]
        sigma = self.c / math.sqrt(self.t)  # t is the coming session
        for coordinate in self.n_sweeps * sweep:
            old, proposed = points[:, coordinate], points.copy()
            step = truncnorm(-old / sigma, (1 - old) / sigma, old, sigma)
            new = proposed[:, coordinate] = step.rvs(random_state=rng)
            log_ratio = self.log_likelihood(proposed) - self.log_likelihood(points)
            log_ratio += np.log(_mass(old, sigma) / _mass(new, sigma))
            is_accepted = np.log(rng.random(n)) < log_ratio
            points[is_accepted] = proposed[is_accepted]
        places = np.argsort(-points[:, self.n_items :], axis=1)
        return lists_by(points[:, : self.n_items], places)

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


def _mass(x: np.ndarray, sigma: float) -> np.ndarray:
    """Return Φ((1 - x) / σ) - Φ(-x / σ), the probability that a step from x stays in [0, 1]."""
    return norm.cdf((1 - x) / sigma) - norm.cdf(-x / sigma)


# --------------------------------------------------------------------------------------------- PDGD


def log_probability(scores: Sequence[float], ranking: Sequence[int]) -> float:
    """Return the logarithm of a list's Plackett-Luce probability."""
    left = list(range(len(scores)))
    total = 0.0
    for item in ranking:
        total += scores[item] - float(np.logaddexp.reduce([scores[other] for other in left]))
        left.remove(item)
    return total


class PDGDReference(Reference):
    """Reference of PDGD: Oosterhuis and de Rijke 2018 (CIKM).

    Every list has a positive probability, so all lists are allowed. If the agent's weights agree up
    to rounding, the reference adopts them, so rounding errors do not accumulate over sessions.
    """

    edges = {"learning_rate": (3.0,), "eta": (1e-12, 3.0)}

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
        self.step = 0.0  # the largest possible update of the last session

    def scores(self) -> np.ndarray:
        return self.features @ self.weights

    def pairs(self, clicks: Sequence[int]) -> list[tuple[int, int]]:
        """Return the positions of the clicked and the unclicked item in each pair."""
        if not any(clicks):
            return []
        below = len(examined_positions(clicks, "last_click")) + 1
        clicked = [k for k, click in enumerate(clicks) if click]
        unclicked = [k for k, click in enumerate(clicks[:below]) if not click]
        return [(d, e) for d in clicked for e in unclicked]

    def weight(self, ranking: Sequence[int], a: int, b: int) -> float:
        """Return ω = P(R') / (P(R) + P(R')), where R' is R with the items at positions a and b
        exchanged.
        """
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

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        """Draw lists from the Plackett-Luce distribution, by sorting the scores after adding Gumbel
        noise.
        """
        noise = rng.gumbel(size=(n, self.n_items))
        return lists_by(features @ self.weights + noise, self.n_positions)

    def holds(self) -> dict[str, Any]:
        return {"weights": self.weights}

    def agrees(self, state: Any) -> bool:
        slack = CLOSE * max(self.step, float(np.abs(self.weights).max()))
        agreed = bool(np.allclose(state.weights, self.weights, rtol=0, atol=slack))
        if agreed:
            self.weights = np.array(state.weights)
        return agreed
