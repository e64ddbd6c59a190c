"""Files of a report: tables, figure and page beside the results of a sweep."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import polars

from ...core.files import parquet, reading, write_whole
from ...core.formats import to_csv
from ..results import Results
from .figures import save_figure
from .page import to_html

CONFIG, TABLE, SUMMARY = "config.json", "results.parquet", "summary.csv"
FIGURE, PAGE = "regret", "report.html"


def update_files(out: Path) -> None:
    """Write the files of all finished runs of a folder, unless they are there."""
    results = Results(out)
    if not _are_written(out, results):
        write_whole(out / CONFIG, json.dumps(results.config, indent=1) + "\n")
        write_files(out, results)


def _are_written(out: Path, results: Results) -> bool:
    with suppress(OSError, ValueError), reading(out / TABLE, "is damaged", "it is written anew"):
        files = (CONFIG, SUMMARY, f"{FIGURE}.png", f"{FIGURE}.svg")
        are_there = all((out / name).is_file() for name in files)
        return are_there and polars.read_parquet(out / TABLE).equals(results.rows)
    return False


def write_files(
    out: Path, results: Results, *, html: bool = False, reference: str | None = None
) -> list[str]:
    """Write the tables and the figure of some results into a folder, which must exist.

    Args:
        out: the folder.
        results: those of a sweep, or a selection.
        html: write ``report.html``, too.
        reference: as in `Results.table`.

    Returns:
        The names of the files.
    """
    write_whole(out / SUMMARY, to_csv(results.table(reference)))
    config = results.configuration
    figures = save_figure(results.plot(), out / FIGURE, config.origin if config else None)
    if html:
        write_whole(out / PAGE, to_html(results, reference))
    # The last, so that a stopped process writes all again.
    write_whole(out / TABLE, parquet(results.rows))
    return [*(file.name for file in figures), SUMMARY, TABLE, *[PAGE] * html]
