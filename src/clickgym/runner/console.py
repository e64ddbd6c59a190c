"""Consoles for standard output and standard error, and functions that print text and tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

PADDING = 2
"""The number of spaces between two columns of a table."""


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
    """Print a table. Columns that do not fit into the console are printed in further blocks below,
    each of which begins with the first column, so no number is broken.

    Args:
        console: the console on which the table is printed.
        columns: the heading and the alignment of each column.
        rows: the cells of each row: strings, or `Text` with a style.
        title: a line to print above the table; by default, none.
        headings: whether the headings of the columns are printed; True by default.
    """
    if title:
        print_text(console, title, "bold")
    lines = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    for block in _blocks(columns, lines, console.width) if lines else []:
        table = Table(box=None, padding=(0, PADDING, 0, 0), pad_edge=False, show_header=headings)
        for k in block:
            name, align_right = columns[k]
            justify: Any = "right" if align_right else "left"
            table.add_column(name, justify=justify, overflow="fold", no_wrap=align_right)
        for line in lines:
            table.add_row(*(line[k] for k in block))
        console.print(table)


def _blocks(
    columns: Sequence[Column], lines: Sequence[Sequence[Text]], width: int
) -> list[list[int]]:
    """Divide the columns of a table into blocks that fit into a width, and return the numbers of
    the columns in each block. The first column is in every block. Right-aligned columns keep their
    width; in all other columns, lines may be broken between words.
    """
    needed = []
    for k, (name, align_right) in enumerate(columns):
        texts = [name, *(line[k].plain for line in lines)]
        unbroken = texts if align_right else " ".join(texts).split()
        needed.append(max(map(cell_len, unbroken), default=0) + PADDING)
    blocks = [[0]]
    for k in range(1, len(columns)):
        wide = sum(needed[other] for other in (*blocks[-1], k)) - PADDING > width
        if wide and len(blocks[-1]) > 1:
            blocks.append([0])
        blocks[-1].append(k)
    return blocks
