"""Tests of every agent against its reference in edge cases: extreme sizes, probabilities of 0 and
1, and other values of each hyperparameter.
"""

from __future__ import annotations

from functools import cache

import pytest

from clickgym.envs import CascadeModel, PositionBasedModel
from tests.helpers import registries
from tests.reference_agents.following import follow
from tests.reference_agents.models import MODELS, make
from tests.reference_agents.registry import reference_of, tried_options

pytestmark = pytest.mark.uncompiled

USERS = MODELS["PBM"]
WORLDS = {
    "one item": PositionBasedModel([0.3], [0.9]),
    "one position": CascadeModel([0.2, 0.9, 0.5], 1),
    "certain and impossible clicks": PositionBasedModel([1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1e-9]),
    "all items shown, none clicked": CascadeModel([0.0, 0.0, 0.0], 3),
    "next to 0 and 1": PositionBasedModel([5e-324, 1 - 2**-53, 1e-12, 0.5], [1.0, 1 - 1e-12]),
}
EDGES = [
    (name, key, value)
    for name in (
        registries.CLICK_AGENTS
        | registries.CONTEXTUAL_AGENTS
        | registries.STATE_AGENTS
        | registries.NETWORK_AGENTS
    )
    for key, value in tried_options(name)
]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", registries.CLICK_AGENTS | registries.CONTEXTUAL_AGENTS)
def test_worlds(name, world):
    lists_of(make(name, WORLDS[world], horizon=10), WORLDS[world], 80)


@cache
def lists_by_default(name, seed):
    return lists_of(make(name, USERS, seed=seed), seed=seed)


def lists_of(agent, users=USERS, n_sessions=200, seed=0):
    n_features = getattr(agent, "n_features", 0)
    return follow(agent, reference_of(agent), users, n_sessions, seed, n_features=n_features)


@pytest.mark.parametrize(("name", "key", "value"), EDGES)
def test_hyperparameters(name, key, value):
    """The lists are those of the reference, and no longer those of the default."""
    if name in registries.NETWORK_AGENTS:
        pytest.importorskip("torch")
    assert value is not None, (
        f"no test tries {key} of {name}: add values to `edges` of the class of its reference"
    )
    assert any(
        lists_of(make(name, USERS, seed=seed, **{key: value}), seed=seed)
        != lists_by_default(name, seed)
        for seed in range(5)
    ), f"{name} shows the same lists with {key}={value}: add a value that changes them to `edges`"
