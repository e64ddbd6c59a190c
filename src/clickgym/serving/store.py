"""The store: one SQLite file in WAL mode, its tables, who may write to it, and what is durable when a call returns.

A change of the tables needs a new `VERSION` in ``src/clickgym/offline/stores.py``, which reads them.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..core.files import FileError
from ..offline.stores import (
    APPLICATION,
    COLUMNS,
    OLD,
    SUMS,
    UNCHECKED,
    VERSION,
    add_sums,
    check_content,
    check_version,
    check_wal,
    fault_of,
    reading,
    sum_of,
)
from .journal import check_process

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

TABLES = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")
DURABLE = {"kill": "NORMAL", "power": "FULL"}
"""What an acknowledged call survives, and SQLite's ``synchronous`` that makes it so."""
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


LOCK_BYTE = 0x40000000 + 1000
"""Where systems without `flock` lock the file: in the page on which SQLite has its own locks, and no content."""
LOOKS = 1.0
"""Seconds after which a call looks whether the file is still there."""

_served: dict[tuple[int, int], int] = {}
"""The descriptors that hold the locks of this process, by device and number of the file."""
_serving = threading.Lock()

logger = logging.getLogger("clickgym.serving")


def _file_of(path: Path | int) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _claim(path: Path) -> tuple[int, int]:
    """Take the right to serve from a file, which is created if missing: a lock on itself, whatever lies beside it.

    It ends with the process, however that ends. SQLite does not see it: others read and back up. Where the lock is one of
    POSIX, as SQLite's are, closing any descriptor of the file would release it; so a file that is served is not opened again.
    """
    with _serving:
        if path.exists() and _file_of(path) in _served:
            raise ValueError(_taken(path))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise ValueError(_taken(path)) from None
            raise
        file = _file_of(descriptor)
        _served[file] = descriptor
        return file


def _taken(path: Path) -> str:
    return f"{path} is served by another process or Ranker; a store has one writer"


def _lock(descriptor: int) -> None:
    if sys.platform == "linux":  # independent of SQLite's locks, also if the file is opened and closed elsewhere
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif sys.platform == "win32":
        os.lseek(descriptor, LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCK_BYTE)


def _give_up_all() -> None:
    """In the child of a fork, which would keep the locks of its parent after the end of that."""
    for descriptor in _served.values():
        os.close(descriptor)
    _served.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_all)


@contextmanager
def unserved(path: Path) -> Iterator[None]:
    """Context in which nobody serves from a file that is there.

    Raises:
        ValueError: a process serves from it.
    """
    path.stat()
    file = _claim(path)
    try:
        yield
    finally:
        _release(file)


def _release(file: tuple[int, int]) -> None:
    with _serving:
        os.close(_served.pop(file))


class _Batch:
    """Calls that are committed together."""

    done = False
    error: BaseException | None = None


class Store:
    """The connection to a store, with the exclusive right to write.

    Args:
        path: the file, created if missing; None keeps everything in memory.
        durable: ``"kill"`` or ``"power"``.
        on_abort: called after a rollback, so that memory is reset to what the store contains.

    Raises:
        ValueError: the file is no store, or one of another version, or another process serves from it.
        FileError: the file cannot be written.
    """

    def __init__(self, path: Path | None, durable: str, on_abort: Callable[[], None]) -> None:
        self.name, self._on_abort, self._joins = path, on_abort, durable == "power"
        self._process, self._looked = os.getpid(), time.monotonic()
        self._lock, self._count = threading.Condition(threading.Lock()), threading.Lock()
        self._entering, self._batch, self._pending = 0, _Batch(), False
        self.touched = False
        with self._faults(), ExitStack() as undo:
            if path is not None:
                self._file = _claim(path)
                undo.callback(_release, self._file)
                check_wal(path)
            self._connect()
            undo.callback(lambda: self.connection.close())  # a migration connects again
            self._prepare(DURABLE[durable])
            self._begin()
            self._held = undo.pop_all()

    def _begin(self) -> None:
        """Take up what the store contains, also after a rollback."""

    def _connect(self) -> None:
        self.connection = sqlite3.connect(self.name or ":memory:", isolation_level=None, check_same_thread=False, timeout=5.0)

    def _prepare(self, synchronous: str) -> None:
        is_new = not scalar(self.connection, "SELECT count(*) FROM sqlite_schema") and not scalar(
            self.connection, "PRAGMA application_id"
        )
        if not is_new:
            version = check_version(self.connection, self.name)
            seconds = check_content(self.connection, "integrity_check")
            logger.info("%s: checked in %.1f s", self.name, seconds, extra={"event": "checked", "seconds": seconds})
            if version < VERSION:
                self._migrate(version)
                self.connection.close()
                self._connect()
        run = self.connection.execute
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {synchronous}")
        run("PRAGMA wal_autocheckpoint = 4000")
        run("PRAGMA cache_size = -65536")
        if is_new:
            marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            self.connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {marks} COMMIT;")
        else:
            run("PRAGMA wal_checkpoint(TRUNCATE)")  # so that no part of an unfinished transaction is left, see `check_wal`

    def _migrate(self, version: int) -> None:
        """Give tables of an earlier version what they lack, in one transaction, after a copy of the file."""
        run, path = self.connection.execute, self.name
        assert path is not None
        name = "of clickgym 2.0" if version == UNCHECKED else f"of version {version}"
        try:
            run("PRAGMA journal_mode = DELETE")  # only if nobody else has the file open: clickgym 2.0 had another lock
        except sqlite3.OperationalError as error:
            raise ValueError(f"{path} is {name}, and open elsewhere; close it there, so that it can be migrated") from error
        copy = path.with_name(f"{path.name}.v{version}")
        draft = copy.with_name(f"{copy.name}.partial")
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft)) as connection:
            self.connection.backup(connection)
        os.replace(draft, copy)
        add_sums(self.connection)
        run("BEGIN EXCLUSIVE")
        for table in OLD if version == UNCHECKED else ():
            run(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
            run(f"UPDATE {table} SET checksum = sum_of_{table}({COLUMNS[table]})")
        run(TABLES[TABLES.index("CREATE TABLE interleaved") : TABLES.index("CREATE TABLE snapshots")])
        run(f"PRAGMA user_version = {VERSION}")
        run("COMMIT")
        path.with_name(f"{path.name}-lock").unlink(missing_ok=True)
        logger.warning(
            "%s was %s and now is of version %d; %s is a copy of before", path, name, VERSION, copy,
            extra={"event": "migrated", "store": str(path), "version": VERSION, "copy": str(copy)},
        )  # fmt: skip

    # ----------------------------------------------------------------------------------------------------------- writing

    @contextmanager
    def call(self) -> Iterator[None]:
        """Context of one call of a user: it is computed alone, and is durable when the context ends; an error undoes it.

        With ``durable="power"`` calls of several threads wait for one commit.
        """
        self._enter()
        try:
            self.check_usable()
            if self.name is not None and time.monotonic() > self._looked + LOOKS:
                self._look()
            batch, self.touched = self._batch, False
            try:
                yield
            except BaseException as error:
                if self.touched:  # what others have written in this batch goes with it: they are told, too
                    self._end(error)
                else:
                    self._end_if_last()
                raise self._told(error) from error.__cause__
            touched = self.touched
            self._pending |= touched
            self._end_if_last()
            if touched:
                while not batch.done:
                    self._lock.wait()
                if batch.error is not None:
                    raise self._told(batch.error)
        finally:
            self._lock.release()

    def _end_if_last(self) -> None:
        """End the batch unless another call is about to join it."""
        if self._pending and not self._entering:
            self._end()

    def _look(self) -> None:
        """Refuse, once a second, to write to a file that no longer has its name: nobody would find what it holds."""
        assert self.name is not None
        if not self.name.exists() or _file_of(self.name) != self._file:
            raise FileError(f"{self.name} was moved or replaced while it was served; nothing of this call was stored")
        self._looked = time.monotonic()

    def _enter(self) -> None:
        """Wait to be alone; whoever writes meanwhile leaves the commit to the last of those who wait."""
        if not self._joins:
            self._lock.acquire()
            return
        with self._count:
            self._entering += 1
        try:
            self._lock.acquire()
        finally:
            with self._count:
                self._entering -= 1

    def touch(self) -> None:
        """Begin to write: from here on the call changes memory or the store."""
        if not self.touched:
            self.touched = True
            if not self.connection.in_transaction:
                self.connection.execute("BEGIN IMMEDIATE")

    def _end(self, error: BaseException | None = None) -> None:
        """Commit what the calls of a batch have written; roll it back after an error, also one of the commit."""
        batch, self._batch, self._pending = self._batch, _Batch(), False
        try:
            if error is None:
                self.connection.execute("COMMIT")
        except BaseException as fault:
            error = fault
        if error is not None:
            batch.error = error
            with suppress(sqlite3.Error):
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
            self._begin()
            self._on_abort()
        batch.done = True
        self._lock.notify_all()

    # ------------------------------------------------------------------------------------------------------------ faults

    def check_usable(self) -> None:
        """Refuse a store that was shut down, and one that was copied by a fork."""
        check_process(self._process)

    def _told(self, error: BaseException) -> BaseException:
        """What is said of an error: one line for those of the disk."""
        if isinstance(error, sqlite3.Error):
            if damage := fault_of(self.name or "the store", error):
                return damage
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            reason = {
                sqlite3.SQLITE_FULL: "the disk is full",
                sqlite3.SQLITE_IOERR: f"{error}; the disk may be full, or a limit of the system reached",
                sqlite3.SQLITE_READONLY: "it may only be read",
                sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
            }.get(code, str(error))
            fault = FileError(f"{self.name} cannot be written: {reason}; nothing of this call was stored")
            fault.errno = errno.ENOSPC if code in FULL else errno.EIO
            return fault
        return error

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            with reading(self.name or "the store"):
                yield
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{self.name} cannot be opened: {error.strerror or error}") from None

    def shut_down(self) -> None:
        """Close the file, and let other processes serve from it."""
        with self._lock:
            self.check_usable()
            if self.connection.in_transaction:
                self._end()
            self._process = -1
            self._held.close()


@cache
def insertion(table: str, verb: str = "INSERT") -> str:
    """The statement that puts a row and its checksum into a table."""
    return f"{verb} INTO {table} VALUES ({', '.join('?' * (COLUMNS[table].count(',') + 2))})"


def insert(connection: sqlite3.Connection, table: str, *row: Any, verb: str = "INSERT") -> int:
    """Put a row into a table, with its checksum; returns how many rows that changed."""
    return connection.execute(insertion(table, verb), (*row, SUMS.get(table, sum_of)(*row))).rowcount


def scalar(connection: sqlite3.Connection, statement: str, *values: Any) -> Any:
    """The first column of the first row of a query; None if there is no row."""
    row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]
