"""What the clicks of a log tell of a click model, and what they leave open.

Parameters count by their logarithms. The information of a log is the sum of ``d dᵀ`` over the
positions of its sessions, with d the derivative of the probability p of a click given those above,
divided by the standard deviation of the click (Fisher's information). Where other parameters would
make the same clicks, no position has a derivative in this direction, and the information is 0. So
it is with attraction and examination (PBM, UBM), if displays do not connect an item with a
position: then all attractions on one side may be larger, and the examinations smaller. An item that
nobody clicked connects nothing. So it is, too, with the perseverance of a DBN, if no item changes
its position, and with the satisfaction of an item that nobody clicked above the end of a list.

The variance of a click is ``p (1 - p n/(n + FEW))`` with n the displays of the item at the
position. It is nearly p for a single display: if one session joins two halves, and its click makes
the estimate of p equal to 1, it still tells hardly more than one click.

What a log leaves open may be six times as large or as small, which is guessed: its logarithm has
the standard deviation 1.8, whose inverse square is ``GUESS`` below. A value is a sum of parts, as
clicks are over items, and each part counts by its own: otherwise the gain of one item would hide
the loss of another. With the information I and the gradient g of a part, ``u = (I + GUESS)⁻¹ g``
tells how the part moves with a position: by ``u d`` times the residual of its click. The parts have
the covariances ``gᵀ u``, to first order. A log-normal law with these has more variance. The sum has
the larger of both: what the covariances say, and what the law adds, as it does where they cancel.

Where the log tells nothing, this would be a mere guess: so with ``NOTHING`` in place of ``GUESS``,
the part ``NOTHING u`` of the gradient is that along which there is no information, less than that
of a hundredth of a click. Here the parts add up without their signs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..distinct import grouped
from ..log import ClickLog
from .estimator import Estimator, Floats

STEP = 1e-5
"""Of logarithms, for derivatives."""
GUESS = 0.3
NOTHING = 0.003
FEW = 4
"""Displays."""
SOLVABLE = 1e-9
"""Added to a matrix, so that it has an inverse."""
MOST_VARIANCE = 10.0
"""Of the logarithm of a part, so that its exponential is finite."""
MOST_GUESSED, MOST_OPEN = 0.01, 0.05
"""Parts of a value, by the standard deviation of what the log tells nothing of: above the first
it is worth a caution, and above the second the log does not tell the value.
"""
MOST_QUERIES = 1000
"""That tell of the parameters that all share: those with most sessions."""
MOST_LISTS = 20
TINY = 1e-12

Parameter = tuple[str, tuple[int, ...]]
"""An attribute of an estimator, and a place in it."""


class Uncertainty(NamedTuple):
    """How well a log tells some values, ``(M,)`` each.

    Attributes:
        influence: ``(n, M)`` how each session of the query moves the values.
        variance: of the values, as sessions make it, to first order.
        open_variance: what the log leaves open beside it.
        unidentified: the standard deviation of what the log tells nothing of.
        least_identified: the parameter that it tells least of, in words.
        values: by the estimator.
    """

    influence: Floats
    variance: Floats
    open_variance: Floats
    unidentified: Floats
    least_identified: tuple[str, ...]
    values: Floats

    @property
    def deviation(self) -> Floats:
        """The standard deviation of the values in all."""
        return np.sqrt(self.variance + self.open_variance)

    def is_unidentified(self, click: float = 0.0, part: float = MOST_OPEN) -> NDArray[np.bool_]:
        """Whether the log does not tell the values, at more than a part of them and more than three
        times what a ``click`` would change: what was shown and not clicked is hardly attractive.
        """
        return self.unidentified > np.maximum(part * self.values, 3 * click)


class Information:
    """The information of a log about the parameters of an estimator that was fitted to it; it is
    computed when it is first asked.

    Args:
        estimator: fitted to the log.
        log: the sessions.
    """

    def __init__(self, estimator: Estimator, log: ClickLog) -> None:
        shapes = estimator.model_class.shapes
        fitted = {name: f"{name}_" for name in shapes if f"{name}_" in vars(estimator)}
        self.estimator, self._log = estimator, log
        self._of_items = [it for name, it in fitted.items() if shapes[name] == "L"]
        self._shared: list[Parameter] = []
        for name, attribute in fitted.items():
            if shapes[name] != "L":
                values = np.asarray(getattr(estimator, attribute))
                places = map(tuple, np.argwhere(values > 0).tolist())
                self._shared += [(attribute, place) for place in places]

    def uncertainty(self, query: str, parts: Callable[[Estimator], Floats]) -> Uncertainty:
        """How well the log tells values that follow from the parameters of a query.

        Args:
            query: its label.
            parts: ``(M, n)`` the parts of each value, by an estimator like the fitted one.
        """
        # The information about the parameters of the query, and about those that all share.
        number = self._log.query_labels.index(query)
        columns = self._columns(number)
        scores = self._scores_of(number, columns)
        information = (scores.T @ scores).toarray()
        n_shared = len(self._shared)
        if n_shared and len(self._queries) > 1:
            own = self._of_shared(number) if number in self._queries else 0.0
            information[-n_shared:, -n_shared:] += self._of_all - own

        # How each parameter moves each part, (parameters, M, n).
        parameters = [self._parameter(column) for column in columns.tolist()]
        slopes = np.array([self._slope(parameter, parts) for parameter in parameters])
        flat, ones = slopes.reshape(len(columns), -1), np.eye(len(columns))
        moves = np.linalg.solve(information + GUESS * ones, flat).reshape(slopes.shape)

        # What sessions make of the values, and what the law of their parts adds.
        of_values, now = moves.sum(axis=2), parts(self.estimator)
        variance = np.maximum((of_values * (information @ of_values)).sum(axis=0), 0.0)
        covariances = slopes.transpose(1, 2, 0) @ moves.transpose(1, 0, 2)
        linear = covariances.sum(axis=(1, 2))
        added = np.array(list(map(_variance, now, covariances))) - linear

        # The part of the slopes along which there is no information, (parameters, M).
        blind = NOTHING * np.linalg.solve(information + NOTHING * ones, flat)
        blind = np.abs(blind.reshape(slopes.shape)).sum(axis=2)
        return Uncertainty(
            influence=self._influence(number, scores @ of_values),
            variance=variance,
            open_variance=np.maximum(np.maximum(linear, added) - variance, 0.0),
            unidentified=np.sqrt((blind**2).sum(axis=0) / GUESS),
            least_identified=tuple(self._phrase(parameters[most]) for most in blind.argmax(axis=0)),
            values=now.sum(axis=1),
        )

    @cached_property
    def _rows(self) -> dict[int, NDArray[np.int64]]:
        """The sessions of each query."""
        return dict(zip(*grouped(self._log.queries), strict=True))

    @cached_property
    def _pairs(self) -> NDArray[np.int32]:
        """``(N, K)`` the numbers of the pairs of query and item."""
        return self.estimator._pairs_of(self._log)

    @cached_property
    def _law(self) -> Floats:
        """``(N, K)`` the probability of a click at each position given those above."""
        return self._probabilities(self.estimator, self._pairs)

    @cached_property
    def _deviations(self) -> Floats:
        """``(N, K)`` the standard deviations of the clicks."""
        n_positions = self._log.n_positions
        cells = (self._pairs + 1) * np.int64(n_positions) + np.arange(n_positions)
        displays = np.bincount(cells.ravel())[cells]
        deviations: Floats = np.sqrt(self._law * (1 - self._law * displays / (displays + FEW)))
        return deviations

    def _scores_of(self, query: int, columns: NDArray[np.int64]) -> sparse.csr_array:
        """The derivatives of the positions of a query's sessions, in some columns."""
        n_positions = self._log.n_positions
        rows = self._rows[query][:, None] * n_positions + np.arange(n_positions)
        return self._scores[rows.ravel()][:, columns]

    def _influence(self, query: int, moves: Floats) -> Floats:
        """How values move with each session of a query, from how they move with residuals."""
        rows = self._rows[query]
        shown = self._log.items[rows] >= 0
        residuals = (self._log.clicks[rows] - self._law[rows]) / self._deviations[rows]
        residuals = np.where(shown, residuals, 0.0)
        return np.einsum("nk,nkm->nm", residuals, moves.reshape(*shown.shape, -1))

    def n_sessions(self, query: str) -> int:
        """The number of sessions of a query."""
        return len(self._rows[self._log.query_labels.index(query)])

    def _columns(self, query: int) -> NDArray[np.int64]:
        """The columns of the parameters of a query, and of those that all share."""
        first, end = np.searchsorted(
            self.estimator._codes, np.array([query, query + 1]) * len(self._log.item_labels)
        ) * len(self._of_items)
        n_columns = self._scores.shape[1]
        return np.r_[first:end, n_columns - len(self._shared) : n_columns]

    def _parameter(self, column: int) -> Parameter:
        """What stands in a column."""
        n_items = len(self._of_items)
        pair, which = divmod(column, max(n_items, 1))
        if pair < len(self.estimator._codes):
            return self._of_items[which], (pair,)
        return self._shared[column - n_items * len(self.estimator._codes)]

    @cached_property
    def _queries(self) -> list[int]:
        """The queries that tell of the parameters that all share."""
        return sorted(self._rows, key=lambda query: -len(self._rows[query]))[:MOST_QUERIES]

    @cached_property
    def _of_all(self) -> Floats:
        """What they tell together."""
        return np.sum([self._of_shared(query) for query in self._queries], axis=0)

    def _of_shared(self, query: int) -> Floats:
        """What a query tells of the parameters that all share."""
        columns = self._columns(query)
        scores = self._scores_of(query, columns)
        matrix = (scores.T @ scores).toarray()
        own = len(columns) - len(self._shared)
        both = matrix[:own, own:]
        return matrix[own:, own:] - both.T @ np.linalg.solve(
            matrix[:own, :own] + SOLVABLE * np.eye(own), both
        )

    def _slope(self, parameter: Parameter, parts: Callable[[Estimator], Floats]) -> Floats:
        """The derivatives of parts with respect to the logarithm of a parameter."""
        less = self._moved(parameter, -STEP)  # more might be above 1
        slope: Floats = (parts(self.estimator) - parts(less)) / STEP
        return slope

    def _moved(self, parameter: Parameter, step: float) -> Estimator:
        """The estimator with another logarithm of a parameter."""
        attribute, place = parameter
        values = np.array(getattr(self.estimator, attribute), np.float64)
        values[place] *= np.exp(step)
        return self._with({attribute: values})

    def _doubled(self, attribute: str, step: float) -> Estimator:
        """The estimator with a double of each pair, of which one parameter is moved."""
        fitted = {name: getattr(self.estimator, name) for name in self._of_items}
        moved = fitted | {attribute: fitted[attribute] * np.exp(step)}
        return self._with({name: np.append(fitted[name], moved[name]) for name in fitted})

    def _with(self, values: dict[str, Floats]) -> Estimator:
        """The estimator with other values of some attributes."""
        other = copy.copy(self.estimator)
        for name, array in values.items():
            setattr(other, name, array if array.ndim else float(array))
        return other

    @cached_property
    def _scores(self) -> sparse.csr_array:
        """``(N K, P)`` derivatives of the probability of a click at each position, by its standard
        deviation, with respect to the logarithms of parameters: those of each pair of query and
        item, then those that all share.
        """
        pairs, n_pairs = self._pairs, len(self.estimator._codes)
        shown, n_items = pairs >= 0, len(self._of_items)
        clicked = np.bincount(pairs[shown], self._log.clicks[shown], n_pairs + 1) > 0
        found: list[tuple[Floats, Any, Any]] = []  # values, rows and columns

        def add(ends: list[Estimator], pairs: Any, columns: Any, where: Any = shown) -> None:
            more, less = (self._probabilities(end, pairs) for end in ends)
            slopes = np.where(where, (more - less) / (2 * STEP * self._deviations), 0.0).ravel()
            (rows,) = np.nonzero(slopes)
            found.append((slopes[rows], rows, columns[rows // pairs.shape[1]]))

        for which, name in enumerate(self._of_items):
            ends = [self._doubled(name, step) for step in (STEP, -STEP)]
            for k in range(pairs.shape[1]):  # the pair at this position by its double
                double = pairs.copy()
                double[:, k] += np.where(shown[:, k], n_pairs + 1, 0)
                add(ends, double, np.maximum(n_items * pairs[:, k] + which, 0))
        for number, parameter in enumerate(self._shared):
            ends = [self._moved(parameter, step) for step in (STEP, -STEP)]
            column = n_items * n_pairs + number
            add(ends, pairs, np.full(len(pairs), column), shown & clicked[pairs])
        values, rows, columns = (np.concatenate(parts) for parts in zip(*found, strict=True))
        shape = pairs.size, n_items * n_pairs + len(self._shared)
        return sparse.coo_array((values, (rows, columns)), shape).tocsr()

    def _probabilities(self, estimator: Estimator, pairs: Any) -> Floats:
        """``(N, K)`` the probability of a click at each position given those above, by an estimator
        like the fitted one.
        """
        return estimator._conditional(pairs, self._log.clicks).clip(TINY, 1 - TINY)

    def _phrase(self, parameter: Parameter) -> str:
        """A parameter for messages."""
        attribute, place = parameter
        name = attribute.rstrip("_").replace("_", " ")
        if attribute in self._of_items:
            item = self.estimator._codes[place[0]] % len(self._log.item_labels)
            return f"the {name} of {self._log.item_labels[item]!r}"
        where = f" at position {place[0] + 1}" if place else ""
        after = f" after a click at {place[1]}" if place[1:] and place[1] else ""
        return f"the {name}{where}{after}"


def _variance(parts: Floats, covariance: Floats) -> float:
    """The variance of a sum of log-normal parts, from their means and the covariance that they have
    to first order.
    """
    products = np.maximum(np.outer(parts, parts), TINY**2)
    logs = np.minimum(covariance / products, MOST_VARIANCE)
    return float((products * np.expm1(logs)).sum())


def least_identified(information: Information, query: str, items: Sequence[str]) -> str:
    """What a log leaves open most, in words, if it does not tell the clicks on every list of some
    items of a query; else empty. Lists begin with each of the items, or with some of many.
    """
    order = np.arange(len(items))

    def clicks(estimator: Estimator) -> Floats:
        users = estimator.click_model(query, list(items))
        lists = [np.roll(order, -first)[: users.n_positions] for first in firsts]
        return np.array([users.click_probabilities(ranking) for ranking in lists])

    firsts = order[:: max(len(items) // MOST_LISTS, 1)]
    uncertainty = information.uncertainty(query, clicks)
    unidentified = uncertainty.is_unidentified(1 / information.n_sessions(query))
    if not unidentified.any():
        return ""
    return uncertainty.least_identified[int(unidentified.argmax())]
