"""Click logs from tables: columns by their roles, rows by session."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_choice, is_sequence, short
from ..core.files import reading
from .estimation.counting import distinct
from .log import ClickLog

Source = str | PathLike[str] | Sequence[str | PathLike[str]] | pl.DataFrame
"""A file, a glob (``logs/*.parquet``) or several of these; or a data frame."""

VALUES = {"session": "a label", "position": "a number", "item": "a label", "clicked": "0 or 1"}
"""What the columns that a log must have contain, by their roles."""
ROLES = {**VALUES, "query": "a label"}
EXPECTED = "expected CSV, perhaps gzipped, or Parquet; see docs/fit.md"
ONE_TYPE = "expected values of one type in each column"
FEW = 0.001
"""The largest share of damaged sessions that is left out."""
MANY, MANY_KINDS = 500, 20
"""Sessions that all have a click, or end at one, by no chance; and distinct sessions that all
occur equally often, or a multiple of it, by no chance."""


def read_log(source: Source, *, columns: Mapping[str, str] | None = None) -> ClickLog:
    """Read a click log: a table with one row per session and position.

    The columns are ``session``, ``position`` (from 0 or 1), ``item`` and ``clicked`` (0 or 1); and
    ``query``, without which all sessions are of the query ``"all"``. The sessions of the log stand
    in the order of their first rows.

    Args:
        source: a data frame of Polars, pandas or pyarrow; or files: Parquet, or CSV with commas,
            tabs, semicolons or bars, perhaps gzipped, a line for each row. Several files, or a
            glob, are one table.
        columns: names of columns that differ, such as ``{"item": "doc_id"}``.

    Raises:
        ValueError: a file is of another format, a row of a CSV file is no line, a column is
            missing, stands there twice or has wrong values, or more than one session in a
            thousand is damaged. A damaged session lacks a position, has a position or an item
            twice, or has two queries. The message names the file and the line, or the session.
        FileNotFoundError: there is no such file.

    Warns:
        UserWarning: damaged sessions were left out, at most one in a thousand; there is no column
            of queries, but others that were not read; or the log looks as if sessions without a
            click, or positions below the last click, were left out of it, or as if each session
            was written several times.

    Example:
        >>> columns = {"session": [7, 7], "position": [1, 2], "doc": ["b", "a"], "clicked": [1, 0]}
        >>> read_log(pl.DataFrame(columns), columns={"item": "doc"}).item_labels
        ('b', 'a')
    """
    names = {role: role for role in ROLES}
    for role, column in (columns or {}).items():
        names[check_choice("column", role, ROLES)] = column
    needed = [*VALUES, *(columns or {})]
    if isinstance(source, str | PathLike) or is_sequence(source):
        sources: Any = source if is_sequence(source) else [source]
        files = [Path(file) for one in sources for file in sorted(glob(str(one))) or [str(one)]]
        name = log_name(source)
        rows = pl.concat([_rows_of_file(file, names, needed) for file in files])
    else:
        name = "the frame"
        with reading(name, "cannot be read", ONE_TYPE):
            table = pl.DataFrame(source)
        _check_columns(name, table.columns, names, needed)
        rows = _rows(f"{name}: row", 1, table, names)
    if not rows.height:
        raise ValueError(f"{name}: there is no row in the log")
    log = _log_of(name, rows)
    for fault in _faults_of_export(log):
        warnings.warn(f"{name}: {fault}", stacklevel=2)
    return log


def _faults_of_export(log: ClickLog) -> Iterator[str]:
    """What makes a log look as if it was not written as it happened."""
    clicked = log.clicks.any(axis=1)
    if len(log) >= MANY and clicked.all():
        yield (
            f"each of the {len(log):,} sessions has a click, as if those without one were left "
            "out; what is estimated from the log is then too high"
        )
    ends = np.take_along_axis(log.clicks, log.lengths[:, None] - 1, axis=1)[clicked]
    if len(ends) >= MANY and ends.all() and np.ptp(log.lengths) > 0:
        yield (
            "every list ends at its last click, as if the items below were left out; what is "
            "estimated from the log is then too high"
        )
    counts = distinct(np.column_stack([log.queries, log.items, log.clicks]))[2]
    times = int(np.gcd.reduce(counts))
    if times > 1 and len(counts) >= MANY_KINDS:
        yield (
            f"all lists and clicks occur {times} times, or a multiple of it, as if each session "
            "was written so often; the log then tells less than it seems to"
        )


def log_name(source: Any) -> str:
    """What a log is called: by its file, or the first of several."""
    first, *others = source if is_sequence(source) else [source]
    name = Path(first).name
    return f"{name} and {len(others)} more" if others else name


def unzipped(path: Path) -> IO[bytes]:
    """The content of a file, also of one that is gzipped."""
    with path.open("rb") as file:
        is_zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_zipped else path.open("rb")  # type: ignore[return-value]


def _rows_of_file(path: Path, names: Mapping[str, str], needed: Sequence[str]) -> pl.DataFrame:
    """The rows of a file by their roles."""
    with reading(path, "cannot be read", EXPECTED):
        with unzipped(path) as file:
            head = file.readline()
        if is_parquet := head.startswith(b"PAR1"):
            table = pl.scan_parquet(path, glob=False)
        else:
            separator = max(",	;|", key=lambda mark: head.count(mark.encode()))
            _fields(1, head, separator)
            table = pl.scan_csv(path, separator=separator, infer_schema=False, glob=False)
        found = table.collect_schema().names()
    _check_columns(path, found, names, needed)
    # With the last column Polars reads whole lines, and so notices one that has too many fields.
    table = table.select([name for name in found if name in {*names.values(), found[-1]}])
    with reading(path, "cannot be read", EXPECTED):
        rows = table.collect() if is_parquet else _lines(path, separator, table)
    place, first = (f"{path}: row", 1) if is_parquet else (f"{path}: line", 2)
    return _rows(place, first, rows, names)


def _check_columns(
    name: object, found: Sequence[str], names: Mapping[str, str], needed: Sequence[str]
) -> None:
    """Check the names of the columns of a table, and warn if queries are in none of them."""
    for role in needed:
        if names[role] not in found:
            raise ValueError(
                f"{name}: no column {names[role]}; the columns are "
                f"{', '.join(map(short, found[:30]))}, and --columns names others, as in "
                "item=doc_id"
            )
    for column in names.values():
        if f"{column}_duplicated_0" in found:  # as Polars calls the second
            raise ValueError(f"{name}: two columns are called {column}")
    unread = sorted({*found} - {*names.values()})
    if unread and names["query"] not in found:
        warnings.warn(
            "the log has no column query, so all sessions are of one query; --columns names it, if "
            f"it is one of {', '.join(unread)}",
            stacklevel=4,
        )


def _lines(path: Path, separator: str, table: pl.LazyFrame) -> pl.DataFrame:
    """The rows of a CSV file, each of which must be a line.

    A quotation mark that a label begins with, and that is none of CSV, joins all lines up to the
    next one.

    Raises:
        ValueError: naming the first line that is no row by itself.
    """
    with unzipped(path) as file:
        n = sum(1 for _ in file) - 1
    try:
        rows = table.collect()
        if rows.height == n:
            return rows
        fault = f"it has {n:,} lines below the first, but {rows.height:,} rows"
    except pl.exceptions.ComputeError as error:
        fault = str(error)
    width = 0
    with unzipped(path) as file:
        for number, line in enumerate(file, 1):
            fields = _fields(number, line, separator)
            width = width or len(fields)
            if len(fields) != width:
                fault = f"line {number} has {short(line.decode())}; expected {width} fields"
                break
    raise ValueError(fault)


def _fields(number: int, line: bytes, separator: str) -> list[str]:
    """The fields of a line of a CSV file.

    Raises:
        ValueError: naming the line, if it is no row by itself.
    """
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    try:
        (fields,) = csv.reader([text], delimiter=separator, strict=True)
    except csv.Error:
        fields = []
    if not fields or line.count(b'"') % 2 or "\ufffd" in text:
        raise ValueError(
            f"line {number} has {short(text)}; expected fields in UTF-8, and quotation marks in "
            "pairs"
        )
    return fields


def _rows(place: str, first: int, table: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """The columns of a table by their roles, with the types that a log needs.

    Args:
        place, first: what the number of a row is called in a message, and that of the first one.
    """
    values = {}
    for role, expected in ROLES.items():
        if names[role] not in table.columns:
            values[role] = pl.lit("all")  # the query
            continue
        value, kind = pl.col(names[role]), table.schema[names[role]]
        if kind.is_float():
            value = value.fill_nan(None)
        if expected == "a label":
            values[role] = value.cast(pl.String)
            continue
        if kind == pl.String:
            value = value.str.to_lowercase().replace({"true": "1", "false": "0"})
        value = value.cast(pl.Float64, strict=False)
        is_right = value.is_in([0.0, 1.0]) if role == "clicked" else value.is_finite()
        values[role] = pl.when(is_right).then(value)
    with reading(place.rpartition(":")[0], "cannot be read", ONE_TYPE):
        rows = table.select(**values)
    for role, expected in ROLES.items():
        gaps = rows[role].is_null()
        if gaps.any():
            row, column = gaps.arg_true()[0], names[role]
            raise ValueError(
                f"{place} {row + first} has {short(table[column][row])} in the column {column}; "
                f"expected {expected}"
            )
    return rows


def _log_of(name: str, rows: pl.DataFrame) -> ClickLog:
    """The log of rows that are in any order, without damaged sessions."""
    numbers, _ = coded(rows["session"])
    rows = rows.with_columns(number=numbers).sort("number", "position", maintain_order=True)
    starts = np.flatnonzero(np.diff(rows["number"].to_numpy(), prepend=-1))
    lengths = np.diff(starts, append=len(rows))
    damaged = _damaged(name, rows, starts, lengths)
    if damaged.any():
        return _log_of(name, rows.filter(~np.repeat(damaged, lengths)))
    filled = np.arange(lengths.max()) < lengths[:, None]
    items, clicks = np.full(filled.shape, -1, np.int32), np.zeros(filled.shape, np.int8)
    items[filled], item_labels = coded(rows["item"])
    clicks[filled] = rows["clicked"].to_numpy()
    queries, query_labels = coded(rows["query"][starts])
    return ClickLog(items, clicks, queries, item_labels, query_labels)


def _damaged(
    name: str, rows: pl.DataFrame, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which sessions lack a position, have a position or an item twice, or two queries. If they are
    few, a warning says so; else they are refused.

    Args:
        name: of the log.
        rows: by session and position.
        starts, lengths: ``(N,)`` the first row of each session, and how many it has.
    """
    positions = rows["position"].to_numpy()
    first = int(np.quantile(positions[starts], 0.5, method="lower"))
    if first not in (0, 1):
        raise ValueError(f"{name}: the first position is {first}; expected 0 or 1")
    expected = np.arange(len(rows)) - np.repeat(starts, lengths) + first
    is_below = expected > first  # another row of the session
    faults = {
        "has the position {position:g}, twice": is_below & (np.diff(positions, prepend=-1) == 0),
        "has the position {position:g}, but not {expected}": positions != expected,
        "shows the item {item!r} twice": rows.select("number", "item").is_duplicated().to_numpy(),
    }
    changed = (rows["query"] != rows["query"].shift()).fill_null(value=False).to_numpy()
    faults["has two queries"] = is_below & changed
    damaged = np.logical_or.reduceat(np.any([*faults.values()], axis=0), starts)
    if damaged.any():
        found = {what: int(faulty.argmax()) for what, faulty in faults.items() if faulty.any()}
        what, row = min(found.items(), key=lambda fault: fault[1])
        values = rows.row(row, named=True) | {"expected": expected[row]}
        one = f"the session {values['session']!r} {what.format_map(values)}"
        counts = f"{damaged.sum():,} of {len(starts):,} sessions"
        if damaged.mean() > FEW:
            raise ValueError(
                f"{name}: {one}; {counts} are damaged, and at most one in a thousand is left out"
            )
        warnings.warn(f"{name}: left out {counts}, which are damaged: {one}", stacklevel=4)
    return damaged


def coded(values: pl.Series) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The number of each label, and the distinct labels, in order of appearance.

    Example:
        >>> coded(pl.Series(["b", "a", "b"]))
        (array([0, 1, 0], dtype=int32), ('b', 'a'))
    """
    values = values.cast(pl.String)
    labels = values.unique(maintain_order=True)
    numbers = values.cast(pl.Enum(labels)).to_physical().cast(pl.Int32).to_numpy()
    return numbers, tuple(labels)
