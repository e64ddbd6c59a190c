"""Sweeps: the same numbers whatever the order, the workers, the chunks and the interruptions."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import polars
import pytest
from joblib.externals.loky import get_reusable_executor
from polars.testing import assert_frame_equal

import clickgym
from clickgym.agents import Agent
from clickgym.envs import list_instances, load_instance
from clickgym.runner.store import run_seed

ENVS, AGENTS = ["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random"]
pytestmark = pytest.mark.usefixtures("undrawn")

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
        if self.step == self.bad_at:
            return self.items[[0] * self.n_positions]
        return self.items[: self.n_positions]

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


def numbers(*arguments, **options):
    """The numbers of a sweep."""
    return clickgym.sweep(*arguments, **options).frame


@pytest.fixture(scope="module")
def reference():
    """The numbers of an undisturbed sweep in one thread."""
    return numbers(ENVS, AGENTS, 1000, 3, seed=5, n_jobs=1)


# --------------------------------------------------------------------- what must not change numbers


def test_order_and_workers_change_nothing(reference):
    table = numbers(ENVS[::-1], AGENTS[::-1], 1000, 3, seed=5, n_jobs=2)
    assert_frame_equal(*(one.sort("env", "agent", "run", "step") for one in (table, reference)))


def test_another_agent_and_run_change_no_other_number(reference):
    table = numbers(ENVS, ["Oracle", *AGENTS], 1000, 4, seed=5)
    same = table.filter(polars.col("agent").is_in(AGENTS) & (polars.col("run") < 3))
    assert_frame_equal(same, reference)


def test_another_seed_gives_other_numbers(reference):
    assert not numbers(ENVS, AGENTS, 1000, 3, seed=6)["clicks"].equals(reference["clicks"])


def test_seeds_of_runs():
    """They differ by the seed of the sweep, the instance and the run."""
    keys = [(seed, name, run) for seed in (0, 1) for name in ("a", "b") for run in range(50)]
    seeds = [run_seed(*key) for key in keys]
    assert len(set(seeds)) == len(seeds)
    assert run_seed(7, "yandex-9982", 3) == 3284603552


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_a_run_is_repeated_by_its_seed(engine):
    settings = {"engine": engine, "metrics": ["ndcg"]}
    places = {"instances": ["yandex-990", "yandex-9982"], "seed": 9, "n_jobs": 1}
    env_id = "PBMRank-v0:reward=any_click"  # where clicks are not the reward
    swept = clickgym.sweep([env_id], ["Random", "CascadeTS"], 200, 2, **places, **settings)
    for (instance, agent, _), rows in swept.frame.group_by("instance", "agent", "run"):
        env = f"{env_id},instance={instance}"
        alone = clickgym.run(agent, env, 200, seed=rows["seed"][0], **settings)
        assert alone.engine == engine
        numbers = rows.columns[rows.columns.index("seed") :]
        assert_frame_equal(alone.to_frame().select(numbers), rows.select(numbers))
    assert swept.frame["seed"].n_unique() == 4  # of all agents


def test_agents_of_a_sweep_meet_the_same_users():
    """The same lists get the same clicks, whoever shows them."""
    swept = clickgym.sweep(["PBMRank-v0"], ["Oracle", "Still=Fixed", "Fixed"], 300, 2, n_jobs=1)
    still, fixed = (swept.frame.filter(agent=agent).drop("agent") for agent in ("Still", "Fixed"))
    assert_frame_equal(still, fixed)
    assert not fixed["clicks"].equals(swept.frame.filter(agent="Oracle")["clicks"])


# ----------------------------------------------------------------------------------------- resuming


SWEEP = """
import sys
import clickgym
clickgym.sweep(["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random", "rotating:Rotate"], 200, 60,
               seed=5, n_jobs=int(sys.argv[2]), out=sys.argv[1], progress=False)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_sweep_that_is_killed_at_any_time_resumes(tmp_path, own_agent, n_jobs):
    """What is there stays, and all is as if undisturbed."""
    wait, out = random.random() * 0.4, tmp_path / "killed[1]*"
    command = [sys.executable, "-c", SWEEP, str(out), str(n_jobs)]
    process = subprocess.Popen(command, start_new_session=True)
    while not sum(file.read_bytes().count(b"\n") > 1 for file in out.glob("runs/*.jsonl")):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(wait)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {file: file.read_bytes() for file in out.glob("runs/*.jsonl")}
    finished = clickgym.Results(out).frame
    assert finished.height, f"{wait} s"
    resumed, undisturbed = (
        numbers(ENVS, [*AGENTS, own_agent], 200, 60, seed=5, n_jobs=1, out=folder)
        for folder in (out, None)
    )
    assert_frame_equal(resumed, undisturbed)
    assert all(file.read_bytes() == content for file, content in before.items())
    assert_frame_equal(
        resumed.join(finished, on=finished.columns, how="semi", nulls_equal=True), finished
    )


def test_two_sweeps_of_the_same_runs_at_once(tmp_path):
    barrier, tables = threading.Barrier(3), []

    def play(n):
        barrier.wait()
        tables.append(numbers(ENVS, AGENTS, 50, 40 + n, out=tmp_path, n_jobs=1, progress=False))

    threads = [threading.Thread(target=play, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = numbers(ENVS, AGENTS, 50, 42, n_jobs=1)
    assert_frame_equal(clickgym.Results(tmp_path).frame, whole)
    for table in tables:
        assert_frame_equal(table, whole.filter(polars.col("run") <= table["run"].max()))


# --------------------------------------------------------------------------------------- own agents


def test_python_agents_run_in_processes(reference, own_agent):
    results = clickgym.sweep(ENVS, [own_agent, *AGENTS], 1000, 3, seed=5, n_jobs=2)
    table = results.frame
    assert_frame_equal(table.filter(polars.col("agent") != own_agent), reference)
    alone = numbers(["CMRank-v0"], [own_agent], 1000, 1, seed=5, n_jobs=1)
    assert_frame_equal(table.filter(agent=own_agent, env="CMRank-v0", run=0), alone)
    engines = dict(results.rows.select("agent", "engine").iter_rows())
    assert engines == {own_agent: "python", "TopRank": "compiled", "Random": "compiled"}


def test_workers_know_a_module_that_is_newer(own_agent, tmp_path, monkeypatch):
    """They are kept from the sweep before."""
    clickgym.sweep(["PBMRank-v0"], [own_agent], 20, 2, n_jobs=2)
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "newer_agent.py").write_text("from rotating import Rotate\nclass Newer(Rotate): ...\n")
    monkeypatch.syspath_prepend(newer)
    table = clickgym.sweep(["PBMRank-v0"], ["newer_agent:Newer"], 20, 2, n_jobs=2).frame
    assert table["agent"].unique().to_list() == ["newer_agent:Newer"]


def test_what_an_agent_does_besides_changes_nothing(tmp_path, monkeypatch):
    """It prints, seeds the global generator and changes the working folder: the results stay in
    their folder.
    """

    class Busy(Agent):
        def __init__(self, n_items, n_positions, *, seed=None):
            self.ranking = np.arange(n_positions)
            random.seed(0)
            print("made")

        def rank(self, observation):
            os.chdir("/")
            return self.ranking

        def update(self, observation, ranking, clicks, reward): ...

    monkeypatch.chdir(tmp_path)
    agents = {"busy": Busy, "Random": "Random"}

    def play(**where):
        return clickgym.sweep(["PBMRank-v0"], agents, 50, 2, n_jobs=1, **where).frame

    frame = play(out="results")
    assert os.getcwd() == "/"
    assert_frame_equal(frame, clickgym.Results(tmp_path / "results").frame)
    assert_frame_equal(frame, play())


def test_shipped_stands_for_all_real_queries():
    results = clickgym.sweep(
        ["PBMRank-v0"], ["Random"], 10, 1, instances="shipped", n_jobs=1, progress=False
    )
    names = results.frame["instance"].unique().sort().to_list()
    assert names == sorted(name for name in list_instances() if name.startswith("yandex-9"))
    more = clickgym.sweep(
        ["PBMRank-v0"], ["Random"], 10, 1, instances=["shipped", "uniform:seed=1"], n_jobs=1
    )
    assert more.frame["instance"].n_unique() == len(names) + 1
    with pytest.raises(TypeError, match='expected a list of instances, or "shipped"'):
        clickgym.sweep(["PBMRank-v0"], ["Random"], 10, 1, instances="yandex-9")


@pytest.mark.parametrize("other", ["uniform:n_positions=5,seed=1", "copy.json"])
def test_the_same_users_under_two_names(tmp_path, other):
    """They would count as two instances in intervals; users who differ in the seed do."""
    replace(load_instance("uniform:seed=1"), name="copy").save(tmp_path / "copy.json")
    other = str(tmp_path / other) if other.endswith(".json") else other
    out = tmp_path / "out"
    with pytest.raises(ValueError, match=r"^uniform:seed=1 and .* are the same users; leave out"):
        clickgym.sweep(ENVS, AGENTS, 100, 1, instances=["uniform:seed=1", other], out=out)
    assert not out.exists()
    folders = {tmp_path / "a": "uniform:seed=1", tmp_path / "b": other}
    parts = [
        clickgym.sweep(ENVS, AGENTS, 100, 1, instances=[name], out=folder, n_jobs=1)
        for folder, name in folders.items()
    ]
    for together in (parts, [*folders]):
        with pytest.raises(ValueError, match="are the same users"):
            clickgym.Results(together)
    with pytest.raises(ValueError, match="are the same users"):
        clickgym.sweep(ENVS, AGENTS, 100, 1, instances=[other], out=tmp_path / "a")
    assert_frame_equal(clickgym.Results(tmp_path / "a").frame, parts[0].frame)
    instances = ["uniform:seed=1", "uniform:seed=2"]
    results = clickgym.sweep(ENVS[:1], ["Random"], 100, 1, instances=instances, n_jobs=1)
    assert results.names("instance") == instances
