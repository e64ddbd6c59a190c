"""Arguments and options that the commands for click logs share."""

from __future__ import annotations

from typing import Annotated

import typer

from ...runner.console import error_console, print_text
from ..log import ClickLog
from ..reading import read_log

LogFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG",
        show_default=False,
        help="One or more log files (CSV or Parquet), before the options. A log has a row for each "
        "position of each session, and the columns session, query, position, item and clicked.",
    ),
]
ColumnNames = Annotated[
    str,
    typer.Option(
        metavar="NAME=COLUMN,...",
        show_default="the standard names",
        help="Your log's column names, where they differ from the standard names, as in "
        "item=doc_id,clicked=is_click.",
    ),
]
IdsPerFile = Annotated[
    bool,
    typer.Option(
        "--ids-per-file",
        help="Count the same session id in two files as two sessions, because each file numbers "
        "its own sessions.",
    ),
]


def column_names(columns: str) -> dict[str, str]:
    """Parse ``--columns`` into a mapping from the standard column names to the names in the log."""
    parts = [part.partition("=") for part in columns.split(",") if part]
    if not all(equals for _, equals, _ in parts):
        raise ValueError(
            f"--columns is {columns!r}; expected a standard name, =, and your column, with commas "
            "between the pairs, as in session=sid,item=doc_id"
        )
    return {role.strip(): column.strip() for role, _, column in parts}


def read_sessions(log: list[str], columns: str, ids_per_file: bool = False) -> ClickLog:
    """Read a log, and report its number of sessions and the fraction with at least one click."""
    sessions = read_log(log, columns=column_names(columns), ids_per_file=ids_per_file)
    share = sessions.clicks.any(axis=1).mean()
    print_text(
        error_console(), f"read {len(sessions):,} sessions, {share:.1%} of them with a click"
    )
    return sessions
