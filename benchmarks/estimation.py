"""A simulated log of 10⁶ sessions: time of estimation, beside PyClick's.

An EM step: the time of 21 steps less that of one, by twenty; the whole fit: 50 steps with
everything before them, by fifty;
scoring: both log-likelihood and perplexity by rank. All by the clock, for they use all processors,
    and the fastest of three.
"""

from __future__ import annotations

from functools import partial
from timeit import repeat, timeit

import numpy as np
from report import publish, table

from clickgym_logs import ClickLog, DBNEstimator, DCMEstimator, PBMEstimator, UBMEstimator

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


def simulated() -> ClickLog:
    """Sessions of a position-based model, some queries far more frequent than others, every query
    with its own items.

    The last `HELD_OUT` sessions are there to be predicted.
    """
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, QUERIES + 1)
    queries = rng.choice(QUERIES, SESSIONS + HELD_OUT, p=popularity / popularity.sum()).astype(
        np.int32
    )
    order = rng.random((SESSIONS + HELD_OUT, ITEMS)).argsort(axis=1)[:, :POSITIONS]
    items = (queries[:, None] * ITEMS + order).astype(np.int32)
    attraction = rng.beta(1, 2, QUERIES * ITEMS)
    clicks = rng.random(items.shape) < attraction[items] * 0.9 ** np.arange(POSITIONS)
    labels = tuple(map(str, range(QUERIES * ITEMS)))
    return ClickLog(items, clicks, queries, labels, tuple(map(str, range(QUERIES))))


def fitting(log: ClickLog, name: str) -> list[str]:
    """A row of the table of times."""
    fits = [partial(ESTIMATORS[name](steps).fit, log) for steps in (1, 21, 50)]
    rounds = [[timeit(fit, number=1) for fit in fits] for _ in range(REPEATS)]
    one, more, most = map(min, zip(*rounds, strict=True))
    estimator = fits[-1]()
    scoring = min(
        repeat(
            lambda: (estimator.log_likelihood(log), estimator.perplexity_by_rank(log)),
            number=1,
            repeat=REPEATS,
        )
    )
    step, whole = (more - one) / 20 / SESSIONS * 1e6, most / 50 / SESSIONS * 1e6
    cells = [name, f"{step:.3f} µs", f"{whole:.3f} µs", f"{scoring / SESSIONS * 1e6:.3f} µs"]
    theirs = PYCLICK.get(name)
    return [
        *cells,
        *(
            [f"{theirs:.0f} µs", f"{theirs / step:,.0f}× / {theirs / whole:,.0f}×"]
            if theirs
            else ["", ""]
        ),
    ]


def main() -> None:
    log = simulated()[:SESSIONS]
    for estimator in ESTIMATORS.values():
        small = estimator(1).fit(log[:1000])  # compiles
        small.log_likelihood(log[:1000])
        small.perplexity(log[:1000])
    header = [
        "model",
        "EM step, a session",
        "whole fit, a session and step",
        "scoring, a session",
        "PyClick",
        "ratios",
    ]
    publish(table(header, [fitting(log, name) for name in ESTIMATORS]))


if __name__ == "__main__":
    main()
