"""No public function of logs fails raw: a wrong value for any argument is refused in one line."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from wrong_values import Call, call, faults

import clickgym
import clickgym_logs as logs
from clickgym_logs import ClickLog

FEATURES = "linear:n_items=4,n_positions=2,n_features=2,n_pool=6,n_users=2"
MODEL = {"attraction": [0.5, 0.4, 0.3, 0.2], "examination": [1.0, 0.6]}


def some_log(n: int = 60) -> ClickLog:
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(4), (n, 1)), axis=1)[:, :2]
    sizes = {"times": np.arange(n), "propensities": np.full((n, 2), 0.25)}
    sizes["list_propensities"] = np.full(n, 1 / 12)
    return ClickLog(
        items, rng.integers(0, 2, (n, 2)), np.arange(n) % 2, tuple("abcd"), ("q", "r"), **sizes
    )


def calls(folder) -> dict[str, Call]:
    log, one = some_log(), some_log().of_query("q")
    path, ratings = folder / "log.csv", folder / "ratings.csv"
    logs.write_tidy(log, path)
    rows = [f"{user},{item},{user * item % 5 + 1}" for user in range(9) for item in range(9)]
    ratings.write_text("\n".join(["userId,movieId,rating", *rows, ""]))
    env = gym.make("PBMRank-v0", **MODEL)
    agent = clickgym.make_agent("Random", env, seed=0)
    contextual = gym.make("ContextualPBMRank-v0", instance=FEATURES)
    fitted = logs.PBMEstimator().fit(log)
    return {
        "ClickLog": call(
            ClickLog,
            items=[[0, 1]],
            clicks=[[1, 0]],
            queries=[0],
            item_labels=("a", "b"),
            query_labels=("q",),
        ),
        "ClickLog.earned": call(log.earned),
        "ClickLog.of_query": call(log.of_query, query="q"),
        "ClickLog.__getitem__": call(log.__getitem__, sessions=slice(3)),
        "read_log": call(logs.read_log, source=path),
        "read_ratings": call(logs.read_ratings, path=ratings),
        "write_tidy": call(logs.write_tidy, log=log, path=folder / "again.csv"),
        "write_decisions": call(
            logs.write_decisions, decisions=[logs.decide(one)], folder=folder / "pages"
        ),
        "train_test_split": call(logs.train_test_split, log=log),
        "record": call(logs.record, agent=agent, env=env, sessions=5),
        "replay": call(
            logs.replay,
            agent=clickgym.make_agent("Random", contextual, seed=0),
            log=logs.record(clickgym.make_agent("Random", contextual, seed=0), contextual, 20),
        ),
        "UniformPolicy": call(logs.UniformPolicy, items=4, n_positions=2),
        "FixedPolicy": call(logs.FixedPolicy, ranking=[0, 1]),
        "ListPolicy": call(logs.ListPolicy, lists=[[0, 1], [1, 0]], probabilities=[0.5, 0.5]),
        "empirical_policy": call(logs.empirical_policy, log=one),
        "evaluate": call(logs.evaluate, log=one, target=logs.FixedPolicy([0, 1]), estimator="ips"),
        "compare": call(logs.compare, log=one, policies=["fixed:a,b"], estimators=["ips"]),
        "decide": call(logs.decide, log=one),
        "decide_all": call(logs.decide_all, log=one),
        "check_models": call(logs.check_models, log=some_log(600)),
        "fit_models": call(logs.fit_models, log=log, models=["PBM"]),
        "contextual_instance": call(
            logs.contextual_instance,
            ratings=logs.read_ratings(ratings),
            models=["PBM"],
            n_items=4,
            n_positions=2,
            dimension=2,
        ),
        "PBMEstimator": call(logs.PBMEstimator),
        "PBMEstimator.fit": call(logs.PBMEstimator().fit, log=log),
        "PBMEstimator.score": call(fitted.score, log=log),
        "PBMEstimator.predict_proba": call(fitted.predict_proba, log=log),
        "PBMEstimator.click_model": call(fitted.click_model, query="q", items=["a", "b", "c"]),
        "PBMEstimator.to_instance": call(fitted.to_instance, log=log, query="q"),
    }


def test_wrong_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert faults(calls(tmp_path), 12) == []


@pytest.mark.slow
def test_all_wrong_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert faults(calls(tmp_path)) == []
