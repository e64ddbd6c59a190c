"""Files of a report: tables, figure and page beside the results of a sweep."""

from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path

import polars

from ...core.files import locked, sealed, write_whole
from ...core.formats import to_csv
from ..results import CONFIG, TABLE, Results
from .figures import save_figure
from .page import to_html

SUMMARY, PAGE = "summary.csv", "report.html"
FILES = "clickgym_files"
"""Metadata of the table: the hashes of the files that are written with it."""


def update_files(out: Path) -> None:
    """Write the files of all finished runs of a folder, unless they are there, undamaged."""
    with locked(out / CONFIG):
        results = Results(out)
        if not _are_written(out, results):
            write_files(out, results)


def _are_written(out: Path, results: Results) -> bool:
    try:
        table = (out / TABLE).read_bytes()
        written = polars.read_parquet_metadata(io.BytesIO(table))[FILES]
        hashes = {name: _hash(out / name) for name in json.loads(written)}
    except (OSError, KeyError, ValueError, polars.exceptions.PolarsError):
        return False
    return json.loads(written) == hashes and table == sealed(results.rows, {FILES: written})


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


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
    figures = save_figure(results.plot(), out / "regret", config.origin if config else None)
    if html:
        write_whole(out / PAGE, to_html(results, reference))
    # The last, so that a stopped process writes all again.
    written = {name: _hash(out / name) for name in (SUMMARY, *(file.name for file in figures))}
    write_whole(out / TABLE, sealed(results.rows, {FILES: json.dumps(written)}))
    return [*(file.name for file in figures), SUMMARY, TABLE, *[PAGE] * html]
