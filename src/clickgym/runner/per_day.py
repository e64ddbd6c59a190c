"""The gain in clicks a day of agents that start from a log, over today's list.

The users of an instance stand for one query of the log, and several instances of a query (refits)
for the same traffic. All is computed from exact regret: today's list loses the same in each
session, so what an agent gains on it until a session is what that list loses until then, minus the
regret of the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars
from numpy.typing import NDArray
from polars import col

DETECTED = 1.96 + 0.84
"""Standard errors that a gain must have, to be found at the two-sided level 5 % in 80 % of tests.
"""
WEEK, MOST_DAYS = 7, 365

Gain = Callable[[float], NDArray[np.float64]]
"""The gain of an agent in so many days, of each unit."""


class Days(NamedTuple):
    """An environment by day.

    Attributes:
        cutoff: how many positions count; 0 for all.
        queries, sessions: how many queries, and their sessions a day.
        clicks: expected clicks a day of today's lists.
        needed: sessions of a run that hold the first day of each query.
        table: a row for each agent, the largest gain of the first week first: ``first_day``,
            ``worst_first_day`` (of the units) and ``first_week`` in clicks a day more than today's
            list, ``later`` likewise after the first week, and ``test_days``, days of an A/B test
            of whole weeks against today's list with half of the sessions each. Null is unknown; no
            test of a year is enough, too. A unit is a run, or a run on a refit.
    """

    cutoff: int
    queries: int
    sessions: float
    clicks: float
    needed: int
    table: polars.DataFrame


def by_day(rows: polars.DataFrame, pasts: Mapping[str, Mapping[str, Any]]) -> Days | None:
    """The gains of agents in an environment by day.

    Args:
        rows: of a sweep in one environment.
        pasts: the facts of the log by instance, as `Start.facts` has them.

    Returns:
        None if regret is unknown or not of clicks, or the log does not tell sessions a day.
    """
    names = [name for name in rows["instance"].unique(maintain_order=True) if name in pasts]
    facts = [pasts[name] for name in names]
    if rows["regret"].null_count() or not facts or not all(it.get("per_day") for it in facts):
        return None
    queries: dict[str, list[str]] = {}
    for name in names:
        queries.setdefault(pasts[name]["query"], []).append(name)
    of_query = {query: pasts[same[0]] for query, same in queries.items()}
    per_day = {query: float(it["per_day"]) for query, it in of_query.items()}
    horizon = int(rows["step"].max())  # type: ignore[arg-type]
    largest, found = max(per_day.values()), []
    noise = sum(per_day[query] * it["variance"] for query, it in of_query.items())
    for (agent,), of_agent in rows.group_by("agent", maintain_order=True):
        gain = _gain(of_agent, queries, pasts, per_day)
        first = gain(1) if horizon >= largest else None
        week = gain(WEEK) / WEEK if horizon >= WEEK * largest else None
        later = None
        if horizon >= (WEEK + 1) * largest:
            later = (gain(horizon / largest) - gain(WEEK)) / (horizon / largest - WEEK)
        known = horizon / largest
        lengths = range(WEEK, MOST_DAYS + 1, WEEK) if known >= 1 else ()
        tests = (days for days in lengths if _is_found(gain, days, known, noise))
        means = [None if it is None else float(it.mean()) for it in (first, week, later)]
        worst = None if first is None else float(first.min())
        found.append([agent, means[0], worst, *means[1:], next(tests, None)])
    schema = {"agent": polars.String} | dict.fromkeys(
        ("first_day", "worst_first_day", "first_week", "later"), polars.Float64
    )
    table = polars.DataFrame(found, schema | {"test_days": polars.Int64}, orient="row")
    best = polars.coalesce("first_week", "first_day")
    table = table.sort(best, descending=True, nulls_last=True, maintain_order=True)
    clicks = sum(
        per_day[query] * float(np.mean([pasts[name]["clicks"] for name in same]))
        for query, same in queries.items()
    )
    sessions, needed = sum(per_day.values()), int(np.ceil(largest))
    return Days(facts[0]["cutoff"], len(queries), sessions, clicks, needed, table)


def _gain(
    rows: polars.DataFrame,
    queries: Mapping[str, list[str]],
    pasts: Mapping[str, Mapping[str, Any]],
    per_day: Mapping[str, float],
) -> Gain:
    """The gain of an agent on today's lists of all queries; between checkpoints it is linear."""
    curves: dict[str, list[tuple[Any, Any]]] = {}
    for query, names in queries.items():
        for name in names:
            runs = rows.filter(col("instance") == name).sort("run", "step")
            for _, run in runs.group_by("run", maintain_order=True):
                steps = run["step"].to_numpy()
                gained = pasts[name]["today"] * steps - run["regret"].to_numpy()
                curves.setdefault(query, []).append((np.append(0, steps), np.append(0, gained)))
    n_units = min(map(len, curves.values()))

    def gain(days: float) -> NDArray[np.float64]:
        totals = np.zeros(n_units)
        for query, units in curves.items():
            for unit, (steps, gained) in enumerate(units[:n_units]):
                totals[unit] += np.interp(days * per_day[query], steps, gained)
        return totals

    return gain


def _is_found(gain: Gain, days: int, known: float, noise: float) -> bool:
    """Whether a test of so many days, in which the agent gets half of the sessions, finds its gain;
    beyond the days that are known it goes on as in their second half.

    Args:
        gain: of the agent.
        days: of the test.
        known: days that the runs hold.
        noise: the variance of the clicks of a day.
    """
    half = days / 2
    mean = float(gain(min(half, known)).mean())
    if half > known:
        slope = float((gain(known) - gain(known / 2)).mean()) / (known / 2)
        mean += slope * (half - known)
    return mean >= DETECTED * float(np.sqrt(days * noise))
