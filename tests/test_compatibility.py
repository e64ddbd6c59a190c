"""Files that earlier versions wrote still open and go on as they did there.

Each folder was made once, by a program that ran with that version: ``git show 0a170695:tests/data/v2.0/make.py`` prints the one
of 2.0, which is the pattern for the next version; those of 0.1 and 1.0 were made likewise, of fewer kinds.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import polars
import pytest

import clickgym
from clickgym.__main__ import main
from clickgym.agents import (
    AGENTS,
    CONTEXTUAL_AGENTS,
    LAST_DISPLAY,
    LEARNERS,
    RETIRED,
    STATE_AGENTS,
    CompiledAgent,
    FrozenPolicy,
)
from clickgym.envs import load_instance
from clickgym.offline import compare, fit_models, read_log
from clickgym.offline.decision import all_queries
from clickgym.runner.callback import Callback
from clickgym.runner.results import read_results

DATA = Path(__file__).parent / "data"
V01, V10, V20 = DATA / "v0.1", DATA / "v1.0", DATA / "v2.0"
VERSIONS = {"v1.0": V10, "v2.0": V20}
PUBLISHED = AGENTS | CONTEXTUAL_AGENTS | STATE_AGENTS


def content(file: Path):
    return json.loads(file.read_text(encoding="utf-8"))


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")


AFTER = {version: content(folder / "agents" / "lists.json") for version, folder in VERSIONS.items()}
SAVED = [
    (version, point, name)
    for version in ("v1.0", "v2.0")
    for point in ("after_update", "before_update")
    for name in AFTER[version]["lists"]
]
GONE = [case for case in SAVED if case[2].partition("-")[0] in RETIRED]
AGENT_FILES = [case for case in SAVED if case not in GONE]
EARNED = [
    (folder / "instances" / file, kind, record)
    for folder in (V01, V10)
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
    zipfile.ZipFile(V10 / "agents" / "saved.zip").extractall(folder / "v1.0")
    unpack(V20 / "agents" / "saved.tar.xz", folder / "v2.0")
    return {"v1.0": folder / "v1.0", "v2.0": folder / "v2.0"}


@pytest.mark.parametrize(("version", "point", "name"), AGENT_FILES, ids=["-".join(filter(None, case)) for case in AGENT_FILES])
def test_agents_go_on_as_they_did(saved_agents, version, point, name):
    """Since 2.0 also with clicks that come late or never, other candidates, and items that are replaced."""
    after = AFTER[version]
    lists, start, n_sessions = after["lists"][name], after.get("start", 0), len(after["clicks"])
    states, leaves = after.get("states", [None] * n_sessions), after.get("leaves", [False] * n_sessions)
    agent_name = name.partition("-")[0]
    for agent_class in (PUBLISHED[agent_name], CompiledAgent):
        agent = agent_class.load(saved_agents[version] / point / f"{name}.npz")
        assert type(agent).__name__ == agent_name
        in_time = "arrives" not in after or agent.learns_from == LAST_DISPLAY

        def observation(t, fixed=agent_name == "RecurRank"):
            return {"features": np.array(after["features"][0 if fixed else t]), "state": states[t]}

        for t in range(start, n_sessions):
            if t > start or point != "before_update":  # there the first list waits for its clicks
                given = [after["candidates"][t]] if "candidates" in after and agent.takes_candidates() else []
                assert agent.rank(observation(t), *given).tolist() == lists[t]
            for s in [t] if in_time else after["arrives"][t]:
                clicks, late = after["clicks"][s], {} if in_time else {"display": agent.display - (t - s)}
                seen = [max(click, 0) for click in clicks] if in_time else clicks
                if in_time or agent.is_open(late["display"]):
                    agent.update(observation(s), lists[s], seen, float(sum(max(click, 0) for click in clicks)), **late)
            if "replaced" in after and after["replaced"][t] >= 0 and agent.can_replace():
                agent.replace(after["replaced"][t])
            if leaves[t]:
                agent.leave()
        if "ends" in after:
            assert [agent.display, agent.dropped, agent.n_open] == after["ends"][name]


@pytest.mark.parametrize(("version", "point", "name"), GONE, ids=["-".join(case) for case in GONE])
def test_a_saved_agent_that_was_retired_is_refused_in_one_line(saved_agents, version, point, name):
    file = saved_agents[version] / point / f"{name}.npz"
    for agent_class in (CompiledAgent, PUBLISHED[RETIRED["UBMTS"]]):
        with pytest.raises(ValueError, match=f"{name}.npz holds an agent .* UBMTS was retired in clickgym 3") as told:
            agent_class.load(file)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_agent_of_then_is_there(saved_agents, version):
    files = list(saved_agents[version].glob("**/*.npz"))
    assert set(AFTER[version]["lists"]) == {file.stem for file in files}
    assert {file.stem.partition("-")[0] for file in files} <= set(PUBLISHED) | set(RETIRED)
    assert len(files) == sum(case[0] == version for case in SAVED)


class Linear:
    """A policy whose scores of items are a matrix times the last clicks; a code is the place of the best of the items left."""

    def __init__(self, matrix, actions):
        self.matrix, self.actions = np.array(matrix), actions

    def predict(self, observed, deterministic=True):
        clicks = np.asarray(observed["observation"] if self.actions == "items" else observed)
        scores = self.matrix @ (1 + clicks.ravel()[: self.matrix.shape[1]])
        if self.actions == "scores":
            return scores
        if self.actions == "codes":
            return np.array([np.argmax(scores[: len(scores) - k]) for k in range(self.matrix.shape[1])])
        return np.argmax(np.where(observed["placed"].any(axis=0), -np.inf, scores))


@pytest.mark.parametrize("actions", ["codes", "scores", "items"])
def test_frozen_policies_choose_the_lists_of_then(actions):
    then = content(V20 / "learners" / "then.json")
    policy = FrozenPolicy(6, 3, model=Linear(then["matrix"], actions), actions=actions, items=[2, 0, 5, 1, 4, 3])
    observed = [np.array(clicks) if actions != "items" else {"observation": np.array(clicks)} for clicks in then["clicks"]]
    assert [policy.rank(one).tolist() for one in observed] == then["policies"][actions]["lists"]
    regret = clickgym.run(policy, gym.make(**then["task"]), 50, seed=4).regret
    np.testing.assert_allclose(regret, then["policies"][actions]["regret"], rtol=1e-12)


@pytest.mark.parametrize("name", ["PPO", "A2C"])
def test_learners_by_codes_learn_as_they_did_and_their_weights_load(name):
    pytest.importorskip("stable_baselines3")
    import torch

    then = content(V20 / "learners" / "then.json")
    record, task = then[name], then["task"]
    learner = LEARNERS[name](6, 3, actions="codes", seed=1, **record["settings"])
    alike = partial(np.testing.assert_allclose, rtol=1e-12)  # processors differ in last digits
    alike(clickgym.run(learner, gym.make(**task), 256, seed=3).regret, record["regret"])
    assert learner.items.tolist() == record["items"]
    with np.load(V20 / "learners" / "weights.npz") as arrays:
        weights = {key.removeprefix(f"{name}/"): torch.tensor(arrays[key]) for key in arrays if key.startswith(f"{name}/")}
    learner.model.policy.load_state_dict(weights)
    policy = FrozenPolicy(6, 3, model=learner.model, actions=learner.actions, items=record["items"])
    assert [policy.rank(np.array(clicks, np.int8)).tolist() for clicks in then["clicks"]] == record["lists"]
    alike(clickgym.run(policy, gym.make(**task), 50, seed=4).regret, record["frozen"])
    alike(clickgym.run(learner, gym.make(**task), 128, seed=5).regret, record["again"])


# ------------------------------------------------------------------------------------------------------------ instances


@by_instance
def test_lists_earn_what_they_did(file, kind, record):
    model, ranking = load_instance(file).model(kind), record["list"]
    if kind == "CascadeMDP":
        value = model.value if model.n_sessions is None else model.value[0]
        values = [model.list_value(state, ranking, value) for state in range(model.n_states)]
        for now, then in zip([*values, *model.value], record["expected"], strict=True):
            np.testing.assert_allclose(
                now, then, rtol=1e-12
            )  # of linear equations, which processors solve to other last digits
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
    np.testing.assert_allclose(result.regret, record["regret"], rtol=1e-12 if kind == "CascadeMDP" else 0.0)  # as above


PLAYED = {
    (file, kind, place): record
    for file, kinds in content(V20 / "instances" / "played.json").items()
    for kind, records in kinds.items()
    for place, record in enumerate(records)
}


@pytest.mark.parametrize(("case", "record"), PLAYED.items(), ids=[f"{file}-{kind}-{place}" for file, kind, place in PLAYED])
def test_sessions_go_as_they_did_also_with_late_clicks_bots_and_new_items(case, record):
    env = gym.make(record["env"], instance=str(V20 / "instances" / case[0]), **record["options"])
    result = clickgym.run(clickgym.make_agent(record["agent"], env, seed=2), env, 200, seed=3, checkpoints=[50, 200])
    np.testing.assert_allclose(result.regret, record["regret"], rtol=1e-12)  # processors differ in last digits


def test_all_kinds_stand_in_one_file():
    instance = load_instance(V10 / "instances" / "all-kinds-of-six-items.json")
    assert len(instance.models) == 4 * 7 + 2  # click models in four forms, users by grades and users with a memory


# --------------------------------------------------------------------------------------------------------------- sweeps


@pytest.fixture(params=["v1.0", "v2.0"])
def experiment(request, tmp_path, monkeypatch):
    """The working folder, with an experiment file and its results of then; and a folder with the same results."""
    if request.param == "v2.0":
        pytest.importorskip("stable_baselines3")
        unpack(V20 / "sweep" / "sweep.tar.xz", tmp_path / "sweep")
        file = tmp_path / "sweep" / "experiment.toml"
        text = file.read_text().replace("little=PPO:", "little=PPO:actions=codes,")  # what PPO meant then
        file.write_text(text.replace('    "UBMTS",\n', ""))
    else:
        shutil.copytree(V10 / "sweep", tmp_path / "sweep")
    shutil.copytree(tmp_path / "sweep" / "results", tmp_path / "then")
    monkeypatch.chdir(tmp_path / "sweep")
    return tmp_path / "then"


@pytest.mark.parametrize(("version", "n_trials", "horizon"), [("v1.0", 2 * 3 * 2, 1000), ("v2.0", 2 * 5 * 2, 128)])
@pytest.mark.usefixtures("undrawn")
def test_results_give_the_table_of_then(tmp_path, version, n_trials, horizon):
    copy = tmp_path / "sweep"
    if version == "v2.0":
        unpack(V20 / "sweep" / "sweep.tar.xz", tmp_path / "all")
        shutil.move(tmp_path / "all" / "results", copy)
    else:
        shutil.copytree(V10 / "sweep" / "results", copy)
    then = polars.read_csv(copy / "summary.csv")
    table, timings, config = read_results(copy)
    assert {part["clickgym"] for part in config.get("parts", [config])} == {f"{version.removeprefix('v')}.0"}
    assert len(timings) == n_trials
    assert table["step"].max() == horizon
    assert {"any_click", "ndcg"} < set(table.columns)
    assert main(["report", str(copy)]) == 0
    assert polars.read_csv(copy / "summary.csv").select(then.columns).equals(then)


def of_today(folder):
    """The table of a folder without agents that were retired."""
    return read_results(folder)[0].filter(~polars.col("agent").is_in(list(RETIRED)))


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_is_resumed_from_its_trials(experiment):
    """All were finished, so that none is played: not even the seconds that they took change."""
    for name in ("results.parquet", "timings.parquet", "summary.csv"):
        Path("results", name).unlink()
    cells = {file: file.stat().st_mtime_ns for file in Path("results", "cells").iterdir()}
    assert main(["run", "experiment.toml", "--out", "results"]) == 0
    assert {file: file.stat().st_mtime_ns for file in Path("results", "cells").iterdir()} == cells
    for then, now in zip(read_results(experiment)[:2], read_results("results")[:2], strict=True):
        assert now.equals(then)


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_plays_what_is_missing_and_ends_with_the_same_table(experiment):
    for file in sorted(Path("results", "cells").iterdir())[::4]:
        file.unlink()
    for name in ("results.parquet", "timings.parquet"):
        Path("results", name).unlink()
    assert main(["run", "experiment.toml", "--out", "results", "--jobs", "1"]) == 0
    assert of_today("results").equals(of_today(experiment))


@pytest.mark.usefixtures("undrawn")
def test_an_experiment_file_gives_the_table_of_then(experiment):
    """But for the learner where clicks come late: 2.0 gave their rewards to lists that had not earned them."""
    assert main(["run", "experiment.toml", "--out", "again", "--jobs", "1"]) == 0
    is_late = (polars.col("agent") == "little") & polars.col("env").str.contains("arrival")
    now, then = of_today("again"), of_today(experiment)
    assert now.filter(~is_late).equals(then.filter(~is_late))
    assert now.shape == then.shape


# --------------------------------------------------------------------------------------------------------------- tunings


@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_a_tuning_ends_as_it_did(tmp_path, state):
    """Nothing is played of one that was finished."""
    pytest.importorskip("optuna")
    then, played = content(V20 / "tuning" / "then.json"), []

    class Count(Callback):
        def finished(self, trial, frame, counted):
            played.append(trial)

    unpack(V20 / "tuning" / "tuning.tar.xz", tmp_path)
    found = clickgym.tune("EpsilonGreedy", out=tmp_path / state, callback=Count(), **then["arguments"])
    assert found.trials.to_dict(as_series=False) == then["trials"]
    assert (found.agent, found.score) == (then["agent"], then["score"])
    assert bool(played) == (state == "stopped")


# ------------------------------------------------------------------------------------------------------ logs and policies


@pytest.fixture(
    scope="module",
    params=[(V10, "parquet"), (V10, "csv"), (V20, "parquet"), (V20, "csv")],
    ids=lambda param: f"{param[0].name}-{param[1]}",
)
def log(request):
    """A log, and its folder."""
    version, kind = request.param
    return read_log(version / "log" / f"log.{kind}"), version / "log"


def assert_alike(now, then):
    """Descriptions of click models with the same parameters, but for rounding."""
    assert now.keys() == then.keys()
    for name, values in then.items():
        if isinstance(values, str | int):
            assert now[name] == values
        else:
            np.testing.assert_allclose(np.ravel(now[name]), np.ravel(values), rtol=1e-12, err_msg=name)


def test_logs_give_the_estimates_of_then(log):
    sessions, folder = log
    then = content(folder / "estimates.json")
    queries, documents = ("red, or green?", "blue"), [f"document {letter}" for letter in "abcdef"]
    fitted = fit_models(sessions, list(then), queries, test_share=0)
    for name, models in then.items():
        for query, model in zip(queries, models, strict=True):
            assert_alike(fitted.estimators[name].click_model(query, documents).to_dict(), model)
    for number, query in enumerate(queries):
        instance, now = load_instance(folder / "fitted" / f"{number}.json"), fitted.instances[query]
        assert now.models.keys() == instance.models.keys()
        assert now.estimation == instance.estimation
        assert now.initial_ranking.tolist() == instance.initial_ranking.tolist()
        for kind, model in instance.models.items():
            assert_alike(now.model(kind).to_dict(), model.to_dict())


def test_policies_earn_what_they_did(log, monkeypatch):
    sessions, folder = log
    monkeypatch.chdir(folder)
    sessions = sessions[sessions.queries == sessions.query_labels.index("red, or green?")]
    for policy, then in content(folder / "values.json").items():
        evaluations = compare(sessions, policy, ["ips", "pbm"], bootstrap=50).evaluations
        assert [each.estimator for each in evaluations] == [name for name, *_ in then]
        now = [[each.value, *each.interval] for each in evaluations]
        np.testing.assert_allclose(now, [numbers for _, *numbers in then], rtol=1e-12, err_msg=policy)


# -------------------------------------------------------------------------------------------------------------- decisions


def test_the_users_of_a_decision_click_as_they_did(tmp_path):
    then = content(V20 / "decision" / "then.json")
    unpack(V20 / "decision" / "one.tar.xz", tmp_path)
    decision = content(tmp_path / "decision.json")
    assert [decision["query"], decision["verdict"]] == then["verdicts"][0][:2]
    env = gym.make("PBMRank-v0", instance=str(tmp_path / "instance.json"))
    regret = clickgym.run(clickgym.make_agent("Random", env, seed=2), env, 200, seed=3).regret
    np.testing.assert_allclose(regret, then["regret"], rtol=1e-12)


def test_decisions_are_readable_and_another_version_does_not_go_on_with_them(tmp_path, monkeypatch):
    """Its verdicts would stand beside those of other rules; 2.0 itself went on with them."""
    then = content(V20 / "decision" / "then.json")
    monkeypatch.chdir(V20 / "decision")
    unpack(V20 / "decision" / "all.tar.xz", tmp_path / "all")
    before = {file: file.read_bytes() for file in (tmp_path / "all").rglob("*") if file.is_file()}
    table = polars.read_csv(tmp_path / "all" / "decisions.csv")
    assert table.select("query", "verdict").rows() == [(query, verdict) for query, verdict, _ in then["verdicts"]]
    monkeypatch.setattr(all_queries, "version", lambda package: "3.0.0")
    with pytest.raises(ValueError, match=r"holds decisions of clickgym 2\.0\.0, which had no level"):
        clickgym.decide_all("log.parquet", tmp_path / "all", **then["arguments"])
    assert {file: file.read_bytes() for file in (tmp_path / "all").rglob("*") if file.is_file()} == before
