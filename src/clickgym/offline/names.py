"""The names of a log's sessions, of which no memory holds all, and what the files of one log must have in common."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.files import writing

PARTS = 64
SPILL = 4_000_000
"""Names that are held in memory before they go to temporary files."""
_BOUNDS = np.arange(1, PARTS, dtype=np.uint64) << np.uint64(58)


class Names:
    """The names of a file's sessions, as 64 bits of each; many of them lie in temporary files."""

    def __init__(self) -> None:
        self._held: list[pl.Series] = []
        self._n_held = self.n = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def add(self, names: pl.Series) -> None:
        """Add the hashes of names."""
        self._held.append(names)
        self._n_held += len(names)
        self.n += len(names)
        if self._n_held >= SPILL:
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="clickgym-")
            values = np.sort(pl.concat(self._held).to_numpy())
            for number, part in enumerate(np.split(values, np.searchsorted(values, _BOUNDS))):
                path = Path(self._folder.name, str(number))
                with writing(path), path.open("ab") as file:
                    file.write(part.tobytes())
            self._held, self._n_held = [], 0

    def part(self, number: int) -> NDArray[np.uint64]:
        """Those of one of `PARTS` ranges."""
        bounds = [0, *_BOUNDS.tolist(), 1 << 64]
        values = pl.concat(self._held).to_numpy() if self._held else np.empty(0, np.uint64)
        values = values[(values >= np.uint64(bounds[number])) & (values <= np.uint64(bounds[number + 1] - 1))]
        if self._folder and (path := Path(self._folder.name, str(number))).exists():
            values = np.concatenate([values, np.fromfile(path, np.uint64)])
        return values


def repeated_name(files: Sequence[Names]) -> int | None:
    """A hash that is there twice, of one file or of two; None if there is none."""
    if sum(each.n for each in files) < SPILL and len(files) == 1:  # as nearly always
        held = pl.concat(files[0]._held) if files[0]._held else pl.Series([], dtype=pl.UInt64)
        return None if held.n_unique() == len(held) else int(held.filter(held.is_duplicated())[0])
    for number in range(PARTS):
        values = np.sort(np.concatenate([each.part(number) for each in files]))
        again = np.flatnonzero(values[1:] == values[:-1])
        if len(again):
            return int(values[again[0]])
    return None


class Facts(NamedTuple):
    """What the files of a log must have in common, and the names of one's sessions.

    Attributes:
        columns: by role what is read.
        base: the position that the file counts from.
        dates: whether times are dates; None without times.
        names: of the sessions.
        sessions: reads the names again: series of them.
    """

    columns: tuple[str, ...]
    base: int | None
    dates: bool | None
    names: Names
    sessions: Callable[[], Iterator[pl.Series]]
