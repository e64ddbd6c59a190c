"""The consoles of the commands, and functions that print sentences and tables on a console."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text


def output_console() -> Console:
    """Return the console for results: standard output."""
    return _widen(Console())


def error_console() -> Console:
    """Return the console for progress, warnings and errors: standard error."""
    return _widen(Console(stderr=True))


def text_console() -> Console:
    """Return a console whose captured text has no colours. It is as wide as `output_console`."""
    return Console(width=output_console().width, force_terminal=False, force_jupyter=False)


def _widen(console: Console) -> Console:
    """Do not break lines in files and pipes, unless ``COLUMNS`` sets a width other than 0."""
    if not console.width or not (console.is_terminal or "COLUMNS" in os.environ):
        console.width = 1000
    return console


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped between words; a word longer than a line is not broken."""
    # As `Text`: in a string, rich would interpret [x] and :x: in a name as markup.
    console.print(Text(text, style), overflow="ignore", crop=False)


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: the heading.
        align_right: whether the cells are aligned to the right, as numbers are.
    """

    name: str
    align_right: bool = False


def print_table(
    console: Console,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str = "",
    headings: bool = True,
) -> None:
    """Print a table. If the table is wider than the console, its cells are wrapped.

    Args:
        console: the console.
        columns: the columns.
        rows: the cells of each row; strings, or `Text` with a style.
        title: a line above the table.
        headings: whether to print the names of the columns.
    """
    if title:
        print_text(console, title, "bold")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=headings)
    for name, align_right in columns:
        table.add_column(name, justify="right" if align_right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    if table.row_count:
        console.print(table)
