"""A small service in one file: an agent for each query ranks for real users, and acknowledged
events survive a kill.

    python examples/service.py --store clicks.db --agent PBMHB --production 1000
    curl localhost:8000/rank -d '{"query": "red shoes", "items": ["a", "b", "c", "d", "e"]}'
    curl localhost:8000/click -d '{"impression": 1, "item": "c"}'
    curl localhost:8000/close -d '{"impression": 1}'
    curl localhost:8000/report

`rank` returns a list, `click` reports a click on it, `close` that the user has left: then the agent
learns. Each call is a row in SQLite before it is answered. An agent is the replay of the rows of
its query, also after a restart. It must learn from any list, because several lists are pending.

The items of a query are fixed: its first call names them all. If one comes or goes, the next call
that names other items starts a new agent, which has forgotten all clicks, and a note says so.

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
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from clickgym.agents import Agent
from clickgym.envs import check_ranking
from clickgym.runner.make import agent_maker

SCHEMA = """
PRAGMA locking_mode = EXCLUSIVE;  -- a second process would have other agents
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;      -- FULL also survives a loss of power, but is slower
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS queries (query TEXT PRIMARY KEY, items TEXT, since INTEGER) STRICT;
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
LEAST_SHOWN = 20
CALLS = ("/rank", "/click", "/close", "/report")
# Other names may be those of web pages whose scripts call the service (DNS rebinding).
HOSTS = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?", re.IGNORECASE)


class BadCallError(ValueError):
    """A fault of the caller."""


def agent_class(name: str, n_positions: int = 1, protected: int = 0) -> Callable[..., Agent]:
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
        made: Any = make(n_positions + 1, n_positions, seed=0)
        if protected:
            made.best()
    except Exception as error:  # also of your own module
        raise ValueError(f"{name} cannot serve: {' '.join(str(error).split())}") from error
    return make


class Ranker:
    """The agent of a query, and the production list that protects its users.

    With ``protected`` > 0 the production list is shown until the agent has learned from so many
    sessions, and by its own estimates its list ``best()`` is at least as good.
    No list has higher estimates than ``best()``, but an estimate of an item that hardly any session
    showed is none: each item of ``best()`` must have been in `LEAST_SHOWN` sessions. From then on
    the agent ranks; it may explore, and nothing returns to the production list, which is the first
    items of the first call.
    """

    def __init__(self, agent: Agent, names: list[str], production: Any, protected: int) -> None:
        self.agent, self.names, self.production = agent, names, production
        self.protected, self.learned, self.shown = protected, 0, np.zeros(len(names), int)

    def rank(self) -> list[str]:
        """Return the items to show."""
        enough = self.protected and self.learned >= self.protected
        if enough and min(self.shown[self.agent.best()]) >= LEAST_SHOWN:
            self.protected = 0
        ranking = self.production if self.protected else self.agent.rank(None)
        ranking = check_ranking(ranking, len(self.names), len(self.production))
        return [self.names[item] for item in ranking]

    def learn(self, rankings: NDArray[np.int64], clicks: NDArray[np.int8]) -> None:
        """Learn from sessions, ``(n, K)`` each; clicks below 0 are of other items."""
        self.agent.learn_sessions(rankings, clicks, clicks.clip(0).sum(axis=1).astype(float))
        self.learned += len(rankings)
        self.shown += np.bincount(rankings[clicks >= 0], minlength=len(self.shown))

    def close(self, shown: list[str], clicked: set[str]) -> None:
        """Learn from a list and the clicked items."""
        ranking = np.array([[self.names.index(item) for item in shown]])
        self.learn(ranking, np.array([[item in clicked for item in shown]], np.int8))


class Service:
    """The agents of all queries, and the table of their events, for one thread at a time."""

    def __init__(self, store: str, agent: str, n_positions: int, seed=0, protected=0):
        self.make_agent = agent_class(agent, n_positions, protected)
        self.n_positions, self.seed, self.protected = n_positions, seed, protected
        self.rankers: dict[str, Ranker] = {}
        try:
            kind = {"isolation_level": None, "check_same_thread": False}
            self.store = sqlite3.connect(store, timeout=1.0, **kind)
            self.store.executescript(SCHEMA)
            settings = {"agent": agent, "n_positions": str(n_positions), "seed": str(seed)}
            settings |= {"protected": str(protected)}
            self.store.executemany("INSERT OR IGNORE INTO settings VALUES (?, ?)", settings.items())
        except sqlite3.Error as error:
            raise ValueError(f"{store} cannot be opened: {error}") from None
        if (begun := dict(self.store.execute("SELECT name, value FROM settings"))) != settings:
            raise ValueError(f"{store} was begun with {begun}; got {settings}")

    def rank(self, query: str, items: list[str] | None = None) -> dict[str, Any]:
        """Return a list for a user; the first call of a query needs all its items."""
        note = self._start(query, items)
        ranker = self._taken(query)
        shown = ranker.rank()
        impression = self._write(query, "list", None, json.dumps(shown))
        self.rankers[query] = ranker
        return {"impression": impression, "items": shown} | note

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
        ranker, (_, since) = self._taken(query), self._known(query)
        self._write(query, "close", impression, None)
        if impression > since:  # else the list was of an agent for other items
            ranker.close(shown, clicked)
        self.rankers[query] = ranker
        return {"closed": True}

    def report(self) -> dict[str, Any]:
        """Return the number of events of each kind."""
        return dict(self.store.execute("SELECT kind, COUNT(*) FROM events GROUP BY kind"))

    def _known(self, query: str) -> tuple[list[str], int]:
        """Return the items of a query, none if it is new, and the last event before its agent."""
        of_query = "SELECT items, since FROM queries WHERE query = ?"
        items, since = self.store.execute(of_query, [query]).fetchone() or ("[]", 0)
        return json.loads(items), since

    def _start(self, query: str, items: Any) -> dict[str, str]:
        """Start an agent if the query is new or has other items; return what there is to say."""
        names = items if isinstance(items, list) else []
        are_texts = all(isinstance(text, str) for text in [query, *names])
        known = self._known(query)[0] if are_texts else []
        if known and (items is None or sorted(names) == sorted(known)):
            return {}
        if not are_texts or not len(set(names)) == len(names) >= self.n_positions:
            needed = f"a text and a list of texts: at least {self.n_positions} items, each once"
            raise BadCallError(f"a new query needs {needed}")
        try:
            ranker = self._new_ranker(query, items)
        except ValueError as error:  # such as more items than the memory holds
            raise BadCallError(str(error)) from None
        begin = "INSERT OR REPLACE INTO queries SELECT ?, ?, COALESCE(MAX(number), 0) FROM events"
        self.store.execute(begin, [query, json.dumps(items)])
        self.rankers[query] = ranker
        return {"note": "other items: a new agent has started"} if known else {}

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

    def _taken(self, query: str) -> Ranker:
        """Take an agent from memory, or replay it: so the next call does where this one fails."""
        if query in self.rankers:
            return self.rankers.pop(query)
        names, since = self._known(query)
        ranker, pending = self._new_ranker(query, names), {}
        of_query = "SELECT * FROM events WHERE query = ? AND number > ? ORDER BY number"
        for number, _, kind, impression, content in self.store.execute(of_query, [query, since]):
            if kind == "list":
                pending[number] = json.loads(content), set()
                if ranker.rank() != pending[number][0]:
                    raise RuntimeError(f"the list {number} is of another version of the agent")
            elif impression in pending and kind == "click":
                pending[impression][1].add(content)
            elif impression in pending:
                ranker.close(*pending.pop(impression))
        return ranker

    def _new_ranker(self, query: str, names: list[str]) -> Ranker:
        seed = crc32(f"{self.seed} {query}".encode())
        agent = self.make_agent(len(names), self.n_positions, seed=seed)
        return Ranker(agent, names, np.arange(self.n_positions), self.protected)


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
    protect = "show the production list until N sessions are learned (0: never)"
    parser.add_argument("--production", type=int, default=0, metavar="N", help=protect)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=8000, help="0: any free port")
    words = parser.parse_args()
    try:
        settings = words.positions, words.seed, words.production
        Handler.service = Service(words.store, words.agent, *settings)
        server = ThreadingHTTPServer(("127.0.0.1", words.port), Handler)
    except (ValueError, OSError, OverflowError) as error:
        sys.exit(f"service: {error}")
    print(f"serving on port {server.server_address[1]}", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
