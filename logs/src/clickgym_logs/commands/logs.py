"""Options that commands of click logs share."""

from __future__ import annotations

from typing import Annotated

import typer

from ..names import csv_fields

THE_LOG, COUNTED = "Your log", "What counts"
"""Sections of the help text that commands share."""

Log = Annotated[
    list[str],
    typer.Argument(
        rich_help_panel=THE_LOG,
        metavar="LOG...",
        show_default=False,
        help="Files or folders, before the options. Each is a table (CSV, JSON lines or Parquet) "
        "with a row for each position of each session, and the columns session, query, position, "
        "item and clicked.",
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        rich_help_panel=THE_LOG,
        metavar="NAME=COLUMN,...",
        show_default="the standard names",
        help="What the columns are called in your log, as in item=doc_id,clicked=is_click. An "
        "empty name leaves a column out, as in time=.",
    ),
]
Reward = Annotated[
    str,
    typer.Option(
        rich_help_panel=COUNTED,
        metavar="clicks|any_click",
        help="Count the clicks of a session, or 1 if it has any.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")]
Cutoff = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=COUNTED,
        metavar="N",
        help="Count only the first N positions.",
        show_default="all",
    ),
]


def names(columns: str) -> dict[str, str]:
    """The names of columns as ``--columns`` gives them."""
    parts = [part.partition("=") for part in csv_fields(columns) if part]
    result = {name.strip(): column.strip() for name, _, column in parts}
    if not all(name and equals for name, equals, _ in parts) or len(result) < len(parts):
        raise ValueError(
            f"--columns is {columns!r}; expected NAME=COLUMN,... with each name once, as in "
            "item=doc_id"
        )
    return result
