"""Rows that no memory holds, in parts; and names of sessions that are there twice."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from ..core.files import writing

stack = partial(pl.concat, how="vertical_relaxed")  # times are whole numbers in some blocks only

PARTS = 64
SPILL = 4_000_000
"""Rows that are held in memory before they go to temporary files."""


class Parts:
    """A growing table, of which many rows lie in temporary files.

    Args:
        number: of the part that a row belongs to, from 0 to `PARTS` - 1.
    """

    def __init__(self, number: pl.Expr) -> None:
        self._number, self._held = number, list[pl.DataFrame]()
        self._folder: Path | None = None

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows."""
        self._held.append(rows)
        if sum(each.height for each in self._held) >= SPILL:
            self.spill()

    def spill(self) -> None:
        """Move the rows in memory, if there are any, to files."""
        if not self._held:
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="clickgym-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        rows, place = stack(self._held).with_columns(part=self._number), len(list(self._folder.iterdir()))
        self._held.clear()
        for (number,), some in rows.partition_by("part", as_dict=True, include_key=False).items():
            path = self._folder / f"{number}-{place}"
            with writing(path):
                some.write_ipc(path)

    @property
    def numbers(self) -> Sequence[int | None]:
        """Of the parts; None stands for the whole table where all of it is in memory."""
        return range(PARTS) if self._folder else [None]

    def part(self, number: int | None) -> list[pl.DataFrame]:
        """The rows of a part."""
        if number is None:
            return self._held
        files = self._folder.glob(f"{number}-*") if self._folder else ()
        return [*(rows.filter(self._number == number) for rows in self._held), *map(pl.read_ipc, files)]


def repeated_name(files: Sequence[Parts]) -> Any:
    """The least number in a column ``name`` that is there twice, in one table or in two; None if there is none."""
    for number in max((each.numbers for each in files), key=len):
        parts = [rows for each in files for rows in each.part(number)]
        if parts and (again := pl.concat(parts).filter(pl.col("name").is_duplicated())["name"].min()) is not None:
            return again
    return None
