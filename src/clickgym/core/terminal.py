"""Tables and sentences in a terminal of any width: no number and no name is ever cut.

What does not fit folds between words, or is left out by importance with a word about it. Where even
that is not enough, each row becomes some lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
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
    groups: bool | Literal["above"] = False,
    indent: int = 0,
) -> None:
    """Print a table in the width that there is.

    Args:
        console: where to; its width decides.
        columns: what the cells of a row are.
        rows: the cells.
        title: what stands above.
        headings: whether the names of the columns stand above them.
        groups: whether rows that begin alike are set apart; the first cell then stands above them
            where columns lack room, or always: ``"above"``.
        indent: of all but the title.
    """
    table = _Sized(columns, [[_text(cell) for cell in row] for row in rows], headings, groups)
    if title:
        say(console, title, "bold")
    if title and headings:
        console.print()
    if not table.rows:
        return
    visible = table.choose(console.width - indent)
    if visible is None:
        _print_lines(console, table, indent)
    else:
        _print_columns(console, table, visible, indent)


class _Sized:
    """A table whose columns are measured."""

    def __init__(
        self, columns: Sequence[Column], rows: list[list[Text]], headings: bool, groups: bool | str
    ) -> None:
        self.columns, self.rows, self.headings, self.groups = columns, rows, headings, groups
        self._least, self._natural = [], []
        for i, column in enumerate(columns):
            lines = [line for row in rows for line in row[i].plain.split("\n")]
            heading = [column.name] if headings else []
            longest = _longest(lines)
            words = _longest(
                word for text in (lines if column.words else []) + heading for word in text.split()
            )
            self._least.append(
                max(words, min(longest, READABLE)) if column.words else max(words, longest)
            )
            self._natural.append(max(longest, _longest(heading)))

    def _width(self, visible: Sequence[int], sizes: Sequence[int]) -> int:
        return sum(sizes[i] for i in visible) + GAP * (len(visible) - 1)

    @property
    def _everything(self) -> list[list[int]]:
        """The ways to show all columns: as they are, and with the first above its rows."""
        every = list(range(len(self.columns)))
        return [every, every[1:]][self.groups == "above" :] if self.groups else [every]

    @property
    def full_width(self) -> int:
        """From which width on nothing is left out."""
        return min(self._width(every, self._least) for every in self._everything)

    def choose(self, room: int) -> list[int] | None:
        """The columns that have room; None if not even those have that always stay."""
        for every in self._everything:
            if self._width(every, self._least) <= room:
                return every
        visible = self._everything[-1]
        while self._width(visible, self._least) > room:
            last = max(visible, key=lambda i: (self.columns[i].rank, i))
            if self.columns[last].rank == 0:
                return None
            visible = [i for i in visible if i != last]
        return visible

    def widths(self, visible: Sequence[int], room: int) -> dict[int, int]:
        """How wide each is: the columns that fold share the rest of the room."""
        sizes = {i: self._least[i] for i in visible}
        spare = room - self._width(visible, self._least)
        while spare > 0 and (folding := [i for i in visible if sizes[i] < self._natural[i]]):
            for i in folding[:spare]:
                sizes[i] += 1
            spare -= len(folding)
        return sizes

    def hidden(self, visible: Sequence[int]) -> list[str]:
        """The names of the columns that have no room; the first of groups is above its rows."""
        return [
            column.name
            for i, column in enumerate(self.columns)
            if i not in visible and (i or not self.groups)
        ]


def _print_columns(console: Console, table: _Sized, visible: Sequence[int], indent: int) -> None:
    """The rows below the names of the columns, in groups where these are set apart."""
    widths = table.widths(visible, console.width - indent)
    if table.headings:
        _print_rows(
            console,
            table,
            [[Text(column.name, "bold") for column in table.columns]],
            widths,
            indent,
        )
    for place, (first, rows) in enumerate(
        groupby(table.rows, key=lambda row: row[0].plain if table.groups else "")
    ):
        if table.groups and (place or table.headings):
            console.print()
        if 0 not in visible:
            console.print(
                Padding(Text(first, "bold"), (0, 0, 0, indent), expand=False), soft_wrap=True
            )
        _print_rows(console, table, rows, widths, indent)
    if hidden := table.hidden(visible):
        say(console, f"at {table.full_width + indent} columns also: {', '.join(hidden)}", "dim")


def _print_rows(
    console: Console,
    table: _Sized,
    rows: Iterable[Sequence[Text]],
    widths: Mapping[int, int],
    indent: int,
) -> None:
    grid = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for i, width in widths.items():
        grid.add_column(
            width=width, justify="right" if table.columns[i].right else "left", overflow="fold"
        )
    for row in rows:
        grid.add_row(*(row[i] for i in widths))
    for segments in console.render_lines(Padding(grid, (0, 0, 0, indent), expand=False), pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()  # a grid is as wide as its widest row
        console.print(line, soft_wrap=True, highlight=False)


def _print_lines(console: Console, table: _Sized, indent: int) -> None:
    """Each row as some lines, one for each cell."""
    for row in table.rows:
        for place, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
            text = cell.plain if place == 0 or not column.name else f"{column.name}: {cell.plain}"
            space = " " * (indent + 2 * bool(place))
            for line in folded(text.split(), console.width - len(space), between=" ", indent=0):
                if line.strip():
                    console.print(Text(space + line, "" if place else "bold"), soft_wrap=True)


def _text(cell: Cell) -> Text:
    """A cell as it can be printed; of strings no character has an effect, a `Text` may have
    lines.
    """
    if isinstance(cell, str):
        return Text(visible(cell))
    plain = visible(cell.plain, keep="\n")
    return cell if plain == cell.plain else Text(plain, cell.style)


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)
