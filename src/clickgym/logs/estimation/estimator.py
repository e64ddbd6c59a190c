"""The base class of all estimators of click models, which numbers (query, item) pairs and computes
scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_kind, check_labels, check_number, outside_unit_interval
from ...core.kernels import entry, kernel
from ...core.messages import suggestions, value_error
from ...core.state import Floats
from ...envs import ClickModel
from ..log import ClickLog
from .counting import by_query, list_length
from .priors import UNIFORM, Prior

Indices = NDArray[np.int32]
Clicks = NDArray[np.int8]
Predict = Callable[[Indices, Clicks], Floats]

MODEL_ESTIMATORS: dict[str, type[Estimator]] = {}
"""The estimator classes, by the short names of their click models. Every subclass of `Estimator`
that sets ``model_class`` is registered automatically.
"""


def check_models_to_fit(names: Sequence[str]) -> None:
    """Check that each name is the short name of a click model that has an estimator; raise a
    ValueError for any other name.
    """
    for name in names:
        if name not in MODEL_ESTIMATORS:
            raise ValueError(
                f"no estimator fits the click model {name!r}{suggestions(name, MODEL_ESTIMATORS)}; "
                "for another click model, write an estimator, and set its model_class, as "
                "docs/own_click_model.md describes"
            )


class Estimator:
    """Base class of the estimators of click models, in the style of scikit-learn: `fit` sets
    attributes that end with ``_``.

    Attraction (and, in some models, satisfaction) is estimated for each of the P pairs of a query
    and an item. All queries share the parameters of positions.

    Args:
        prior: a and b of the Beta prior of a pair's parameters. By default, the prior is fitted to
            the log, except in PBM and UBM, where the prior sets the scale of attraction and remains
            Beta(1, 1).

    Attributes:
        pairs_: the labels of the (query, item) pairs in the fitted log.
        n_positions_: K, the number of positions in the fitted log.
        attraction_: ``(P + 1,)`` attraction of each pair, in models with attraction. The last
            entry, the mean of the prior, stands for all pairs that the log never showed.
        prior_: a and b of the Beta prior of attraction that was given or fitted.

    Example:
        >>> from clickgym.logs import CMEstimator, ClickLog
        >>> log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 1]], [0] * 2, ("a", "b"), ("q",))
        >>> estimator = CMEstimator().fit(log)
        >>> estimator.n_positions_, len(estimator.attraction_)
        (2, 3)
    """

    model_class: ClassVar[type[ClickModel]]
    """The class of the click model whose parameters are estimated."""
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
            MODEL_ESTIMATORS[cls.model_class.name()] = cls

    def fit(self, log: ClickLog) -> Self:
        """Estimate the click model's parameters from a log.

        Args:
            log: the sessions from which the parameters are estimated.

        Returns:
            The estimator itself.

        Raises:
            ValueError: the log has no sessions.

        Warns:
            ConvergenceWarning: EM with a ``tol`` had not converged after its last step.
        """
        check_kind("log", log, ClickLog, "a ClickLog, as read_log returns it")
        if not len(log):
            raise ValueError("the log has no sessions; fit requires at least one session")
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
        """Return the log-probability of each session's clicks, ``(N,)``; minus infinity for clicks
        that the model excludes.
        """
        return self._log_probabilities(log, self._conditional).sum(axis=1)

    def score(self, log: ClickLog) -> float:
        """Return the mean log-likelihood per session of a log."""
        return float(self.log_likelihood(log).mean())

    def perplexity_by_rank(self, log: ClickLog) -> Floats:
        """Return the perplexity ``exp(-E[log P(c(k))])`` at each position k, ``(K,)``, from the
        marginal click probabilities. A perfect prediction has perplexity 1.

        A list that ends above a position does not count at this position. If all lists end above a
        position, the position's perplexity is NaN.
        """
        by_position = self._log_probabilities(log, lambda pairs, clicks: self._marginals(pairs))
        with np.errstate(invalid="ignore"):
            return np.exp(-by_position.sum(axis=0) / (log.items >= 0).sum(axis=0))

    def predict_proba(self, log: ClickLog) -> Floats:
        """Return the probability of a click at each position of each session's list, ``(N, K)``; 0
        below the end of a list.

        The prediction does not use the clicks in the log.
        """
        check_kind("log", log, ClickLog, "a ClickLog, as read_log returns it")
        return np.where(log.items < 0, 0.0, self._marginals(self._pairs_of(log)))

    def click_model(self, query: str, items: list[str]) -> ClickModel:
        """Return the fitted click model of one query, with the given items in the given order.

        Args:
            query: the label of the query.
            items: the labels of at least K items, all of which the fitted log showed for the query.

        Raises:
            KeyError: the fitted log never showed one of the items for this query.
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
                raise KeyError(f"the fitted log never showed the item {item!r} for {query!r}")
        return self._click_model(pairs)

    def fit_pairs(self, pairs: Indices, clicks: Clicks) -> None:
        """Estimate the parameters from ``(N, K)`` indices of pairs, which are -1 below the end of a
        list, and from ``(N, K)`` clicks. The sessions are sorted by query.
        """
        raise NotImplementedError

    def conditional_probabilities(self, pairs: Indices, clicks: Clicks) -> Floats:
        """Return the probability of a click at each position given the clicks above, ``(N, K)``."""
        raise NotImplementedError

    def model_of_pairs(self, pairs: Indices) -> ClickModel:
        """Return the click model whose items are the given pairs of a query."""
        raise NotImplementedError

    # These call the methods above, unless a subclass written for clickgym 9.0 overrides them.

    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        self.fit_pairs(pairs, clicks)

    def _conditional(self, pairs: Indices, clicks: Clicks) -> Floats:
        return self.conditional_probabilities(pairs, clicks)

    def _click_model(self, pairs: Indices) -> ClickModel:
        return self.model_of_pairs(pairs)

    def _marginals(self, pairs: Indices) -> Floats:
        """Return the marginal probability of a click at each position, ``(N, K)``. Values below the
        end of a list are undefined.
        """
        # A single model has all pairs as its items; the last is repeated up to K items.
        numbers = np.arange(max(len(self._codes) + 1, self.n_positions_), dtype=np.int32)
        model = self._click_model(np.minimum(numbers, len(self._codes)))
        result, scratch = np.zeros(pairs.shape), np.empty((2, pairs.shape[1] + 1))
        entry(make_marginals_kernel(model.marginals_kernel))(
            model.parameters, pairs, scratch, result
        )
        return result

    def _find(self, codes: NDArray[np.int64]) -> Indices:
        """Look up pairs, given by their codes, among the fitted pairs, and return their indices; P
        for a pair that was not fitted.
        """
        index = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.where(self._codes[index] == codes, index, len(self._codes)).astype(np.int32)

    def _pairs_of(self, log: ClickLog) -> Indices:
        """Look up a log's pairs among the fitted pairs, and return their indices, ``(N, K)``: P for
        a pair that was not fitted, and -1 below the end of a list.

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

    def _log_probabilities(self, log: ClickLog, predict: Predict) -> Floats:
        """Return the log-probability of the observed click or skip at each position, ``(N, K)``; 0
        below the end of a list.

        Args:
            log: the sessions to score.
            predict: a function that returns the probability of a click at each position, ``(N,
                K)``. Values below the end of a list are ignored.

        Raises:
            ValueError: a probability is not between 0 and 1.
        """
        check_kind("log", log, ClickLog, "a ClickLog, as read_log returns it")
        pairs = self._pairs_of(log)
        if log.n_positions != self.n_positions_:
            raise ValueError(
                f"the log has {log.n_positions} positions, but this {type(self).__name__} was "
                f"fitted to a log with {self.n_positions_}"
            )
        probabilities = np.where(pairs < 0, 0.0, predict(pairs, log.clicks))
        wrong = outside_unit_interval(probabilities)
        if len(wrong):
            raise ValueError(
                f"{type(self).__name__} predicts a click with the probability {wrong[0]:.4g}; "
                "expected a number between 0 and 1"
            )
        happened = np.where(log.clicks > 0, probabilities, 1.0 - probabilities)
        with np.errstate(divide="ignore"):
            return np.log(np.where(pairs < 0, 1.0, happened))


@cache
def make_marginals_kernel(marginals: Callable[..., None]) -> Callable[..., None]:
    """Return a kernel that computes the click probabilities of many lists by calling the kernel
    ``marginals`` for each list.
    """

    @kernel
    def of_lists(parameters, lists, scratch, result):
        for row in range(len(lists)):
            n = list_length(lists[row])
            marginals(parameters, lists[row, :n], scratch[0, :n], result[row, :n], scratch[1])

    return of_lists


def fill_by(kernel: Callable[..., None], shape: tuple[int, ...], *arguments: Any) -> Floats:
    """Return a new array, filled by a kernel that takes the array as its last argument."""
    result = np.empty(shape)
    kernel(*arguments, result)
    return result
