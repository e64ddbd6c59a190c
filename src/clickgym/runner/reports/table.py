"""The final table of a report, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import polars
from polars import col
from rich.console import Console

from ...core.formats import duration, regret_text, shortened
from ..console import Column, print_table, say
from ..make import agent_recipe, requirements
from ..play.metrics import is_sum
from ..summaries import (
    MET_OTHERS,
    count_runs,
    metrics_of,
    over_words,
    remarks,
    span,
    with_units,
)

if TYPE_CHECKING:
    from ..results import Results


class FormattedTable(NamedTuple):
    """The final table as texts.

    Attributes:
        title: the measure, horizon, instances and runs, and what intervals are over.
        headings: those of most importance first.
        rows: the cells of each row.
        notes: sentences about runs that are not finished, unknown regret, and what agents got
            beside clicks.
    """

    title: str
    headings: list[str]
    rows: list[list[str]]
    notes: list[str]


def print_results(console: Console, results: Results, reference: str | None = None) -> None:
    """Print the final table of some results; agents are compared with the reference, or with the
    first. So that it fits 100 characters, it lacks the engine.
    """
    words = in_words(results, reference)
    names = words.headings[:-1]
    columns = [Column("agent"), Column(names[2], right=True)]
    columns += [Column(name, right=True) for name in names[3:]]
    say(console, words.title, "bold")
    console.print()
    for place, rows in groupby(words.rows, key=itemgetter(0)):
        print_table(console, columns, [row[1:-1] for row in rows], title=place)
        console.print()
    for note in words.notes:
        say(console, note)
    console.print()


def in_words(results: Results, reference: str | None = None) -> FormattedTable:
    """The final table of some results in words; `reference` as in `Results.table`."""
    table, metrics = results.table(reference), metrics_of(results.rows)
    unknown = table.filter(col("regret").is_null())["env"].unique(maintain_order=True)
    measure = measure_of(table)
    is_single = len(results.rows.select("instance", "sweep_seed", "run").unique()) == 1
    shown = [
        name
        for name, (column, _) in OPTIONAL.items()
        if table[column].count() and (not is_single or name == "difference")
    ]
    headings = ["environment", "agent", measure, *shown, "reward", *metrics, "time", "engine"]
    places = _places(results)
    rows = []
    for row in table.iter_rows(named=True):
        cells = [places[row["env"]], row["agent"], regret_text(*measured(row, results.horizon))]
        cells += [OPTIONAL[name][1](row) for name in shown]
        cells += ["–" if row[name] is None else f"{row[name]:.4f}" for name in ("reward", *metrics)]
        rows.append([*cells, duration(row["ns_per_session"]), row["engine"]])
    averaged = ", ".join(["Reward", *filter(is_sum, metrics)])
    notes = [f"{averaged} and time are per session.", *_unfinished(results)]
    if len(unknown):
        why = f"Regret is unknown in {', '.join(map(shortened, unknown))}"
        notes.append(
            f"{why}: no info has that of the reward which agents get. A higher total reward is "
            "better."
        )
    notes += [*about_pairs(table, shown), *about_users(results, table), *about_knowledge(results)]
    instances = results.names("instance")
    where = f", {shortened(instances[0])}" if len(instances) == 1 else ""
    last = results.rows.filter(step=results.horizon)
    over = over_words(count_runs(with_units(last), ["env", "agent"]))
    if table["reward_ci95"].count():
        over = f"mean ± 95 % interval over {over}"
    title = f"{measure.capitalize()} after {results.horizon:,} sessions{where} ({over})"
    return FormattedTable(title, headings, rows, notes)


def _places(results: Results) -> dict[str, str]:
    """What the table calls each environment: with its instance, if environments have others."""
    played = results.rows.select("env", "instance").unique(maintain_order=True)
    places = {env: shortened(env) for env in results.names("env")}
    if played["instance"].n_unique() > 1 and played["env"].is_unique().all():
        for env, instance in played.iter_rows():
            if instance not in env:
                places[env] += f", {shortened(instance)}"
    return places


def measure_of(table: polars.DataFrame) -> str:
    """What the rows of a table show: regret, or the total reward where regret is unknown."""
    known, rows = table["regret"].count(), len(table)
    return " or ".join(["regret"] * (known > 0) + ["total reward"] * (known < rows))


def measured(row: Mapping[str, Any], horizon: int) -> tuple[float, float | None]:
    """The regret of a row of the table with half of its interval; the total reward where regret is
    unknown.
    """
    if row["regret"] is not None:
        return row["regret"], row["regret_ci95"]
    half = row["reward_ci95"]
    return row["reward"] * horizon, None if half is None else half * horizon


def difference_text(row: Mapping[str, Any]) -> str:
    """The difference to the reference with its sign and half of its interval."""
    if row["difference"] is None:
        return "–"
    sign = "+" if row["difference"] > 0 else ""
    return sign + regret_text(row["difference"], row["difference_ci95"])


def p_text(p: float | None) -> str:
    """A level of significance with three digits."""
    return "–" if p is None else "<0.001" if p < 1e-3 else f"{p:.3f}"


def number_text(value: float | None) -> str:
    """A number with three digits, or all those before the point."""
    digits = 0 if value is None or value >= 100 else 1 if value >= 10 else 2
    return "–" if value is None else f"{value:z,.{digits}f}"


def _half(value: float | None) -> str:
    """Half of an interval with its digits."""
    return "–" if value is None else regret_text(0.0, value).partition(" ")[2]


OPTIONAL: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "± these": ("regret_ci95_runs", lambda row: _half(row["regret_ci95_runs"])),
    "difference": ("difference", difference_text),
    "p": ("p", lambda row: p_text(row["p"])),
    "worst": ("worst", lambda row: number_text(row["worst"])),
    "median": ("median", lambda row: number_text(row["median"])),
}
"""Headings of the columns that are left out where `Results.table` has nothing: its column, and the
text of a row.
"""


def _unfinished(results: Results) -> Iterator[str]:
    """How many runs of which agents are not finished."""
    runs = {
        *results.rows.select("env", "instance", "agent", "sweep_seed", "run").unique().iter_rows()
    }
    trials = results.configuration.trials() if results.configuration else ()
    counts = Counter(
        cell.agent for cell, run, _ in trials if (*cell[:3], cell.seed, run) not in runs
    )
    if counts:
        agents = ", ".join(f"{agent} {count:,}" for agent, count in sorted(counts.items()))
        count = f"{counts.total():,} ({agents})"
        yield f"Runs that are not finished: {count}. The same command resumes."


def about_pairs(table: polars.DataFrame, shown: Collection[str]) -> Iterator[str]:
    """What the intervals are about, with what agents are compared, and how."""
    over = sorted({*table["over"]})
    if "instances" in over:
        these = " Those of ± these are about these instances alone." * ("± these" in shown)
        yield f"The intervals are about other instances, if these are a sample of them.{these}"
    elif "runs" in over and table["reward_ci95"].count():
        yield (
            "The intervals are about more runs with these users. They say nothing about other "
            "users."
        )
    if table["difference"].count():
        units, reference = " or ".join(over), table["reference"][0]
        measure = measure_of(table)
        sign = {"regret": "positive", "total reward": "negative"}.get(
            measure, "positive difference of regret or negative"
        )
        yield (
            f"Differences to {reference} are over the same {units}"
            f"{', with 95 % intervals' * bool(table['difference_ci95'].count())}. A {sign} "
            f"difference is in favour of {reference}."
        )
    same = table.filter(difference=0, difference_ci95=0)["agent"].unique(maintain_order=True)
    if len(same):
        yield (
            f"{' and '.join(same)} had exactly the results of {table['reference'][0]}, so there is "
            "no p."
        )
    tested = table.group_by("env").agg(col("p").count()).filter(col("p") > 0)["p"]
    if len(tested):
        count = span(tested)
        these = "is one comparison" if count == "1" else f"are {count} comparisons"
        each = " in each environment" * (len(tested) > 1)
        yield (
            "p is of the two-sided paired t test, adjusted for the agents of an environment by "
            "Holm's procedure. The intervals of differences are not adjusted. "
            f"There {these} with {table['reference'][0]}{each}."
        )


def about_users(results: Results, table: polars.DataFrame) -> Iterator[str]:
    """Which agents met other users than those of the same runs of others, and which played other
    instances than the reference.
    """
    names = results.rows.filter(MET_OTHERS)["agent"].unique(maintain_order=True).to_list()
    if names and results.rows["agent"].n_unique() > 1:
        whose = "its" if len(names) == 1 else "their"
        yield f"{' and '.join(names)} met users of {whose} own, not those of the others."
    reference = table["reference"][0]
    played = results.rows.group_by("env", "agent", maintain_order=True).agg(
        col("instance").unique().sort()
    )
    of_reference = played.filter(agent=reference).select("env", of_reference="instance")
    others = played.join(of_reference, on="env", maintain_order="left")
    others = others.filter(col("instance") != col("of_reference"))
    if len(others):
        yield (
            f"{' and '.join(others['agent'].unique(maintain_order=True))} did not play the same "
            f"instances as {reference}; differences are over those that both played."
        )


def about_knowledge(results: Results) -> Iterator[str]:
    """What agents got beside clicks, as far as their classes are at hand, and what they learned
    before or were not measured in.
    """
    typed: dict[str, Any] = dict(results.configuration.agents) if results.configuration else {}
    given = []
    for label in results.names("agent"):
        maker: Any = None
        with suppress(Exception):  # a module of others may be gone, or fail
            maker, _ = agent_recipe(typed.get(label) or label)
        names = [name for name in requirements(maker) if name != "ranking"]  # of baselines
        if names:
            given.append(f"{label} got {', '.join(names)}")
    if given:
        yield f"Beside clicks, {'; '.join(given)}."
    for agent, texts in remarks(results.rows).items():
        yield f"{agent}: {'; '.join(texts)}."
