"""The lists of a query in the log, their rewards, and the differences between them.

Nothing is assumed of users here: a list is judged by the sessions that showed it, and of several lengths by those of each
length. A list of K items is shown in short where a session has fewer results: its first ones. So what it earned more than the
list in production is the mean over the lengths that tell of both, weighed by their shares of the sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..distinct import distinct
from ..evaluation import LEAST_SESSIONS
from ..log import ClickLog

__all__ = ["LEAST_SHOWN", "DistinctLists", "Measured", "measure", "of_query", "per_session", "production_list"]

LEAST_SHOWN = 30
"""Sessions of a list below which nobody knows what it earned."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Lists = NDArray[np.int32]


def of_query(log: ClickLog, query: str, sessions: NDArray[np.integer], items: NDArray[np.integer]) -> ClickLog:
    """The sessions of one query as a log of their own, with only the labels of this query.

    Args:
        log: sessions of all queries.
        query: its label.
        sessions: rows of the log.
        items: those of the query, increasing.
    """
    part = log[sessions]
    return ClickLog(
        np.where(part.items < 0, -1, np.searchsorted(items, part.items)), part.clicks, np.zeros(len(part), np.int32),
        tuple(log.item_labels[item] for item in items.tolist()), (query,),
        propensities=part.propensities, list_propensities=part.list_propensities, times=part.times,
    )  # fmt: skip


def per_session(log: ClickLog, reward: str, cutoff: int | None) -> Floats:
    """``(N,)`` the reward of each session: its clicks, or 1 for any click."""
    clicks = log.clicks[:, :cutoff].sum(axis=1)
    return np.minimum(clicks, 1.0) if reward == "any_click" else clicks.astype(np.float64)


class DistinctLists:
    """The distinct lists of some sessions, and their rewards.

    Attributes:
        lists: ``(M, K)``, -1 below the end.
        first: ``(M,)`` the first session of each.
        index: ``(N,)`` the list of each session.
        counts: ``(M,)`` sessions.
        means, variances: ``(M,)`` of what a session earned.
        lengths: ``(M,)`` items.
    """

    def __init__(self, log: ClickLog, reward: str, cutoff: int | None) -> None:
        self.first, self.index, self.counts = distinct(log.items)
        self.lists = log.items[self.first]
        earned = per_session(log, reward, cutoff)
        self.means = np.bincount(self.index, earned) / self.counts
        self.variances = np.maximum(np.bincount(self.index, earned**2) / self.counts - self.means**2, 0.0)
        self.lengths = (self.lists >= 0).sum(axis=1)

    def row(self, ranking: Sequence[int] | Lists, length: int) -> int:
        """The row of a list of so many items that begins as ``ranking``; -1 if it was not shown."""
        same = (self.lengths == length) & (self.lists[:, :length] == np.asarray(ranking)[:length]).all(axis=1)
        return int(same.argmax()) if same.any() else -1


def production_list(shown: DistinctLists) -> Lists:
    """The production list: of the longest lists, the one that most sessions show. A shorter list counts if it has the same
    first items.
    """
    longest = shown.lists[shown.lengths == shown.lengths.max()]
    sessions = np.zeros(len(longest))
    for length in np.unique(shown.lengths).tolist():
        rows = shown.lengths == length
        kinds, index = np.unique(np.vstack([longest[:, :length], shown.lists[rows, :length]]), axis=0, return_inverse=True)
        index = index.ravel()
        sessions += np.bincount(index[len(longest) :], shown.counts[rows], len(kinds))[index[: len(longest)]]
    best: Lists = longest[int(sessions.argmax())]
    return best


@dataclass(frozen=True)
class Measured:
    """A logged list compared with the production list, by the sessions that showed them.

    Attributes:
        labels: of its items, from the top.
        sessions: that showed it.
        share: of the query's sessions, those of lengths that tell of both lists.
        value: what it earned per session.
        difference: how much more than the list in production.
        standard_error: of the difference.
        interval: of the difference; all lists' intervals hold at once.
        p_value: of there being no gain, times the number of lists that stood to choose; at most 1.
    """

    labels: tuple[str, ...]
    sessions: int
    share: float
    value: float
    difference: float
    standard_error: float
    interval: tuple[float, float]
    p_value: float


def measure(
    log: ClickLog, shown: DistinctLists, production: Lists, level: float
) -> tuple[tuple[Measured, ...], tuple[Lists, ...]]:
    """Compare logged lists with the production list; the most certain gain comes first.

    Args:
        log: the sessions of the query.
        shown: its distinct lists.
        production: the list in production.
        level: probability that any of the intervals errs on one side.

    Returns:
        What was measured, and the lists.
    """
    longest = (shown.lengths == len(production)) & (shown.counts >= LEAST_SESSIONS)
    rows = [row for row in np.flatnonzero(longest).tolist() if (shown.lists[row] != production).any()]
    comparisons = [(row, gain) for row in rows if (gain := _gain(shown, shown.lists[row], production)) is not None]
    z = NormalDist().inv_cdf(1 - level / max(len(comparisons), 1))
    measured: list[tuple[Measured, Lists]] = []
    for row, (difference, error, share, whole) in comparisons:
        ranking = shown.lists[row]
        labels = tuple(log.item_labels[item] for item in ranking.tolist())
        # A list that gains in sessions that show a part of it alone is not better.
        p_value = min(1.0, len(comparisons) * NormalDist().cdf(-difference / error)) if whole > 0 else 1.0
        interval = difference - z * error, difference + z * error
        sessions, value = int(shown.counts[row]), float(shown.means[row])
        measured.append((Measured(labels, sessions, share, value, difference, error, interval, p_value), ranking))
    measured.sort(key=lambda pair: (pair[0].p_value > level, -pair[0].interval[0]))
    return tuple(each for each, _ in measured), tuple(ranking for _, ranking in measured)


def _gain(shown: DistinctLists, ranking: Lists, production: Lists) -> tuple[float, float, float, float] | None:
    """What a list earned more than that in production, the standard error, the share of the sessions that tell, and what it
    earned more in sessions that show the whole list; None where these do not tell."""
    total = difference = variance = whole = 0.0
    for length in np.unique(shown.lengths).tolist():
        sessions = float(shown.counts[shown.lengths == length].sum())
        if (ranking[:length] == production[:length]).all():
            total += sessions
            continue
        rows = [shown.row(each, length) for each in (ranking, production)]
        if min(rows) < 0 or min(shown.counts[row] for row in rows) < LEAST_SHOWN:
            if length == len(production):
                return None
            continue
        whole = float(shown.means[rows[0]] - shown.means[rows[1]])  # in the end of the longest lists
        total += sessions
        difference += sessions * float(shown.means[rows[0]] - shown.means[rows[1]])
        # A session more or less of another reward: no variance is 0 because a few sessions were alike.
        variance += sessions**2 * sum(float(shown.variances[row] + 1 / shown.counts[row]) / shown.counts[row] for row in rows)
    return difference / total, variance**0.5 / total, total / float(shown.counts.sum()), whole
