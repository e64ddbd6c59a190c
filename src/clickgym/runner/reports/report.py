"""Files of a report: tables and figure beside the results of a sweep."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ...core.files import parquet, write_whole
from ..results import Results
from ..store import RUNS, read_folders
from . import figures

CONFIG, TABLE, SUMMARY, FIGURE = "config.json", "results.parquet", "summary.csv", "regret"


def write_folder(out: Path) -> None:
    """Write the files of a results folder, unless they are of all its finished runs already.

    The table has the time at which a run was last added before the folder was read. So it tells
    whether runs came later, also if several commands fill the folder.
    """
    last_added = max(file.stat().st_mtime_ns for file in (out / RUNS).iterdir())
    if _time_of(out / TABLE) != last_added:
        write_files(out, Results(*read_folders([out])[:2]), last_added=last_added)


def write_files(
    out: Path, results: Results, reference: str | None = None, last_added: int | None = None
) -> list[str]:
    """Write the tables and the figure of some results into a folder, which must exist.

    Args:
        out: the folder.
        results: those of a sweep, or a selection.
        reference: as in `Results.table`.
        last_added: of a results folder: when a run was last added before it was read, in
            nanoseconds. If another command has written a table with later runs meanwhile, that one
            stays.

    Returns:
        The names of the files.
    """
    config, figure = results.configuration, results.plot()
    origin = None if config is None else config.origin
    files: dict[str, str | bytes] = {
        f"{FIGURE}.{kind}": figures.figure_bytes(figure, kind, origin) for kind in ("png", "svg")
    }
    files[SUMMARY] = results.table(reference).write_csv()
    files[TABLE] = parquet(results.rows)
    if last_added is None or _time_of(out / TABLE) <= last_added:
        if config is not None:
            write_whole(out / CONFIG, json.dumps(config.to_json(), indent=1) + "\n")
        for name, content in files.items():  # the table last: a stopped process writes all again
            write_whole(out / name, content)
        if last_added is not None:
            os.utime(out / TABLE, ns=(last_added, last_added))
    return [*files]


def _time_of(file: Path) -> int:
    """When a file was last written, in nanoseconds; 0 without the file."""
    return file.stat().st_mtime_ns if file.is_file() else 0
