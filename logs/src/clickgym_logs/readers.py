"""Readers of click logs: tables, by Polars, and the format of Yandex's Relevance Prediction
Challenge 2011.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clickgym.core.checks import check_kind, check_path, is_sequence, unknown
from clickgym.core.formats import one_line

from .counting import faulty_list
from .log import ClickLog

Source = str | PathLike[str] | pl.DataFrame | Sequence[str | PathLike[str]]
"""A data frame; or a file, a folder or a glob (``logs/*.parquet``), or several of these."""

LABELS = ("session", "query", "item")
NEEDED = ("session", "position", "item", "clicked")
ROLES = (*NEEDED, "query", "propensity", "list_propensity", "time")
FEATURE = re.compile("feature_[1-9][0-9]*")
OF_SESSIONS = ("query", "list_propensity", "time")
ONE_QUERY = "all"
INTEGER = re.compile("-?[0-9]{1,19}")
NUMBER = re.compile(r"-?[0-9]+\.[0-9]*")
YANDEX = re.compile(rb"\d+\t\d+\tQ\t")


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
        >>> columns = {"session": [7, 7], "position": [1, 2], "doc": ["b", "a"], "clicked": [1, 0]}
        >>> frame = pl.DataFrame(columns)
        >>> read_log(frame, columns={"item": "doc"}).item_labels
        ('b', 'a')
    """
    names = _checked_columns(columns)
    if isinstance(source, pl.DataFrame):
        return ClickLog(**_sessions("the frame", _rows("the frame", source, names)))
    files = log_files(source)
    if YANDEX.match(_first_line(files[0])):
        if len(files) > 1:
            raise ValueError(f"{files[0]} is a log of Yandex; expected it by itself")
        return read_yandex(files[0])
    tables = [_rows(file, file, names) for file in files]
    try:
        rows = pl.concat(tables, how="vertical_relaxed") if len(tables) > 1 else tables.pop()
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"{files[0]} and {len(files) - 1} more differ in their columns: {one_line(str(error))}"
        ) from None
    return ClickLog(**_sessions(log_name(source), rows))


def _checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    names = {} if columns is None else columns
    check_kind("columns", names, Mapping, 'names of columns, as {"item": "doc_id"}')
    for role in names:
        if role not in ROLES and not FEATURE.fullmatch(role):
            raise ValueError(unknown("column", role, [*ROLES, "feature_1"]))
    return dict(names)


def log_files(source: Any) -> list[Path]:
    """The files of a log: one, those of a folder or a glob by name, or several in the given
    order.
    """
    sources = list(source) if is_sequence(source) else [source]
    files: list[Path] = []
    for entry in sources:
        if not isinstance(entry, str | PathLike):
            expected = "a path or a data frame of Polars, as polars.from_pandas makes it"
            raise TypeError(f"log is of type {type(entry).__name__}; expected {expected}")
        path = Path(entry)
        if path.is_dir():
            files += sorted(
                file for file in path.iterdir() if file.is_file() and file.name[0] not in "._"
            )
        elif not path.exists() and any(mark in path.name for mark in "*?["):
            files += sorted(path.parent.glob(path.name))
        else:
            files.append(path)
    if not files:
        raise ValueError(f"{', '.join(map(str, sources)) or 'log'}: there is no file")
    return files


def log_name(source: Any) -> str:
    """What a log is called: by its file, its folder, or the first of several."""
    sources = list(source) if is_sequence(source) else [source]
    first = check_path("log", sources[0]).name
    return first if len(sources) == 1 else f"{first} and {len(sources) - 1} more"


def _first_line(file: Path) -> bytes:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        return stream.readline(1 << 20)


def _rows(name: object, source: Path | pl.DataFrame, columns: Mapping[str, str]) -> pl.DataFrame:
    """The columns of a table by their roles, with the types that a log needs."""
    try:
        table = _scan(source, {})
        schema = table.collect_schema()
        roles = [*ROLES, *filter(FEATURE.fullmatch, (*schema, *columns))]
        names = {
            role: columns.get(role, role) for role in roles if columns.get(role, role) in schema
        }
        needed = dict.fromkeys([*NEEDED, *(role for role, column in columns.items() if column)])
        missing = [columns.get(role, role) for role in needed if role not in names]
        if missing:
            raise ValueError(
                f"{name}: no column {', '.join(missing)}; the log has {', '.join(schema)}, and "
                "needs a row for each session and position"
            )
        first = table.select(**{role: pl.col(column) for role, column in names.items()}).head(1)
        example = first.collect()
        try:
            rows = _typed(source, names, _kinds(example, guess=True))
        except pl.exceptions.PolarsError:
            rows = _typed(source, names, _kinds(example, guess=False))
    except pl.exceptions.PolarsError as error:
        # The first line says what is wrong, those that follow advise.
        raise ValueError(f"{name}: {one_line(str(error).partition(chr(10))[0])}") from None
    for role in rows.columns:
        if rows[role].null_count():
            row = rows[role].is_null().arg_true()[0] + 1
            raise ValueError(f"{name}: row {row} has no value in the column {names[role]!r}")
    return rows


def _kinds(example: pl.DataFrame, guess: bool) -> dict[str, Any]:
    """The type in which each role is read; ``guess``: sessions and times are numbers if those of
    the first row are.
    """
    kinds: dict[str, Any] = {}
    for role, kind in example.schema.items():
        word = str(example[role][0]) if example.height else ""
        if role in ("session", "time") and guess and INTEGER.fullmatch(word):
            kinds[role] = pl.Int64
        elif role == "time" and guess and NUMBER.fullmatch(word):
            kinds[role] = pl.Float64
        elif role in LABELS:
            kinds[role] = pl.Categorical
        elif role == "position":
            kinds[role] = pl.Int32
        elif role == "clicked":
            kinds[role] = pl.String if word.lower() in ("true", "false") else pl.Int8
        else:
            kinds[role] = kind if role == "time" else pl.Float64
    return kinds


def _scan(source: Path | pl.DataFrame, kinds: Mapping[str, Any]) -> pl.LazyFrame:
    """A table; the columns of CSV are texts, but those of which ``kinds`` has the type."""
    if isinstance(source, pl.DataFrame):
        return source.lazy()
    if source.suffix == ".parquet":
        return pl.scan_parquet(source, glob=False)
    header = _first_line(source)
    if header.startswith(b"{"):
        zipped = source.suffix == ".gz"
        return pl.read_ndjson(gzip.decompress(source.read_bytes()) if zipped else source).lazy()
    separator = max(",\t;", key=lambda mark: header.count(mark.encode()))
    return pl.scan_csv(
        source, separator=separator, infer_schema=False, schema_overrides=kinds, glob=False
    )


def _typed(
    source: Path | pl.DataFrame, names: Mapping[str, str], kinds: Mapping[str, Any]
) -> pl.DataFrame:
    """The columns of a table by their roles, each in its type."""
    table = _scan(source, {names[role]: kind for role, kind in kinds.items()})
    schema = table.collect_schema()
    columns: dict[str, pl.Expr] = {}
    for role, kind in kinds.items():
        values, present = pl.col(names[role]), schema[names[role]]
        if kind == pl.Categorical and present != kind:
            values = values.cast(pl.String)
        if role == "time" and isinstance(present, pl.Date | pl.Datetime):
            values = values.dt.epoch("us") / 1e6
        elif role == "clicked" and kind == pl.String:
            words = values.cast(pl.String).str.to_lowercase()
            values = words.replace({"true": "1", "false": "0"}).cast(pl.Int8)
        elif present != kind:
            values = values.cast(kind)
        columns[role] = values
    return table.select(**columns).collect()


def _sessions(name: object, rows: pl.DataFrame) -> dict[str, Any]:
    """The arguments of a `ClickLog` from rows by session and position."""
    if not rows.height:
        raise ValueError(f"{name}: there is no row in the log")
    rows = _sorted(rows)
    begins = rows["session"].ne_missing(rows["session"].shift())
    starts = begins.arg_true().to_numpy()
    lengths = np.diff(starts, append=rows.height)
    positions = rows["position"].to_numpy()
    base = int(positions.min())
    if base not in (0, 1):
        raise ValueError(f"{name}: the first position is {base}; expected 0 or 1")
    places = np.arange(base, base + rows.height, dtype=np.int32)
    places -= np.repeat(starts, lengths).astype(np.int32)
    _check_all(
        name,
        rows,
        positions == places,
        f"does not have each position from {base} on exactly once",
    )
    for role in OF_SESSIONS:
        if role in rows.columns:
            alike = begins | rows[role].eq_missing(rows[role].shift())
            _check_all(name, rows, alike.to_numpy(), f"has two values of {role}")
    _check_all(
        name, rows, rows["clicked"].is_between(0, 1).to_numpy(), "has a click that is not 0 or 1"
    )
    heads = rows[starts]
    shape = len(starts), int(lengths.max())
    filled = np.arange(shape[1]) < lengths[:, None]

    def padded(role: str, below: float) -> NDArray[Any]:
        flat = rows[role].to_numpy()
        if filled.all():
            return flat.reshape(shape).copy()
        result: NDArray[Any] = np.full(shape, below, flat.dtype)
        result[filled] = flat
        return result

    items, item_labels = coded(rows["item"])
    rows = rows.with_columns(item=items)
    lists, clicks = padded("item", -1), padded("clicked", 0)
    session, twice = faulty_list(lists, clicks)
    if twice >= 0:
        which = str(heads["session"][session])
        raise ValueError(
            f"{name}: the session {which!r} shows the item {item_labels[twice]!r} twice"
        )
    fields: dict[str, Any] = {
        "items": lists,
        "clicks": clicks,
        "item_labels": item_labels,
        "queries": np.zeros(len(starts), np.int32),
        "query_labels": (ONE_QUERY,),
    }
    if "query" in rows.columns:
        fields["queries"], fields["query_labels"] = coded(heads["query"])
    if "propensity" in rows.columns:
        fields["propensities"] = padded("propensity", 1)
    if "list_propensity" in rows.columns:
        fields["list_propensities"] = heads["list_propensity"].to_numpy(writable=True)
    if "time" in rows.columns:
        fields["times"] = _times(name, heads["time"]).to_numpy(writable=True)
    n_features = sum(FEATURE.fullmatch(role) is not None for role in rows.columns)
    if n_features:
        features = [padded(f"feature_{j + 1}", 0) for j in range(n_features)]
        fields["context"] = np.stack(features, axis=2)
    return fields


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
            f"{name}: the time {wrong!r} is neither a number, as others, nor a date and time in "
            "ISO 8601"
        )
    return times.replace_strict(texts, seconds, return_dtype=pl.Float64)


def as_seconds(text: str) -> float | None:
    """The seconds since 1970 of a date or a date and time in ISO 8601, without an offset taken for
    UTC; None if it is none.

    Example:
        >>> as_seconds("1970-01-02"), as_seconds("1970-01-01T02:00:00.5+01:00"), as_seconds("soon")
        (86400.0, 3600.5, None)
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _sorted(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows by session and position: sessions as they stand if the rows of each are consecutive,
    else by name.
    """
    order: pl.Series = rows["session"].rle_id()
    if order[-1] + 1 > rows["session"].n_unique():
        names = rows["session"]
        order = names if names.dtype == pl.Int64 else names.cast(pl.String)
    elif ((rows["position"].diff() > 0) | (order.diff() > 0)).all():
        return rows
    return (
        rows.with_columns(order=order).sort("order", "position", maintain_order=True).drop("order")
    )


def _check_all(name: object, rows: pl.DataFrame, right: NDArray[np.bool_], what: str) -> None:
    if not right.all():
        session = str(rows["session"][int(np.argmin(right))])
        raise ValueError(f"{name}: the session {session!r} {what}")


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


def read_yandex(path: str | PathLike[str]) -> ClickLog:
    """Read a log in the format of Yandex's Relevance Prediction Challenge 2011.

    Lines are tab-separated: a query ``session, time, Q, query, region, urls...`` or a click
    ``session, time, C, url``. All fields but the letter are decimal numbers. Each query is one
    session of the log, labelled ``query-region``. A click belongs to the last query above it in its
    session whose list contains the URL, and a URL clicked twice counts once. A click on another URL
    is left out. The times are those since the beginning of each session, so that the log has none.

    Args:
        path: text file, gzipped if its name ends with ``.gz``.

    Raises:
        ValueError: on a malformed line, naming the file, the line and the reason.

    Source: Serdyukov, Craswell, Dupret, *WSCD 2012: workshop on web search click data 2012*, WSDM
        2012.
    """
    path = check_path("path", path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    width = text.partition(b"\n")[0].count(b"\t") + 1
    schema: dict[str, Any] = {f"column_{j + 1}": pl.Int64 for j in range(width)}
    schema["column_3"] = pl.String
    try:
        lines = pl.read_csv(text, has_header=False, separator="\t", quote_char=None, schema=schema)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path}: {one_line(str(error).partition(chr(10))[0])}") from None
    letters = lines["column_3"].fill_null("")
    is_page, is_click = (letters == "Q").to_numpy(), (letters == "C").to_numpy()
    # session, time, then of a page: query, region and URLs; of a click: its URL. -1 is nothing.
    numbers = lines.drop("column_3").fill_null(-1).to_numpy()
    n_fields = (numbers >= 0).sum(axis=1)
    right = (is_page & (n_fields == width - 1)) | (
        is_click & (n_fields == 3) & (numbers[:, 2] >= 0)
    )
    _check_lines(
        path,
        right,
        "expected a click 'session, time, C, url', or a query 'session, time, Q, query, region' "
        "and "
        f"{width - 5} URLs, as in the first line",
    )
    # Of each line the run of lines of one session, and the last page above it.
    first = np.diff(numbers[:, 0], prepend=-1) != 0
    _check_lines(path, ~(first & is_click), "a click before the first query of its session")
    run, above = first.cumsum(), is_page.cumsum() - 1
    pages, urls, run_of_page = numbers[is_page, 2:4], numbers[is_page, 4:], run[is_page]
    clicked_url, page, run_of_click = numbers[is_click, 2], above[is_click], run[is_click]
    clicked = np.zeros(urls.shape, np.int8)
    while len(page):  # what the last page above does not show is looked for on the one before
        alike = urls[page] == clicked_url[:, None]
        rows, positions = np.nonzero(alike)
        clicked[page[rows], positions] = 1
        page = page - 1
        lost = ~alike.any(axis=1)
        elsewhere = lost & (page >= 0) & (run_of_page[page] == run_of_click)
        page, clicked_url, run_of_click = (
            part[elsewhere] for part in (page, clicked_url, run_of_click)
        )
    items, item_labels = coded(pl.Series(urls.ravel()))
    names = pl.DataFrame(pages, schema=["query", "region"])
    queries, query_labels = coded(
        names.select(pl.concat_str("query", "region", separator="-")).to_series()
    )
    return ClickLog(items.reshape(urls.shape), clicked, queries, item_labels, query_labels)


def _check_lines(path: Path, right: NDArray[np.bool_], what: str) -> None:
    if not right.all():
        raise ValueError(f"{path}, line {int(np.argmin(right)) + 1}: {what}")
