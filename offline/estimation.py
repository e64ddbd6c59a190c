"""What the estimators of all click models share: pairs of query and item, smoothing, and the scores.

Every probability has a prior: its estimate is ``(1 + successes)/(2 + trials)``, the mean under a Beta(1, 1) prior (and
the mode under Beta(2, 2), which makes the EM algorithms here maximise the likelihood times that prior). A pair that
the fitted log never showed keeps 0.5.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..envs import ClickModel
from ..envs.checks import check_at_least, check_count
from .counting import by_query
from .log import ClickLog

__all__ = ["ConvergenceWarning", "EMEstimator", "Estimator"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Clicks = NDArray[np.int8]

SESSIONS = 100_000  # scored at once: working memory does not grow with the log


class ConvergenceWarning(UserWarning):
    """EM stopped at its last step before the gain of a step fell below ``tol``."""


class Estimator(ABC):
    """Base of the click model estimators, in the manner of scikit-learn: `fit` sets the attributes that end with ``_``.

    Attraction (and in some models satisfaction) is estimated for each pair of a query and an item; position parameters
    are shared by all queries, unless a model offers otherwise.

    Attributes:
        pairs_: the (query, item) labels of the fitted log.
        n_positions_: K, the length of its lists.
        attraction_: ``(P + 1,)`` attraction of each pair; the last entry, 0.5, stands for all pairs never shown.
    """

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

        Warns:
            ConvergenceWarning: if EM with a ``tol`` was not done after its last step.
        """
        if not len(log):
            raise ValueError("the log has no sessions")
        order, self._codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
        self.n_positions_ = log.n_positions
        self._labels = log[[]]  # no view: the log itself need not be kept
        for name in ("pairs_", "_query_index", "_item_index"):  # what an earlier fit has left
            self.__dict__.pop(name, None)
        self._fit(pairs, log.clicks[order])
        return self

    @cached_property
    def pairs_(self) -> list[tuple[str, str]]:
        return self._labels.pair_labels(self._codes)

    @cached_property
    def _query_index(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self._labels.query_labels)}

    @cached_property
    def _item_index(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self._labels.item_labels)}

    def log_likelihood(self, log: ClickLog) -> Floats:
        """The log-probability of each session's clicks, ``(N,)``; minus infinity where the model excludes them."""
        result = np.empty(len(log))
        with np.errstate(divide="ignore"):
            for part, clicks, queries, pairs in self._parts(log):
                conditional = self._conditional(queries, pairs, clicks)
                result[part] = np.log(np.where(clicks == 1, conditional, 1.0 - conditional)).sum(axis=1)
        return result

    def score(self, log: ClickLog) -> float:
        """The mean log-likelihood per session."""
        return float(self.log_likelihood(log).mean())

    def perplexity_by_rank(self, log: ClickLog) -> Floats:
        """``2^-E[log2 P(c(k))]`` at each position k, from the marginal click probabilities, ``(K,)``; 1 is perfect."""
        total = np.zeros(log.n_positions)
        with np.errstate(divide="ignore"):
            for _, clicks, queries, pairs in self._parts(log):
                marginal = self._marginal(queries, pairs)
                total += np.log2(np.where(clicks == 1, marginal, 1.0 - marginal)).sum(axis=0)
        return np.exp2(-total / len(log))

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
        row, size = self._query_index.get(query, -1), len(self._item_index)
        codes = np.array([row * size + self._item_index.get(item, -size * size) for item in items])
        pairs = self._find(codes)
        for item, pair in zip(items, pairs.tolist(), strict=True):
            if pair == len(self._codes):
                raise KeyError((query, item))
        return self._click_model(row, pairs)

    @abstractmethod
    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        """Estimate from ``(N, K)`` indices of pairs and their clicks, the sessions sorted by query."""

    @abstractmethod
    def _conditional(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        """``(N, K)`` probabilities of a click at each position given the clicks above it."""

    @abstractmethod
    def _marginal(self, queries: Indices, pairs: Indices) -> Floats:
        """``(N, K)`` probabilities of a click at each position."""

    @abstractmethod
    def _click_model(self, query: int, pairs: Indices) -> ClickModel:
        """The click model over some pairs of a query."""

    def _find(self, codes: NDArray[np.int64]) -> Indices:
        """The indices of pairs among the fitted ones, P for those that are not there."""
        index = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.where(self._codes[index] == codes, index, len(self._codes)).astype(np.int32)

    def _parts(self, log: ClickLog) -> Iterator[tuple[slice, Clicks, Indices, Indices]]:
        """The log in pieces: which sessions, their clicks, and their queries and pairs as this estimator numbers them.

        Of a query that the fitted log lacks the number is that of its queries, of a pair that it lacks P.
        """
        if not hasattr(self, "_codes"):
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(log) first")
        if log.n_positions != self.n_positions_:
            raise ValueError(f"the log has {log.n_positions} positions; the model was fitted to {self.n_positions_}")
        n_queries, n_items = len(self._labels.query_labels), len(self._labels.item_labels)
        query_of, item_of = (
            np.array([index.get(label, -1) for label in labels], np.int64)
            for index, labels in ((self._query_index, log.query_labels), (self._item_index, log.item_labels))
        )
        for first in range(0, len(log), SESSIONS):
            part = slice(first, first + SESSIONS)
            queries, items = query_of[log.queries[part]], item_of[log.items[part]]
            codes = np.where((queries[:, None] >= 0) & (items >= 0), queries[:, None] * n_items + items, -1)
            yield part, log.clicks[part], np.where(queries < 0, n_queries, queries).astype(np.int32), self._find(codes)


class EMEstimator(Estimator):
    """What all EM algorithms share: when to stop, and what is told of the way there.

    Args:
        iterations: the most EM steps, from 0.5 everywhere.
        tol: stop once a step raises the penalised log-likelihood by less than this per session, and warn if that never
            happens; None takes all the steps and judges nothing.

    Attributes:
        n_iter_: the EM steps taken.
        log_posterior_: the penalised log-likelihood before each step and after the last; it never falls.
        converged_: whether the last step gained less than ``tol`` per session; None without ``tol``.
    """

    iterations: int
    tol: float | None
    n_iter_: int
    log_posterior_: list[float]
    converged_: bool | None = None

    def _set_steps(self, iterations: Any, tol: Any) -> None:
        self.iterations = check_count("iterations", iterations)
        self.tol = None if tol is None else check_at_least("tol", tol, 0.0, strictly=True)

    def fit(self, log: ClickLog) -> Self:
        super().fit(log)
        if self.converged_ is False:
            gain = (self.log_posterior_[-1] - self.log_posterior_[-2]) / len(log)
            warnings.warn(
                f"{type(self).__name__} has not converged: the last of {self.n_iter_} steps raised the log-likelihood per "
                f"session by {gain:.2g}, not below tol = {self.tol:g}; allow more iterations",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _another_step(self, log_posterior: float, n_sessions: int) -> bool:
        """Note the penalised log-likelihood, and say whether to go on.

        A fit empties ``log_posterior_`` first; its first call precedes the first step, each later one follows a step.
        """
        self.log_posterior_.append(log_posterior)
        self.n_iter_ = len(self.log_posterior_) - 1
        gain = log_posterior - self.log_posterior_[-2] if self.n_iter_ else np.inf
        self.converged_ = None if self.tol is None else gain < self.tol * n_sessions
        return not self.converged_ and self.n_iter_ < self.iterations


def smoothed(successes: Any, trials: Any) -> Floats:
    """The mean of each probability under a Beta(1, 1) prior."""
    return (1.0 + successes) / (2.0 + trials)


def log_prior(*parameters: Floats) -> float:
    """The logarithm of the Beta(2, 2) prior, up to a constant (the entry for unseen pairs does not change)."""
    return float(sum(np.log(values * (1.0 - values)).sum() for values in parameters))
