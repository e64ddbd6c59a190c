"""Workers that share a store in PostgreSQL: kill them, kill the server, stop one; what was acknowledged must be in the store.

    python benchmarks/reliability/workers.py --seconds 60

Four workers serve; one of them is killed each second. Then the server is killed five times (SIGKILL, of all its processes) and
started again. Then one worker is stopped for ten seconds. Then two workers make 10⁴ calls on one query, and the share of calls
that gave up after eight attempts is printed. After each, all that was acknowledged must be there, clicks once; each agent must
be, bit for bit, what a replay of all events makes of it; and no tick may be missing. It starts a server of its own.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "serving"))
import typer
from postgres_server import serving
from service_kills import numbers_of_agents, states_that_differ
from workers import faults, gaps, torment

from clickgym import Ranker


def one_query(store: str, calls: int) -> tuple[int, int, list[str]]:
    """Two workers on one query: how many calls were acknowledged, how many gave up, and what is wrong then."""
    rankers: list[Any] = [Ranker(store=store, n_positions=3, seed=1) for _ in range(2)]
    rankers[0].rank("q", list("abcdef"))
    done: list[int] = []
    given_up: list[str] = []

    def serve(ranker: Any) -> None:
        while len(done) + len(given_up) < calls:
            try:
                shown = ranker.rank("q")
                done.append(1)
                assert ranker.click(shown.id, position=1)
                done.append(1)
                assert ranker.close(shown.id)
                done.append(1)
            except OSError as error:
                given_up.append(str(error))

    with ThreadPoolExecutor(len(rankers)) as pool:
        list(pool.map(serve, rankers))
    for ranker in rankers:  # an agent that another worker has overtaken meets what it has missed with its next call
        ranker._agents._wary |= dict.fromkeys(numbers_of_agents(ranker), 1)
    found = gaps(rankers[0]) + [
        f"a worker has another state of query {number}" for ranker in rankers for number in states_that_differ(ranker)
    ]
    return len(done), len(given_up), found


def main(seconds: float = 60.0, calls: int = 10_000) -> None:
    """Kill workers, and the server, for so many seconds each; then two workers make so many calls on one query."""
    n_faults = 0
    settings: dict[str, dict[str, Any]] = {
        "one of four workers killed each second": {"seconds": seconds, "kill_every": 1.0},
        "the server killed five times": {"seconds": seconds, "crashes": 5},
        "a worker stopped for ten seconds": {"seconds": 15.0, "stopped": 10.0},
    }
    with serving() as server:
        for number, (what, how) in enumerate(settings.items()):
            store = server.address(schema=f"torment_{number}")
            said, ended = torment(server, store, workers=4, **how)
            found = faults(store, said)
            with Ranker(store=store, n_positions=3) as ranker:
                found += gaps(ranker)
            n_faults += len(found)
            n = sum(kind != "c" for kind, *_ in said)
            print(f"{what}: {n:,} calls acknowledged, {ended} workers ended, {len(found)} faults")
            print(*found[:10], sep="\n", end="\n" * bool(found), flush=True)
        acknowledged, given_up, found = one_query(server.address(schema="one"), calls)
        n_faults += len(found)
        print(f"two workers on one query: {acknowledged:,} calls acknowledged, {given_up:,} gave up, {len(found)} faults")
        print(*found, sep="\n", end="\n" * bool(found))
    raise SystemExit(n_faults > 0)


if __name__ == "__main__":
    typer.run(main)
