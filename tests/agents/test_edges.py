"""Tests of every agent against its reference in edge cases: extreme sizes, probabilities of 0 and
1, and the hyper-parameter values that the reference lists in ``edges``.
"""

from __future__ import annotations

import inspect

import pytest

from clickgym.envs import CascadeModel, PositionBasedModel
from tests.helpers.registries import CLICK_AGENTS, CONTEXTUAL_AGENTS
from tests.reference_agents import MODELS, edges_of, follow, make, reference_of

pytestmark = pytest.mark.uncompiled

WORLDS = {
    "one item": PositionBasedModel([0.3], [0.9]),
    "one position": CascadeModel([0.2, 0.9, 0.5], 1),
    "certain and impossible clicks": PositionBasedModel([1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1e-9]),
    "all items shown, none clicked": CascadeModel([0.0, 0.0, 0.0], 3),
    "next to 0 and 1": PositionBasedModel([5e-324, 1 - 2**-53, 1e-12, 0.5], [1.0, 1 - 1e-12]),
}
EDGES = [
    (name, key, value)
    for name, agent in {**CLICK_AGENTS, **CONTEXTUAL_AGENTS}.items()
    for key in inspect.signature(agent).parameters
    for value in edges_of(name, key)
]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", CLICK_AGENTS)
def test_worlds(name, world):
    agent = make(name, WORLDS[world], horizon=10)
    follow(agent, reference_of(agent), WORLDS[world], 80)


@pytest.mark.parametrize(("name", "key", "value"), EDGES)
def test_hyperparameters(name, key, value):
    agent = make(name, MODELS["PBM"], **{key: value})
    n_features = getattr(agent, "n_features", 0)
    follow(agent, reference_of(agent), MODELS["PBM"], 200, n_features=n_features)
