"""Base classes of the estimators of click models: pairs of query and item, priors, and scores.

The estimate of a probability is ``(a + successes)/(a + b + trials)``, its mean under the prior
Beta(a, b). What all pairs share has a = b = 1. What belongs to a pair of query and item has the
prior of the log: pairs are many, and of most a log shows little, so a wrong prior would move what
they share. A pair that the log never showed has the mean of the prior.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit, logit, psi

from ...core.checks import (
    check_count,
    check_kind,
    check_labels,
    check_number,
    refusal,
)
from ...core.kernels import entry, kernel
from ...envs import ClickModel
from ..log import ClickLog
from .counting import by_query, in_parallel, list_length

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Clicks = NDArray[np.int8]
Law = Callable[[Indices, Clicks], Floats]
Prior = tuple[float, float]

UNIFORM: Prior = (1.0, 1.0)

MODEL_ESTIMATORS: dict[str, type[Estimator]] = {}
"""The estimators by the short names of their models: whatever names its ``model_class`` is here."""

SESSIONS = 2**14  # scored at once by a thread: working memory does not grow with the log


class ConvergenceWarning(UserWarning):
    """EM reached its last step before the gain of a step fell below ``tol``."""


class Estimator(ABC):
    """Base class of the estimators of click models, in the style of scikit-learn: `fit` sets
    attributes that end with ``_``.

    Attraction (and in some models satisfaction) is estimated for each pair of a query and an item;
    position parameters are shared by all queries.

    Args:
        prior: a and b of the Beta prior of the parameters of a pair. None fits the prior to the
            log. In PBM and UBM it sets the scale of attraction, so there Beta(1, 1) stays.

    Attributes:
        pairs_: the (query, item) labels of the fitted log.
        n_positions_: K, the length of its lists.
        attraction_: ``(P + 1,)`` attraction of each pair, in models that have it; the last entry,
            the mean of the prior, stands for all pairs never shown.
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
                raise refusal("prior", prior, "two numbers > 0, or None")
            a, b = (check_number("prior", value, above=0.0) for value in prior)
            self.prior = a, b

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "model_class" in vars(cls):
            MODEL_ESTIMATORS[cls.model_class.short] = cls

    def fit(self, log: ClickLog, start: Estimator | None = None) -> Self:
        """Estimate the model's parameters.

        Args:
            log: the sessions to learn from.
            start: the start of EM: an estimator of the same kind, fitted to a part of the log.
                Pairs that it does not know start at the mean of the prior, and so do all if
                ``start`` is None.
                Closed forms ignore it.

        Returns:
            The estimator itself.

        Raises:
            ValueError: on a log without sessions.

        Warns:
            ConvergenceWarning: EM with a ``tol`` had not converged after its last step.
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        if not len(log):
            raise ValueError("the log has no sessions")
        order, codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
        self._codes, self.n_positions_ = codes, log.n_positions
        self._labels = log[[]]  # no view: the log itself need not be kept
        self._query_index = {label: index for index, label in enumerate(log.query_labels)}
        self._item_index = {label: index for index, label in enumerate(log.item_labels)}
        self._fit(pairs, log.clicks[order])
        return self

    @property
    def pairs_(self) -> list[tuple[str, str]]:
        query_labels, item_labels = self._labels.query_labels, self._labels.item_labels
        pairs = (divmod(code, len(item_labels)) for code in self._codes.tolist())
        return [(query_labels[query], item_labels[item]) for query, item in pairs]

    def log_likelihood(self, log: ClickLog) -> Floats:
        """The log-probability of each session's clicks, ``(N,)``; minus infinity where the model
        excludes them.
        """
        return self._score(log, self._conditional)[0]

    def score(self, log: ClickLog) -> float:
        """The mean log-likelihood per session."""
        return float(self.log_likelihood(log).mean())

    def perplexity_by_rank(self, log: ClickLog) -> Floats:
        """``exp(-E[log P(c(k))])`` at each position k, from the marginal click probabilities,
        ``(K,)``; 1 is perfect.

        A list that ends above a position does not count there. If all lists do, the value is NaN.
        """
        logs = self._score(log, lambda pairs, clicks: self._marginals(pairs))[1]
        reached = (log.items >= 0).sum(axis=0)
        return np.exp(-np.divide(logs, reached, out=np.full(len(logs), np.nan), where=reached > 0))

    def predict_proba(self, log: ClickLog) -> Floats:
        """The probability of a click at each position of each session's list, ``(N, K)``; 0 below
        its end.

        Its clicks are not used.
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        return np.where(log.items < 0, 0.0, self._marginals(self._pairs_of(log)))

    def click_model(self, query: str, items: list[str], *, unseen: bool = False) -> ClickModel:
        """The fitted model of one query as a click model over the given items, numbered in the
        given order.

        Args:
            query: label of the query.
            items: labels of at least K items.
            unseen: whether to accept items that the fitted log never showed for the query. They get
                the mean of the prior.

        Raises:
            KeyError: there are such items, and ``unseen`` is False.
            TypeError, ValueError: a label is no text, or an item is named twice.
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
            if pair == len(self._codes) and not unseen:
                raise KeyError((query, item))
        return self._click_model(pairs)

    @abstractmethod
    def _fit(self, pairs: Indices, clicks: Clicks) -> None:
        """Estimate from ``(N, K)`` indices of pairs, -1 below the end of a list, and clicks, the
        sessions sorted by query.
        """

    @abstractmethod
    def _conditional(self, pairs: Indices, clicks: Clicks) -> Floats:
        """``(N, K)`` probabilities of a click at each position given the clicks above it."""

    def _marginals(self, pairs: Indices) -> Floats:
        """``(N, K)`` probabilities of a click at each position, whatever the clicks; undefined
        below the end of a list.
        """
        # All pairs as the items of one model, which may need more items than there are pairs.
        numbers = np.arange(max(len(self._codes) + 1, self.n_positions_), dtype=np.int32)
        model = self._click_model(np.minimum(numbers, len(self._codes)))
        result, scratch = np.zeros(pairs.shape), np.empty((2, pairs.shape[1] + 1))
        entry(marginals_of_lists(model.marginals_kernel))(model.parameters, pairs, scratch, result)
        return result

    @abstractmethod
    def _click_model(self, pairs: Indices) -> ClickModel:
        """The click model over some pairs of a query."""

    def _find(self, codes: NDArray[np.int64]) -> Indices:
        """The indices of pairs among the fitted ones, P for those that are not there."""
        index = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.where(self._codes[index] == codes, index, len(self._codes)).astype(np.int32)

    def _pairs_of(self, log: ClickLog) -> Indices:
        """``(N, K)`` the numbers here of a log's pairs: P where nothing was fitted, -1 below the
        end of a list.

        Raises:
            ValueError: nothing was fitted.
        """
        if not hasattr(self, "_codes"):
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit(log) first")
        order, codes, numbers = by_query(log.queries, log.items, len(log.item_labels))
        if not self._labels_are(log):
            queries, items = np.divmod(codes, max(len(log.item_labels), 1))
            query_of = np.array([self._query_index.get(label, -1) for label in log.query_labels])
            item_of = np.array([self._item_index.get(label, -1) for label in log.item_labels])
            known = (query_of[queries] >= 0) & (item_of[items] >= 0)
            codes = query_of[queries] * len(self._labels.item_labels) + item_of[items]
            codes = np.where(known, codes, -1)
        pair_of = np.append(self._find(codes), np.int32(-1))
        pairs = np.empty_like(numbers)
        pairs[order] = pair_of[numbers]
        return pairs

    def _labels_are(self, log: ClickLog) -> bool:
        """Whether a log is labelled as the fitted one, as parts of one log are."""
        labels = self._labels.query_labels, self._labels.item_labels
        return (log.query_labels, log.item_labels) == labels

    def _score(self, log: ClickLog, law: Law) -> tuple[Floats, Floats]:
        """The log-probabilities of the clicks of a log.

        Args:
            log: the sessions to score.
            law: the probability of a click at each position, ``(N, K)``. Below the end of a list
                it may say anything.

        Returns:
            ``(N,)`` the sum of each session, and ``(K,)`` the sum at each position.
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        pairs = self._pairs_of(log)
        if log.n_positions != self.n_positions_:
            raise ValueError(
                f"the log has {log.n_positions} positions; the model was fitted to "
                f"{self.n_positions_}"
            )
        starts = range(0, len(log), SESSIONS)
        likelihood, by_position = np.empty(len(log)), np.zeros((len(starts), log.n_positions))

        def score(block: int) -> None:
            part = slice(starts[block], starts[block] + SESSIONS)
            clicks, shown = log.clicks[part], pairs[part]
            probabilities = law(shown, clicks)
            add_logs(probabilities, shown, clicks, likelihood[part], by_position[block])

        in_parallel(score, len(starts))
        return likelihood, by_position.sum(axis=0)


@cache
def marginals_of_lists(marginals: Callable[..., None]) -> Callable[..., None]:
    """The kernel that computes the click probabilities of many lists by that of one list."""

    @kernel
    def of_lists(parameters, lists, scratch, result):
        for row in range(len(lists)):
            n = list_length(lists[row])
            marginals(parameters, lists[row, :n], scratch[0, :n], result[row, :n], scratch[1])

    return of_lists


class Others(NamedTuple):
    """What other sessions say of the attraction of items, by which EM without a given prior
    explains a session.

    Attributes:
        explain: whether they do.
        successes: ``(P + 1,)`` of each pair, with those of the prior.
        failures: those of the prior.
    """

    explain: bool
    successes: Floats
    failures: float


@kernel
def without(failures, mean, successes, least):
    """The mean of a probability without some of its failures, of which the prior has ``least``."""
    rest = max(successes * (1.0 - mean) / mean - failures, least)
    return successes / (successes + rest)


@entry
def add_logs(probabilities, pairs, clicks, by_session, by_position):
    """Sum the logarithms of the probabilities of what happened: set for each session, add for each
    position.
    """
    for session in range(len(clicks)):
        total = 0.0
        for k in range(list_length(pairs[session])):
            probability = probabilities[session, k]
            value = np.log(probability if clicks[session, k] else 1.0 - probability)
            total += value
            by_position[k] += value
        by_session[session] = total


Step = Callable[[list[Floats], list[Floats]], float]
"""An EM step: given parameters, it writes those that follow into arrays like them, and returns the
penalised log-likelihood of the former. What it does not write stays.
"""
SAME_PRIOR = 1.01
"""A fitted prior of which a and b change by a smaller factor does not change."""


class EMEstimator(Estimator):
    """Base class of the EM estimators: the start, the stopping rule, extrapolated steps, and the
    record of the steps.

    With a given ``prior`` this is EM as published: it climbs the likelihood times the prior of all
    parameters at once. Pairs with few sessions bias what such an estimate says of all (Neyman,
    Scott 1948). Without one, steps are taken that have no such bias, or less: examinations (PBM,
    UBM) are compared within pairs; in the other models the prior is fitted, and the expectations of
    a session are those under what the other sessions say of its items.

    Without ``tol`` all steps are plain EM steps. With ``tol``, every second step starts from an
    extrapolation of the last two steps (SQUAREM). If that is no better than the plain step before,
    it is discarded.

    Args:
        iterations: the most EM steps.
        tol: stop once a plain EM step, with the extrapolation before it, changes the penalised
            log-likelihood by less than this per session, and warn if that never happens; None takes
            all the steps and judges nothing.
        prior: as in `Estimator`.

    Attributes:
        n_iter_: the EM steps computed, also those that counted for nothing.
        log_posterior_: the highest penalised log-likelihood so far, before each step and after the
            last; with a given prior it never falls.
        converged_: whether the last step, a plain one, changed so little; None without ``tol``.

    Source: Varadhan, Roland, *Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm*, Scandinavian Journal of Statistics 2008, scheme S3, kept
    inside (0, 1) and from falling. What a session says itself is left out as in Opper, Winther,
    *Gaussian processes for classification: mean-field algorithms*, Neural Computation 2000.
    """

    n_iter_: int
    log_posterior_: list[float]
    converged_: bool | None = None

    _start: EMEstimator | None = None
    _estimates: list[Floats] | None = None
    _priors: list[Prior]
    """Of the parameters of pairs, attraction first."""

    def __init__(
        self, iterations: int = 1000, tol: float | None = 1e-7, prior: Prior | None = None
    ) -> None:
        super().__init__(prior)
        self.iterations = check_count("iterations", iterations)
        self.tol = None if tol is None else check_number("tol", tol, above=0.0)

    @property
    def _leaves_out(self) -> bool:
        """Whether no prior is given; then no likelihood is climbed."""
        return self.prior is None

    def fit(self, log: ClickLog, start: Estimator | None = None) -> Self:
        check_kind("log", log, ClickLog, "a ClickLog")
        self._start = copy.copy(start)  # type: ignore[assignment]  # it may be this one
        super().fit(log)
        self._start = None
        if self.converged_ is False:
            change = self._last_change() / len(log)
            warnings.warn(
                f"{type(self).__name__} has not converged: the last of {self.n_iter_} steps "
                f"changed the log-likelihood per session by {change:.2g}, not by less than tol = "
                f"{self.tol:g}; in Python, allow more than iterations={self.iterations}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _last_change(self) -> float:
        """Of the last plain step and, but for the first, of the one before it: alone it may be
        short where the way is long.
        """
        return float(np.abs(np.diff(self.log_posterior_[-3:])).sum())

    def _begin(self, of_pairs: int, n_shared: int) -> list[Floats]:
        """The parameters of the start; the mean of the prior for what it does not know."""
        self._priors = [self.prior or UNIFORM] * of_pairs
        if self._start is None or self._start._estimates is None:
            size = len(self._codes) + 1
            means = [np.full(size, a / (a + b)) for a, b in self._priors]
            return [*means, np.full(n_shared, 0.5)]
        if self._leaves_out and self._start._leaves_out:
            self._priors = self._start._priors
        # The last entry of an estimate is that of what was never shown.
        rows = np.append(self._start._find(self._codes), -1)
        *estimates, shared = self._start._estimates
        return [*(estimate[rows] for estimate in estimates), shared]

    def _fitted_priors(self) -> list[Prior]:
        """The priors that fit the expectations of the last step; where clicks do not tell the
        scale of attraction, the prior sets it, and stays.
        """
        return self._priors

    def _refit_priors(self) -> bool:
        """Whether the priors change if they are fitted again."""
        before, self._priors = self._priors, self._fitted_priors()
        change = np.abs(np.log(np.array(self._priors) / np.array(before)))
        return bool(change.max() > np.log(SAME_PRIOR))

    def _climb(self, step: Step, of_pairs: int, n_shared: int, n_sessions: int) -> list[Floats]:
        """Take the steps, and return the parameters where they end: some of each pair, ``(P + 1,)``
        each, and some that all share, ``(n_shared,)``.

        Computing a step also tells how high the point is from which it goes, so that the guard
        costs nothing more.
        """
        first = self._begin(of_pairs, n_shared)
        ends = np.cumsum([values.size for values in first])[:-1]

        def arrays(point: Floats) -> list[Floats]:
            return [
                part.reshape(values.shape)
                for part, values in zip(np.split(point, ends), first, strict=True)
            ]

        def climb_from(point: Floats) -> tuple[float, Floats]:
            following = point.copy()
            height = step(arrays(point), arrays(following))
            return height, following

        def is_better(reached: float, height: float, moves: tuple[Floats, Floats]) -> bool:
            if self._leaves_out:  # no likelihood is climbed: nearer to where nothing moves
                return np.abs(moves[0]).max() <= np.abs(moves[1]).max()
            return reached >= height

        point = np.concatenate([values.ravel() for values in first])
        height, following = climb_from(point)
        self.log_posterior_, self.n_iter_, self.converged_ = [height], 0, None
        next_fit = 1
        while not self.converged_ and self.n_iter_ < self.iterations:
            before, point = point, following
            height, following = climb_from(point)
            self.log_posterior_.append(height)
            if self.tol is not None:
                self.converged_ = self._last_change() < self.tol * n_sessions
            if self._leaves_out and (self.converged_ or len(self.log_posterior_) > next_fit):
                next_fit = 2 * len(self.log_posterior_)
                changed = self._refit_priors()
                self.converged_ = self.converged_ and not changed
            # the last step is a plain one
            if self.tol is not None and not self.converged_ and self.n_iter_ + 2 < self.iterations:
                further = extrapolated(before, point, following)
                reached, beyond = climb_from(further)
                if is_better(reached, height, (beyond - further, following - point)):
                    point, height, following = further, reached, beyond
                self.log_posterior_.append(height)
            self.n_iter_ = len(self.log_posterior_) - 1
        self.prior_, self._estimates = self._priors[0], arrays(point)
        return self._estimates


def extrapolated(first: Floats, second: Floats, third: Floats) -> Floats:
    """Where three points in a row lead to (SQUAREM); at most half-way from the third to 0 and to
    1.
    """
    step = second - first
    change = third - second - step
    size = float(np.linalg.norm(change))
    if size == 0.0:
        return third
    length = max(float(np.linalg.norm(step)) / size, 1.0)  # 1 leads to the third
    return np.clip(
        first + 2.0 * length * step + length**2 * change, third / 2.0, (1.0 + third) / 2.0
    )


def filled(kernel: Callable[..., None], shape: tuple[int, ...], *arguments: Any) -> Floats:
    """An array that a kernel, whose last argument it is, has written."""
    result = np.empty(shape)
    kernel(*arguments, result)
    return result


def smoothed(successes: Any, trials: Any, prior: Prior = UNIFORM) -> Floats:
    """The mean of each probability under its prior."""
    return (prior[0] + successes) / (sum(prior) + trials)


def log_prior(values: Floats, prior: Prior = UNIFORM) -> float:
    """The logarithm of the prior that EM climbs, Beta(a + 1, b + 1) with its mode where `smoothed`
    is, up to a constant.
    """
    if prior == UNIFORM:
        return float(np.log(values * (1.0 - values)).sum())
    return float((prior[0] * np.log(values) + prior[1] * np.log1p(-values)).sum())


def fitted_prior(successes: Floats, failures: Floats, start: Prior = UNIFORM) -> Prior:
    """The Beta prior of many probabilities that makes their counts most likely (beta-binomial law).

    Its mean m and ``r = 1 / (a + b + 1)`` have a law themselves, ``m (1 - m) r (1 - r)²``, so that
    few counts leave it near Beta(1, 1). The search begins at ``start``.
    """

    def beta(mean: float, spread: float) -> tuple[float, float]:
        size = (1.0 - spread) / spread
        return mean * size, (1.0 - mean) * size

    def depth(place: Floats) -> tuple[float, Floats]:
        mean, spread = expit(place)
        a, b = beta(mean, spread)
        law = mean * (1.0 - mean) * spread * (1.0 - spread) ** 2
        gain = betaln(a + successes, b + failures) - betaln(a, b)
        both = psi(a + b + successes + failures) - psi(a + b)
        by_a = (psi(a + successes) - psi(a) - both).sum()
        by_b = (psi(b + failures) - psi(b) - both).sum()
        slope = [
            (by_a - by_b) * (a + b) * mean * (1.0 - mean) + 1.0 - 2.0 * mean,
            -(by_a * a + by_b * b) + 1.0 - 3.0 * spread,
        ]
        n = len(successes) + 1
        return -float(gain.sum() + np.log(law)) / n, -np.array(slope) / n

    a, b = start
    place = logit([a / (a + b), 1.0 / (a + b + 1.0)])
    a, b = beta(*expit(minimize(depth, place, jac=True, options={"gtol": 1e-6}).x))
    return float(a), float(b)
