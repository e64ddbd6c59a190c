"""The service of the examples: what it acknowledged survives a kill, a restart is a replay, an
agent is refused in a line.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickgym

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
QUERIES, ITEMS, K = ["shoes", "été", "third"], list("abcdef"), 3
KILLS = 3


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import service

    return service


class Process:
    """The example in a process of its own, and four users who call it until it is killed."""

    def __init__(self, store: Path, seed: int) -> None:
        command = [sys.executable, EXAMPLES / "service.py", "--store", store]
        words = f"--positions {K} --port 0".split()
        self.process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline().split()[-1])
        self.seed = seed
        self.acknowledged: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def users(self, number: int) -> None:
        rng = random.Random(self.seed + number)
        connection = http.client.HTTPConnection("127.0.0.1", self.port)

        def call(route: str, **body: Any) -> dict[str, Any]:
            connection.request("POST", f"/{route}", json.dumps(body))
            with closing(connection.getresponse()) as response:
                answer = json.loads(response.read())
            assert response.status == 200, answer
            self.acknowledged.append((route, body, answer))
            return answer

        try:
            while True:
                shown = call("rank", query=rng.choice(QUERIES), items=ITEMS)
                for item in shown["items"]:
                    if rng.random() < 0.3:
                        call("click", impression=shown["impression"], item=item)
                if rng.random() < 0.9:
                    call("close", impression=shown["impression"])
        except (OSError, http.client.HTTPException, ValueError):
            assert self.process.poll() is not None or not time.sleep(1), "the service is gone"

    def load_and_kill(self, seconds: float) -> None:
        """Some seconds after the first forty answers."""
        threads = [threading.Thread(target=self.users, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        while len(self.acknowledged) < 40 and any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
        time.sleep(seconds)
        self.process.kill()
        self.process.wait()
        for thread in threads:
            thread.join()


SMALL = b'{"query": "q", "items": ["a", "b", "c"]}'
HOST, LENGTH = b"Host: localhost\r\n", b"Content-Length: %d\r\n"
BAD_CALLS = {
    "negative": (HOST + LENGTH % -1, SMALL),
    "no length": (HOST, SMALL),
    "no number": (HOST + b"Content-Length: ten\r\n", SMALL),
    "a sign": (HOST + b"Content-Length: +40\r\n", SMALL),
    "two lengths": (HOST + 2 * (LENGTH % len(SMALL)), SMALL),
    "chunked": (HOST + b"Transfer-Encoding: chunked\r\n", b"28\r\n" + SMALL + b"\r\n0\r\n\r\n"),
    "chunked with a length": (HOST + LENGTH % 40 + b"Transfer-Encoding: chunked\r\n", SMALL),
    "too long": (HOST + LENGTH % 3_000_000, b" " * 3_000_000),
    "no host": (LENGTH % len(SMALL), SMALL),
    "another host": (b"Host: localhost.example.org\r\n" + LENGTH % len(SMALL), SMALL),
    "two hosts": (HOST + b"Host: example.org\r\n" + LENGTH % len(SMALL), SMALL),
    "deep": (HOST + LENGTH % 100_000, b"[" * 100_000),
    "no JSON": (HOST + LENGTH % 3, b"{a}"),
    "no object": (HOST + LENGTH % 4, b"null"),
    "no text": (HOST + LENGTH % 2, b"\xff\xfe"),
    "half a character": (HOST + LENGTH % 19, b'{"query": "\\ud800"}'),
    "a number": (HOST + LENGTH % 12, b'{"query": 5}'),
    "a list": (HOST + LENGTH % 14, b'{"query": [5]}'),
    "another argument": (HOST + LENGTH % 22, b'{"query": "q", "x": 1}'),
}
OWN = """
from clickgym.agents import Agent
class Mine(Agent):
    learns_from_any_list = True
    def __init__(self, n_items, n_positions, *, seed=None): self.sizes = n_items, n_positions
    def rank(self, observation): return [self.sizes[0] - 1 - k for k in range(self.sizes[1])]
    def update(self, observation, ranking, clicks, reward): raise KeyError("a fault of mine")
class Last(Mine):
    learns_from_any_list = False
"""


@pytest.fixture
def serving(example, tmp_path):
    """The service with an own agent, in a thread; yields a function that sends bytes."""
    (tmp_path / "agent_of_mine.py").write_text(OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        example.Handler.service = example.Service(tmp_path / "own.db", "agent_of_mine:Mine", 2)
        with pytest.raises(
            ValueError, match=r"^agent_of_mine:Last cannot serve: it does not learn"
        ):
            example.agent_class("agent_of_mine:Last")
    server = example.ThreadingHTTPServer(("127.0.0.1", 0), example.Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def send(data: bytes) -> tuple[int, dict[str, Any]]:
        with socket.create_connection(server.server_address, timeout=8) as connection:
            connection.sendall(data)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status, json.loads(answer.read())

    yield send
    server.shutdown()
    server.server_close()
    thread.join()


def test_faults_of_callers(serving):
    """400, a reason in one line, and no event; the own agent's faults are 500."""
    for name, (headers, body) in BAD_CALLS.items():
        status, answer = serving(b"POST /rank HTTP/1.1\r\n" + headers + b"\r\n" + body)
        assert (name, status, list(answer)) == (name, 400, ["error"])
        assert "\n" not in answer["error"], name
    for line in (b"GET / HTTP/1.1", b"POST /learn HTTP/1.1", b"GET /rank HTTP/1.1"):
        assert serving(line + b"\r\n" + HOST + b"\r\n")[0] == 400
    report = b"GET /report HTTP/1.1\r\n" + HOST + b"\r\n"
    assert serving(report) == (200, {})

    def call(route: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
        body = json.dumps(arguments).encode()
        return serving(
            f"POST /{route} HTTP/1.1\r\n".encode() + HOST + LENGTH % len(body) + b"\r\n" + body
        )

    shown = {"impression": 1, "items": ["c", "b"]}
    assert call("rank", query="q", items=["a", "b", "c"]) == (200, shown)
    for wrong in (True, 1.0, "1", None, 2**70, -(2**70), [1]):
        status, answer = call("click", impression=wrong, item="c")
        assert (status, answer["error"]) == (400, f"there is no impression {wrong!r}")
    assert call("click", impression=1, item=["c"])[0] == 400
    assert serving(report) == (200, {"list": 1})
    assert call("close", impression=1) == (500, {"error": "KeyError: 'a fault of mine'"})


def replayed_by_hand(events: list[tuple[Any, ...]], query: str) -> clickgym.agents.CascadeTS:
    agent = clickgym.agents.CascadeTS(len(ITEMS), K, seed=zlib.crc32(f"0 {query}".encode()))
    for number, of_query, kind, _, content in events:
        if of_query == query and kind == "list":
            assert [ITEMS[item] for item in agent.rank()] == json.loads(content)
        elif of_query == query and kind == "close":
            (impression,) = [event[3] for event in events if event[0] == number]
            (shown,) = [json.loads(event[4]) for event in events if event[0] == impression]
            clicked = [event[4] for event in events if event[2:4] == ("click", impression)]
            ranking = [ITEMS.index(item) for item in shown]
            clicks = [int(item in clicked) for item in shown]
            agent.update(None, ranking, clicks, sum(clicks))
    return agent


def assert_equal_agents(one: Any, other: Any) -> None:
    for name in one.state._fields:
        np.testing.assert_array_equal(
            getattr(one.state, name), getattr(other.state, name), err_msg=name
        )
    assert one.rng.bit_generator.state == other.rng.bit_generator.state


def test_kills_lose_nothing_that_was_acknowledged(example, tmp_path):
    store, rng, acknowledged = tmp_path / "clicks.db", random.Random(0), []
    for number in range(KILLS):
        process = Process(store, seed=100 * number)
        process.load_and_kill(rng.uniform(0.05, 0.3))
        acknowledged += process.acknowledged
    with closing(sqlite3.connect(store)) as connection:
        events = connection.execute("SELECT * FROM events ORDER BY number").fetchall()
    lists = {
        number: (query, json.loads(content))
        for number, query, kind, _, content in events
        if kind == "list"
    }
    clicks = [
        (impression, content) for _, _, kind, impression, content in events if kind == "click"
    ]
    closed = [impression for _, _, kind, impression, _ in events if kind == "close"]
    assert len(acknowledged) >= 40 * KILLS
    for route, body, answer in acknowledged:
        if route == "rank":
            assert lists[answer["impression"]] == (body["query"], answer["items"])
        elif route == "click":
            assert clicks.count((body["impression"], body["item"])) == 1
        else:
            assert closed.count(body["impression"]) == 1
    # what each user was waiting for when the process was killed
    assert len(events) <= len(acknowledged) + KILLS * 4
    service = example.Service(store, "CascadeTS", K)
    for query in QUERIES:
        assert_equal_agents(service._taken(query).agent, replayed_by_hand(events, query))


def test_service_that_starts_again(example, tmp_path):
    """It has the agents of the one that went on."""
    service = example.Service(tmp_path / "clicks.db", "PBMHB", K)
    rng, waiting = random.Random(0), []
    for _ in range(60):
        waiting.append(service.rank("q", ITEMS))
        shown = waiting.pop(rng.randrange(len(waiting))) if len(waiting) > 3 else waiting[-1]
        if rng.random() < 0.5:
            assert service.click(shown["impression"], shown["items"][1]) == {"new": True}
            assert service.click(shown["impression"], shown["items"][1]) == {"new": False}
        if shown not in waiting:
            service.close(shown["impression"])
    alive = service._taken("q").agent
    service.store.close()
    assert_equal_agents(
        example.Service(tmp_path / "clicks.db", "PBMHB", K)._taken("q").agent, alive
    )


@pytest.mark.parametrize("name", sorted(clickgym.agents.__all__))
def test_an_agent_serves_or_is_refused_in_a_line(example, name):
    try:
        found = example.agent_class(name)
    except ValueError as error:
        refused = str(error)
    else:
        refused = ""
        assert found(4, 2, seed=0).rank().shape == (2,)
    assert not refused or (name in refused and "\n" not in refused)


def test_wrong_calls_are_refused_and_change_nothing(example, tmp_path):
    service = example.Service(tmp_path / "clicks.db", "CascadeTS", K)
    shown = service.rank("q", ITEMS)["impression"]
    service.close(service.rank("q")["impression"])
    before = service.report()
    for call, arguments, message in (
        (service.rank, ["new"], "a new query needs"),
        (service.rank, ["new", ["a", "b"]], "at least 3 items"),
        (service.rank, ["new", ["a", "b", "b"]], "each once"),
        (service.rank, ["q", ["a", "b"]], "at least 3 items"),
        (service.click, [shown, "z"], "has no item 'z'"),
        (service.click, [99, "a"], "no impression 99"),
        (service.close, [2], "impression 2 is closed"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*arguments)
    assert service.report() == before
    with pytest.raises(ValueError, match="cannot be opened"):
        example.Service(tmp_path / "clicks.db", "CascadeTS", K)
    service.store.close()
    with pytest.raises(ValueError, match="was begun with"):
        example.Service(tmp_path / "clicks.db", "CascadeTS", 2)


def test_production(example, tmp_path):
    """The production list is the first items; the agent ranks after N sessions in which each item
    of its list was shown often enough; a restart is a replay.
    """
    items = list("dcba")
    service = example.Service(tmp_path / "a.db", "PBMHB", 3, protected=40)
    for _ in range(40):
        shown = service.rank("q", items)
        assert shown["items"] == ["d", "c", "b"]
        service.click(shown["impression"], "d")
        service.close(shown["impression"])
    service.rank("q", items)
    alive = service._taken("q")
    assert (alive.learned, alive.protected) == (40, 0)
    service.store.close()
    again = example.Service(tmp_path / "a.db", "PBMHB", 3, protected=40)
    assert_equal_agents(again._taken("q").agent, alive.agent)
    again.store.close()
    with pytest.raises(ValueError, match="was begun with"):
        example.Service(tmp_path / "a.db", "PBMHB", 3, protected=41)
    with pytest.raises(ValueError, match="CascadeVI cannot serve"):
        example.agent_class("CascadeVI", protected=1)


def test_items_that_change(example, tmp_path):
    """A new agent starts, and the answer says so; open lists of the old one teach it nothing."""
    service = example.Service(tmp_path / "a.db", "CascadeTS", 2)
    old = service.rank("q", ["a", "b", "c"])
    closed = service.rank("q", ["c", "a", "b"])  # the same items
    assert "note" not in closed
    service.close(closed["impression"])
    new = service.rank("q", ["a", "b", "z"])
    assert new["note"] == "other items: a new agent has started"
    service.click(old["impression"], old["items"][0])
    assert service.close(old["impression"]) == {"closed": True}
    assert service._taken("q").learned == 0
    service.close(new["impression"])
    assert service._taken("q").learned == 1
    assert "note" not in service.rank("q")
