"""How objects show themselves: a `repr` of one line."""

from __future__ import annotations

import re

import gymnasium as gym
import pytest

import clickgym
from clickgym.agents import FrozenPolicy
from clickgym.envs import PositionBasedModel, load_instance

OBJECTS = {
    "ClickEnv(users='PBM', instance='custom', n_items=3, n_positions=2, reward='clicks')": (
        clickgym.envs.ClickEnv(PositionBasedModel([0.5, 0.25, 0.125], [1.0, 0.75]))
    ),
    "BatchRank(n_items=10, n_positions=5, horizon=1000)": (
        clickgym.agents.BatchRank(10, 5, horizon=1000)
    ),
    "FrozenPolicy(n_items=10, n_positions=5, model='<lambda>', actions='rankings')": (
        FrozenPolicy(10, 5, model=lambda observation: [0] * 5)
    ),
}


@pytest.mark.parametrize("text", OBJECTS)
def test_repr(text):
    assert repr(OBJECTS[text]) == text


def test_repr_of_many_numbers():
    """It has one line."""
    for thing in (load_instance("yandex-9"), gym.make_vec("ContextualCMRank-v0", num_envs=2)):
        assert re.fullmatch(r"[^\n]{,299}", repr(thing))
        assert "object at 0x" not in repr(thing)
