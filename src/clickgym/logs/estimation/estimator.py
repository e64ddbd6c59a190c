"""The base class of the estimators of click models. It numbers (query, item) pairs and computes
scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_kind, check_labels, check_number, value_error
from ...core.kernels import entry, kernel
from ...envs import ClickModel
from ..log import ClickLog
from .counting import by_query, list_length
from .priors import UNIFORM, Prior

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Clicks = NDArray[np.int8]
Law = Callable[[Indices, Clicks], Floats]

MODEL_ESTIMATORS: dict[str, type[Estimator]] = {}
"""The estimators by the short names of their models. Each subclass that sets ``model_class`` is
registered here.
"""


class Estimator(ABC):
    """Base class of the estimators of click models, in the style of scikit-learn: `fit` sets
    attributes that end with ``_``.

    Attraction (and in some models satisfaction) is estimated for each pair of a query and an item;
    position parameters are shared by all queries.

    Args:
        prior: a and b of the Beta prior of a pair's parameters. By default, the prior is fitted to
            the log, except in PBM and UBM: there, the prior sets the scale of attraction, so it
            stays Beta(1, 1).

    Attributes:
        pairs_: the (query, item) labels of the fitted log.
        n_positions_: K, the length of the lists in the fitted log.
        attraction_: ``(P + 1,)`` attraction of each pair, in models that have attraction. The last
            entry, the mean of the prior, stands for all pairs that were never shown.
        prior_: a and b of the prior of attraction.
    """

    model_class: ClassVar[type[ClickModel]]
    """The click model that is estimated."""
    prior: Prior | None = None
    n_positions_: int
    attraction_: Floats
    prior_: Prior = UNIFORM

    def __init__(self, prior: Prior | None = None) -> None:
        if prior is not None:
            if not isinstance(prior, tuple | list) or len(prior) != 2:
                raise value_error("prior", prior, "two numbers > 0, or None")
            a, b = (check_number("prior", value, above=0.0) for value in prior)
            self.prior = a, b

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "model_class" in vars(cls):
            MODEL_ESTIMATORS[cls.model_class.short] = cls

    def fit(self, log: ClickLog) -> Self:
        """Estimate the model's parameters.

        Args:
            log: the sessions to learn from.

        Returns:
            The estimator itself.

        Raises:
            ValueError: the log has no sessions.

        Warns:
            ConvergenceWarning: EM with a ``tol`` had not converged after its last step.
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        if not len(log):
            raise ValueError("the log has no sessions")
        order, codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
        self._codes, self.n_positions_ = codes, log.n_positions
        self._query_index = {label: index for index, label in enumerate(log.query_labels)}
        self._item_index = {label: index for index, label in enumerate(log.item_labels)}
        self._fit(pairs, log.clicks[order])
        return self

    @property
    def pairs_(self) -> list[tuple[str, str]]:
        queries, items = list(self._query_index), list(self._item_index)
        pairs = (divmod(code, len(items)) for code in self._codes.tolist())
        return [(queries[query], items[item]) for query, item in pairs]

    def log_likelihood(self, log: ClickLog) -> Floats:
        """The log-probability of each session's clicks, ``(N,)``; minus infinity for clicks that
        the model excludes.
        """
        return self._logs(log, self._conditional).sum(axis=1)

    def score(self, log: ClickLog) -> float:
        """The mean log-likelihood per session."""
        return float(self.log_likelihood(log).mean())

    def perplexity_by_rank(self, log: ClickLog) -> Floats:
        """``exp(-E[log P(c(k))])`` at each position k, from the marginal click probabilities,
        ``(K,)``; 1 is perfect.

        A list that ends above a position does not count at that position. If all lists end above
        it, the value is NaN.
        """
        logs = self._logs(log, lambda pairs, clicks: self._marginals(pairs))
        with np.errstate(invalid="ignore"):
            return np.exp(-logs.sum(axis=0) / (log.items >= 0).sum(axis=0))

    def predict_proba(self, log: ClickLog) -> Floats:
        """The probability of a click at each position of each session's list, ``(N, K)``; 0 below
        the end of a list.

        The clicks in the log are not used.
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        return np.where(log.items < 0, 0.0, self._marginals(self._pairs_of(log)))

    def click_model(self, query: str, items: list[str]) -> ClickModel:
        """The fitted model of one query as a click model over the given items, numbered in the
        given order.

        Args:
            query: label of the query.
            items: labels of at least K items, which the fitted log showed for the query.

        Raises:
            KeyError: the fitted log never showed one of the items for the query.
            TypeError, ValueError: a label is not a string, or an item is named twice.
        """
        check_kind("query", query, str, "a label")
        items = list(check_labels("items", items))
        row, size = self._query_index.get(query, -1), len(self._item_index)
        number = (self._item_index if row >= 0 else {}).get
        codes = np.array(
            [-1 if (index := number(item)) is None else row * size + index for item in items]
        )
        pairs = self._find(codes)
        for item, pair in zip(items, pairs.tolist(), strict=True):
            if pair == len(self._codes):
                raise KeyError((query, item))
        return self._click_model(pairs)

    @abstractmethod
    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        """Estimate the parameters from ``(N, K)`` indices of pairs, -1 below the end of a list, and
        ``(N, K)`` clicks. Sessions are sorted by query.
        """

    @abstractmethod
    def _conditional(self, pairs: Indices, clicks: Clicks) -> Floats:
        """``(N, K)`` probabilities of a click at each position given the clicks above it."""

    def _marginals(self, pairs: Indices) -> Floats:
        """``(N, K)`` probabilities of a click at each position, whatever is clicked above it;
        undefined below the end of a list.
        """
        # One model has all pairs as its items; it may need more items than there are pairs.
        numbers = np.arange(max(len(self._codes) + 1, self.n_positions_), dtype=np.int32)
        model = self._click_model(np.minimum(numbers, len(self._codes)))
        result, scratch = np.zeros(pairs.shape), np.empty((2, pairs.shape[1] + 1))
        entry(marginals_of_lists(model.marginals_kernel))(model.parameters, pairs, scratch, result)
        return result

    @abstractmethod
    def _click_model(self, pairs: Indices) -> ClickModel:
        """The click model over some pairs of a query."""

    def _find(self, codes: NDArray[np.int64]) -> Indices:
        """Return the indices of pairs among the fitted pairs; P for pairs that were not fitted."""
        index = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.where(self._codes[index] == codes, index, len(self._codes)).astype(np.int32)

    def _pairs_of(self, log: ClickLog) -> Indices:
        """Return the indices of a log's pairs among the fitted pairs, ``(N, K)``: P for a pair that
        was not fitted, -1 below the end of a list.

        Raises:
            ValueError: the estimator is not fitted.
        """
        if not hasattr(self, "_codes"):
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(log) first")
        order, codes, numbers = by_query(log.queries, log.items, len(log.item_labels))
        queries, items = np.divmod(codes, max(len(log.item_labels), 1))
        query_of = np.array([self._query_index.get(label, -1) for label in log.query_labels])
        item_of = np.array([self._item_index.get(label, -1) for label in log.item_labels])
        is_known = (query_of[queries] >= 0) & (item_of[items] >= 0)
        codes = np.where(is_known, query_of[queries] * len(self._item_index) + item_of[items], -1)
        pair_of = np.append(self._find(codes), np.int32(-1))
        pairs = np.empty_like(numbers)
        pairs[order] = pair_of[numbers]
        return pairs

    def _logs(self, log: ClickLog, law: Law) -> Floats:
        """Return the logarithms of the probabilities of the observed clicks and skips, ``(N, K)``;
        0 below the end of a list.

        Args:
            log: the sessions to score.
            law: returns the probability of a click at each position, ``(N, K)``. Its values below
                the end of a list are ignored.
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        pairs = self._pairs_of(log)
        if log.n_positions != self.n_positions_:
            raise ValueError(
                f"the log has {log.n_positions} positions, but this {type(self).__name__} was "
                f"fitted to a log with {self.n_positions_}"
            )
        probabilities = law(pairs, log.clicks)
        happened = np.where(log.clicks > 0, probabilities, 1.0 - probabilities)
        with np.errstate(divide="ignore"):
            return np.log(np.where(pairs < 0, 1.0, happened))


@cache
def marginals_of_lists(marginals: Callable[..., None]) -> Callable[..., None]:
    """Return a kernel that computes the click probabilities of many lists, by calling the kernel
    ``marginals`` for each list.
    """

    @kernel
    def of_lists(parameters, lists, scratch, result):
        for row in range(len(lists)):
            n = list_length(lists[row])
            marginals(parameters, lists[row, :n], scratch[0, :n], result[row, :n], scratch[1])

    return of_lists


def fill_by(kernel: Callable[..., None], shape: tuple[int, ...], *arguments: Any) -> Floats:
    """Return a new array that a kernel has filled; the array is the kernel's last argument."""
    result = np.empty(shape)
    kernel(*arguments, result)
    return result
