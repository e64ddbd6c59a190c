"""Files that earlier versions wrote still open and go on as they did there; `data/VERSION/make.py` made them there."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
import pytest

import clickgym
from clickgym.__main__ import main
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS, CompiledAgent
from clickgym.envs import load_instance
from clickgym.lab.bench.play import play_one
from clickgym.lab.bench.protocol import VERSION_1
from clickgym.lab.bench.score import scored, standing
from clickgym.lab.bench.submission import read_submission
from clickgym.offline import compare, fit_models, read_log
from clickgym.runner.results import read_results

DATA = Path(__file__).parent / "data"
V01, V10 = DATA / "v0.1", DATA / "v1.0"
VERSIONS = {"v0.1": V01, "v1.0": V10}
PUBLISHED = AGENTS | CONTEXTUAL_AGENTS | STATE_AGENTS


def content(file: Path):
    return json.loads(file.read_text(encoding="utf-8"))


AFTER = {version: content(folder / "agents" / "lists.json") for version, folder in VERSIONS.items()}
AGENT_FILES = [("v0.1", "", name) for name in AFTER["v0.1"]["lists"]]
AGENT_FILES += [("v1.0", point, name) for point in ("after_update", "before_update") for name in AFTER["v1.0"]["lists"]]
EARNED = [
    (folder / "instances" / file, kind, record)
    for folder in VERSIONS.values()
    for file, kinds in content(folder / "instances" / "earned.json").items()
    for kind, record in kinds.items()
]
by_instance = pytest.mark.parametrize(
    ("file", "kind", "record"), EARNED, ids=[f"{file.parts[-3]}-{file.name}-{kind}" for file, kind, _ in EARNED]
)


# --------------------------------------------------------------------------------------------------------------- agents


@pytest.fixture(scope="module")
def saved_agents(tmp_path_factory):
    """The folders of saved agents by version."""
    folder = tmp_path_factory.mktemp("agents")
    zipfile.ZipFile(V10 / "agents" / "saved.zip").extractall(folder)
    return {"v0.1": V01 / "agents", "v1.0": folder}


@pytest.mark.parametrize(("version", "point", "name"), AGENT_FILES, ids=["-".join(filter(None, case)) for case in AGENT_FILES])
def test_agents_go_on_as_they_did(saved_agents, version, point, name):
    after = AFTER[version]
    n_sessions = len(after["clicks"])
    states, leaves = after.get("states", [None] * n_sessions), after.get("leaves", [False] * n_sessions)
    for agent_class in (PUBLISHED[name], CompiledAgent):
        agent = agent_class.load(saved_agents[version] / point / f"{name}.npz")
        assert type(agent).__name__ == name
        for t, (clicks, features, then) in enumerate(
            zip(after["clicks"], after["features"], after["lists"][name], strict=True)
        ):
            observation = {"features": np.array(features), "state": states[t]}
            if t > 0 or point != "before_update":  # there the first list waits for its clicks
                assert agent.rank(observation).tolist() == then
            agent.update(observation, then, clicks, float(sum(clicks)))
            if leaves[t]:
                agent.leave()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_agent_of_then_is_there(saved_agents, version):
    files = list(saved_agents[version].glob("**/*.npz"))
    assert set(AFTER[version]["lists"]) == {file.stem for file in files} <= set(PUBLISHED)
    assert len(files) == sum(case[0] == version for case in AGENT_FILES)


# ------------------------------------------------------------------------------------------------------------ instances


@by_instance
def test_lists_earn_what_they_did(file, kind, record):
    model, ranking = load_instance(file).model(kind), record["list"]
    if kind == "CascadeMDP":
        value = model.value if model.n_sessions is None else model.value[0]
        values = [model.list_value(state, ranking, value) for state in range(model.n_states)]
        assert values + model.value.tolist() == record["expected"]
        return
    if kind.startswith("LinearModel"):
        users = np.zeros((2, 0)) if model.users is None else model.users
        n_items = model.n_items
        others = {name: values[:n_items] for name, values in model.others.items()}
        at = [model.at(np.hstack([np.tile(user, (n_items, 1)), model.items[:n_items]]), **others) for user in users[:2]]
    elif kind.startswith(("LabelledModel", "GradedModel")):
        at = [model.at(user, model.candidates[user][: model.n_items]) for user in (0, 1)]
    elif kind.startswith("PiecewiseStationaryModel"):
        at = [model.at(step) for step in (0, 60)]
    else:
        at = [model]
    now = [{reward: one.expected_reward(ranking, reward) for reward in one.rewards} for one in at]
    assert now == record["expected"]


@by_instance
def test_sessions_go_as_they_did(file, kind, record):
    env = gym.make(record["env"], instance=str(file))
    result = clickgym.run(clickgym.make_agent("Random", env, seed=2), env, 200, seed=3, checkpoints=[50, 200])
    assert result.regret.tolist() == record["regret"]


def test_all_kinds_stand_in_one_file():
    instance = load_instance(V10 / "instances" / "all-kinds-of-six-items.json")
    assert len(instance.models) == 4 * 7 + 2  # click models in four forms, users by grades and users with a memory


# --------------------------------------------------------------------------------------------------------------- sweeps


@pytest.mark.parametrize(
    ("folder", "version", "n_trials", "horizon"),
    [(V01 / "sweep", "0.1.0", 3 * 3 * 2, 2000), (V10 / "sweep" / "results", "1.0.0", 2 * 3 * 2, 1000)],
    ids=VERSIONS,
)
@pytest.mark.usefixtures("undrawn")
def test_results_give_the_table_of_then(tmp_path, folder, version, n_trials, horizon):
    copy = shutil.copytree(folder, tmp_path / "sweep")
    table, timings, config = read_results(copy)
    assert {part["clickgym"] for part in config.get("parts", [config])} == {version}
    assert len(timings) == n_trials
    assert table["step"].max() == horizon
    assert {"any_click", "ndcg"} < set(table.columns)
    assert main(["report", str(copy)]) == 0
    then, now = (polars.read_csv(path / "summary.csv") for path in (folder, copy))
    assert now.select(then.columns).equals(then)


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_is_resumed_from_its_trials(tmp_path, monkeypatch):
    """All were finished, so that none is played: not even the seconds that they took change."""
    monkeypatch.chdir(shutil.copytree(V10 / "sweep", tmp_path / "sweep"))
    for name in ("results.parquet", "timings.parquet", "summary.csv"):
        Path("results", name).unlink()
    cells = {file: file.stat().st_mtime_ns for file in Path("results", "cells").iterdir()}
    assert main(["run", "experiment.toml", "--out", "results"]) == 0
    assert {file: file.stat().st_mtime_ns for file in Path("results", "cells").iterdir()} == cells
    for then, now in zip(read_results(V10 / "sweep" / "results")[:2], read_results("results")[:2], strict=True):
        assert now.equals(then)


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_plays_what_is_missing_and_ends_with_the_same_table(tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(V10 / "sweep", tmp_path / "sweep"))
    for file in sorted(Path("results", "cells").iterdir())[::4]:
        file.unlink()
    for name in ("results.parquet", "timings.parquet"):
        Path("results", name).unlink()
    assert main(["run", "experiment.toml", "--out", "results", "--jobs", "1"]) == 0
    assert read_results("results")[0].equals(read_results(V10 / "sweep" / "results")[0])


@pytest.mark.usefixtures("undrawn")
def test_an_experiment_file_gives_the_table_of_then(tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(V10 / "sweep", tmp_path / "sweep"))
    assert main(["run", "experiment.toml", "--out", "again", "--jobs", "1"]) == 0
    assert read_results("again")[0].equals(read_results("results")[0])


# ----------------------------------------------------------------------------------------------------------- scorecards


@pytest.fixture
def submission(tmp_path):
    """A folder that ``clickgym bench Random --quick`` wrote."""
    zipfile.ZipFile(V10 / "bench" / "Random.zip").extractall(tmp_path / "Random")
    return tmp_path / "Random"


def test_a_submission_scores_what_it_did(submission):
    then = content(V10 / "bench" / "standing.json")
    agent, quick, table, protocol, made = read_submission(submission)
    assert protocol is VERSION_1
    assert (agent, quick, table.height) == ("Random", True, then["n_runs"])
    assert ("clickgym", "1.0.0") in made
    overall, abilities, n_tasks, *_ = standing(scored(table, VERSION_1), VERSION_1)
    assert (overall.value, n_tasks) == (then["overall"][0], then["n_tasks"])  # intervals were over runs alone
    assert {name: estimate.value for name, estimate in abilities.items()} == {
        name: estimate[0] for name, estimate in then["abilities"].items()
    }


def test_a_scorecard_is_finished_from_what_was_played(submission):
    """Nothing is played: seconds and files are those of then."""
    then = content(V10 / "bench" / "standing.json")
    files = {file: file.stat().st_mtime_ns for file in submission.glob("plays/*/cells/*")}
    card = clickgym.bench("Random", quick=True, version=1, out=submission, progress=False)
    assert {file: file.stat().st_mtime_ns for file in submission.glob("plays/*/cells/*")} == files
    assert card.standing.overall.value == then["overall"][0]
    section = "## Tasks"
    text = (V10 / "bench" / "scorecard.md").read_text(encoding="utf-8")
    now, _, added = card.to_markdown().partition("## For a paper")  # which cards of version 1.0 did not have
    assert added
    assert now.partition(section)[2].rstrip() == text.partition(section)[2].rstrip()


def test_runs_of_a_submission_come_out_again(submission):
    table = read_submission(submission).table.sample(20, seed=0)
    again = [play_one(VERSION_1, "Random", "Random", VERSION_1.by_name[task], run) for task, run in table["task", "run"].rows()]
    assert table["loss"].to_list() == pytest.approx(again)


# ------------------------------------------------------------------------------------------------------ logs and policies


@pytest.fixture(scope="module", params=["log.parquet", "log.csv"])
def log(request):
    return read_log(V10 / "log" / request.param)


def assert_alike(now, then):
    """Descriptions of click models with the same parameters, but for rounding."""
    assert now.keys() == then.keys()
    for name, values in then.items():
        if isinstance(values, str | int):
            assert now[name] == values
        else:
            np.testing.assert_allclose(np.ravel(now[name]), np.ravel(values), rtol=1e-12, err_msg=name)


def test_logs_give_the_estimates_of_then(log):
    then = content(V10 / "log" / "estimates.json")
    queries, documents = ("red, or green?", "blue"), [f"document {letter}" for letter in "abcdef"]
    fitted = fit_models(log, list(then), queries, test_share=0)
    for name, models in then.items():
        for query, model in zip(queries, models, strict=True):
            assert_alike(fitted.estimators[name].click_model(query, documents).to_dict(), model)
    for number, query in enumerate(queries):
        instance, now = load_instance(V10 / "log" / "fitted" / f"{number}.json"), fitted.instances[query]
        assert now.models.keys() == instance.models.keys()
        assert now.estimation == instance.estimation
        assert now.initial_ranking.tolist() == instance.initial_ranking.tolist()
        for kind, model in instance.models.items():
            assert_alike(now.model(kind).to_dict(), model.to_dict())


def test_policies_earn_what_they_did(log, monkeypatch):
    monkeypatch.chdir(V10 / "log")
    sessions = log[log.queries == log.query_labels.index("red, or green?")]
    for policy, then in content(V10 / "log" / "values.json").items():
        evaluations = compare(sessions, policy, ["ips", "pbm"], bootstrap=50).evaluations
        assert [each.estimator for each in evaluations] == [name for name, *_ in then]
        now = [[each.value, *each.interval] for each in evaluations]
        np.testing.assert_allclose(now, [numbers for _, *numbers in then], rtol=1e-12, err_msg=policy)
