"""The list that an agent would show if it stopped exploring."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import AGENTS, DCMKLUCB, CascadeUCB1, Fixed, RankedKLUCB

LEARNING = [name for name in AGENTS if name not in ("Random", "Fixed")]


@pytest.fixture(scope="module")
def env():
    """Users to whom the third and the first item matter, and who hardly look at the second
    position.
    """
    return gym.make("PBMRank-v0", attraction=[0.6, 0.2, 0.9, 0.05], examination=[1.0, 0.6])


@pytest.mark.parametrize("name", LEARNING)
def test_the_best_list_is_found_and_the_agent_stays_as_it_is(name, env):
    agent = clickgym.make_agent(name, env, horizon=30_000, seed=0)
    assert sorted(set(agent.best())) == sorted(agent.best())
    clickgym.run(agent, env, 30_000, seed=1)
    arrays = {field: array.copy() for field, array in agent.arrays.items()}
    generator = agent.rng.bit_generator.state
    best = agent.best()
    assert best.tolist() == [2, 0]
    assert best.dtype == np.int64
    best[:] = 0
    assert agent.best().tolist() != [0, 0], "a list of the caller's own"
    for field, array in agent.arrays.items():
        np.testing.assert_array_equal(array, arrays[field])
    assert agent.rng.bit_generator.state == generator


def test_a_fixed_list_is_the_best_that_there_is():
    assert Fixed(4, 2, ranking=[3, 1]).best().tolist() == [3, 1]


@pytest.mark.parametrize("name", ["Random", "CascadeVI"])
def test_who_has_no_best_list_says_so(name):
    env = gym.make("PBMRank-v0" if name == "Random" else "CascadeMDPRank-v0")
    with pytest.raises(ValueError, match=f"^{name} has no best list: "):
        clickgym.make_agent(name, env, horizon=1000, seed=0).best()


def test_the_best_items_stand_where_the_agent_wants_them():
    agent = DCMKLUCB(3, 2, position_order=[1, 0], seed=0)
    for _ in range(50):
        ranking = agent.rank(None)
        agent.update(None, ranking, [int(item == 1) for item in ranking])
    assert agent.best()[1] == 1


def test_a_bandits_second_best_choice_stands_in_for_one_that_is_shown_above():
    agent = RankedKLUCB(3, 2, seed=0)
    agent.state.examined[:] = 10
    agent.state.clicks[:] = [[5, 1, 2], [9, 3, 4]]
    assert agent.best().tolist() == [0, 2]


def test_items_of_equal_estimates_stand_in_the_order_of_their_ids():
    assert CascadeUCB1(4, 2, seed=0).best().tolist() == [0, 1]
