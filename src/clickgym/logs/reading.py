"""Click logs from tables: columns by their roles, rows by session."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Mapping, Sequence
from glob import glob
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_choice, is_sequence
from ..core.files import reading
from .log import ClickLog

Source = str | PathLike[str] | Sequence[str | PathLike[str]] | pl.DataFrame
"""A file, a glob (``logs/*.parquet``) or several of these; or a data frame."""

NEEDED = ("session", "position", "item", "clicked")
LABELS = ("session", "item", "query")
"""Columns of labels: 7 and 007 differ."""
ROLES = (*NEEDED, "query")
FEW = 0.001
"""The largest share of damaged sessions that is left out."""
MANY = 500
"""Sessions that all have a click, or end at one, by no chance."""


def read_log(source: Source, *, columns: Mapping[str, str] | None = None) -> ClickLog:
    """Read a click log: a table with one row per session and position.

    The columns are ``session``, ``position`` (from 0 or 1), ``item`` and ``clicked`` (0 or 1); and
    ``query``, without which all sessions are of the query ``"all"``. The sessions of the log stand
    in the order of their first rows.

    Args:
        source: a data frame of Polars, pandas or pyarrow; or files: Parquet, or CSV with commas,
            tabs, semicolons or bars, perhaps gzipped. Several files, or a glob, are one table.
        columns: names of columns that differ, such as ``{"item": "doc_id"}``.

    Raises:
        ValueError: a file is of another format, a column is missing or has wrong values, or more
            than one session in a thousand is damaged. A damaged session lacks a position, has a
            position or an item twice, or has two queries. The message names the column, or the
            session.
        FileNotFoundError: there is no such file.

    Warns:
        UserWarning: damaged sessions were left out, at most one in a thousand; there is no column
            of queries, but others that were not read; or the log looks as if sessions without a
            click, or positions below the last click, were left out of it.

    Example:
        >>> columns = {"session": [7, 7], "position": [1, 2], "doc": ["b", "a"], "clicked": [1, 0]}
        >>> read_log(pl.DataFrame(columns), columns={"item": "doc"}).item_labels
        ('b', 'a')
    """
    names = {role: role for role in ROLES}
    for role, column in (columns or {}).items():
        names[check_choice("column", role, ROLES)] = column
    if isinstance(source, str | PathLike) or is_sequence(source):
        name = log_name(source)
        with reading(name, "cannot be read", "expected CSV, perhaps gzipped, or Parquet"):
            table = _scan(source, [names[role] for role in LABELS])
            found = table.collect_schema().names()
    else:
        name, table = "the frame", pl.DataFrame(source).lazy()
        found = table.collect_schema().names()
    for role in dict.fromkeys([*NEEDED, *(columns or {})]):
        if names[role] not in found:
            raise ValueError(
                f"{name}: no column {names[role]}; the columns are {', '.join(found)}, and "
                "--columns names others, as in item=doc_id"
            )
    unread = set(found) - set(names.values())
    if unread and names["query"] not in found:
        warnings.warn(
            f"{name}: no column query, so all sessions are of one query; --columns names it, if it "
            f"is one of {', '.join(sorted(unread))}",
            stacklevel=2,
        )
    with reading(name, "cannot be read", "see docs/fit.md"):
        rows = table.select(
            pl.col(names[role]).cast(pl.String if role in LABELS else pl.Float64).alias(role)
            for role in ROLES
            if names[role] in found
        ).collect()
    _check_values(name, rows, names)
    log = _log_of(name, rows)
    clicked = log.clicks.any(axis=1)
    if len(log) >= MANY and clicked.all():
        warnings.warn(
            f"{name}: each of the {len(log):,} sessions has a click, as if those without one were "
            "left out; what is estimated from the log is then too high",
            stacklevel=2,
        )
    ends = np.take_along_axis(log.clicks, log.lengths[:, None] - 1, axis=1)[clicked]
    if len(ends) >= MANY and ends.all() and np.ptp(log.lengths) > 0:
        warnings.warn(
            f"{name}: every list ends at its last click, as if the items below were left out; what "
            "is estimated from the log is then too high",
            stacklevel=2,
        )
    return log


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


def _scan(source: Any, labels: Sequence[str]) -> pl.LazyFrame:
    """The table that files are together; the first one tells the format of all."""
    sources = source if is_sequence(source) else [source]
    files = [Path(file) for one in sources for file in sorted(glob(str(one))) or [str(one)]]
    with unzipped(files[0]) as file:
        head = file.readline()
    if head.startswith(b"PAR1"):
        return pl.scan_parquet(files, glob=False)
    separator = max(",\t;|", key=lambda mark: head.count(mark.encode()))
    types = dict.fromkeys(labels, pl.String)
    return pl.scan_csv(
        files, separator=separator, schema_overrides=types, infer_schema_length=10_000, glob=False
    )


def _check_values(name: str, rows: pl.DataFrame, names: Mapping[str, str]) -> None:
    """Refuse a table without rows, with gaps, or with other clicks than 0 and 1."""
    if not rows.height:
        raise ValueError(f"{name}: there is no row in the log")
    for role in rows.columns:
        gaps = rows[role].is_null()
        if gaps.any():
            row = gaps.arg_true()[0] + 1
            raise ValueError(f"{name}: row {row} has no value in the column {names[role]}")
    wrong = rows.filter((pl.col("clicked") != 0) & (pl.col("clicked") != 1))
    for session, click in wrong["session", "clicked"].rows():
        raise ValueError(
            f"{name}: the session {session!r} has {click:g} in the column {names['clicked']}; "
            "expected 0 or 1"
        )


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
    queries, query_labels = np.zeros(len(starts), np.int32), tuple[str, ...](["all"])
    if "query" in rows.columns:
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
    if "query" in rows.columns:
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
