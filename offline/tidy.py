"""Tidy tables, one row per session and position, from text, Parquet or memory: what they look like, and how they become lists.

A table comes in blocks of rows, whose columns Polars holds as text. Blocks are parsed and checked as a whole; a row of Python's
is made only of what is wrong. Where the rows of a session do not stand together, which shows in the sessions' names, all rows
are sorted, by the names of the sessions, in parts that go by a hash of them and lie in temporary files.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import unknown
from ..core.files import check_file, parse_json, reading, writing
from ..core.kernels import kernel
from .tables import (
    MAX_MEMORY,
    NUMBER,
    ROWS,
    Fault,
    Skipped,
    check_kept,
    check_size,
    find_columns,
    finite_number,
    parquet_sizes,
    positive_probability,
    read_blocks,
    split_lines,
    whole_number,
)

__all__ = ["COLUMNS", "DUPLICATES", "begins_as_table", "read_frame", "read_rows"]

COLUMNS = ("session", "query", "position", "item", "clicked")
"""The columns of a tidy table; without ``query`` all sessions are of one query."""
OTHERS = ("region", "propensity", "list_propensity", "split")
CONTEXT = re.compile("feature_[1-9][0-9]*")
NEEDED = tuple(name for name in COLUMNS if name != "query")
DUPLICATES = ("refuse", "first")
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons"}
ONE_QUERY = "all"
TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1}
LABEL = 150  # bytes that a label takes besides its letters
PARTS = 64  # of a table whose rows are sorted
SPILL = 4_000_000
"""Rows that are held in memory before they go to temporary files."""

Floats = NDArray[np.float64]


class Block(NamedTuple):
    """Some rows of a table.

    Attributes:
        rows: the columns as text, missing values ``""``, and ``number``, that of the line or row.
        faults: what is wrong with rows that could not be taken apart, by number; of them only the session is there, perhaps.
    """

    rows: pl.DataFrame
    faults: dict[int, Fault]


# --------------------------------------------------------------------------------------------------------- where rows come from


class _Header:
    """Which column is called what, and where it stands."""

    def __init__(self, source: object, header: list[str], columns: Mapping[str, str], split: str | None) -> None:
        for name in columns:
            if name not in (*COLUMNS, *OTHERS) and not CONTEXT.fullmatch(name):
                raise ValueError(unknown("column", name, [*COLUMNS, *OTHERS, "feature_1"]))
        taken = set(columns.values())
        roles = [*COLUMNS, *OTHERS, *filter(CONTEXT.fullmatch, dict.fromkeys((*header, *columns)))]
        self.called = {role: columns.get(role, role) for role in roles}
        needed = [*NEEDED, *(["split"] if split is not None else []), *(role for role in columns)]
        for role in dict.fromkeys(needed):
            name = self.called[role]
            if name not in header:
                other = f" (for {role})" if name != role else ""
                raise ValueError(f"{source}: no column {name!r}{other}; the file has {', '.join(header) or 'none'}")
        for role, name in list(self.called.items()):  # what stands for another column is not itself
            if name not in header or (role not in columns and name in taken):
                if role in NEEDED:
                    raise ValueError(f"{source}: the column {name!r} cannot be both {role} and another")
                del self.called[role]
        self.at = find_columns(source, header, [])
        features = [role for role in self.called if CONTEXT.fullmatch(role)]
        for j in range(len(features)):
            if f"feature_{j + 1}" not in self.called:
                raise ValueError(f"{source}: no column 'feature_{j + 1}'; the file has {', '.join(header)}")


def begins_as_table(line: bytes) -> bool:
    """Whether this first line can be that of a tidy table in text."""
    try:
        return any({"session", "position"} <= set(header) for header in _names(line).values())
    except ValueError:
        return False


def _names(line: bytes) -> dict[str, list[str]]:
    """What the columns are called, by each separator; ``{}`` stands for JSON lines."""
    text = line.decode("utf-8-sig")
    if text.startswith("{"):
        first = parse_json(text)
        return {"{}": list(first) if isinstance(first, dict) else []}
    names: dict[str, list[str]] = {}
    for mark in SEPARATORS:
        with suppress(csv.Error):  # of quotes that end before another separator
            names[mark] = next(csv.reader([text], strict=True, delimiter=mark), [])
    return names or {",": text.split(",")}


class _Text:
    """A table as text, gzipped or not.

    Attributes:
        called: what the columns are called.
    """

    def __init__(self, path: Path, columns: Mapping[str, str], split: str | None, notes: list[str]) -> None:
        self.path = path
        first = next((line for number, block in read_blocks(path) for _, line in split_lines(path, number, block)), b"")
        try:
            names = _names(first)
        except ValueError as error:
            raise ValueError(f"{path}, line 1: not CSV in UTF-8, nor a JSON object; {error}") from None
        wanted = {columns.get(role, role) for role in NEEDED}
        # The separator that finds most of the columns; among equals, none of them all, the comma speaks.
        self.mark = max(names, key=lambda mark: len(wanted.intersection(names[mark])))
        header = names[self.mark]
        found = _Header(path, header, columns, split)
        self.called, self.at = found.called, {role: found.at[name] for role, name in found.called.items()}
        if self.mark == "{}":
            notes.append("the log is taken for JSON lines")
        elif self.mark != ",":
            notes.append(f"the columns are taken to be separated by {SEPARATORS[self.mark]}")
        self.width = len(header)

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
        if b"\r" in text or not same_width(np.frombuffer(text, np.uint8), ord(self.mark), self.width - 1):
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
        return Block(rows.with_columns(number=pl.int_range(first, first + rows.height)), {})

    def _by_line(self, first: int, text: bytes) -> Block:
        table: dict[str, list[str]] = {role: [] for role in self.called}
        numbers: list[int] = []
        faults: dict[int, Fault] = {}
        for number, line in split_lines(self.path, first, text):
            numbers.append(number)
            try:
                fields = self._object(line) if self.mark == "{}" else self._fields(line)
            except Fault as fault:
                faults[number] = fault
                fields = self._session(line)
            for role, column in table.items():
                column.append(fields.get(role, ""))
        rows = pl.DataFrame(table, schema=dict.fromkeys(table, pl.String))
        return Block(rows.with_columns(number=pl.Series(numbers, dtype=pl.Int64)), faults)

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
            message = f"{len(fields)} fields; expected {self.width}, as in the header"
            raise Fault("wrong number of fields", message)
        return {role: fields[index] for role, index in self.at.items()}

    def _object(self, line: bytes) -> dict[str, str]:
        try:
            found = parse_json(line.decode("utf-8-sig"))
        except ValueError as error:
            raise Fault("not JSON", f"not JSON; {error}") from None
        if not isinstance(found, dict):
            raise Fault("not a JSON object", "expected a JSON object with a value for each column")
        return {role: _as_text(found.get(name)) for role, name in self.called.items()}

    def _session(self, line: bytes) -> dict[str, str]:
        """What seems to be the session of a line that cannot be taken apart."""
        fields = dict(enumerate(line.decode(errors="replace").split(self.mark)))
        return {role: fields.get(self.at[role], "") for role in ("session", "split") if role in self.at}


def _as_text(value: Any) -> str:
    """A value of JSON as text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)


@kernel
def same_width(text, mark, expected):  # type: ignore[no-untyped-def]
    """Whether every line has as many separators as expected."""
    found = 0
    for letter in text:
        if letter == mark:
            found += 1
        elif letter == 10:
            if found != expected:
                return False
            found = 0
    return True


class _Frames:
    """A table that Polars holds, or reads from Parquet; rows are numbered from 1."""

    def __init__(
        self, source: object, table: pl.LazyFrame, columns: Mapping[str, str], split: str | None, max_memory: int
    ) -> None:
        self.source, self.table, self.max_memory = source, table, max_memory
        schema = table.collect_schema()
        self.called = _Header(source, list(schema), columns, split).called
        # A truth value is written as a word, unless it is a number.
        flags = [pl.col(name).cast(pl.Int8) for name in schema if schema[name] == pl.Boolean]
        self.texts = table.with_columns(flags).select(
            pl.col(name).cast(pl.String).fill_null("").alias(role) for role, name in self.called.items()
        )

    def __call__(self) -> Iterator[Block]:
        n_rows = self.table.select(pl.len()).collect().item()
        for first in range(0, n_rows, ROWS):
            rows = self.texts.slice(first, ROWS).collect()
            size = sum(rows.select(pl.all().str.len_bytes().sum().cast(pl.Int64)).row(0))
            check_kept(self.source, size, self.max_memory, f"the texts of the rows {first + 1:,} to {first + rows.height:,}")
            yield Block(rows.with_columns(number=pl.int_range(first + 1, first + 1 + rows.height, dtype=pl.Int64)), {})


# ------------------------------------------------------------------------------------------------------- from rows to sessions


def read_rows(
    path: Path,
    split: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    duplicates: str = "refuse",
    strict: bool = True,
    max_memory: int | str = MAX_MEMORY,
) -> dict[str, Any]:
    """The arguments of a `ClickLog` from the file of a tidy table; see `read_tidy`."""
    limit, notes = check_size("max_memory", max_memory), list[str]()
    sessions = _Sessions(path, split, duplicates, Skipped(path, strict), limit, notes)
    if path.suffix != ".parquet":
        return sessions.read(_Text(path, columns or {}, split, notes))
    with reading(path, "is not a Parquet table, or damaged", "take a copy of it"):
        check_file(path)
        n_rows, groups = parquet_sizes(path)
        table = pl.scan_parquet(path, glob=False)  # a name may have brackets
        table.collect_schema()
    frames = _Frames(path, table, columns or {}, split, limit)
    check_kept(path, 5 * n_rows, limit, f"its {n_rows:,} rows")
    unpacked = sum(group.get(name, 0) for group in groups for name in frames.called.values())
    check_kept(path, unpacked, limit, "its values, unpacked,")
    return sessions.read(frames)


def read_frame(frame: Any, *, columns: Mapping[str, str] | None = None, duplicates: str = "refuse") -> dict[str, Any]:
    """The arguments of a `ClickLog` from a tidy table in memory; see `ClickLog.from_frame`."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        table = frame.lazy()
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        table = pl.DataFrame([_series(str(name), frame[name]) for name in frame.columns]).lazy()
    else:
        raise TypeError(f"frame is a {type(frame).__name__}; expected a data frame of pandas or Polars")
    name, limit = "the frame", 1 << 62  # what is in memory already has no other limit
    sessions = _Sessions(name, None, duplicates, Skipped(name, strict=True, unit="row"), limit, [])
    return sessions.read(_Frames(name, table, columns or {}, None, limit))


def _series(name: str, column: Any) -> pl.Series:
    """A column of pandas; numbers as they are, all else value by value."""
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return pl.Series(name, values)
    # What is missing there differs from itself, or cannot be compared.
    missing = column.isna().to_numpy() if hasattr(column, "isna") else [value is None for value in values]
    return pl.Series(name, [None if gone else str(value) for value, gone in zip(values.tolist(), missing, strict=True)])


class _Sessions:
    """Sessions that are being put together from rows.

    Args:
        source: for messages.
        split: keep only the rows of this split; None keeps all.
        duplicates: of `DUPLICATES`.
        skipped: counts what is left out, or refuses it.
        max_memory: bytes.
        notes: told what was taken for granted.
    """

    def __init__(
        self, source: object, split: str | None, duplicates: str, skipped: Skipped, max_memory: int, notes: list[str]
    ) -> None:
        if duplicates not in DUPLICATES:
            raise ValueError(unknown("way with duplicates", duplicates, DUPLICATES))
        self.source, self.split, self.duplicates, self.skipped = source, split, duplicates, skipped
        self.max_memory, self.notes = max_memory, notes
        self.called: Mapping[str, str] = {}
        self.ranks: dict[str, int] = {}
        self._begin()

    def _begin(self) -> None:
        """Forget all sessions."""
        self.skipped.clear()
        self.base: int | None = None
        self.labels = 0  # bytes
        self.longest = 0  # list so far, where that is asked for
        self.item_index: dict[str, int] = {}
        self.query_index: dict[str, int] = {}
        self.lengths, self.queries, self.items, self.clicks = array("i"), array("i"), array("i"), bytearray()
        self.floats = {name: array("d") for name in self.called if name not in (*COLUMNS, "region", "split")}

    def read(self, blocks: _Text | _Frames) -> dict[str, Any]:
        """The arguments of a `ClickLog`."""
        self.called = blocks.called
        self._begin()
        if not self._read_as_they_stand(blocks):
            self._note("the rows of a session do not stand together: they are sorted by session and position")
            self._begin()
            self._read_sorted(blocks)
        if not len(self.lengths):
            raise ValueError(
                f"{self.source}: no session in the file"
                if self.split is None
                else f"{self.source}: no row with split {self.split!r}"
            )
        if "query" not in self.called:
            self._note(f"there is no column 'query': all sessions are taken to be of one query, {ONE_QUERY!r}")
        return self._arguments()

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    # ---------------------------------------------------------------------------------------------------------------- rows

    def _checked(self, block: Block) -> tuple[pl.DataFrame, dict[str, bool], ValueError | None]:
        """The rows of a block that are well-formed; the sessions of those that are not, and whether that is certain (else it
        shows in a list that is shorter than others); strict: up to the first, and its error.

        Columns of the rows: ``key`` (the session's name), ``query``, ``item``, ``number``, ``rank`` (position), ``clicked`` and
        those of numbers.
        """
        rows, faults = block
        if self.split is not None:
            rows = rows.filter((pl.col("split") == self.split) | pl.col("number").is_in(list(faults)))
        texts, codes = _coded(rows["position"])
        ranks = np.array([self._rank(text) for text in texts], np.int32)[codes] if texts else codes
        words, codes = _coded(rows["clicked"])
        clicks = np.array([TRUTH.get(word.lower(), -1) for word in words], np.int8)[codes] if words else codes.astype(np.int8)
        if any(word.lower() in ("true", "false") for word in words):
            self._note("clicked: true and false are taken for 1 and 0")
        key = pl.col("session") if "split" not in self.called else pl.concat_str("split", pl.lit(" "), "session")
        query = pl.col("query") if "query" in self.called else pl.lit(ONE_QUERY)
        if "region" in self.called and "query" in self.called:
            query = pl.concat_str(query, pl.lit("-"), "region")
        made = rows.select(
            "item", "number", *(pl.col(name).cast(pl.Float64, strict=False) for name in self.floats),
            key=key, query=query, rank=pl.Series(ranks, dtype=pl.Int32), clicked=pl.Series(clicks, dtype=pl.Int8),
        )  # fmt: skip
        valid = (ranks >= 0) & (clicks >= 0)
        for name in ("session", "query", "item"):
            if name in self.called:
                valid &= (rows[name] != "").to_numpy()
        for name in self.floats:
            is_number = rows[name].str.contains(f"^{'-?' if CONTEXT.fullmatch(name) else ''}{NUMBER_IN_RUST}$")
            in_range = made[name].is_finite() if CONTEXT.fullmatch(name) else (made[name] > 0) & (made[name] <= 1)
            valid &= (is_number & in_range).fill_null(False).to_numpy()
        bad = np.flatnonzero(~valid)
        if not len(bad):
            return made, {}, None
        lost: dict[str, bool] = {}
        for index in bad.tolist():
            row = rows.row(index, named=True)
            try:
                self.skipped.add(faults.get(row["number"]) or self._fault(row), row["number"])
            except ValueError as error:
                return made[:index], {}, error
            lost[made["key"][index]] = True
            if row["number"] in faults:  # it may have been of the session above it, or below
                beside = [np.flatnonzero(valid[:index])[-1:], index + np.flatnonzero(valid[index:])[:1]]
                for key in made["key"].gather(np.concatenate(beside)):
                    lost.setdefault(key, False)
        return made.filter(valid), lost, None

    def _rank(self, text: str) -> int:
        """A position, or -1."""
        if text not in self.ranks:
            try:
                self.ranks[text] = whole_number("position", text, 0)
            except Fault:
                return -1
        return self.ranks[text]

    def _fault(self, row: Mapping[str, str]) -> Fault:
        """What is wrong with a row."""
        try:
            whole_number("position", row["position"], 1)
            if row["clicked"].lower() not in TRUTH:
                raise Fault("clicked is not 0 or 1", f"clicked is {row['clicked']!r}; expected 0 or 1")
            for name in ("session", "query", "item"):
                if row.get(name) == "":
                    raise Fault("a missing value", f"the column {self.called[name]!r} is empty")
            for name in self.floats:
                (finite_number if CONTEXT.fullmatch(name) else positive_probability)(self.called[name], row[name])
        except Fault as fault:
            return fault
        raise AssertionError(row)

    # ------------------------------------------------------------------------------------------------------------- sessions

    def _read_as_they_stand(self, blocks: _Text | _Frames) -> bool:
        """Read the sessions in the order of their rows; whether those of each stand together."""
        rest: pl.DataFrame | None = None
        lost_before: dict[str, bool] = {}
        fault: ValueError | None = None  # of a session, unless its rows do not stand together
        seen: list[NDArray[np.uint64]] = []
        for block in blocks():
            rows, lost, error = self._checked(block)
            rows = rows if rest is None else pl.concat([rest, rows])
            starts = _starts(rows)
            end = int(starts[-1]) if len(starts) else 0
            names = rows["key"].gather(starts[:-1]).hash().to_numpy()
            seen.append(names)
            if len(np.unique(names)) < len(names):
                return False
            fault = fault or self._add(rows[:end], lost | lost_before)
            if error and not fault:
                raise error
            rest, lost_before = rows[end:], lost
            if rest.height > ROWS:
                raise ValueError(f"{self.source}: session {rest['key'][0]} has more than {ROWS:,} rows")
        if rest is not None and rest.height:
            seen.append(rest["key"][:1].hash().to_numpy())
            fault = fault or self._add(rest, lost_before)
        names = np.concatenate(seen) if seen else np.empty(0)
        if len(np.unique(names)) < len(names):
            return False
        if fault:
            raise fault
        return True

    def _read_sorted(self, blocks: _Text | _Frames) -> None:
        """Read the sessions in the order of their names; those that are numbers by their value."""
        held: list[pl.DataFrame] = []
        lost: dict[str, bool] = {}
        names: list[pl.Series] = []
        with tempfile.TemporaryDirectory(prefix="clickgym-") as name:
            folder, n_files = Path(name), 0
            for block in blocks():
                rows, gone, error = self._checked(block)
                if error:
                    raise error
                held.append(rows)
                lost |= gone
                if sum(frame.height for frame in held) >= SPILL:
                    n_files = _spill(held, folder, n_files)
            if n_files and held:
                n_files = _spill(held, folder, n_files)
            for part in range(PARTS if n_files else 1):
                files = sorted(folder.glob(f"{part}-*"))
                held = [pl.read_ipc(file) for file in files] if n_files else held
                if held:
                    rows = pl.concat(held).sort("key", "rank", "number")
                    if fault := self._add(rows, lost, names):
                        raise fault
                held = []
        self._reorder(_order(pl.concat(names) if names else pl.Series([], dtype=pl.String)))

    def _add(self, rows: pl.DataFrame, lost: Mapping[str, bool], names: list[pl.Series] | None = None) -> ValueError | None:
        """Add whole sessions, the rows of each together.

        Args:
            rows: as from `_checked`.
            lost: sessions of which a row was left out, certainly or perhaps.
            names: told the names of those that were added.

        Returns:
            What is wrong with the first one, if that is not to be counted.
        """
        if rows.is_empty():
            return None
        starts, ranks = _starts(rows), rows["rank"].to_numpy(writable=True)
        run = np.repeat(np.arange(len(starts)), np.diff(starts, append=rows.height))
        if self.base is None:
            self.base = int(ranks[run == 0].min() > 0)
            if not self.base:
                self._note("positions are taken to be counted from 0")
        if ((np.diff(ranks) < 0) & (np.diff(run) == 0)).any():
            order = np.lexsort((ranks, run))
            rows, ranks = rows[order], ranks[order]  # in the order of the file, where equal
        repeated = np.append(False, (np.diff(ranks) == 0) & (np.diff(run) == 0))
        if self.duplicates == "first" and repeated.any():
            self.skipped["a repeated row"] += int(repeated.sum())
            rows = rows.filter(~repeated)
            starts, ranks = _starts(rows), rows["rank"].to_numpy(writable=True)
        labels, items = _coded(rows["item"])
        bounds = np.append(starts, rows.height)
        faults = np.zeros(len(starts), np.int8)
        other_query = (rows["query"] != rows["query"].shift(1)).fill_null(False).to_numpy(writable=True)
        whole = rows["list_propensity"].to_numpy(writable=True) if "list_propensity" in self.floats else np.zeros(1)
        check_runs(bounds, ranks, self.base, items, np.full(len(labels), -1), other_query, whole, faults)
        keys = rows["key"].gather(starts)
        if lost:
            self.longest = max(self.longest, int(np.diff(bounds).max()))
            certain = keys.is_in([key for key, is_certain in lost.items() if is_certain]).to_numpy()
            shorter = keys.is_in(list(lost)).to_numpy() & (np.diff(bounds) < self.longest)
            faults[(certain | shorter) & (faults == 0)] = INCOMPLETE
        if faults.any():
            for session in np.flatnonzero(faults).tolist():
                of_session = rows[int(bounds[session]) : int(bounds[session + 1])]
                try:
                    self._refuse(int(faults[session]), keys[session], of_session)
                except ValueError as error:
                    return error
            rows, keys = rows.filter(np.repeat(faults == 0, np.diff(bounds))), keys.filter(faults == 0)
            bounds = np.append(_starts(rows), rows.height)
            labels, items = _coded(rows["item"])
        self.lengths.frombytes(np.diff(bounds).astype(np.int32).tobytes())
        self.items.frombytes(self._numbers(self.item_index, labels)[items].tobytes())
        queries, codes = _coded(rows["query"].gather(bounds[:-1]))
        self.queries.frombytes(self._numbers(self.query_index, queries)[codes].tobytes())
        self.clicks.extend(rows["clicked"].to_numpy().tobytes())
        for name, values in self.floats.items():
            column = rows[name].gather(bounds[:-1]) if name == "list_propensity" else rows[name]
            values.frombytes(column.to_numpy().tobytes())
        if names is not None:
            names.append(keys)
        kept = (5 + 8 * len(self.floats)) * len(self.items) + 8 * len(self.lengths) + self.labels
        check_kept(self.source, kept, self.max_memory, f"the first {len(self.lengths):,} sessions")
        return None

    def _refuse(self, fault: int, label: str, rows: pl.DataFrame) -> None:
        """Count a session that is left out, or refuse it."""
        base, n, number, near = self.base, rows.height, rows["number"].max(), "near "
        if base and rows["rank"][0] == 0:
            number, near, reason = rows["number"][0], "", "position is not a whole number from 1"
            message = "position is '0'; expected a whole number from 1, as in the first session"
        elif fault == INCOMPLETE:
            reason = "an incomplete session"
            message = f"session {label} does not have each position from {base} to {rows['rank'][-1]} exactly once"
        elif fault == REPEATED:
            twice = rows.filter(rows["rank"].is_duplicated())["rank"][0]
            reason = "a position twice in a session"
            message = f"session {label} has the position {twice} twice; duplicates 'first' keeps the first of repeated rows"
        else:
            reason, said = {
                TWO_QUERIES: ("two queries in a session", "has two queries"),
                ITEM_TWICE: ("an item twice in a session", "shows an item twice"),
                TWO_PROPENSITIES: ("two list propensities in a session", "has two list propensities"),
            }[fault]
            message = f"session {label} {said}"
        self.skipped.add(Fault(reason, message), number, n, near)  # type: ignore[arg-type]

    def _numbers(self, index: dict[str, int], labels: list[str]) -> NDArray[np.int32]:
        """The numbers of labels, new ones in their order."""
        known = len(index)
        numbers = np.array([index.setdefault(label, len(index)) for label in labels], np.int32)
        if len(index) > known:
            self.labels += sum(map(len, labels)) + LABEL * (len(index) - known)
        return numbers

    def _reorder(self, order: NDArray[np.int64]) -> None:
        """Put the sessions into another order, and number labels as they come."""
        if (np.diff(order) == 1).all():
            return
        lengths = np.frombuffer(self.lengths, np.int32)
        ends = lengths.cumsum()
        sizes = lengths[order]
        rows = np.repeat((ends - lengths)[order] - (sizes.cumsum() - sizes), sizes) + np.arange(len(self.items))

        def moved(values: Any, dtype: type, index: NDArray[Any]) -> Any:
            return np.frombuffer(values, dtype)[index]

        for name, values in self.floats.items():
            self.floats[name] = array("d", moved(values, float, order if name == "list_propensity" else rows).tobytes())
        self.clicks = bytearray(moved(self.clicks, np.int8, rows).tobytes())
        items, queries = moved(self.items, np.int32, rows), moved(self.queries, np.int32, order)
        self.item_index, self.query_index = _renumber(items, self.item_index), _renumber(queries, self.query_index)
        self.lengths, self.items, self.queries = (array("i", part.tobytes()) for part in (sizes, items, queries))

    def _arguments(self) -> dict[str, Any]:
        lengths = np.frombuffer(self.lengths, np.int32)
        shape = len(lengths), int(lengths.max())
        width = 5 + 8 * len(self.floats)
        size = width * shape[0] * shape[1] + self.labels
        check_kept(self.source, size, self.max_memory, f"{shape[0]:,} sessions of up to {shape[1]:,} positions")
        shown = None if (lengths == shape[1]).all() else np.arange(shape[1], dtype=np.int32) < lengths[:, None]

        def padded(values: Any, dtype: type, below: float) -> NDArray[Any]:
            flat: NDArray[Any] = np.frombuffer(values, dtype)
            if shown is None:
                return flat.reshape(shape)
            result: NDArray[Any] = np.full(shape, below, dtype)
            result[shown] = flat
            return result

        floats = self.floats
        features = [f"feature_{j + 1}" for j in range(sum(CONTEXT.fullmatch(name) is not None for name in floats))]
        return {
            "items": padded(self.items, np.int32, -1),
            "clicks": padded(self.clicks, np.int8, 0),
            "queries": np.frombuffer(self.queries, np.int32),
            "item_labels": tuple(self.item_index),
            "query_labels": tuple(self.query_index),
            "propensities": padded(floats["propensity"], np.float64, 1) if "propensity" in floats else None,
            "list_propensities": np.frombuffer(floats["list_propensity"]) if "list_propensity" in floats else None,
            "context": np.stack([padded(floats[name], np.float64, 0) for name in features], axis=2) if features else None,
            "skipped": dict(+self.skipped),
            "notes": tuple(self.notes),
        }


NUMBER_IN_RUST = NUMBER.pattern.replace(r"\d", "[0-9]")
INCOMPLETE, REPEATED, TWO_QUERIES, ITEM_TWICE, TWO_PROPENSITIES = 1, 2, 3, 4, 5


@kernel
def check_runs(bounds, ranks, base, items, seen, other_query, whole, faults):  # type: ignore[no-untyped-def]
    """What is wrong with each session; 0 if nothing is.

    Args:
        bounds: ``(N + 1,)``, the first row of each, and the number of rows.
        ranks: ascending in each session.
        base: the first rank.
        items: numbers of the items.
        seen: -1 for each item; working memory.
        other_query: whether the query is another than in the row above.
        whole: the list propensity in each row, or a single number.
        faults: ``(N,)`` zeros, set.
    """
    for session in range(len(faults)):
        first, stop = bounds[session], bounds[session + 1]
        incomplete = repeated = two_queries = twice = two_propensities = False
        for row in range(first, stop):
            incomplete |= ranks[row] != base + row - first
            twice |= seen[items[row]] == session
            seen[items[row]] = session
            if row > first:
                repeated |= ranks[row] == ranks[row - 1]
                two_queries |= other_query[row]
                two_propensities |= len(whole) > 1 and whole[row] != whole[row - 1]
        if repeated:
            faults[session] = REPEATED
        elif incomplete:
            faults[session] = INCOMPLETE
        elif two_queries:
            faults[session] = TWO_QUERIES
        elif twice:
            faults[session] = ITEM_TWICE
        elif two_propensities:
            faults[session] = TWO_PROPENSITIES


def _starts(rows: pl.DataFrame) -> NDArray[np.int64]:
    """The first row of each run of a session."""
    return np.flatnonzero((rows["key"] != rows["key"].shift(1)).fill_null(True).to_numpy())


def _coded(texts: pl.Series) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts, in order of appearance, and the number of each row's."""
    distinct = texts.unique(maintain_order=True)
    return distinct.to_list(), texts.cast(pl.Enum(distinct)).to_physical().cast(pl.Int32).to_numpy(writable=True)


def _spill(held: list[pl.DataFrame], folder: Path, n_files: int) -> int:
    """Write rows to files by a hash of their sessions, and let them go; returns how many times that was done."""
    rows = pl.concat(held)
    held.clear()
    part = rows["key"].hash() % PARTS
    for some in rows.with_columns(part=part).partition_by("part"):
        path = folder / f"{some['part'][0]}-{n_files}"
        with writing(path):
            some.drop("part").write_ipc(path)
    return n_files + 1


def _order(names: pl.Series) -> NDArray[np.int64]:
    """How the sessions stand in order."""
    numeric = names.str.contains("^(0|[1-9][0-9]{0,17})$").all()
    return (names.cast(pl.Int64) if numeric else names).arg_sort().cast(pl.Int64).to_numpy()


def _renumber(numbers: NDArray[np.int32], index: dict[str, int]) -> dict[str, int]:
    """Number labels in the order in which they come."""
    labels, new, order = list(index), np.full(len(index), -1, np.int32), np.empty(len(index), np.int32)
    n_met = renumber(numbers, new, order)
    return {labels[old]: number for number, old in enumerate(order[:n_met].tolist())}


@kernel
def renumber(numbers, new, order):  # type: ignore[no-untyped-def]
    """Replace numbers by those of their first appearance.

    Args:
        numbers: replaced.
        new: -1 for each number; working memory.
        order: set to the old numbers in the order of the new ones.

    Returns:
        How many there are.
    """
    n_met = 0
    for i in range(len(numbers)):
        old = numbers[i]
        if new[old] < 0:
            new[old] = n_met
            order[n_met] = old
            n_met += 1
        numbers[i] = new[old]
    return n_met
