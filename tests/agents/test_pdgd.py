"""PDGD: the weight of a pair against products over whole lists, and its
steps.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_agents import MODELS, PDGDReference, follow

import clickgym
from clickgym.agents import PDGD
from clickgym.envs import Instance

pytestmark = pytest.mark.uncompiled


def scored(n_positions, scores, ranking, learning_rate=0.1):
    """An agent that has just shown a list, one feature per item, so that the weights are the
    scores; and its reference.
    """
    n_items = len(scores)
    agent = PDGD(n_items, n_positions, n_features=n_items, learning_rate=learning_rate, seed=0)
    agent.state.weights[:] = scores
    agent.rank({"features": np.eye(n_items)})
    agent.ranking[:] = ranking
    reference = PDGDReference(n_items, n_positions, n_items, learning_rate)
    reference.features, reference.weights = np.eye(n_items), np.array(scores, float)
    return agent, reference


def step(agent, clicks):
    before = agent.state.weights.copy()
    agent.update({"features": np.eye(agent.n_items)}, agent.ranking.copy(), clicks)
    return agent.state.weights - before


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=6), st.data())
def test_a_step_is_that_of_the_gradient(scores, data):
    n_positions = data.draw(st.integers(1, len(scores)))
    ranking = data.draw(st.permutations(range(len(scores))))[:n_positions]
    clicks = data.draw(st.lists(st.integers(0, 1), min_size=n_positions, max_size=n_positions))
    agent, reference = scored(n_positions, scores, ranking, learning_rate=2.0)
    found, expected = step(agent, clicks), 2.0 * reference.gradient(ranking, clicks)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert found.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("model", ["PBM", "CM"])
def test_it_follows_the_reference(model):
    follow(
        PDGD(5, 3, n_features=3, seed=1), PDGDReference(5, 3, 3), MODELS[model], 150, n_features=3
    )


def test_eta_is_the_learning_rate_of_features_as_in_the_file():
    """The weights of x are those of x / c divided by c; where nothing was divided, c is 1."""
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
