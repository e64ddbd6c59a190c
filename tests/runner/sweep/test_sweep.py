"""Tests that a sweep gives the same numbers whatever the order, the workers, the chunks and the
interruptions.
"""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import joblib
import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.agents import Random
from clickgym.agents.agent import UnsuitedError
from clickgym.core.kernels import uncompiled
from clickgym.envs import CascadeModel, ClickEnv, QueryUsers, list_instances
from clickgym.runner.sweep.seeds import run_seed
from tests.conftest import AGENT
from tests.helpers.slow import slow

ENVS, AGENTS = ["PBMRank-v0", "PBMRank-v0:reward=any_click"], ["TopRank", "Random"]
pytestmark = [pytest.mark.uncompiled, pytest.mark.usefixtures("undrawn")]


def numbers(*arguments, **options):
    """Return the numbers of a sweep."""
    return clickgym.sweep(*arguments, **options).frame


@pytest.fixture(scope="module")
def reference():
    """Return the numbers of an uninterrupted sweep in one thread."""
    with uncompiled():
        return numbers(ENVS, AGENTS, 200, 3, seed=5, n_jobs=1)


# --------------------------------------------------------------------- what must not change numbers


def test_order_and_workers_change_nothing(reference):
    """Other agents and additional runs do not change the numbers either, but another seed does."""
    table = numbers(ENVS[::-1], ["Oracle", *AGENTS[::-1]], 200, 4, seed=5, n_jobs=2)
    same = table.filter(polars.col("agent").is_in(AGENTS) & (polars.col("run") < 3))
    assert_frame_equal(*(one.sort("env", "agent", "run", "step") for one in (same, reference)))
    assert not numbers(ENVS, AGENTS, 200, 3, seed=6)["clicks"].equals(reference["clicks"])
    keys = [(seed, name, run) for seed in (0, 1) for name in ("a", "b") for run in range(50)]
    assert len({run_seed(*key) for key in keys}) == len(keys)
    assert run_seed(7, "yandex-9982", 3) == 3284603552
    assert run_seed(7, "yandex-9982", 3, 16) == 3284603552 - 3284603552 % 16 + 3
    with joblib.parallel_config("threading", n_jobs=2):  # a backend that a user sets
        assert_frame_equal(numbers(ENVS, AGENTS, 200, 3, seed=5, n_jobs=None), reference)


def test_agents_take_turns():
    """An agent that fails does so after one run of each agent before it."""
    names = []

    def noted(name, **arguments):
        names.append(name)
        return Random(**arguments)

    agents = {name: partial(noted, name) for name in ("first", "second")}
    clickgym.sweep(["CMRank-v0"], agents, 5, 3, n_jobs=1, engine="python")
    assert names[2:] == ["first", "second"] * 3  # each was tried before the first run


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_a_run_is_repeated_by_its_seed(engine):
    """All agents of a run have the same seed and meet the same users."""
    settings = {"engine": engine, "metrics": ["ndcg"]}
    places = {"instances": ["yandex-990", "yandex-9982"], "seed": 9, "n_jobs": 1}
    env_id = "PBMRank-v0:reward=any_click"  # where clicks are not the reward
    agents = ["Random", "CascadeTS", "Still=Fixed", "Fixed"]
    swept = clickgym.sweep([env_id], agents, 200, 2, **places, **settings)
    for (instance, agent, _), rows in swept.frame.group_by("instance", "agent", "run"):
        env, name = f"{env_id},instance={instance}", agent.replace("Still", "Fixed")
        alone = clickgym.run(name, env, 200, seed=rows["seed"][0], **settings)
        assert alone.engine == engine
        measured = rows.columns[rows.columns.index("seed") :]
        assert_frame_equal(alone.to_frame().select(measured), rows.select(measured))
    assert swept.frame["seed"].n_unique() == 4
    still, fixed = (swept.frame.filter(agent=agent).drop("agent") for agent in ("Still", "Fixed"))
    assert_frame_equal(still, fixed)


def test_a_seed_of_more_than_64_bits_is_null_in_the_rows():
    result = clickgym.run("Random", "PBMRank-v0", 9, seed=2**200)
    assert result.seed == 2**200
    assert result.to_frame()["seed"].null_count() == 9


# ----------------------------------------------------------------------------------------- resuming


SWEEP = """
import sys
import clickgym
clickgym.sweep(["PBMRank-v0", "PBMRank-v0:reward=any_click"], ["TopRank", "Random", "own:Forward"],
               200, 30, seed=5, n_jobs=int(sys.argv[2]), out=sys.argv[1], progress=False)
"""


@pytest.mark.compiled
@pytest.mark.parametrize(("n_jobs", "n_finished"), [(2, 1), *slow((1, 1), (1, 50), (2, 90))])
def test_a_sweep_that_is_killed_resumes(tmp_path, monkeypatch, n_jobs, n_finished):
    """Finished runs are kept, and the result equals that of an uninterrupted sweep, in one
    process.
    """
    (tmp_path / "own.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "killed[1]*"
    command = [sys.executable, "-c", SWEEP, str(out), str(n_jobs)]
    process = subprocess.Popen(command, start_new_session=True)
    while sum(file.read_bytes().count(b"\n") for file in out.glob("runs/*.jsonl")) < n_finished:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {file: file.read_bytes() for file in out.glob("runs/*.jsonl")}
    finished = clickgym.Results(out).frame
    resumed, undisturbed = (
        numbers(ENVS, [*AGENTS, "own:Forward"], 200, 30, seed=5, n_jobs=1, out=folder)
        for folder in (out, None)
    )
    assert_frame_equal(resumed, undisturbed)
    assert all(file.read_bytes() == content for file, content in before.items())
    kept = resumed.join(finished, on=finished.columns, how="semi", nulls_equal=True)
    assert_frame_equal(kept, finished)


# ---------------------------------------------------------------------------------------- instances


def test_shipped_stands_for_all_real_queries():
    arguments = {"envs": ["PBMRank-v0"], "agents": ["Random"], "horizon": 10, "runs": 1}
    real = [name for name in list_instances() if name.startswith("yandex-9")]
    for instances, n in (("shipped", len(real)), (["shipped", "uniform:seed=1"], len(real) + 1)):
        names = clickgym.sweep(**arguments, instances=instances, n_jobs=1).names("instance")
        assert (len({*names} & {*real}), len(names)) == (len(real), n)


# ---------------------------------------------------------------- runs of several queries

USERS = QueryUsers([CascadeModel([p, 0.1, 0.3], 2) for p in (0.5, 0.05, 0.9)], 20)


def test_runs_enumerate_the_queries(tmp_path):
    """All agents play the same queries, and intervals are over the queries. Other environments have
    no queries.
    """
    envs = {"three": USERS, "PBMRank-v0": "PBMRank-v0"}
    results = clickgym.sweep(envs, AGENTS, 20, 7, seed=3, out=tmp_path, n_jobs=1)
    last = results.rows.filter(env="three", step=20)
    for agent in AGENTS:
        rows = last.filter(agent=agent)
        assert rows["query"].to_list() == [0, 1, 2, 0, 1, 2, 0]
        assert [seed % 3 for seed in rows["seed"]] == rows["query"].to_list()
        assert rows["seed"].to_list() == last.filter(agent=AGENTS[0])["seed"].to_list()
    row = last.filter(agent="TopRank", run=4).row(0, named=True)
    alone = clickgym.run("TopRank", ClickEnv(USERS), 20, seed=row["seed"])
    assert (alone.query, alone.regret[-1]) == (1, row["regret"])
    over = results.table().select("env", "over", "units", "runs").unique().sort("env")
    assert over.rows() == [("PBMRank-v0", "runs", 7, 7), ("three", "queries", 3, 7)]
    one = clickgym.sweep(["PBMRank-v0"], AGENTS, 20, 7, seed=3, n_jobs=1).frame
    assert_frame_equal(results.frame.filter(env="PBMRank-v0"), one)
    assert_frame_equal(clickgym.Results(tmp_path).frame, results.frame)


def test_a_run_is_one_episode():
    with pytest.raises(ValueError, match="plays only one query of three, which has 20 sessions"):
        clickgym.sweep({"three": USERS}, ["Random"], 21, 1)
    pytest.importorskip("stable_baselines3")
    with pytest.raises(UnsuitedError, match=r"^PPO .*different queries.*gym.make_vec"):
        clickgym.sweep(["QueriesCMRank-v0:instance=queries:split=real"], ["PPO"], 100, 1)
