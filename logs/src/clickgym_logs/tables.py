"""Files as tables: which files a source names, the format of each, and where in it a row stands."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
from codecs import getincrementaldecoder
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from glob import glob
from itertools import islice
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import IO, Any
from urllib.parse import unquote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clickgym.core.checks import is_sequence
from clickgym.core.files import reading
from clickgym.core.formats import one_line

from .names import csv_line

Source = str | PathLike[str] | pl.DataFrame | Sequence[str | PathLike[str]]
"""A data frame; or a file, a folder or a glob (``logs/**/*.parquet``), or several of these."""

GZIP, BOM, PARQUET = b"\x1f\x8b", b"\xef\xbb\xbf", b"PAR1"
FOREIGN = {
    "a zip archive or a spreadsheet": (b"PK\x03\x04",),
    "compressed by xz": (b"\xfd7zXZ\0",),
    "compressed by zstd": (b"\x28\xb5\x2f\xfd",),
    "compressed by bzip2": (b"BZh",),
    "text in UTF-16": (b"\xff\xfe", b"\xfe\xff"),
}
"""Formats that are not read, and their first bytes."""
EXPECTED = "expected CSV or JSON in UTF-8, perhaps gzipped, or Parquet"
HEAD, CHUNK, OVERLAP = 1 << 16, 1 << 20, 1 << 10
"""Bytes that tell the format of a file; that are searched at once for names; and how many of them
once more with the next, because a name may stand across.
"""
BLOCK = 1 << 22
"""Bytes of lines that are read at once."""
JUDGMENT = re.compile(rb"\S+ +qid:")
CONTROL = re.compile(b"[\0-\x08\x0e-\x1f]")
FEATURE_KEY = re.compile(rb'"(feature_[1-9][0-9]*)"')


def log_files(source: Any) -> list[Path]:
    """The files of a log: one; those of a folder, of its subfolders and of a glob, by name; or
    several of these in the given order.
    """
    sources = list(source) if is_sequence(source) else [source]
    files: list[Path] = []
    for entry in sources:
        if not isinstance(entry, str | PathLike):
            expected = "a path, or a data frame of Polars, pandas or pyarrow"
            raise TypeError(f"log is of type {type(entry).__name__}; expected {expected}")
        path = Path(entry)
        if path.is_dir():
            files += _within(path)
        elif any(mark in str(path) for mark in "*?[") and not os.path.lexists(path):
            found = [Path(name) for name in sorted(glob(str(path), recursive=True))]
            if not found:
                raise ValueError(f"{path}: there is no file of this pattern")
            for match in found:
                if match.is_file() and not (match.name[0] == "_" and path.name[0] == "*"):
                    files.append(match)
                elif match.is_dir() and "**" not in path.parts:
                    files += _within(match)
        elif not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file; {EXPECTED}")
        else:
            files.append(path)
    if not files:
        raise ValueError(f"{', '.join(map(str, sources)) or 'log'}: there is no file")
    return files


def _within(folder: Path) -> list[Path]:
    """The files below a folder, without those that are hidden or that Spark adds (``_SUCCESS``)."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(p[0] in "._" for p in file.relative_to(folder).parts)
    )


class Table:
    """A table that Polars reads: a data frame, or a file whose content tells its format.

    That is Parquet, JSON lines, an array of JSON objects, or else CSV. Folders that are named
    ``day=2026-03-01`` are columns of their files, unless a file has a column of this name.

    Args:
        source: a file or a data frame.
        wanted: the columns to read of JSON, where any object may be the first to have one;
            ``feature_1``, ``feature_2``, ... are read, too. None: only ``head``, `content` and
            `blocks` are.
        expected: what a file should be, for messages.

    Attributes:
        name: what messages call it.
        head: the first bytes of a file, from its first line on.
        is_csv: whether it is CSV, whose values are texts.
        schema: the type of each column; of JSON, all texts, only columns that have values.
        columns: the names of all columns; of JSON those of the first objects.
        folders: the columns that folders are named for, and their value.

    Raises:
        ValueError: a file is in no such format, or damaged.
        OSError: there is no such file.
    """

    def __init__(
        self,
        source: Path | pl.DataFrame,
        wanted: Collection[str] | None = None,
        expected: str = EXPECTED,
    ) -> None:
        self._expected = expected
        self.is_csv = self._is_lines = self._is_zipped = False
        self.schema: dict[str, Any] = {}
        self.head = b""
        self.folders: dict[str, str] = {}
        self._frame: pl.DataFrame | None = None
        self.columns: list[str] = []
        if isinstance(source, Path):
            self.name, self._file = str(source), source
            with self._reading():
                is_parquet = self._sniff(source)
                if wanted is None:
                    return
                self._open(source, wanted, is_parquet)
            if JUDGMENT.match(self.head):
                raise ValueError(
                    f"{self.name} has documents of judged queries, which read_judgments and "
                    f"clickgym features --judgments read; {expected}"
                )
        else:
            self.name, self._frame, self.schema = "the frame", source, dict(source.schema)
        self.columns = self.columns or list(self.schema)

    def has(self) -> str:
        """Its columns, for messages."""
        return shorten(csv_line(map(one_line, self.columns)), 400, placeholder=" ...")

    def read(self, columns: Mapping[str, pl.Expr], types: Mapping[str, Any]) -> pl.DataFrame:
        """Compute columns; ``types`` are those of columns of CSV that are not read as texts."""
        with self._reading():
            return self._scan(types).select(**columns).collect()

    def row(self, columns: Mapping[str, str], number: int) -> dict[str, Any]:
        """The values of a row, counted from 0; none if there is no such row."""
        values = {role: pl.col(column) for role, column in columns.items()}
        if not self.is_csv:  # empty lines of JSON count for the slice of a whole table
            values = {role: value.slice(number, 1) for role, value in values.items()}
        with self._reading():
            table = self._scan({}).select(**values)
            rows = (table.slice(number, 1) if self.is_csv else table).collect()
        return dict(zip(rows.columns, *rows.rows(), strict=True)) if rows.height else {}

    def content(self) -> bytes:
        """All bytes of a file, unzipped."""
        with self._reading(), self._stream() as stream:
            return stream.read()

    def blocks(self) -> Iterator[list[bytes]]:
        """The lines of a file, unzipped and without a byte-order mark, some at a time."""
        mark = BOM
        with self._stream() as stream:
            while True:
                with self._reading():
                    block = stream.readlines(BLOCK)
                if not block:
                    return
                block[0], mark = block[0].removeprefix(mark), b""
                yield block

    def line(self, row: int) -> str:
        """Where a row, counted from 0, is found: the line of a text file, or the row from 1."""
        if self.is_csv or self._is_lines:
            with self._reading():
                for line, _ in islice(self._records(), row + self.is_csv, None):
                    return f"line {line}"
        return f"row {row + 1}"

    def _sniff(self, file: Path) -> bool:
        """Look at the first bytes of a file, and refuse what is not read; whether it is Parquet."""
        with file.open("rb") as stream:
            self._is_zipped = stream.read(len(GZIP)) == GZIP
        with self._stream() as stream:
            head = stream.read(HEAD)
        is_parquet = head.startswith(PARQUET) and not self._is_zipped
        self.head = head.removeprefix(BOM).lstrip()
        self._starts_late = len(self.head) < len(head)
        is_binary = CONTROL.search(self.head.partition(b"\n")[0]) is not None
        faults = {what: head.startswith(magic) for what, magic in FOREIGN.items()} | {
            "not gzipped, as its name says": file.suffix == ".gz" and not self._is_zipped,
            "not Parquet, as its name says": file.suffix == ".parquet" and not is_parquet,
            "gzipped Parquet": head.startswith(PARQUET) and self._is_zipped,
            "text whose lines end in CR, without LF": b"\r" in head and b"\n" not in head,
            "not text": is_binary and not is_parquet,
            "empty": not self.head,
        }
        if any(faults.values()):
            raise ValueError(f"it is {next(filter(faults.get, faults))}")
        if not is_parquet:
            try:
                getincrementaldecoder("utf-8")().decode(head)
            except UnicodeDecodeError as error:
                line = head.count(b"\n", 0, error.start) + 1
                raise ValueError(f"line {line} is not UTF-8") from None
        return is_parquet

    def _open(self, file: Path, wanted: Collection[str], is_parquet: bool) -> None:
        self._is_lines = self.head.startswith(b"{")
        if self._is_lines or self.head.startswith(b"["):
            self._open_json(wanted)
            with suppress(ValueError, RecursionError):  # an object that is longer, or torn
                text = self.head.decode(errors="ignore").lstrip("[ \t\r\n")
                self.columns = list(json.JSONDecoder().raw_decode(text)[0])
        else:
            self.is_csv = not is_parquet
            header = self.head.partition(b"\n")[0]
            self._separator = max(",\t;|", key=lambda mark: header.count(mark.encode()))
            self.schema |= self._scan({}).collect_schema()
        self.folders = {
            key: unquote(value)
            for key, equals, value in (part.partition("=") for part in file.parts[:-1])
            if equals and key not in self.schema
        }
        self.schema |= dict.fromkeys(self.folders, pl.String())

    def _open_json(self, wanted: Collection[str]) -> None:
        """Find the wanted columns of JSON that have values."""
        spelled = {
            json.dumps(name, ensure_ascii=escaped).encode(errors="replace"): name
            for name in wanted
            for escaped in (True, False)
        }
        names, rest = dict.fromkeys(wanted, False), b""
        with self._stream() as stream:
            while chunk := stream.read(CHUNK):
                chunk, rest = rest + chunk, chunk[-OVERLAP:]
                names |= {name.decode(): True for name in FEATURE_KEY.findall(chunk)}
                names |= {name: True for key, name in spelled.items() if key in chunk}
        self.schema = {name: pl.String for name, is_there in names.items() if is_there}
        self._content: Any = self._file
        if self._is_zipped or self._starts_late or not self._is_lines:
            with self._stream() as stream:
                self._content = io.BytesIO(stream.read().removeprefix(BOM).lstrip())
        if not self._is_lines:
            self._frame = pl.read_json(self._content, schema=self.schema)
        # What the first object lacks may be the key of an object within it, or within a text.
        first = self._scan({}).head(1).collect()
        lacking = [name for name in first.columns if first[name].null_count()]
        if lacking:
            has_values = self._scan({}).select(pl.col(lacking).is_not_null().any()).collect()
            for name in lacking:
                if not has_values[name][0]:
                    del self.schema[name]

    def _scan(self, types: Mapping[str, Any]) -> pl.LazyFrame:
        if self._frame is not None:
            table = self._frame.lazy()
        elif self._is_lines:
            table = pl.scan_ndjson(self._content, schema=self.schema)
        elif self.is_csv:
            table = pl.scan_csv(
                self._file,
                separator=self._separator,
                infer_schema=False,
                schema_overrides=types,
                glob=False,
            )
            if not types:  # among texts, an empty line is a row without any
                table = table.filter(~pl.all_horizontal(pl.all().is_null()))
        else:
            table = pl.scan_parquet(self._file, glob=False)
        return table.with_columns(**{k: pl.lit(v) for k, v in self.folders.items()})

    def _stream(self) -> IO[bytes]:
        return gzip.open(self._file) if self._is_zipped else self._file.open("rb")  # type: ignore[return-value]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Context that makes a ValueError of one line of every fault of the file."""
        with reading(self.name, "cannot be read", self._expected), _without_panics():
            try:
                yield
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                raise ValueError(self._fault()) from error
            except PermissionError as error:
                raise ValueError(error.strerror) from None
            except (OSError, EOFError):
                if self._is_zipped:
                    raise ValueError("its gzip data are damaged") from None
                raise

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The line at which each record of a text file begins, and the record: its fields, of JSON
        the line.
        """
        with self._stream() as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
            if self._is_lines:
                yield from (
                    (line, [record]) for line, record in enumerate(text, 1) if record.strip()
                )
                return
            reader, line = csv.reader(text, delimiter=self._separator), 1
            for record in reader:
                if record:
                    yield line, record
                line = reader.line_num + 1

    def _fault(self) -> str:
        """What is wrong with a file that Polars refuses, in words that hold nothing of it."""
        width = 0
        for line, record in self._records() if self.is_csv or self._is_lines else ():
            if any("\ud800" <= letter <= "\udfff" for letter in "".join(record)):
                return f"line {line} is not UTF-8"
            if self._is_lines:
                with suppress(ValueError, RecursionError):
                    # int() refuses NaN and Infinity, which are no JSON
                    if isinstance(json.loads(record[0], parse_constant=int), dict):
                        continue
                return f"line {line} is not a JSON object"
            width = width or len(record)
            if len(record) > width:
                return f"line {line} has {len(record)} values; the first line has {width}"
        if self.is_csv:
            return "a quote is not closed, or not doubled within quotes"
        if self.head.startswith(b"["):
            return "it is not an array of JSON objects whose values are texts or numbers"
        return "it is damaged, or holds values of a kind that is not read"


@contextmanager
def _without_panics() -> Iterator[None]:
    """Context in which Polars' library, which reports a panic by itself, does not write to standard
    error: the error that follows says it.
    """
    shown, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(shown, 2)
        os.close(shown)
        os.close(nowhere)


def coded(values: pl.Series) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The number of each label, and the distinct labels as texts, in order of appearance."""
    distinct = values.unique(maintain_order=True)
    labels = tuple(distinct.cast(pl.String))
    if values.dtype != pl.Categorical:
        numbers = distinct.to_frame("label").with_row_index("number")
        rows = values.to_frame("label").join(numbers, on="label", how="left", maintain_order="left")
        return rows["number"].cast(pl.Int32).to_numpy(), labels
    codes, firsts = values.to_physical().to_numpy(), distinct.to_physical().to_numpy()
    number_of = np.empty(int(firsts.max(initial=0)) + 1, np.int32)
    number_of[firsts] = np.arange(len(firsts))
    return number_of[codes], labels
