"""Totals of a store: what its report counts, added up over impressions that may have left since."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..offline.interleaving import NOTHING, normal_mixture, outcomes, sign_test
from ..offline.stores import LOGGED, STORE, View, places_of
from .confidence import Interval, PairedDifference
from .served import AGENT, BY_GUARD, BY_LOT, INTERLEAVED, PRODUCTION

BY_AGENT, BY_PRODUCTION = (AGENT, BY_LOT), (PRODUCTION, BY_GUARD)


class Totals:
    """What is added up over the impressions of a store, in the order in which they were shown. All of it is JSON.

    Args:
        settings: of the store.
        stored: of the impressions that have left, as `View.totals` has them.

    Attributes:
        sources: how many lists each source chose.
        until, number: the time of the last impression that has left, and the largest number of these; None, 0 before.
        first, last: times of the first and the last impression of users; None before.
        clicks, late: how many, and how many of them came late.
        seen, clicked: of the agent and of production, by position.
        trial: of `PairedDifference`, up to the first impression by lot that is open.
        credit: of interleaved lists up to the first that is open: their number, wins, losses, credit, its squares, and the
            logarithm of the largest evidence so far.
        queries: by query the impressions, the clicks, how many impressions the trial has and their reward; by agent how many
            items took a slot, and how many slots were taken.
    """

    def __init__(self, settings: Mapping[str, Any], stored: Mapping[int, Any]) -> None:
        n = settings["n_positions"]
        self.sources, self.seen, self.clicked = [0] * 6, [[0] * n, [0] * n], [[0] * n, [0] * n]
        self.until: int | None = None
        self.first: int | None = None
        self.last: int | None = None
        self.clicks = self.late = self.number = 0
        self.trial, self.credit = list[float](), list[Any]([0, 0, 0, 0.0, 0.0, 0.0])
        vars(self).update(stored.get(STORE, {}))
        self.queries = {query: [*values] for query, values in stored.items() if query != STORE}

    def to_rows(self, queries: set[int]) -> list[tuple[int, str]]:
        """The rows of some queries and of the whole store, for a journal."""
        whole = {name: value for name, value in vars(self).items() if name != "queries"}
        rows = [(query, self.queries[query]) for query in sorted(queries)]
        return [(query, json.dumps(value)) for query, value in [*rows, (STORE, whole)]]

    def of_query(self, query: int) -> list[Any]:
        """The totals of a query."""
        return self.queries.setdefault(query, [0, 0, 0, 0.0, 0, 0])

    def difference(self, confidence: float) -> Interval:
        """Between agent and production."""
        trial = PairedDifference(0.0, confidence)
        trial.restore(self.trial)
        return trial.interval()

    def add(self, view: View, worths: NDArray[np.float64] | None) -> dict[str, NDArray[Any]]:
        """Add the impressions of a view; returns their columns.

        Args:
            view: of the store.
            worths: of `View.worths`.
        """
        names = ("number", "query", "source", "seen", "share", "shown", "items")
        columns = dict(zip(names, view.impressions(*names), strict=True))
        number, query, source, seen, share, shown, lists = columns.values()
        impression, position, late = view.clicks()
        of_users, place = source != LOGGED, places_of(number, impression)
        counted = of_users[place]
        place, position, late = place[counted], position[counted], late[counted].astype(bool)
        n_clicks = np.bincount(place, minlength=len(number))
        deepest = np.zeros(len(number), np.int64)
        np.maximum.at(deepest, place, position)
        seen = np.where(seen >= 0, np.maximum(seen, deepest), -1)
        self.clicks, self.late = self.clicks + len(place), self.late + int(late.sum())
        self.sources = (self.sources + np.bincount(source, minlength=6)).tolist()
        if of_users.any():
            self.first = min(int(shown[of_users].min()), self.first or 2**63)
            self.last = max(int(shown[of_users].max()), self.last or -(2**63))
        for row, sources in enumerate((BY_AGENT, BY_PRODUCTION)):
            who = np.isin(source, sources)
            for k in range(len(self.seen[row])):
                self.seen[row][k] += int((who & (seen > k)).sum())
                self.clicked[row][k] += int((who & (seen >= 0))[place[position == k + 1]].sum())
        self._add_queries(query[of_users], n_clicks[of_users], view.placed())
        worth = None if worths is None else worths[lists[place, position - 1]][~late]
        rewards = np.bincount(place[~late], worth, minlength=len(number)).astype(float)
        part = _until_open(np.isin(source, (BY_LOT, PRODUCTION)), seen)  # the order of clicks depends on the lists
        groups = np.zeros(len(part), np.int64) if 0 in view.ids("queries") else query[part]
        self._add_trial(worths, groups, rewards[part], source[part] == BY_LOT, share[part])
        part = _until_open(source == INTERLEAVED, seen)
        if len(part):
            clicks = np.zeros((len(number), len(self.seen[0])), np.int8)
            clicks[place, position - 1] = 1
            notes = view.notes()
            self._add_credit(outcomes([notes[each] for each in number[part].tolist()], clicks[part]), view.settings()["by"])
        return columns

    def _add_queries(self, query: NDArray[np.int64], clicks: NDArray[np.int64], placed: Iterable[tuple[int, int]]) -> None:
        """Add the impressions and the clicks of each query, and the items that took slots."""
        names, where = np.unique(query, return_inverse=True)
        counts, clicked = np.bincount(where, minlength=len(names)), np.bincount(where, clicks, len(names))
        for each, n, n_clicked in zip(names.tolist(), counts.tolist(), clicked.astype(int).tolist(), strict=True):
            totals = self.of_query(each)
            totals[0], totals[1] = totals[0] + n, totals[1] + n_clicked
        for agent, slot in placed:
            totals = self.of_query(agent)
            totals[4], totals[5] = totals[4] + 1, max(totals[5], slot + 1)  # free slots are taken in their order

    def _add_trial(
        self, worths: NDArray[np.float64] | None, groups: NDArray[Any], rewards: NDArray[np.float64],
        by_agent: NDArray[np.bool_], shares: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Add impressions to the difference between agent and production; arguments as of `PairedDifference.add_all`."""
        most = float(len(self.seen[0]) if worths is None else np.sort(worths)[-len(self.seen[0]) :].sum())
        trial, earlier = PairedDifference(most, 0.5), {each: totals[2:4] for each, totals in self.queries.items()}
        trial.restore(self.trial[:6] or trial.to_list())
        trial.add_all(groups, rewards, by_agent, shares, earlier)
        self.trial = [float(value) for value in trial.to_list()]
        for each, more in earlier.items():
            self.of_query(each)[2:4] = more

    def _add_credit(self, values: NDArray[np.float64], by: str) -> None:
        n, won, lost, total, squares, best = self.credit
        numbers = n + np.arange(1, len(values) + 1)
        wins, losses = won + np.cumsum(values > NOTHING), lost + np.cumsum(values < -NOTHING)
        sums, sums2 = np.cumsum([total, *values])[1:], np.cumsum([squares, *values**2])[1:]
        evidence = sign_test(wins, losses)
        if by != "team_draft":
            evidence, _ = normal_mixture(numbers, sums / numbers, deviation(numbers, sums, sums2))
        ends = (numbers, wins, losses, sums, sums2)
        self.credit = [*(each[-1].item() for each in ends), max(best, float(evidence.max()))]


def deviation(n: Any, sums: Any, squares: Any) -> Any:
    """The standard deviation of n values, by their sum and that of their squares."""
    return np.sqrt(np.maximum(squares / n - (sums / n) ** 2, 0.0))


def _until_open(wanted: NDArray[np.bool_], seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where some impressions are, those before the first of them that is open."""
    places = np.flatnonzero(wanted)
    waits = np.flatnonzero(seen[places] < 0)
    return places[: waits[0] if len(waits) else len(places)]
