"""Tables and sentences in a terminal of any width: no number and no name is cut.

What does not fit folds between words, or is left out by importance with a word about it.
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

from .formats import folded, visible

READABLE = 20
"""Characters below which a column of words is not worth reading."""
GAP = 2

Cell = str | Text


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: its heading, and what it is called where it is left out.
        rank: 0 for what always stays; of the others the highest is left out first.
        right: whether it is a column of numbers, which stand to the right.
        words: whether its cells may fold between words.
    """

    name: str
    rank: int = 0
    right: bool = False
    words: bool = False


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped between words; a word longer than a line is not broken."""
    for line in folded(visible(text).split(" "), console.width, between=" ", indent=0):
        # As `Text`: in a string, rich would read [x] and :x: in a name as its own language.
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
    """Print a table in the width that there is.

    Args:
        console: where to; its width decides.
        columns: what the cells of a row are.
        rows: the cells.
        title: what stands above.
        headings: whether the names of the columns stand above them.
        groups: whether the first cell stands above the rows that begin with it.
    """
    cells = [[_text(cell) for cell in row] for row in rows]
    if title:
        say(console, title, "bold")
        if headings:
            console.print()
    if not cells:
        return
    heading = [Text(column.name if headings else "", "bold") for column in columns]
    sizes = [
        _least_and_whole(column, texts)
        for column, texts in zip(columns, zip(heading, *cells, strict=True), strict=True)
    ]
    every = {i: least for i, (least, _) in enumerate(sizes) if i or not groups}
    widths = _columns_that_fit(columns, every, console.width)
    for i in widths:  # columns of words take the room that is left, from the left
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
    """The width below which a column, whose first text is its heading, is not shown; and the width
    at which nothing folds.
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
    """The widths of the columns that have room; those of rank 0 stay, even where lines become
    longer than the terminal.
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


def _text(cell: Cell) -> Text:
    """A cell as it can be printed; of strings no character has an effect, a `Text` may have
    lines.
    """
    if isinstance(cell, str):
        return Text(visible(cell))
    plain = visible(cell.plain, keep="\n")
    return cell if plain == cell.plain else Text(plain, cell.style)
