"""Files of a report: tables, figure and page beside the results of a sweep."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import polars

from ...core.files import parquet, reading, write_whole
from ...core.formats import to_csv
from ..results import TABLE, Results, read_results, write_config
from ..store import Store
from .figures import save_figure
from .page import to_html

SUMMARY, PAGE = "summary.csv", "report.html"
FILES = "clickgym_files"
"""Metadata of the table: the checksums of the files that are written with it."""


def update_files(out: Path, store: Store) -> None:
    """Write the files of all finished runs of a folder, unless they are there, undamaged. If other
    commands finish runs meanwhile, write them again.
    """
    there = None
    while there != store.look():
        there = store.look()
        results = Results(*read_results([store]))
        if results.configuration is not None:
            write_config(out, results.configuration)
        if not _are_written(out, results):
            write_files(out, results)


def _are_written(out: Path, results: Results) -> bool:
    with suppress(OSError, ValueError), reading(out / TABLE, "is damaged", "it is written anew"):
        written = json.loads(polars.read_parquet_metadata(out / TABLE)[FILES])
        is_whole = written == {name: _checksum(out / name) for name in written}
        return is_whole and polars.read_parquet(out / TABLE).equals(results.rows)
    return False


def _checksum(path: Path) -> int:
    return crc32(path.read_bytes())


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
    written = {name: _checksum(out / name) for name in (SUMMARY, *(file.name for file in figures))}
    write_whole(out / TABLE, parquet(results.rows, {FILES: json.dumps(written)}))
    return [*(file.name for file in figures), SUMMARY, TABLE, *[PAGE] * html]
