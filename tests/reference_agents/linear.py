"""Agents that learn a linear attraction: ridge regression in plain NumPy, solved anew in every session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .reference import Reference, examined_positions, is_in_order

TIE = 1e-10  # indices closer than this are equal, as the agents have it
WORST = 1e9  # the condition number beyond which floats do not tell the order of indices


class RidgeReference(Reference):
    """He et al. 2020, Algorithm 1: A = λI + Σ w² x xᵀ, b = Σ w c x, θ = A⁻¹b; what is shown first is left to subclasses.

    Args:
        n_items, n_positions, n_features: L, K, d.
        weights: ``(K, K)`` of a sample, by position and last click above it (0: none, else counted from 1).
        feedback: ``"all"``, or down to which click positions are samples.
        ridge: λ; None is the most that the squared weights of a session add up to, at least 1.
    """

    def __init__(
        self, n_items: int, n_positions: int, n_features: int, weights: Any, feedback: str, ridge: float | None
    ) -> None:
        super().__init__(n_items, n_positions)
        self.weights, self.feedback = np.asarray(weights), feedback
        self.phi = float(np.sum(self.weights.diagonal() ** 2))
        self.ridge = max(1.0, self.phi) if ridge is None else ridge
        self.gram, self.moment = self.ridge * np.eye(n_features), np.zeros(n_features)
        self.features = np.zeros((n_items, n_features))

    def theta(self) -> np.ndarray:
        return np.linalg.solve(self.gram, self.moment)

    def scores(self, drawn: Any) -> np.ndarray:
        """What the candidates of `features` are ranked by."""
        raise NotImplementedError

    def is_told(self) -> bool:
        """Whether floats tell the inverse of A."""
        return bool(np.linalg.cond(self.gram) < WORST)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        if not super().allows(ranking) or not self.is_told():
            return super().allows(ranking)
        index = self.scores(drawn)
        slack = TIE + 1e-15 * float(np.linalg.cond(self.gram)) * max(1.0, float(np.abs(index).max()))
        return is_in_order(ranking, index, slack)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        samples = range(self.n_positions) if self.feedback == "all" else examined_positions(clicks, self.feedback)
        last = 0
        for k in samples:
            x, weight = self.features[ranking[k]], self.weights[k, last]
            self.gram += weight**2 * np.outer(x, x)
            self.moment += weight * clicks[k] * x
            last = k + 1 if clicks[k] else last
        super().learn(ranking, clicks)

    def agrees(self, state: Any) -> bool:
        scale = float(np.abs(self.gram).max())
        if not np.allclose(state.gram, self.gram, rtol=1e-9, atol=1e-12 * scale) or not np.allclose(state.moment, self.moment):
            return False
        if not self.is_told():
            return True
        inverse = np.linalg.inv(self.gram)
        slack = 1e-14 * float(np.linalg.cond(self.gram)) + 1e-9
        return np.allclose(state.inverse, inverse, rtol=0, atol=slack * float(np.abs(inverse).max()))


class LinUCBReference(RidgeReference):
    """θᵀx + α_t sqrt(xᵀA⁻¹x), α_t = sqrt(d ln(1 + φ' t/(dλ)) + 2 ln(tK)) + sqrt(λd) unless it is given."""

    def __init__(self, *sizes: int, weights: Any, feedback: str = "all", ridge: float | None, alpha: float | None) -> None:
        super().__init__(*sizes, weights, feedback, ridge)
        self.alpha = alpha

    def scores(self, drawn: Any) -> np.ndarray:
        d, alpha = len(self.moment), self.alpha
        if alpha is None:
            radius = d * math.log(1 + self.phi * self.t / (d * self.ridge)) + 2 * math.log(self.t * self.n_positions)
            alpha = math.sqrt(radius) + math.sqrt(self.ridge * d)
        spread = np.einsum("ai,ij,aj->a", self.features, np.linalg.inv(self.gram), self.features)
        return self.features @ self.theta() + alpha * np.sqrt(np.maximum(spread, 0))


class LinearGreedyReference(RidgeReference):
    """θᵀx, or with ε > 0 any list."""

    def __init__(self, *sizes: int, ridge: float | None, epsilon: float) -> None:
        super().__init__(*sizes, np.ones((sizes[1], sizes[1])), "all", ridge)
        self.epsilon = epsilon

    def scores(self, drawn: Any) -> np.ndarray:
        return np.zeros(self.n_items) if self.epsilon > 0 else self.features @ self.theta()


class LinearTSReference(RidgeReference):
    """The list is the order of θ̃ᵀx for some θ̃ of N(θ, α² A⁻¹): of the indices that were drawn; exactly θᵀx for α = 0."""

    def __init__(self, *sizes: int, ridge: float | None, alpha: float) -> None:
        super().__init__(*sizes, np.ones((sizes[1], sizes[1])), "all", ridge)
        self.alpha = alpha

    def scores(self, drawn: Any) -> np.ndarray:
        return self.features @ self.theta() if self.alpha == 0 else drawn.indices


# ------------------------------------------------------------------------------------------------- cascades, and a known PBM


class SamplingReference(Reference):
    """A list is the order of xᵀθ, one θ for all candidates, which the agent has in ``drawn.vector``.

    The inverse of ``precision`` is the covariance of the draw but for its scale; ``sigma`` is the deviation of a click.
    """

    def __init__(self, n_items: int, n_positions: int, n_features: int, sigma: float = 1.0) -> None:
        super().__init__(n_items, n_positions)
        self.precision, self.features = np.eye(n_features), np.zeros((n_items, n_features))
        self.sigma, self.b = sigma, np.zeros(n_features)
        self.whitened = np.zeros(n_features)

    def mean(self) -> np.ndarray:
        return np.linalg.solve(self.precision, self.b) * self.sigma**-2

    def scale(self) -> float:
        raise NotImplementedError

    def places(self) -> Sequence[int]:
        """The positions, that of the largest score first."""
        return range(self.n_positions)

    def is_told(self) -> bool:
        return bool(np.linalg.cond(self.precision) < WORST)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        if not super().allows(ranking):
            return False
        scores = self.features @ drawn.vector
        slack = TIE + 1e-13 * float(np.abs(self.features).max() * np.abs(drawn.vector).max()) * len(drawn.vector)
        if not is_in_order([ranking[place] for place in self.places()], scores, slack):
            return False
        if not self.is_told():
            return True
        away = np.linalg.cholesky(self.precision).T @ (drawn.vector - self.mean())
        scale = self.scale()
        self.whitened = away / (scale or 1.0)  # independent standard normals
        return float(np.abs(away).max()) < 7 * scale + 1e-6

    def add(self, x: np.ndarray, weight: float, click: int) -> None:
        """A sample whose expectation is the weight times xᵀθ."""
        self.precision = self.precision + weight**2 * np.outer(x, x) / self.sigma**2
        self.b = self.b + weight * click * x

    def agrees(self, state: Any) -> bool:
        size = float(np.abs(self.precision).max())
        if not np.allclose(state.gram / self.sigma**2, self.precision, rtol=1e-9, atol=1e-12 * size):
            return False
        mean = self.mean()
        slack = 1e-14 * float(np.linalg.cond(self.precision)) + 1e-9
        slack *= max(1e-300, float(np.abs(mean).max()))
        is_same = np.allclose(state.moment, self.b)
        return is_same and (not self.is_told() or np.allclose(state.theta, mean, rtol=0, atol=slack))


class CascadeLinTSReference(SamplingReference):
    """CascadeLinTS and, with an inflation, LinTS-Cascade: section 9.3 of the specification."""

    def __init__(self, *sizes: int, sigma: float, inflation: float | None, feedback: str) -> None:
        super().__init__(*sizes, sigma)
        self.inflation, self.feedback = inflation, feedback

    def scale(self) -> float:
        if self.inflation is None:
            return 1.0
        v = 3 * 0.5 * math.sqrt(len(self.b) * math.log(self.t + 1))
        return self.inflation * v * math.sqrt(self.n_positions)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        for k in examined_positions(clicks, self.feedback):
            self.add(self.features[ranking[k]], 1.0, clicks[k])
        super().learn(ranking, clicks)


class PBMLinTSReference(SamplingReference):
    """LinTS-PBMRank."""

    def __init__(self, *sizes: int, examination: Any, scale: float) -> None:
        super().__init__(*sizes)
        self.kappa, self.given_scale = np.asarray(examination), scale

    def scale(self) -> float:
        return self.given_scale

    def places(self) -> Sequence[int]:
        return sorted(range(self.n_positions), key=lambda k: -self.kappa[k])

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        for item, kappa, click in zip(ranking, self.kappa, clicks, strict=True):
            self.add(self.features[item], kappa, click)
        super().learn(ranking, clicks)


class CascadeWOFULReference(Reference):
    """CascadeWOFUL: section 9.3 of the specification, each inverse computed anew."""

    def __init__(self, n_items: int, n_positions: int, n_features: int, bonus: float, feedback: str) -> None:
        super().__init__(n_items, n_positions)
        self.bonus, self.feedback = bonus, feedback
        self.a, self.b = np.eye(n_features), np.zeros(n_features)
        self.h, self.g = np.eye(n_features), np.zeros(n_features)
        self.features = np.zeros((n_items, n_features))
        self.omega = np.ones(n_positions)

    def click_bound(self, x: np.ndarray) -> float:
        """U"""
        d, K, t = len(self.b), self.n_positions, self.t
        beta = self.bonus * (0.5 * math.sqrt(d * math.log(1 + K * t / d) + 2 * math.log(t * K)) + 1)
        inverse = np.linalg.inv(self.a)
        return float(np.clip(x @ inverse @ self.b + beta * math.sqrt(max(x @ inverse @ x, 0)), 0, 1))

    def weights(self, ranking: Sequence[int]) -> np.ndarray:
        bounds = [self.click_bound(self.features[item]) for item in ranking]
        return 1 / np.maximum(bounds, 1 / self.n_positions)

    def is_told(self) -> bool:
        return bool(max(np.linalg.cond(self.a), np.linalg.cond(self.h)) < WORST)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        if not super().allows(ranking):
            return False
        self.omega = self.weights(ranking) if self.is_told() else np.array(drawn.omega)
        if not self.is_told():
            return True
        d, K, t = len(self.b), self.n_positions, self.t
        beta = self.bonus * (math.sqrt(d * math.log(1 + K**2 * t / d) + 2 * math.log(t * K)) + 1)
        inverse = np.linalg.inv(self.h)
        spread = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", self.features, inverse, self.features), 0))
        index = self.features @ inverse @ self.g + beta * spread
        slack = TIE + 1e-15 * float(np.linalg.cond(self.h)) * max(1.0, float(np.abs(index).max()))
        return is_in_order(ranking, index, slack) and np.allclose(drawn.omega, self.omega, rtol=1e-6)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        examined = examined_positions(clicks, self.feedback)
        for k in examined:
            x = self.features[ranking[k]]
            self.a, self.b = self.a + np.outer(x, x), self.b + clicks[k] * x
            omega = self.omega[k]
            self.h, self.g = self.h + omega * np.outer(x, x), self.g + omega * clicks[k] * x
        super().learn(ranking, clicks)

    def agrees(self, state: Any) -> bool:
        pairs = ((state.plain_gram, self.a), (state.plain_moment, self.b), (state.gram, self.h), (state.moment, self.g))
        return all(np.allclose(have, want, rtol=1e-6, atol=1e-9 * float(np.abs(want).max())) for have, want in pairs)
