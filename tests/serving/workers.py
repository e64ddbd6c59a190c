"""Several processes that serve from one store in PostgreSQL, while somebody kills them, or the server, or stops one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from postgres_server import Server
from service_kills import faults, start


class Worker:
    """A process that serves, and what it has said."""

    def __init__(self, store: str, seed: int, durable: str) -> None:
        self.process: subprocess.Popen[bytes] = start(store, seed, durable)
        self._lines: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self._lines.extend(iter(self.process.stdout.readline, b""))

    def said(self) -> list[list[str]]:
        """Kill it, and return what it has said in whole lines."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return [line.decode().split() for line in self._lines if line.endswith(b"\n")]


def torment(
    server: Server, store: str, seconds: float, *, workers: int = 4, kill_every: float | None = None, crashes: int = 0,
    stopped: float = 0.0, durable: str = "power", seed: int = 0,
) -> tuple[list[list[str]], int]:  # fmt: skip
    """Let workers serve from a store.

    Args:
        server: where the store is.
        store: its address.
        seconds: for how long.
        workers: how many.
        kill_every: seconds after which one of them is killed, and another one starts; None: none is.
        crashes: how often the server is killed, and started again.
        stopped: for how many seconds one worker is stopped.
        durable: of the workers.
        seed: of the users.

    Returns:
        What was said, and how many workers ended by themselves.
    """
    rng, said, ended, begin = random.Random(seed), list[list[str]](), 0, time.monotonic()
    crew = [Worker(store, rng.randrange(2**32), durable) for _ in range(workers)]
    if stopped:
        os.kill(crew[0].process.pid, signal.SIGSTOP)
    kill_at, crash_at = kill_every or seconds + 1, seconds / (crashes + 1) if crashes else seconds + 1
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        if stopped and now > stopped:
            os.kill(crew[0].process.pid, signal.SIGCONT)
            stopped = 0.0
        if now > kill_at:
            place = rng.randrange(workers)
            said += crew[place].said()
            crew[place] = Worker(store, rng.randrange(2**32), durable)
            kill_at += kill_every or seconds
        if now > crash_at:
            server.kill()
            server.start()
            crash_at += seconds / (crashes + 1)
        time.sleep(0.02)
    for worker in crew:
        ended += worker.process.poll() is not None
        said += worker.said()
    return said, ended


def at_once(function: Callable[[Any], Any], arguments: Collection[Any]) -> list[Any]:
    """What a function returns for some arguments, each in a thread of its own; the first error of any is raised."""
    with ThreadPoolExecutor(len(arguments)) as threads:
        return [*threads.map(function, arguments)]


def gaps(ranker: Any) -> list[str]:
    """The agents whose ticks are not 1 to n without a gap, each of one event."""
    rows = ranker._journal._run(
        "SELECT q.number, q.tick, array_agg(e.tick ORDER BY e.tick) FROM queries q JOIN ("
        "  SELECT agent, tick FROM impressions UNION ALL SELECT agent, ended FROM impressions WHERE ended IS NOT NULL"
        "  UNION ALL SELECT agent, learned FROM impressions WHERE learned IS NOT NULL AND learned <> ended"
        ") e ON e.agent = q.number GROUP BY q.number"
    )
    return [f"query {number} has ticks {ticks}" for number, last, ticks in rows if ticks != [*range(1, last + 1)]]


__all__ = ["Worker", "at_once", "faults", "gaps", "torment"]
