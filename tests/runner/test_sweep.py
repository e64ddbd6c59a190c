"""Sweeps: the same table whatever the order, the workers, the chunks and the interruptions; and
what is in the folder.
"""

import functools
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc

import joblib
import polars
import pytest
from joblib.externals.loky import get_reusable_executor
from polars.testing import assert_frame_equal
from slow import slow
from test_make import MINE, a_function

import clickgym
from clickgym.core.workers import check_workers
from clickgym.runner.callback import Callback
from clickgym.runner.results import Trial, read_results

ENVS, AGENTS = ["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random"]

# An agent of a user's own: a plain Python class in a module that sweeps find in the working folder.
ROTATE = """
import time
import numpy as np
from clickgym.agents import Agent

class Rotate(Agent):
    def __init__(self, n_items, n_positions, *, bad_at=None, nap=0.0, seed=None):
        self.items = np.random.default_rng(seed).permutation(n_items)
        self.n_positions, self.bad_at, self.nap, self.step = n_positions, bad_at, nap, 0

    def rank(self, observation):
        time.sleep(self.nap)
        self.step += 1
        return self.items[[0] * self.n_positions] if self.step == self.bad_at else self.items[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.items = np.roll(self.items, 1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a module ``rotating`` that holds an agent ``Rotate``: one, so that the tests
    share worker processes.
    """
    folder = tmp_path_factory.mktemp("own")
    (folder / "rotating.py").write_text(ROTATE)
    yield folder
    # Neither this process nor joblib's idle workers may keep the module.
    sys.modules.pop("rotating", None)
    get_reusable_executor().shutdown(wait=True)


@pytest.fixture
def own_agent(folder, monkeypatch):
    """Work in that folder; the name of the agent."""
    monkeypatch.chdir(folder)
    return "rotating:Rotate"


def ordered(table):
    return table.sort("env", "instance", "agent", "run", "step")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The table of an undisturbed sweep in one thread."""
    return clickgym.sweep(
        ENVS, AGENTS, 1000, 3, seed=5, out=tmp_path_factory.mktemp("reference") / "out", n_jobs=1
    ).frame


# ------------------------------------------------------------------------------------------- what must not change numbers


def test_order_and_workers_change_nothing(reference, tmp_path):
    table = clickgym.sweep(
        ENVS[::-1], AGENTS[::-1], 1000, 3, seed=5, out=tmp_path / "out", n_jobs=3
    ).frame
    assert_frame_equal(ordered(table), ordered(reference))


def test_another_agent_and_another_run_change_no_other_number(reference, tmp_path):
    table = clickgym.sweep(ENVS, ["Oracle", *AGENTS], 1000, 4, seed=5, out=tmp_path / "out").frame
    same = table.filter(polars.col("agent").is_in(AGENTS) & (polars.col("run") < 3))
    assert_frame_equal(same, reference)


def test_another_seed_gives_other_numbers(reference, tmp_path):
    table = clickgym.sweep(ENVS, AGENTS, 1000, 3, seed=6, out=tmp_path / "out").frame
    assert not table["clicks"].equals(reference["clicks"])


def test_seeds_come_from_names():
    cells = [
        Trial(env, "i", agent, run)
        for env in ("a", "b")
        for agent in ("c", "d")
        for run in range(3)
    ]
    seeds = [seed for cell in cells for seed in cell.seeds(0)]
    assert len(set(seeds)) == len(seeds)
    assert (
        Trial("a", "i", "c", 0).seeds(0)
        == Trial("a", "i", "c", 0).seeds(0)
        != Trial("a", "i", "c", 0).seeds(1)
    )


# --------------------------------------------------------------------------------------------------------------- resuming


def test_a_killed_sweep_goes_on_with_what_is_finished(tmp_path, own_agent):
    words = f"['PBMRank-v0'], ['Random', '{own_agent}', '{own_agent}:nap=0.003'], 200, 2, seed=5, n_jobs=1"
    code = f"import clickgym, sys; clickgym.sweep({words}, out=sys.argv[1])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "killed"], start_new_session=True
    )
    while len(list((tmp_path / "killed" / "cells").glob("*.parquet"))) < 4:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {
        file: file.stat().st_mtime_ns for file in (tmp_path / "killed" / "cells").glob("*.parquet")
    }
    assert len(finished) < 6
    undisturbed, resumed = (
        eval(
            f"clickgym.sweep({words}, out=out)", {"clickgym": clickgym, "out": tmp_path / name}
        ).frame
        for name in ("whole", "killed")
    )
    assert_frame_equal(resumed, undisturbed)
    assert all(file.stat().st_mtime_ns == written for file, written in finished.items())


def test_a_finished_sweep_is_read_and_not_run_again(tmp_path):
    class Count(Callback):
        fresh = 0

        def start(self, trials, done, horizon):
            self.trials, self.done = len(trials), len(done)

        def finished(self, trial, frame, counted):
            self.fresh += 1

    first, second = Count(), Count()
    tables = [
        clickgym.sweep(ENVS, AGENTS, 200, 2, out=tmp_path / "out", callback=callback).frame
        for callback in (first, second)
    ]
    assert (first.trials, first.done, first.fresh) == (8, 0, 8)
    assert (second.trials, second.done, second.fresh) == (8, 8, 0)
    assert_frame_equal(*tables)


def test_the_name_of_the_folder_is_no_pattern(tmp_path):
    first = clickgym.sweep(["PBMRank-v0"], ["Random"], 10, 1, out=tmp_path / "a[1]*").frame
    again = clickgym.sweep(["PBMRank-v0"], ["Random"], 10, 1, out=tmp_path / "a[1]*").frame
    assert again.equals(first)
    assert read_results(tmp_path / "a[1]*")[0].equals(first)


def test_the_folder_holds_configuration_versions_table_and_timings(reference, tmp_path):
    table = clickgym.sweep(
        ["PBMRank-v0"], AGENTS, 200, 2, seed=3, out=tmp_path / "out", instances=["yandex-9"]
    ).frame
    read, timings, config = read_results(tmp_path / "out")
    assert_frame_equal(read, table)
    assert table.columns == [
        "env",
        "instance",
        "agent",
        "run",
        "step",
        "regret",
        "reward",
        "clicks",
    ]
    assert (timings["engine"] == "compiled").all()
    assert (timings["seconds"] > 0).all()
    assert config["agents"] == AGENTS
    assert config["instances"] == ["yandex-9"]
    assert config["clickgym"] == clickgym.__version__
    assert set(config["versions"]) == {"numba", "numpy", "processor"}
    json.dumps(config)


def test_a_sweep_too_large_is_refused_with_its_size_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["clickgym.runner.sweep"], "MOST_TRIALS", 10)
    words = "^12 trials are 120 sessions; expected at most 10 trials and "
    with pytest.raises(ValueError, match=words):
        clickgym.sweep(
            ENVS,
            AGENTS,
            10,
            3,
            checkpoints=[10],
            metrics=["any_click", "ndcg"],
            out=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("n_jobs", [0, 1001, -1001, True, 2.0, "2", None])
def test_what_is_no_number_of_workers_is_refused(n_jobs):
    with pytest.raises(
        ValueError, match=f"n_jobs is {n_jobs!r}; expected a number of workers up to 1,000, or -1"
    ):
        check_workers(n_jobs)


def test_there_are_no_more_workers_than_trials(tmp_path, monkeypatch):
    workers = []

    class Parallel(joblib.Parallel):
        def __init__(self, n_jobs, **others):
            workers.append(n_jobs)
            super().__init__(n_jobs, **others)

    monkeypatch.setattr(joblib, "Parallel", Parallel)
    for runs in (3, 1):
        clickgym.sweep(ENVS[:1], AGENTS[:1], 10, runs, n_jobs=9, out=tmp_path / str(runs))
    assert workers == [3, 2]


# ----------------------------------------------------------------------------------------------------------- own agents


def test_plain_python_agents_run_in_processes_and_change_nothing_else(
    reference, tmp_path, own_agent
):
    table = clickgym.sweep(
        ENVS, [own_agent, *AGENTS], 1000, 3, seed=5, out=tmp_path / "out", n_jobs=2
    ).frame
    assert_frame_equal(table.filter(polars.col("agent") != own_agent), reference)
    alone = clickgym.sweep(
        ["CMRank-v0"], [own_agent], 1000, 1, seed=5, out=tmp_path / "alone", n_jobs=1
    ).frame
    same = (
        (polars.col("agent") == own_agent)
        & (polars.col("env") == "CMRank-v0")
        & (polars.col("run") == 0)
    )
    assert_frame_equal(table.filter(same), alone)
    _, timings, _ = read_results(tmp_path / "out")
    assert dict(timings.select("agent", "engine").iter_rows()) == {
        own_agent: "python",
        "TopRank": "compiled",
        "Random": "compiled",
    }


def test_what_stands_in_the_script_reaches_worker_processes(tmp_path, monkeypatch):
    names = {"__name__": "__main__"}
    exec(MINE.partition("class MineModel")[0], names)
    monkeypatch.setattr(sys.modules["__main__"], "TopRank", names["TopRank"], raising=False)
    agents, envs = (
        [functools.partial(names["TopRank"], shift=2), "Random"],
        {"made": lambda: a_function(0.2)},
    )
    alone, workers = (
        clickgym.sweep(envs, agents, 200, 2, out=tmp_path / str(n_jobs), n_jobs=n_jobs).frame
        for n_jobs in (1, 2)
    )
    assert_frame_equal(alone, workers)
    config = read_results(tmp_path / "2")[2]
    assert config["agents"] == ["__main__:TopRank:shift=2", "Random"]
    assert config | {"made": ""} == read_results(tmp_path / "1")[2] | {"made": ""}


def test_a_callback_hears_of_every_session_once(tmp_path, own_agent):
    class Count(Callback):
        counted = uncounted = 0

        def sessions(self, count):
            self.counted += count

        def finished(self, trial, frame, counted):
            self.uncounted += 0 if counted else 2000

    callback = Count()
    clickgym.sweep(
        ["PBMRank-v0"],
        ["Random", own_agent],
        2000,
        2,
        out=tmp_path / "out",
        n_jobs=2,
        callback=callback,
    )
    assert callback.counted + callback.uncounted == 2 * 2 * 2000
    assert callback.counted >= 2 * 2000


@pytest.mark.parametrize("n_jobs", [1, *slow(2)])
def test_a_bad_list_in_mid_run_is_named_and_what_is_finished_is_kept(tmp_path, own_agent, n_jobs):
    agents = ["Random", own_agent, f"{own_agent}:bad_at=100"]
    with pytest.raises(clickgym.AgentError, match=r"Rotate, step 100: .* position 1 shows item"):
        clickgym.sweep(["PBMRank-v0"], agents, 200, 2, out=tmp_path / "out", n_jobs=n_jobs)
    assert len(list((tmp_path / "out" / "cells").glob("*.parquet"))) >= 2 + (n_jobs == 1) * 2
    with pytest.raises(ValueError, match="unfinished sweep"):
        read_results(tmp_path / "out")


# -------------------------------------------------------------------------------------------------------------- backends


def test_dask_gives_the_same_table(reference, tmp_path, own_agent):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        table = clickgym.sweep(ENVS, AGENTS, 1000, 3, seed=5, out=tmp_path / "out").frame
    assert_frame_equal(table, reference)


# --------------------------------------------------------------------------------------------------------------- watching


def test_memory_does_not_grow_with_the_horizon(tmp_path):
    def peak(horizon):
        tracemalloc.start()
        clickgym.sweep(
            ["PBMRank-v0"], ["TopRank"], horizon, 1, out=tmp_path / str(horizon), n_jobs=1
        )
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(1_000_000) < peak(10_000) + 200_000
