"""The expected gain of a list by a click model, corrected by the model's errors in the log.

For a list that hardly anybody has seen a click model must speak. How far is it off? Each distinct list of the log is predicted
by the model fitted to the sessions that showed *other* lists, and what it earned above the prediction is explained by where
items stand, which items are neighbours, which stand anywhere above which, and the list itself. All these effects are drawn from
normal laws around 0 (ridge regression), of which one number τ, the model's typical error of a list, is not known. Its posterior
over a grid follows from the log in closed form. So the gain of any list over that in production has a posterior:

- where the log tells what the model gets wrong, the estimate is corrected, and need not rest on the model;
- where it does not, the standard error holds the model's typical error, the larger the less the list is like the logged ones;
- a short log says little about τ, so that errors of some percent of the reward stay possible.

Users may click more at one time than at another. So what lists earned above the prediction is compared within blocks of time
only: each of the twenty blocks has a level of its own, about which nothing is assumed.

Only lists without other effects are judged rightly: where an effect needs three items at certain places, nothing here sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ..estimation.estimator import Estimator
from ..log import BLOCKS, ClickLog, time_blocks
from .lists import DistinctLists, Lists

FOLDS = 5
"""The lists of a query fall into so many parts; those of one are predicted by the model fitted to the others."""
ERRORS = np.geomspace(0.001, 0.6, 24)
"""The values of τ that are weighed, in shares of what a session earns on average."""
USUAL_ERROR = 0.03
"""Before the log has spoken τ has a Cauchy law of this scale, in the same unit."""
OWN_LISTS = 40
"""The most frequent lists have effects of their own, the others share one variance."""
EFFECTS = 4
MOST_LISTS = 200_000
"""The most frequent lists; their effects take memory."""

Floats = NDArray[np.float64]


class Gains(NamedTuple):
    """The expected gains of lists over the production list.

    Attributes:
        predicted: ``(M,)`` by the model alone.
        means, errors: ``(M,)`` of the posterior.
    """

    predicted: Floats
    means: Floats
    errors: Floats

    @property
    def agreed(self) -> Floats:
        """``(M,)`` the smaller one of both: of many lists the one with the largest correction owes it to luck in the log."""
        return np.minimum(self.predicted, self.means)


class Correction:
    """What all models share: the effects of the logged lists, and how well the log tells them.

    Args:
        tally: the distinct lists of the query.
        production: the list in production.
        items: the items of lists that are to be judged; all others are as one.
    """

    def __init__(self, tally: DistinctLists, production: Lists, items: Sequence[int]) -> None:
        log, self.tally, self.production = tally.log, tally, production
        self.values = None if log.values is None else np.append(log.values_of(log.query_labels[0]), 0.0)  # the last that of -1
        self.place = np.full(len(log.item_labels) + 1, len(items))  # the last one is that of -1, and is never read
        self.place[list(items)] = np.arange(len(items))
        self.n_items = len(items) + 1
        often = np.argsort(-tally.counts, kind="stable")[:OWN_LISTS]
        self.own = {tuple(tally.lists[row].tolist()): column for column, row in enumerate(often.tolist())}
        self.lengths, of_length = np.unique(tally.lengths, return_inverse=True)
        self.shares = np.bincount(of_length.ravel(), tally.counts) / tally.counts.sum()
        self.average = float(tally.means @ tally.counts / tally.counts.sum())
        variance = float(tally.variances @ tally.counts / tally.counts.sum())
        self.precision = tally.counts / max(variance, 1e-12)
        self.rows = np.sort(np.argsort(-tally.counts, kind="stable")[:MOST_LISTS])
        self.precision = self.precision[self.rows]
        self.effects = self._effects(tally.lists[self.rows])
        cells = tally.index * BLOCKS + time_blocks(log)
        size = len(tally.lists) * BLOCKS
        sessions, earned = (np.bincount(cells, of, size).reshape(-1, BLOCKS)[self.rows] for of in (None, tally.earned))
        self.in_block = sessions / np.maximum(sessions.sum(axis=0), 1)  # shares of the lists
        self.level = earned.sum(axis=0) / np.maximum(sessions.sum(axis=0), 1)
        self.per_block = self.effects.T @ (sessions / max(variance, 1e-12))
        information = (self.effects.T @ sparse.diags(self.precision) @ self.effects).toarray()
        information -= self.per_block @ (self.effects.T @ self.in_block).T
        values, self.directions = linalg.eigh(information, driver="evd")
        self.information = np.maximum(values, 0.0)

    def _effects(self, lists: Lists) -> sparse.csr_matrix:
        """``(M, D)`` which effects each list has; in a row the squares sum to 1, a quarter for each kind of effect."""
        n, n_positions = self.n_items, lists.shape[1]
        items, rows, columns, sizes = self.place[lists], [], [], []

        def add(row: NDArray[np.int64], column: NDArray[np.int64], per_list: float) -> None:
            rows.append(row)
            columns.append(column)
            sizes.append(np.full(len(row), np.sqrt(1 / EFFECTS / max(per_list, 1))))

        present, at = np.nonzero(lists >= 0)
        add(present, at * n + items[present, at], n_positions)
        first = n_positions * n
        for above in range(n_positions):
            for below in range(above + 1, n_positions):
                present = np.flatnonzero(lists[:, below] >= 0)
                pair = items[present, above] * n + items[present, below]
                if below == above + 1:
                    add(present, first + pair, n_positions - 1)
                add(present, first + n * n + pair, n_positions * (n_positions - 1) / 2)
        column = np.array([self.own.get(tuple(ranking), -1) for ranking in lists.tolist()])
        add(np.flatnonzero(column >= 0), first + 2 * n * n + column[column >= 0], 1)
        size = len(lists), first + 2 * n * n + len(self.own)
        return sparse.csr_matrix((np.concatenate(sizes), (np.concatenate(rows), np.concatenate(columns))), size)

    def by_length(self, lists: Lists) -> Lists:
        """The lists cut to each length of the log, one length after the other."""
        positions = np.arange(lists.shape[1])
        return np.vstack([np.where(positions < length, lists, -1) for length in self.lengths]).astype(np.int32)

    def over_lengths(self, values: Floats, shares: Floats) -> Floats:
        """The mean over the lengths of what each list of `by_length` has, in the first axis."""
        return np.tensordot(shares, values.reshape(len(shares), -1, *values.shape[1:]), axes=1)

    def contrasts(self, lists: Lists, shares: Floats) -> tuple[Floats, Floats]:
        """Of each list's effects less those of the list in production ``(M, D)``, and the square of the effect that is all of
        the list's own ``(M,)``, where it has none in the log."""
        both = self.by_length(np.vstack([self.production, lists]))
        effects = self.over_lengths(self._effects(both).toarray(), shares)
        unknown = np.array([tuple(ranking) not in self.own for ranking in both.tolist()], float)
        cut = both.reshape(len(shares), -1, both.shape[1])
        differs = (cut[:, 1:] != cut[:, :1]).any(axis=2)
        alone = (shares[:, None] ** 2 * unknown.reshape(len(shares), -1)[:, 1:] * differs).sum(axis=0) / EFFECTS
        return effects[1:] - effects[0], alone

    def predict(self, estimator: Estimator, lists: Lists) -> Floats:
        """``(M,)`` what a click model expects lists to earn."""
        own, any_click, cutoff = self.tally.log, self.tally.reward == "any_click", self.tally.cutoff
        sessions = np.zeros(lists.shape, np.int8), np.zeros(len(lists), np.int32)
        log = ClickLog(lists, *sessions, own.item_labels, own.query_labels)
        rates = estimator.click_probabilities(log, given=any_click)[:, :cutoff]
        if self.values is not None:
            rates = rates * self.values[lists[:, :cutoff]]
        return 1 - (1 - rates).prod(axis=1) if any_click else rates.sum(axis=1)


class Corrected:
    """A click model with the correction of its errors.

    Args:
        correction: of the query.
        whole: the model fitted to all sessions.
        parts: those fitted to the sessions without the lists of a part.
        part_of: ``(M,)`` the part of each distinct list.
    """

    def __init__(
        self, correction: Correction, whole: Estimator, parts: Sequence[Estimator], part_of: NDArray[np.integer]
    ) -> None:
        self.correction, self.whole, self.parts = correction, whole, parts
        tally = correction.tally
        lists, part_of = tally.lists[correction.rows], part_of[correction.rows]
        predicted = np.empty(len(lists))
        for part, estimator in enumerate(parts):
            rows = part_of == part
            if rows.any():
                predicted[rows] = correction.predict(estimator, lists[rows])
        beyond = correction.effects.T @ (correction.precision * (tally.means[correction.rows] - predicted))
        beyond -= correction.per_block @ (correction.level - predicted @ correction.in_block)
        self.beyond = correction.directions.T @ beyond
        self.variances = (ERRORS * correction.average) ** 2
        shrunk = self.variances[:, None] / (1 + self.variances[:, None] * correction.information)
        evidence = 0.5 * (shrunk * self.beyond**2 - np.log1p(self.variances[:, None] * correction.information)).sum(axis=1)
        prior = np.log(ERRORS / (1 + (ERRORS / USUAL_ERROR) ** 2))  # of a Cauchy law, on a grid of logarithms
        weights = np.exp(evidence + prior - (evidence + prior).max())
        self.shrunk, self.weights = shrunk, weights / weights.sum()

    @property
    def error(self) -> float:
        """τ, the typical error of the model for a list."""
        return float(self.weights @ np.sqrt(self.variances))

    def gains(self, lists: Lists, *, whole: bool = False, rough: bool = False) -> Gains:
        """What lists of the log's items would gain, each ``K`` items long.

        Args:
            lists: ``(M, K)``.
            whole: in the sessions that show whole lists; else in sessions of all the lengths of the log.
            rough: leave out of the errors what the model's parameters are uncertain by, which costs more than the rest.
        """
        correction = self.correction
        shares = (correction.lengths == correction.lengths.max()).astype(np.float64) if whole else correction.shares
        both = correction.by_length(np.vstack([correction.production, lists]))

        def gain(estimator: Estimator) -> Floats:
            earned = correction.over_lengths(correction.predict(estimator, both), shares)
            return earned[1:] - earned[0]

        predicted = gain(self.whole)
        contrasts, alone = correction.contrasts(lists, shares)
        turned = contrasts @ correction.directions
        means = (turned * self.beyond) @ self.shrunk.T  # for each τ
        variances = turned**2 @ self.shrunk.T + np.outer(alone, self.variances)
        mean = means @ self.weights
        variance = (variances + (means - mean[:, None]) ** 2) @ self.weights
        if not rough:  # it shows in how the fits without a part differ
            variance += np.var([gain(estimator) for estimator in self.parts], axis=0)
        return Gains(predicted, predicted + mean, np.sqrt(variance))
