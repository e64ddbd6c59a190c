"""Read the store of `clickgym.Ranker`: check its version and its checksums, and make a click log from it.

The tables are described in ``src/clickgym/serving/store.py`` and in docs/service.md.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import islice, starmap
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_path
from ..core.files import FileError
from ..core.formats import one_line
from .log import ClickLog
from .reading import takes_strict
from .tables import MAX_MEMORY, check_kept, check_size

APPLICATION = 0x636C6B67
"""SQLite's ``application_id`` of a store: "clkg" in ASCII."""
VERSION = 3
"""Its ``user_version``: the version of the tables. That before had no table ``interleaved``."""
PRUNED = 4
"""The version of a store some of whose impressions have left: it has the tables ``pruned``
and ``totals``, of what was in them."""
STORE = -1
"""Stands in the table ``totals`` for the whole store."""
UNCHECKED = 1
"""The version of the tables of clickgym 1.0 and 2.0, whose rows have no checksum."""
LOGGED = 4
"""The source of impressions that were learned from a log, and that no user of the store has seen."""
BEFORE = 8
"""Is added to the source of impressions from before the store was moved to another agent, to which their lists are foreign."""
ROWS = 50_000
"""Rows that are read at once."""
COLUMNS = {
    "settings": "name, value",
    "items": "number, id",
    "queries": "number, id, capacity, n_features, guarded",
    "slots": "query, since, slot, item",
    "impressions": "number, query, shown, source, share, items, candidates, features, closed, seen, learned",
    "clicks": "impression, position, clicked, late",
    "interleaved": "impression, note",
    "moved": "number, impression",
    "pruned": "query, tick, state",
    "totals": "query, totals",
    "snapshots": "query, tick, state",
}
"""The columns of each table, of which the last one, ``checksum``, is made."""


# ---------------------------------------------------------------------------------------------------------------- checksums


_SHOWN, _CLOSED, _CLICK = (struct.Struct(form).pack for form in ("<4qd", "<3q", "<4q"))
OLD = tuple(table for table in COLUMNS if table not in ("interleaved", "moved", "pruned", "totals"))
"""The tables of all versions."""
NOTHING = -(2**63)
"""Stands for a tick that is NULL."""


def sum_of(*values: Any) -> int:
    """The checksum of a row of small tables."""
    return crc32(ascii(values).encode())


def sum_of_impression(*row: Any) -> int:
    """The checksum of a row of ``impressions``, whose columns come in their order."""
    number, query, shown, source, share, items, candidates, features, closed, seen, learned, *_ = row
    result = crc32(_SHOWN(number, query, shown, source, -1.0 if share is None else share) + items + (candidates or b""))
    if features is not None:
        result = crc32(features, result + 1)
    if closed is None and seen is None and learned is None:
        return result
    return crc32(_CLOSED(closed, seen, NOTHING if learned is None else learned), result)


def sum_of_click(*row: Any) -> int:
    """The checksum of a row of ``clicks``, whose columns come in their order."""
    return crc32(_CLICK(*row[:4]))


SUMS: dict[str, Callable[..., int]] = {"impressions": sum_of_impression, "clicks": sum_of_click}


def _checked(table: str, rows: list[Any]) -> list[Any]:
    """Rows of a table with their checksums, if these match."""
    make = SUMS.get(table)
    try:
        sums = [*starmap(make, rows)] if make else [sum_of(*row[:-1]) for row in rows]
    except (TypeError, struct.error):  # the damage gave a value another type
        sums = []
    if sums != [row[-1] for row in rows]:
        raise sqlite3.DatabaseError(f"the checksum of a row of {table} does not match")
    return rows


@cache
def _select(table: str, rest: str) -> str:
    return f"SELECT {COLUMNS[table]}, checksum FROM {table} {rest}"


def rows_of(connection: sqlite3.Connection, table: str, rest: str = "", *values: Any) -> Iterator[tuple[Any, ...]]:
    """Rows of a table, each with its checksum, which is checked.

    Args:
        connection: to the store.
        table: its name.
        rest: what stands behind it in the query.
        values: of the question marks in ``rest``.
    """
    cursor = connection.execute(_select(table, rest), values)
    while block := cursor.fetchmany(ROWS):
        yield from _checked(table, block)


def row_of(connection: sqlite3.Connection, table: str, rest: str, *values: Any) -> Any:
    """The first of `rows_of`, or None."""
    row = connection.execute(_select(table, rest), values).fetchone()
    return None if row is None else _checked(table, [row])[0]


def settings_of(connection: sqlite3.Connection) -> dict[str, Any]:
    """What the store was made with; empty where it is being made."""
    return {name: value for name, value, _ in rows_of(connection, "settings")}


def worths_of(settings: dict[str, Any], numbers: Iterable[int]) -> dict[int, float]:
    """What a click on each item earns, by number; nothing in a store that was made without values."""
    return {number: float(settings[f"value of item {number}"]) for number in numbers if "item_values" in settings}


def by_number(worths: dict[int, float]) -> NDArray[np.float64]:
    """What a click on each item earns as an array, whose last entry is a 0, of no item."""
    array = np.zeros(max(worths, default=-1) + 2)
    array[[*worths]] = [*worths.values()]
    return array


def add_sums(connection: sqlite3.Connection) -> None:
    """Let SQL compute checksums: ``sum_of_TABLE(columns)``."""
    for table, columns in COLUMNS.items():
        connection.create_function(f"sum_of_{table}", columns.count(",") + 1, SUMS.get(table, sum_of), deterministic=True)


# ------------------------------------------------------------------------------------------------------------------ opening


OF_SYSTEM = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
}  # fmt: skip
"""Errors of SQLite that say nothing about what is in the file."""


LONGEST = 120
"""Characters of what SQLite says that are passed on: it quotes the damaged text."""


def fault_of(path: object, error: sqlite3.Error) -> ValueError | None:
    """What is said of a damaged store; None if the error has another cause.

    Args:
        path: the store.
        error: of SQLite, or of a checksum.
    """
    code, reason = getattr(error, "sqlite_errorcode", 0), one_line(" ".join(str(error).split())[:LONGEST])
    if code & 0xFF in OF_SYSTEM and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return None
    if code & 0xFF == sqlite3.SQLITE_NOTADB:
        return ValueError(f"{path} is no store of a clickgym.Ranker, or damaged ({reason})")
    return ValueError(f"{path} is damaged ({reason}); restore a copy of it")


@contextmanager
def reading(path: object) -> Iterator[None]:
    """What may be said where a store is read."""
    try:
        yield
    except sqlite3.Error as error:
        raise fault_of(path, error) or FileError(f"{path} cannot be read: {error}") from None


def check_version(connection: sqlite3.Connection, path: object) -> int:
    """The version of a store's tables; an error if the file is no store, or a store of a later version."""
    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise ValueError(f"{path} is an SQLite file, but no store of a clickgym.Ranker")
    if not UNCHECKED <= version <= PRUNED:
        raise ValueError(
            f"{path} has version {version} of the store's tables; this clickgym reads versions {UNCHECKED} to {PRUNED}"
        )
    return int(version)


def check_content(connection: sqlite3.Connection, check: str) -> float:
    """Let SQLite check the file; returns how many seconds that took.

    Args:
        connection: to the store.
        check: ``"quick_check"``, or ``"integrity_check"``, which also compares the indices with the tables.
    """
    begin = time.perf_counter()
    (answer,) = connection.execute(f"PRAGMA {check}(1)").fetchone()
    if answer != "ok":
        raise sqlite3.DatabaseError(" ".join(answer.split()))
    return time.perf_counter() - begin


def open_store(path: Path, check: bool = True) -> sqlite3.Connection:
    """A connection that only reads, also beside a process that serves, or in it.

    SQLite must open the file itself. If the same process opened and closed the file directly, it would release the locks of its
    other SQLite connections.

    Args:
        path: the store.
        check: whether it may be damaged.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no store, one of a later version, or damaged.
        FileError: it cannot be read.
    """
    path.stat()
    with reading(path):
        if check:
            check_wal(path)
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            version = check_version(connection, path)
            if check:
                check_content(connection, "quick_check")
            if version == UNCHECKED:  # is read as if it had checksums
                add_sums(connection)
                for table in OLD:
                    connection.execute(
                        f"CREATE TEMP VIEW {table} AS SELECT *, sum_of_{table}({COLUMNS[table]}) AS checksum FROM main.{table}"
                    )
            if version < VERSION:
                connection.execute("CREATE TEMP TABLE interleaved (impression, note, checksum)")
        except BaseException:
            connection.close()
            raise
    return connection


WAL_HEAD, FRAME_HEAD, FRAMES = 32, 24, 1000
"""Bytes before the first frame of SQLite's write-ahead log, and before the page of each frame; frames that are read at once."""


def _sums(words: NDArray[np.unsignedinteger[Any]], before: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """``(n, 2)`` checksums of rows of words, each after another checksum."""
    first, second = before.astype(np.uint32).T
    for even, odd in words.astype(np.uint32).T.reshape(words.shape[1] // 2, 2, len(words)):
        first = first + even + second
        second = second + odd + first
    return np.column_stack([first, second])


def check_wal(path: Path) -> None:
    """Raise an error if SQLite's write-ahead log beside a store lost something that a process wrote which was killed since.

    SQLite takes what follows a damaged frame as never written; but a later frame that ends a transaction tells that it was. The
    frame that was being written when the process was killed is no damage. Nor is anything after a loss of power, after which
    the machine started again.
    """
    wal = path.with_name(f"{path.name}-wal")
    for _ in range(3):  # a process that serves may be writing just now
        try:
            if wal.stat().st_mtime < time.time() - time.monotonic():
                return
            with wal.open("rb") as file:
                fault = _fault_of_wal(file)
                if file.tell() and not path.stat().st_size:
                    fault = "belongs to a store that is empty now"
        except FileNotFoundError:
            return
        if not fault:
            return
        time.sleep(0.01)
    raise sqlite3.DatabaseError(f"{wal.name} {fault}")


def _fault_of_wal(file: BinaryIO) -> str:
    """What is wrong with a write-ahead log, in words; nothing if it may be what a killed process left."""
    content = file.read(WAL_HEAD)
    if not content:
        return ""
    content = content.ljust(WAL_HEAD, b"\0")
    head, salts = np.frombuffer(content, ">u4"), content[16:24]
    order = "<>"[head[0] & 1] + "u4"
    if not head[2] or (_sums(np.frombuffer(content, order)[None, :6], np.zeros((1, 2), np.uint32)) != head[6:]).any():
        return "has a damaged head"
    frame = np.dtype([("begin", order, 2), ("salts", ">u4", 2), ("sums", ">u4", 2), ("page", order, head[2] // 4)])
    before, rest, read = head[None, 6:], b"", [np.empty((0, 3), np.bool_)]
    while content := file.read(FRAMES * frame.itemsize):
        whole = len(content) // frame.itemsize
        frames, rest = np.frombuffer(content, frame, whole), content[whole * frame.itemsize :]
        current = (frames["salts"] == head[4:6]).all(axis=1)  # not of what was there before
        words, sums = np.hstack([frames["begin"], frames["page"]]), frames["sums"]
        sound = current & (_sums(words, np.vstack([before, sums[:-1]])[:whole]) == sums).all(axis=1)
        read.append(np.column_stack([current, sound, current & (frames["begin"][:, 1] > 0)]))
        before = sums[-1:]
    current, sound, ending = np.concatenate(read).T
    broken = int(np.append(sound, False).argmin())
    ends = np.flatnonzero(ending[broken:])  # from the first broken frame on
    # The frame that a killed process was writing has older ones behind it.
    interrupted = ends.tolist() == [0] and np.flatnonzero(current)[-1] == broken < len(current) - 1
    if len(ends) and not interrupted:
        return f"is damaged in frame {broken + 1:,} of {len(current):,}"
    return "ends in the middle of a frame" if len(rest) not in (0, FRAME_HEAD) and salts.startswith(rest[8:16]) else ""


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
    with reading(path), closing(open_store(path)) as connection, at_one_moment(connection):
        log = log_of(SqliteView(connection), lambda n_bytes: check_kept(path, n_bytes, most, "its impressions"))
    if not len(log):
        raise ValueError(f"{path} holds no closed impression yet")
    return log


@contextmanager
def at_one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """Context in which all that is read is of one moment, while others write."""
    alone = not connection.in_transaction
    if alone:
        connection.execute("BEGIN")
    try:
        yield
    finally:
        if alone:
            connection.execute("COMMIT")


N_CLOSED = f"SELECT count(*) FROM impressions WHERE closed IS NOT NULL AND source <> {LOGGED}"
"""The number of closed impressions of users, in either kind of store."""


class View(Protocol):
    """A store at one moment, for those who only read it.

    Args:
        connection: to the store.
        until: where it ends, by which its store knows.
    """

    _connection: Any
    until: int

    def __init__(self, connection: Any, until: int = 2**63 - 1) -> None:
        self._connection, self.until = connection, until

    def settings(self) -> dict[str, Any]:
        """What the store was made with."""

    def n_closed(self) -> int:
        """How many impressions of users are closed."""
        return int(self._connection.execute(N_CLOSED).fetchone()[0])

    def impressions(self, *names: str) -> list[Any]:
        """Columns of the impressions, in the order in which they were shown: arrays, -1 for NULL; ``items`` is ``(n, K)``."""

    def clicks(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The impression of each click, its position from 1, and whether it came late."""

    def ids(self, table: str) -> dict[int, Any]:
        """The users' own ids of ``items`` or ``queries``, by number."""

    def worths(self) -> NDArray[np.float64] | None:
        """What a click on each item earns, by number, and last a 0, of no item; None where items have no values."""

    def guarded(self) -> list[int]:
        """The numbers of the agents that the guard stopped, in this order."""

    def placed(self) -> Iterable[tuple[int, int]]:
        """The agent and the slot of each item that took one."""

    def notes(self) -> dict[int, NDArray[np.float64]]:
        """By interleaved impression the probability that a position is the agent's."""

    def totals(self) -> dict[int, Any]:
        """What is kept of impressions that have left, by query; that of the whole store is `STORE`'s."""

    def n_before(self, moment: int) -> int:
        """How many impressions were shown before a moment, in microseconds since 1970."""
        return int(self._connection.execute(f"SELECT count(*) FROM impressions WHERE shown < {moment}").fetchone()[0])


class SqliteView(View):
    """A `View` of a store in SQLite: ``until`` are only impressions with smaller numbers, and what belongs to them."""

    def _rows(self, table: str, column: str) -> Iterator[tuple[Any, ...]]:
        return rows_of(self._connection, table, f"WHERE {column} < ?", self.until)

    def settings(self) -> dict[str, Any]:
        return settings_of(self._connection)

    def _columns(self, table: str, key: str, *names: str) -> list[Any]:
        rows = rows_of(self._connection, table, f"WHERE {key} < ? ORDER BY {key}", self.until)
        return columns_of(rows, [COLUMNS[table].split(", ").index(name) for name in names])

    def impressions(self, *names: str) -> list[Any]:
        columns = dict(zip(names, self._columns("impressions", "number", *names), strict=True))
        if "items" in columns:
            columns["items"] = as_items(bytes(columns["items"])).reshape(-1, int(self.settings()["n_positions"]))
        if "source" in columns:
            columns["source"] &= ~BEFORE
        return [*columns.values()]

    def clicks(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        number, position, late = self._columns("clicks", "impression", "impression", "position", "late")
        return number, position, late

    def ids(self, table: str) -> dict[int, Any]:
        return {row[0]: row[1] for row in rows_of(self._connection, table)}

    def worths(self) -> NDArray[np.float64] | None:
        settings = self.settings()
        return by_number(worths_of(settings, self.ids("items"))) if "item_values" in settings else None

    def guarded(self) -> list[int]:
        return [row[0] for row in rows_of(self._connection, "queries", "ORDER BY guarded") if row[4] is not None]

    def placed(self) -> Iterator[tuple[int, int]]:
        return ((row[0], row[2]) for row in self._rows("slots", "since"))

    def notes(self) -> dict[int, NDArray[np.float64]]:
        return {row[0]: np.frombuffer(row[1]) for row in self._rows("interleaved", "impression")}

    def totals(self) -> dict[int, Any]:
        rows = rows_of(self._connection, "totals") if has_table(self._connection, "totals") else ()
        return {row[0]: json.loads(row[1]) for row in rows}


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a store has one of the tables that only some have."""
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone())


def places_of(numbers: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of some numbers stands among others; anywhere if it is not there."""
    last = max(len(numbers) - 1, 0)
    if (numbers[1:] > numbers[:-1]).all():
        return np.searchsorted(numbers, wanted).clip(0, last)
    order = np.argsort(numbers)
    return order[np.searchsorted(numbers, wanted, sorter=order).clip(0, last)]


def log_of(view: View, check: Callable[[int], object] = lambda n_bytes: None) -> ClickLog:
    """The closed impressions of a store, in the order in which they were shown, each as far as it was seen, with its time
    and, if the store has them, the values of its items.

    Args:
        view: of the store.
        check: is called with the number of bytes that will be kept, before they are read.
    """
    n_positions, n = int(view.settings()["n_positions"]), view.n_closed()
    check(n * (5 * n_positions + 12))
    *columns, source, items = view.impressions("number", "query", "seen", "shown", "source", "items")  # damage is seen in all
    impressions, positions, _ = view.clicks()
    labels, worths = (_labels(view.ids("items")), _labels(view.ids("queries"))), view.worths()
    since = view.totals().get(STORE, {}).get("until")
    users = (columns[2] >= 0) & (source != LOGGED)
    numbers, queries, seen, shown = (column[users] for column in columns)
    items = items[users]
    clicks = np.zeros((n, n_positions), np.int8)
    place = places_of(numbers, impressions)
    counted = numbers[place] == impressions if n else np.zeros(0, np.bool_)  # the others are of open impressions, or of a log
    clicks[place[counted], positions[counted] - 1] = 1
    np.maximum.at(seen, place[counted], positions[counted])  # who has clicked on it has seen it, whatever was said before
    items[np.arange(n_positions) >= seen[:, None]] = -1
    some = seen > 0
    numbers_of_queries, indices = np.unique(queries[some], return_inverse=True)
    items = items[some]
    values = None if worths is None else worths[items]
    item_numbers, item_indices = np.unique(items, return_inverse=True)
    shift = int(len(item_numbers) > 0 and item_numbers[0] < 0)
    return ClickLog(
        (item_indices.reshape(-1, n_positions) - shift).astype(np.int32),
        clicks[some],
        indices.astype(np.int32),
        tuple(labels[0][number] for number in item_numbers[shift:].tolist()),
        tuple(labels[1][number] for number in numbers_of_queries.tolist()),
        times=shown[some] / 1e6,
        values=values,
        notes=() if since is None else (f"whole after {utc(since)} UTC; impressions that were shown until then were pruned",),
    )


def utc(microseconds: float) -> str:
    """A time since 1970 in words."""
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):  # by a clock that is far off
        return f"{microseconds / 1e6:.0f} s since 1970"


def columns_of(rows: Iterator[Sequence[Any]], places: Sequence[int]) -> list[Any]:
    """Some columns of rows as arrays: integers, floats or lists of them, -1 for NULL; of blobs all bytes."""
    blocks: list[list[Any]] = [[] for _ in places]
    while block := list(islice(rows, ROWS)):
        for place, column in zip(places, blocks, strict=True):
            cells: list[Any] = [-1 if row[place] is None else row[place] for row in block]
            column.append(np.frombuffer(b"".join(cells), np.uint8) if isinstance(cells[0], bytes) else np.array(cells))
    return [np.concatenate(column or [np.empty(0, np.int64)]) for column in blocks]


def _labels(ids: dict[int, Any]) -> dict[int, str]:
    """What ids are called in a log, which knows only texts: an integer that is also there as a text gets a word behind it."""
    ids = {number: identity for number, identity in ids.items() if identity is not None}
    labels, texts = {number: str(identity) for number, identity in ids.items()}, set(ids.values())
    for number, identity in ids.items():
        while isinstance(identity, int) and labels[number] in texts:
            labels[number] += " (integer)"
    return labels


def as_items(blob: bytes) -> NDArray[np.int32]:
    """The numbers of items in a column of the store."""
    return np.frombuffer(blob, np.int32)
