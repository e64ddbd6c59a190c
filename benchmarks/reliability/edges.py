"""Every agent and every estimator at the edges: `tests/edge_cases.py` and `tests/edge_logs.py`, many times over.

    nice .venv/bin/python benchmarks/reliability/edges.py --runs 4000 --logs 2000

A run is 5 to 40 sessions of a random case, played in Python against the slow reference and then in compiled code. The cases are
functions of the agent's name and of a number from ``--start`` on, so any of them can be played again. They are played in a
process of their own: one that hangs, or dies, is a fault like any other. Exit code 1 if there is a fault.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import edge_cases
import edge_logs
import typer

PATIENCE = 300  # seconds without an answer, compilation included, after which a case hangs


def _sessions(name: str, seed: int) -> tuple[int, str]:
    case = edge_cases.draw(name, seed)
    return case.n_sessions, edge_cases.play(case)


def _log(name: str, seed: int) -> tuple[int, str]:
    case = edge_logs.draw(name, seed)
    return len(case), edge_logs.check(name, case, seed)


def answers(play: Callable[[str, int], tuple[int, str]], name: str, seeds: range) -> Iterator[tuple[int, int, str]]:
    """Seed, sessions and fault of each case, in order, from a process that is replaced when it fails."""
    pool = (context := multiprocessing.get_context("fork")).Pool(1)
    for seed in seeds:
        try:
            yield seed, *pool.apply_async(play, (name, seed)).get(PATIENCE)
        except multiprocessing.TimeoutError:  # the pool replaces a process that dies, but what it was asked is lost
            yield seed, 0, f"hangs, or dies: no answer in {PATIENCE} s"
            pool.terminate()
            pool = context.Pool(1)
    pool.terminate()


def hunt(title: str, play: Callable[[str, int], tuple[int, str]], names: list[str], seeds: range) -> int:
    """Print the table of one kind of cases; returns the number of faults."""
    print(f"{title:24} {'runs':>7} {'sessions':>9} {'refused':>8} {'faults':>7} {'seconds':>8}", flush=True)
    total = Counter[str]()
    for name in names if seeds else []:
        count, shown, before = Counter[str](), [], time.perf_counter()
        for seed, sessions, fault in answers(play, name, seeds):
            refused = fault.startswith("refused")
            count.update(runs=1, sessions=sessions, refused=refused, faults=bool(fault) and not refused)
            if fault and not refused and len(shown) < 5:
                shown.append(f"    {name}, seed {seed}: {fault}")
        total.update(count)
        _row(name, count, time.perf_counter() - before)
        print(*shown, sep="\n", end="\n" if shown else "", flush=True)
    _row("in all", total, 0.0)
    return total["faults"]


def _row(name: str, count: Counter[str], seconds: float) -> None:
    numbers = [count[column] for column in ("runs", "sessions", "refused", "faults")]
    print("{:24} {:7} {:9} {:8} {:7} {:8.0f}".format(name, *numbers, seconds), flush=True)


def main(runs: int = 4000, logs: int = 2000, start: int = 0, only: list[str] | None = None) -> None:
    """Play so many runs of each agent and logs of each estimator, from a number on; or of those that ``--only`` names."""
    agents = [name for name in edge_cases.EVERY_AGENT if not only or name in only]
    estimators = [name for name in edge_logs.CHECKS if not only or name in only]
    faults = hunt("agent", _sessions, agents, range(start, start + runs))
    faults += hunt("estimator", _log, estimators, range(start, start + logs))
    raise SystemExit(faults > 0)


if __name__ == "__main__":
    typer.run(main)
