"""EM to convergence on a simulated log of 10⁶ sessions and on a real one: plain against
extrapolated steps, and beside CLAX.

    CLICKGYM_DATA=folder CLAX_PYTHON=other/bin/python python benchmarks/convergence.py

The real log is ``yandex_sample/yandex_sample_tidy.csv.gz`` in that folder, and CLAX is run by that
interpreter, which has it (``pip install clax-models 'jax<0.7.1' 'jaxlib<0.7.1'``); what has no
variable is left out.

Both sides of a ratio are the same estimator on the same sessions, in turns, on the real log the
fastest of three: once with the number of plain steps after which a step gains less than `TOL` per
session, once with that ``tol``. Seconds are of the whole fit, processor time of all threads and, in
brackets, by the clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from estimation import HELD_OUT, SESSIONS, simulated
from report import publish, table

from clickgym_logs import (
    CCMEstimator,
    ClickLog,
    DBNEstimator,
    DCMEstimator,
    PBMEstimator,
    UBMEstimator,
    hold_out,
    read_log,
)
from clickgym_logs.estimation.estimator import EMEstimator

TOL, CHUNK = 1e-7, 100
ESTIMATORS: dict[str, Callable[..., EMEstimator]] = {
    "PBM": PBMEstimator,
    "UBM": UBMEstimator,
    "DCM": lambda *steps: DCMEstimator("em", *steps),
    "DBN": DBNEstimator,
    "CCM": CCMEstimator,
}

# Of each log: repetitions; sessions of a batch of CLAX, and its epochs; and its models.
RUNS = {"simulated": (1, (8192, 10), ("PBM", "UBM")), "real": (3, (512, 20), tuple(ESTIMATORS))}
CLAX = """
import contextlib, io, os, sys, time
os.environ["JAX_PLATFORMS"] = "cpu"
import clax, numpy as np
from flax import nnx
from flax.training.early_stopping import EarlyStopping
from optax import adam

path, name = sys.argv[1], sys.argv[2]
size, epochs, sessions = map(int, sys.argv[3:])
with np.load(path) as arrays:
    pairs, clicks, n_pairs = arrays["pairs"] + 1, arrays["clicks"].astype(np.float32), int(arrays["n_pairs"])
positions = np.tile(np.arange(1, pairs.shape[1] + 1, dtype=np.int32), (size, 1))

class Batches:
    def __init__(self, first, stop):
        self.first, self.stop = first, stop
    def __len__(self):
        return -(-(self.stop - self.first) // size)
    def __iter__(self):
        for start in range(self.first, self.stop, size):
            part = slice(start, min(start + size, self.stop))
            here = positions[: part.stop - start]
            yield {"query_doc_ids": pairs[part], "clicks": clicks[part], "positions": here, "mask": here > 0}

kinds = {"PBM": clax.PositionBasedModel, "UBM": clax.UserBrowsingModel, "DCM": clax.DependentClickModel,
         "DBN": clax.DynamicBayesianNetwork, "CCM": clax.ClickChainModel}
settings = {"positions": pairs.shape[1]} if name in ("PBM", "UBM", "DCM") else {}
model = kinds[name](query_doc_pairs=n_pairs + 1, rngs=nnx.Rngs(0), **settings)
trainer = clax.Trainer(adam(0.05), epochs=epochs, early_stopping=EarlyStopping(patience=epochs))
train, test = Batches(0, sessions), Batches(sessions, len(pairs))
clock, processor = time.perf_counter(), time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    trainer.train(model, train, Batches(0, size))
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    scores = trainer.test_clicks(model, test).iloc[0]
print(clock, processor, float(scores["test_ll"]) * pairs.shape[1], scores["test_ppl"], scores["test_cond_ppl"])
"""


def timed(work: Callable[[], EMEstimator]) -> tuple[float, float, EMEstimator]:
    """Seconds of processor time and by the clock."""
    clock, processor = time.perf_counter(), time.process_time()
    done = work()
    return time.process_time() - processor, time.perf_counter() - clock, done


def plain_steps(make: Callable[..., EMEstimator], log: ClickLog) -> int:
    """After how many plain steps one gains less than the tolerance."""
    steps, estimator = 0, None
    while True:
        estimator = make(CHUNK).fit(log, start=estimator)
        small = np.diff(estimator.log_posterior_) < TOL * len(log)
        if small.any():
            return steps + int(small.argmax()) + 1
        steps += CHUNK


def converging(
    name: str, train: ClickLog, repeats: int
) -> tuple[list[str], EMEstimator, float, float]:
    """A row of the table; the estimator, and its seconds."""
    make = ESTIMATORS[name]
    make(1).fit(train[:1000])  # compiles
    steps, part = plain_steps(make, train), make(1000, TOL).fit(hold_out(train, 0.2)[0])
    ways: dict[str, Callable[[], EMEstimator]] = {
        "plain": lambda: make(steps).fit(train),
        "extrapolated": lambda: make(1000, TOL).fit(train),
        "from a part": lambda: make(1000, TOL).fit(train, start=part),
    }
    runs = [{way: timed(work) for way, work in ways.items()} for _ in range(repeats)]
    best = {way: min((run[way] for run in runs), key=lambda times: times[0]) for way in ways}
    plain, short = best["plain"], best["extrapolated"]
    cells = [
        f"{done.n_iter_} in {processor:.3g} s ({clock:.3g})"
        for processor, clock, done in best.values()
    ]
    gain = (short[2].log_posterior_[-1] - plain[2].log_posterior_[-1]) / len(train)
    ratios = f"{steps / short[2].n_iter_:.1f}× / {plain[0] / short[0]:.1f}×"
    return [name, *cells[:2], ratios, f"{gain:+.1e}", cells[2]], short[2], *short[:2]


def beside_clax(log: Path, name: str, size: int, epochs: int, sessions: int) -> list[str]:
    """What CLAX reaches, and how long it trains for that, with compilation."""
    command = [
        os.environ["CLAX_PYTHON"],
        "-c",
        CLAX,
        str(log),
        name,
        *map(str, (size, epochs, sessions)),
    ]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    clock, processor, likelihood, perplexity, conditional = map(float, done.stdout.split())
    seconds = f"{processor:.3g} s ({clock:.3g})"
    return [
        f"CLAX {name}, {epochs} epochs",
        f"{likelihood:.4f}",
        f"{conditional:.5f}",
        f"{perplexity:.5f}",
        seconds,
    ]


def save(path: Path, train: ClickLog, test: ClickLog) -> None:
    """The sessions of both as CLAX is given them, their pairs numbered together."""
    numbers: dict[tuple[str, str], int] = {}
    rows = []
    for log in (train, test):
        pairs, labels = log.pairs()
        rows.append(np.array([numbers.setdefault(label, len(numbers)) for label in labels])[pairs])
    np.savez(
        path,
        pairs=np.concatenate(rows),
        clicks=np.concatenate([train.clicks, test.clicks]),
        n_pairs=len(numbers),
    )


def main() -> None:
    both = simulated()
    logs = {"simulated": (both[:SESSIONS], both[SESSIONS : SESSIONS + HELD_OUT])}
    del both
    if "CLICKGYM_DATA" in os.environ:
        path = Path(os.environ["CLICKGYM_DATA"], "yandex_sample", "yandex_sample_tidy.csv.gz")
        logs["real"] = read_log(path, "train"), read_log(path, "test")
    parts = []
    for which, (train, test) in logs.items():
        (repeats, batches, models), rows, beside = RUNS[which], [], []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "log.npz")
            if "CLAX_PYTHON" in os.environ:
                save(file, train, test)
            for name in ESTIMATORS:
                row, fitted, processor, clock = converging(name, train, repeats)
                rows.append(row)
                scores = [f"{fitted.score(test):.4f}", f"{fitted.conditional_perplexity(test):.5f}"]
                scores += [f"{fitted.perplexity(test):.5f}", f"{processor:.3g} s ({clock:.3g})"]
                beside.append([name, *scores])
                print(row, beside[-1], file=sys.stderr, flush=True)
                if file.exists() and name in models:
                    beside.append(beside_clax(file, name, *batches, len(train)))
        title = f"{len(train):,} {which} sessions"
        header = [
            title,
            "plain steps",
            "extrapolated",
            "ratios: steps / seconds",
            "gain",
            "from a fit to 80 %",
        ]
        parts.append(table(header, rows))
        parts.append(
            table(
                [
                    f"{len(test):,} held out",
                    "log-likelihood",
                    "conditional",
                    "perplexity",
                    "fitted in",
                ],
                beside,
            )
        )
    publish("\n\n".join(parts))


if __name__ == "__main__":
    main()
