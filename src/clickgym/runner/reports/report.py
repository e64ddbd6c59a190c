"""Report of a finished sweep: its table printed, table and figure written beside its results."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from ...core.files import make_folder, write_whole
from ...core.formats import to_csv
from ...core.terminal import Column, print_table, say
from .. import words
from ..results import TABLE
from ..summaries import reward_for_regret, summary, without_regret
from ..sweep_results import Results
from .figures import regret_figure, save_figure

SUMMARY, PAGE = "summary.csv", "report.html"


def write_report(
    folder: str | os.PathLike[str],
    console: Console,
    *,
    html: bool = False,
    agents: Iterable[str] | None = None,
    environments: Iterable[str] | None = None,
    per_instance: bool = False,
    log: bool = True,
    out: str | os.PathLike[str] | None = None,
    pdf: bool = False,
) -> None:
    """Print the table of a finished sweep, and write ``summary.csv``, ``regret.png`` and
    ``regret.svg``.

    Args:
        folder: the ``out`` of the sweep.
        console: where to print. The table averages over instances; ``summary.csv`` has a row for
            each.
        html: write ``report.html``, a page to read, too.
        agents, environments: what to report, in this order; None takes all.
        per_instance: a table and a panel for each instance, in place of means over them.
        log: the axes of the figure are logarithmic, or linear.
        out: the folder to write into; None takes that of the results.
        pdf: write ``regret.pdf``, too.

    Raises:
        ValueError: the folder is not one of finished results, or has no such agent or environment.

    Into a folder of results that may only be read nothing is written, and a page or a PDF is
    refused by the system.
    """
    if html and not all(map(find_spec, ("jinja2", "plotly"))):
        raise ImportError(
            'report.html needs jinja2 and plotly; install them: pip install "clickgym[report]"'
        )
    folder, target = Path(folder), Path(folder if out is None else out)
    results = Results(folder).select(agents, environments)
    if out is not None:
        make_folder(target)
    results.config = {**results.config, "per_instance": per_instance}
    _print_table(console, results)
    console.print()
    if out is None and not html and not pdf and not os.access(folder, os.W_OK):
        return
    files = _write(target, results, html, log, pdf)
    say(console, f"Results in {target}: {', '.join([*files, *[TABLE] * (out is None)])}")


def _write(target: Path, results: Results, html: bool, log: bool, pdf: bool) -> list[str]:
    """Write summary, figure and page, and return the names of the files."""
    table, timings, config = results.frame, results.timings, results.config
    write_whole(target / SUMMARY, to_csv(summary(table, timings, ("env", "instance", "agent"))))
    pictures = save_figure(regret_figure(table, config, log=log), target / "regret", pdf=pdf)
    if html:
        from .page import to_html  # with jinja2 and plotly, which are an extra

        write_whole(target / PAGE, to_html(table, timings, config, log=log))
    return [*(picture.name for picture in pictures), SUMMARY, *[PAGE] * html]


def _print_table(console: Console, results: Results) -> None:
    config, without = results.config, without_regret(results.frame)
    rows = summary(
        reward_for_regret(results.frame, -1), results.timings, (*words.columns_of(config), "agent")
    )
    columns = [
        Column("environment"),
        *([Column("instance")] if words.separate(config) else []),
        Column("agent"),
        Column(words.measure_of(config["envs"], without), right=True),
        Column("reward / session", rank=1, right=True),
        Column("time / session", rank=2, right=True),
        Column("engine", rank=3),
    ]
    cells = [
        (*filter(None, place), row["agent"], *words.cells_of(row, without))
        for place in words.places_of(config)
        for row in words.rows_of(rows, place).sort("regret").iter_rows(named=True)
    ]
    print_table(console, columns, cells, title=words.heading(config, without), groups=True)
    if without:
        say(console, words.what_is_unknown(without))
