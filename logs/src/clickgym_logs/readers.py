"""Click logs from tables: columns by their roles, values by their types, rows by session."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clickgym.core.checks import check_kind, check_path, is_sequence, short, unknown
from clickgym.core.formats import one_line

from .counting import faulty_list
from .log import ClickLog
from .names import csv_line
from .tables import Source, Table, coded, log_files
from .yandex import YANDEX, read_yandex

LABELS = ("session", "query", "item", "user", "arm")
NEEDED = ("session", "position", "item", "clicked")
ROLES = (*NEEDED, "query", "propensity", "list_propensity", "time", "user", "arm")
FEATURE = re.compile("feature_[1-9][0-9]*")
OF_SESSIONS = ("query", "list_propensity", "time", "user", "arm")
GAPS = ("user", "arm")
"""Roles that sessions may lack: they are of a user of their own, or outside the experiment."""
EXPECTED = {
    **dict.fromkeys(LABELS, "a label"),
    "position": "a whole number from 0 or 1 on",
    "clicked": "0 or 1, or true or false",
    **dict.fromkeys(("propensity", "list_propensity"), "a probability in (0, 1]"),
    "time": "a number, or a date and time",
    "rating": "a number from 0",
}
"""What the values of a role are; those of features are numbers."""
CALLED = {
    "session": ("visit", "sid", "request", "impression", "search"),
    "position": ("rank", "pos", "slot", "place"),
    "item": ("doc", "product", "article", "sku", "url", "result"),
    "clicked": ("click", "clk", "label"),
    "query": ("keyword", "term", "search", "q"),
    "time": ("ts", "date", "day"),
}
"""Words in the names that columns may have."""
HELPFUL = ("query", "time")
"""Roles that a log may lack, and that change what can be told."""
ONE_QUERY = "all"
INTEGER = re.compile("-?[0-9]{1,19}")
NUMBER = re.compile(r"-?[0-9]+\.[0-9]*")
WRITTEN_AS_FLOAT = r"^-?[0-9]+\.0$"
FEW, MOST_CELLS, MOST_CELLS_A_ROW = 0.001, 2_000_000, 16
"""At most this share of sessions, whose lists are longer than others, is left out; where as many
cells of an array for all lists, and for each row of the log, would else be exceeded.
"""


def read_log(source: Source, *, columns: Mapping[str, str] | None = None) -> ClickLog:
    """Read a click log: a table with one row per session and position.

    The columns are ``session``, ``position`` (from 0 or 1), ``item`` and ``clicked`` (0 or 1); and
    if there are ``query`` (else all sessions are of the query ``"all"``), ``propensity``,
    ``list_propensity``, ``time`` (numbers, or dates and times in ISO 8601, which become seconds
    since 1970), ``user`` (a session without one counts as that of another user), ``arm`` (of an
    experiment; nothing outside it) and ``feature_1``, ``feature_2``, ... If the rows of a session
    are not consecutive, the sessions are sorted by their names.

    Args:
        source: a data frame of Polars, pandas or pyarrow; or a file: CSV with commas, tabs,
            semicolons or bars, JSON lines, an array of JSON objects, all perhaps gzipped, Parquet,
            or the format of the Yandex Relevance Prediction Challenge 2011. Several files, a folder
            with its subfolders or a glob (``logs/**/*.csv``) are one table. A folder called
            ``day=2026-03-01`` is a column of its files.
        columns: names of columns that differ, such as ``{"item": "doc_id"}``. ``{"time": ""}``
            means that there is no time.

    Raises:
        ValueError: a file is of another format or damaged, a column is missing or has wrong values,
            or more than one session in a thousand is damaged. A damaged session lacks a position,
            has a position or an item twice, or has two queries or times. The message names file,
            row and value.
        OSError: there is no such file.

    Warns:
        UserWarning: sessions were left out, at most one in a thousand. Some are damaged; the
            warning names the row of the first. Others have lists so much longer than the rest that
            arrays of this width would not fit into the memory.

    Example:
        >>> columns = {"session": [7, 7], "position": [1, 2], "doc": ["b", "a"], "clicked": [1, 0]}
        >>> frame = pl.DataFrame(columns)
        >>> read_log(frame, columns={"item": "doc"}).item_labels
        ('b', 'a')
    """
    names = _checked_columns(columns)
    sources: Sequence[Path | pl.DataFrame]
    if isinstance(source, pl.DataFrame | pl.LazyFrame) or hasattr(source, "__arrow_c_stream__"):
        sources, name = [_frame(source)], "the frame"
    else:
        sources, name = log_files(source), log_name(source)
        first = Table(sources[0])
        if YANDEX.match(first.head):
            if len(sources) > 1:
                raise ValueError(
                    f"{first.name} is a log of Yandex; expected no other file beside it"
                )
            return read_yandex(sources[0])
    for guess in (True, False):
        rows = _all_rows(sources, names, guess)
        try:
            return ClickLog(**_sessions(name, rows))
        except _SessionFault as error:  # perhaps because 7 and 007 are one number
            fault = error
    damaged, n_sessions = _damaged(rows), rows["session"].n_unique()
    what = f"{_place(fault, sources, names)} {fault.what}"
    if len(damaged) > FEW * n_sessions:
        raise ValueError(
            f"{what}; {len(damaged):,} of {n_sessions:,} sessions are damaged, and at most one in "
            "a thousand is left out"
        )
    try:
        log = ClickLog(**_sessions(name, rows.filter(~rows["session"].is_in(damaged.implode()))))
    except _SessionFault:
        raise ValueError(what) from None
    warnings.warn(
        f"left out {len(damaged):,} of {n_sessions:,} sessions, which are damaged: {what}",
        stacklevel=2,
    )
    return log


class _SessionFault(Exception):
    """What is wrong with a session, and at which position; None if it is the session as a whole."""

    def __init__(self, session: object, what: str, position: int | None = None) -> None:
        self.session, self.what, self.position = str(session), what, position


def _frame(source: Any) -> pl.DataFrame:
    """A data frame of Polars; of one of pandas or pyarrow, a copy."""
    try:
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        with suppress(Exception):
            return pl.DataFrame(source)
        # A column of pandas may hold numbers and texts.
        values = source.astype(object).where(source.notna(), None)
        return pl.DataFrame(values.to_dict("list"), strict=False)
    except Exception as error:  # of either library
        kind, line = type(source).__name__, one_line(str(error).partition("\n")[0])
        raise ValueError(f"the {kind} cannot be converted by Polars: {line}") from None


def _checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    names = {} if columns is None else columns
    check_kind("columns", names, Mapping, 'names of columns, as {"item": "doc_id"}')
    for role, name in names.items():
        if role not in ROLES and not (isinstance(role, str) and FEATURE.fullmatch(role)):
            raise ValueError(unknown("column", role, [*ROLES, "feature_1"]))
        check_kind(f"the name of the column {role}", name, str, "text")
    return dict(names)


def log_name(source: Any) -> str:
    """What a log is called: by its file, its folder, or the first of several."""
    sources = list(source) if is_sequence(source) else [source]
    first = check_path("log", sources[0]).name
    return first if len(sources) == 1 else f"{first} and {len(sources) - 1} more"


def _all_rows(
    sources: Sequence[Path | pl.DataFrame], names: Mapping[str, str], guess: bool
) -> pl.DataFrame:
    """The rows of several tables, in types that they share."""
    parts = [_rows(Table(source, _wanted(names)), names, guess) for source in sources]
    for other, part in zip(sources[1:], parts[1:], strict=True):
        for role in sorted({*part.columns} ^ {*parts[0].columns}):
            there, absent = (other, sources[0]) if role in part.columns else (sources[0], other)
            column = names.get(role, role)
            raise ValueError(f"{there} has the column {column}, but {absent} does not")
    if len({part.schema["session"] for part in parts}) > 1:
        labels = pl.col("session").cast(pl.String).cast(pl.Categorical)
        parts = [part.with_columns(labels) for part in parts]
    if len({part.schema.get("time") for part in parts}) > 1:
        parts = [
            part.with_columns(_times(part["time"], part["session"]).cast(pl.Float64))
            for part in parts
        ]
    return pl.concat(part.select(parts[0].columns) for part in parts)


def _wanted(names: Mapping[str, str]) -> list[str]:
    """The columns that a log is read from, but features."""
    return [*{names.get(role, role): None for role in ROLES}, *names.values()]


def _rows(table: Table, names: Mapping[str, str], guess: bool) -> pl.DataFrame:
    """The columns of a table by their roles, with the types that a log needs.

    ``guess``: columns of CSV are parsed in the types that the first row suggests.
    """
    columns = _columns(table, names)
    types: dict[str, Any] = {}
    if table.is_csv and guess:
        guessed = _guessed(table.row(columns, 0))
        types = {
            columns[role]: guessed[role] for role in guessed if columns[role] not in table.folders
        }
    return checked_rows(table, columns, types, GAPS)


def checked_rows(
    table: Table,
    columns: Mapping[str, str],
    types: dict[str, Any] | None = None,
    gaps: Sequence[str] = (),
) -> pl.DataFrame:
    """The columns of a table by their roles, or the ValueError of the first value that is none of
    its role.

    Args:
        table: a file or a frame.
        columns: the column of each role.
        types: in which columns of CSV are parsed, which is faster than as texts; where one fails,
            all are read as texts.
        gaps: roles that rows may lack.
    """
    for parsed in [types, {}] if types else [{}]:
        kinds = table.schema | parsed
        values = {role: _typed(role, column, kinds[column]) for role, column in columns.items()}
        try:
            rows = table.read(values, parsed)
        except ValueError:
            if not parsed:
                raise
            continue
        faulty = [role for role in columns if rows[role].null_count() and role not in gaps]
        if not faulty:
            break
        if not parsed:
            _refuse_value(table, columns, rows, faulty)
    return rows.with_columns(_as_integers(rows[role]) for role in LABELS if role in rows.columns)


def _columns(table: Table, names: Mapping[str, str]) -> dict[str, str]:
    """The column of each role that a table has."""
    columns = {column.strip(): column for column in table.schema if column.strip()}
    roles = dict.fromkeys([*ROLES, *filter(FEATURE.fullmatch, (*columns, *names))])
    called = {role: names.get(role, role) for role in roles}
    found = {role: columns[column] for role, column in called.items() if column in columns}
    needed = dict.fromkeys([*NEEDED, *(role for role, column in names.items() if column)])
    missing = {role: called[role] for role in needed if role not in found}
    unread = [column for column in table.columns if column not in found.values()]
    if missing:
        hints = {role: _probable(role, unread) for role in (*missing, *HELPFUL)}
        words = [f"{role}={it}" for role, it in hints.items() if it and role not in found]
        named = ""
        if any(hints[role] for role in missing):
            named = f"; name its columns, as by --columns {csv_line(words).replace(', ', ',')}"
        raise ValueError(
            f"{table.name}: no column {csv_line(missing.values())}; the log has {table.has()}, and "
            f"needs a row for each session and position{named}"
        )
    if "query" not in found and (column := _probable("query", unread)):
        warnings.warn(
            f"{table.name} has no column {called['query']}, so all sessions are of one query; "
            f"{column!r} is read only with --columns query={column}",
            stacklevel=2,
        )
    for column in found.values():
        if f"{column}_duplicated_0" in table.schema:  # as Polars calls the second
            raise ValueError(f"{table.name}: two columns are called {column}")
    features = {int(role[8:]) for role in found if FEATURE.fullmatch(role)}
    absent = {*range(1, len(features) + 1)} - features
    if absent:
        raise ValueError(
            f"{table.name}: no column feature_{min(absent)}, but feature_{max(features)}; expected "
            "all numbers from 1 on"
        )
    return found


def _probable(role: str, columns: list[str]) -> str:
    """The column in whose name a word is that of a role; it is taken from the list. None: empty."""
    for word in (role, *CALLED.get(role, ())):
        for column in columns:
            if {word, f"{word}id"} & set(re.split("[^a-z]+", column.lower())):
                columns.remove(column)
                return column
    return ""


def _guessed(first: Mapping[str, Any]) -> dict[str, Any]:
    """The types in which columns of CSV are parsed: sessions and times are numbers if those of the
    first row are.
    """
    kinds: dict[str, Any] = {"position": pl.Int32, "clicked": pl.Int8, "time": pl.String}
    kinds |= dict.fromkeys(LABELS, pl.Categorical)
    types = {role: kinds.get(role, pl.Float64) for role in first}
    for role in ("session", "time"):
        word = first.get(role) or ""
        if INTEGER.fullmatch(word):
            types[role] = pl.Int64
        elif role == "time" and NUMBER.fullmatch(word):
            types[role] = pl.Float64
    return types


def _typed(role: str, column: str, kind: Any) -> pl.Expr:
    """The values of a column in the type of its role; null where a value is none of the role."""
    values, nothing = pl.col(column), pl.repeat(None, pl.len(), dtype=pl.Float64)
    if kind.is_nested() or kind in (pl.Object, pl.Null):
        return nothing
    if kind.is_float():
        values = values.fill_nan(None)  # which pandas takes for a missing value
    if role in LABELS:
        if role == "session" and kind.is_integer() and not str(kind).endswith(("UInt64", "128")):
            return values.cast(pl.Int64)
        if role in GAPS:
            return values.cast(pl.String).replace("", None).cast(pl.Categorical)
        return values.cast(pl.String).cast(pl.Categorical) if kind != pl.Categorical else values
    if role == "time" and kind in (pl.Date, pl.Datetime):
        return values.dt.epoch("us") / 1e6
    if role == "time" and kind.is_integer():
        return values.cast(pl.Int64, strict=False)
    if kind.is_temporal() or (kind == pl.Boolean and role != "clicked"):
        return nothing
    if not kind.is_numeric():
        values = values.cast(pl.String)
        if role == "time":
            return values
        values = values.str.strip_chars().str.to_lowercase()
        if role == "clicked":
            values = values.replace({"true": "1", "false": "0"})
    if not kind.is_integer():
        values = values.cast(pl.Float64, strict=False)
    if role == "clicked":
        return pl.when((values == 0) | (values == 1)).then(values).cast(pl.Int8)
    if role == "position":
        return pl.when(values == values.floor()).then(values).cast(pl.Int32, strict=False)
    is_right = values.is_finite()
    if role.endswith("propensity"):
        is_right = (values > 0) & (values <= 1)
    elif role == "rating":
        is_right &= values >= 0
    return pl.when(is_right).then(values).cast(pl.Float64)


def _refuse_value(
    table: Table, columns: Mapping[str, str], rows: pl.DataFrame, faulty: Iterable[str]
) -> NoReturn:
    """Raise the ValueError for the first value that is none of its role."""
    row, role = min((rows[role].is_null().arg_true()[0], role) for role in faulty)
    value = table.row({role: columns[role]}, row)[role]
    where = f"{table.name}, {table.line(row)}"
    if value is None or value != value:
        raise ValueError(f"{where} has no value in the column {columns[role]!r}")
    expected = EXPECTED.get(role, "a number")
    raise ValueError(f"{where}: {columns[role]} is {short(value)}; expected {expected}")


def _as_integers(labels: pl.Series) -> pl.Series:
    """Labels that are all written as 7.0, as pandas does with integers beside missing values, as
    7.
    """
    first = labels.drop_nulls().head(1)
    if labels.dtype == pl.Categorical and len(first) and first[0].endswith(".0"):
        distinct = labels.cast(pl.String)
        if distinct.str.contains(WRITTEN_AS_FLOAT).all():
            return distinct.str.head(-2).cast(pl.Categorical)
    return labels


def _damaged(rows: pl.DataFrame) -> pl.Series:
    """The labels of the sessions that lack a position, or have one, an item or a fact of the
    session twice.
    """
    sessions = rows.group_by("session", maintain_order=True)
    firsts = sessions.agg(pl.col("position").min())["position"]
    base = int(firsts.quantile(0.5, "lower") or 0)
    places = pl.int_range(pl.len(), dtype=pl.Int32) + base
    faults = [
        (pl.col("position").sort() != places).any(),
        pl.col("item").n_unique() < pl.len(),
        *(pl.col(role).n_unique() > 1 for role in OF_SESSIONS if role in rows.columns),
    ]
    return sessions.agg(is_damaged=pl.any_horizontal(faults)).filter("is_damaged")["session"]


def _place(
    fault: _SessionFault, sources: Sequence[Path | pl.DataFrame], names: Mapping[str, str]
) -> str:
    """Where a session has a fault: the last of its rows at that position, or its first row."""
    places = []
    for source in sources:
        table = Table(source, _wanted(names))
        rows = _rows(table, names, False)
        found = rows["session"].cast(pl.String) == fault.session
        if fault.position is not None:
            found &= rows["position"] == fault.position
        if found.any():
            row = found.arg_true()[0 if fault.position is None else -1]
            places.append(f"{table.name}, {table.line(row)}")
    also = f", also in {places[1]}," if len(places) > 1 else ""
    return f"{places[0] if places else 'the log'}: the session {fault.session!r}{also}"


def _sessions(name: object, rows: pl.DataFrame) -> dict[str, Any]:
    """The arguments of a `ClickLog` from rows by session and position."""
    if not rows.height:
        raise ValueError(f"{name}: there is no row in the log")
    rows = _sorted(rows)
    begins = rows["session"].ne_missing(rows["session"].shift())
    starts = begins.arg_true().to_numpy()
    lengths = np.diff(starts, append=rows.height)
    width = max(MOST_CELLS, MOST_CELLS_A_ROW * rows.height) // len(lengths)
    if lengths.max() > width:
        width = max(width, int(np.quantile(lengths, 1 - FEW, method="higher")))
    few = lengths > width
    if few.any():
        label = str(rows["session"][int(starts[few.argmax()])])
        warnings.warn(
            f"{name}: left out {few.sum():,} of {len(lengths):,} sessions, each with more than "
            f"{width:,} positions (session {label!r} has {lengths[few][0]:,}), like a crawler's, "
            "because each list takes the memory of the longest",
            stacklevel=3,
        )
        return _sessions(name, rows.filter(np.repeat(~few, lengths)))
    positions = rows["position"].to_numpy()
    base = int(positions.min())
    if base not in (0, 1):
        raise ValueError(f"{name}: the first position is {base}; expected 0 or 1")
    places = np.arange(base, base + rows.height, dtype=np.int32)
    places -= np.repeat(starts, lengths).astype(np.int32)
    if not (positions == places).all():
        row = int(np.argmin(positions == places))
        what = f"has the position {positions[row]}, but not {places[row]}"
        if not begins[row] and positions[row] == positions[row - 1]:
            what = f"has the position {positions[row]} twice"
        raise _SessionFault(rows["session"][row], what, int(positions[row]))
    for role in OF_SESSIONS:
        if role in rows.columns:
            alike = begins | rows[role].eq_missing(rows[role].shift())
            if not alike.all():
                row = int(alike.arg_min() or 0)
                fault = f"has two values of {role}"
                raise _SessionFault(rows["session"][row], fault, int(positions[row]))
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
    session, twice = faulty_list(lists, clicks, np.full(len(item_labels), -1, np.int32))
    if twice >= 0:
        what = f"shows the item {item_labels[twice]!r} twice"
        last = int(np.flatnonzero(lists[session] == twice)[-1])
        raise _SessionFault(heads["session"][session], what, base + last)
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
    if "user" in rows.columns:
        fields["users"] = _users(heads["user"])
    if "arm" in rows.columns:
        arms, fields["arm_labels"] = coded(heads["arm"].drop_nulls())
        fields["arms"] = np.full(len(starts), -1, np.int32)
        fields["arms"][heads["arm"].is_not_null().to_numpy()] = arms
    if "time" in rows.columns:
        fields["times"] = _times(heads["time"], heads["session"]).to_numpy(writable=True)
    n_features = sum(FEATURE.fullmatch(role) is not None for role in rows.columns)
    if n_features:
        features = [padded(f"feature_{j + 1}", 0) for j in range(n_features)]
        fields["context"] = np.stack(features, axis=2)
    return fields


def _users(users: pl.Series) -> NDArray[np.int64]:
    """The number of each session's user; a session that has none is of another one."""
    numbers = users.rank("dense").fill_null(0).cast(pl.Int64).to_numpy(writable=True)
    unknown = np.flatnonzero(numbers == 0)
    numbers[unknown] = len(users) + unknown
    return numbers


def _times(times: pl.Series, sessions: pl.Series) -> pl.Series:
    """Numbers; texts that are no numbers are dates, and become seconds since 1970."""
    if times.dtype != pl.String:
        return times
    times = times.str.strip_chars()
    for kind in (pl.Int64, pl.Float64):
        numbers = times.cast(kind, strict=False)
        if not numbers.null_count() and numbers.is_finite().all():
            return numbers
    texts = times.unique(maintain_order=True)
    seconds = [as_seconds(text) for text in texts]
    if None in seconds:
        none = texts.filter(pl.Series([second is None for second in seconds]))
        is_number = none.cast(pl.Float64, strict=False).is_finite().fill_null(value=False)
        wrong = none[is_number.arg_min() or 0]
        raise _SessionFault(
            sessions[(times == wrong).arg_true()[0]],
            f"has the time {wrong!r}, which is neither a number, as others, nor a date and time in "
            "ISO 8601",
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
