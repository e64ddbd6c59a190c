"""A small service in one file: an agent for each query ranks for real users, and acknowledged
events survive a kill.

    python examples/service.py --store clicks.db --agent CascadeTS --positions 3
    curl localhost:8000/rank -d '{"query": "red shoes", "items": ["a", "b", "c", "d", "e"]}'
    curl localhost:8000/click -d '{"impression": 1, "item": "c"}'
    curl localhost:8000/close -d '{"impression": 1}'
    curl localhost:8000/report

`rank` returns a list, `click` reports a click on it, and `close` reports that the user has left:
then the agent learns. Each call is a row in SQLite before it is answered. An agent is the replay of
the rows of its query, so it is the same after a restart.

One process serves a file. Several lists are pending at the same time, so the agent must learn from
any list. Every caller of the service influences the agents: put authentication and bot detection in
front of it.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import threading
import zlib
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import clickgym
from clickgym.agents import Agent, CompiledAgent, ContextualAgent, StateAgent

TABLES = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS queries (query TEXT PRIMARY KEY, items TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY,   -- of a list, this is also the number of the impression
    query TEXT NOT NULL,
    kind TEXT NOT NULL,           -- 'list', 'click' or 'close'
    impression INTEGER,           -- of a click and a close
    content TEXT                  -- of a list its items as JSON, of a click the item
) STRICT;
CREATE INDEX IF NOT EXISTS events_of_query ON events (query, number);
CREATE INDEX IF NOT EXISTS events_of_impression ON events (impression);
"""
LONGEST_BODY = 1_000_000


def agent_class(name: str) -> type[Agent]:
    """Return the class of an agent; a ValueError says why an agent is not supported."""
    found = getattr(clickgym.agents, name, None)
    if not (isinstance(found, type) and issubclass(found, CompiledAgent)):
        raise ValueError(f"{name} is no agent of clickgym that can serve")
    if issubclass(found, ContextualAgent | StateAgent):
        raise ValueError(f"{name} ranks by features or a state, and this service has none")
    if not found.learns_from_any_list:
        raise ValueError(
            f"{name} does not learn from any list, and here lists wait for their clicks"
        )
    try:
        found(2, 1, seed=0)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot serve: {error}") from None
    return found


class Service:
    """The agents of all queries, and the table of their events.

    Args:
        store: the file of the tables.
        agent: the name of an agent that learns from any list.
        n_positions: K, the number of items of a list.
        seed: the seed from which, with the query, the seed of each agent derives.

    Raises:
        ValueError: the agent is not supported, another process has opened the file, or the file was
            begun with other arguments.
    """

    def __init__(self, store: str | Path, agent: str, n_positions: int, seed: int = 0) -> None:
        self.agent_class, self.n_positions, self.seed = agent_class(agent), n_positions, seed
        self.agents: dict[str, Agent] = {}
        # HTTP calls come in threads, but only one thread at a time may use the agents
        self.lock = threading.Lock()
        self.store = sqlite3.connect(
            store, timeout=1.0, isolation_level=None, check_same_thread=False
        )
        try:
            # a second process would have other agents
            self.store.execute("PRAGMA locking_mode = EXCLUSIVE")
            self.store.execute("PRAGMA journal_mode = WAL")
            # FULL also survives a loss of power, but is slower
            self.store.execute("PRAGMA synchronous = NORMAL")
            self.store.executescript(TABLES)
            settings = {"agent": agent, "n_positions": str(n_positions), "seed": str(seed)}
            self.store.executemany("INSERT OR IGNORE INTO settings VALUES (?, ?)", settings.items())
        except sqlite3.Error as error:
            raise ValueError(f"{store} cannot be opened: {error}") from None
        if (begun := dict(self.store.execute("SELECT name, value FROM settings"))) != settings:
            raise ValueError(f"{store} was begun with {begun}; got {settings}")

    def rank(self, query: str, items: Sequence[str] | None = None) -> dict[str, Any]:
        """Return a list for a user.

        Args:
            query: the query of the user.
            items: all items of the query; required in its first call, and constant.
        """
        with self.lock:
            names = self._items(query, items)
            shown = [names[item] for item in self._agent(query).rank(None)]
            try:
                impression = self._write(query, "list", None, json.dumps(shown))
            except sqlite3.Error:
                # the agent has drawn a list that is not in the table: replay it at the next call
                del self.agents[query]
                raise
        return {"impression": impression, "items": shown}

    def click(self, impression: int, item: str) -> dict[str, Any]:
        """Report a click; the same click a second time changes nothing."""
        with self.lock:
            query, shown, clicked = self._open(impression)
            if item not in shown:
                raise ValueError(f"the impression {impression} has no item {item!r}")
            new = item not in clicked
            if new:
                self._write(query, "click", impression, item)
        return {"new": new}

    def close(self, impression: int) -> dict[str, Any]:
        """Report that the user has left; the agent learns."""
        with self.lock:
            query, shown, clicked = self._open(impression)
            agent = self._agent(query)
            self._write(query, "close", impression, None)
            learn(agent, self._items(query), shown, clicked)
        return {"closed": True}

    def report(self) -> dict[str, Any]:
        """Return the number of events of each kind."""
        with self.lock:
            return dict(self.store.execute("SELECT kind, COUNT(*) FROM events GROUP BY kind"))

    def _items(self, query: str, items: Sequence[str] | None = None) -> list[str]:
        row = self.store.execute("SELECT items FROM queries WHERE query = ?", [query]).fetchone()
        if row is None:
            self._begin(query, items)
            return self._items(query, items)
        known: list[str] = json.loads(row[0])
        if items is not None and list(items) != known:
            raise ValueError(f"the query {query!r} was begun with other items")
        return known

    def _begin(self, query: str, items: Sequence[str] | None) -> None:
        if (
            not isinstance(query, str)
            or not isinstance(items, list)
            or not all(isinstance(item, str) for item in items)
        ):
            raise ValueError(
                "a new query needs a text as its name and a list of texts as its items"
            )
        if len(set(items)) < max(len(items), self.n_positions):
            raise ValueError(f"a query needs at least {self.n_positions} items, each once")
        self.store.execute("INSERT INTO queries VALUES (?, ?)", [query, json.dumps(items)])

    def _write(
        self, query: str, kind: str, impression: int | None, content: str | None
    ) -> int | None:
        """Add an event; after the return it survives a kill."""
        row = [query, kind, impression, content]
        return self.store.execute("INSERT INTO events VALUES (NULL, ?, ?, ?, ?)", row).lastrowid

    def _open(self, impression: int) -> tuple[str, list[str], set[str]]:
        """Return the query, the list and the clicked items of an impression that is not closed."""
        row = None
        if isinstance(impression, int):
            of_list = "SELECT query, content FROM events WHERE number = ? AND kind = 'list'"
            row = self.store.execute(of_list, [impression]).fetchone()
        if row is None:
            raise ValueError(f"there is no impression {impression!r}")
        later = self.store.execute(
            "SELECT kind, content FROM events WHERE impression = ?", [impression]
        ).fetchall()
        if ("close", None) in later:
            raise ValueError(f"the impression {impression} is closed")
        return row[0], json.loads(row[1]), {item for _, item in later}

    def _agent(self, query: str) -> Agent:
        """Return the agent of a query; replay it from the table if it is not in memory."""
        if query not in self.agents:
            self.agents[query] = self._replay(query)
        return self.agents[query]

    def _replay(self, query: str) -> Agent:
        names = self._items(query)
        agent = self.agent_class(
            len(names), self.n_positions, seed=zlib.crc32(f"{self.seed} {query}".encode())
        )
        lists: dict[int, list[str]] = {}
        clicks: dict[int, set[str]] = {}
        events = (
            "SELECT number, kind, impression, content FROM events WHERE query = ? ORDER BY number"
        )
        for number, kind, impression, content in self.store.execute(events, [query]):
            if kind == "list":
                lists[number], clicks[number] = json.loads(content), set()
                if [names[item] for item in agent.rank(None)] != lists[number]:
                    raise ValueError(
                        f"the list {number} cannot be replayed: "
                        "another version of clickgym has written it"
                    )
            elif kind == "click":
                clicks[impression].add(content)
            else:
                learn(agent, names, lists.pop(impression), clicks.pop(impression))
        return agent


def learn(agent: Agent, names: list[str], shown: list[str], clicked: set[str]) -> None:
    """Update an agent with a list and the clicked items."""
    ranking = np.array([names.index(item) for item in shown])
    clicks = np.array([item in clicked for item in shown], np.int8)
    agent.update(None, ranking, clicks, float(clicks.sum()))


class Handler(BaseHTTPRequestHandler):
    """The calls of the service over HTTP: arguments and answer are JSON."""

    service: Service
    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds without data
    wbufsize = -1  # buffer an answer, which saves 40 ms

    def do_POST(self) -> None:
        calls = {
            "/rank": self.service.rank,
            "/click": self.service.click,
            "/close": self.service.close,
        }
        size = int(self.headers.get("Content-Length", 0))
        if self.path not in calls or size > LONGEST_BODY:
            self.close_connection = True
            self._answer(
                400, {"error": f"expected {', '.join(calls)} with at most {LONGEST_BODY:,} bytes"}
            )
            return
        try:
            self._answer(200, calls[self.path](**json.loads(self.rfile.read(size))))
        except (TypeError, ValueError, OverflowError) as error:
            self._answer(400, {"error": str(error)})
        except sqlite3.Error as error:
            self._answer(503, {"error": f"the store cannot be written: {error}"})

    def do_GET(self) -> None:
        self._answer(200, self.service.report())

    def _answer(self, status: int, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Write no line for each request."""


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description="Rank for real users, one agent for each query.")
    parser.add_argument("--store", required=True, help="the file of the tables")
    parser.add_argument("--agent", default="CascadeTS", help="an agent that learns from any list")
    parser.add_argument("--positions", type=int, default=5, help="number of items of a list")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=8000, help="0: any free port")
    words = parser.parse_args()
    try:
        Handler.service = Service(words.store, words.agent, words.positions, words.seed)
    except ValueError as error:
        sys.exit(f"service: {error}")
    server = ThreadingHTTPServer(("127.0.0.1", words.port), Handler)
    print(f"serving on port {server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
