"""The rows and sentences that the page and the terminal show of decisions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from .decide import Decision, repetitions
from .log import REWARDS
from .names import csv_line
from .priorities import MOST_PERIODS
from .reasons import Reason
from .within_blocks import Measured, signed

MOST_ROWS = 6
"""Lists of the table of a query; ``decisions.json`` has all."""
PLAIN_UNITS = {"clicks": "clicks", "any_click": "sessions with a click"}


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


USERS = "users.json"
"""The file of the users of a proposal, beside the page."""
LIST_HEADS = dict.fromkeys(("sessions", "verdict", "gain", "interval", "p"), 0)
QUERY_HEADS = {"sessions": 0, "verdict": 0, "gain": 1, "worth": 0, "A/B test": 2, "periods": 3}
"""The columns beside the lists; a narrow terminal leaves out those of the highest rank first."""


class View(NamedTuple):
    """What the page and the terminal show.

    Attributes:
        title: the query and its sessions; empty for several queries.
        sentence: what to do.
        heads: of the cells of rows, with their ranks.
        rows, notes: of the table, and below it.
        command: that plays the proposal against the production list; empty without one.
    """

    title: str
    sentence: str
    heads: dict[str, int]
    rows: list[Row]
    notes: list[str]
    command: str = ""


def view_of_query(decision: Decision, folder: str | None = None) -> View:
    """What is shown of one query, whose page and users are in a folder, if in any."""
    title = f"{decision.query}: {decision.n_sessions:,} sessions"
    rows, notes = rows_of_lists(decision), notes_of_query(decision)
    command = play_command(decision, folder)
    return View(title, decision.sentence, LIST_HEADS, rows, notes, command)


def play_command(decision: Decision, folder: str | None) -> str:
    """The command that plays the proposal against the production list, with the users of the click
    model that proposes it; regret is what is lost beside the proposal.
    """
    proposal = decision.proposal
    if proposal is None or proposal.instance is None:
        return ""
    folder = "DIR" if folder is None else folder
    best, today = (str(list(ranking)).replace(" ", "") for ranking in proposal.rankings)
    (kind,) = proposal.instance.models
    settings = f"reference={best},reward={decision.reward}"
    settings += "" if decision.cutoff is None else f",cutoff={decision.cutoff}"
    words = ["clickgym", "run", f"{kind}Rank-v0:{settings}"]
    words += ["--instance", f"{folder}/{USERS}", "--agents", f"proposal=Fixed:ranking={best}"]
    words += [f"production=Fixed:ranking={today}", "--horizon", "1e4", "--out", f"{folder}/run"]
    return shlex.join(words)


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
        gain, labels, worth, test, periods = "", decision.production, "", "", ""
        if entry is not None:
            labels, worth = entry.labels, _amount(decision.worth)
            percent = f", {100 * entry.difference / entry.base:+.1f} %" if entry.base else ""
            gain = f"{entry.difference:+.4f} ({signed(entry.interval)}{percent})"
        elif decision.proposal is not None:
            verdict += f"; {decision.proposal.model} proposes a list"
            labels, gain = decision.proposal.labels, f"{decision.proposal.gain:+.4f} expected"
        if decision.periods > MOST_PERIODS and decision.test_sessions is not None:
            test, periods = f"> {MOST_PERIODS * decision.n_sessions:,}", f"> {MOST_PERIODS}"
        elif decision.test_sessions is not None:
            test, periods = f"{decision.test_sessions:,}", f"{decision.periods:.2g}"
            verdict += "; to test" if entry else ""
        if entry is not None and (other := decision.proposal) is not None:
            verdict += (
                f"; {other.model} proposes {csv_line(other.labels)}: {other.gain:+.4f} expected, a "
                f"test of {other.sessions:,} sessions"
            )
        cells = f"{decision.n_sessions:,}", verdict, gain, worth, test, periods
        rows.append(Row(decision.query, labels[: decision.cutoff], cells))
    return rows


def _amount(value: float) -> str:
    return f"{value:+,.0f}" if value >= 10 else f"{value:+.2g}"


def summary(decisions: Sequence[Decision]) -> str:
    """What to do first with several queries."""
    better = sum(decision.best is not None for decision in decisions)
    first = next((entry for entry in decisions if entry.periods <= MOST_PERIODS), None)
    found = f"{better} of {len(decisions)} queries have a list that is proved better."
    if first is None:
        return f"{found} No list is worth a test of at most {MOST_PERIODS} times the log's length."
    test = f"an A/B test of {first.test_sessions:,} sessions"
    if first.to_test is None:
        return (
            f"{found} No measured list is worth a test. Of the proposals: {first.query} ({test})."
        )
    worth = f"{_amount(first.worth)} {PLAIN_UNITS[first.reward]}"
    return (
        f"{found} Test first: {first.query} (about {worth} in a time as long as the log; {test})."
    )


def notes_of_query(decision: Decision) -> list[str]:
    """What stands beside the verdict on a query, a sentence each."""
    more = len(decision.measured) - MOST_ROWS
    notes = []
    if more > 0:
        notes.append(
            f"{more:,} more lists are in decisions.json, which clickgym decide --out writes."
        )
    if decision.no_proposal:
        notes.append(f"Nothing is proposed: {decision.no_proposal}.")
    if proposal := decision.proposal:
        search = "" if proposal.exact else ", the best list of a local search from its best items"
        notes.append(
            f"The click model {proposal.model} expects {proposal.gain:+.4f} of "
            f"{csv_line(proposal.labels)}{search}. This is an untested proposal, and models "
            "expect too much of lists that they choose: an A/B test of "
            f"{proposal.sessions:,} sessions proves a gain as large as that."
        )
        if proposal.instance is not None:
            notes.append(
                f"The users of {proposal.model} are in {USERS} of --out DIR. On them the command "
                "below plays the proposal against the production list, and agents that you add. "
                "There the proposal wins by construction: only the A/B test can prove it."
            )
    return [*notes, *decision.cautions]


def notes_of_queries(decisions: Sequence[Decision]) -> list[str]:
    """What stands beside the table of several queries, a sentence each."""
    unit = REWARDS[decisions[0].reward]
    notes = [
        f"gain: {unit}, beside the production list at the same times (the interval of each query "
        "for all its lists), or what a click model expects, which is often too much. worth: what "
        "the list would earn in a time as long as the log; it is smaller than the gain says, as "
        "the best of many lists is not as good as it seems. A/B test: sessions, and times the "
        "length of the log. decide of a single query (--query) fits the models to that query."
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
    return verdict, gain, signed(entry.interval), f"{entry.p_value:.2g}"
