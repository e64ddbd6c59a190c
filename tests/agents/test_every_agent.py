"""Tests of what every published agent does beyond the interface, in a world of six items and three
positions. `tests/runner/test_check_agent.py` checks the interface itself.
"""

from __future__ import annotations

import copy
import inspect
import io
import itertools
import re

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import (
    AGENTS,
    DCMKLUCB,
    CascadeUCB1,
    CompiledAgent,
    Fixed,
    RankedKLUCB,
    published,
)
from clickgym.envs import CLICK_MODELS, PositionBasedModel
from tests.helpers import registries
from tests.helpers.click_stories import assert_uniform
from tests.reference_agents.following import as_plain
from tests.reference_agents.models import make

pytestmark = pytest.mark.uncompiled

L, K = 6, 3
EVERY: dict[str, type[CompiledAgent]] = {
    **registries.CLICK_AGENTS,
    **registries.CONTEXTUAL_AGENTS,
    **registries.STATE_AGENTS,
}
LEARNING = [name for name in registries.CLICK_AGENTS if name not in ("Fixed", "Random")]
USERS = PositionBasedModel([0.6, 0.5, 0.4, 0.3, 0.2, 0.1], [1.0, 0.7, 0.4])
by_name = pytest.mark.parametrize("name", EVERY)


def made(name, **others):
    return make(name, USERS, horizon=1000, **others)


def observed(session=0):
    """Return what an agent observes in a session."""
    return {"features": np.random.default_rng(session).random((L, 2)), "state": session % 2}


@pytest.mark.recipe
def test_registries():
    assert (
        {*EVERY, *registries.NETWORK_AGENTS, *registries.LEARNERS}
        == set(AGENTS)
        == set(published.__all__)
    )
    for agent in AGENTS.values():
        named = tuple(re.findall(r"\b[A-Z]{2,}\b", agent.click_models))
        assert named == agent.made_for_models, f"click_models of {agent.__name__} names {named}"
        assert {*named} <= {*CLICK_MODELS}, agent.__name__


@by_name
def test_signature(name):
    """Constructors take the sizes, then hyperparameters by keyword, among them the seed and
    everything the agent requires.
    """
    parameters = inspect.signature(EVERY[name]).parameters
    first, last, *_ = [*parameters][:2], [*parameters][-1]
    assert (first, last) == (["n_items", "n_positions"], "seed")
    kinds = {parameter.kind for parameter in [*parameters.values()][2:]}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    assert set(EVERY[name].requires) <= set(parameters)
    assert {*parameters} == {*first, "seed", *made(name).hyperparameters}


@by_name
def test_impossible_clicks_and_lists(name):
    """Impossible clicks and lists are rejected, and the agent learns nothing from them."""
    agent, seen = made(name), observed()
    ranking = agent.rank(seen)
    before = as_plain(agent.state)
    for clicks in ([0, -1, 1], [0, 2, 0], [0, 1], [0, 0.5, 0]):
        with pytest.raises(ValueError, match="expected 0 or 1 for each of the 3 positions"):
            agent.update(seen, ranking, clicks)
    for other in ([0, 1, 1], [3, 1, 5] if ranking[0] != 3 else [1, 3, 5]):
        with pytest.raises(ValueError, match="ranking is "):
            agent.update(seen, other, [0, 1, 0])
    assert as_plain(agent.state) == before
    agent.update(seen, ranking, [0, 1, 0])


@by_name
def test_copies_in_the_middle_of_a_run(name):
    """An agent that is saved and loaded, copied, or pickled between a list and its clicks continues
    exactly like the original.
    """
    agent, rng = made(name), np.random.default_rng(0)
    for session in range(100):
        seen = observed(session)
        agent.update(seen, agent.rank(seen), rng.integers(0, 2, K))
    ranking = agent.rank(observed(100))
    file = io.BytesIO()
    agent.save(file)
    file.seek(0)
    pickled = cloudpickle.loads(cloudpickle.dumps(agent))
    agents = [agent, type(agent).load(file), copy.deepcopy(agent), pickled]
    for session in range(100, 120):
        clicks = rng.integers(0, 2, K)
        for twin in agents:
            twin.update(observed(session), ranking, clicks)
        ranking, *others = (twin.rank(observed(session + 1)) for twin in agents)
        assert [other.tolist() for other in others] == [ranking.tolist()] * 3
    for twin in agents[1:]:
        assert as_plain(twin.state) == as_plain(agent.state)
        assert twin.rng.bit_generator.state == agent.rng.bit_generator.state
        assert repr(twin) == repr(agent)


# ---------------------------------------------------------------------------- learning and the best


@pytest.mark.parametrize("name", LEARNING)
def test_best(name):
    """The agent finds the best list, returns a copy that the caller may change, and does not change
    its own state.
    """
    env = gym.make("PBMRank-v0", attraction=[0.6, 0.2, 0.9, 0.05], examination=[1.0, 0.6])
    agent = clickgym.make_agent(name, env, horizon=1000, seed=0)
    assert sorted(set(agent.best())) == sorted(agent.best())
    clickgym.run(agent, env, 1000, seed=1)
    before, generator = as_plain(agent.state), agent.rng.bit_generator.state
    best = agent.best()
    assert best.tolist() == [2, 0]
    assert best.dtype == np.int64
    best[:] = 0
    assert agent.best().tolist() == [2, 0]
    assert (as_plain(agent.state), agent.rng.bit_generator.state) == (before, generator)


@pytest.mark.parametrize("name", sorted({*LEARNING} - {"BubbleRank", "Oracle"}))
def test_best_before_anything_is_proven(name):
    """The only clicked item comes first. BubbleRank exchanges neighbours only once it is sure."""
    agent = made(name, seed=1)
    for _ in range(30):
        ranking = agent.rank(None)
        agent.update(None, ranking, (ranking == 4).astype(int))
    assert agent.best()[0] == 4


def test_best_of_special_agents():
    """Fixed returns its own list; items with equal estimates are in the order of their ids; items
    go to the agent's own order of positions; a ranked bandit takes its second choice if its first
    already stands above.
    """
    assert Fixed(4, 2, ranking=[3, 1]).best().tolist() == [3, 1]
    assert CascadeUCB1(4, 2, seed=0).best().tolist() == [0, 1]
    agent = DCMKLUCB(3, 2, position_order=[1, 0], seed=0)
    for _ in range(50):
        ranking = agent.rank(None)
        agent.update(None, ranking, [int(item == 1) for item in ranking])
    assert agent.best()[1] == 1
    bandits = RankedKLUCB(3, 2, seed=0)
    bandits.state.examined[:] = 10
    bandits.state.clicks[:] = [[5, 1, 2], [9, 3, 4]]
    assert bandits.best().tolist() == [0, 2]
    for name in ("Random", "CascadeVI", "SlateQ"):
        with pytest.raises(ValueError, match=f"^{name} has no .*best list"):
            made(name).best()


# --------------------------------------------------------------------------------------- randomness


@pytest.mark.parametrize(
    "name", sorted(EVERY.keys() - {"Fixed", "Oracle", "LinearTS", "CascadeVI"})
)
def test_first_list_is_uniform(name):
    """Null: the first list is uniform on the 12 lists of 2 out of 4 items, whatever their features,
    if these have equal norms up to rounding. The test uses 600 seeds and has a false-alarm rate of
    1e-5 per agent.
    """
    model = PositionBasedModel([0.5, 0.4, 0.3, 0.2], [1.0, 0.5])
    features = np.random.default_rng(1).normal(size=(4, 6))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    lists = []
    for seed in range(600):
        agent = make(name, model, seed=seed, n_features=6)
        lists.append(tuple(agent.rank({"features": features, "state": 0}).tolist()))
    assert_uniform(lists, itertools.permutations(range(4), 2))
