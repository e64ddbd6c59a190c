"""Options that commands of click logs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from clickgym.runner.console import announce_compiling, errors

from ..log import ClickLog
from ..names import csv_fields
from ..readers import read_log

Log = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...",
        show_default=False,
        help="The click log, before the options: a table with one row per session and position "
        "(CSV, JSON lines or Parquet, with the columns session, query, position, item, clicked), "
        "or in the format of Yandex 2011; a file, a folder, a glob in quotes, or several.",
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        metavar="NAME=COLUMN,...",
        show_default="the standard names",
        help="Names of the columns of your log, as in item=doc_id,clicked=is_click; time=: there "
        "is no time.",
    ),
]
Reward = Annotated[
    str,
    typer.Option(
        metavar="clicks|any_click",
        help="Reward of a session: its number of clicks, or 1 for at least one click.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")]
Cutoff = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Count only the first N positions.",
        show_default="all",
    ),
]


def read_start(files: Sequence[str], columns: str) -> ClickLog:
    """The log from which agents start, as ``clickgym run --start`` reads it."""
    with announce_compiling(errors()):
        return read_log(files, columns=names(columns))


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
