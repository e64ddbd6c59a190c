"""Every agent and every estimator at the edges: `tests/edge_cases.py` and `tests/edge_logs.py`, many times over.

    nice .venv/bin/python benchmarks/reliability/edges.py --runs 4000 --logs 2000

A run is 5 to 40 sessions of a random case, played in Python against the slow reference and then in compiled code. The cases are
functions of the agent's name and of a number from ``--start`` on, so any of them can be played again. They are played in a
process of their own: one that hangs, or dies, is a fault like any other. Exit code 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import edge_cases
import edge_logs

PATIENCE = 300  # seconds without an answer, compilation included, after which a case hangs


def _sessions(name: str, seed: int) -> tuple[int, str]:
    case = edge_cases.draw(name, seed)
    return case.n_sessions, edge_cases.play(case)


def _log(name: str, seed: int) -> tuple[int, str]:
    case = edge_logs.draw(name, seed)
    return len(case), edge_logs.check(name, case, seed)


def _work(play: Callable[[str, int], tuple[int, str]], name: str, seeds: range, answers: Connection) -> None:
    for seed in seeds:
        answers.send((seed, *play(name, seed)))
    answers.close()


def answers(play: Callable[[str, int], tuple[int, str]], name: str, seeds: range) -> Iterator[tuple[int, int, str]]:
    """Seed, sessions and fault of each case, in order, from processes that are replaced when they fail."""
    context = multiprocessing.get_context("fork")
    while seeds:
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(play, name, seeds, there))
        worker.start()
        there.close()
        try:
            while seeds:
                if not here.poll(PATIENCE):
                    worker.kill()
                    yield seeds[0], 0, f"hangs: no answer in {PATIENCE} s"
                    seeds = seeds[1:]
                    break
                yield here.recv()
                seeds = seeds[1:]
        except EOFError:
            worker.join()
            yield seeds[0], 0, f"dies with exit code {worker.exitcode}"
            seeds = seeds[1:]
        worker.join()


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000, help="of each agent")
    parser.add_argument("--logs", type=int, default=2000, help="of each estimator")
    parser.add_argument("--start", type=int, default=0, help="the first number")
    parser.add_argument("--only", nargs="*", help="names of agents or estimators")
    given = parser.parse_args()
    agents = [name for name in edge_cases.EVERY_AGENT if not given.only or name in given.only]
    estimators = [name for name in edge_logs.CHECKS if not given.only or name in given.only]
    faults = hunt("agent", _sessions, agents, range(given.start, given.start + given.runs))
    faults += hunt("estimator", _log, estimators, range(given.start, given.start + given.logs))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
