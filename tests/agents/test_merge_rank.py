"""MergeRank against a slow reference of the released code."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_agents import MODELS, follow, reference_of
from reference_agents.comparisons import batches_of
from scipy.stats import chisquare
from slow import slow

from clickgym.agents import MergeRank
from clickgym.envs import PositionBasedModel

FALSE_ALARM = 1e-5


@pytest.mark.parametrize(
    ("name", "horizon"),
    [
        *((name, 50) for name in MODELS),
        *(("PBM", 1), ("PBM", 10**6)),
        *slow(*((name, n) for name in MODELS if name != "PBM" for n in (1, 10**6))),
    ],
)
def test_it_follows_the_reference_in_every_click_model(name, horizon):
    model = MODELS[name]
    agent = MergeRank(model.n_items, model.n_positions, horizon=horizon, seed=2)
    follow(agent, reference_of(agent), model, 1500)


@settings(max_examples=40)
@given(st.integers(1, 7), st.data())
def test_it_follows_the_reference_at_all_sizes_and_attractions(n_items, data):
    """From certain and impossible clicks to close ones: drops, several cuts at once, and cuts of batches that were cut."""
    n_positions = data.draw(st.integers(1, n_items))
    attraction = data.draw(st.lists(st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.9]), min_size=n_items, max_size=n_items))
    model = PositionBasedModel(attraction, np.ones(n_positions))
    agent = MergeRank(n_items, n_positions, horizon=data.draw(st.sampled_from([1, 4, 100])), seed=4)
    follow(agent, reference_of(agent), model, 250)


@pytest.mark.parametrize(
    ("attraction", "n_positions"), [([0.99, 0.97, 0.5, 0.45, 0.03, 0.02, 0.01], 4), ([0.9, 0.6, 0.4, 0.1], 4)]
)
def test_it_follows_the_reference_among_close_and_evenly_spaced_items(attraction, n_positions):
    """Groups with close items, more than there are positions; or evenly spaced ones that are cut apart in one test."""
    n_items = len(attraction)
    agent = MergeRank(n_items, n_positions, horizon=1000, seed=6)
    follow(agent, reference_of(agent), PositionBasedModel(attraction, np.ones(n_positions)), 3000)


def test_lists_are_uniform_within_batches_and_not_by_least_observed():
    """Null: each session's list is a uniform ordered choice of 2 of 4 items, whatever was shown before; 6,000 sessions.

    Of 12 lists, and of 12 × 12 pairs of successive lists; chi-square at a false-alarm rate of 1e-5 each.
    """
    agent = MergeRank(4, 2, horizon=10**9, seed=8)
    lists = []
    for _ in range(6000):
        ranking = agent.rank(None)
        lists.append(tuple(ranking.tolist()))
        agent.update(None, ranking, [0, 0])
    assert agent.state.n_batches[0] == 1
    single, pairs = Counter(lists), Counter(itertools.pairwise(lists))
    assert chisquare([single[value] for value in single]).pvalue > FALSE_ALARM
    assert len(single) == 12
    assert chisquare([pairs[a, b] for a in single for b in single]).pvalue > FALSE_ALARM
    assert np.ptp(agent.state.observed) > 1, "least observed first would keep the counts within one"


def test_nothing_is_shuffled_after_the_horizon_and_tests_go_on():
    model, rng = PositionBasedModel([0.1, 0.9, 0.5], [1.0, 1.0, 1.0]), np.random.default_rng(9)
    agent = MergeRank(3, 3, horizon=5, seed=10)
    lists, batches = [], []
    for _ in range(400):
        ranking = agent.rank(None)
        lists.append(tuple(ranking.tolist()))
        batches.append(batches_of(agent.state))
        agent.update(None, ranking, model.sample(ranking, rng))
    changes = [session for session in range(5, 400) if lists[session] != lists[session - 1]]
    assert changes, "a test put the batch in order"
    assert all(len(batches[session]) > len(batches[session - 1]) for session in changes)
    assert len(set(lists[5:11])) == 1
    assert len(set(lists[:5])) > 1


def test_an_item_hidden_at_the_horizon_is_never_tested():
    """The batch waits for an item that is not shown any more."""
    agent = MergeRank(3, 2, horizon=1, seed=11)
    for _ in range(500):
        agent.update(None, agent.rank(None), [1, 0])
    assert sorted(agent.state.observed.tolist())[0] <= 1
    assert batches_of(agent.state)[0][1] == 0.5
