"""Finished runs in a folder, one small file each, named by a hash of all that the run depends on.

If the file is there and whole, the run is finished. A file is written beside its name and renamed,
so that several commands may fill one folder, and folders may be merged by copying. It is an array
that `numpy.load` reads, as (rows, steps): a row for each of regret, reward, clicks and further
metrics, NaN where it is unknown. Behind the array stand engine, seconds and a checksum.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from ..core.files import make_folder, parse_json, write_whole
from ..core.formats import counted

if TYPE_CHECKING:
    from .play.run import Result

RUNS = "runs"
RUN = re.compile(r"(?!\.).*-([0-9a-f]{32}-\d+)\.npy")
"""The name of a run's file: words for people, the hash, and the number of the run. The twin that a
Mac makes begins with a dot, and the name of a conflicting copy ends otherwise.
"""
RECORD = re.compile(r"sweep-([0-9a-f]{32})\.json")
CHECKSUM = 8
"""Characters of a checksum."""
Shape = tuple[int, int]


class Row(NamedTuple):
    """The measurements of a finished run.

    Attributes:
        engine: that played it.
        seconds: that it took.
        measured: little-endian float64, a row of checkpoints for each measure.
    """

    engine: str
    seconds: float
    measured: bytes

    @classmethod
    def of(cls, result: Result) -> Row:
        """The row of a run's measurements."""
        columns = [result.regret, result.reward, result.clicks, *result.metrics.values()]
        return cls(result.engine, float(result.seconds), np.array(columns, "<f8").tobytes())


class Store:
    """The files of finished runs in a results folder.

    Args:
        folder: the results folder, which need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / RUNS
        self._read: dict[str, Row] = {}
        self._contents: dict[str, Any] = {}
        self.look()

    def look(self) -> set[str]:
        """Look which files there are now, and return their names."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        self._files = {match[1]: name for name in names if (match := RUN.fullmatch(name))}
        self._records = sorted(name for name in names if RECORD.fullmatch(name))
        return {*self._files.values(), *self._records}

    def __contains__(self, key: str) -> bool:
        return key in self._files

    def rows(self, keys: Iterable[str], shape: Shape) -> dict[str, Row]:
        """The finished runs of some keys; a damaged file counts as none.

        Args:
            keys: of runs, each ``"HASH-NUMBER"``.
            shape: of their arrays.

        Warns:
            UserWarning: files are damaged.
        """
        found, n_damaged = {}, 0
        for key in keys:
            if key in self._files:
                row = self._read.get(key) or _read(self.folder / self._files[key], key, shape)
                if row is None:
                    n_damaged += 1
                else:
                    found[key] = self._read[key] = row
        if n_damaged:
            one = f"file in {self.folder} is damaged: its run is"
            several = f"files in {self.folder} are damaged: their runs are"
            text = f"{counted(n_damaged, one, several)} not finished"
            warnings.warn(text, stacklevel=4)
        return found

    def add(self, key: str, words: str, row: Row, shape: Shape) -> None:
        """Keep a finished run.

        Args:
            key: of the run.
            words: for people, with which a new file's name begins.
            row: of the run.
            shape: of its array.

        Raises:
            FileError: nothing can be written.
        """
        name = self._files.setdefault(key, f"{_plain(words)}-{key}.npy")
        content = _header(shape) + row.measured + f"{row.engine} {row.seconds!r}".encode()
        write_whole(self.folder / name, content + _checksum(content, key))
        self._read[key] = row

    def remove(self, hashes: Iterable[str]) -> None:
        """Remove the runs of some hashes, whatever their numbers."""
        removed = set(hashes)
        for key in [key for key in self._files if key.rpartition("-")[0] in removed]:
            (self.folder / self._files.pop(key)).unlink(missing_ok=True)
            self._read.pop(key, None)

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of the sweeps into the folder; a damaged record gives a warning."""
        for name in self._records:
            if name not in self._contents:
                content = (self.folder / name).read_bytes()
                is_whole = name == _record_name(content)
                self._contents[name] = parse_json(content.decode()) if is_whole else None
                if not is_whole:
                    text = f"{self.folder / name} is damaged: delete it, and call its sweep again"
                    warnings.warn(text, stacklevel=4)
            if self._contents[name] is not None:
                yield self._contents[name]

    def record(self, content: dict[str, Any]) -> None:
        """Record the configuration of a sweep."""
        text = json.dumps(content, indent=1).encode()
        make_folder(self.folder)
        write_whole(self.folder / _record_name(text), text)
        self._records.append(_record_name(text))


@cache
def _plain(words: str) -> str:
    """Words as the beginning of a file's name."""
    return re.sub(r"[^\w.-]+", "_", words, flags=re.ASCII).lstrip(".")[:80]


def _record_name(content: bytes) -> str:
    return f"sweep-{sha256(content).hexdigest()[:32]}.json"


@cache
def _header(shape: Shape) -> bytes:
    """The bytes before the numbers of an array of float64."""
    file = BytesIO()
    np.save(file, np.empty(shape, "<f8"))
    return file.getvalue()[: -8 * shape[0] * shape[1]]


def _checksum(content: bytes, key: str) -> bytes:
    return f"{crc32(content, crc32(key.encode())):0{CHECKSUM}x}".encode()


def _read(path: Path, key: str, shape: Shape) -> Row | None:
    """The run in a file; None if it is damaged, or holds something else than its name says."""
    try:
        with open(path, "rb") as file:
            whole = file.read()
    except OSError:
        return None
    content, start = whole[:-CHECKSUM], len(_header(shape))
    if whole[-CHECKSUM:] != _checksum(content, key):
        return None
    end = start + 8 * shape[0] * shape[1]
    engine, seconds = content[end:].decode().split()
    return Row(engine, float(seconds), content[start:end])
