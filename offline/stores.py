"""Read the store of `clickgym.Ranker`: check its version, and make a click log from it.

The tables are described in ``serving/store.py`` and in docs/service.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_path
from .log import ClickLog
from .reading import takes_strict
from .tables import MAX_MEMORY, check_kept, check_size

__all__ = [
    "APPLICATION",
    "LOGGED",
    "VERSION",
    "as_items",
    "check_version",
    "is_database",
    "log_of",
    "open_store",
    "read_columns",
    "read_store",
]

APPLICATION = 0x636C6B67
"""SQLite's ``application_id`` of a store: "clkg" in ASCII."""
VERSION = 1
"""Its ``user_version``: the version of the tables."""
LOGGED = 4
"""The source of impressions that were learned from a log, and that no user of the store has seen."""
ROWS = 500_000
"""Impressions that are read at once."""


def check_version(connection: sqlite3.Connection, path: object) -> None:
    """Raise an error if the file is no store, or a store of another version."""
    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise ValueError(f"{path} is an SQLite file, but no store of a clickgym.Ranker")
    if version != VERSION:
        raise ValueError(f"{path} has version {version} of the store's tables; this clickgym reads version {VERSION}")


def open_store(path: Path) -> sqlite3.Connection:
    """A connection that only reads, also beside a process that serves, or in it.

    SQLite must open the file itself. If the same process opened and closed the file directly, it would release the locks of its
    other SQLite connections.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no store, or one of another version.
    """
    path.stat()
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        check_version(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise ValueError(f"{path} is no store of a clickgym.Ranker that can be read ({error})") from None
    except BaseException:
        connection.close()
        raise
    return connection


def is_database(path: Path) -> bool:
    """Whether a file is an SQLite file."""
    if not path.is_file():
        return False
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return bool(connection.execute("PRAGMA schema_version").fetchone()[0])
        except sqlite3.Error as error:
            return error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN)


@takes_strict
def read_store(path: str | PathLike[str], *, bad_rows: str = "strict", max_memory: int | str = MAX_MEMORY) -> ClickLog:
    """Read the log of a store of `clickgym.Ranker`, also while a process serves from it.

    Args:
        path: the store.
        bad_rows: as for other readers; a store has none.
        max_memory: bytes, or words as ``"4GB"``, that may be kept of the log.

    Raises:
        ValueError: it is no store, or one of another version; it holds no closed impression; more would be kept than
            ``max_memory``.
    """
    path = check_path("path", path)
    most = check_size("max_memory", max_memory)
    with closing(open_store(path)) as connection:
        log = log_of(connection, lambda n_bytes: check_kept(path, n_bytes, most, "its impressions"))
    if not len(log):
        raise ValueError(f"{path} holds no closed impression yet")
    return log


def log_of(connection: sqlite3.Connection, check: Callable[[int], object] = lambda n_bytes: None) -> ClickLog:
    """The closed impressions of a store, in the order in which they were shown, each as far as it was seen and with its time.

    Args:
        connection: to the store.
        check: is called with the number of bytes that will be kept, before they are read.
    """
    connection.execute("BEGIN")
    try:
        return _log_of(connection, check)
    finally:
        connection.execute("COMMIT")


def _log_of(connection: sqlite3.Connection, check: Callable[[int], object]) -> ClickLog:
    n_positions = int(connection.execute("SELECT value FROM settings WHERE name = 'n_positions'").fetchone()[0])
    where = f"closed IS NOT NULL AND source <> {LOGGED}"
    (n,) = connection.execute(f"SELECT count(*) FROM impressions WHERE {where}").fetchone()
    check(n * (5 * n_positions + 12))
    rows = connection.execute(f"SELECT number, query, seen, shown, items FROM impressions WHERE {where} ORDER BY number")
    numbers, queries, seen, shown, blob = read_columns(rows, 5)
    items = np.frombuffer(bytearray(blob), np.int32).reshape(-1, n_positions)
    clicks = np.zeros((n, n_positions), np.int8)
    impressions, positions = read_columns(connection.execute("SELECT impression, position FROM clicks ORDER BY impression"), 2)
    place = np.searchsorted(numbers, impressions).clip(0, max(n - 1, 0))
    known = numbers[place] == impressions if n else np.zeros(0, np.bool_)  # the others are of open impressions, or of a log
    clicks[place[known], positions[known] - 1] = 1
    np.maximum.at(seen, place[known], positions[known])  # who has clicked on it has seen it, whatever was said before
    items[np.arange(n_positions) >= seen[:, None]] = -1
    some = seen > 0
    labels = _labels(connection, "items"), _labels(connection, "queries")
    numbers_of_queries, indices = np.unique(queries[some], return_inverse=True)
    item_numbers, item_indices = np.unique(items[some], return_inverse=True)
    shift = int(len(item_numbers) > 0 and item_numbers[0] < 0)
    return ClickLog(
        (item_indices.reshape(-1, n_positions) - shift).astype(np.int32),
        clicks[some],
        indices.astype(np.int32),
        tuple(labels[0][number] for number in item_numbers[shift:].tolist()),
        tuple(labels[1][number] for number in numbers_of_queries.tolist()),
        times=shown[some] / 1e6,
    )


def read_columns(rows: sqlite3.Cursor, n_columns: int) -> list[Any]:
    """The columns of a table: integers or floats as an array, blobs as one."""
    blocks: list[list[Any]] = [[] for _ in range(n_columns)]
    while block := rows.fetchmany(ROWS):
        for i, column in enumerate(blocks):
            values = [row[i] for row in block]
            column.append(b"".join(values) if isinstance(values[0], bytes) else np.array(values))
    return [b"".join(column) if column and isinstance(column[0], bytes) else _joined(column) for column in blocks]


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def _labels(connection: sqlite3.Connection, table: str) -> dict[int, str]:
    """What ids are called in a log, which knows only texts: an integer that is also there as a text gets a word behind it."""
    ids = dict(connection.execute(f"SELECT number, id FROM {table} WHERE id IS NOT NULL"))
    texts = {text for text in ids.values() if isinstance(text, str)}
    return {number: _label(each, texts) for number, each in ids.items()}


def _label(each: str | int, texts: set[str]) -> str:
    if isinstance(each, str):
        return each
    label = str(each)
    while label in texts:
        label += " (integer)"
    return label


def as_items(blob: bytes) -> NDArray[np.int32]:
    """The numbers of items in a column of the store."""
    return np.frombuffer(blob, np.int32)
