"""Files of a report: tables and figure beside the results of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.files import parquet, write_whole
from ..store import RUNS
from .figures import save_figure

if TYPE_CHECKING:
    from ..results import Results

CONFIG, TABLE, SUMMARY, FIGURE = "config.json", "results.parquet", "summary.csv", "regret"


def is_written(out: Path) -> bool:
    """Whether the files of a folder are newer than its finished runs."""
    runs, table = [file.stat().st_mtime for file in (out / RUNS).iterdir()], out / TABLE
    return table.is_file() and table.stat().st_mtime >= max(runs)


def write_files(out: Path, results: Results, reference: str | None = None) -> list[str]:
    """Write the tables and the figure of some results into a folder, which must exist.

    Args:
        out: the folder.
        results: those of a sweep, or a selection.
        reference: as in `Results.table`.

    Returns:
        The names of the files.
    """
    config = results.configuration
    if config is not None:
        write_whole(out / CONFIG, json.dumps(config.to_json(), indent=1) + "\n")
    write_whole(out / SUMMARY, results.table(reference).write_csv())
    figures = save_figure(results.plot(), out / FIGURE, config.origin if config else None)
    # The last, so that a stopped process writes all again.
    write_whole(out / TABLE, parquet(results.rows))
    return [*(file.name for file in figures), SUMMARY, TABLE]
