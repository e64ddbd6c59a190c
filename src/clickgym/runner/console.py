"""The consoles of the commands, and the sentences and tables printed there. In a terminal of any
width no number and no name is truncated: less important columns are left out, and a line says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.compiling import COMPILING, Compiling

GAP = 2
"""Spaces between two columns."""

Cell = str | Text


def output() -> Console:
    """Return the console for results: standard output."""
    return _wide(Console())


def errors() -> Console:
    """Return the console of standard error: progress, warnings and errors."""
    return _wide(Console(stderr=True))


def _wide(console: Console) -> Console:
    """Do not break lines in files and pipes, which have no width, unless ``COLUMNS`` sets one; 0
    sets none.
    """
    if not console.width or not (console.is_terminal or "COLUMNS" in os.environ):
        console.width = 1000
    return console


@contextmanager
def announce_compiling(console: Console) -> Iterator[None]:
    """Context that shows in a terminal that kernels are being compiled."""
    status = console.status(COMPILING, spinner="line" if console.options.ascii_only else "dots")
    with Compiling(lambda going_on: status.start() if going_on else status.stop()):
        yield


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped between words; a word longer than a line is not broken."""
    # As `Text`: in a string, rich would interpret [x] and :x: in a name as markup.
    console.print(Text(text, style), overflow="ignore", crop=False)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: the heading.
        rank: 0 for a column that always stays; otherwise the highest rank is left out first.
        right: whether the cells are aligned to the right, as numbers are.
        words: whether the cells may be wrapped between words.
    """

    name: str
    rank: int = 0
    right: bool = False
    words: bool = False


def print_table(
    console: Console,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    title: str = "",
    headings: bool = True,
) -> None:
    """Print a table that fits the console: columns of words are wrapped, and those of the highest
    rank are left out, which a line says. If the others are still too wide, lines become longer.

    Args:
        console: the console.
        columns: the columns.
        rows: the cells of each row; strings, or `Text` with a style.
        title: a line above the table.
        headings: whether to print the names of the columns.
    """
    if title:
        say(console, title, "bold")
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    if not cells:
        return
    widths = [
        _least_width(column, [row[i].plain for row in cells], headings)
        for i, column in enumerate(columns)
    ]
    shown = _fitting(columns, widths, console.width)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_header=headings)
    for i in shown:
        table.add_column(
            columns[i].name,
            justify="right" if columns[i].right else "left",
            no_wrap=not columns[i].words,
            min_width=widths[i],
        )
    for row in cells:
        table.add_row(*(row[i] for i in shown))
    table_width = _total([widths[i] for i in shown])
    if table_width > console.width:
        table.width = table_width
    console.print(table, crop=False)
    if hidden := [column.name for i, column in enumerate(columns) if i not in shown]:
        say(console, f"at {_total(widths)} columns also: {', '.join(hidden)}", "dim")


def _least_width(column: Column, texts: Sequence[str], has_heading: bool) -> int:
    """The width of a column in which no text, or no word of a column of words, is broken."""
    texts = [column.name, *texts] if has_heading else texts
    parts = [part for text in texts for part in (text.split() if column.words else [text])]
    return max(map(cell_len, parts), default=0)


def _fitting(columns: Sequence[Column], widths: Sequence[int], limit: int) -> list[int]:
    """The numbers of the columns that stay: as long as all are too wide, the last one of the
    highest rank goes.
    """
    shown = list(range(len(columns)))
    while _total([widths[i] for i in shown]) > limit:
        rank = max(columns[i].rank for i in shown)
        if not rank:
            break
        shown.remove(max(i for i in shown if columns[i].rank == rank))
    return shown


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
