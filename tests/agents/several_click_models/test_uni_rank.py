"""Tests of UniRank: the leading partition, the merged parts, and the further item."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickgym.agents import UniRank
from tests.reference_agents.unimodal import UniRankReference, parts_of

pytestmark = pytest.mark.uncompiled


def told(agent, reference, sums, t=1000, led=100):
    """Give an agent and a reference the same comparisons, (i, j): (Σ c_i - c_j, n_ij), and let
    every leader have led.
    """
    state = agent.state
    for (i, j), (difference, n) in sums.items():
        for each in (state, reference):
            each.difference[i, j], each.difference[j, i] = difference, -difference
            each.compared[i, j] = each.compared[j, i] = n
    state.t[0], reference.t, state.weakest[0] = t, t + 1, 0.0
    n = np.maximum(state.compared, 1)
    state.beats[...] = (state.difference > 0) & (
        state.difference**2 / n > math.log(math.log(t + 3))
    )
    agent.rank(None)
    state.counts[state.leader_number[0]] = led
    reference.led[reference.leader()] = led
    return agent, reference


# ------------------------------------------------------------------------------------ its partition


@given(st.integers(1, 7), st.integers(0, 2**32 - 1), st.integers(1, 10**6))
def test_partition_and_exploration(n_items, seed, t):
    """The results agree for any comparison counts, including cyclic preferences."""
    rng = np.random.default_rng(seed)
    n_positions = int(rng.integers(1, n_items + 1))
    horizon = [None, 10, 10**6][rng.integers(3)]
    n = np.triu(rng.integers(0, 30, (n_items, n_items)), 1)
    d = n - 2 * rng.binomial(n, rng.choice([0.1, 0.5, 0.9], n.shape))
    sums = {
        (i, j): (int(d[i, j]), int(n[i, j])) for i in range(n_items) for j in range(i + 1, n_items)
    }
    agent, reference = told(
        UniRank(n_items, n_positions, horizon=horizon, seed=1),
        UniRankReference(n_items, n_positions, horizon),
        sums,
        t,
        int(rng.integers(0, 50)),
    )
    ranking = agent.rank(None)
    assert parts_of(agent.state.part.tolist()) == reference.leader()
    assert reference.allows(ranking.tolist(), agent.state)
