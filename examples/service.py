"""A small service in one file: an agent for each query ranks for real users, and acknowledged
events survive a kill.

    python examples/service.py --store clicks.db --agent CascadeTS --positions 3
    curl localhost:8000/rank -d '{"query": "red shoes", "items": ["a", "b", "c", "d", "e"]}'
    curl localhost:8000/click -d '{"impression": 1, "item": "c"}'
    curl localhost:8000/close -d '{"impression": 1}'
    curl localhost:8000/report

`rank` returns a list, `click` reports a click on it, `close` that the user has left: then the agent
learns. Each call is a row in SQLite before it is answered. An agent is the replay of the rows of
its query, also after a restart. It must learn from any list, because several lists are pending.

One process serves a file. Every caller influences the agents: put authentication and bot detection
in front of it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sqlite3
import sys
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from clickgym.agents import Agent
from clickgym.envs import check_ranking
from clickgym.runner import agent_maker

SCHEMA = """
PRAGMA locking_mode = EXCLUSIVE;  -- a second process would have other agents
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;      -- FULL also survives a loss of power, but is slower
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
CALLS = ("/rank", "/click", "/close", "/report")
HOSTS = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?", re.IGNORECASE)
"""Other names may be those of web pages whose scripts call the service (DNS rebinding)."""


class BadCallError(ValueError):
    """A fault of the caller."""


def agent_class(name: str, n_positions: int = 1) -> Callable[..., Agent]:
    """Return what makes an agent, also ``module:Class``; a ValueError says why it cannot serve."""
    try:
        found, arguments = agent_maker(name)
        if not (isinstance(found, type) and issubclass(found, Agent)):
            raise TypeError("it is no Agent")
        if found.observes:
            raise TypeError(f"it ranks by {found.observes[0]}, and this service has none")
        if not found.learns_from_any_list:
            raise TypeError("it does not learn from any list, and here lists wait for their clicks")
        make = partial(found, **arguments)
        make(n_positions + 1, n_positions, seed=0)
    except Exception as error:  # also of your own module
        raise ValueError(f"{name} cannot serve: {' '.join(str(error).split())}") from error
    return make


class Service:
    """The agents of all queries, and the table of their events, for one thread at a time."""

    def __init__(self, store: str, agent: str, n_positions: int, seed: int = 0) -> None:
        self.make_agent = agent_class(agent, n_positions)
        self.n_positions, self.seed = n_positions, seed
        self.agents: dict[str, Agent] = {}
        try:
            kind = {"isolation_level": None, "check_same_thread": False}
            self.store = sqlite3.connect(store, timeout=1.0, **kind)
            self.store.executescript(SCHEMA)
            settings = {"agent": agent, "n_positions": str(n_positions), "seed": str(seed)}
            self.store.executemany("INSERT OR IGNORE INTO settings VALUES (?, ?)", settings.items())
        except sqlite3.Error as error:
            raise ValueError(f"{store} cannot be opened: {error}") from None
        if (begun := dict(self.store.execute("SELECT name, value FROM settings"))) != settings:
            raise ValueError(f"{store} was begun with {begun}; got {settings}")

    def rank(self, query: str, items: list[str] | None = None) -> dict[str, Any]:
        """Return a list for a user; the first call of a query needs all its items."""
        names = self._items(query, items)
        agent = self._agent(query)
        del self.agents[query]  # if what follows fails, the next call replays the agent
        shown = self._ranked(agent, names)
        impression = self._write(query, "list", None, json.dumps(shown))
        self.agents[query] = agent
        return {"impression": impression, "items": shown}

    def click(self, impression: int, item: str) -> dict[str, Any]:
        """Report a click; the same click a second time changes nothing."""
        query, shown, clicked = self._open(impression)
        if item not in shown:
            raise BadCallError(f"the impression {impression} has no item {item!r}")
        if item not in clicked:
            self._write(query, "click", impression, item)
        return {"new": item not in clicked}

    def close(self, impression: int) -> dict[str, Any]:
        """Report that the user has left; the agent learns."""
        query, shown, clicked = self._open(impression)
        agent = self._agent(query)
        self._write(query, "close", impression, None)
        del self.agents[query]
        learn(agent, self._items(query), shown, clicked)
        self.agents[query] = agent
        return {"closed": True}

    def report(self) -> dict[str, Any]:
        """Return the number of events of each kind."""
        return dict(self.store.execute("SELECT kind, COUNT(*) FROM events GROUP BY kind"))

    def _items(self, query: str, items: Any = None) -> list[str]:
        known, is_text = "SELECT items FROM queries WHERE query = ?", isinstance(query, str)
        if is_text and (row := self.store.execute(known, [query]).fetchone()):
            if items is not None and items != json.loads(row[0]):
                raise BadCallError(f"the query {query!r} was begun with other items")
            return json.loads(row[0])
        are_texts = isinstance(items, list) and all(isinstance(item, str) for item in items)
        if not (is_text and are_texts and len(set(items)) == len(items) >= self.n_positions):
            needed = f"a text and a list of texts: at least {self.n_positions} items, each once"
            raise BadCallError(f"a new query needs {needed}")
        try:
            agent = self._new_agent(query, len(items))
        except ValueError as error:  # such as more items than the memory holds
            raise BadCallError(str(error)) from None
        self.store.execute("INSERT INTO queries VALUES (?, ?)", [query, json.dumps(items)])
        self.agents[query] = agent
        return items

    def _write(self, *event: str | int | None) -> int | None:
        """Add query, kind, impression and content; after the return they survive a kill."""
        return self.store.execute("INSERT INTO events VALUES (NULL, ?, ?, ?, ?)", event).lastrowid

    def _open(self, impression: int) -> tuple[str, list[str], set[str]]:
        """Return the query, the list and the clicked items of an impression that is not closed."""
        is_number = type(impression) is int and 0 < impression < 2**63
        of_list = "SELECT query, content FROM events WHERE number = ? AND kind = 'list'"
        row = self.store.execute(of_list, [impression if is_number else 0]).fetchone()
        if row is None:
            raise BadCallError(f"there is no impression {impression!r}")
        of_impression = "SELECT kind, content FROM events WHERE impression = ?"
        later = self.store.execute(of_impression, [impression]).fetchall()
        if ("close", None) in later:
            raise BadCallError(f"the impression {impression} is closed")
        return row[0], json.loads(row[1]), {item for _, item in later}

    def _agent(self, query: str) -> Agent:
        """Return the agent of a query; replay it from the table if it is not in memory."""
        if query in self.agents:
            return self.agents[query]
        names = self._items(query)
        agent = self._new_agent(query, len(names))
        lists: dict[int, list[str]] = {}
        clicks: dict[int, set[str]] = {}
        of_query = "SELECT * FROM events WHERE query = ? ORDER BY number"
        for number, _, kind, impression, content in self.store.execute(of_query, [query]):
            if kind == "list":
                lists[number], clicks[number] = json.loads(content), set()
                if self._ranked(agent, names) != lists[number]:
                    raise RuntimeError(f"the list {number} is of another version of the agent")
            elif kind == "click":
                clicks[impression].add(content)
            else:
                learn(agent, names, lists.pop(impression), clicks.pop(impression))
        self.agents[query] = agent
        return agent

    def _new_agent(self, query: str, n_items: int) -> Agent:
        seed = zlib.crc32(f"{self.seed} {query}".encode())
        return self.make_agent(n_items, self.n_positions, seed=seed)

    def _ranked(self, agent: Agent, names: list[str]) -> list[str]:
        ranking = check_ranking(agent.rank(None), len(names), self.n_positions)
        return [names[item] for item in ranking]


def learn(agent: Agent, names: list[str], shown: list[str], clicked: set[str]) -> None:
    """Update an agent with a list and the clicked items."""
    ranking = np.array([names.index(item) for item in shown])
    clicks = np.array([item in clicked for item in shown], np.int8)
    agent.update(None, ranking, clicks, float(clicks.sum()))


def arguments_of(call: Callable[..., Any], body: bytes) -> dict[str, Any]:
    """Return the arguments of a call from the JSON of a body; no body is no argument."""
    try:
        arguments = {**json.loads(body or b"{}")}
        json.dumps(arguments, ensure_ascii=False).encode()  # refuses halves of characters
        return inspect.signature(call).bind(**arguments).arguments
    except (TypeError, ValueError, RecursionError) as error:
        raise BadCallError(f"the body is not the JSON of the arguments: {error}") from None


class Handler(BaseHTTPRequestHandler):
    """The calls of the service over HTTP: arguments and answer are JSON."""

    service: Service
    lock = threading.Lock()  # calls come in threads, but one at a time may use the agents
    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds without data
    wbufsize = -1  # buffer an answer, which saves 40 ms

    def do_POST(self) -> None:
        keeps_open, self.close_connection = not self.close_connection, True
        try:
            if self.path not in CALLS:
                raise BadCallError(f"the path is {self.path:.80}; expected {', '.join(CALLS)}")
            body, call = self._body(), getattr(self.service, self.path[1:])
            self.close_connection = not keeps_open
            arguments = arguments_of(call, body)
            with self.lock:
                status, answer = 200, call(**arguments)
        except BadCallError as error:
            status, answer = 400, {"error": str(error)}
        except sqlite3.Error as error:
            status, answer = 503, {"error": f"the store cannot be written: {error}"}
        except Exception as error:
            status, answer = 500, {"error": f"{type(error).__name__}: {error}"}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        if keeps_open and self.close_connection:  # a caller that still sends would miss the answer
            self.wfile.flush()
            self.connection.settimeout(0.5)
            with suppress(OSError):
                any(not self.connection.recv(100_000) for _ in range(100))

    do_GET = do_POST

    def _body(self) -> bytes:
        """Read the body; nothing is read if its length is not a number within the limit."""
        hosts = self.headers.get_all("Host", [])
        sizes = self.headers.get_all("Content-Length", ["0"] if self.command == "GET" else [])
        if len(hosts) != 1 or not HOSTS.fullmatch(hosts[0]):
            raise BadCallError("the Host is another one; expected localhost or 127.0.0.1")
        is_size = len(sizes) == 1 and re.fullmatch("[0-9]{1,9}", sizes[0])
        if not is_size or int(sizes[0]) > LONGEST_BODY or "Transfer-Encoding" in self.headers:
            raise BadCallError(f"expected one Content-Length of at most {LONGEST_BODY:,} bytes")
        return self.rfile.read(int(sizes[0]))

    def log_message(self, *_: Any) -> None:
        """Write no line for each request."""


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description="Rank for real users, one agent for each query.")
    parser.add_argument("--store", required=True, help="the file of the tables")
    parser.add_argument("--agent", default="CascadeTS", help="a name, or your own module:Class")
    parser.add_argument("--positions", type=int, default=5, help="number of items of a list")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=8000, help="0: any free port")
    words = parser.parse_args()
    try:
        Handler.service = Service(words.store, words.agent, words.positions, words.seed)
        server = ThreadingHTTPServer(("127.0.0.1", words.port), Handler)
    except (ValueError, OSError, OverflowError) as error:
        sys.exit(f"service: {error}")
    print(f"serving on port {server.server_address[1]}", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
