"""The rows and sentences that the page and the terminal show of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from clickgym.core.formats import counted

from .decide import MOSTLY, NEVER_RULED_OUT, WITHOUT_USERS, Decision, repetitions
from .log import REWARDS
from .names import csv_line
from .priorities import TEST_LEVEL
from .reasons import Reason
from .within_blocks import Measured, p_value_in_words, signed

MOST_ROWS = 6
"""Lists of the table of a query; ``decisions.json`` has all."""
NOTHING_TO_TEST = (
    "Among the lists that the log shows there is nothing to test: none promises a gain that an A/B "
    "test as long as the log would prove more often than not."
)
NEVER_SHOWN = (
    "A list that the log never shows may be better. To estimate how much algorithms gain that look "
    "for one: clickgym fit LOG --model all --query NAME --out users, and then the commands that it "
    "prints for the two best click models (docs/which_agent.md)."
)
AFTERWARDS = (
    "Run whole weeks, and log who saw which list in a column arm. Then: clickgym decide LOG --all "
    f"--level {TEST_LEVEL}."
)
TOO_MUCH_POWER = (
    "That is too high where the log has no column user, where few users make most sessions, and "
    "where a user got another list in each session."
)
ONE_QUERY = (
    "The level is that of a single query. If you picked this query because it looks good, ask "
    "clickgym decide --all, whose level holds for all queries together."
)
LIST_HEADS = {"": 0, "sessions": 0, "verdict": 0, "gain": 0, "interval": 0, "p": 1, "list": 0}
QUERY_HEADS = {
    "query": 0,
    "next step": 0,
    "gain a day": 0,
    "gain": 0,
    "sessions a day": 0,
    "days": 0,
    "power": 0,
    "production list": 2,
    "list": 1,
}
"""The columns; a narrow terminal leaves out those of the highest rank first."""
WORDS = ("query", "next step", "verdict", "production list", "list")
"""The columns that hold no numbers."""

Cell = str | tuple[str, ...]
"""A text, or the labels of a list's items."""


class View(NamedTuple):
    """What the page and the terminal show.

    Attributes:
        title: the query and its sessions; empty for several queries.
        sentence: what to do.
        heads: the columns, with their ranks.
        rows: the cells of each row.
        notes: below the table.
    """

    title: str
    sentence: str
    heads: dict[str, int]
    rows: list[tuple[Cell, ...]]
    notes: list[str]


def view_of_query(decision: Decision) -> View:
    """What is shown of one query, or of an experiment."""
    query = "All queries" if decision.query is None else csv_line([decision.query])
    title = f"{query}: {decision.n_sessions:,} sessions"
    rows: list[tuple[Cell, ...]] = [
        (
            decision.name(None),
            f"{decision.n_production:,}",
            f"in production, {decision.share_today:.0%} of the latest sessions",
            *[""] * 3,
            decision.production,
        )
    ]
    for entry in decision.measured[:MOST_ROWS]:
        figures = f"{entry.sessions:,}", *_figures(decision, entry)
        rows.append((decision.name(entry), *figures, entry.labels))
    return View(title, decision.sentence, LIST_HEADS, rows, _notes_of_query(decision))


def view_of_queries(decisions: Sequence[Decision]) -> View:
    """What is shown of several queries, and first of all of them if these are of an experiment."""
    whole = [decision for decision in decisions if decision.query is None]
    queries = [decision for decision in decisions if decision.query is not None]
    sentence = " ".join([*(decision.sentence for decision in whole), _summary(queries)])
    rows = [_row(decision) for decision in queries]
    return View("", sentence, QUERY_HEADS, rows, _notes_of_queries(queries))


def _row(decision: Decision) -> tuple[Cell, ...]:
    """What to do with a query, why, and the lists."""
    entry = decision.chosen or next(iter(decision.compared), None)
    step, gain, day = decision.next_step, "", ""
    labels: tuple[str, ...] = ()
    if entry is None:
        step += f": {decision.reason}"
    else:
        percent = f", {100 * entry.difference / entry.base:+.0f} %" if entry.base else ""
        gain = f"{entry.difference:+.3f} ({{:+.3f}} to {{:+.3f}}{percent})".format(*entry.interval)
        labels = entry.labels[: decision.cutoff]
    if decision.chosen is not None:
        day = _a_day(decision)
    rate = decision.sessions_a_day
    often = (
        f"{decision.n_sessions:,} in all"
        if rate is None
        else f"{rate:,.0f}"
        if rate >= 10
        else f"{rate:.2g}"
    )
    days = "" if decision.test_days is None else f"{decision.test_days:,}"
    power = "" if decision.to_test is None else f"{decision.power:.0%}"
    query = csv_line([decision.query or ""])
    production = decision.production[: decision.cutoff]
    return query, step, day, gain, often, days, power, production, labels


def _a_day(decision: Decision) -> str:
    """What the list to show or to test is expected to earn a day, and the interval that was
    measured; empty without dates.
    """
    entry, rate = decision.chosen, decision.sessions_a_day
    if entry is None or rate is None:
        return ""
    low, high = (_rounded(rate * entry.share * end) for end in entry.interval)
    return f"{_rounded(rate * decision.gain)} ({low} to {high})"


def _rounded(number: float) -> str:
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 1 else 2
    return f"{number:+,.{digits}f}"


def _summary(decisions: Sequence[Decision]) -> str:
    """What to do first with several queries."""
    better = [decision for decision in decisions if decision.best]
    found = f"{len(better)} of {len(decisions)} queries have a list that is proved better"
    if better and better[0].days is not None:
        gain = sum(decision.gain_a_day or 0.0 for decision in better)
        found += f" (about {_rounded(gain)} {_unit(decisions)} a day)"
    first = next((entry for entry in decisions if entry.to_test is not None), None)
    if first is None:
        return f"{found}." if better else f"{found}. {NOTHING_TO_TEST}"
    gain_a_day, what = first.gain_a_day, ""
    if gain_a_day is not None:
        what = f" (about {_rounded(gain_a_day)} {_unit(decisions)} a day)"
    return f"{found}. The first test: {csv_line([first.query or ''])}, {first.next_step}{what}."


def _unit(decisions: Sequence[Decision]) -> str:
    return REWARDS[decisions[0].reward].removesuffix(" per session")


def _notes_of_query(decision: Decision) -> list[str]:
    """What stands beside the verdict on a query, a sentence each."""
    more = len(decision.measured) - MOST_ROWS
    notes = []
    if more > 0:
        notes.append(
            f"{more:,} more lists are in decisions.json, which clickgym decide --out writes."
        )
    unit = REWARDS[decision.reward]
    if decision.chosen is not None:
        day = _a_day(decision)
        promise = f"{decision.gain:+.4f} {unit}" + f", or {day} a day" * bool(day)
        if decision.chosen.share < 1:
            promise += f"; only {decision.chosen.share:.0%} of the sessions can show a difference"
        notes.append(f"Next step: {decision.next_step}. Expected gain: {promise}.")
    if decision.best is not None and decision.control is None:
        notes.append(ONE_QUERY)
    if decision.to_test is not None:
        notes.append(
            f"The A/B test takes {decision.test_sessions:,} sessions, half of them with "
            f"{decision.name(None)} and half with {decision.name(decision.to_test)}. It proves "
            f"the expected gain with a probability of {decision.power:.0%}. {TOO_MUCH_POWER} "
            f"{AFTERWARDS}"
        )
    if decision.chosen is None:
        notes += [NOTHING_TO_TEST] * bool(decision.compared)
        notes.append(NEVER_SHOWN)
    apart = next((entry for entry in decision.measured if entry.reason == Reason.APART), None)
    if apart is not None and decision.control is None:
        first, second = decision.name(None), decision.name(apart)
        notes.append(
            f"{second} earned {apart.earned:.4f} {unit} (last shown {apart.last_shown}), and "
            f"{first} {decision.earned:.4f}. They were shown at other times, so this does not tell "
            f"which is better. An A/B test of {first} and {second} would."
        )
    return [*notes, *decision.cautions]


def _notes_of_queries(decisions: Sequence[Decision]) -> list[str]:
    """What stands beside the table of several queries, a sentence each."""
    unit = REWARDS[decisions[0].reward]
    of_short_sessions = ""
    if any(entry.share < 1 for decision in decisions for entry in decision.compared):
        of_short_sessions = (
            " Of sessions with fewer results, both columns count only those that are long enough "
            "to show a difference."
        )
    notes = [
        "A is the production list, B and the following letters are the others of the query."
        if decisions[0].control is None
        else f"The arm in production is {decisions[0].control}.",
        f"gain: {unit} more than in production, as measured, with an interval. The intervals of "
        "all lists of a query hold at once. Of many queries, some are above 0 by chance, so that "
        "the next step asks for more than an interval above 0.",
        "gain a day: what the next step is expected to earn a day, and the measured interval. The "
        "expected gain is mostly smaller than the measured one, because the best of many lists is "
        f"not as good as it seems.{of_short_sessions}",
        "days: the length of the A/B test, half of the sessions with each list. power: the "
        f"probability that it proves the expected gain. {TOO_MUCH_POWER} {AFTERWARDS}",
    ]
    for reason in Reason:
        if n_queries := sum(decision.reason == reason for decision in decisions):
            other = "list of its length" if decisions[0].control is None else "arm"
            why = reason.sentence.format(production="what is in production", other=other)
            queries = counted(n_queries, "query", "queries")
            notes.append(f"{reason} ({queries}): {why}.")
    parts = [entry for entry in decisions if entry.control is None and entry.share_today < MOSTLY]
    if parts:
        least = min(parts, key=attrgetter("share_today"))
        notes.append(
            f"In {counted(len(parts), 'query', 'queries')} the production list has less than half "
            f"of the latest sessions, in {csv_line([least.query or ''])} "
            f"{least.share_today:.0%}. Find out what the others get, such as lists of other "
            "replicas."
        )
    notes.append(NEVER_SHOWN)
    repeated = sum(decision.n_repeated for decision in decisions)
    if text := repetitions(repeated, sum(decision.n_sessions for decision in decisions)):
        notes.append(text)
    if not decisions[0].knows_users:
        notes.append(WITHOUT_USERS)
    if decisions[0].control is None:
        notes.append(NEVER_RULED_OUT)
    return notes


def _figures(decision: Decision, entry: Measured) -> tuple[str, str, str, str]:
    """The verdict on a measured list, its gain, the interval and the p-value."""
    if entry.reason:
        return f"cannot tell: {entry.reason}", "", "", ""
    verdict = "better" if entry.is_better(decision.level) else "not proved better"
    if entry.was_better(decision.level):
        verdict = f"was better when it was last shown, {entry.last_shown}"
    if withheld := entry.withheld_in_words(decision.level):
        verdict += f": {withheld}"
    gain = f"{entry.difference:+.4f} of {entry.base:.4f}"
    p_value = p_value_in_words(entry.p_value).removeprefix("= ")
    return verdict, gain, signed(entry.interval), p_value
