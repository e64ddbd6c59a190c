"""Tests of PDGD's learning rate. `test_references_in_edge_cases` compares its steps with its
reference.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import PDGD
from clickgym.envs import Instance

pytestmark = pytest.mark.uncompiled


def test_eta_is_the_learning_rate_of_features_as_in_the_file():
    """The weights for features x equal the weights for x / c, divided by c. If the features were
    not divided, c is 1.
    """
    model = gym.make("ContextualPBMRank-v0", instance="linear:n_items=5").unwrapped.model
    instance = Instance("divided", {model.kind: model}, 5, estimation={"scale": 3.0})
    env = gym.make("ContextualPBMRank-v0", instance=instance)
    given = {"eta": 0.3}, {"learning_rate": 0.3 * 9}
    agents = [clickgym.make_agent("PDGD", env, seed=0, **arguments) for arguments in given]
    for agent in agents:
        clickgym.run(agent, env, 100, seed=0)
    np.testing.assert_array_equal(agents[0].state.weights, agents[1].state.weights)
    assert agents[0].filled_in["feature_scale"] == 3
    assert PDGD(3, 2, n_features=2, eta=0.3).state.learning_rate == 0.3
