"""Click logs from tables: columns by their roles, rows by session."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from glob import glob
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_choice, is_sequence
from ..core.files import reading
from .distinct import distinct
from .log import ClickLog
from .yandex import is_yandex, yandex_table

Source = str | PathLike[str] | Sequence[str | PathLike[str]] | pl.DataFrame
"""A file, a glob (``logs/*.parquet``) or several of these; or a data frame."""

NEEDED = ("session", "position", "item", "clicked")
ROLES = (*NEEDED, "query", "propensity", "list_propensity", "user")
LABELS = ("session", "item", "query", "user")
"""Roles of which the values are labels: 7 and 007 differ."""
OF_SESSIONS = ("query", "list_propensity", "user")
"""Roles of which a session has one value."""
RANGES = {
    "clicked": "0 or 1",
    "propensity": "a probability above 0",
    "list_propensity": "a probability above 0",
}
FEW = 0.001
"""The largest share of damaged sessions that is left out."""
MANY_SESSIONS, MANY_KINDS = 500, 20
"""Sessions that all have a click, and distinct sessions that all occur equally often or a multiple
of it, by no chance.
"""
ONE_QUERY = "all"
EXPECTED = "expected CSV, perhaps gzipped, or Parquet"


def read_log(source: Source, *, columns: Mapping[str, str] | None = None) -> ClickLog:
    """Read a click log: a table with one row per session and position.

    The columns are ``session``, ``position`` (from 0 or 1), ``item`` and ``clicked`` (0 or 1); and
    if there are ``query`` (else all sessions are of the query ``"all"``), ``propensity``,
    ``list_propensity`` and ``user``. The sessions of the log stand in the order of their first
    rows.

    Args:
        source: a data frame of Polars, pandas or pyarrow; or files: CSV with commas, tabs,
            semicolons or bars, perhaps gzipped, Parquet, or the format of the Yandex Relevance
            Prediction Challenge 2011. Several files, or a glob, are one table.
        columns: names of columns that differ, such as ``{"item": "doc_id"}``. ``{"user": ""}``
            means that there is no user.

    Raises:
        ValueError: a file is of another format or damaged, a column is missing or has wrong values,
            or more than one session in a thousand is damaged. A damaged session lacks a position,
            has a position or an item twice, or has two queries, users or list propensities. The
            message names the column, or the session.
        FileNotFoundError: there is no such file.

    Warns:
        UserWarning: damaged sessions were left out, at most one in a thousand; or the log looks as
            if sessions without a click, or positions below the last click, were left out of it, or
            as if each session was written several times.

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
        with reading(name, "cannot be read", EXPECTED):
            table = _scan(_files(source), [names[role] for role in LABELS])
    else:
        name, table = "the frame", pl.DataFrame(source).lazy()
    needed = [*NEEDED, *(columns or {})]
    log = _log_of(name, _rows(name, table, names, needed))
    for fault in _faults_of_export(log):
        warnings.warn(f"{name}: {fault}", stacklevel=2)
    return log


def _faults_of_export(log: ClickLog) -> Iterator[str]:
    """What makes a log look as if it was not written as it happened."""
    clicked, last = log.clicks.any(axis=1), log.lengths[:, None] - 1
    if len(log) >= MANY_SESSIONS and clicked.all():
        yield (
            f"each of the {len(log):,} sessions has a click, as if those without one were left "
            "out; what is estimated from the log is then too high"
        )
    ends = np.take_along_axis(log.clicks, last, axis=1)[clicked]
    if len(ends) >= MANY_SESSIONS and ends.all() and np.ptp(last) > 0:
        yield (
            "every list ends at its last click, as if the items below were left out; what is "
            "estimated from the log is then too high"
        )
    counts = distinct(np.column_stack([log.queries, log.items, log.clicks]))[2]
    times = int(np.gcd.reduce(counts))
    if times > 1 and len(counts) >= MANY_KINDS:
        yield (
            f"all lists and clicks occur {times} times, or a multiple of it, as if each session "
            "was written so often; intervals are then too narrow"
        )


def log_name(source: Any) -> str:
    """What a log is called: by its file, or the first of several."""
    first, *others = source if is_sequence(source) else [source]
    name = Path(first).name
    return f"{name} and {len(others)} more" if others else name


def _files(source: Any) -> list[Path]:
    sources = source if is_sequence(source) else [source]
    return [Path(file) for one in sources for file in sorted(glob(str(one))) or [str(one)]]


def unzipped(path: Path) -> IO[bytes]:
    """The content of a file, also of one that is gzipped."""
    with path.open("rb") as file:
        is_zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_zipped else path.open("rb")  # type: ignore[return-value]


def _scan(files: list[Path], labels: Sequence[str]) -> pl.LazyFrame:
    """The table that files are together; the first one tells the format of all."""
    with unzipped(files[0]) as file:
        head = file.readline()
    if head.startswith(b"PAR1"):
        return pl.scan_parquet(files, glob=False)
    if is_yandex(head):
        return pl.concat([yandex_table(file) for file in files]).lazy()
    separator = max(",\t;|", key=lambda mark: head.count(mark.encode()))
    return pl.scan_csv(
        files,
        separator=separator,
        schema_overrides=dict.fromkeys(labels, pl.String),
        infer_schema_length=10_000,
        glob=False,
    )


def _rows(
    name: str, table: pl.LazyFrame, names: Mapping[str, str], needed: Sequence[str]
) -> pl.DataFrame:
    """The columns of a table by their roles, with the types that a log needs."""
    with reading(name, "cannot be read", EXPECTED):
        schema = table.collect_schema()
    _check_columns(name, schema, names, needed)
    values = {
        role: pl.col(names[role]).cast(pl.String if role in LABELS else pl.Float64)
        for role in ROLES
        if names[role] in schema
    }
    with reading(name, "cannot be read", "see docs/log_formats.md"):
        rows = table.select(**values).collect()
    _check_values(name, rows, names)
    return rows


def _check_columns(
    name: str, schema: Collection[str], names: Mapping[str, str], needed: Sequence[str]
) -> None:
    """Check the names of the columns of a table, and warn if queries are in none of them."""
    missing = [names[role] for role in needed if names[role] and names[role] not in schema]
    if missing:
        raise ValueError(
            f"{name}: no column {', '.join(missing)}; the columns are {', '.join(schema)}, and "
            "--columns names others, as in item=doc_id"
        )
    for role in ROLES:
        # as Polars calls the second
        if names[role] in schema and f"{names[role]}_duplicated_0" in schema:
            raise ValueError(f"{name}: two columns are called {names[role]}")
    unread = [column for column in schema if column not in {*names.values(), *ROLES}]
    if unread and names["query"] and names["query"] not in schema:
        warnings.warn(
            f"{name}: no column {names['query']}, so all sessions are of one query; not read: "
            f"{', '.join(unread)}; --columns query= says that this is right",
            stacklevel=4,
        )


def _check_values(name: str, rows: pl.DataFrame, names: Mapping[str, str]) -> None:
    """Check that rows have no gaps, and that clicks and probabilities are in their ranges."""
    for role in rows.columns:
        gaps = rows[role].is_null()
        if gaps.any():
            row = gaps.arg_true()[0] + 1
            raise ValueError(f"{name}: row {row} has no value in the column {names[role]}")
    for role, expected in RANGES.items():
        if role in rows.columns:
            wrong = rows.filter(~pl.col(role).is_between(0, 1))
            if wrong.height:
                raise ValueError(
                    f"{name}: the session {wrong['session'][0]!r} has {wrong[role][0]:g} in the "
                    f"column {names[role]}; expected {expected}"
                )
    if not rows.height:
        raise ValueError(f"{name}: there is no row in the log")


def _log_of(name: str, rows: pl.DataFrame) -> ClickLog:
    """The log of rows that are in any order."""
    numbers, _ = coded(rows["session"])
    rows = rows.with_columns(number=numbers).sort("number", "position", maintain_order=True)
    numbers = rows["number"].to_numpy()
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    lengths = np.diff(starts, append=len(rows))
    damaged = _damaged(name, rows, starts, lengths)
    if damaged.any():
        return _log_of(name, rows.filter(~np.repeat(damaged, lengths)))
    heads, filled = rows[starts], np.arange(lengths.max()) < lengths[:, None]

    def padded(values: NDArray[Any], below: float) -> NDArray[Any]:
        result = np.full(filled.shape, below, values.dtype)
        result[filled] = values
        return result

    items, item_labels = coded(rows["item"])
    query_labels: tuple[str, ...] = (ONE_QUERY,)
    queries, facts = np.zeros(len(starts), np.int32), dict[str, Any]()
    if "query" in rows.columns:
        queries, query_labels = coded(heads["query"])
    if "user" in rows.columns:
        facts["users"] = heads["user"].rank("dense").cast(pl.Int64).to_numpy()
    if "list_propensity" in rows.columns:
        facts["list_propensities"] = heads["list_propensity"].to_numpy()
    if "propensity" in rows.columns:
        facts["propensities"] = padded(rows["propensity"].to_numpy(), 1.0)
    lists, clicks = padded(items, -1), padded(rows["clicked"].to_numpy(), 0.0)
    try:
        return ClickLog(lists, clicks, queries, item_labels, query_labels, **facts)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _damaged(
    name: str, rows: pl.DataFrame, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which sessions lack a position, have a position or an item twice, or two values of what is
    one for the session, as two queries. If they are few, a warning says so; else they are refused.

    Args:
        name: of the log.
        rows: by session and position.
        starts, lengths: ``(N,)`` the first row of each session, and how many it has.
    """
    positions = rows["position"].to_numpy()
    first = int(np.quantile(positions[starts], 0.5, method="lower"))
    if first not in (0, 1):
        raise ValueError(f"{name}: the first position is {first}; expected 0 or 1")
    places = np.arange(len(rows)) - np.repeat(starts, lengths)
    below = places > 0  # another row of the session
    wrong = positions != places + first
    faults = {
        "has the position {position:g}, twice": below & (np.diff(positions, prepend=-1) == 0),
        "has the position {position:g}, but not {expected}": wrong,
        "shows the item {item!r} twice": rows.select("number", "item").is_duplicated().to_numpy(),
    }
    for role in OF_SESSIONS:
        if role in rows.columns:
            changed = (rows[role] != rows[role].shift()).fill_null(value=False).to_numpy()
            faults[f"has two values in the column {role}"] = below & changed
    damaged = np.logical_or.reduceat(np.any([*faults.values()], axis=0), starts)
    if damaged.any():
        found = {what: int(faulty.argmax()) for what, faulty in faults.items() if faulty.any()}
        what, row = min(found.items(), key=lambda fault: fault[1])
        values = rows.row(row, named=True) | {"expected": places[row] + first}
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
