"""What the estimators of all click models share: pairs of query and item, smoothing, and the scores.

Every probability has a prior: its estimate is ``(1 + successes)/(2 + trials)``, the mean under a Beta(1, 1) prior (and
the mode under Beta(2, 2), which makes the EM algorithms here maximise the likelihood times that prior). A pair that
the fitted log never showed keeps 0.5.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...envs import ClickModel
from ...envs.checks import check_at_least, check_count
from ...envs.kernels import kernel
from ..counting import by_query, in_parallel, list_length
from ..log import ClickLog

__all__ = ["MODEL_ESTIMATORS", "ConvergenceWarning", "EMEstimator", "Estimator"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Clicks = NDArray[np.int8]

MODEL_ESTIMATORS: dict[str, type[Estimator]] = {}
"""The estimators by the names that commands give them: whatever names its ``model_class`` is here."""

SESSIONS = 2**14  # scored at once by a thread: working memory does not grow with the log


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

    model_class: ClassVar[type[ClickModel]]
    """The click model that is estimated."""
    short: ClassVar[str]
    """What commands call it: the short name of the model, unless an estimator has another."""
    offers_per_query: ClassVar[bool] = False
    """Whether position parameters can belong to the queries instead of being shared by all."""
    n_positions_: int
    attraction_: Floats

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "model_class" in vars(cls):
            cls.short = vars(cls).get("short", cls.model_class.short)
            MODEL_ESTIMATORS[cls.short] = cls

    @classmethod
    def create(cls, iterations: int = 50, tol: float | None = None, *, per_query: bool = False) -> Estimator:
        """The estimator as the commands use it.

        Args:
            iterations, tol: of EM; in closed form they mean nothing.
            per_query: position parameters of each query by itself, where they are offered.
        """
        return cls()

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
        self._score(log, self._conditional, result)
        return result

    def score(self, log: ClickLog) -> float:
        """The mean log-likelihood per session."""
        return float(self.log_likelihood(log).mean())

    def perplexity_by_rank(self, log: ClickLog) -> Floats:
        """``exp(-E[log P(c(k))])`` at each position k, from the marginal click probabilities, ``(K,)``; 1 is perfect.

        A list that ends above a position says nothing of it; where all do, there is no figure (NaN).
        """
        reached = (log.items >= 0).sum(axis=0)
        logs = self._score(log, self._marginal, np.empty(len(log)))
        return np.exp(-np.divide(logs, reached, out=np.full(len(logs), np.nan), where=reached > 0))

    def perplexity(self, log: ClickLog) -> float:
        """The mean of `perplexity_by_rank` over the positions that the log has."""
        return float(np.nanmean(self.perplexity_by_rank(log)))

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
        """Estimate from ``(N, K)`` indices of pairs, -1 below the end of a list, and clicks, the sessions sorted by query."""

    @abstractmethod
    def _conditional(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        """``(N, K)`` probabilities of a click at each position given the clicks above it."""

    @abstractmethod
    def _marginal(self, queries: Indices, pairs: Indices, clicks: Clicks) -> Floats:
        """``(N, K)`` probabilities of a click at each position, whatever the clicks."""

    @abstractmethod
    def _click_model(self, query: int, pairs: Indices) -> ClickModel:
        """The click model over some pairs of a query."""

    def _find(self, codes: NDArray[np.int64]) -> Indices:
        """The indices of pairs among the fitted ones, P for those that are not there."""
        index = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.where(self._codes[index] == codes, index, len(self._codes)).astype(np.int32)

    def _score(self, log: ClickLog, law: Callable[[Indices, Indices, Clicks], Floats], likelihood: Floats) -> Floats:
        """The log-probabilities of the clicks of a log.

        Args:
            log: the sessions to score.
            law: `_conditional` or `_marginal`. It is told queries and pairs as this estimator numbers them: of a query that the
                fitted log lacks the number is that of its queries, of a pair that it lacks P. Below the end of a list, where
                the pair is -1, it may say anything.
            likelihood: ``(N,)``, set to the sum of each session.

        Returns:
            ``(K,)`` the sum at each position.
        """
        if not hasattr(self, "_codes"):
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(log) first")
        if log.n_positions != self.n_positions_:
            raise ValueError(f"the log has {log.n_positions} positions; the model was fitted to {self.n_positions_}")
        n_queries, n_items = len(self._labels.query_labels), len(self._labels.item_labels)
        if log.query_labels == self._labels.query_labels and log.item_labels == self._labels.item_labels:
            query_of, item_of = np.arange(n_queries), np.arange(n_items)  # the parts of one log are numbered alike
        else:
            query_of = np.array([self._query_index.get(label, n_queries) for label in log.query_labels], np.int64)
            item_of = np.array([self._item_index.get(label, -1) for label in log.item_labels], np.int64)
        first_pair = np.searchsorted(self._codes, np.arange(n_queries + 2) * n_items)
        pair_of = np.zeros(n_items, np.int64)
        pair_of[self._codes % n_items] = np.arange(len(self._codes))
        starts = range(0, len(log), SESSIONS)
        by_position = np.zeros((len(starts), log.n_positions))

        def score(block: int) -> None:
            part = slice(starts[block], starts[block] + SESSIONS)
            clicks, pairs = log.clicks[part], np.empty(log.items[part].shape, np.int32)
            queries = query_of[log.queries[part]].astype(np.int32)
            find_fitted(queries, log.items[part], item_of, pair_of, first_pair, self._codes, pairs)
            add_logs(law(queries, pairs, clicks), pairs, clicks, likelihood[part], by_position[block])

        in_parallel(score, len(starts))
        return by_position.sum(axis=0)


@kernel
def find_fitted(queries, items, item_of, pair_of, first_pair, codes, pairs):  # type: ignore[no-untyped-def]
    """Replace the items of each session by the numbers of the fitted pairs, by P where there is none, and -1 by -1.

    Most items belong to a single query, so ``pair_of``, some pair of each item, is nearly always the right one.
    """
    for session in range(len(items)):
        query = queries[session]
        for k in range(items.shape[1]):
            if items[session, k] < 0:
                pairs[session, k] = -1
                continue
            item, pair = item_of[items[session, k]], len(codes)
            if item >= 0:
                code = np.int64(query) * len(pair_of) + item
                pair = pair_of[item]
                if codes[pair] != code:
                    pair, end = first_pair[query], first_pair[query + 1]
                    while pair < end:
                        middle = (pair + end) // 2
                        if codes[middle] < code:
                            pair = middle + 1
                        else:
                            end = middle
                    if pair == first_pair[query + 1] or codes[pair] != code:
                        pair = len(codes)
            pairs[session, k] = pair


@kernel
def add_logs(probabilities, pairs, clicks, by_session, by_position):  # type: ignore[no-untyped-def]
    """Sum the logarithms of the probabilities of what happened: set for each session, add for each position."""
    for session in range(len(clicks)):
        total = 0.0
        for k in range(list_length(pairs[session])):
            probability = probabilities[session, k]
            value = np.log(probability if clicks[session, k] else 1.0 - probability)
            total += value
            by_position[k] += value
        by_session[session] = total


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

    @classmethod
    def create(cls, iterations: int = 50, tol: float | None = None, *, per_query: bool = False) -> Estimator:
        return cls(iterations, tol)  # type: ignore[call-arg]

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
