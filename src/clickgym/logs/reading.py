"""Functions that read click logs from tables, in which each column has a role and each row is a
position of a session.
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from glob import glob
from importlib.util import find_spec
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..core.checks import check_choice, check_path, is_sequence
from ..core.files import one_line_errors
from ..core.messages import short_repr, suggestions
from .log import ClickLog

Source = str | PathLike[str] | Sequence[str | PathLike[str]] | pl.DataFrame
"""What `read_log` accepts as a log: a file, a glob such as ``logs/*.parquet``, a sequence of files
and globs, or a data frame.
"""

ROLES = {
    "session": "a label",
    "position": "a number",
    "item": "a label",
    "clicked": "0 or 1",
    "query": "a label",
}
"""The roles of columns, and what the column in each role must contain."""
EXPECTED = "expected CSV, perhaps gzipped, or Parquet in a file NAME.parquet; see docs/fit.md"
WHOLE_FLOAT = r"^(-?\d+)\.0+$"
LARGE_FLOAT = r"^-?\d(\.\d+)?e\+\d+$"
"""How libraries write floats from 1e16 on."""
NO_LABEL = "__HIVE_DEFAULT_PARTITION__"
"""The text that stands for a missing value in the folder names of a table that is partitioned into
folders.
"""
MAX_DAMAGED = 0.001
"""The largest share of sessions that `read_log` leaves out because they are damaged. A larger share
raises an error.
"""


def read_log(
    source: Source, *, columns: Mapping[str, str] | None = None, ids_per_file: bool = False
) -> ClickLog:
    """Read a click log from a table with one row for each session and position.

    The columns are ``session``, ``position`` (counted from 0 or 1), ``item``, ``clicked`` (0 or 1)
    and, optionally, ``query``. Without a column ``query``, all sessions belong to the query
    ``"all"``. In the log, the sessions are in the order of their first rows.

    Args:
        source: a data frame from Polars, pandas (including the named levels of its index) or
            pyarrow; or one or more files, or a glob. Files whose names end with ``.parquet`` are
            read as Parquet. All other files are read as CSV, separated by commas, tabs, semicolons
            or vertical bars, and may be gzipped. Several files form one table. If a file lacks a
            column, the column's value is taken from the names of the file's folders, as in
            ``query=shoes/part.parquet``.
        columns: a mapping from the names above to the names of the columns in your table, for the
            columns whose names differ, such as ``{"item": "doc_id"}``.
        ids_per_file: whether the same session id in two files means two sessions, as in files that
            each begin with session 0. By default, rows with the same id form one session.

    Raises:
        ValueError: Polars cannot read a file; a row of a CSV file spans several lines; a column is
            missing or contains invalid values; only some of the files have a column ``query``; two
            files have the same rows; or more than one session in a thousand is damaged. A damaged
            session lacks a position, contains a position or an item twice, or has two queries. The
            message names the file, and the row or the session.
        FileNotFoundError: a file does not exist.

    Warns:
        UserWarning: at most one session in a thousand is damaged, and these sessions were left out;
            there is no column ``query``; two labels differ only in zeros at the beginning, such as
            7 and 007; or two files that number their own sessions have the same rows.

    Example:
        >>> columns = {"session": [7, 7], "position": [1, 2], "doc": ["b", "a"], "clicked": [1, 0]}
        >>> table = pl.DataFrame({**columns, "query": "shoes"})
        >>> read_log(table, columns={"item": "doc"}).item_labels
        ('b', 'a')
    """
    names = {role: role for role in ROLES}
    for role, column in (columns or {}).items():
        if role not in ROLES and column in ROLES:
            raise ValueError(
                f"columns has {role}={column} the wrong way round; expected {column}={role}"
            )
        names[check_choice("column", role, ROLES)] = column
    for role, other in combinations(names, 2):
        if names[role] == names[other]:
            raise ValueError(
                f"{role} and {other} are both read from the column {names[role]!r}; name a "
                "different column for each"
            )
    sources: dict[str, Any] = {}
    if isinstance(source, str | PathLike) or is_sequence(source):
        patterns: Any = source if is_sequence(source) else [source]
        if len(patterns) == 0:
            raise ValueError("source is empty; pass at least one file")
        files = [file for pattern in patterns for file in _files_of(pattern)]
        name = log_name(files)
        tables = [
            _read_file(file, names).with_columns(file=pl.lit(number, pl.Int32))
            for number, file in enumerate(files)
        ]
        _check_copies(files, tables, ids_per_file=ids_per_file)
        without_query = [
            file for file, table in zip(files, tables, strict=True) if "query" not in table
        ]
        if 0 < len(without_query) < len(files):
            raise ValueError(
                f"{without_query[0]} has no column query, but other files do; expected this "
                "column in all files or in none"
            )
        rows, sources["files"] = pl.concat(tables), [file.name for file in files]
    else:
        name = "the frame"
        frame: Any = source
        if hasattr(frame, "reset_index"):  # a pandas frame, whose index Polars would drop
            levels = [level for level in frame.index.names if level is not None]
            frame = frame.reset_index([level for level in levels if level not in frame])
            cure = "expected one type in each column"
            if find_spec("pyarrow") is None:  # which only frames of numbers do without
                cure += ", and perhaps pyarrow: pip install pyarrow"
            with one_line_errors(name, "cannot be read", cure):
                frame = pl.DataFrame(frame)
        table = pl.DataFrame(frame)
        rows = _parse_rows(name, table, names, table.columns)
    if not rows.height:
        raise ValueError(f"{name}: the log has no rows")
    columns_used = {role: column for role, column in names.items() if role in rows}
    if ids_per_file and "file" in rows:
        rows = rows.with_columns(session=pl.format("{}:{}", "file", "session"))
        sources["ids_per_file"] = True
    if "query" not in rows:
        if "query" in (columns or {}):
            raise ValueError(f"{name} has no column query; leave query=query out, or name another")
        warnings.warn(
            f"{name}: no column query, so all sessions count as one query; if another "
            "column holds the queries, pass columns={'query': NAME}, or --columns "
            "query=NAME",
            stacklevel=2,
        )
        rows = rows.with_columns(query=pl.lit("all"))
    log = _log_of(name, rows)
    _warn_of_lost_zeros(name, names["item"], log.item_labels)
    _warn_of_lost_zeros(name, names["query"], log.query_labels)
    return replace(log, source={**sources, "columns": columns_used})


def _files_of(pattern: str | PathLike[str]) -> list[Path]:
    """Return the files that match a glob. If a file has exactly the given name, return only this
    file, because file names may contain brackets.

    Raises:
        FileNotFoundError: no file matches.
        ValueError: the name is that of a folder or of a JSON file.
    """
    path = check_path("source", pattern)
    if path.is_dir() and path.suffix != ".parquet":  # Polars reads a folder with this name
        raise ValueError(f"{path} is a folder; name its files, as in {path}/*.csv")
    if path.suffix in (".json", ".jsonl", ".ndjson"):
        raise ValueError(
            f"{path} is JSON; expected CSV or Parquet (docs/fit.md shows how to convert)"
        )
    if path.exists():
        return [path]
    matches = sorted(glob(str(path), recursive=True))
    if not matches:
        others = [file.name for file in path.parent.glob("[!.]*")]
        cure = "; separate columns by commas" if "=" in path.name else ""
        raise FileNotFoundError(f"{path}: no such file{suggestions(path.name, others)}{cure}")
    return [Path(match) for match in matches]


def _check_copies(
    files: Sequence[Path], tables: Sequence[pl.DataFrame], *, ids_per_file: bool
) -> None:
    """Raise a ValueError if two files have the same rows; if each file numbers its own sessions,
    only warn, because small files may be alike.
    """
    seen: dict[Any, Path] = {}  # files by the sum of their rows' hashes
    for file, table in zip(files, tables, strict=True):
        other = seen.setdefault(table.drop("file").hash_rows().sum(), file)
        if other is not file and table.height:
            message = f"{file} has the same rows as {other}; if it is a copy, leave it out"
            if not ids_per_file:
                raise ValueError(message)
            warnings.warn(message, stacklevel=3)


def log_name(files: Sequence[str | PathLike[str]]) -> str:
    """Return a log's name for messages: the name of its file or, for several files, the name of the
    first file and the number of other files.
    """
    first, *others = files
    name = Path(first).name
    return f"{name} and {len(others)} more" if others else name


def open_unzipped(path: Path) -> IO[bytes]:
    """Open a text file for reading bytes, and decompress the bytes if the file is gzipped; raise a
    ValueError for other files, such as zip archives.
    """
    with path.open("rb") as file:
        start = file.read(1000)
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(path)  # type: ignore[return-value]
    if b"\0" in start:
        raise ValueError("the file is neither text in UTF-8 nor gzipped")
    return path.open("rb")


def _read_file(path: Path, names: Mapping[str, str]) -> pl.DataFrame:
    """Return the rows of a file, with a column for each role. The column ``query`` is missing if
    the file has no such column.
    """
    is_parquet = path.suffix == ".parquet"
    with one_line_errors(path, "cannot be read", EXPECTED):
        if is_parquet:
            columns, rows = _read_columns(pl.scan_parquet(path, glob=False), names)
        else:
            columns, rows = _read_csv(path, names)
    for folder in path.parent.parts:
        column, equals, value = folder.partition("=")
        if equals and column in names.values() and column not in columns:
            label = None if value == NO_LABEL else unquote(value)
            rows = rows.with_columns(pl.lit(label, pl.String).alias(column))
    row_word, first = ("row", 1) if is_parquet else ("line", 2)
    return _parse_rows(path, rows, names, columns, row_word, first)


def _read_columns(table: pl.LazyFrame, names: Mapping[str, str]) -> tuple[list[str], pl.DataFrame]:
    """Return the names of all columns of a table, and a frame with the columns that a log needs."""
    columns = table.collect_schema().names()
    # The last column is always read, so that Polars notices a line with too many fields.
    needed = [name for name in columns if name in {*names.values(), columns[-1]}]
    return columns, table.select(needed).collect()


def _read_csv(path: Path, names: Mapping[str, str]) -> tuple[list[str], pl.DataFrame]:
    """Return the names of all columns of a CSV file, and a frame with the columns that a log needs.
    Each row must be a single line, because a stray quotation mark would join all lines up to the
    next mark, and their sessions would be lost.

    Raises:
        ValueError: a row spans several lines, or Polars cannot read the file. The message names the
            first line in which a quoted field is not closed, or which has too many fields.
    """
    with open_unzipped(path) as file:
        content = file.read().rstrip(b"\r\n")  # many programs end a file with an empty line
    head = content[: content.find(b"\n")]
    separator = max(",\t;|", key=lambda mark: head.count(mark.encode()))
    n_lines = content.count(b"\n")  # without the header
    try:
        table = pl.scan_csv(content, separator=separator, infer_schema=False)
        columns, rows = _read_columns(table, names)
        if rows.height == n_lines:
            return columns, rows
        fault = f"the {n_lines:,} lines below the header contain {rows.height:,} rows"
    except pl.exceptions.ComputeError as error:
        fault = str(error)
        if "utf-8" in fault:
            fault += ": save the file as UTF-8"
    mark = separator.encode()
    n_columns = head.count(mark) + 1
    for number, line in enumerate(content.split(b"\n"), 1):
        n_fields = line.count(mark) + 1
        if line.count(b'"') % 2:
            wrong = "has a quotation mark without an end"
        elif n_fields > n_columns and b'"' not in line:
            wrong = f"has {n_fields} fields for {n_columns} columns"
        else:
            continue
        raise ValueError(f"line {number} {wrong}: {short_repr(line.decode(errors='replace'))}")
    raise ValueError(fault)


def _parse_rows(
    name: object,
    table: pl.DataFrame,
    names: Mapping[str, str],
    columns: Sequence[str],
    row_word: str = "row",
    first: int = 1,
) -> pl.DataFrame:
    """Return the rows of a table, with a column for each role in the type that a log needs. The
    column ``query`` is missing if the table has no such column.

    Args:
        name: the name of the table, for messages.
        table: a frame that contains at least the columns with a role.
        names: the name of the column in each role.
        columns: the names of all columns in the table's source, for messages.
        row_word, first: the word for a row in messages, and the number of the first row.
    """
    missing = {role: column for role, column in names.items() if column not in table.columns}
    optional = ""
    if missing.get("query") == "query":
        del missing["query"]
        optional = ", with query=NAME if a column holds the queries"
    if missing:
        given = {role: column for role, column in names.items() if column != role}
        mapping = given | dict.fromkeys(missing, "NAME")
        options = ",".join(f"{role}={column}" for role, column in mapping.items())
        raise ValueError(
            f"{name} has no column {' or '.join(missing.values())}; its columns are "
            f"{', '.join(map(short_repr, columns[:30]))}; pass columns={mapping}, or "
            f"--columns {options}{optional}; if each row is a whole list, make a row for each item "
            "first (docs/fit.md, One row for each list)"
        )
    rows = {}
    for role, column in names.items():
        if column not in table.columns:
            continue
        if isinstance(table.schema[column], pl.List | pl.Array):
            raise ValueError(
                f"{name}: the column {column} has a list in each row; make a row for each item "
                "first (docs/fit.md, One row for each list)"
            )
        with one_line_errors(
            f"{name}: the column {column}", "cannot be read", f"expected {ROLES[role]}"
        ):
            if ROLES[role] == "a label":
                rows[role] = label_text(table[column])
                if role == "item":
                    rows[role] = rows[role].set(rows[role] == "", None)
            else:
                rows[role] = table.select(_numbers(role, column, table.schema[column]))[column]
        gaps = rows[role].is_null()
        if gaps.any():
            row = gaps.arg_true()[0]
            value, expected = table[column][row], ROLES[role]
            is_number = value not in (None, "") and value == value  # not nan
            if expected == "a label" and is_number:
                expected += "; floats of this size are rounded, so save integers or text instead"
            raise ValueError(
                f"{name}: {row_word} {row + first} has {short_repr(value)} in the column {column}; "
                f"expected {expected}"
            )
    return pl.DataFrame(rows)


def _numbers(role: str, column: str, type_: pl.DataType) -> pl.Expr:
    """Return an expression for the numbers of a column. Entries that are not finite, or not in the
    range of their role, become null.
    """
    values = pl.col(column)
    if not (type_.is_numeric() or type_ == pl.Boolean):
        values = values.cast(pl.String)
        if role == "clicked":
            values = values.str.to_lowercase().replace({"true": "1", "false": "0"})
    number = values.cast(pl.Float64, strict=False)
    is_right = number.is_in([0.0, 1.0]) if role == "clicked" else number.is_finite()
    return pl.when(is_right).then(number)


def label_text(values: pl.Series) -> pl.Series:
    """Return a column of labels as text, such that the same label has the same text in every type
    and file. Spaces around a label do not count. Whole floats become integers, because pandas turns
    integers into floats if an entry is missing. Floats that are too large to hold every integer
    have been rounded, so they become null.
    """
    text = values.cast(pl.String)
    if values.dtype.is_integer():
        return text
    text = text.str.strip_chars()
    if text.str.contains(WHOLE_FLOAT).any():
        text = text.str.replace(WHOLE_FLOAT, "${1}")
    if values.dtype.is_float():
        is_exact = values.abs() <= 2 ** (24 if values.dtype == pl.Float32 else 53)  # not for nan
    else:
        is_exact = ~text.str.contains(LARGE_FLOAT)
    return text if is_exact.all() else text.set(~is_exact, None)


def _warn_of_lost_zeros(name: str, column: str, labels: Sequence[str]) -> None:
    """Warn if labels differ only in zeros at the beginning, which many programs remove."""
    known = set(labels)
    for label in labels:
        short = label.lstrip("0") or "0"
        if label != short and short in known and label.isdecimal():
            warnings.warn(
                f"{name}: the column {column} has {label!r} and {short!r}, which count as "
                "different labels; if they mean the same, a program has removed the zeros",
                stacklevel=3,
            )
            return


def _log_of(name: str, rows: pl.DataFrame) -> ClickLog:
    """Make a log from rows in any order, and leave out the damaged sessions."""
    numbers, _ = encode_labels(rows["session"])
    rows = rows.with_columns(number=numbers).sort("number", "position", maintain_order=True)
    starts = np.flatnonzero(np.diff(rows["number"].to_numpy(), prepend=-1))
    lengths = np.diff(starts, append=len(rows))
    damaged = _find_damaged(name, rows, starts, lengths)
    if damaged.any():
        return _log_of(name, rows.filter(~np.repeat(damaged, lengths)))
    filled = np.arange(lengths.max()) < lengths[:, None]
    items, clicks = np.full(filled.shape, -1, np.int32), np.zeros(filled.shape, np.int8)
    items[filled], item_labels = encode_labels(rows["item"])
    clicks[filled] = rows["clicked"].to_numpy()
    queries, query_labels = encode_labels(rows["query"][starts])
    return ClickLog(items, clicks, queries, item_labels, query_labels)


def _find_damaged(
    name: str, rows: pl.DataFrame, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of the damaged sessions: sessions that lack a position, have a position or an
    item twice, or have two queries. Damaged sessions cause a warning, or an error if their share
    exceeds `MAX_DAMAGED`.

    Args:
        name: the name of the log, for messages.
        rows: the rows, sorted by session and position.
        starts, lengths: ``(N,)`` the first row of each session, and the session's number of rows.
    """
    positions = rows["position"].to_numpy()
    median = np.median(positions[starts])
    first = int(median)
    if median not in (0, 0.5, 1):
        is_late = ~np.isin(positions[starts], (0, 1))
        late = int(is_late.argmax())
        raise ValueError(
            f"{name}: the positions of session {rows['session'][int(starts[late])]!r} begin at "
            f"{positions[starts[late]]:g}, and {is_late.sum():,} of {len(starts):,} sessions do "
            "not begin at 0 or 1; expected a row for each position of each session, from the first "
            "page on"
        )
    first_rows = np.repeat(starts, lengths)
    expected = np.arange(len(rows)) - first_rows + first
    faults = {
        "positions": positions != expected,
        "shows an item twice": rows.select("number", "item").is_duplicated().to_numpy(),
        "has two queries": (rows["query"] != rows["query"][first_rows]).to_numpy(),
    }
    has_fault = np.logical_or.reduceat(np.array([*faults.values()]), starts, axis=1)
    damaged = np.any(has_fault, axis=0)
    if damaged.any():
        session = int(damaged.argmax())
        fault = list(faults)[has_fault[:, session].argmax()]
        if fault == "positions":
            part = rows.slice(int(starts[session]), int(lengths[session]))
            fault = _fault_of_positions(part, first)
        example = f"session {rows['session'][int(starts[session])]!r} {fault}"
        counts = f"{damaged.sum():,} of {len(starts):,} sessions"
        if damaged.mean() > MAX_DAMAGED:
            cure = "repair the log"
            if rows["clicked"].min() == 1:
                cure = "all rows are clicks; add a row for each item that was shown but not clicked"
            elif n_shared := _ids_in_two(rows, "query"):
                cure = (
                    f"{n_shared:,} session ids occur in more than one query; if the ids restart in "
                    "each query, make them unique"
                )
            if n_shared := _ids_in_two(rows, "file"):
                cure = (
                    f"{n_shared:,} session ids occur in more than one file; if each file numbers "
                    "its own sessions, pass ids_per_file=True, or --ids-per-file"
                )
            raise ValueError(
                f"{name}: {example}; {counts} are damaged, but read_log leaves out at most one in "
                f"a thousand: {cure}"
            )
        warnings.warn(
            f"{name}: left out {counts}, which are damaged; for example, {example}", stacklevel=4
        )
    return damaged


def _fault_of_positions(session: pl.DataFrame, first: int) -> str:
    """Return what is wrong with the positions of a session, which should count from ``first``."""
    repeated = session.filter(pl.col("position").is_duplicated())
    if repeated.height:
        position = repeated["position"][0]
        same = repeated.filter(position=position).drop("file", strict=False)
        how = "with different items"
        if same["item"].n_unique() == 1:
            how = "with the same item, once clicked and once not"
            if same["clicked"].n_unique() == 1:
                how = "in the same row, which was delivered twice"
        return f"has position {position:g} twice, {how}"
    given = session["position"].to_list()
    if given[0] != first and given[0] in (0, 1):
        return f"begins at position {given[0]:g}, but other sessions begin at {first}"
    lacking = next(p for p in range(first, first + len(given) + 1) if p not in given)
    return f"lacks position {lacking}: its positions are {', '.join(f'{p:g}' for p in given[:8])}"


def _ids_in_two(rows: pl.DataFrame, column: str) -> int:
    """Return the number of sessions with rows in more than one file or query; 0 if the log does not
    have the column.
    """
    if column not in rows:
        return 0
    return rows.group_by("number").agg(pl.col(column).n_unique()).filter(pl.col(column) > 1).height


def encode_labels(values: pl.Series) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Number the distinct labels of a column. Return the number of each entry, and the distinct
    labels in order of appearance.

    Example:
        >>> encode_labels(pl.Series(["b", "a", "b"]))
        (array([0, 1, 0], dtype=int32), ('b', 'a'))
    """
    values = values.cast(pl.String)
    labels = values.unique(maintain_order=True)
    numbers = values.cast(pl.Enum(labels)).to_physical().cast(pl.Int32).to_numpy()
    return numbers, tuple(labels)
