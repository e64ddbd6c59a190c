"""Read a store of `clickgym.Ranker` in PostgreSQL; its address, its connections, and what is said of its errors.

The tables are described in ``src/clickgym/serving/postgres.sql``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import PathLike
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import numpy as np
from numpy.typing import NDArray

from ..core.checks import short
from ..core.files import FileError
from ..core.formats import one_line
from .log import ClickLog
from .stores import BEFORE, ROWS, View, by_number, columns_of, log_of
from .tables import MAX_MEMORY, check_kept, check_size

SCHEMES = ("postgresql:/", "postgres:/")
"""How addresses begin; a path has lost the second slash."""
SCHEMA = "clickgym"
VERSION = 2
"""Of the tables. That before had no tables ``pruned`` and ``totals``."""
SECONDS = 10
"""Until a server that does not answer is taken for gone."""


def is_address(store: object) -> bool:
    """Whether a store is a database of PostgreSQL, and not a file.

    Example:
        >>> is_address("postgresql://me@localhost/clicks"), is_address("clicks.db")
        (True, False)
    """
    return isinstance(store, str | PathLike) and str(store).startswith(SCHEMES)


def without_password(log: object) -> str:
    """A path as it is, or an address without its password."""
    return str(Address(log) if is_address(log) else log)


def driver() -> Any:
    """The module psycopg.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise ImportError(f"a store in PostgreSQL needs psycopg: pip install 'clickgym[postgres]' ({error})") from None
    return psycopg


class Address:
    """Where a store is: ``postgresql://user@host:port/database?schema=clickgym``. As text it has no password.

    Args:
        text: the address; parts that it lacks come from libpq's environment variables and files.

    Raises:
        ValueError: it is no address.
        ImportError: psycopg is not installed.
    """

    def __init__(self, text: Any) -> None:
        psycopg = driver()
        base, _, query = re.sub("^([a-z]+):/(?!/)", r"\1://", str(text)).partition("?")
        options = parse_qsl(query, keep_blank_values=True)
        self.schema = dict(options).get("schema", SCHEMA)
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self.schema) or self.schema.startswith("pg_"):
            raise ValueError(f"schema is {short(self.schema)}; expected a name of small letters, digits and _")
        rest = urlencode([(name, value) for name, value in options if name != "schema"], quote_via=quote)
        try:
            self.parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(f"{base}?{rest}" if rest else base)
        except psycopg.Error:  # whose text may hold the password
            raise ValueError(
                "the address of the store cannot be read; expected postgresql://user@host:port/database?schema=clickgym"
            ) from None
        user = f"{self.parts['user']}@" if "user" in self.parts else ""
        port = f":{self.parts['port']}" if "port" in self.parts else ""
        self._text = f"postgresql://{user}{self.parts.get('host', '')}{port}/{self.parts.get('dbname', '')}"
        if self.schema != SCHEMA:
            self._text += f"?schema={self.schema}"

    def __str__(self) -> str:
        return self._text

    def connect(self, synchronous: bool = True) -> Any:
        """A connection to the schema, which commits each statement.

        Args:
            synchronous: whether a commit waits for the disk.

        Raises:
            psycopg.Error: the server cannot be reached.
        """
        psycopg = driver()
        defaults = {"connect_timeout": SECONDS, "client_encoding": "utf8", "fallback_application_name": "clickgym"}
        connection = psycopg.connect(**(defaults | self.parts), autocommit=True)
        connection.adapters.register_dumper(int, psycopg.types.numeric.Int8Dumper)  # one type, one prepared statement
        connection.execute(
            "SELECT set_config('search_path', %s, false), set_config('synchronous_commit', %s, false)",
            (self.schema, "on" if synchronous else "off"),
        )
        return connection

    def fault(self, error: Exception) -> Exception:
        """What is said of an error of psycopg, in a line."""
        psycopg = driver()
        reason = one_line(" ".join(str(error).split()))
        for name in ("password", "sslpassword"):
            if secret := self.parts.get(name):
                reason = reason.replace(str(secret), "***")
        gone = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        what = "cannot be reached" if gone else "refuses a statement"
        return FileError(f"{self} {what}: {reason}" + ("; call again later" if gone else ""))

    def version(self, connection: Any) -> int | None:
        """The version of the tables; None if there is no store yet.

        Raises:
            ValueError: it is another one, or the schema holds other tables.
        """
        statement = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
        tables = {name for (name,) in connection.execute(statement, (self.schema,))}
        if not tables:
            return None
        rows = []
        if {"settings", "impressions", "snapshots"} <= tables:
            rows = connection.execute("SELECT value FROM settings WHERE name = 'version'").fetchall()
        if not rows:
            raise ValueError(f"{self}: the schema {self.schema} holds tables, but no store of a clickgym.Ranker")
        if not 1 <= (version := int(rows[0][0])) <= VERSION:
            raise ValueError(f"{self} has version {version} of the store's tables; this clickgym reads versions 1 to {VERSION}")
        return version


class PostgresView(View):
    """A `View` of a store in PostgreSQL: ``until`` are only impressions that were shown until then, in microseconds since 1970,
    and what belongs to them. The connection is to its schema, in a transaction.
    """

    def rows(self, statement: str) -> Iterator[Any]:
        """The rows of a statement, some at a time."""
        with self._connection.cursor(name="rows", binary=True) as cursor:
            cursor.itersize = ROWS
            yield from cursor.execute(statement)

    def settings(self) -> dict[str, Any]:
        return settings_of(self._connection)

    def impressions(self, *names: str) -> list[Any]:
        terms = {"seen": "coalesce(seen, -1)", "share": "coalesce(share, -1)", "source": f"source & ~{BEFORE}"}
        columns = ", ".join(terms.get(name, name) for name in names)
        rows = self.rows(f"SELECT {columns} FROM impressions WHERE shown <= {self.until} ORDER BY shown, query, tick")
        arrays = dict(zip(names, columns_of(rows, range(len(names))), strict=True))
        if "items" in arrays:
            arrays["items"] = arrays["items"].reshape(-1, self.settings()["n_positions"]).astype(np.int32)
        return [*arrays.values()]

    def clicks(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        rows = self.rows(
            "SELECT impression, position, (closed IS NOT NULL AND NOT position = ANY(i.clicks))::integer "
            f"FROM clicks c JOIN impressions i ON i.number = c.impression WHERE shown <= {self.until}"
        )
        number, position, late = np.array([*rows], np.int64).reshape(-1, 3).T
        return number, position, late

    def ids(self, table: str) -> dict[int, Any]:
        return {number: identity and json.loads(identity) for number, identity in self.rows(f"SELECT number, id FROM {table}")}

    def worths(self) -> NDArray[np.float64] | None:
        if not self.settings().get("item_values"):
            return None
        return by_number(dict(self.rows("SELECT number, value FROM items")))

    def guarded(self) -> list[int]:
        return [row[0] for row in self.rows("SELECT number FROM queries WHERE guarded IS NOT NULL ORDER BY guarded, number")]

    def placed(self) -> Iterator[tuple[int, int]]:
        rows = self.rows(f"SELECT agent, placed FROM impressions WHERE placed IS NOT NULL AND shown <= {self.until}")
        return ((agent, slot) for agent, pairs in rows for slot in pairs[::2])

    def notes(self) -> dict[int, NDArray[np.float64]]:
        rows = self.rows(f"SELECT number, note FROM impressions WHERE note IS NOT NULL AND shown <= {self.until}")
        return {number: np.frombuffer(note) for number, note in rows}

    def totals(self) -> dict[int, Any]:
        if self._connection.execute("SELECT to_regclass('totals')").fetchone()[0] is None:
            return {}
        return {query: json.loads(totals) for query, totals in self.rows("SELECT query, totals FROM totals")}


def settings_of(connection: Any) -> dict[str, Any]:
    """What a store was made with; empty where it is being made."""
    rows = connection.execute("SELECT name, value FROM settings WHERE name <> 'version'").fetchall()
    values = {name: json.loads(value) for name, value in rows}
    return values | ({"secret": bytes.fromhex(values["secret"])} if values else {})


@contextmanager
def viewing(address: Address) -> Iterator[PostgresView]:
    """A store at one moment, while others write.

    Raises:
        ValueError: there is no store, or one of another version.
        FileError: the server cannot be reached.
    """
    try:
        with closing(address.connect()) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if address.version(connection) is None:
                raise ValueError(f"{address} holds no store of a clickgym.Ranker")
            yield PostgresView(connection)
    except driver().Error as error:
        raise address.fault(error) from None


def read_address(address: Address, *, max_memory: int | str = MAX_MEMORY) -> ClickLog:
    """Read the log of a store in PostgreSQL, as `read_store` does, also while processes serve from it."""
    most = check_size("max_memory", max_memory)
    with viewing(address) as view:
        log = log_of(view, lambda n_bytes: check_kept(str(address), n_bytes, most, "its impressions"))
    if not len(log):
        raise ValueError(f"{address} holds no closed impression yet")
    return log
