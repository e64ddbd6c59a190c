"""Files that version 0.1 wrote still open and go on as they did there; `data/v0.1/make.py` made them with that version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
import pytest

import clickgym
from clickgym.__main__ import main
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, CompiledAgent
from clickgym.envs import load_instance
from clickgym.runner.results import read_results

DATA = Path(__file__).parent / "data" / "v0.1"
AFTER = json.loads((DATA / "agents" / "lists.json").read_text())
EARNED = [
    (file, kind, record)
    for file, kinds in json.loads((DATA / "instances" / "earned.json").read_text()).items()
    for kind, record in kinds.items()
]
by_instance = pytest.mark.parametrize(("file", "kind", "record"), EARNED, ids=[f"{file}-{kind}" for file, kind, _ in EARNED])


def test_results_give_the_table_of_then(tmp_path):
    folder = shutil.copytree(DATA / "sweep", tmp_path / "sweep")
    table, timings, config = read_results(folder)
    assert config["clickgym"] == "0.1.0"
    assert len(timings) == 3 * 3 * 2
    assert table["step"].max() == 2000
    assert {"any_click", "ndcg"} < set(table.columns)
    assert main(["report", str(folder)]) == 0
    then, now = (polars.read_csv(path / "summary.csv") for path in (DATA / "sweep", folder))
    assert now.select(then.columns).equals(then)


@pytest.mark.parametrize("name", AFTER["lists"])
def test_agents_go_on_as_they_did(name):
    for agent_class in ((AGENTS | CONTEXTUAL_AGENTS)[name], CompiledAgent):
        agent = agent_class.load(DATA / "agents" / f"{name}.npz")
        assert type(agent).__name__ == name
        for clicks, features, then in zip(AFTER["clicks"], AFTER["features"], AFTER["lists"][name], strict=True):
            observation = {"features": np.array(features)}
            ranking = agent.rank(observation)
            assert ranking.tolist() == then
            agent.update(observation, ranking, clicks, float(sum(clicks)))


def test_every_agent_of_then_is_there():
    assert set(AFTER["lists"]) == {file.stem for file in (DATA / "agents").glob("*.npz")} <= {*AGENTS, *CONTEXTUAL_AGENTS}


@by_instance
def test_lists_earn_what_they_did(file, kind, record):
    model = load_instance(DATA / "instances" / file).model(kind)
    if kind.startswith("LinearModel"):
        users = np.zeros((2, 0)) if model.users is None else model.users
        at = [model.at(np.hstack([np.tile(user, (5, 1)), model.items[:5]])) for user in users[:2]]
    elif kind.startswith("LabelledModel"):
        at = [model.at(user, model.candidates[user][: model.n_items]) for user in (0, 1)]
    elif kind.startswith("PiecewiseStationaryModel"):
        at = [model.at(step) for step in (0, 60)]
    else:
        at = [model]
    now = [{reward: one.expected_reward(record["list"], reward) for reward in one.rewards} for one in at]
    assert now == record["expected"]


@by_instance
def test_sessions_go_as_they_did(file, kind, record):
    env = gym.make(record["env"], instance=str(DATA / "instances" / file))
    result = clickgym.run(clickgym.make_agent("Random", env, seed=2), env, 200, seed=3, checkpoints=[50, 200])
    assert result.regret.tolist() == record["regret"]
