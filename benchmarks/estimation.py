"""A simulated log of 10⁶ sessions: time and peak memory of reading it, and time of estimation, beside PyClick's.

Reading: each in a process of its own, processor time, the faster of two; memory is the growth of the peak. An EM step: the
time of 21 steps less that of one, by twenty; the whole fit: 50 steps with everything before them, by fifty; scoring: both
log-likelihood and perplexity by rank. All of these by the clock, for they use all processors, and the fastest of three.
"""

from __future__ import annotations

import math
import multiprocessing
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from report import publish, table

from clickgym.offline import ClickLog, DBNEstimator, DCMEstimator, PBMEstimator, UBMEstimator, write_tidy

SESSIONS, HELD_OUT, QUERIES, ITEMS, POSITIONS = 1_000_000, 100_000, 20_000, 20, 10
REPEATS = 3

# Microseconds per session and EM iteration that PyClick (github.com/markovi/PyClick, in Python) took on the same machine on a
# real log of 10 positions. The package index has another project of that name, so it is not run here.
PYCLICK = {"PBM": 29.0, "UBM": 43.0, "DBN": 1505.0}
ESTIMATORS = {
    "PBM": PBMEstimator,
    "UBM": UBMEstimator,
    "DBN": DBNEstimator,
    "DCM, exact EM": lambda iterations: DCMEstimator("em", iterations),
}
FILES = {"Yandex Relevance Prediction": "log.tsv", "tidy CSV": "log.csv", "tidy Parquet": "log.parquet"}
READ = """
import resource, sys, time
import clickgym.offline
begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
log = clickgym.offline.read_log(sys.argv[1])
assert len(log) == int(sys.argv[2])
print(time.process_time() - begun, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def simulated() -> ClickLog:
    """Sessions of a position-based model, some queries far more frequent than others, every query with its own items.

    The last `HELD_OUT` sessions are there to be predicted.
    """
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, QUERIES + 1)
    queries = rng.choice(QUERIES, SESSIONS + HELD_OUT, p=popularity / popularity.sum()).astype(np.int32)
    order = rng.random((SESSIONS + HELD_OUT, ITEMS)).argsort(axis=1)[:, :POSITIONS]
    items = (queries[:, None] * ITEMS + order).astype(np.int32)
    attraction = rng.beta(1, 2, QUERIES * ITEMS)
    clicks = rng.random(items.shape) < attraction[items] * 0.9 ** np.arange(POSITIONS)
    labels = tuple(map(str, range(QUERIES * ITEMS)))
    return ClickLog(items, clicks, queries, labels, tuple(map(str, range(QUERIES))))


def write_yandex(log: ClickLog, path: Path) -> None:
    """The log in the format of Relevance Prediction 2011."""
    with path.open("w") as file:
        for session, (query, items, clicks) in enumerate(zip(log.queries, log.items, log.clicks, strict=True)):
            file.write(f"{session}\t0\tQ\t{query}\t0\t" + "\t".join(map(str, items)) + "\n")
            file.writelines(f"{session}\t1\tC\t{item}\n" for item in items[clicks == 1])


def reading(path: Path) -> list[str]:
    measured = []
    for _ in range(2):
        command = [sys.executable, "-c", READ, str(path), str(SESSIONS)]
        measured.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    seconds, megabytes = (min(float(value) for value in values) for values in zip(*measured, strict=True))
    return [f"{seconds:.1f} s", f"{seconds / SESSIONS * 1e6:.1f} µs", f"{megabytes:.0f} MB"]


def fitting(log: ClickLog, name: str) -> list[str]:
    """A row of the table of times."""
    seconds = dict.fromkeys((1, 21, 50), math.inf)
    for _ in range(REPEATS):
        for steps in seconds:
            start = time.perf_counter()
            ESTIMATORS[name](steps).fit(log)
            seconds[steps] = min(time.perf_counter() - start, seconds[steps])
    estimator = ESTIMATORS[name](50).fit(log)
    scoring = math.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        estimator.log_likelihood(log)
        estimator.perplexity_by_rank(log)
        scoring = min(time.perf_counter() - start, scoring)
    step, whole = (seconds[21] - seconds[1]) / 20 / SESSIONS * 1e6, seconds[50] / 50 / SESSIONS * 1e6
    cells = [name, f"{step:.3f} µs", f"{whole:.3f} µs", f"{scoring / SESSIONS * 1e6:.3f} µs"]
    if name in PYCLICK:
        cells += [f"{PYCLICK[name]:.0f} µs", f"{PYCLICK[name] / step:,.0f}× / {PYCLICK[name] / whole:,.0f}×"]
    else:
        cells += ["", ""]
    return cells


def write_and_fit(folder: Path) -> list[list[str]]:
    log = simulated()[:SESSIONS]
    write_yandex(log, folder / FILES["Yandex Relevance Prediction"])
    for name in ("tidy CSV", "tidy Parquet"):
        write_tidy(log, folder / FILES[name])
    for estimator in ESTIMATORS.values():
        small = estimator(1).fit(log[:1000])  # compiles
        small.log_likelihood(log[:1000])
        small.perplexity(log[:1000])
    return [fitting(log, name) for name in ESTIMATORS]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # This process stays small, for on Linux the peak of a child begins at that of its parent.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            fitted = pool.submit(write_and_fit, Path(folder)).result()
        read = [[name, *reading(Path(folder, file))] for name, file in FILES.items()]
    header = ["model", "EM step, a session", "whole fit, a session and step", "scoring, a session", "PyClick", "ratios"]
    publish(table(["reading", "10⁶ sessions", "a session", "memory"], read) + "\n\n" + table(header, fitted))


if __name__ == "__main__":
    main()
