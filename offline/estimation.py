"""What the estimators of all click models share: pairs of query and item, smoothing, and the scores.

Every probability has a prior: its estimate is ``(1 + successes)/(2 + trials)``, the mean under a Beta(1, 1) prior (and
the mode under Beta(2, 2), which makes the EM algorithms here maximise the likelihood times that prior). A pair that
the fitted log never showed keeps 0.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..envs import ClickModel
from .log import ClickLog

__all__ = ["Estimator"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Estimator(ABC):
    """Base of the click model estimators, in the manner of scikit-learn: `fit` sets the attributes that end with ``_``.

    Attraction (and in some models satisfaction) is estimated for each pair of a query and an item; position parameters
    are shared by all queries.

    Attributes:
        pairs_: the (query, item) labels of the fitted log.
        n_positions_: K, the length of its lists.
        attraction_: ``(P + 1,)`` attraction of each pair; the last entry, 0.5, stands for all pairs never shown.
    """

    pairs_: list[tuple[str, str]]
    n_positions_: int
    attraction_: Floats

    def fit(self, log: ClickLog) -> Self:
        """Estimate the model's parameters.

        Args:
            log: the sessions to learn from.

        Returns:
            The estimator itself.

        Raises:
            ValueError: on a log without sessions.
        """
        if not len(log):
            raise ValueError("the log has no sessions")
        pairs, self.pairs_ = log.pairs()
        self.n_positions_ = log.n_positions
        self._index = {pair: index for index, pair in enumerate(self.pairs_)}
        self._fit(pairs, log.clicks)
        return self

    def log_likelihood(self, log: ClickLog) -> Floats:
        """The log-probability of each session's clicks, ``(N,)``; minus infinity where the model excludes them."""
        conditional = self._conditional(self._pairs(log), log.clicks)
        with np.errstate(divide="ignore"):
            return np.log(np.where(log.clicks == 1, conditional, 1.0 - conditional)).sum(axis=1)

    def score(self, log: ClickLog) -> float:
        """The mean log-likelihood per session."""
        return float(self.log_likelihood(log).mean())

    def perplexity_by_rank(self, log: ClickLog) -> Floats:
        """``2^-E[log2 P(c(k))]`` at each position k, from the marginal click probabilities, ``(K,)``; 1 is perfect."""
        marginal = self._marginal(self._pairs(log))
        with np.errstate(divide="ignore"):
            return np.exp2(-np.log2(np.where(log.clicks == 1, marginal, 1.0 - marginal)).mean(axis=0))

    def perplexity(self, log: ClickLog) -> float:
        """The mean of `perplexity_by_rank` over the positions."""
        return float(self.perplexity_by_rank(log).mean())

    def click_model(self, query: str, items: list[str]) -> ClickModel:
        """The fitted model of one query as a click model over the given items, numbered in the given order.

        Args:
            query: label of the query.
            items: labels of at least K items.

        Raises:
            KeyError: if the fitted log never showed one of the items for the query.
        """
        return self._click_model(np.array([self._index[query, item] for item in items]))

    @abstractmethod
    def _fit(self, pairs: Indices, clicks: NDArray[np.int8]) -> None:
        """Estimate from ``(N, K)`` indices of pairs and their clicks."""

    @abstractmethod
    def _conditional(self, pairs: Indices, clicks: NDArray[np.int8]) -> Floats:
        """``(N, K)`` probabilities of a click at each position given the clicks above it."""

    @abstractmethod
    def _marginal(self, pairs: Indices) -> Floats:
        """``(N, K)`` probabilities of a click at each position."""

    @abstractmethod
    def _click_model(self, pairs: Indices) -> ClickModel:
        """The click model over some pairs."""

    def _pairs(self, log: ClickLog) -> Indices:
        """``(N, K)`` indices of the log's pairs among the fitted ones."""
        if not hasattr(self, "pairs_"):
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(log) first")
        if log.n_positions != self.n_positions_:
            raise ValueError(f"the log has {log.n_positions} positions; the model was fitted to {self.n_positions_}")
        pairs, labels = log.pairs()
        return np.array([self._index.get(label, len(self.pairs_)) for label in labels])[pairs]


def smoothed(successes: Floats, trials: Floats) -> Floats:
    """The mean of each probability under a Beta(1, 1) prior."""
    return (1.0 + successes) / (2.0 + trials)


def total(index: Indices, weights: NDArray[np.generic], size: int) -> Floats:
    """The sum of the weights that fall on each index."""
    return np.bincount(index.ravel(), weights.ravel(), size).astype(np.float64, copy=False)


def log_prior(*parameters: Floats) -> float:
    """The logarithm of the Beta(2, 2) prior, up to a constant (the entry for unseen pairs does not change)."""
    return float(sum(np.log(values * (1.0 - values)).sum() for values in parameters))
