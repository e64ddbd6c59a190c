"""The journal of a `Ranker` in one SQLite file, or in memory: one process writes, and a call is a transaction."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

from ..offline.stores import (
    BEFORE,
    PRUNED,
    SqliteView,
    View,
    as_items,
    at_one_moment,
    has_table,
    open_store,
    reading,
    row_of,
    rows_of,
    settings_of,
    sum_of_impression,
    worths_of,
)
from .ids import Id
from .journal import Contents, History, Item, Query, Shown, Stored
from .served import INTERLEAVED, Served
from .store import Store, insert, scalar

RESERVED = 1000
"""Ticks that are given without writing the last of them."""
LATER = 2**62
"""Is added to ticks so that they are behind those of all events."""
PRUNING = f"""
CREATE TABLE pruned (query INTEGER PRIMARY KEY, tick INTEGER NOT NULL, state BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE totals (query INTEGER PRIMARY KEY, totals TEXT NOT NULL, checksum INTEGER NOT NULL);
PRAGMA user_version = {PRUNED}"""
"""What a store gets when the first impressions leave: by agent its state then, the first from which it can be computed; and
sums over what has left, by query, and of number -1 over all."""
MOVED = "CREATE TABLE moved (number INTEGER PRIMARY KEY, impression INTEGER NOT NULL, checksum INTEGER NOT NULL)"
"""By the number that an id says that of the impression, in a store that comes from PostgreSQL. All own numbers are larger."""


class SqliteJournal(Store):
    """A `Journal` in SQLite. All agents share one tick, which is the number of an impression, too.

    Args:
        path, durable, on_abort: as of `Store`.
    """

    shared = False
    step = 2000  # other calls wait meanwhile
    _oldest: tuple[int, int] | None  # the open impression that was shown first, and when

    def _begin(self) -> None:
        self._tick = self._reserved = int(settings_of(self.connection).get("tick", 0))
        self._n_queries = int(scalar(self.connection, "SELECT coalesce(max(number), 0) FROM queries")) + 1
        self._n_items = int(scalar(self.connection, "SELECT coalesce(max(number), -1) FROM items")) + 1
        self._was_moved, self._was_pruned = (has_table(self.connection, name) for name in ("moved", "pruned"))
        self._find_oldest()

    def together(self) -> AbstractContextManager[None]:
        """A call is a transaction already."""
        return nullcontext()

    @contextmanager
    def view(self) -> Iterator[SqliteView]:
        """Read beside those who write, if the store is a file."""
        if self.name is None:
            with self.call(), at_one_moment(self.connection):
                yield SqliteView(self.connection)
            return
        self.check_usable()
        with reading(self.name), closing(open_store(self.name, check=False)) as connection, at_one_moment(connection):
            yield SqliteView(connection)

    # ------------------------------------------------------------------------------------------------------------- names

    def settings(self) -> dict[str, Any]:
        return settings_of(self.connection)

    def add_settings(self, values: dict[str, Any]) -> dict[str, Any]:
        there = self.settings()
        new = {name: value for name, value in (values if there else {"tick": 0} | values).items() if name not in there}
        if new:
            self.touch()
        for name, value in new.items():
            insert(self.connection, "settings", name, value)
        return there | new

    def is_new(self) -> bool:
        return not self._tick and not scalar(self.connection, "SELECT count(*) FROM items")

    def fill(self, contents: Contents) -> None:
        self.touch()
        self._insert_items(contents.items)
        for query in contents.queries:
            insert(self.connection, "queries", *query[:5])
        for row in contents.rows():
            self._tick = max(self._tick, row.tick, row.learned or 0)
            self.show(row._replace(clicks=()), None)
            if row.number != row.tick:
                if not self._was_moved:
                    self.connection.execute(MOVED)
                    self._was_moved = True
                insert(self.connection, "moved", row.number, row.tick)
        for number, *click in contents.clicks():
            insert(self.connection, "clicks", self._own(number), *click)
        for agent, tick, _, state in contents.snapshots():
            self.add_snapshot(agent, tick, 0, state)
        if contents.totals:
            self._keep(contents.beginnings(), ((query, json.dumps(totals)) for query, totals in contents.totals.items()))
        self.add_settings(contents.settings | {"tick": self._tick})

    def _own(self, number: int) -> int:
        """The number of an impression in this store, by that of its id: they differ where it comes from another store."""
        row = row_of(self.connection, "moved", "WHERE number = ?", number) if self._was_moved else None
        return number if row is None else row[1]

    def items(self) -> list[Item]:
        return _items(self.connection)

    def find_items(self, ids: Sequence[Id]) -> list[Item]:
        return []

    def add_items(self, ids: Sequence[Id], values: Sequence[float | None]) -> list[Item]:
        items = [*map(Item, range(self._n_items, self._n_items + len(ids)), ids, values)]
        self._n_items += len(ids)
        self._insert_items(items)
        return items

    def _insert_items(self, items: Iterable[Item]) -> None:
        for number, identity, value in items:
            insert(self.connection, "items", number, identity)
            if value is not None:
                insert(self.connection, "settings", f"value of item {number}", repr(value))

    def items_of(self, numbers: Sequence[int]) -> list[Item]:
        raise sqlite3.DatabaseError(f"there is no item {numbers[0]}")

    def query(self, query: Id) -> int | None:
        number: int | None = scalar(self.connection, "SELECT number FROM queries WHERE id = ?", query)
        return number

    def add_query(self, query: Id | None, capacity: int | None, n_features: int | None) -> int:
        number = 0 if query is None else self._n_queries
        insert(self.connection, "queries", number, query, capacity, n_features, None)
        self._n_queries = max(self._n_queries, number + 1)
        return number

    # ------------------------------------------------------------------------------------------------------------ agents

    def stored(self, agent: int) -> Stored | None:
        row = row_of(self.connection, "queries", "WHERE number = ?", agent)
        if row is None:
            return None
        snapshot = row_of(self.connection, "snapshots", "WHERE query = ?", agent)
        beginning = row_of(self.connection, "pruned", "WHERE query = ?", agent) if self._was_pruned else None
        states = [None if each is None else (each[1], 0, each[2]) for each in (snapshot, beginning)]
        return Stored(*row[1:4], *states)

    def history(self, agent: int, since: int, version: int, opened: Sequence[int]) -> History:
        where, values = ("", []) if agent == 0 else ("query = ? AND ", [agent])
        slots: dict[int, list[tuple[int, int]]] = {}
        placed = rows_of(self.connection, "slots", "WHERE query = ? AND since > ? ORDER BY since", agent, since)
        for _, tick, slot, item, _ in placed:
            slots.setdefault(tick, []).append((slot, item))
        rows = [
            row
            for number in opened
            for row in rows_of(self.connection, "impressions", "WHERE number = ?", number)
            if (row[10] or 0) > since
        ]
        rows += rows_of(self.connection, "impressions", f"WHERE {where}number > ? ORDER BY number", *values, since)
        shown = [_shown(self.connection, row, row[10] is not None)._replace(placed=slots.get(row[0], ())) for row in rows]
        return History(shown, -1, 0, row_of(self.connection, "queries", "WHERE number = ?", agent)[4] is not None)

    def add_snapshot(self, agent: int, tick: int, version: int, state: bytes) -> None:
        self.touch()
        insert(self.connection, "snapshots", agent, tick, state, verb="INSERT OR REPLACE")

    # --------------------------------------------------------------------------------------------------------- retention

    @contextmanager
    def leaving(self, before: int) -> Iterator[SqliteView]:
        """In the order of their numbers. The lock is that of the call."""
        self.touch()
        ends = [
            scalar(self.connection, f"SELECT number FROM impressions WHERE {which} ORDER BY number LIMIT 1", *values)
            for which, values in (("shown >= ?", [before]), ("learned IS NULL", []))
        ]
        end = min((end for end in ends if end is not None), default=LATER)
        some = scalar(
            self.connection, "SELECT number FROM impressions WHERE number < ? ORDER BY number LIMIT 1 OFFSET ?", end, self.step
        )
        yield SqliteView(self.connection, end if some is None else some)

    def agents_of(self, view: View) -> list[int]:
        rows = self.connection.execute(
            "SELECT CASE WHEN features IS NULL THEN query ELSE 0 END AS agent, max(learned) FROM impressions WHERE number < ? "
            "GROUP BY agent", (view.until,),
        )  # fmt: skip
        ticks = dict(self.connection.execute("SELECT query, tick FROM pruned")) if self._was_pruned else {}
        return [agent for agent, learned in rows if ticks.get(agent, -1) < learned]

    def forget(self, view: View, beginnings: Iterable[tuple[int, int, int, bytes]], totals: Iterable[tuple[int, str]]) -> None:
        self._keep(beginnings, totals)
        columns = {"impressions": "number", "clicks": "impression", "interleaved": "impression", "slots": "since"}
        for table, column in (columns | ({"moved": "impression"} if self._was_moved else {})).items():
            self.connection.execute(f"DELETE FROM {table} WHERE {column} < ?", (view.until,))

    def _keep(self, beginnings: Iterable[tuple[int, int, int, bytes]], totals: Iterable[tuple[int, str]]) -> None:
        if not self._was_pruned:
            for statement in PRUNING.split(";"):
                self.connection.execute(statement)
            self._was_pruned = True
        for agent, tick, _, state in beginnings:
            self._tick = max(self._tick, tick)
            insert(self.connection, "pruned", agent, tick, state, verb="INSERT OR REPLACE")
        for query, text in totals:
            insert(self.connection, "totals", query, text, verb="INSERT OR REPLACE")

    def n_open(self) -> int:
        return int(scalar(self.connection, "SELECT count(*) FROM impressions WHERE learned IS NULL AND closed IS NULL"))

    def check_writable(self) -> None:
        self.touch()
        self.connection.execute("UPDATE settings SET value = value WHERE name = 'tick'")

    # ------------------------------------------------------------------------------------------------------------ events

    def next_tick(self, served: Served | None) -> int:
        self._tick += 1
        if self._tick > self._reserved:
            self._reserved += RESERVED
            insert(self.connection, "settings", "tick", self._reserved, verb="INSERT OR REPLACE")
        return self._tick

    def key(self, agent: int, tick: int) -> tuple[int, ...]:
        return (tick,)

    def show(self, row: Shown, served: Served | None) -> int:
        for slot, item in row.placed:
            insert(self.connection, "slots", row.agent, row.tick, slot, item)
        if row.note is not None:
            insert(self.connection, "interleaved", row.tick, row.note)
        insert(self.connection, "impressions", *_columns(row, row.learned))
        for place in row.clicks:
            insert(self.connection, "clicks", row.tick, place, row.closed, 0)
        if self._oldest is None and row.closed is None:
            self._oldest = row.tick, row.shown
        return row.tick

    def close(self, row: Shown, served: Served | None) -> Shown:
        self._write_end(row, None, None)
        return row

    def learn(self, row: Shown, tick: int, note: bytes | None, served: Served, guarded: bool) -> bool:
        self._write_end(row, tick, note)
        if guarded:
            query = row_of(self.connection, "queries", "WHERE number = ?", row.agent)
            insert(self.connection, "queries", *query[:4], tick, verb="INSERT OR REPLACE")
        return True

    def _write_end(self, row: Shown, learned: int | None, note: bytes | None) -> None:
        checksum = sum_of_impression(*_columns(row, learned))
        self.connection.execute(
            "UPDATE impressions SET closed = ?, seen = ?, learned = ?, checksum = ? WHERE number = ?",
            (row.closed, row.seen, learned, checksum, row.number),
        )
        if note is not None:
            insert(self.connection, "interleaved", row.number, note, verb="INSERT OR REPLACE")
        if self._oldest is not None and row.number == self._oldest[0]:
            self._find_oldest()

    def impression(self, number: int) -> Shown | None:
        row = row_of(self.connection, "impressions", "WHERE number = ?", self._own(number))
        return None if row is None else _shown(self.connection, row)

    def click(self, number: int, position: int | None, item: int | None, now: int) -> int | None:
        """Who reads the whole row checks its checksum."""
        number = self._own(number)
        row = self.connection.execute("SELECT items, closed FROM impressions WHERE number = ?", (number,)).fetchone()
        if row is None:
            return None
        if type(row[0]) is not bytes or not row[0] or len(row[0]) % 4:
            raise sqlite3.DatabaseError(f"impression {number} has no list")
        if position is None:
            items = memoryview(row[0]).cast("i").tolist()
            if item not in items:
                return None
            position = items.index(item) + 1
        self.touch()
        late = int(row[1] is not None)
        return insert(self.connection, "clicks", number, position, now, late, verb="INSERT OR IGNORE") and 1 + late

    def overdue(self, now: int, patience: float, at_once: bool = False) -> Shown | None:
        """The impression that was shown first; it is over also if the clock went back since by more than that."""
        if self._oldest is None or abs(now - self._oldest[1]) < patience * 1e6:
            return None
        return self.impression(self._oldest[0])

    def waiting(self) -> list[Shown]:
        waiting = "WHERE learned IS NULL AND closed IS NOT NULL ORDER BY closed, number"
        return [_shown(self.connection, row) for row in [*rows_of(self.connection, "impressions", waiting)]]

    def _find_oldest(self) -> None:
        oldest = "WHERE learned IS NULL AND closed IS NULL ORDER BY number LIMIT 1"
        row = row_of(self.connection, "impressions", oldest)
        self._oldest = None if row is None else (row[0], row[2])


def _items(connection: sqlite3.Connection) -> list[Item]:
    ids = {number: identity for number, identity, _ in rows_of(connection, "items", "ORDER BY number")}
    worths = worths_of(settings_of(connection), ids)
    return [Item(number, identity, worths.get(number)) for number, identity in ids.items()]


def _shown(connection: sqlite3.Connection, row: Sequence[Any], clicks: bool = True) -> Shown:
    number, query, shown, source, share, items, candidates, features, closed, seen, learned, *_ = row
    is_mixed = source & ~BEFORE == INTERLEAVED
    note = row_of(connection, "interleaved", "WHERE impression = ?", number) if is_mixed else None
    rows = rows_of(connection, "clicks", "WHERE impression = ?", number) if clicks else ()
    places = [each[1] for each in rows if not each[3]]
    return Shown(
        number, query if features is None else 0, number, query, shown, source, share, as_items(items).tolist(), candidates,
        features, note and note[1], (), closed, seen, places, learned,
    )  # fmt: skip


def contents_of(connection: sqlite3.Connection) -> Contents:
    """What a store holds that is only read."""
    numbers = {own: number for number, own, _ in rows_of(connection, "moved")} if has_table(connection, "moved") else {}

    def rows() -> Iterator[Shown]:
        for each in rows_of(connection, "impressions", "ORDER BY number"):
            row = _shown(connection, each)
            slots = rows_of(connection, "slots", "WHERE query = ? AND since = ?", row.agent, row.tick)
            ended = row.learned if row.learned is not None or row.closed is None else LATER + row.tick
            yield row._replace(number=numbers.get(row.tick, row.tick), placed=[slot[2:4] for slot in slots], ended=ended)

    def clicks() -> Iterator[tuple[int, int, int, int]]:
        for own, position, clicked, late, _ in rows_of(connection, "clicks"):
            yield numbers.get(own, own), position, clicked, late

    settings = {name: value for name, value in settings_of(connection).items() if not name.startswith(("tick", "value of "))}
    queries = [Query(*row[:5]) for row in rows_of(connection, "queries", "ORDER BY number")]

    def states(table: str) -> Iterator[tuple[int, int, int, bytes]]:
        return ((agent, tick, 0, state) for agent, tick, state, _ in rows_of(connection, table))

    totals = SqliteView(connection).totals()
    return Contents(
        False, settings, _items(connection), queries, rows, clicks, lambda: states("snapshots"),
        lambda: states("pruned") if totals else iter(()), totals,
    )  # fmt: skip


def _columns(row: Shown, learned: int | None) -> tuple[Any, ...]:
    """An impression, as the store holds it."""
    return (
        row.tick, row.query, row.shown, row.source, row.share, array("i", row.items).tobytes(), row.candidates, row.features,
        row.closed, row.seen, learned,
    )  # fmt: skip
