"""Consoles for standard output and standard error, and functions that print text and tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text


def output_console() -> Console:
    """Return a console that prints results to standard output."""
    return _widen(Console())


def error_console() -> Console:
    """Return a console that prints progress, warnings and errors to standard error."""
    return _widen(Console(stderr=True))


def text_console() -> Console:
    """Return a console for capturing text without colours, as wide as `output_console`."""
    return Console(width=output_console().width, force_terminal=False, force_jupyter=False)


def _widen(console: Console) -> Console:
    """Widen a console that writes to a file or a pipe, so that no line is broken, and return it.

    The console keeps its width if the environment variable ``COLUMNS`` sets a positive width.
    """
    if not console.width or not (console.is_terminal or "COLUMNS" in os.environ):
        console.width = 1000
    return console


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print a text, with lines broken only between words, even if a word is longer than a line."""
    # Wrapped in `Text`, because rich would interpret [x] and :x: in a string as markup.
    console.print(Text(text, style), overflow="ignore", crop=False)


class Column(NamedTuple):
    """The heading and the alignment of a column in a printed table.

    Attributes:
        name: the heading of the column.
        align_right: whether the cells are right-aligned, as is usual for numbers; by default, the
            cells are left-aligned.
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
    """Print a table, and wrap its cells if the table is wider than the console.

    Args:
        console: the console on which the table is printed.
        columns: the heading and the alignment of each column.
        rows: the cells of each row: strings, or `Text` with a style.
        title: a line to print above the table; by default, none.
        headings: whether the headings of the columns are printed; True by default.
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
