"""How objects show themselves: a `repr` of a line or two."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import clickgym
import clickgym_logs as logs
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, Agent, FrozenPolicy
from clickgym.envs import (
    CONTEXTUAL,
    ENVIRONMENTS,
    PositionBasedModel,
    list_instances,
    load_instance,
)
from clickgym_logs.contextual import Ratings
from clickgym_logs.estimation.estimator import MODEL_ESTIMATORS

IDS = [env_id for env_id, env in (ENVIRONMENTS | CONTEXTUAL).items() if env.default_instance]
LOG = logs.ClickLog(
    [[0, 1], [1, 0], [0, 2]], [[1, 0], [0, 0], [1, 1]], [0] * 3, ("a", "b", "c"), ("q",)
)


def short(shown):
    text = repr(shown)
    assert "\n" not in text
    assert "object at 0x" not in text
    assert len(text) < 300, text
    return text


@pytest.mark.parametrize("env_id", IDS)
def test_environments_and_their_users(env_id):
    env = gym.make(env_id).unwrapped
    sizes = f"n_items={env.model.n_items}, n_positions={env.model.n_positions}"
    assert f"{env_id!r}" in short(env)
    assert sizes in repr(env)
    assert short(env.model) == f"{type(env.model).__name__}({sizes})"
    streams = gym.make_vec(env_id, num_envs=2)
    assert f"ClickVectorEnv(num_envs=2, id={env_id!r}" in short(streams)


def test_an_environment_without_an_id():
    env = clickgym.envs.ClickEnv(PositionBasedModel([0.5, 0.25, 0.125], [1.0, 0.75]))
    assert (
        short(env)
        == "ClickEnv(users='PBM', instance='custom', n_items=3, n_positions=2, reward='clicks')"
    )


@pytest.mark.parametrize("name", list_instances())
def test_instances(name):
    instance = load_instance(name)
    assert short(instance).startswith(
        f"Instance(name={instance.name!r}, n_items={instance.n_items}, "
    )


def test_logs(tmp_path):
    assert short(LOG) == "ClickLog(n_sessions=3, n_positions=2, n_queries=1, n_items=3, n_clicks=3)"
    rated = Ratings([0, 0, 1], [0, 1, 1], [5, 3, 4], ("ann", "bob"), ("Heat", "Jumanji"))
    assert short(rated) == "Ratings(n_ratings=3, n_users=2, n_items=2)"


@pytest.mark.parametrize("name", MODEL_ESTIMATORS)
def test_estimators(name):
    estimator = MODEL_ESTIMATORS[name]()
    assert short(estimator).endswith(", not fitted")
    assert short(estimator.fit(LOG)).endswith("), fitted to 3 pairs of query and item")


def test_what_a_fit_and_a_replay_return_is_short():
    assert len(repr(logs.fit_models(LOG, ["PBM"], n_items=3, test_share=0.0))) < 1000
    env = gym.make("ContextualPBMRank-v0")
    log = logs.record(clickgym.make_agent("Random", env, seed=0), env, 50, seed=0)
    agent = clickgym.agents.LinearTS(5, 2, n_features=log.context.shape[2], seed=0)
    assert short(logs.replay(agent, log)).startswith("Replay(n_sessions=50, n_accepted=")


def test_policies():
    policies = (
        logs.UniformPolicy(4, 2),
        logs.ListPolicy([[3, 7], [7, 3]], [0.9, 0.1]),
        logs.FixedPolicy([2, 0]),
    )
    assert [short(policy) for policy in policies] == [
        "UniformPolicy(n_items=4, n_positions=2)",
        "ListPolicy(n_items=2, n_positions=2, n_lists=2)",
        "FixedPolicy(ranking=[2, 0])",
    ]


@pytest.mark.parametrize("name", [*AGENTS, *CONTEXTUAL_AGENTS, *LEARNERS])
def test_agents_are_shown_with_their_hyper_parameters(name):
    if name in LEARNERS:
        pytest.importorskip("stable_baselines3")
    same = {"instance": "linear:n_pool=20,n_users=1"}  # candidates, which some agents need
    env = (
        gym.make("ContextualPBMRank-v0", **same)
        if name in CONTEXTUAL_AGENTS
        else gym.make("PBMRank-v0")
    )
    agent = clickgym.make_agent(name, env, horizon=1000, seed=0)
    assert short(agent).startswith(f"{name}(n_items=")


def test_agents_of_ones_own_and_frozen_policies():
    class Mine(Agent):
        def __init__(self, n_items, n_positions, *, seed=None):
            self.n_items = n_items

        def rank(self, observation):
            return np.arange(2)

        def update(self, observation, ranking, clicks, reward):
            pass

    assert short(Mine(3, 2)) == "Mine(n_items=3)"
    assert (
        short(clickgym.agents.BatchRank(10, 5, horizon=1000))
        == "BatchRank(n_items=10, n_positions=5, horizon=1000)"
    )
    assert short(clickgym.agents.Fixed(1000, 500, ranking=np.arange(1000))).endswith("...)")
    frozen = FrozenPolicy(10, 5, model=lambda observation: [0] * 5)
    assert (
        short(frozen)
        == "FrozenPolicy(n_items=10, n_positions=5, model='<lambda>', actions='codes')"
    )
