"""The journal of a `Ranker` in PostgreSQL, which several processes and hosts may share.

Nobody holds a lock between statements. An event of an agent is one statement, whose first part moves the agent's tick on. Where
another process was there before, the tick is another one, and the statement does nothing: then the caller forgets the agent,
loads it, and tries again. Two histories may have equal ticks where a server has lost its last moments; so the statement also
compares the ``version``, in which the times of all events are added.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ..offline.postgres import VERSION, Address, PostgresView, driver, settings_of, viewing
from ..offline.stores import LOGGED, View, sum_of
from .ids import Id
from .journal import Contents, History, Item, Query, Shown, Stored, check_process
from .served import Served

TABLES = Path(__file__).with_name("postgres.sql").read_text(encoding="utf-8")
MASK = 2**62 - 1
BATCH = 1000
"""Open impressions whose time is over that one look finds."""
COLUMNS = ", ".join(Shown._fields)

INTEGER, BYTES, FLOAT, INTEGERS = 20, 17, 701, 1016
"""Types of PostgreSQL by their numbers."""
TYPES = {"candidates": BYTES, "features": BYTES, "note": BYTES, "share": FLOAT}
TYPES |= dict.fromkeys(("items", "placed", "clicks", "opened"), INTEGERS)


class Statement:
    """A statement that is sent often, in libpq's own terms: psycopg's would take half of a session's processor time.

    Args:
        text: with its parameters as ``%(name)s``, of the type in `TYPES`, else integers.
    """

    def __init__(self, text: str) -> None:
        self.names = [*dict.fromkeys(re.findall(r"%\((\w+)\)s", text))]
        self.text = re.sub(r"%\((\w+)\)s", lambda match: f"${self.names.index(match[1]) + 1}", text).encode()
        self.types = [TYPES.get(name, INTEGER) for name in self.names]
        self.formats = [int(each == BYTES) for each in self.types]
        self.key = blake2b(self.text, digest_size=8).hexdigest().encode()

    def parameters(self, values: Mapping[str, Any]) -> list[bytes | None]:
        """The values in the order of the parameters."""
        return [_encoded(values[name]) for name in self.names]


def _encoded(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    text = str(value) if isinstance(value, int | float) else f"{{{','.join(map(str, value))}}}"
    return text.encode()


def _numbers(text: bytes) -> list[int]:
    return [int(part) for part in text[1:-1].split(b",")] if len(text) > 2 else []


def _bytes(text: bytes) -> bytes:
    return bytes.fromhex(text[2:].decode())


PARSER_OF: dict[int, Callable[[bytes], Any]] = {BYTES: _bytes, FLOAT: float, INTEGERS: _numbers, INTEGER: int}
PARSERS = [PARSER_OF[TYPES.get(name, INTEGER)] for name in Shown._fields]


def _event(then: str, also: str = "", only: str = "") -> Statement:
    """An event of an agent: nothing happens unless the agent's tick and version are those that the worker knows.

    Args:
        then: what follows for the impression.
        also, only: what else is set, and a further condition.
    """
    return Statement(
        f"""WITH moved AS (UPDATE queries SET tick = %(after)s, version = %(next)s{also}
        WHERE number = %(agent)s AND tick = %(before)s AND version = %(version)s{only} RETURNING 1) {then}"""
    )


IS_OPEN = """ AND EXISTS (SELECT 1 FROM impressions
    WHERE number = %(number)s AND (ended IS NULL)::integer = %(open)s AND learned IS NULL)"""
STORED = Shown._fields[1:]
SHOW = _event(
    f"""INSERT INTO impressions ({", ".join(STORED)})
    SELECT {", ".join(f"%({name})s" for name in STORED)} FROM moved RETURNING number"""
)
LEARN = _event(
    """UPDATE impressions i SET closed = %(closed)s, seen = %(seen)s, clicks = %(clicks)s, learned = %(after)s,
    ended = coalesce(ended, %(after)s), note = coalesce(%(note)s, note)
    FROM moved WHERE i.number = %(number)s RETURNING 1""",
    ", guarded = coalesce(guarded, %(guarded)s)",
    IS_OPEN,
)
CLOSE = _event(
    """UPDATE impressions i SET closed = %(closed)s, seen = %(seen)s, clicks = %(clicks)s, ended = %(after)s
    FROM moved WHERE i.number = %(number)s RETURNING 1""",
    only=IS_OPEN,
)
UNTIL_NOW = """CASE WHEN closed IS NULL
    THEN ARRAY(SELECT position FROM clicks WHERE impression = i.number ORDER BY 1) ELSE clicks END AS clicks"""
IMPRESSIONS = f"SELECT {COLUMNS.replace(' clicks', f' {UNTIL_NOW}')} FROM impressions i "
IMPRESSION = Statement(IMPRESSIONS + "WHERE number = %(number)s")
WAITING = Statement(IMPRESSIONS + "WHERE learned IS NULL AND closed IS NOT NULL ORDER BY closed, number")
HISTORY = Statement(f"""SELECT q.tick, q.version, q.guarded, i.* FROM queries q LEFT JOIN LATERAL (
    SELECT {COLUMNS} FROM impressions WHERE agent = %(agent)s AND tick > %(since)s
    UNION ALL
    SELECT {COLUMNS} FROM impressions WHERE agent = %(agent)s AND tick = ANY(%(opened)s) AND ended IS NOT NULL
) i ON true WHERE q.number = %(agent)s ORDER BY i.tick""")
CLICK = Statement("""WITH i AS (
    SELECT number, coalesce(%(position)s, array_position(items, %(item)s::integer)) AS position, closed FROM impressions
    WHERE number = %(number)s
), new AS (
    INSERT INTO clicks (impression, position, clicked) SELECT number, position, %(now)s FROM i
    WHERE position IS NOT NULL ON CONFLICT DO NOTHING RETURNING 1
) SELECT 1 + (closed IS NOT NULL)::integer FROM i, new""")
CLICKED = Statement("""SELECT c.clicked FROM impressions i LEFT JOIN clicks c
ON c.impression = i.number AND c.position = coalesce(%(position)s, array_position(i.items, %(item)s::integer))
WHERE i.number = %(number)s AND (%(position)s IS NOT NULL OR %(item)s::integer = ANY(i.items))""")
CLICKS = f"""SELECT c.impression, c.position, c.clicked, (i.closed IS NOT NULL AND NOT c.position = ANY(i.clicks))::integer
FROM clicks c JOIN impressions i ON i.number = c.impression
UNION SELECT number, unnest(clicks), closed, 0 FROM impressions WHERE source = {LOGGED}"""
"""All clicks, also those of logs, which stand in the impression only."""
OVERDUE = """SELECT number FROM impressions WHERE closed IS NULL AND (shown <= %s OR shown >= %s) ORDER BY shown LIMIT %s"""
LOOK = """INSERT INTO settings VALUES ('looked', %(now)s) ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE abs(%(now)s::bigint - settings.value::bigint) >= 1000000 RETURNING 1"""
SNAPSHOT = """INSERT INTO snapshots VALUES (%s, %s, %s, %b) ON CONFLICT (query) DO UPDATE
SET tick = excluded.tick, version = excluded.version, state = excluded.state WHERE snapshots.tick < excluded.tick"""


class _Own:
    """The connection of a thread, which ends with the thread, and its cursor."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.cursor, self.prepared = connection, connection.cursor(binary=True), set[bytes]()

    def __del__(self) -> None:
        self.connection.close()


class PostgresJournal:
    """A `Journal` in a schema of PostgreSQL.

    Args:
        address: of the database.
        durable: ``"power"``: a call that has returned survives a crash of the server; ``"kill"``: the last moments before such
            a crash may be missing.

    Raises:
        ValueError: it is no address, or the store is one of another version.
        ImportError: psycopg is not installed.
        FileError: the server cannot be reached.
    """

    shared = True
    step = 100_000

    def __init__(self, address: str, durable: str) -> None:
        self.name = Address(address)
        self._psycopg, self._synchronous = driver(), durable == "power"
        self._process, self._local, self._all = os.getpid(), threading.local(), WeakSet[_Own]()
        self._overdue: deque[int] = deque()
        self._looked = 0
        with self._faults():
            self._create()

    def _create(self) -> None:
        """Make the tables, unless another process has made them."""
        connection, schema = self._own().connection, self.name.schema
        version = self.name.version(connection)
        if version is None:
            with self.together():
                connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"clickgym {schema}",))
                if self.name.version(connection) is None:
                    if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone():
                        connection.execute(f"CREATE SCHEMA {schema}")
                    connection.execute(TABLES)
                    connection.execute(f"INSERT INTO settings VALUES ('version', '{VERSION}')")
        elif version == 1:
            with self.together():
                connection.execute(TABLES[TABLES.index("CREATE TABLE pruned") :].replace("TABLE", "TABLE IF NOT EXISTS"))
                connection.execute(f"UPDATE settings SET value = '{VERSION}' WHERE name = 'version'")

    # ------------------------------------------------------------------------------------------------------- connections

    def _own(self) -> _Own:
        """The connection of this thread."""
        own: _Own | None = getattr(self._local, "own", None)
        if own is None or own.connection.closed:
            own = self._local.own = _Own(self.name.connect(self._synchronous))
            self._all.add(own)
        return own

    def _run(self, statement: Statement | str, values: Any = ()) -> list[Any]:
        """The rows of a statement; it is sent once more where the connection was lost, for it may have been done or not."""
        self._local.again = False
        while True:
            own = self._own()
            try:
                return self._send(own, statement, values)
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError):
                if not own.connection.closed or self._local.again or getattr(self._local, "together", False):
                    raise
                self._local.again = True

    def _send(self, own: _Own, statement: Statement | str, values: Any) -> list[Any]:
        """The rows of a statement, of a `Statement` as text."""
        if isinstance(statement, str):
            cursor = own.cursor.execute(statement, values)
            return cursor.fetchall() if cursor.pgresult.nfields else []
        link = own.connection.pgconn
        if statement.key not in own.prepared:
            self._checked(link.prepare(statement.key, statement.text, statement.types))
            own.prepared.add(statement.key)
        result = self._checked(link.exec_prepared(statement.key, statement.parameters(values), statement.formats))
        n, read = result.nfields, result.get_value
        return [[read(row, column) for column in range(n)] for row in range(result.ntuples)]

    def _checked(self, result: Any) -> Any:
        """A result of libpq, unless it is an error."""
        if result.status not in (self._psycopg.pq.ExecStatus.COMMAND_OK, self._psycopg.pq.ExecStatus.TUPLES_OK):
            raise self._psycopg.errors.error_from_result(result)
        return result

    @contextmanager
    def together(self) -> Iterator[None]:
        """A transaction that waits for the disk in any case."""
        connection = self._own().connection
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = on")
            outer, self._local.together = getattr(self._local, "together", False), True
            try:
                yield
            finally:
                self._local.together = outer

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            raise self.name.fault(error) from None

    @contextmanager
    def call(self) -> Iterator[None]:
        self.check_usable()
        self._local.touched = False
        with self._faults():
            yield

    @property
    def touched(self) -> bool:
        """Whether the current call of this thread has changed something."""
        return bool(self._local.touched)

    def touch(self) -> None:
        self._local.touched = True

    def check_usable(self) -> None:
        check_process(self._process)

    def shut_down(self) -> None:
        self.check_usable()
        self._process = -1
        for own in [*self._all]:
            with suppress(self._psycopg.Error):
                own.connection.close()

    @contextmanager
    def view(self) -> Iterator[PostgresView]:
        self.check_usable()
        with viewing(self.name) as view:
            yield view

    # ------------------------------------------------------------------------------------------------------------- names

    def settings(self) -> dict[str, Any]:
        return settings_of(self._own().connection)

    def add_settings(self, values: dict[str, Any]) -> dict[str, Any]:
        texts = [json.dumps(value.hex() if isinstance(value, bytes) else value) for value in values.values()]
        with self.together():  # all at once: where several processes begin, those of one count
            self._run(
                "INSERT INTO settings SELECT * FROM unnest(%s::text[], %s::text[]) ORDER BY 1 ON CONFLICT DO NOTHING",
                ([*values], texts),
            )
        return self.settings()

    def is_new(self) -> bool:
        return not self._run("SELECT 1 FROM queries LIMIT 1")

    def fill(self, contents: Contents) -> None:
        self.add_settings({"item_values": 0} | contents.settings)
        self._copy(
            "items (number, key, id, value)",
            ((item[0], _key(item.id), json.dumps(item.id), item.value) for item in contents.items),
        )
        self._copy(
            "queries (number, key, id, capacity, n_features, guarded, tick, version)",
            (
                (row[0], *((None, None) if row.id is None else (_key(row.id), json.dumps(row.id))), *row[2:])
                for row in contents.queries
            ),
        )
        self._copy(f"impressions ({COLUMNS})", ([*_columns(row).values()] for row in contents.rows()))
        self._copy("clicks (impression, position, clicked)", (click[:3] for click in contents.clicks()))
        self._copy("snapshots (query, tick, version, state)", contents.snapshots())
        self._copy("pruned", ((*row, sum_of(*row)) for row in contents.beginnings()))
        self._copy("totals", ((query, json.dumps(totals)) for query, totals in contents.totals.items()))
        for table, last in (("items", "max(number)"), ("queries", "max(number)"), ("impressions", "max(number) & 65535")):
            sequence = "'turns'" if table == "impressions" else f"pg_get_serial_sequence('{table}', 'number')"
            self._run(f"SELECT setval({sequence}, ({last}) + 1, false) FROM {table} HAVING count(*) > 0")

    def _copy(self, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._own().cursor.copy(f"COPY {columns} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def items(self) -> list[Item]:
        return self._items("")

    def _items(self, where: str, *values: Any) -> list[Item]:
        rows = self._run(f"SELECT number, id, value FROM items {where}", values)
        return [Item(number, json.loads(identity), value) for number, identity, value in rows]

    def find_items(self, ids: Sequence[Id]) -> list[Item]:
        return self._items("WHERE key = ANY(%s)", [_key(identity) for identity in ids])

    def add_items(self, ids: Sequence[Id], values: Sequence[float | None]) -> list[Item]:
        rows = sorted((_key(identity), json.dumps(identity), value) for identity, value in zip(ids, values, strict=True))
        with self.together():  # a number that memory holds shall never stand for another item
            self._run(
                "INSERT INTO items (key, id, value) SELECT * FROM unnest(%s::bytea[], %s::text[], %s::float8[]) "
                "ON CONFLICT DO NOTHING",
                [*map(list, zip(*rows, strict=True))],
            )
        return self.find_items(ids)

    def items_of(self, numbers: Sequence[int]) -> list[Item]:
        return self._items("WHERE number = ANY(%s::bigint[])", [*numbers])

    def query(self, query: Id) -> int | None:
        rows = self._run("SELECT number FROM queries WHERE key = %b", (_key(query),))
        return rows[0][0] if rows else None

    def add_query(self, query: Id | None, capacity: int | None, n_features: int | None) -> int | None:
        columns, values = "number", list[Any]([0, capacity, n_features])
        if query is not None:
            columns, values = "key, id", [_key(query), json.dumps(query), capacity, n_features]
        places = ", ".join(["%s"] * len(values))
        with self.together():
            statement = f"INSERT INTO queries ({columns}, capacity, n_features) VALUES ({places}) ON CONFLICT DO NOTHING"
            rows = self._run(f"{statement} RETURNING number", values)
        return rows[0][0] if rows else None

    # ------------------------------------------------------------------------------------------------------------ agents

    def stored(self, agent: int) -> Stored | None:
        rows = self._run(
            "SELECT q.id, capacity, n_features, s.tick, s.version, s.state, p.* FROM queries q "
            "LEFT JOIN snapshots s ON s.query = q.number LEFT JOIN pruned p ON p.query = q.number WHERE q.number = %s",
            (agent,),
        )
        if not rows:
            return None
        query, capacity, n_features, *snapshot = rows[0][:6]
        beginning = None if rows[0][6] is None else _checked(self.name, rows[0][6:])[1:]
        return Stored(
            query and json.loads(query), capacity, n_features, None if snapshot[0] is None else tuple(snapshot), beginning
        )

    def history(self, agent: int, since: int, version: int, opened: Sequence[int]) -> History | None:
        found = self._run(HISTORY, {"agent": agent, "since": since, "opened": [*opened]})
        tick, now, guarded = int(found[0][0]), int(found[0][1]), found[0][2]
        rows = [_shown(row[3:]) for row in found if row[3] is not None]
        for row in rows:
            ends = {tick for tick in (row.ended, row.learned) if tick is not None and tick > since}
            version += row.shown * (row.tick > since) + (row.closed or 0) * len(ends)
        if version & MASK != now or tick < since:
            return None
        return History(rows, tick, now, guarded is not None)

    def add_snapshot(self, agent: int, tick: int, version: int, state: bytes) -> None:
        self._run(SNAPSHOT, (agent, tick, version, state))

    # --------------------------------------------------------------------------------------------------------- retention

    @contextmanager
    def leaving(self, before: int) -> Iterator[PostgresView]:
        """In the order of their times. Nothing is locked that other calls need: impressions that are learned change no more."""
        with self.together():
            self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            name = f"clickgym {self.name.schema} prune"
            if not self._run("SELECT pg_try_advisory_xact_lock(hashtext(%s))", (name,))[0][0]:
                raise ValueError(f"{self.name} is pruned by another process")
            ((waits,),) = self._run("SELECT min(shown) FROM impressions WHERE learned IS NULL")
            last = before - 1 if waits is None else min(before, waits) - 1
            some = self._run(
                "SELECT shown FROM impressions WHERE shown <= %s ORDER BY shown OFFSET %s LIMIT 1", (last, self.step)
            )
            yield PostgresView(self._own().connection, some[0][0] if some else last)

    def agents_of(self, view: View) -> list[int]:
        rows = self._run(
            "SELECT agent FROM impressions LEFT JOIN pruned p ON p.query = agent WHERE shown <= %s GROUP BY agent, p.tick "
            "HAVING max(learned) > coalesce(p.tick, 0)", (view.until,),
        )  # fmt: skip
        return [row[0] for row in rows]

    def forget(self, view: View, beginnings: Iterable[tuple[int, int, int, bytes]], totals: Iterable[tuple[int, str]]) -> None:
        for row in beginnings:
            self._run("DELETE FROM pruned WHERE query = %s", row[:1])
            self._run("INSERT INTO pruned VALUES (%s, %s, %s, %b, %s)", (*row, sum_of(*row)))
        for each in totals:
            self._run("INSERT INTO totals VALUES (%s, %s) ON CONFLICT (query) DO UPDATE SET totals = excluded.totals", each)
        self._run(
            "WITH gone AS (DELETE FROM impressions WHERE shown <= %s RETURNING number) "
            "DELETE FROM clicks USING gone WHERE impression = gone.number",
            (view.until,),
        )

    def n_open(self) -> int:
        return int(self._run("SELECT count(*) FROM impressions WHERE closed IS NULL")[0][0])

    def check_writable(self) -> None:
        self._run("UPDATE settings SET value = value WHERE name = 'version'")

    # ------------------------------------------------------------------------------------------------------------ events

    def next_tick(self, served: Served) -> int:
        return max(served.tick, 0) + 1

    def key(self, agent: int, tick: int) -> tuple[int, ...]:
        return agent, tick

    def show(self, row: Shown, served: Served) -> int | None:
        after, change = row.learned or row.tick, row.shown + (row.closed or 0)
        rows = self._move(SHOW, _columns(row), served, row.tick - 1, after, change)
        return int(rows[0][0]) if rows else None

    def _move(
        self, statement: Statement, values: dict[str, Any], served: Served, before: int, after: int, change: int
    ) -> list[Any]:
        """The rows of an event; the version of the agent follows it."""
        moved = (served.version + change) & MASK
        rows = self._run(statement, {**values, "before": before, "after": after, "version": served.version, "next": moved})
        if rows:
            served.version = moved
        return rows

    def learn(self, row: Shown, tick: int, note: bytes | None, served: Served, guarded: bool) -> bool:
        values = _columns(row) | {"open": int(row.ended is None), "note": note, "guarded": tick if guarded else None}
        return bool(self._move(LEARN, values, served, tick - 1, tick, values["closed"]))

    def close(self, row: Shown, served: Served | None) -> Shown | None:
        """Closing does not depend on what the agent has learned, so it does not matter who else wrote."""
        values = _columns(row) | {"open": 1}
        while True:
            stored = self.impression(row.number)
            if stored is None or stored.closed is not None:
                is_own = stored is not None and (stored.closed, stored.seen) == (row.closed, row.seen)
                return stored if is_own and self._local.again else None
            ((tick, version),) = self._run("SELECT tick, version FROM queries WHERE number = %s", (row.agent,))
            values |= {"before": tick, "after": tick + 1, "version": version, "next": (version + values["closed"]) & MASK}
            if self._run(CLOSE, values):
                if served is not None and (max(served.tick, 0), served.version) == (tick, version):
                    served.tick, served.version = tick + 1, values["next"]
                return row._replace(ended=tick + 1)

    def impression(self, number: int) -> Shown | None:
        rows = self._run(IMPRESSION, {"number": number})
        return _shown(rows[0]) if rows else None

    def click(self, number: int, position: int | None, item: int | None, now: int) -> int | None:
        values = {"number": number, "position": position, "item": item, "now": now}
        if new := self._run(CLICK, values):
            return int(new[0][0])
        again = self._local.again
        rows = self._run(CLICKED, values)
        return (again and int(rows[0][0] or -1) == now) if rows else None

    def overdue(self, now: int, patience: float, at_once: bool = False) -> Shown | None:
        """One process looks at most once a second, for many; the others leave that to it."""
        while True:
            while self._overdue:
                with suppress(IndexError):  # another thread took the last one
                    row = self.impression(self._overdue.popleft())
                    if row is not None and row.closed is None:
                        return row
            if not at_once and not self._is_first_look(now):
                return None
            self._looked, span = now, round(min(patience * 1e6, MASK))
            self._overdue.extend(number for (number,) in self._run(OVERDUE, (now - span, now + span, BATCH)))
            if not self._overdue:
                return None

    def _is_first_look(self, now: int) -> bool:
        """Whether no process has looked within the last second; this one has from now on."""
        if abs(now - self._looked) < 1_000_000:
            return False
        self._looked = now
        return bool(self._run(LOOK, {"now": str(now)}))

    def waiting(self) -> list[Shown]:
        return [_shown(row) for row in self._run(WAITING, {})]


def _key(identity: Id) -> bytes:
    """What finds an id, however long it is."""
    return blake2b(json.dumps(identity).encode(), digest_size=16).digest()


def _shown(columns: Sequence[bytes | None]) -> Shown:
    """A row as the other journal has it, too."""
    values: list[Any] = [None if text is None else parse(text) for parse, text in zip(PARSERS, columns, strict=True)]
    return _paired(Shown(*values))


def _paired(row: Shown) -> Shown:
    """A row whose lists are as the store has them: flat, or missing if empty."""
    placed: Any = row.placed or ()
    return row._replace(placed=[*zip(placed[::2], placed[1::2], strict=True)], clicks=row.clicks or ())


def _columns(row: Shown) -> dict[str, Any]:
    """The columns of a row as the store has them; clicks stand in their own table until it is closed."""
    placed = [part for pair in row.placed for part in pair] or None
    return row._asdict() | {"placed": placed, "clicks": None if row.closed is None else [*row.clicks]}


def _checked(name: Address, row: Sequence[Any]) -> Any:
    """A row of the table ``pruned`` without its checksum, which must match."""
    if sum_of(*row[:-1]) != row[-1]:
        raise ValueError(f"{name} is damaged (the checksum of a row of pruned does not match); restore a copy of it")
    return row[:-1]


def contents_of(view: PostgresView, name: Address) -> Contents:
    """What a store holds, at one moment."""

    def rows() -> Iterator[Shown]:
        for each in view.rows(f"SELECT {COLUMNS} FROM impressions ORDER BY shown, agent, tick"):
            yield _paired(Shown(*each))

    settings, totals = {name: value for name, value in view.settings().items() if name != "looked"}, view.totals()
    if not settings.get("item_values"):
        settings.pop("item_values", None)
    items = [Item(number, json.loads(text), value) for number, text, value in view.rows("SELECT number, id, value FROM items")]
    queries = view.rows("SELECT number, id, capacity, n_features, guarded, tick, version FROM queries ORDER BY number")
    return Contents(
        True, settings, items, [Query(row[0], row[1] and json.loads(row[1]), *row[2:]) for row in queries], rows,
        lambda: view.rows(CLICKS), lambda: view.rows("SELECT query, tick, version, state FROM snapshots"),
        lambda: (_checked(name, row) for row in view.rows("SELECT * FROM pruned")) if totals else (), totals,
    )  # fmt: skip
