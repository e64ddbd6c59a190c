"""A simulated log of 10⁶ sessions: time and peak memory of reading it, and time of estimation, beside other programs.

    CLAX_PYTHON=other/bin/python python benchmarks/estimation.py

also measures CLAX, where that interpreter has it (``pip install clax-models``, in an environment of its own).

Reading: each in a process of its own, processor time, the faster of two; memory is the growth of the peak. An EM step: the
time of 21 steps less that of one, by twenty; the whole fit: 50 steps with everything before them, by fifty; scoring: both
log-likelihood and perplexity by rank; an epoch of CLAX: one pass of its trainer over the same sessions, after compilation. All
of these by the clock, for they use all processors, and the fastest of three (of CLAX's epochs).
"""

from __future__ import annotations

import math
import multiprocessing
import os
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


CLAX_EPOCHS = 10
CLAX = """
import contextlib, io, os, sys, time
os.environ["JAX_PLATFORMS"] = "cpu"
import clax, numpy as np
from flax import nnx
from flax.training.early_stopping import EarlyStopping
from optax import adam

path, name, size = sys.argv[1], sys.argv[2], 8192
epochs, sessions = map(int, sys.argv[3:])
with np.load(path) as arrays:
    pairs, clicks, n_pairs = arrays["pairs"] + 1, arrays["clicks"].astype(np.float32), int(arrays["n_pairs"])
positions = np.tile(np.arange(1, pairs.shape[1] + 1, dtype=np.int32), (size, 1))

class Batches:
    def __init__(self, first, stop):
        self.starts, self.begun = range(first, stop - size + 1, size), []
    def __len__(self):
        return len(self.starts)
    def __iter__(self):
        self.begun.append(time.perf_counter())
        for start in self.starts:
            part = slice(start, start + size)
            yield {"query_doc_ids": pairs[part], "clicks": clicks[part], "positions": positions, "mask": positions > 0}

models = {"PBM": clax.PositionBasedModel, "UBM": clax.UserBrowsingModel}
model = models[name](positions=pairs.shape[1], query_doc_pairs=n_pairs, rngs=nnx.Rngs(0))
trainer = clax.Trainer(adam(0.05), epochs=epochs, early_stopping=EarlyStopping(patience=epochs))
train, test = Batches(0, sessions), Batches(sessions, len(pairs))
with contextlib.redirect_stdout(io.StringIO()):
    trainer.train(model, train, Batches(0, size))
    seconds = np.diff([*train.begun, time.perf_counter()])
    loss = float(trainer.test_clicks(model, test)["test_loss"].iloc[0])
print(seconds[1:].min(), seconds.sum(), -loss * pairs.shape[1])
"""


def simulated() -> ClickLog:
    """Sessions of a position-based model, some queries far more frequent than others, every query with its own items.

    The last `HELD_OUT` sessions are those to be predicted.
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


def fitting(log: ClickLog, test: ClickLog, name: str, clax: Path | None) -> tuple[list[str], list[str]]:
    """A row of the table of times, and one beside CLAX, which reads the log in the file ``clax``; empty without."""
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
    if clax is None or name not in ("PBM", "UBM"):
        return cells, []
    epoch, trained, reached = clax_training(clax, name)
    return cells, [
        name, f"{step:.3f} µs", f"{epoch / SESSIONS * 1e6:.2f} µs", f"{epoch / SESSIONS * 1e6 / step:.0f}×",
        f"{estimator.score(test):.4f} in {seconds[50]:.1f} s", f"{reached:.4f} in {trained:.1f} s",
    ]  # fmt: skip


def clax_training(clax: Path, name: str) -> list[float]:
    """Seconds of an epoch and of all of them, and the log-likelihood per held-out session after the last."""
    python = os.environ["CLAX_PYTHON"]
    command = [python, "-c", CLAX, str(clax), name, str(CLAX_EPOCHS), str(SESSIONS)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(word) for word in done.stdout.split()]


def write_and_fit(folder: Path) -> list[tuple[list[str], list[str]]]:
    both = simulated()
    log, test = both[:SESSIONS], both[SESSIONS:]
    write_yandex(log, folder / FILES["Yandex Relevance Prediction"])
    for name in ("tidy CSV", "tidy Parquet"):
        write_tidy(log, folder / FILES[name])
    clax = None
    if "CLAX_PYTHON" in os.environ:
        clax = folder / "log.npz"
        pairs, labels = both.pairs()
        np.savez(clax, pairs=pairs, clicks=both.clicks, n_pairs=len(labels))
    for estimator in ESTIMATORS.values():
        small = estimator(1).fit(log[:1000])  # compiles
        small.log_likelihood(log[:1000])
        small.perplexity(log[:1000])
    return [fitting(log, test, name, clax) for name in ESTIMATORS]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # This process stays small, for on Linux the peak of a child begins at that of its parent.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            fitted = pool.submit(write_and_fit, Path(folder)).result()
        read = [[name, *reading(Path(folder, file))] for name, file in FILES.items()]
    header = ["model", "EM step, a session", "whole fit, a session and step", "scoring, a session", "PyClick", "ratios"]
    parts = [
        table(["reading", "10⁶ sessions", "a session", "memory"], read),
        table(header, [times for times, _ in fitted]),
    ]
    beside = [row for _, row in fitted if row]
    if beside:
        header = ["model", "EM step", "CLAX epoch", "ratio", "held out, 50 EM steps", f"CLAX, {CLAX_EPOCHS} epochs"]
        parts.append(table(header, beside))
    publish("\n\n".join(parts))


if __name__ == "__main__":
    main()
