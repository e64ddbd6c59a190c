"""Tables and sentences in a terminal of any width: no number and no name is truncated.

Text that does not fit is wrapped between words. Less important columns are left out, and a line
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.formats import folded, printable, visible

READABLE = 20
"""The least width of a column of words, in characters."""
GAP = 2

Cell = str | Text


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


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped between words; a word longer than a line is not broken."""
    words = printable(visible(text), console.encoding).split(" ")
    for line in folded(words, console.width, between=" ", indent=0):
        # As `Text`: in a string, rich would interpret [x] and :x: in a name as markup.
        console.print(Text(line, style), soft_wrap=True)


def print_table(
    console: Console,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    title: str = "",
    headings: bool = True,
    groups: bool = False,
) -> None:
    """Print a table that fits the width of a console.

    Args:
        console: the console.
        columns: the columns.
        rows: the cells of each row.
        title: a line above the table.
        headings: whether to print the names of the columns.
        groups: whether rows with the same first cell are grouped below it.
    """
    cells = [[_text(cell, console.encoding) for cell in row] for row in rows]
    if title:
        say(console, title, "bold")
        if headings:
            console.print()
    if not cells:
        return
    names = [printable(column.name if headings else "", console.encoding) for column in columns]
    heading = [Text(name, "bold") for name in names]
    sizes = [
        _least_and_whole(column, texts)
        for column, texts in zip(columns, zip(heading, *cells, strict=True), strict=True)
    ]
    every = {i: least for i, (least, _) in enumerate(sizes) if i or not groups}
    widths = _columns_that_fit(columns, every, console.width)
    for i in widths:  # columns of words take the remaining width, from the left
        room = max(console.width - _total(widths), 0)
        widths[i] = min(widths[i] + room, max(sizes[i]))

    if headings:
        _print_rows(console, columns, widths, [heading])
    for name, group in groupby(cells, key=lambda row: row[0].plain if groups else ""):
        if groups:
            console.print()
            console.print(Text(name, "bold"), soft_wrap=True)
        _print_rows(console, columns, widths, group)
    if hidden := [columns[i].name for i in every if i not in widths]:
        say(console, f"at {_total(every)} columns also: {', '.join(hidden)}", "dim")


def _least_and_whole(column: Column, texts: Sequence[Text]) -> tuple[int, int]:
    """Return the least width at which a column is shown, and the width at which nothing wraps; the
    first text is the heading.
    """
    heading, *cells = (text.plain for text in texts)
    lines = [line for cell in cells for line in cell.split("\n")]
    longest = max(map(cell_len, lines))
    words = " ".join([heading, *(lines if column.words else ())]).split()
    longest_word = max(map(cell_len, words), default=0)
    least = max(longest_word, min(longest, READABLE) if column.words else longest)
    return least, max(longest, cell_len(heading))


def _total(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


def _columns_that_fit(
    columns: Sequence[Column], widths: Mapping[int, int], room: int
) -> dict[int, int]:
    """Return the widths of the columns that fit; those of rank 0 stay, even if lines become longer
    than the terminal.
    """
    widths = dict(widths)
    by_rank = sorted(widths, key=lambda i: (columns[i].rank, i), reverse=True)
    for i in by_rank:
        if columns[i].rank > 0 and _total(widths) > room:
            del widths[i]
    return widths


def _print_rows(
    console: Console,
    columns: Sequence[Column],
    widths: Mapping[int, int],
    rows: Iterable[Sequence[Text]],
) -> None:
    grid = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for i, width in widths.items():
        justify: Literal["left", "right"] = "right" if columns[i].right else "left"
        grid.add_column(width=width, justify=justify, overflow="fold")
    for row in rows:
        grid.add_row(*(row[i] for i in widths))
    options = console.options.update_width(_total(widths))
    for segments in console.render_lines(grid, options, pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()  # a grid is as wide as its widest row
        console.print(line, soft_wrap=True, highlight=False)


def _text(cell: Cell, encoding: str) -> Text:
    """Return a cell for printing; strings are escaped into one line, a `Text` may have several."""
    if isinstance(cell, str):
        return Text(printable(visible(cell), encoding))
    plain = printable(visible(cell.plain, keep="\n"), encoding)
    return cell if plain == cell.plain else Text(plain, cell.style)
