"""Readers of click logs: tables, by Polars, and the format of Yandex's Relevance Prediction
Challenge 2011.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clickgym.core.checks import check_path, is_sequence, short, unknown
from clickgym.core.formats import one_line

from .log import ClickLog
from .times import as_seconds

Source = str | PathLike[str] | pl.DataFrame | Sequence[str | PathLike[str]]
"""A data frame; or a file, a folder or a glob (``logs/*.parquet``), or several of these."""

LABELS = ("session", "query", "item")
NEEDED = ("session", "position", "item", "clicked")
ROLES = (*NEEDED, "query", "propensity", "list_propensity", "time")
FEATURE = re.compile("feature_[1-9][0-9]*")
OF_SESSIONS = ("query", "list_propensity", "time")
ONE_QUERY = "all"
YANDEX = re.compile(rb"\d+\t\d+\tQ\t")
LINE_OF_YANDEX = r"^\d+\t\d+\t(Q(\t\d+){3,}|C\t\d+)$"


def read_log(source: Source, *, columns: Mapping[str, str] | None = None) -> ClickLog:
    """Read a click log: a table with one row per session and position.

    The columns are ``session``, ``position`` (from 0 or 1), ``item`` and ``clicked`` (0 or 1); and
    if there are ``query`` (else all sessions are of the query ``"all"``), ``propensity``,
    ``list_propensity``, ``time`` (numbers, or dates and times in ISO 8601, which become seconds
    since 1970) and ``feature_1``, ``feature_2``, ... If the rows of a session are not consecutive,
    the sessions are sorted by their names.

    Args:
        source: a data frame of Polars; or a file: CSV with commas, tabs or semicolons, JSON lines,
            both perhaps gzipped (``.gz``), Parquet (``.parquet``), or what `read_yandex` reads;
            several files, a folder or a glob are one table.
        columns: names of columns that differ, such as ``{"item": "doc_id"}``; ``{"time": ""}``:
            there is no time.

    Raises:
        ValueError: a column is missing or has wrong values, or a session has not each position
        exactly once.
        OSError: there is no such file.

    Example:
        >>> frame = pl.DataFrame({"session": [7, 7], "position": [1, 2], "doc": ["b", "a"], "clicked": [True, False]})
        >>> read_log(frame, columns={"item": "doc"}).item_labels
        ('b', 'a')
    """
    names = _checked_columns(columns)
    if isinstance(source, pl.DataFrame):
        return ClickLog(**_sessions("the frame", _rows("the frame", source.lazy(), names)))
    files = log_files(source)
    if _first_line(files[0], YANDEX):
        if len(files) > 1:
            raise ValueError(f"{files[0]} is a log of Yandex; expected it by itself")
        return read_yandex(files[0])
    tables = [_rows(file, _scanned(file), names) for file in files]
    try:
        rows = pl.concat(tables, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"{files[0]} and {len(files) - 1} more differ in their columns: {one_line(str(error))}"
        ) from None
    return ClickLog(**_sessions(log_name(source), rows))


def _checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    names: Any = {} if columns is None else columns
    if not isinstance(names, Mapping) or not all(
        isinstance(name, str) for pair in names.items() for name in pair
    ):
        raise ValueError(
            f'columns is {short(columns)}; expected what columns are called, as {{"item": "doc_id"}}'
        )
    for role in names:
        if role not in ROLES and not FEATURE.fullmatch(role):
            raise ValueError(unknown("column", role, [*ROLES, "feature_1"]))
    return dict(names)


def log_files(source: Any) -> list[Path]:
    """The files of a log: one, those of a folder or a glob by name, or several in the given
    order.
    """
    given = list(source) if is_sequence(source) else [source]
    files: list[Path] = []
    for each in given:
        path = check_path("log", each)
        if path.is_dir():
            files += sorted(
                file for file in path.iterdir() if file.is_file() and file.name[0] not in "._"
            )
        elif not path.exists() and any(mark in path.name for mark in "*?["):
            files += sorted(path.parent.glob(path.name))
        else:
            files.append(path)
    if not files:
        raise ValueError(f"{', '.join(map(str, given)) or 'log'}: there is no file")
    return files


def log_name(source: Any) -> str:
    """What a log is called: by its file, its folder, or the first of several."""
    given = list(source) if is_sequence(source) else [source]
    first = check_path("log", given[0]).name
    return first if len(given) == 1 else f"{first} and {len(given) - 1} more"


def _first_line(file: Path, pattern: re.Pattern[bytes] | None = None) -> Any:
    """The first line of a file; or whether it begins like a pattern."""
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        line = stream.readline(1 << 20)
    return line if pattern is None else pattern.match(line)


def _scanned(file: Path) -> pl.LazyFrame:
    """The table in a file, that of CSV as texts."""
    if file.suffix == ".parquet":
        return pl.scan_parquet(file, glob=False)
    header = _first_line(file)
    if header.startswith(b"{"):
        return pl.read_ndjson(
            gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file
        ).lazy()
    separator = max(",\t;", key=lambda mark: header.count(mark.encode()))
    return pl.scan_csv(file, separator=separator, infer_schema=False, glob=False)


def _rows(name: object, table: pl.LazyFrame, columns: Mapping[str, str]) -> pl.DataFrame:
    """The columns of a table by their roles, with the types that a log needs."""
    try:
        schema = table.collect_schema()
        roles = [*ROLES, *filter(FEATURE.fullmatch, (*schema, *columns))]
        names = {
            role: columns.get(role, role) for role in roles if columns.get(role, role) in schema
        }
        for role in (*NEEDED, *(role for role, column in columns.items() if column)):
            if role not in names:
                raise ValueError(
                    f"{name}: no column {columns.get(role, role)!r}; the log has {', '.join(schema)}"
                )
        rows = table.select(
            _typed(role, column, schema[column]) for role, column in names.items()
        ).collect()
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{name}: {one_line(str(error))}") from None
    for role in rows.columns:
        if rows[role].null_count():
            row = rows[role].is_null().arg_true()[0] + 1
            raise ValueError(f"{name}: row {row} has no value in the column {names[role]!r}")
    return rows


def _typed(role: str, column: str, kind: pl.DataType) -> pl.Expr:
    values = pl.col(column)
    if role in LABELS:
        values = values.cast(pl.String)
    elif role == "position":
        values = values.cast(pl.Int32)
    elif role == "clicked":
        if kind == pl.String:
            values = values.str.to_lowercase().replace({"true": "1", "false": "0"})
        values = values.cast(pl.Int8)
    elif role != "time":
        values = values.cast(pl.Float64)
    elif isinstance(kind, pl.Date | pl.Datetime):
        values = values.dt.epoch("us") / 1e6
    return values.alias(role)


def _sessions(name: object, rows: pl.DataFrame) -> dict[str, Any]:
    """The arguments of a `ClickLog` from rows by session and position."""
    if not rows.height:
        raise ValueError(f"{name}: there is no row in the log")
    if "time" in rows.columns:
        rows = rows.with_columns(_times(name, rows["time"]))
    rows = _sorted(rows)
    sessions, positions = rows["session"].rle_id().to_numpy(), rows["position"].to_numpy()
    starts = np.flatnonzero(np.diff(sessions, prepend=-1))
    lengths = np.diff(starts, append=len(sessions))
    base = int(positions.min())
    places = np.arange(len(sessions)) - np.repeat(starts, lengths)
    if base not in (0, 1):
        raise ValueError(f"{name}: the first position is {base}; expected 0 or 1")
    _check_all(
        name,
        rows,
        positions == base + places,
        f"does not have each position from {base} on exactly once",
    )
    for role in OF_SESSIONS:
        if role in rows.columns:
            values = rows[role].to_numpy()
            _check_all(
                name,
                rows,
                values == np.repeat(values[starts], lengths),
                f"has two values of {role}",
            )

    items, item_labels = coded(rows["item"])
    heads = rows[starts]
    queries, query_labels = coded(
        heads["query"] if "query" in rows.columns else pl.Series([ONE_QUERY] * len(starts))
    )
    shape = len(starts), int(lengths.max())
    filled = np.arange(shape[1]) < lengths[:, None]

    def padded(flat: NDArray[Any], below: float) -> NDArray[Any]:
        result: NDArray[Any] = np.full(shape, below, flat.dtype)
        result[filled] = flat
        return result

    features = [
        f"feature_{j + 1}"
        for j in range(sum(FEATURE.fullmatch(role) is not None for role in rows.columns))
    ]
    return {
        "items": padded(items, -1),
        "clicks": padded(rows["clicked"].to_numpy(), 0),
        "queries": queries,
        "item_labels": item_labels,
        "query_labels": query_labels,
        "propensities": padded(rows["propensity"].to_numpy(), 1)
        if "propensity" in rows.columns
        else None,
        "list_propensities": heads["list_propensity"].to_numpy(writable=True)
        if "list_propensity" in rows.columns
        else None,
        "context": np.stack([padded(rows[each].to_numpy(), 0) for each in features], axis=2)
        if features
        else None,
        "times": heads["time"].to_numpy(writable=True) if "time" in rows.columns else None,
    }


def _times(name: object, times: pl.Series) -> pl.Series:
    """Numbers; texts that are no numbers are dates, and become seconds since 1970."""
    if times.dtype != pl.String:
        return times
    for kind in (pl.Int64, pl.Float64):
        numbers = times.cast(kind, strict=False)
        if not numbers.null_count():
            return numbers
    texts = times.unique()
    seconds = [as_seconds(text) for text in texts]
    if None in seconds:
        wrong = texts[seconds.index(None)]
        raise ValueError(
            f"{name}: the time {wrong!r} is neither a number, as others, nor a date and time in ISO 8601"
        )
    return times.replace_strict(texts, seconds, return_dtype=pl.Float64)


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows by session and position: sessions as they stand if the rows of each are consecutive,
    else by name.
    """
    names = rows["session"]
    order: pl.Series = names.rle_id()
    if order[-1] + 1 > names.n_unique():
        numeric = names.str.contains("^(0|[1-9][0-9]{0,17})$").all()
        order = names.cast(pl.Int64) if numeric else names
    elif (np.diff(rows["position"].to_numpy())[np.diff(order.to_numpy()) == 0] > 0).all():
        return rows
    return (
        rows.with_columns(order=order).sort("order", "position", maintain_order=True).drop("order")
    )


def _check_all(name: object, rows: pl.DataFrame, right: NDArray[np.bool_], what: str) -> None:
    if not right.all():
        raise ValueError(f"{name}: the session {rows['session'][int(np.argmin(right))]!r} {what}")


def coded(texts: pl.Series) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The number of each text, and the distinct texts, in order of appearance."""
    labels = texts.unique(maintain_order=True)
    return texts.cast(pl.Enum(labels)).to_physical().cast(pl.Int32).to_numpy(), tuple(labels)


def read_yandex(path: str | PathLike[str]) -> ClickLog:
    """Read a log in the format of Yandex's Relevance Prediction Challenge 2011.

    Lines are tab-separated: a query ``session, time, Q, query, region, urls...`` or a click
    ``session, time, C, url``. All fields but the letter are decimal numbers. Each query is one
    session of the log, labelled ``query-region``. A click belongs to the last query above it in its
    session whose list contains the URL, and a URL clicked twice counts once. A click on another URL
    is left out, and counted in ``off_list_clicks``. The times are those since the beginning of each
    session, so that the log has none.

    Args:
        path: text file, gzipped if its name ends with ``.gz``.

    Raises:
        ValueError: on a malformed line, naming the file, the line and the reason.

    Source: Serdyukov, Craswell, Dupret, *WSCD 2012: workshop on web search click data 2012*, WSDM
        2012.
    """
    path = check_path("path", path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        lines = pl.read_csv(
            text,
            has_header=False,
            separator="\r",
            quote_char=None,
            infer_schema=False,
            new_columns=["line"],
            truncate_ragged_lines=True,
        )
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path}: {one_line(str(error))}") from None
    whole = lines["line"].str.contains(LINE_OF_YANDEX).fill_null(False)
    _check_lines(
        path,
        whole,
        "expected a query 'session, time, Q, query, region, urls...' or a click 'session, time, C, url'",
    )
    fields = lines.select(
        row=pl.int_range(pl.len()), field=pl.col("line").str.split("\t")
    ).with_columns(
        run=pl.col("field").list.get(0).rle_id(), clicked=pl.col("field").list.get(2) == "C"
    )
    first = fields["run"].diff(null_behavior="ignore").fill_null(1) > 0
    _check_lines(
        path, ~(first & fields["clicked"]), "a click before the first query of its session"
    )
    pages = fields.filter(~pl.col("clicked")).select(
        "row",
        "run",
        query=pl.concat_str(*(pl.col("field").list.get(j) for j in (3, 4)), separator="-"),
        url=pl.col("field").list.slice(5),
        page=pl.int_range(pl.len()),
    )
    n_positions = pages["url"].list.len()
    other = (n_positions != n_positions[0]).arg_true()
    if len(other):
        line = pages["row"][other[0]] + 1
        raise ValueError(
            f"{path}, line {line}: a query with {n_positions[other[0]]} URLs; expected {n_positions[0]}, as before"
        )
    shown = pages.explode("url").with_columns(place=pl.int_range(pl.len()))
    clicks = fields.filter("clicked").select("row", "run", url=pl.col("field").list.get(3))
    found = clicks.join_asof(
        shown.select("row", "run", "url", "place"),
        on="row",
        by=["run", "url"],
        check_sortedness=False,
    )
    items, item_labels = coded(shown["url"])
    queries, query_labels = coded(pages["query"])
    clicked = np.zeros(len(items), np.int8)
    clicked[found["place"].drop_nulls().to_numpy()] = 1
    shape = len(queries), n_positions[0]
    off_list = found["place"].null_count()
    return ClickLog(
        items.reshape(shape), clicked.reshape(shape), queries, item_labels, query_labels, off_list
    )


def _check_lines(path: Path, right: pl.Series, what: str) -> None:
    if not right.all():
        raise ValueError(f"{path}, line {int((~right).arg_true()[0]) + 1}: {what}")
