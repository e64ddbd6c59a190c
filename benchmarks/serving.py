"""Speed of `clickgym.Ranker`: calls a second by what they survive, waiting times, large stores, and other libraries.

    python benchmarks/serving.py --write

Beside it, where they are installed (``pip install vowpalwabbit mabwiser``), Vowpal Wabbit and MABWiser's Thompson
sampling rank for the same users. The calls with ``durable="power"`` wait for the disk, so their times are those of a clock, as
are waiting times; all others are of the processor. ``SERVING_IMPRESSIONS=1e5`` makes the large store smaller.
"""

from __future__ import annotations

import importlib.util
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from report import Timed, mean_text, publish, table

import clickgym
from clickgym import Ranker
from clickgym.core.files import in_bytes
from clickgym.offline import fit_models, read_log
from clickgym.offline.stores import sum_of, sum_of_click, sum_of_impression
from clickgym.serving.store import insertion

QUERIES, SESSIONS, K = 100, 10_000, 5
CANDIDATES = [f"sku-{i}" for i in range(10)]
LARGE = int(float(os.environ.get("SERVING_IMPRESSIONS", "1e7")))
HORIZON, RUNS = 5_000, 4


def queries_of(sessions: int, seed: int = 0) -> list[str]:
    """The queries of some sessions."""
    return random.Random(seed).choices([f"query-{i}" for i in range(QUERIES)], k=sessions)


def visits(ranker: Ranker, queries: Sequence[str], *, close: bool = False) -> list[tuple[float, float]]:
    """A session with a click for each query; how long each rank took, by the clock and of the processor."""
    waits = []
    for query in queries:
        start, begin = time.perf_counter(), time.thread_time()
        shown = ranker.rank(query, CANDIDATES)
        waits.append((time.perf_counter() - start, time.thread_time() - begin))
        ranker.click(shown.id, shown.items[0])
        if close:
            ranker.close(shown.id)
    return waits


def calls_a_second(folder: Path) -> list[list[str]]:
    """Sessions a second, by what they survive: the fastest of three."""
    rows = []
    for what, settings, close in (
        ("in memory, `rank` + `click`", {}, False),
        ("that survive a kill, `rank` + `click`", {"store": folder / "kill.db"}, False),
        ("that survive a kill, `rank` + `click` + `close`, learned at once", {"store": folder / "close.db"}, True),
    ):
        with Ranker(n_positions=K, seed=0, **settings) as ranker:
            visits(ranker, queries_of(1000), close=close)
            times = []
            for _ in range(3):
                start = np.array([time.process_time(), time.perf_counter()])
                visits(ranker, queries_of(SESSIONS), close=close)
                times.append([time.process_time(), time.perf_counter()] - start)
        rows.append([what, *(f"{SESSIONS / seconds:,.0f}" for seconds in np.min(times, axis=0))])
    return rows


def interleaved() -> list[list[str]]:
    """Processor time of `Ranker.rank` in memory without and with `by=`, all lists interleaved: the least of three means."""
    kinds: dict[str, dict[str, object]] = {
        "without `by=`": {}, "`by=\"team_draft\"`": {"by": "team_draft"}, "`by=\"probabilistic\"`": {"by": "probabilistic"},
        "`by=\"team_draft\"`, a challenger": {"by": "team_draft", "challenger": "CascadeKLUCB"},
    }  # fmt: skip
    means: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(3):
        for name, settings in kinds.items():
            ranker = Ranker(n_positions=K, seed=0, production=lambda query, ids: ids, interleaved_share=1.0, **settings)
            means[name].append(np.mean(visits(ranker, queries_of(1000), close=True), axis=0)[1])
    return [[name, f"{1e6 * min(each):,.0f} µs"] for name, each in means.items()]


def power(folder: Path) -> list[list[str]]:
    """Calls a second that wait for the disk, beside what the disk itself does."""
    rate = syncs_a_second(folder / "sync")
    rows = [["the disk itself: 4 kB written and synchronised", f"{rate:,.0f}", ""]]
    for threads in (1, 8, 32):
        with Ranker(n_positions=K, seed=0, store=folder / f"power{threads}.db", durable="power") as ranker:
            visits(ranker, queries_of(20))
            each, begin = max(200 // threads, 20), time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(partial(visits, ranker), [queries_of(each, seed) for seed in range(threads)]))
            calls = 2 * threads * each / (time.perf_counter() - begin)
        name = "1 thread" if threads == 1 else f"{threads} threads, whose commits are joined"
        rows.append([f'calls with `durable="power"`, {name}', f"{calls:,.0f}", f"{calls / rate:.2f}"])
    return rows


def syncs_a_second(file: Path) -> float:
    with file.open("wb", buffering=0) as out:
        n, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < 1.0:
            out.write(bytes(4096))
            os.fdatasync(out.fileno())
            n += 1
    return n / (time.perf_counter() - begin)


def waiting(folder: Path) -> list[list[str]]:
    """How long `rank` takes while snapshots are written, in milliseconds: by agents of their own, and by hand in between."""
    with Ranker(n_positions=K, seed=0, store=folder / "waits.db") as ranker:
        visits(ranker, queries_of(1000), close=True)
        before = ranker._journal.connection.execute("SELECT sum(tick) FROM snapshots").fetchone()
        waits = np.array(visits(ranker, queries_of(5 * SESSIONS), close=True)) * 1e3
        assert ranker._journal.connection.execute("SELECT sum(tick) FROM snapshots").fetchone() != before
    names = ("`rank` while states are written, ms by the clock", "ms of the processor")
    quantiles = (0.5, 0.99, 0.999, 1.0)
    return [[name, *(f"{np.quantile(of, q):.2f}" for q in quantiles)] for name, of in zip(names, waits.T, strict=True)]


def large(folder: Path) -> list[list[str]]:
    """A store of many impressions: how long it takes to open it, to read its log, and to fit a model to that."""
    store = folder / "large.db"
    with Ranker(n_positions=K, seed=0, store=store) as ranker:
        ranker.rank("query-0", CANDIDATES)
    rng, n_queries = np.random.default_rng(0), max(LARGE // 1000, 1)
    model = gym.make("PBMRank-v0").unwrapped.model
    with closing(clickgym.serving.store.sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        queries = [(i, f"query-{i}", 20, None, None) for i in range(2, n_queries + 2)]
        connection.executemany(insertion("queries"), ((*row, sum_of(*row)) for row in queries))
        bits = np.packbits(np.arange(20) < 10).tobytes()
        for first in range(2, LARGE, 500_000):
            n = min(500_000, LARGE - first)
            lists = np.argsort(rng.random((n, 10)), axis=1)[:, :K].astype(np.int32)
            rows = (
                (when, query, when, 0, None, shown.tobytes(), bits, None, when, 5, when)
                for when, query, shown in zip(
                    range(first, first + n), rng.integers(2, n_queries + 2, n).tolist(), lists, strict=True
                )
            )
            connection.executemany(insertion("impressions"), ((*row, sum_of_impression(*row)) for row in rows))
            clicked = rng.random((n, K)) < model.attraction[lists] * model.examination
            places = np.argwhere(clicked) + np.array([first, 1])
            connection.executemany(
                insertion("clicks"), ((*place, 0, 0, sum_of_click(*place, 0, 0)) for place in places.tolist())
            )
        values = (LARGE + 1000, sum_of("tick", LARGE + 1000))
        connection.execute("UPDATE settings SET value = ?, checksum = ? WHERE name = 'tick'", values)
        connection.execute("COMMIT")
    times = [time.perf_counter()]
    with Ranker(n_positions=K, store=store) as ranker:
        times.append(time.perf_counter())
        log = read_log(store)
        times.append(time.perf_counter())
        fit_models(log, ["PBM"], test_share=0.2)
        times.append(time.perf_counter())
        del log
        ranker.report()
        times.append(time.perf_counter())
    size = in_bytes(store.stat().st_size)
    store.unlink()
    cells = (f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}" for seconds in np.diff(times))
    return [[f"{LARGE:,} impressions, {n_queries:,} queries, {size}", *cells]]


# --------------------------------------------------------------------------------------------------------- other libraries


def of_ranker(seed: int, store: Path | None = None) -> Timed:
    ranker, shown = Ranker("CascadeTS", n_positions=K, seed=seed, store=store), []
    items = list(range(10))

    def choose(features: None) -> list[Any]:
        shown[:] = [ranker.rank("query", items)]
        return shown[0].items

    def learn(ranking: Any, clicks: np.ndarray) -> None:
        for place in np.flatnonzero(clicks).tolist():
            ranker.click(shown[0].id, position=place + 1)
        ranker.close(shown[0].id)

    return Timed(choose, learn)


def of_mabwiser(seed: int) -> Timed:
    from mabwiser.mab import MAB, LearningPolicy

    bandit = MAB(list(range(10)), LearningPolicy.ThompsonSampling(), seed=seed)
    bandit.fit(list(range(10)), [0] * 10)

    def choose(features: None) -> np.ndarray:
        drawn = bandit.predict_expectations()
        return np.array(sorted(drawn, key=drawn.get, reverse=True)[:K])

    return Timed(choose, lambda ranking, clicks: bandit.partial_fit(ranking, clicks))


def of_vowpal_wabbit(seed: int) -> Timed:
    from vowpalwabbit import Workspace

    bandit = Workspace(f"--ccb_explore_adf --epsilon 0.05 --quiet --random_seed {seed + 1} -q ::")
    head = ["ccb shared | query"] + [f"ccb action |i item={i}" for i in range(10)]
    last: list[Any] = []

    def choose(features: None) -> list[int]:
        last[:] = bandit.predict([*head, *(f"ccb slot |p place={k}" for k in range(K))])
        return [slot[0][0] for slot in last]

    def learn(ranking: np.ndarray, clicks: np.ndarray) -> None:
        labels = [f"{slot[0][0]}:{-int(click)}:{slot[0][1]}" for slot, click in zip(last, clicks, strict=True)]
        bandit.learn([*head, *(f"ccb slot {label} |p place={k}" for k, label in enumerate(labels))])

    return Timed(choose, learn)


def others(folder: Path) -> list[list[str]]:
    """Regret and time of a session of some libraries, for the same users."""
    makers: dict[str, Callable[[int], Timed]] = {
        "`Ranker`, CascadeTS, in memory": of_ranker,
        "`Ranker`, CascadeTS, survives a kill": lambda seed: of_ranker(seed, folder / f"others{seed}.db"),
    }
    if importlib.util.find_spec("mabwiser"):
        makers["MABWiser, Thompson sampling of items"] = of_mabwiser
    if importlib.util.find_spec("vowpalwabbit"):
        makers["Vowpal Wabbit, `--ccb_explore_adf`, ε = 0.05"] = of_vowpal_wabbit
    rows = []
    for name, make in makers.items():
        regrets, seconds = [], 0.0
        for run in range(RUNS):
            agent, env = make(run), gym.make("PBMRank-v0")
            regrets.append(clickgym.run(agent, env, HORIZON, seed=run, engine="python").regret[-1])
            seconds += agent.seconds
        rows.append([name, mean_text(regrets), f"{seconds / RUNS / HORIZON * 1e6:,.0f} µs"])
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [
            table(["a second", "of processor time", "by the clock"], calls_a_second(folder)),
            table(["`rank`", "processor time"], interleaved()),
            table(["a second, by the clock", "", "of the disk's rate"], power(folder)),
            table(["", "half", "99 %", "99.9 %", "all"], waiting(folder)),
            table(["seconds", "opened", "log read", "PBM fitted", "report"], large(folder)),
            table(["`PBMRank-v0`", f"regret after {HORIZON:,} sessions", "a session"], others(folder)),
        ]
    publish("\n\n".join(parts))


if __name__ == "__main__":
    main()
