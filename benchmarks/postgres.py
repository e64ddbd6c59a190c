"""Speed of `clickgym.Ranker` with PostgreSQL, in one run beside SQLite.

    python benchmarks/postgres.py --write

Two workers, which are processes, with two clients each, 200 queries with 10 candidates, CascadeTS, K = 5; a session is `rank`,
`click` and `close`. The server runs on the same machine, so they share its processors. ``POSTGRES_SESSIONS=400`` makes it
shorter, ``POSTGRES_QUERIES=1000`` the store of many queries smaller.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from report import publish, table
from serving import CANDIDATES, K, visits

from clickgym import Ranker

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "serving"))
from postgres_server import Server, serving

SESSIONS, QUERIES = int(os.environ.get("POSTGRES_SESSIONS", "3000")), 200
MANY, COLD = int(float(os.environ.get("POSTGRES_QUERIES", "1e5"))), 1000
CLIENTS = 2
"""Threads of a worker."""


def work(store: str | None, durable: str, queries: list[str], clients: int) -> None:
    """Serve when told to, and print how long that took, of the clock and of the processor, and the waits."""
    with Ranker(n_positions=K, store=store, durable=durable, seed=0) as ranker:
        for query in dict.fromkeys(queries):
            ranker.rank(query, CANDIDATES)
        print("ready", flush=True)
        sys.stdin.readline()
        begin, processor = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(clients) as pool:
            served = list(pool.map(lambda i: visits(ranker, queries[i::clients], close=True), range(clients)))
        times = time.perf_counter() - begin, time.process_time() - processor
        print(*times, *(wait for part in served for wait, _ in part), flush=True)


def measured(store: str, durable: str, sticky: bool, workers: int = 2) -> list[str]:
    """A row: sessions a second, the 99 % quantile of `rank` in ms, and microseconds of the workers' processor a session."""
    words = [sys.executable, __file__, "--work", store, durable]
    kinds = [[*words, str(number), str(workers if sticky else 1)] for number in range(workers)]
    crew: list[Any] = [subprocess.Popen(each, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for each in kinds]
    for each in crew:
        assert each.stdout.readline() == "ready\n"
    for each in crew:
        each.stdin.write("go\n")
        each.stdin.flush()
    rows = [np.array(each.communicate()[0].split(), float) for each in crew]
    waits, n = np.concatenate([row[2:] for row in rows]), sum(len(row) - 2 for row in rows)
    processor = sum(row[1] for row in rows) / n * 1e6
    return [f"{n / max(row[0] for row in rows):,.0f}", f"{np.quantile(waits, 0.99) * 1e3:.1f}", f"{processor:,.0f}"]


def queries_of(worker: int, of: int) -> list[str]:
    rng = random.Random(worker)
    return [f"query-{worker + of * rng.randrange(QUERIES // of)}" for _ in range(SESSIONS)]


def cold(server: Server) -> list[str]:
    """A row: how long `rank` takes, in ms, for queries whose agents are not in memory, in a store of many."""
    store = server.address(schema="many")
    with Ranker(n_positions=K, store=store, seed=0) as ranker:
        ranker.rank("query-0", CANDIDATES)
        journal: Any = ranker._journal
        bits, slots = np.packbits(np.arange(20) < 10).tobytes(), [part for i in range(10) for part in (i, i)]
        from clickgym.serving.postgres import _key

        for first in range(1, MANY, 10_000):
            names = [f"query-{i}" for i in range(first, min(first + 10_000, MANY))]
            journal._run(
                "INSERT INTO queries (key, id, capacity, tick, version) "
                "SELECT *, 20, 2, 2000000 FROM unnest(%s::bytea[], %s::text[])",
                ([_key(name) for name in names], [f'"{name}"' for name in names]),
            )
        journal._run(
            "INSERT INTO impressions (number, agent, tick, query, shown, source, items, candidates, placed, closed, seen, "
            "clicks, learned, ended) "
            "SELECT number, number, 1, number, 1000000, 3, '{0,1,2,3,4}', %b, %s, 1000000, 5, '{1}', 2, 2 "
            "FROM queries WHERE tick = 2",
            (bits, slots),
        )
        names = [f"query-{i}" for i in random.Random(0).sample(range(1, MANY), min(COLD, MANY // 2))]
        waits = np.array(visits(ranker, names, close=True))[:, 0]
        return [f"{MANY:,} queries", *(f"{np.quantile(waits, q) * 1e3:.1f}" for q in (0.5, 0.99))]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving() as server:
        rows = [["SQLite, one process", *measured(str(Path(folder, "s.db")), "kill", True, workers=1)]]
        for durable, words in (("power", "synchronous"), ("kill", "asynchronous")):
            for sticky in (True, False):
                route = "each query to one worker" if sticky else "to any worker"
                store = server.address(schema=f"{words}_{'one' if sticky else 'any'}")
                rows.append([f"PostgreSQL, {words} commit, {route}", *measured(store, durable, sticky)])
        parts = [
            table(["two workers, four clients", "sessions a second", "`rank`, ms, 99 %", "processor, µs a session"], rows),
            table(["`rank` of an agent that is not in memory, ms", "half", "99 %"], [cold(server)]),
        ]
    publish("\n\n".join(parts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        store, durable, number, of = sys.argv[2:]
        n_clients = CLIENTS if store.startswith("postgres") else 2 * CLIENTS
        work(store, durable, queries_of(int(number), int(of)), n_clients)
    else:
        main()
