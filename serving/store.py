"""The store: one SQLite file in WAL mode, its tables, who may write to it, and what is durable when a call returns.

A change of the tables needs a new `VERSION` in ``offline/stores.py``, which reads them.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..core.files import FileError
from ..offline.stores import APPLICATION, VERSION, check_version

__all__ = ["DURABLE", "Store", "scalar"]

TABLES = """
CREATE TABLE settings (      -- what the store was made with
    name TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;
CREATE TABLE items (
    number INTEGER PRIMARY KEY,
    id NOT NULL UNIQUE       -- the user's own: a text or an integer
);
CREATE TABLE queries (       -- each with its agent; number 0 is the agent of all queries where it ranks by features
    number INTEGER PRIMARY KEY,
    id UNIQUE,               -- the user's own; NULL for number 0
    capacity INTEGER,        -- L of the agent: slots for items, or candidates; NULL where number 0 ranks
    n_features INTEGER,      -- d of the agent; NULL where it sees none
    guarded INTEGER          -- when the guard gave the query back to production: a tick; NULL if it did not
);
CREATE TABLE slots (         -- which item an agent's id stands for, from which impression on
    query INTEGER NOT NULL,
    since INTEGER NOT NULL,  -- a tick, that of an impression
    slot INTEGER NOT NULL,
    item INTEGER NOT NULL,
    PRIMARY KEY (query, since, slot)
) WITHOUT ROWID;
CREATE TABLE impressions (
    number INTEGER PRIMARY KEY,  -- a tick: lists were shown in this order
    query INTEGER NOT NULL,
    shown INTEGER NOT NULL,      -- microseconds since 1970, UTC, by the clock of the machine
    source INTEGER NOT NULL,     -- of the list: 0 agent; by lot 1 agent, 2 production; 3 production, by the guard; 4 a log
    share REAL,                  -- with which probability the lot would have chosen production; NULL without lot
    items BLOB NOT NULL,         -- (K,) int32, numbers of items; -1 below the end of a list of a log
    candidates BLOB,             -- which slots could be shown, a bit for each; with features (L,) int32, numbers of items
    features BLOB,               -- (L, d) float64; NULL where the agent sees none
    closed INTEGER,              -- as shown; NULL while it is open
    seen INTEGER,                -- how many positions were seen; NULL while it is open
    learned INTEGER              -- a tick: agents learned in this order; NULL before
);
CREATE INDEX impressions_of_query ON impressions (query);
CREATE INDEX impressions_to_learn ON impressions (number) WHERE learned IS NULL;
CREATE TABLE clicks (
    impression INTEGER NOT NULL,
    position INTEGER NOT NULL,   -- from 1
    clicked INTEGER NOT NULL,    -- as shown
    late INTEGER NOT NULL,       -- 1 if the impression was closed before, so that no agent has learned from it
    PRIMARY KEY (impression, position)
) WITHOUT ROWID;
CREATE TABLE snapshots (     -- to make loading fast, never the truth: an agent is what a replay of the impressions makes of it
    query INTEGER PRIMARY KEY,
    tick INTEGER NOT NULL,   -- the last event that it has seen
    state BLOB NOT NULL      -- a line of JSON, then the agent as `save` writes it
);
"""
DURABLE = {"kill": "NORMAL", "power": "FULL"}
"""What an acknowledged call survives, and SQLite's ``synchronous`` that makes it so."""
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


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
        self.path, self._on_abort, self._joins = path, on_abort, durable == "power"
        self._process, self._lock_file = os.getpid(), None
        self._lock, self._count = threading.Condition(threading.Lock()), threading.Lock()
        self._entering, self._batch, self._pending = 0, _Batch(), False
        self._touched = False
        with self._faults():
            if path is not None:
                self._lock_file = _locked(path)
            try:
                self.connection = sqlite3.connect(
                    path or ":memory:", isolation_level=None, check_same_thread=False, timeout=5.0
                )
                self._prepare(DURABLE[durable])
            except BaseException:
                self._release()
                raise

    def _prepare(self, synchronous: str) -> None:
        run = self.connection.execute
        is_new = not scalar(self.connection, "SELECT count(*) FROM sqlite_schema")
        if not is_new:
            check_version(self.connection, self.path)
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {synchronous}")
        run("PRAGMA wal_autocheckpoint = 4000")
        run("PRAGMA cache_size = -65536")
        if is_new:
            marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            self.connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {marks} COMMIT;")
        elif self.path is not None and not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, "it may only be read")

    # ----------------------------------------------------------------------------------------------------------- writing

    @contextmanager
    def call(self) -> Iterator[None]:
        """Context of one call of a user: it is computed alone, and is durable when the context ends; an error undoes it.

        With ``durable="power"`` calls of several threads wait for one commit.
        """
        self._enter()
        try:
            self.check_usable()
            batch, self._touched = self._batch, False
            try:
                yield
            except BaseException as error:
                if self._touched:  # what others have written in this batch goes with it: they are told, too
                    self._abort(error)
                    raise self._told(error) from error.__cause__
                if self._pending and not self._entering:
                    self._commit()
                raise
            touched = self._touched
            self._pending |= touched
            if self._pending and not self._entering:
                self._commit()
            if touched:
                while not batch.done:
                    self._lock.wait()
                if batch.error is not None:
                    raise self._told(batch.error)
        finally:
            self._lock.release()

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
        if not self._touched:
            self._touched = True
            if not self.connection.in_transaction:
                self.connection.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        batch, self._batch, self._pending = self._batch, _Batch(), False
        try:
            self.connection.execute("COMMIT")
        except BaseException as error:
            batch.error = error
            self._roll_back()
        batch.done = True
        self._lock.notify_all()

    def _abort(self, error: BaseException) -> None:
        batch, self._batch, self._pending = self._batch, _Batch(), False
        batch.error = error
        self._roll_back()
        batch.done = True
        self._lock.notify_all()

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        self._on_abort()

    # ------------------------------------------------------------------------------------------------------------ faults

    def check_usable(self) -> None:
        """Refuse a store that was shut down, and one that was copied by a fork."""
        if self._process < 0:
            raise ValueError("the Ranker was shut down")
        if self._process != os.getpid():
            raise ValueError(f"the process {os.getpid()} was forked from the one that serves; make the Ranker after the fork")

    def _told(self, error: BaseException) -> BaseException:
        """What is said of an error: one line for those of the disk."""
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            reason = {
                sqlite3.SQLITE_FULL: "the disk is full",
                sqlite3.SQLITE_IOERR: f"{error}; the disk may be full, or a limit of the system reached",
                sqlite3.SQLITE_READONLY: "it may only be read",
                sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
            }.get(code, str(error))
            fault = FileError(f"{self.path} cannot be written: {reason}; nothing of this call was stored")
            fault.errno = errno.ENOSPC if code in FULL else errno.EIO
            return fault
        return error

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise ValueError(f"{self.path} is no store of a clickgym.Ranker, or damaged ({error})") from None
            raise FileError(f"{self.path} cannot be opened: {error}") from None
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{self.path} cannot be opened: {error.strerror or error}") from None

    def shut_down(self) -> None:
        """Close the file, and let other processes serve from it."""
        with self._lock:
            self.check_usable()
            if self.connection.in_transaction:
                self._commit()
            self._process = -1
            self.connection.close()
            self._release()

    def _release(self) -> None:
        if self._lock_file is not None:
            self._lock_file.close()


def _locked(path: Path) -> sqlite3.Connection:
    """The right to serve from a file: an empty SQLite file beside it, which is locked as long as the process lives.

    SQLite's own locks are those of all systems, end with their process however it ends, and are not inherited by a fork.
    """
    lock = sqlite3.connect(path.with_name(f"{path.name}-lock"), isolation_level=None, check_same_thread=False, timeout=0.0)
    try:
        lock.execute("PRAGMA journal_mode = MEMORY")
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise ValueError(f"{path} is served by another process or Ranker; a store has one writer") from None
        raise
    return lock


def scalar(connection: sqlite3.Connection, statement: str, *values: Any) -> Any:
    """The first column of the first row of a query; None if there is no row."""
    row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]
