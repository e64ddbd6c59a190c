"""What the tests of services share: what they warn of, and stores of both kinds."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from postgres_server import Server, programs, serving

from clickgym.serving.postgres import PostgresJournal


@pytest.fixture
def warnings_of_service() -> Iterator[list[str]]:
    """What a service has warned of."""

    texts: list[str] = []
    handler, logger = logging.Handler(), logging.getLogger("clickgym.serving")
    handler.emit = lambda record: texts.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    yield texts
    logger.removeHandler(handler)


class Clock:
    """A clock of seconds that a test moves on."""

    now = 1.7e9

    def __call__(self) -> float:
        return self.now

    def tick(self) -> None:
        self.now += 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server of PostgreSQL that does not wait for the disk."""
    pytest.importorskip("psycopg", reason="no psycopg: pip install 'clickgym[postgres]'")
    if programs() is None:
        pytest.skip("no server of PostgreSQL: neither in PATH nor in /usr/lib/postgresql")
    with serving(fsync="off") as server:
        yield server


_schemas = count()


@pytest.fixture
def address(server: Server) -> str:
    """Of a new store in PostgreSQL."""
    return server.address(schema=f"test_{next(_schemas)}")


@pytest.fixture(params=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test with SQLite, and with a new schema of PostgreSQL for each path, and for each ranker without one."""
    if request.param == "postgres":
        server, schemas = request.getfixturevalue("server"), {}

        def journal(path: Path | None, durable: str, on_abort: object) -> PostgresJournal:
            schema = f"test_{next(_schemas)}" if path is None or path not in schemas else schemas[path]
            schemas[path] = schema
            return PostgresJournal(server.address(schema=schema), durable)

        monkeypatch.setattr("clickgym.serving.ranker.SqliteJournal", journal)
