"""How objects show themselves: a `repr` of one line."""

from __future__ import annotations

import gymnasium as gym
import pytest
from registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, default_ids

import clickgym
from clickgym.agents import FrozenPolicy
from clickgym.envs import PositionBasedModel, load_instance

IDS = default_ids()


def line(thing):
    text = repr(thing)
    assert "\n" not in text
    assert "object at 0x" not in text
    assert len(text) < 300, text
    return text


OBJECTS = {
    "ClickEnv(users='PBM', instance='custom', n_items=3, n_positions=2, reward='clicks')": (
        clickgym.envs.ClickEnv(PositionBasedModel([0.5, 0.25, 0.125], [1.0, 0.75]))
    ),
    "BatchRank(n_items=10, n_positions=5, horizon=1000)": (
        clickgym.agents.BatchRank(10, 5, horizon=1000)
    ),
    "FrozenPolicy(n_items=10, n_positions=5, model='<lambda>', actions='codes')": (
        FrozenPolicy(10, 5, model=lambda observation: [0] * 5)
    ),
}


@pytest.mark.parametrize("text", OBJECTS)
def test_repr(text):
    assert line(OBJECTS[text]) == text


@pytest.mark.parametrize("env_id", IDS)
def test_repr_of_an_environment(env_id):
    env, streams = gym.make(env_id).unwrapped, gym.make_vec(env_id, num_envs=2)
    sizes = f"n_items={env.model.n_items}, n_positions={env.model.n_positions}"
    assert f"{env_id!r}" in line(env)
    assert sizes in line(env)
    assert line(env.model) == f"{type(env.model).__name__}({sizes})"
    assert f"ClickVectorEnv(num_envs=2, id={env_id!r}" in line(streams)


def test_repr_of_an_instance():
    assert line(load_instance("yandex-9")).startswith("Instance(name='yandex-9', n_items=10, ")


@pytest.mark.parametrize("name", [*CLICK_AGENTS, *CONTEXTUAL_AGENTS])
def test_repr_of_an_agent(name):
    users = {"instance": "linear:n_pool=20,n_users=1"} if name in CONTEXTUAL_AGENTS else {}
    env = gym.make("ContextualPBMRank-v0" if users else "PBMRank-v0", **users)
    agent = clickgym.make_agent(name, env, horizon=1000, seed=0)
    assert line(agent).startswith(f"{name}(n_items=")
