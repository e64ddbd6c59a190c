"""Table and figure of a finished sweep: printed, and written beside its results."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import polars
from rich.console import Console

from ...envs.files import write_whole
from ..formats import duration, regret_text
from ..results import read_results
from ..statistics import reward_for_regret, summary, without_regret
from .exports import to_latex, to_markdown
from .terminal import Column, print_table, say
from .words import heading, measure_of, what_is_told, what_is_unknown

__all__ = ["Format", "write_report"]

SUMMARY = "summary.csv"

Format = Literal["html", "md", "tex"]


def write_report(
    folder: str | os.PathLike[str],
    console: Console,
    formats: Collection[Format] = (),
    *,
    bounds: bool = False,
    instances: Iterable[str] = (),
) -> None:
    """Print the table of a finished sweep, and write ``summary.csv``, ``regret.png`` and ``regret.svg`` into its folder.

    Args:
        folder: the ``out`` of the sweep.
        console: where to print. The table averages over instances; ``summary.csv`` has a row for each.
        formats: what to write besides: ``report.html``, a page to read; the table as ``report.md`` and ``report.tex``.
        bounds: draw the bounds of the theory into the figure and the page, and say which there are not.
        instances: as `theory_of` takes them.

    Raises:
        ValueError: the folder is not one of finished results.

    Into a folder that may only be read nothing is written, and formats are refused by the system.
    """
    # matplotlib and plotly are slow to load, and bad input should be named before.
    from .bounds import theory_of
    from .figures import outside, regret_figure, save_figure

    folder = Path(folder)
    table, timings, config = read_results(folder)
    without = without_regret(table)
    _print_table(console, summary(reward_for_regret(table, -1), timings), config, without)
    console.print()
    for note in filter(None, (what_is_unknown(without), what_is_told(timings, config))):
        say(console, note)
    theory = theory_of(config, instances) if bounds else None
    if theory is not None:
        for note in (*outside(table, config, theory), *theory.notes):
            say(console, note)
    if not formats and not os.access(folder, os.W_OK):
        return
    write_whole(folder / SUMMARY, summary(table, timings, ("env", "instance", "agent")).write_csv())
    written = [*(picture.name for picture in save_figure(regret_figure(table, config, theory), folder / "regret")), SUMMARY]
    if formats:
        from .page import to_html

        for name, make in (("html", partial(to_html, theory=theory)), ("md", to_markdown), ("tex", to_latex)):
            if name in formats:
                write_whole(folder / f"report.{name}", make(table, timings, config))
                written.append(f"report.{name}")
    say(console, f"Results in {folder}: {', '.join(written)}, results.parquet")


def _print_table(console: Console, rows: polars.DataFrame, config: dict[str, Any], without: list[str]) -> None:
    columns = [
        Column("environment"),
        Column("agent"),
        Column(measure_of(config["envs"], without), right=True),
        Column("reward / session", rank=1, right=True),
        Column("time / session", rank=2, right=True),
        Column("engine", rank=3),
    ]
    cells = [
        (
            env,
            row["agent"],
            regret_text(-row["regret"] if env in without else row["regret"], row["regret_ci95"]),
            f"{row['reward']:.4f}",
            duration(row["ns_per_session"]),
            row["engine"],
        )
        for env in config["envs"]
        for row in rows.filter(polars.col("env") == env).sort("regret").iter_rows(named=True)
    ]
    print_table(console, columns, cells, title=heading(config, without), groups=True)
