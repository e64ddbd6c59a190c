"""Retention: impressions older than a date leave a store, and what the report and the agents need of them stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from ..core.checks import check_at_least, short
from ..offline.stores import STORE
from .journal import Journal
from .memory import Agents
from .totals import Totals


class Pruned(NamedTuple):
    """What has left a store.

    Attributes:
        impressions, clicks: how many have left now.
        kept: how many impressions stay that were shown before the date: the first is open, or its agent cannot learn from it;
            those that were shown after it stay, too.
        until: the log is whole after this time, in seconds since 1970; None if nothing has ever left.
    """

    impressions: int
    clicks: int
    kept: int
    until: float | None


def moment_of(before: Any, now: int) -> int:
    """A date in microseconds since 1970.

    Args:
        before: seconds since 1970, or a `datetime` with a time zone.
        now: microseconds since 1970.
    """
    if isinstance(before, datetime):
        if before.tzinfo is None:
            raise ValueError(f"before is {before}, without a time zone; expected one, or seconds since 1970")
        before = before.timestamp()
    moment = round(check_at_least("before", before, 0.0) * 1e6)
    if moment > now:
        raise ValueError(f"before is {short(before)}, which is after now ({now / 1e6:.0f}); expected seconds since 1970")
    return moment


def prune(journal: Journal, agents: Agents, before: int) -> Pruned:
    """Let impressions leave that were shown before a date, in steps; each step is one transaction."""
    impressions = clicks = 0
    while n := _step(journal, agents, before):
        impressions, clicks = impressions + n[0], clicks + n[1]
    with journal.view() as view:
        until = view.totals().get(STORE, {}).get("until")
        return Pruned(impressions, clicks, view.n_before(before), None if until is None else until / 1e6)


def _step(journal: Journal, agents: Agents, before: int) -> tuple[int, int] | None:
    """The impressions and clicks that have left; None if there is nothing more."""

    def beginnings() -> Iterator[tuple[int, int, int, bytes]]:
        for agent in journal.agents_of(view):  # what is in memory is what the store says only where nobody else writes
            served = agents.load(agent) if journal.shared else agents.get(agent)
            assert served is not None
            state = served.to_bytes()
            assert state is not None
            yield agent, served.tick, served.version, state

    with journal.call(), journal.leaving(before) as view:
        totals = Totals(view.settings(), view.totals())
        clicks = totals.clicks
        columns = totals.add(view, view.worths())
        numbers, shown = columns["number"], columns["shown"]
        if not len(numbers):
            return None
        totals.until = max(totals.until or 0, int(shown.max()))
        totals.number = max(totals.number, int(numbers.max()))
        journal.forget(view, beginnings(), totals.to_rows({*columns["query"].tolist(), *({0} & totals.queries.keys())}))
        return len(numbers), totals.clicks - clicks
