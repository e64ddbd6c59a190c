"""Files of a report: tables, figure and page beside the results of a sweep."""

from __future__ import annotations

from pathlib import Path

from ...core.files import sealed, write_whole
from ...core.formats import to_csv
from ..results import TABLE, Results
from .figures import save_figure
from .page import to_html

SUMMARY, PAGE = "summary.csv", "report.html"


def update_files(out: Path) -> None:
    """Write the files of all finished runs of a folder, unless they are there already."""
    results, table = Results(out), out / TABLE
    if not table.exists() or table.read_bytes() != sealed(results.rows):
        write_files(out, results)


def write_files(out: Path, results: Results, *, html: bool = False) -> list[str]:
    """Write the tables and the figure of some results into a folder, which must exist.

    Args:
        out: the folder.
        results: those of a sweep, or a selection.
        html: write ``report.html``, too.

    Returns:
        The names of the files.
    """
    write_whole(out / SUMMARY, to_csv(results.table()))
    config = results.configuration
    figures = save_figure(results.plot(), out / "regret", config.origin if config else None)
    if html:
        write_whole(out / PAGE, to_html(results))
    # The last, so that a stopped process writes all again.
    write_whole(out / TABLE, sealed(results.rows))
    return [*(file.name for file in figures), SUMMARY, TABLE, *[PAGE] * html]
