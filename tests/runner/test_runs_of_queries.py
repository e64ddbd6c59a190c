"""Runs over the queries of a split: which query a run plays, and what intervals are over."""

from __future__ import annotations

import gymnasium as gym
import pytest
from polars import col

import clickgym
from clickgym.agents.agent import UnsuitedError
from clickgym.core.statistics import half_width
from clickgym.envs import CascadeModel, QueryUsers
from clickgym.runner.results import Results
from clickgym.runner.store import run_seed

pytestmark = pytest.mark.uncompiled

USERS = QueryUsers([CascadeModel([p, 0.1, 0.3], 2) for p in (0.5, 0.05, 0.9)], 20)
AGENTS = ["Random", "TopRank"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("queries") / "out"
    return clickgym.sweep({"three": USERS}, AGENTS, 20, 7, seed=3, out=out, n_jobs=1), out


def last(results):
    return results.rows.filter(step=20)


def test_runs_enumerate_the_queries_and_agents_meet_the_same(results):
    swept, _ = results
    for agent in AGENTS:
        rows = last(swept).filter(agent=agent)
        assert rows["query"].to_list() == [0, 1, 2, 0, 1, 2, 0]
        assert [seed % 3 for seed in rows["seed"]] == rows["query"].to_list()
        assert rows["seed"].n_unique() == 7
    by_agent = [last(swept).filter(agent=agent)["seed"].to_list() for agent in AGENTS]
    assert by_agent[0] == by_agent[1]


def test_a_run_is_repeated_by_its_seed(results):
    row = last(results[0]).filter(agent="TopRank", run=4).row(0, named=True)
    env = clickgym.envs.ClickEnv(USERS)
    assert env.reset(seed=row["seed"])[1]["query"] == row["query"] == 1
    assert clickgym.run("TopRank", env, 20, seed=row["seed"]).regret[-1] == row["regret"]
    assert clickgym.run("TopRank", env, 20, seed=row["seed"]).query == 1


def test_intervals_are_over_queries(results):
    """Also of its folder, to which further runs are added."""
    swept, out = results
    table = swept.table("Random")
    assert table.select("over", "units", "runs").unique().rows() == [("queries", 3, 7)]
    means = last(swept).group_by("agent", "query").agg(col("regret").mean())
    for agent, half in table.select("agent", "regret_ci95").iter_rows():
        spread = means.filter(agent=agent)["regret"].std()
        assert half == pytest.approx(half_width(3) * spread)
    assert Results(out).rows.equals(swept.rows)
    again = clickgym.sweep({"three": USERS}, AGENTS, 20, 9, seed=3, out=out, n_jobs=1)
    assert last(again).filter(agent="Random")["query"].to_list()[6:] == [0, 1, 2]
    assert again.rows.filter(col("run") < 7).equals(swept.rows)


def test_queries_beside_other_environments():
    """These have no query, and the same runs as alone."""
    both = clickgym.sweep({"three": USERS, "PBMRank-v0": "PBMRank-v0"}, AGENTS, 20, 4, n_jobs=1)
    alone = clickgym.sweep(["PBMRank-v0"], AGENTS, 20, 4, n_jobs=1)
    rows = both.rows.filter(env="PBMRank-v0")
    assert rows["query"].null_count() == len(rows)
    assert rows.drop("seconds").equals(alone.rows.drop("seconds"))
    over = dict(both.table().select("env", "over").iter_rows())
    assert over == {"three": "queries", "PBMRank-v0": "runs"}


def test_other_seeds_are_as_before():
    assert run_seed(7, "yandex-9982", 3) == 3284603552
    assert run_seed(7, "yandex-9982", 3, 16) == 3284603552 - 3284603552 % 16 + 3


def test_a_run_is_one_episode():
    with pytest.raises(ValueError, match="a run plays one query of three, which has 20 sessions"):
        clickgym.sweep({"three": USERS}, ["Random"], 21, 1)
    for agent in ("Random", clickgym.agents.Random(3, 2, seed=0)):
        with pytest.raises(ValueError, match="which has 20 sessions"):
            clickgym.run(agent, USERS, 21, seed=0)


@pytest.mark.compiled  # it loads torch
def test_learners_are_told_another_way():
    pytest.importorskip("stable_baselines3")
    message = "PPO would train on the queries of the test; train it with gym.make_vec, and play"
    env = gym.make("QueriesCMRank-v0", instance="queries:split=real")
    with pytest.raises(UnsuitedError, match=message):
        clickgym.run("PPO", env, 100, seed=0)
    with pytest.raises(UnsuitedError, match=message):
        clickgym.sweep(["QueriesCMRank-v0"], ["PPO"], 100, 1, instances=["queries:split=real"])
