"""The final table of a report, in words."""

from __future__ import annotations

from typing import NamedTuple

import polars
from rich.console import Console

from ...core.formats import duration, regret_text
from ..metrics import is_sum
from ..results import Results
from ..summaries import metrics_of, without_regret
from ..terminal import Column, print_table, say


class FormattedTable(NamedTuple):
    """The final table as texts.

    Attributes:
        title: the measure, horizon, instances and runs.
        headings: those of most importance first.
        rows: the cells of each row.
        note: a sentence about unknown regret; empty if all is known.
    """

    title: str
    headings: list[str]
    rows: list[list[str]]
    note: str


def print_results(console: Console, results: Results) -> None:
    """Print the final table of some results."""
    words = in_words(results)
    columns = [Column("environment"), Column("agent"), Column(words.headings[2], right=True)]
    for rank, name in enumerate(words.headings[3:], 1):
        columns.append(Column(name, rank=rank, right=name != "engine"))
    print_table(console, columns, words.rows, title=words.title, groups=True)
    if words.note:
        say(console, words.note)
    console.print()


def in_words(results: Results) -> FormattedTable:
    """The final table of some results in words."""
    table, horizon = results.table(), results.horizon
    metrics, unknown = metrics_of(results.rows), without_regret(results.rows)
    known = set(table["env"]) - set(unknown)
    measure = " or ".join(["regret"] * bool(known) + ["total reward"] * bool(unknown))
    per_session = [f"{name} / session" if is_sum(name) else name for name in metrics]
    headings = ["environment", "agent", measure, "reward / session", *per_session]
    rows = []
    for row in table.iter_rows(named=True):
        mean, half = row["regret"], row["regret_ci95"]
        if mean is None:
            mean, half = row["reward"] * horizon, row["reward_ci95"]
            half = half and half * horizon
        cells = [row["env"], row["agent"], regret_text(mean, half), f"{row['reward']:.4f}"]
        cells += ["–" if row[name] is None else f"{row[name]:.4f}" for name in metrics]
        rows.append([*cells, duration(row["ns_per_session"]), row["engine"]])
    names = ", ".join(unknown)
    note = f"Regret is unknown in {names}; a higher total reward is better." if names else ""
    title = f"{measure.capitalize()} after {horizon:,} sessions{_title_suffix(results, table)}"
    return FormattedTable(title, [*headings, "time / session", "engine"], rows, note)


def _title_suffix(results: Results, table: polars.DataFrame) -> str:
    """The instances, the delay and the number of runs, after the horizon in a title."""
    instances, words = results.names("instance"), ""
    if len(instances) == 1:
        words = f", {instances[0]}"
    elif (most := max(table["instances"])) > 1:
        words = f", mean over {most} instances"
    if results.configuration and results.configuration.delay:
        words += f", delay {results.configuration.delay}"
    runs = " to ".join(map(str, sorted({min(table["runs"]), max(table["runs"])})))
    return words + (" (one run)" if runs == "1" else f" (mean ± 95 % interval over {runs} runs)")
