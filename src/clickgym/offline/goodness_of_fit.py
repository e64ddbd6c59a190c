"""Test whether a click model fits: compare held-out clicks with its predictions, by patterns that it cannot learn.

A click model knows each item by one attraction (and satisfaction) and each position by its examination. So it cannot follow
users for whom an item gains or loses by its neighbours, or by a position of its own. Clicks are therefore summed over all
displays of an item at a position, of an item right below another, and of an item right above another. Nor does a model know the
time: where rates change, it takes the rates of a time for the attraction of the items that were shown then. So clicks are also
summed over each of twenty blocks of time, and over the displays of an item in each fifth of it.

Under a model that fits, the sums of observed less predicted clicks differ from 0 by chance alone. Their squares in units of
their standard errors are added up over the groups of a pattern; the sum follows a scaled chi-squared law (Satterthwaite), whose
scale and degrees of freedom come from the covariance of the groups, counted in the sessions. It also counts that the
predictions were estimated: from n sessions, m held out, the variance is up to 1 + m / n times that of the clicks.

`check_above` asks a narrower question of all sessions at once, and so sees smaller faults: do clicks depend on how attractive
the items above are, in another way than predicted?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtrc

from .counting import by_query
from .distinct import distinct
from .estimation.estimator import Estimator
from .log import BLOCKS, ClickLog, time_blocks

FITS = 0.01
"""A model fits if what it leaves unexplained has at least this probability by chance, over all patterns."""
LEAST_DISPLAYS = 50
"""Displays of a group that is looked at."""
LEAST_EXPECTED = 5
"""Clicks that a model expects in it, and displays without: of fewer no sum is nearly normal."""
LEAST_CLICKS = 50
"""Clicks, and displays without, that are expected at a position where `check_above` looks at what stands above it."""
MOST_GROUPS = 500

PATTERNS = ("item at position", "item below item", "item above item", "block of time", "item in a fifth of the time")
FIFTHS = 5

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """Displays of the same kind within a pattern.

    Attributes:
        name: which, in words.
        displays: how many.
        predicted, observed: click rates.
        error: standard error of their difference.
    """

    name: str
    displays: int
    predicted: float
    observed: float
    error: float

    @property
    def deviation(self) -> float:
        """Observed less predicted, in standard errors."""
        return (self.observed - self.predicted) / self.error


@dataclass(frozen=True)
class Pattern:
    """Held-out clicks and a model's predictions, by the groups of a pattern.

    Attributes:
        name: one of `PATTERNS`.
        n_groups: that are looked at.
        mean_square: of the deviations in standard errors; 1 by chance.
        p_value: the probability of as much by chance.
        worst: the group that deviates most.
    """

    name: str
    n_groups: int
    mean_square: float
    p_value: float
    worst: Group


@dataclass(frozen=True)
class Fit:
    """The test of fit of a click model.

    Attributes:
        model: its name.
        patterns: what was looked at; empty where no group has enough displays.
        p_value: of all patterns: the least of theirs, times their number.
    """

    model: str
    patterns: tuple[Pattern, ...]
    p_value: float

    @property
    def fits(self) -> bool:
        """Whether the model was tested, and chance can explain its errors."""
        return bool(self.patterns) and self.p_value >= FITS


def check_fit(
    model: str, estimator: Estimator, log: ClickLog, n_train: int, lists: tuple[Indices, Indices] | None = None
) -> tuple[Fit, tuple[tuple[str, Group], ...]]:
    """Test a click model on held-out sessions of a query.

    Args:
        model: its name.
        estimator: fitted to other sessions.
        log: the held-out sessions.
        n_train: sessions of the query to which it was fitted.
        lists: a session of each distinct list, and which of them each session shows; None: they are looked for.

    Returns:
        The test, and all groups, each with the name of its pattern.
    """
    first, index = distinct(log.items)[:2] if lists is None else lists
    predicted = estimator.click_probabilities(log[first])[index]
    patterns, groups = [], []
    for name, rows, positions, members, labels in _members(log):
        large, deviations, covariance = _deviations(log, predicted, rows, positions, members)
        if not len(large):
            continue
        counts = np.bincount(members, minlength=large.max() + 1)[large]
        rates = [np.bincount(members, values[rows, positions], large.max() + 1)[large] for values in (predicted, log.clicks)]
        covariance *= 1 + len(log) / max(n_train, 1)
        errors = np.sqrt(np.diag(covariance))
        of_pattern = [
            Group(labels(member), int(count), float(expected / count), float(clicks / count), float(error / count))
            for member, count, expected, clicks, error in zip(large.tolist(), counts, *rates, errors, strict=True)
        ]
        groups += [(name, group) for group in of_pattern]
        patterns.append(_pattern(name, deviations / errors, covariance / np.outer(errors, errors), of_pattern))
    p_value = min([1.0, *(len(patterns) * pattern.p_value for pattern in patterns)])
    return Fit(model, tuple(patterns), p_value), tuple(groups)


def check_above(log: ClickLog, predicted: Floats | None = None) -> float:
    """Test whether clicks depend on what stands above them in another way than predicted (a score test).

    Null hypothesis: given the list, an item is clicked at its position with the predicted probability. Observed less predicted
    clicks are multiplied with the click rate that the item at each position above has there, less the mean of this rate over
    the sessions that show the same item at the same position. Under the null hypothesis the sums over all sessions are normal
    with mean 0 and the covariance that follows from the predictions; at each position they are compared with a chi-squared law.

    Args:
        log: sessions of any queries.
        predicted: ``(N, K)`` probabilities of a click given the list. None: the click rate of each item at each position, which
            tests the assumption of the estimator ``item-position``.

    Returns:
        The least p-value of the positions, times their number; NaN where none has enough clicks, or none of its items ever
        stands below other ones.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> items = rng.permuted(np.tile([0, 1, 2], (5000, 1)), axis=1)
        >>> attracted = rng.random(items.shape) < np.array([0.2, 0.5, 0.8])[items]
        >>> first = attracted & (attracted.cumsum(axis=1) == 1)  # users who stop after their first click
        >>> logs = [ClickLog(items, clicks, [0] * 5000, ("a", "b", "c"), ("q",)) for clicks in (attracted, first)]
        >>> [check_above(log) > 0.01 for log in logs]
        [True, False]
    """
    order, codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
    n_sessions, n_positions = pairs.shape
    cells = np.where(pairs < 0, len(codes), pairs) * np.int64(n_positions) + np.arange(n_positions)
    size, clicks = (len(codes) + 1) * n_positions, log.clicks[order]
    counts = np.maximum(np.bincount(cells.ravel(), minlength=size), 1)
    rates = (np.bincount(cells.ravel(), clicks.ravel(), size) / counts)[cells]
    expected = rates if predicted is None else predicted[order]
    p_values = []
    for k in range(1, n_positions):
        chance = np.where(pairs[:, k] < 0, 0.0, expected[:, k])
        if min(chance.sum(), (1 - chance).sum()) < LEAST_CLICKS:
            continue
        above = np.array([rate - (np.bincount(cells[:, k], rate, size) / counts)[cells[:, k]] for rate in rates.T[:k]])
        values, directions = np.linalg.eigh((chance * (1 - chance) * above) @ above.T)
        told = values > max(1e-14 * n_sessions, 1e-9 * values.max())
        if told.any():
            deviations = (directions.T @ (above @ (clicks[:, k] - chance)))[told] ** 2 / values[told]
            p_values.append(float(chdtrc(told.sum(), deviations.sum())))
    return min(1.0, len(p_values) * min(p_values)) if p_values else np.nan


def _members(log: ClickLog) -> Iterator[tuple[str, Indices, Indices, Indices, Callable[[int], str]]]:
    """Of each pattern the displays, by session and position, the group of each, and what a group is called."""
    items, n_items, label = log.items, len(log.item_labels), log.item_labels
    rows, positions = np.nonzero(items >= 0)
    yield (
        PATTERNS[0], rows, positions, positions * n_items + items[rows, positions],
        lambda member: f"{label[member % n_items]} at position {member // n_items + 1}",
    )  # fmt: skip
    lower, above = np.nonzero(items[:, 1:] >= 0)
    pair = items[lower, above].astype(np.int64) * n_items + items[lower, above + 1]
    yield PATTERNS[1], lower, above + 1, pair, lambda member: f"{label[member % n_items]} below {label[member // n_items]}"
    yield PATTERNS[2], lower, above, pair, lambda member: f"{label[member // n_items]} above {label[member % n_items]}"
    blocks = time_blocks(log)[rows]
    yield PATTERNS[3], rows, positions, blocks, lambda member: f"block {member + 1} of {BLOCKS}"
    yield (
        PATTERNS[4], rows, positions, blocks // (BLOCKS // FIFTHS) * n_items + items[rows, positions],
        lambda member: f"{label[member % n_items]} in fifth {member // n_items + 1} of the time",
    )  # fmt: skip


def _deviations(
    log: ClickLog, predicted: Floats, rows: Indices, positions: Indices, members: Indices
) -> tuple[Indices, Floats, Floats]:
    """The groups with enough displays, the sums of observed less predicted clicks, and their covariance.

    The variance is that of the model's predictions: where clicks are rare, the one counted in them would be too small.
    """
    rates = predicted[rows, positions]
    counts, expected, variance = (np.bincount(members, weights) for weights in (None, rates, rates * (1 - rates)))
    large = np.argsort(-counts, kind="stable")[:MOST_GROUPS]
    enough = np.minimum(expected, counts - expected) >= LEAST_EXPECTED
    large = np.sort(large[enough[large] & (counts[large] >= LEAST_DISPLAYS)])
    residual = sparse.csr_matrix((log.clicks[rows, positions] - rates, (rows, members)), (len(log), len(counts)))[:, large]
    covariance = (residual.T @ residual).toarray()
    scale = np.sqrt(variance[large] / np.maximum(np.diag(covariance), np.finfo(float).tiny))
    covariance *= np.outer(scale, scale)
    np.fill_diagonal(covariance, variance[large])
    return large, np.asarray(residual.sum(axis=0)).ravel(), covariance


def _pattern(name: str, deviations: Floats, correlation: Floats, groups: list[Group]) -> Pattern:
    """The sum of squares of deviations beside the chi-squared law with its mean and variance."""
    n = len(deviations)
    scale = float((correlation**2).sum()) / n
    p_value = float(chdtrc(n / scale, float((deviations**2).sum()) / scale))
    worst = max(groups, key=lambda group: abs(group.deviation))
    return Pattern(name, n, float((deviations**2).mean()), p_value, worst)
