"""References of the agents that learn a linear attraction, with a ridge regression in plain NumPy
that is solved again in every session.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .reference import Reference, examined_positions, is_in_order, lists_by

TIE = 1e-10  # indices that differ by less count as equal, as in the agents
WORST = 1e9  # above this condition number, floats do not determine the order of indices


class RidgeReference(Reference):
    """He et al. 2020, Algorithm 1: A = λI + Σ w² x xᵀ, b = Σ w c x, θ = A⁻¹b. Subclasses define the
    order of the candidates.

    Args:
        n_items, n_positions, n_features: L, K, d.
        ridge: λ; by default the largest sum of squared weights of a session, but at least 1.
        examination: ``(K, K)`` the weight of a sample, by position and last click above it (0:
            none, otherwise counted from 1), or ``(K,)`` by position; by default, all weights are 1.
    """

    feedback = "all"  # or the click down to which positions are samples

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        ridge: float | None,
        examination: Any = None,
    ) -> None:
        super().__init__(n_items, n_positions)
        weights = np.ones((n_positions, n_positions)) if examination is None else examination
        weights = np.asarray(weights)
        self.weights = np.tile(weights[:, None], n_positions) if weights.ndim == 1 else weights
        self.phi = float(np.sum(self.weights.diagonal() ** 2))
        self.ridge = max(1.0, self.phi) if ridge is None else ridge
        self.gram, self.moment = self.ridge * np.eye(n_features), np.zeros(n_features)
        self.features = np.zeros((n_items, n_features))
        self.condition = 1.0  # of A

    def theta(self) -> np.ndarray:
        return np.linalg.solve(self.gram, self.moment)

    def scores(self, drawn: Any) -> np.ndarray:
        """Return the scores by which the candidates with the given features are ranked."""
        raise NotImplementedError

    def is_told(self) -> bool:
        """Return whether A is well-conditioned enough for floats to determine its inverse."""
        return self.condition < WORST

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        if not super().allows(ranking) or not self.is_told():
            return super().allows(ranking)
        index = self.scores(drawn)
        slack = TIE + 1e-15 * self.condition * max(1.0, float(np.abs(index).max()))
        return is_in_order(ranking, index, slack)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        samples = examined_positions(clicks, self.feedback)
        last = 0
        for k in samples:
            x, weight = self.features[ranking[k]], self.weights[k, last]
            self.gram += weight**2 * np.outer(x, x)
            self.moment += weight * clicks[k] * x
            last = k + 1 if clicks[k] else last
        self.condition = float(np.linalg.cond(self.gram))
        super().learn(ranking, clicks)

    def agrees(self, state: Any) -> bool:
        scale = float(np.abs(self.gram).max())
        if not np.allclose(state.gram, self.gram, rtol=1e-9, atol=1e-12 * scale) or not np.allclose(
            state.moment, self.moment
        ):
            return False
        if not self.is_told():
            return True
        inverse = np.linalg.inv(self.gram)
        slack = 1e-14 * self.condition + 1e-9
        return np.allclose(
            state.inverse, inverse, rtol=0, atol=slack * float(np.abs(inverse).max())
        )


class LinUCBReference(RidgeReference):
    """Reference of the LinUCB agents: the scores are θᵀx + α_t sqrt(xᵀA⁻¹x), where α_t = sqrt(d
    ln(1 + φ' t/(dλ)) + 2 ln(tK)) + sqrt(λd) unless alpha is given.
    """

    def __init__(self, *sizes: int, alpha: float | None, **arguments: Any) -> None:
        super().__init__(*sizes, **arguments)
        self.alpha = alpha

    def scores(self, drawn: Any) -> np.ndarray:
        d, alpha = len(self.moment), self.alpha
        if alpha is None:
            radius = d * math.log(1 + self.phi * self.t / (d * self.ridge)) + 2 * math.log(
                self.t * self.n_positions
            )
            alpha = math.sqrt(radius) + math.sqrt(self.ridge * d)
        spread = np.einsum("ai,ij,aj->a", self.features, np.linalg.inv(self.gram), self.features)
        return self.features @ self.theta() + alpha * np.sqrt(np.maximum(spread, 0))


class UBMLinUCBReference(LinUCBReference):
    """Reference of UBM-LinUCB, whose weights depend on the last click above."""

    edges = {"examination": ([[0.9, 0, 0], [0.6, 0.8, 0], [0.2, 0.3, 0.7]],)}


class CMLinUCBReference(LinUCBReference):
    """Reference of CM-LinUCB, whose samples are the positions down to the first click."""

    feedback = "first_click"


class DCMLinUCBReference(LinUCBReference):
    """Reference of DCM-LinUCB, whose samples are the positions down to the last click."""

    feedback = "last_click"


class LinearTSReference(RidgeReference):
    """Reference of LinearTS: candidates are sorted by θ̃ᵀx for a draw θ̃ from N(θ, α² A⁻¹). The
    reference reads the resulting indices from the agent's state; for α = 0, it requires the order
    of θᵀx.
    """

    def __init__(self, *sizes: int, ridge: float | None, alpha: float) -> None:
        super().__init__(*sizes, ridge)
        self.alpha = alpha

    def scores(self, drawn: Any) -> np.ndarray:
        return self.features @ self.theta() if self.alpha == 0 else drawn.indices

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        covariance = self.alpha**2 * np.linalg.inv(self.gram)
        drawn = rng.multivariate_normal(self.theta(), covariance, n)
        return lists_by(drawn @ features.T, self.n_positions)
