"""Options of commands that read a click log, by a reader of another package: an entry point of the
group `READERS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from ..warm_start import Start as StartLog

READERS = "clickgym.readers"
"""Each is a function ``(files, columns)``, as ``--start`` and ``--columns`` give them, that returns
what `clickgym.make_agent` takes as a log.
"""

Start = Annotated[
    list[str] | None,
    typer.Option(
        "--start",
        metavar="LOG...",
        rich_help_panel="Click logs",
        help="A click log from which the agents learn before session 1: the sessions of the "
        "query and the items of the instance, which clickgym fit made of such a log.",
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        metavar="NAME=COLUMN,...",
        rich_help_panel="Click logs",
        help="Names of the columns of the log of --start.",
    ),
]


def typed_log(files: Sequence[str] | None, columns: str) -> StartLog | None:
    """The log of ``--start``; None without the option.

    Raises:
        ValueError: no installed package reads logs, or the log cannot be read.
    """
    if not files:
        if columns:
            raise ValueError("--columns names columns of a log; expected --start with the log")
        return None
    readers = sorted(entry_points(group=READERS), key=lambda reader: reader.name)
    if not readers:
        raise ValueError(
            f"--start needs a reader of click logs, and no installed package has one (an entry "
            f"point of the group {READERS})"
        )
    log = readers[0].load()(list(files), columns)
    paths = [str(Path(file).resolve()) if Path(file).exists() else file for file in files]
    words = ["--start", *paths, *(["--columns", columns] if columns else [])]
    return StartLog(log, words)
