"""Rows of tables as columns of text, block by block: from text files, Parquet files and data frames."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..core.checks import short, unknown
from ..core.files import check_file, parse_json, reading
from ..core.formats import one_line
from .tables import ROWS, Fault, Skipped, check_kept, read_blocks, read_lines, split_lines

COLUMNS = ("session", "query", "position", "item", "clicked")
"""The columns of a tidy table; without ``query`` all sessions are of one query."""
OTHERS = ("region", "propensity", "list_propensity", "time", "split", "value")
CONTEXT = re.compile("feature_[1-9][0-9]*")
NEEDED = tuple(name for name in COLUMNS if name != "query")
DAMAGED = "is not a Parquet table, or damaged", "restore it from a backup"
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons"}


class Block(NamedTuple):
    """Some rows of a table.

    Attributes:
        rows: the columns as text, missing values ``""``, and ``number``, that of the line or row.
        faults: what is wrong with rows that could not be parsed, by number; of them only the session is there, perhaps.
    """

    rows: pl.DataFrame
    faults: dict[int, Fault]


def begins_as_table(line: bytes) -> bool:
    """Whether this first line can be that of a tidy table in text."""
    try:
        return any({"session", "position"} <= set(header) for header in _headers(line).values())
    except ValueError:
        return False


def _headers(line: bytes) -> dict[str, list[str]]:
    """The names of the columns, by each separator; ``{}`` stands for JSON lines."""
    text = line.decode("utf-8-sig")
    if "\r" in text:
        raise ValueError("it has a carriage return before its end")
    if text.startswith("{"):
        first = parse_json(text)
        return {"{}": list(first) if isinstance(first, dict) else []}
    headers: dict[str, list[str]] = {}
    for mark in SEPARATORS:
        with suppress(csv.Error):  # of quotes that end before another separator
            headers[mark] = next(csv.reader([text], strict=True, delimiter=mark), [])
    return headers or {",": text.split(",")}


def check_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """What columns are called, by their roles; refuses what is no mapping of strings, and roles that there are not."""
    names: Any = {} if columns is None else columns
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for pair in names.items() for name in pair):
        raise ValueError(f'columns is {short(columns)}; expected what columns are called, as {{"item": "doc_id"}}')
    for role in names:
        if role not in (*COLUMNS, *OTHERS) and not CONTEXT.fullmatch(role):
            raise ValueError(unknown("column", role, [*COLUMNS, *OTHERS, "feature_1"]))
    return dict(names)


def roles_of(source: object, columns: Mapping[str, str], split: str | None, header: list[str]) -> dict[str, str]:
    """The name of the column of each role that the table has."""
    roles = [*COLUMNS, *OTHERS, *filter(CONTEXT.fullmatch, dict.fromkeys((*header, *columns)))]
    columns = dict(columns)
    if columns.get("time") == "":  # a column of this name that is no time of sessions
        del columns["time"]
        roles.remove("time")
    if "value" not in columns:  # what clicks are worth says only who names the column
        roles.remove("value")
    names = {role: columns.get(role, role) for role in roles}
    needed = [*NEEDED, *(["split"] if split is not None else []), *columns]
    check_columns_there(source, header, {role: names[role] for role in needed})
    ambiguous = (set(roles) - set(columns)) & set(columns.values())
    for role in filter(ambiguous.__contains__, NEEDED):
        raise ValueError(f"{source}: the column {role!r} cannot be both {role} and another")
    names = {role: name for role, name in names.items() if name in header and role not in ambiguous}
    _check_numbered(source, names, header)
    return names


def _check_numbered(source: object, names: Mapping[str, str], header: list[str]) -> None:
    """Refuse features that are not numbered from 1 without gaps."""
    for j in range(1, 1 + len(list(filter(CONTEXT.fullmatch, names)))):
        if f"feature_{j}" not in names:
            raise ValueError(f"{source}: no column 'feature_{j}'; the file has {', '.join(header)}")


def check_columns_there(path: object, header: list[str], wanted: Mapping[str, str]) -> None:
    """Refuse a header; the message of the ValueError names the column that is missing, or there twice.

    Args:
        path, header: the file, and the names of its columns.
        wanted: names of columns that are needed, by their roles.
    """
    for role, name in wanted.items():
        if name not in header:
            purpose = f" (for {role})" if role != name else ""
            raise ValueError(f"{path}: no column {name!r}{purpose}; the file has {', '.join(header) or 'none'}")
    for name, times in Counter(header).items():
        if times > 1:
            raise ValueError(f"{path}: two columns {name!r}")


class TextTable:
    """A table as text, gzipped or not.

    Args:
        path: the file.
        mark: the separator; ``{}`` stands for JSON lines.
        header: the columns.
        names: of the columns that are read, by their roles.
    """

    def __init__(self, path: Path, mark: str, header: list[str], names: dict[str, str]) -> None:
        self.path, self.mark, self.width, self.names = path, mark, len(header), names
        self.at = {role: header.index(name) for role, name in names.items()}

    def __call__(self) -> Iterator[Block]:
        for number, text in read_blocks(self.path):
            if number == 1 and self.mark != "{}":
                number, text = 2, text[text.index(b"\n") + 1 :]
            if text:
                yield self._regular(number, text) or self._by_line(number, text)

    def _regular(self, first: int, text: bytes) -> Block | None:
        """The rows, if each line has as many separators as the header, and there are no quotes."""
        if self.mark == "{}" or b'"' in text:
            return None
        text = text.replace(b"\r\n", b"\n")
        if b"\r" in text or not same_width(text, self.mark, self.width):
            return None
        try:
            rows = pl.read_csv(
                io.BytesIO(text), has_header=False, separator=self.mark, quote_char=None, infer_schema=False,
                new_columns=[str(index) for index in range(self.width)],
            )  # fmt: skip
        except pl.exceptions.PolarsError:
            return None
        if rows.height != text.count(b"\n") or rows.width != self.width:
            return None
        rows = rows.select(pl.col(str(index)).fill_null("").alias(role) for role, index in self.at.items())
        return Block(_numbered(rows, first), {})

    def _by_line(self, first: int, text: bytes) -> Block:
        rows: list[dict[str, str]] = []
        faults: dict[int, Fault] = {}
        for number, line in split_lines(self.path, first, text):
            try:
                rows.append(self._object(line) if self.mark == "{}" else self._fields(line))
            except Fault as fault:
                faults[number] = fault
                rows.append(self._session(line))
        frame = pl.DataFrame(rows, schema=dict.fromkeys(self.names, pl.String)).fill_null("")
        return Block(_numbered(frame, first), faults)

    def _fields(self, line: bytes) -> dict[str, str]:
        try:
            text = line.decode()
            if "\r" in text:
                raise csv.Error("a carriage return within the line")
            quoted = '"' in text
            fields = next(csv.reader([text], strict=True, delimiter=self.mark)) if quoted else text.split(self.mark)
        except (UnicodeDecodeError, csv.Error) as error:
            raise Fault("not CSV in UTF-8", f"not CSV in UTF-8; {error}") from None
        if len(fields) != self.width:
            raise Fault("wrong number of fields", f"{len(fields)} fields; expected {self.width}, as in the header")
        return {role: fields[index] for role, index in self.at.items()}

    def _object(self, line: bytes) -> dict[str, str]:
        try:
            values = parse_json(line.decode("utf-8-sig"))
        except ValueError as error:
            raise Fault("not JSON", f"not JSON; {error}") from None
        if not isinstance(values, dict):
            raise Fault("not a JSON object", "expected a JSON object with a value for each column")
        return {role: as_text(values.get(name)) for role, name in self.names.items()}

    def _session(self, line: bytes) -> dict[str, str]:
        """What seems to be the session of a line that cannot be parsed."""
        fields = dict(enumerate(line.decode(errors="replace").split(self.mark)))
        return {role: fields.get(self.at[role], "") for role in ("session", "split") if role in self.at}


def _numbered(rows: pl.DataFrame, first: int) -> pl.DataFrame:
    """Rows with their numbers."""
    return rows.with_columns(number=pl.int_range(first, first + rows.height, dtype=pl.Int64))


def as_text(value: Any) -> str:
    """A value of JSON as text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)


def same_width(text: bytes, mark: str, width: int) -> bool:
    """Whether every line has so many fields."""
    letters = np.frombuffer(text, np.uint8)
    ends = letters[(letters == ord(mark)) | (letters == ord("\n"))] == ord("\n")
    return bool(ends[width - 1 :: width].all()) and int(ends.sum()) * width == len(ends)


def tidy_text(path: Path, columns: Mapping[str, str], split: str | None, notes: list[str]) -> TextTable:
    """A tidy table as text; ``notes`` gets a line for what was guessed."""
    try:
        headers = _headers(_first_line(path))
    except ValueError as error:
        raise ValueError(f"{path}, line 1: not CSV in UTF-8, nor a JSON object; {error}") from None
    wanted = {columns.get(role, role) for role in NEEDED}
    # The separator that finds most of the columns; where none finds any, the comma.
    mark = max(headers, key=lambda mark: len(wanted.intersection(headers[mark])))
    names = roles_of(path, columns, split, headers[mark])
    if mark == "{}":
        notes.append("the log is taken for JSON lines")
    elif mark != ",":
        notes.append(f"the columns are taken to be separated by {SEPARATORS[mark]}")
    return TextTable(path, mark, headers[mark], names)


def _first_line(path: Path) -> bytes:
    return next(read_lines(path), (1, b""))[1]


Choose = Callable[[list[str]], dict[str, str]]
"""From a header the names of the columns that are read, by their roles."""


class FrameTable:
    """A table that Polars holds, or reads from Parquet; rows are numbered from 1.

    Attributes:
        header: the names of all columns.
        names: of those that are read, by their roles.
    """

    def __init__(self, source: object, table: pl.LazyFrame, choose: Choose, max_memory: int = sys.maxsize) -> None:
        self.source, self.table, self.max_memory = source, table, max_memory
        schema = table.collect_schema()
        self.header = list(schema)
        self.names = choose(self.header)
        for name in self.names.values():
            if schema[name].is_nested() or schema[name] == pl.Object:
                raise ValueError(f"{source}: the column {name!r} holds {schema[name]}; expected texts or numbers")
        # A truth value is written as a word, unless it is a number.
        flags = [pl.col(name).cast(pl.Int8) for name in schema if schema[name] == pl.Boolean]
        times = [
            pl.col(name).dt.epoch("us") / 1e6
            for role, name in self.names.items()
            if role == "time" and isinstance(schema[name], pl.Date | pl.Datetime)
        ]
        self.texts = (
            table.with_columns(flags)
            .with_columns(times)
            .select(pl.col(name).cast(pl.String).fill_null("").alias(role) for role, name in self.names.items())
        )

    def __call__(self) -> Iterator[Block]:
        n_rows = self.table.select(pl.len()).collect().item()
        for first in range(0, n_rows, ROWS):
            try:
                rows = self.texts.slice(first, ROWS).collect()
            except pl.exceptions.PolarsError as error:  # bytes that are no text
                raise ValueError(f"{self.source}: a column holds no texts or numbers: {one_line(str(error))}") from None
            size = sum(rows.select(pl.all().str.len_bytes().sum().cast(pl.Int64)).row(0))
            check_kept(self.source, size, self.max_memory, f"the texts of the rows {first + 1:,} to {first + rows.height:,}")
            yield Block(_numbered(rows, first + 1), {})


def parquet_table(path: Path, choose: Choose, max_memory: int = sys.maxsize) -> FrameTable:
    """The table of a Parquet file, if it says that it has no more rows than allowed; how large they are shows in each block."""
    with reading(path, *DAMAGED):
        check_file(path)
        table = pl.scan_parquet(path, glob=False)  # a name may have brackets
        n_rows = table.select(pl.len()).collect().item()
    frames = FrameTable(path, table, choose, max_memory)
    check_kept(path, 5 * n_rows, max_memory, f"its {n_rows:,} rows")
    return frames


Rows = Iterator[tuple[int, list[str]]]


def read_table(path: Path, skipped: Skipped, wanted: list[str], others: str = "") -> tuple[list[str], Rows]:
    """Read a table, CSV in UTF-8, gzipped or not, or Parquet.

    Args:
        path: the file.
        skipped: counts rows of the wrong width, which are left out.
        wanted: the columns that it must have.
        others: which it may have, as a regular expression; the rest is not read.

    Returns:
        The names of all columns; and the rows with their numbers: the values of the wanted columns, then of the others in their
        order, missing ones ``""``.

    Raises:
        ValueError: naming the file and the column that is missing, or there twice.
    """

    def choose(header: list[str]) -> dict[str, str]:
        check_columns_there(path, header, {name: name for name in wanted})
        return {name: name for name in (*wanted, *(name for name in header if re.fullmatch(others, name)))}

    if path.suffix == ".parquet":
        frames = parquet_table(path, choose)
        return frames.header, _fields(frames, skipped, reading(path, *DAMAGED))
    try:
        header = next(csv.reader([_first_line(path).decode("utf-8-sig")], strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}, line 1: not CSV in UTF-8; {error}") from None
    return header, _fields(TextTable(path, ",", header, choose(header)), skipped, nullcontext())


def _fields(table: TextTable | FrameTable, skipped: Skipped, guard: AbstractContextManager[None]) -> Rows:
    with guard:
        for rows, faults in table():
            for *fields, number in rows.iter_rows():
                if number in faults:
                    skipped.add(faults[number], number)
                else:
                    yield number, fields
