"""Click models fitted to a log once, for the decisions of all its queries; and the sessions of a query."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_text
from ..counts import Counts
from ..distinct import distinct
from ..estimation.estimator import MODEL_ESTIMATORS, ConvergenceWarning, Estimator
from ..estimation.settings import CONVERGED
from ..estimation.shared import shared_parameters
from ..fitting import hold_out, query_instance
from ..log import ClickLog
from .correction import FOLDS
from .lists import of_query

SHARED = ("CM", "DCM", "SDBN", "PBM", "UBM", "DBN", "CCM")
"""The click models that are fitted to all sessions."""
ALONE = ("PBM", "UBM")
"""Those that are fitted to the sessions of a query, too: ``by query``."""
BY_QUERY = " by query"
HELD_OUT = 0.3
LEAST_ITEMS = 10
MOST_SESSIONS = 100_000
"""Of a query, that models are fitted to without a part of the lists, and on which they are tested."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class SplitSessions:
    """The sessions of one query, as logs of their own.

    Attributes:
        query: its label.
        own, train, test: all of them, those to learn from, those held out; items have the same numbers in all.
        parts: ``(N,)`` the part of each session of ``own``: sessions with the same list are in the same part.
    """

    query: str
    own: ClickLog
    train: ClickLog
    test: ClickLog
    parts: Indices

    @property
    def least_items(self) -> int:
        """How many items a decision ranks, at least."""
        return max(LEAST_ITEMS, self.own.n_positions)

    @cached_property
    def by_displays(self) -> list[int]:
        """The items, those displayed most to learn from first."""
        displays = np.bincount(self.train.items[self.train.items >= 0])
        labels = self.own.item_labels
        return sorted(np.flatnonzero(displays).tolist(), key=lambda item: (-displays[item], labels[item]))

    def check(self) -> None:
        """Raise an error if there is too little data about the query, or no item is worth anything."""
        if not len(self.train) or not len(self.test):
            which = "held out" if not len(self.test) else "left to learn from"
            raise ValueError(f"the query {self.query!r} has {len(self.own)} sessions, of which none was {which}; expected more")
        if len(np.unique(self.train.items[self.train.items >= 0])) < self.own.n_positions:
            query_instance(self.train, self.query, {}, self.least_items)  # which says so
        most = self.by_displays[: self.least_items]
        if self.own.values is not None and not self.own.values_of(self.query)[most].any():
            raise ValueError(f"the values of the {len(most)} items of the query {self.query!r} that are ranked are all 0")


class Models:
    """The click models of a log, fitted once for all queries.

    Args:
        log: sessions of any queries; if it has times, the decisions do not depend on the order of the file, and a session that
            the log has several times counts once: its copies tell nothing new.
        reward: what a list earns; only models that know it are fitted.
        seed: of the held-out sessions.
        counts: of a larger log, of which ``log`` has the sessions of one query. Examination of PBM and UBM and probabilities of
            leaving of the DCM come from its most frequent other queries. All else, such as how users of the DBN go on, is
            estimated from this query alone.

    Attributes:
        n_sessions, n_queries: of the log.
        n_repeated: how many sessions were left out.
        fitted: by name, to the sessions of all queries that are not held out.
    """

    def __init__(self, log: ClickLog, reward: str, seed: int, counts: Counts | None = None) -> None:
        again = log.repeated
        self.n_repeated = int(again.sum())
        if log.times is not None:
            log = log[log.order[~again[log.order]]]
        self.log, self.seed = log, seed
        self.n_sessions, self.n_queries = len(log), len(np.unique(log.queries))
        self.given: Mapping[str, NDArray[np.float64]] = {}
        if counts is not None:
            self.n_sessions, self.n_queries = counts.n_sessions, len(counts.query_labels)
            self.given = shared_parameters(counts, log.query_labels[log.queries[0]], log.n_positions)
        self.kinds = {name: kind for name, kind in MODEL_ESTIMATORS.items() if reward in kind.model_class.rewards}
        self.train, self.test = hold_out(log, HELD_OUT, seed)
        self._complete: dict[str, tuple[Estimator, list[Estimator]]] = {}

    @cached_property
    def fitted(self) -> dict[str, Estimator]:
        known = {name: self.kinds[name] for name in SHARED if name in self.kinds}
        return {name: CONVERGED.fit(kind, self.train, given=self.given.get(name)) for name, kind in known.items()}

    @cached_property
    def parts(self) -> Indices:
        """``(N,)`` the part of each session: the lists of each query are dealt to the parts in turn, the most frequent
        first."""
        first, index, counts = distinct(np.column_stack([self.log.queries, self.log.items]))
        queries = self.log.queries[first]
        order = np.lexsort((-counts, queries))
        _, begin = np.unique(queries[order], return_index=True)
        part = np.empty(len(first), np.int64)
        part[order] = (np.arange(len(first)) - np.repeat(begin, np.diff([*begin, len(first)]))) % FOLDS
        return part[index]

    @cached_property
    def _rows(self) -> dict[str, tuple[Indices, Indices, Indices]]:
        """By query its rows in the log, and among those to learn from and those held out."""
        logs = self.log, self.train, self.test
        orders = [np.argsort(log.queries, kind="stable") for log in logs]
        labels = range(len(self.log.query_labels) + 1)
        ends = [np.searchsorted(log.queries[order], labels) for log, order in zip(logs, orders, strict=True)]
        return {
            query: tuple(order[end[i] : end[i + 1]] for order, end in zip(orders, ends, strict=True))  # type: ignore[misc]
            for i, query in enumerate(self.log.query_labels)
        }

    def sessions(self, query: str) -> SplitSessions:
        """The sessions of a query.

        Raises:
            ValueError: if the log has no such query, or hardly any sessions of it.
        """
        if check_text("query", query) not in self._rows:
            query_instance(self.log, query, {})  # which says so, and which queries there are
        rows, train, test = self._rows[query]
        items = np.setdiff1d(self.log.items[rows], -1)
        learned, held_out = of_query(self.train, query, train, items), of_query(self.test, query, test, items)
        return SplitSessions(query, of_query(self.log, query, rows, items), learned, held_out, self.parts[rows])

    def of(self, sessions: SplitSessions) -> dict[str, Estimator]:
        """All models that cover a query, fitted without the held-out sessions."""
        # A query that is alone has the log's examination for its own.
        alone = [name for name in ALONE if name in self.kinds and self.n_queries > 1]
        return self.fitted | {f"{name}{BY_QUERY}": CONVERGED.fit(self.kinds[name], sessions.train) for name in alone}

    def complete(self, name: str, sessions: SplitSessions | None = None) -> tuple[Estimator, list[Estimator]]:
        """A model of a query fitted to all sessions, and to those without the lists of each part.

        Args:
            name: of the model.
            sessions: of the query; None for a model that all queries share.
        """
        if sessions is not None and name.endswith(BY_QUERY):
            return self._fit_parts(name.removesuffix(BY_QUERY), sessions.own, sessions.parts)
        if name not in self._complete:
            self._complete[name] = self._fit_parts(name, self.log, self.parts, self.given.get(name))
        return self._complete[name]

    def part(self, queries: Sequence[str]) -> Models:
        """The same models, with the sessions of some queries only: what a worker needs for these."""
        part = copy(self)
        of_queries = [np.sort(np.concatenate([self._rows[query][i] for query in queries])) for i in range(3)]
        part.log, part.train, part.test = (
            log[rows] for log, rows in zip((self.log, self.train, self.test), of_queries, strict=True)
        )
        part.__dict__ |= {"fitted": self.fitted, "parts": self.parts[of_queries[0]]}
        part.__dict__.pop("_rows", None)
        return part

    def prepare(self) -> None:
        """Fit the models that all queries share, so that copies of this object need not do it."""
        for name in self.fitted:
            self.complete(name)

    def _fit_parts(
        self, name: str, log: ClickLog, parts: Indices, given: NDArray[np.float64] | None = None
    ) -> tuple[Estimator, list[Estimator]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            whole, few = CONVERGED.fit(self.kinds[name], log, given=given), self._few(log)
            log, parts = log[few], parts[few]
            shown = [log[parts != part] for part in range(parts.max() + 1)]
            return whole, [CONVERGED.fit(self.kinds[name], rest, given=given) for rest in shown]

    def _few(self, log: ClickLog) -> Indices:
        """Sessions of each query, at most so many, drawn at random: what a model gets wrong shows in them as well."""
        order = np.random.default_rng(self.seed).permutation(len(log))
        queries = log.queries[order]
        first = np.searchsorted(queries, queries, sorter=(by_query := np.argsort(queries, kind="stable")))
        rank = np.empty(len(log), np.int64)
        rank[by_query] = np.arange(len(log)) - first[by_query]
        return np.sort(order[rank < MOST_SESSIONS])
