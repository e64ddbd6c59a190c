"""The rows and sentences that the page and the terminal show of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .decide import Decision, repetitions
from .log import REWARDS
from .names import csv_line
from .priorities import MOST_PERIODS
from .reasons import Reason
from .within_blocks import POWER, Measured, p_value_in_words, signed

MOST_ROWS = 6
"""Lists of the table of a query; ``decisions.json`` has all."""


class Row(NamedTuple):
    """A row about one list.

    Attributes:
        name: the query, in the table of several queries.
        labels: of the list's items.
        cells: the texts of the other columns.
    """

    name: str
    labels: tuple[str, ...]
    cells: tuple[str, ...]


NOTHING_TO_TEST = (
    f"No list promises a gain that an A/B test of at most {MOST_PERIODS} times the log's length "
    "would prove."
)
LIST_HEADS = dict.fromkeys(("sessions", "verdict", "gain", "interval", "p"), 0)
QUERY_HEADS = {"sessions": 0, "verdict": 0, "gain": 1, "A/B test": 2, "periods": 0}
"""The columns beside the lists; a narrow terminal leaves out those of the highest rank first."""


class View(NamedTuple):
    """What the page and the terminal show.

    Attributes:
        title: the query and its sessions; empty for several queries.
        sentence: what to do.
        heads: of the cells of rows, with their ranks.
        rows, notes: of the table, and below it.
    """

    title: str
    sentence: str
    heads: dict[str, int]
    rows: list[Row]
    notes: list[str]


def view_of_query(decision: Decision) -> View:
    """What is shown of one query."""
    title = f"{decision.query}: {decision.n_sessions:,} sessions"
    rows, notes = rows_of_lists(decision), notes_of_query(decision)
    return View(title, decision.sentence, LIST_HEADS, rows, notes)


def view_of_queries(decisions: Sequence[Decision]) -> View:
    """What is shown of several queries."""
    rows, notes = rows_of_queries(decisions), notes_of_queries(decisions)
    return View("", summary(decisions), QUERY_HEADS, rows, notes)


def rows_of_lists(decision: Decision) -> list[Row]:
    """The production list and those measured beside it, with the cells of `LIST_HEADS`."""
    today = f"{decision.n_production:,}", "in production", "", "", ""
    rows = [Row("", decision.production, today)]
    for entry in decision.measured[:MOST_ROWS]:
        figures = f"{entry.sessions:,}", *_figures(decision, entry)
        rows.append(Row("", entry.labels, figures))
    return rows


def rows_of_queries(decisions: Sequence[Decision]) -> list[Row]:
    """Of each query the list to show or to test, or else the one in production, with the cells of
    `QUERY_HEADS`.
    """
    rows = []
    for decision in decisions:
        verdict = ": ".join(filter(None, (decision.verdict, decision.reason)))
        entry = decision.best or decision.to_test
        gain, labels, test, periods = "", decision.production, "", ""
        if entry is not None:
            labels = entry.labels
            percent = f", {100 * entry.difference / entry.base:+.1f} %" if entry.base else ""
            gain = f"{entry.difference:+.4f} ({signed(entry.interval)}{percent})"
        if decision.test_sessions is not None:
            test, periods = f"{decision.test_sessions:,}", f"{decision.periods:.2g}"
            verdict += "; to test"
        cells = f"{decision.n_sessions:,}", verdict, gain, test, periods
        rows.append(Row(decision.query, labels[: decision.cutoff], cells))
    return rows


def summary(decisions: Sequence[Decision]) -> str:
    """What to do first with several queries."""
    better = sum(decision.best is not None for decision in decisions)
    first = next((entry for entry in decisions if entry.to_test is not None), None)
    found = f"{better} of {len(decisions)} queries have a list that is proved better."
    if first is None:
        return f"{found} {NOTHING_TO_TEST}"
    return f"{found} Test first: {first.query} (an A/B test of {first.test_sessions:,} sessions)."


def notes_of_query(decision: Decision) -> list[str]:
    """What stands beside the verdict on a query, a sentence each."""
    more = len(decision.measured) - MOST_ROWS
    notes = []
    if more > 0:
        notes.append(
            f"{more:,} more lists are in decisions.json, which clickgym decide --out writes."
        )
    if decision.to_test is not None:
        notes.append(
            f"To settle it, test {csv_line(decision.to_test.labels[: decision.cutoff])} against "
            f"the production list. An A/B test of {decision.test_sessions:,} sessions, half of "
            f"them with each list, proves the expected gain, {decision.gain:.4f} "
            f"{REWARDS[decision.reward]}, with a probability of {POWER:.0%}."
        )
    elif decision.compared and decision.best is None:
        notes.append(NOTHING_TO_TEST)
    return [*notes, *decision.cautions]


def notes_of_queries(decisions: Sequence[Decision]) -> list[str]:
    """What stands beside the table of several queries, a sentence each."""
    unit = REWARDS[decisions[0].reward]
    notes = [
        f"gain: {unit} more than the production list at the same times, with an interval. The "
        "intervals of all lists of a query hold at once. A/B test: the sessions, both lists "
        "together, of a test that proves the expected gain with a probability of "
        f"{POWER:.0%}. The expected gain is mostly smaller than the measured one, because the best "
        "of many lists is not as good as it seems. periods: the length of the test, in times as "
        "long as the log."
    ]
    for reason in Reason:
        if n_queries := sum(decision.reason == reason for decision in decisions):
            why = reason.sentence.format(production="the production list")
            notes.append(f"cannot tell, {reason} ({n_queries:,} queries): {why}.")
    repeated = sum(decision.n_repeated for decision in decisions)
    if text := repetitions(repeated, sum(decision.n_sessions for decision in decisions)):
        notes.append(text)
    return notes


def _figures(decision: Decision, entry: Measured) -> tuple[str, str, str, str]:
    """The verdict on a measured list, its gain, the interval and the p-value."""
    if entry.reason:
        return f"cannot tell: {entry.reason}", "", "", ""
    verdict = "better" if entry.is_better(decision.level) else "not proved better"
    if withheld := entry.withheld_in_words(decision.level):
        verdict += f": {withheld}"
    gain = f"{entry.difference:+.4f} of {entry.base:.4f}"
    p_value = p_value_in_words(entry.p_value).removeprefix("= ")
    return verdict, gain, signed(entry.interval), p_value
