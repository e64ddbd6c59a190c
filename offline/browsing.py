"""Estimators of the models in which clicks alone decide what is examined: position-based and user browsing.

Both say ``P(c(k) = 1 | clicks above) = γ(x) α(i)``, where the context ``x`` is the position (PBM), or the position
together with that of the last click above it (UBM). So a log enters only as the displays and clicks of each (pair,
context) cell, and one EM algorithm serves both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..envs import ClickModel, PositionBasedModel, UserBrowsingModel
from .estimation import Estimator, Floats, Indices, log_prior, smoothed, total

__all__ = ["PBMEstimator", "UBMEstimator"]


class _BrowsingEstimator(Estimator):
    """EM over the cells of (pair, context).

    Args:
        iterations: EM steps, from 0.5 everywhere.

    Attributes:
        examination_: examination probability of each context.
        log_posterior_: the penalised log-likelihood before each step and after the last; it never falls.
    """

    def __init__(self, iterations: int = 50) -> None:
        self.iterations = iterations

    def _contexts(self, clicks: NDArray[np.int8]) -> Indices:
        """``(N, K)`` context of each position."""
        raise NotImplementedError

    def _fit(self, pairs: Indices, clicks: NDArray[np.int8]) -> None:
        n_pairs, n_contexts = len(self.pairs_), self._n_contexts()
        cells, cell = np.unique(pairs * n_contexts + self._contexts(clicks), return_inverse=True)
        pair, context = np.divmod(cells, n_contexts)
        shown = total(cell, np.ones(clicks.shape), len(cells))
        clicked = total(cell, clicks, len(cells))
        skipped = shown - clicked
        pair_trials = total(pair, shown, n_pairs + 1)
        context_trials = total(context, shown, n_contexts)
        α, γ = np.full(n_pairs + 1, 0.5), np.full(n_contexts, 0.5)
        self.log_posterior_ = []
        for step in range(self.iterations + 1):
            click = α[pair] * γ[context]
            self.log_posterior_.append(float(clicked @ np.log(click) + skipped @ np.log1p(-click)) + log_prior(α, γ))
            if step == self.iterations:
                break
            # A click was examined and attractive; a skip was attractive, or examined, but not both.
            attracted = clicked + skipped * (α[pair] - click) / (1.0 - click)
            examined = clicked + skipped * (γ[context] - click) / (1.0 - click)
            α = smoothed(total(pair, attracted, n_pairs + 1), pair_trials)
            γ = smoothed(total(context, examined, n_contexts), context_trials)
        self.attraction_, self.examination_ = α, self._layout(γ)

    def _n_contexts(self) -> int:
        raise NotImplementedError

    def _layout(self, γ: Floats) -> Floats:
        """The context probabilities as the click model holds them."""
        raise NotImplementedError

    def _conditional(self, pairs: Indices, clicks: NDArray[np.int8]) -> Floats:
        return self.attraction_[pairs] * self.examination_.ravel()[self._contexts(clicks)]


class PBMEstimator(_BrowsingEstimator):
    """Position-based model, by EM.

    Args:
        iterations: EM steps, from 0.5 everywhere.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.
        examination_: ``(K,)`` examination probability of each position.
        log_posterior_: the penalised log-likelihood before each step and after the last; it never falls.

    Source: Chuklin, Markov and de Rijke, *Click Models for Web Search*, 2015, section 4.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 4, [[1, 0], [1, 1], [0, 0], [1, 0]], [0] * 4, ("a", "b"), ("q",))
        >>> model = PBMEstimator().fit(log).click_model("q", ["a", "b"])
        >>> model.n_items, model.n_positions
        (2, 2)
    """

    def _n_contexts(self) -> int:
        return self.n_positions_

    def _contexts(self, clicks: NDArray[np.int8]) -> Indices:
        return np.broadcast_to(np.arange(clicks.shape[1]), clicks.shape)

    def _layout(self, γ: Floats) -> Floats:
        return γ

    def _marginal(self, pairs: Indices) -> Floats:
        return self.attraction_[pairs] * self.examination_

    def _click_model(self, pairs: Indices) -> ClickModel:
        return PositionBasedModel(self.attraction_[pairs], self.examination_)


class UBMEstimator(_BrowsingEstimator):
    """User browsing model, by EM.

    Args:
        iterations: EM steps, from 0.5 everywhere.

    Attributes:
        attraction_: ``(P + 1,)``, see `Estimator`.
        examination_: ``(K, K)`` as in `UserBrowsingModel`: row k is the position, column 0 no click yet, column j last
            click at the j-th position counted from 1; 0 above the diagonal.
        log_posterior_: the penalised log-likelihood before each step and after the last; it never falls.

    Source: Dupret and Piwowarski 2008, in the EM form of Chuklin, Markov and de Rijke 2015.

    Example:
        >>> from clickgym.offline import ClickLog
        >>> log = ClickLog([[0, 1]] * 4, [[1, 0], [1, 1], [0, 0], [1, 0]], [0] * 4, ("a", "b"), ("q",))
        >>> UBMEstimator(iterations=1).fit(log).examination_.round(3)
        array([[0.722, 0.   ],
               [0.444, 0.533]])
    """

    def _n_contexts(self) -> int:
        return self.n_positions_**2

    def _contexts(self, clicks: NDArray[np.int8]) -> Indices:
        n_positions = clicks.shape[1]
        last = np.zeros(clicks.shape, np.int64)
        last[:, 1:] = np.maximum.accumulate(clicks * np.arange(1, n_positions + 1), axis=1)[:, :-1]
        return np.arange(n_positions) * n_positions + last

    def _layout(self, γ: Floats) -> Floats:
        return np.tril(γ.reshape(self.n_positions_, self.n_positions_))

    def _marginal(self, pairs: Indices) -> Floats:
        attraction = self.attraction_[pairs]
        result = np.empty(attraction.shape)
        last = np.zeros((len(pairs), self.n_positions_ + 1))  # probability that the last click so far was there
        last[:, 0] = 1.0
        for k in range(self.n_positions_):
            clicked = last[:, : k + 1] * self.examination_[k, : k + 1] * attraction[:, k, None]
            last[:, : k + 1] -= clicked
            last[:, k + 1] = result[:, k] = clicked.sum(axis=1)
        return result

    def _click_model(self, pairs: Indices) -> ClickModel:
        return UserBrowsingModel(self.attraction_[pairs], self.examination_)
