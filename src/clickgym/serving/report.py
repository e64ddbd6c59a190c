"""Report of a service: counts, clicks by position, the difference between agent and production; as text, page or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_path
from ..core.files import write_whole
from ..core.formats import finite, one_line
from ..core.notebook import html_table
from ..core.statistics import CONFIDENCE
from ..core.templates import templates
from ..offline.distinct import grouped
from ..offline.interleaving import normal_mixture
from ..offline.stores import LOGGED, View, utc
from .confidence import Interval
from .served import BY_LOT, INTERLEAVED, PRODUCTION
from .totals import BY_AGENT, BY_PRODUCTION, Totals, deviation

MOST_QUERIES = 20
"""Of the queries by traffic so many are named, and of those that are back at production."""
HALF = 20
"""Impressions in each half of a query's life, without which nobody says whether its agent has changed its mind."""


@dataclass(frozen=True)
class Position:
    """Clicks on one position of the lists that the agent chose, and of those that production chose.

    Attributes:
        position: from 1.
        agent_seen, production_seen: the number of closed impressions in which the position was seen.
        agent_clicks, production_clicks: the number of clicks on it, also late ones.
    """

    position: int
    agent_seen: int
    agent_clicks: int
    production_seen: int
    production_clicks: int


@dataclass(frozen=True)
class Query:
    """A query and its traffic.

    Attributes:
        query: the user's own id.
        impressions, clicks: how many.
        guarded: whether the guard stopped the agent for this query.
    """

    query: str | int
    impressions: int
    clicks: int
    guarded: bool


@dataclass(frozen=True)
class Credit:
    """What interleaved lists say: a preference for the items of the agent, or for those of its rival; not clicks.

    Attributes:
        by: the method.
        against: the rival.
        n: the interleaved impressions that are counted: those before the first that is still open.
        wins, losses: in how many the agent has more credit, and in how many less.
        mean, low, high: credit of an impression, positive for the agent, with an interval that is valid at all times; infinite
            before 100 impressions.
        p_value: of no preference, at all times.
        to_go: after how many further impressions the interval excludes 0 if the mean stays as it is; None: not within 10⁹.
    """

    by: str
    against: str
    n: int
    wins: int
    losses: int
    mean: float
    low: float
    high: float
    p_value: float
    to_go: int | None

    def __str__(self) -> str:
        if not self.n:
            return f"nothing interleaved with {self.against} is closed yet"
        verdict = "the agent is preferred" if self.mean > 0 else f"{self.against} is preferred"
        if self.p_value > 1.0 - CONFIDENCE:
            more = "no end in sight" if self.to_go is None else f"about {self.to_go:,} impressions more, if this stays"
            verdict = f"not decided yet ({more})"
        counts = f"the agent wins {self.wins:,} and loses {self.losses:,} of {self.n:,} impressions"
        interval = f"{self.low:+.4f} to {self.high:+.4f}"
        return (
            f"interleaved with {self.against} by {self.by}: {counts}, credit {self.mean:+.4f} ({interval}), p = "
            f"{self.p_value:.2g} at any time: {verdict}. Credit is a preference for items of one list, not clicks: where a "
            "click may end a session, it can prefer the list that gets fewer clicks"
        )


@dataclass(frozen=True)
class Report:
    """Report of a service up to now: counts, clicks, and the difference between agent and production.

    Attributes:
        time: when the report was made, in UTC.
        store_from, store_to: when the first and the last impression was shown; None where there is none.
        queries, items: how many different ones there are.
        impressions, open: how many lists were shown, and how many of them are still open.
        by_agent, by_production: how many lists the agent chose, and how many production.
        learned_from_log: how many sessions `Ranker.from_log` learned; no other number counts them.
        clicks, late: the number of clicks, and how many of them came after their impression was closed, so that no agent
            learned from them.
        positions: clicks by position.
        replaced: how often a new item took the slot of another.
        traffic: the queries with the most impressions.
        compared: the number of queries with at least 40 impressions, whose two halves can be compared.
        changed: in how many of them the item most often shown first differs between the first and the second half.
        guarded: at most 20 of the queries for which the guard stopped the agent.
        n_guarded: how many such queries there are.
        difference: how many more clicks an impression of the agent earns than one of production, with an interval that is valid
            at all times; only clicks before the end of an impression count. None without a list of production.
        confidence: of the interval.
        interleaved: how many lists were made of the agent's and its rival's.
        credit: what these say; None where no list was to be interleaved.
        valued: whether the difference is one of the values of clicks (``item_values``) instead of their number.
        pruned: how many impressions have left the store (`Ranker.prune`). All numbers count them, but ``compared`` and
            ``changed``.
        pruned_until: when the last of them was shown; None without any.

    Example:
        >>> from clickgym import Ranker
        >>> print(str(Ranker(n_positions=2, seed=0).report()).splitlines()[0])
        0 impressions of 0 queries, 0 items
    """

    time: str
    store_from: str | None
    store_to: str | None
    queries: int
    items: int
    impressions: int
    open: int
    by_agent: int
    by_production: int
    learned_from_log: int
    clicks: int
    late: int
    positions: tuple[Position, ...]
    replaced: int
    traffic: tuple[Query, ...]
    compared: int
    changed: int
    guarded: tuple[str | int, ...]
    n_guarded: int
    difference: Interval | None
    confidence: float
    interleaved: int = 0
    credit: Credit | None = None
    valued: bool = False
    pruned: int = 0
    pruned_until: str | None = None

    @property
    def late_share(self) -> float:
        """The share of clicks that came late; nan without clicks."""
        return self.late / self.clicks if self.clicks else math.nan

    def sentences(self) -> list[str]:
        """The report as text, one string for each sentence."""
        credit = [] if self.credit is None else [f"{self.credit}{'; credit counts clicks, not their values' * self.valued}"]
        return [*self._counts(), *self._comparison(), *credit, *self._queries()]

    def _counts(self) -> list[str]:
        lines = [f"{self.impressions:,} impressions of {self.queries:,} queries, {self.items:,} items"]
        if self.impressions:
            lines.append(f"from {self.store_from} to {self.store_to} UTC, {self.open:,} still open")
            both = f", interleaved: {self.interleaved:,}" if self.interleaved else ""
            lines.append(f"lists chosen by the agent: {self.by_agent:,}, by production: {self.by_production:,}{both}")
        if self.learned_from_log:
            lines.append(f"before, agents learned from {self.learned_from_log:,} sessions of a log")
        if self.pruned:
            lines.append(
                f"{self.pruned:,} of them have left the store, shown until {self.pruned_until} UTC; they are counted, but not "
                "for agents that changed their mind"
            )
        if self.clicks:
            lines.append(
                f"{self.clicks:,} clicks; {self.late_share:.1%} of them came after their impression was closed, and no agent "
                "learned from them"
            )
        return lines

    def _comparison(self) -> list[str]:
        if self.difference is None:
            return ["no list of production to compare with (production=)"]
        n, mean, low, high = self.difference
        if not n:
            return ["nothing to compare yet: the first impression that was drawn by lot is still open"]
        verdict = "the agent is better" if low > 0 else "the agent is worse" if high < 0 else "not decided yet"
        unit = "value" if self.valued else "clicks"
        return [
            f"agent against production: {mean:+.4f} {unit} an impression, {self.confidence:.0%} interval {low:+.4f} to "
            f"{high:+.4f} at any time, {n:,} impressions: {verdict}"
        ]

    def _queries(self) -> list[str]:
        lines = []
        if self.n_guarded:
            more = f" and {self.n_guarded - len(self.guarded):,} more" if self.n_guarded > len(self.guarded) else ""
            names = ", ".join(one_line(str(query)) for query in self.guarded)
            lines.append(f"back to production, because the agent surely is worse: {names or 'all queries'}{more}")
        if self.replaced:
            lines.append(f"{self.replaced:,} items took the place of others; what was learned of those is forgotten")
        if self.compared:
            lines.append(
                f"of {self.compared:,} agents with {2 * HALF} impressions and more {self.changed:,} changed their mind about "
                "the first position"
            )
        return lines

    def __str__(self) -> str:
        lines = self.sentences()
        if self.impressions:
            lines += ["", *_aligned(POSITION_HEAD, [_cells(row) for row in self.positions])]
            lines += ["", *_aligned(QUERY_HEAD, [_cells_of_query(row) for row in self.traffic], n_left=1)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self.sentences()[0], [_cells(row) for row in self.positions], POSITION_HEAD)

    def to_dict(self) -> dict[str, Any]:
        """All figures for JSON; a number that is not finite is null."""
        figures = asdict(self) | {"difference": None if self.difference is None else self.difference._asdict()}
        plain: dict[str, Any] = finite({"clickgym": version("clickgym"), "late_share": self.late_share} | figures)
        return plain

    def to_html(self) -> str:
        """The report as an HTML page, which needs no network, no script and no other file."""
        pages = templates(Path(__file__).parent)
        return pages.get_template("service.html").render(
            report=self,
            sentences=self.sentences(),
            position_head=POSITION_HEAD,
            positions=[_cells(row) for row in self.positions],
            query_head=QUERY_HEAD,
            traffic=[_cells_of_query(row) for row in self.traffic],
            version=version("clickgym"),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report as a page, as text or as JSON.

        Args:
            path: a file whose name ends with ``.html``, ``.txt`` or ``.json``.

        Raises:
            ValueError: on another ending.
            FileError: the file cannot be written.
        """
        path = check_path("path", path)
        if path.suffix == ".html":
            write_whole(path, self.to_html())
        elif path.suffix == ".txt":
            write_whole(path, f"{self}\n")
        elif path.suffix == ".json":
            write_whole(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")
        else:
            raise ValueError(f"{path} must end with .html, .txt or .json")


POSITION_HEAD = ("position", "agent: seen", "clicked", "rate", "production: seen", "clicked", "rate")
QUERY_HEAD = ("query", "impressions", "clicks", "per impression", "who ranks")


def _cells(row: Position) -> tuple[str, ...]:
    both = (row.agent_seen, row.agent_clicks), (row.production_seen, row.production_clicks)
    cells = [(f"{seen:,}", f"{clicks:,}", f"{clicks / seen:.1%}" if seen else "–") for seen, clicks in both]
    return (str(row.position), *cells[0], *cells[1])


def _cells_of_query(row: Query) -> tuple[str, ...]:
    rate = f"{row.clicks / row.impressions:.3f}"
    return (one_line(str(row.query)), f"{row.impressions:,}", f"{row.clicks:,}", rate, "production" if row.guarded else "agent")


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 0) -> list[str]:
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    sides = ["<" if i < n_left else ">" for i in range(len(head))]
    return ["  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)) for row in table]


# ------------------------------------------------------------------------------------------------------------- from a store


def report_of(view: View, now: float, confidence: float, compares: bool) -> Report:
    """Compute the report of a store.

    Args:
        view: of the store.
        now: seconds since 1970.
        confidence: of the interval.
        compares: whether there is a list of production; where there were any, it is compared in any case.
    """
    settings, worths, ids, guarded = view.settings(), view.worths(), view.ids("queries"), view.guarded()
    totals = Totals(settings, view.totals())
    gone = sum(totals.sources)
    columns = totals.add(view, worths)
    sources, chosen = totals.sources, np.isin(columns["source"], BY_AGENT)
    by_lot = sources[BY_LOT] + sources[PRODUCTION]
    compared, changed = _changes(columns["query"][chosen], columns["items"][chosen, 0])
    positions = zip(totals.seen[0], totals.clicked[0], totals.seen[1], totals.clicked[1], strict=True)
    return Report(
        time=utc(now * 1e6), store_from=_moment(totals.first), store_to=_moment(totals.last),
        queries=sum(each is not None for each in ids.values()), items=len(view.ids("items")),
        impressions=sum(sources) - sources[LOGGED], open=int((columns["seen"] < 0).sum()),
        by_agent=sum(sources[each] for each in BY_AGENT), by_production=sum(sources[each] for each in BY_PRODUCTION),
        learned_from_log=sources[LOGGED], clicks=totals.clicks, late=totals.late,
        positions=tuple(Position(k, *of_k) for k, of_k in enumerate(positions, 1)),
        replaced=sum(each[4] - each[5] for each in totals.queries.values()),
        traffic=tuple(_traffic(totals.queries, ids, set(guarded))), compared=compared, changed=changed,
        guarded=tuple(ids[each] for each in guarded[:MOST_QUERIES] if ids[each] is not None), n_guarded=len(guarded),
        difference=totals.difference(confidence) if by_lot or compares else None, confidence=confidence,
        interleaved=sources[INTERLEAVED], credit=_credit(settings, totals), valued=worths is not None,
        pruned=gone, pruned_until=_moment(totals.until),
    )  # fmt: skip


def _moment(time: int | None) -> str | None:
    return None if time is None else utc(time)


def _credit(settings: Mapping[str, Any], totals: Totals) -> Credit | None:
    """The credit of the interleaved impressions, up to the first that is open; a late click counts for its own impression.

    None: no list was to be interleaved.
    """
    if "by" not in settings:
        return None
    n, wins, losses, total, squares, evidence = totals.credit
    by, against = settings["by"], settings["against"]
    if not n:
        return Credit(by, against, 0, 0, 0, math.nan, -math.inf, math.inf, 1.0, None)
    mean, spread = total / n, deviation(n, total, squares)
    width = float(normal_mixture(n, mean, spread)[1])
    later = np.unique(np.geomspace(n, 1e9, 2000).astype(np.int64))
    enough = np.flatnonzero(normal_mixture(later, mean, spread)[1] < abs(mean))
    return Credit(
        by, against, n, wins, losses, mean, mean - width, mean + width, math.exp(-max(0.0, evidence)),
        int(later[enough[0]] - n) if len(enough) else None,
    )  # fmt: skip


def _changes(query: NDArray[np.int64], first: NDArray[np.int32]) -> tuple[int, int]:
    """Of how many queries both halves are long enough, and in how many of them the commonest first item is another."""
    halves = [np.array_split(first[part], 2) for part in grouped(query)[1] if len(part) >= 2 * HALF]
    return len(halves), sum(_commonest(earlier) != _commonest(later) for earlier, later in halves)


def _commonest(items: NDArray[np.int32]) -> int:
    values, counts = np.unique(items, return_counts=True)
    return int(values[counts.argmax()])


def _traffic(queries: Mapping[int, Sequence[int]], ids: dict[int, Any], guarded: set[int]) -> list[Query]:
    order = sorted(queries, key=lambda number: (-queries[number][0], number))
    everywhere = 0 in guarded  # the agent of all queries
    return [
        Query(ids[number], queries[number][0], queries[number][1], everywhere or number in guarded)
        for number in order[:MOST_QUERIES]
        if queries[number][0]
    ]
