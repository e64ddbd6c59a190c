"""Kill a process that serves, at random moments, and compare what it has acknowledged with what its store holds.

    python benchmarks/reliability/kills.py --times 200

The process that is killed is this file: it ranks, clicks late and twice, closes, and writes a line before and after each call.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

from clickgym import Ranker
from clickgym.offline.postgres import Address, is_address
from clickgym.serving.ids import impression_number
from clickgym.serving.memory import Agents

SETTINGS: dict[str, Any] = {
    "n_positions": 3,
    "update_every": 3,
    "memory": 2,  # agents come and go
    "production": lambda query, candidates: candidates,
    "production_share": 0.3,
}


def serve(store: str, seed: int, durable: str) -> None:
    """Serve until killed; where the server of the store is gone for a while, calls are repeated."""
    rng, opened = random.Random(seed), []
    ranker = Ranker(store=store, durable=durable, seed=1, **SETTINGS)
    say("ready")
    while True:
        with suppress(OSError):
            query, candidates = f"q{rng.randrange(5)}", [f"é{i}" for i in rng.sample(range(9), 5)]
            shown = ranker.rank(query, candidates)
            say("R", shown.id, *shown.items)
            opened.append(shown)
            impression = rng.choice(opened[-20:])
            for item in rng.choices(impression.items, k=2):  # sometimes the same twice
                say("c", impression.id, item)
                ranker.click(impression.id, item)
                say("C", impression.id, item)
            if rng.random() < 0.8:
                impression = rng.choice(opened[-20:])
                ranker.close(impression.id)
                say("X", impression.id)


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


def start(store: Path | str, seed: int, durable: str = "kill") -> subprocess.Popen[bytes]:
    """The process, when it serves."""
    process = subprocess.Popen([sys.executable, __file__, str(store), str(seed), durable], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def kill(store: Path, seed: int, seconds: float, durable: str = "kill") -> list[list[str]]:
    """Serve for a while, be killed, and return what was said.

    The pipe holds 64 kB, some hundred sessions, and the process waits when it is full: so the moment is anywhere in a call.
    """
    process = start(store, seed, durable)
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    said, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        said += process.stdout.read() or b""
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    os.set_blocking(process.stdout.fileno(), True)
    said += process.stdout.read()
    process.stdout.close()
    return _lines(said)


def stop_and_copy(store: Path, copy: Path, seed: int, seconds: float) -> list[list[str]]:
    """Serve with ``durable="power"``, stop, copy the files as they are, and return what was acknowledged by then.

    Behind what the log of SQLite holds comes what a disk may have written of the next commit when power was lost.
    """
    process = start(store, seed, "power")
    assert process.stdout is not None
    time.sleep(seconds)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    os.set_blocking(process.stdout.fileno(), False)
    said = process.stdout.read() or b""
    for ending in ("", "-wal"):
        shutil.copy(f"{store}{ending}", f"{copy}{ending}")
    with open(f"{copy}-wal", "ab") as file:
        file.write(random.Random(seed).randbytes(3000))
    process.kill()
    process.wait()
    process.stdout.close()
    return _lines(said)


def _lines(said: bytes) -> list[list[str]]:
    """The words of the whole lines."""
    return [line.split() for line in said[: said.rfind(b"\n") + 1].decode().splitlines()]


def faults(store: Path | str, said: list[list[str]]) -> list[str]:
    """What is wrong with a store after all that was acknowledged; and it must open."""
    with Ranker(store=store, **SETTINGS) as ranker:
        journal: Any = ranker._journal
        integrity = "ok" if journal.shared else journal.connection.execute("PRAGMA integrity_check").fetchone()[0]
        found = [] if integrity == "ok" else [f"integrity: {integrity}"]
        with journal.view() as view:
            ids = view.ids("items")
            numbers, items, seen = view.impressions("number", "items", "seen")
            impressions, positions, _ = view.clicks()
        lists = {number: [ids[item] for item in row] for number, row in zip(numbers.tolist(), items.tolist(), strict=True)}
        closed = set(numbers[seen >= 0].tolist())
        pairs = zip(impressions.tolist(), positions.tolist(), strict=True)
        clicks = {(number, lists[number][place - 1]) for number, place in pairs}
        attempts = set()
        for kind, impression, *words in said:
            number = impression_number(ranker._secret, impression)
            if kind == "R" and lists.get(number) != words:
                found.append(f"the list of {impression} is {lists.get(number)}, not {words}")
            elif kind == "C" and (number, words[0]) not in clicks:
                found.append(f"the click of {impression} on {words[0]} is lost")
            elif kind == "X" and number not in closed:
                found.append(f"{impression} is open again")
            elif kind == "c":
                attempts.add((number, words[0]))
        found += [f"nobody has clicked {click}" for click in clicks - attempts]
        if len(impressions) != len(clicks):
            found.append(f"{len(impressions)} clicks are stored, {len(clicks)} different ones")
        return found + [f"the state of query {number} is another" for number in states_that_differ(ranker)]


def states_that_differ(ranker: Ranker) -> list[int]:
    """The queries whose agents, in memory or from a snapshot, are not what a replay of all events makes of them."""
    replayed = Agents(cast(Any, WithoutSnapshots(ranker._journal)), ranker._recipe, ranker.seed, 10**6)
    numbers = numbers_of_agents(ranker)
    return [number for number in numbers if state_of(replayed.get(number)) != state_of(ranker._agents.get(number))]


class WithoutSnapshots:
    """A journal whose agents are replayed from their first event."""

    def __init__(self, journal: Any) -> None:
        self.journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def stored(self, agent: int) -> Any:
        stored = self.journal.stored(agent)
        return stored and stored._replace(snapshot=None)


def play(rankers: Any, sessions: int, seed: int = 0, shown: Iterable[Any] = (), *, queries: int = 3, share: float = 0.8,
         each: Callable[[], object] = lambda: None, **features: Any) -> list[Any]:  # fmt: skip
    """Users of some queries whose candidates differ and who click late, on closed lists, too; items lose their slots.

    Args:
        rankers: a ranker; or several, one of which takes each call.
        sessions, seed: how many, and of all draws.
        shown: earlier impressions.
        queries, share: how many there are, and how often an impression is closed.
        each: called before each session.
        **features: of `Ranker.rank`.

    Returns:
        The earlier impressions and those that were shown.
    """
    rng, shown = random.Random(seed), [*shown]

    def ranker() -> Ranker:
        return rng.choice(rankers) if isinstance(rankers, list) else rankers

    for _ in range(sessions):
        each()
        shown.append(ranker().rank(f"q{rng.randrange(queries)}", rng.sample(range(9), 6), **features))
        impression = rng.choice(shown[-10:])
        ranker().click(impression.id, rng.choice(impression.items))
        if rng.random() < share:
            ranker().close(rng.choice(shown[-10:]).id)
    return shown


def change(store: Path | str, statement: str, *values: Any) -> list[Any]:
    """Let a file or a database do a statement behind the back of everybody; returns its rows."""
    if is_address(store):
        with Address(store).connect() as connection:
            cursor = connection.execute(statement.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []
    with closing(sqlite3.connect(store)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def numbers_of_agents(ranker: Ranker) -> list[int]:
    """The numbers of the queries that have an agent."""
    with ranker._journal.view() as view:
        return [number for number in view.ids("queries") if (stored := ranker._journal.stored(number)) and stored.capacity]


def state_of(served: Any) -> list[Any]:
    """All that an agent in service is, in a form that can be compared."""
    agent = served.agent
    arrays = {name: (value.dtype.str, value.tolist()) for name, value in getattr(agent, "_arrays", dict)().items()}
    own = {} if arrays else {name: repr(value) for name, value in vars(agent).items() if name != "rng"}
    generator = agent.rng.bit_generator.state if hasattr(agent, "rng") else None
    kept = getattr(agent, "_open", None), getattr(agent, "display", None)
    trial = served.trial.to_list(), list(served._trials.items()), served.displays, served.guarded
    return [arrays, own, generator, kept, served.items, served.last.tolist(), served.replaced.tolist(), served.open, trial]


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
