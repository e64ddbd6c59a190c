"""TopRank: its threshold by hand, and its blocks of any relation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_agents import TopRankReference

from clickgym.agents import CompiledAgent, TopRank
from clickgym.agents.kernels import topological_layers
from clickgym.agents.top_rank import C

pytestmark = pytest.mark.uncompiled


def show(agent: CompiledAgent, clicked: Sequence[float]) -> np.ndarray:
    """One session in which an item is clicked exactly where ``clicked`` is 1; returns the list."""
    ranking = agent.rank(None)
    agent.update(None, ranking, [clicked[item] for item in ranking])
    return ranking


def test_toprank_constant():
    """4 sqrt(2/π) / erf(√2) = 3.3437; the 3.43 in circulation is a slip."""
    assert round(C, 4) == 3.3437


@pytest.mark.parametrize(("delta", "needed"), [(0.072, 10), (0.1, 10), (0.07, 11), (0.9, 5)])
def test_toprank_threshold(delta, needed):
    """K = 1, L = 2, only item 1 ever clicked: N = S = clicks, although the two are never shown
    together.

    At δ = 0.072, 2 log(c sqrt(10) / δ) is 9.98 for c = 3.3437 and 10.03 for c = 3.43.
    """
    agent = TopRank(2, 1, horizon=100, delta=delta, seed=0)
    clicks = 0
    for _ in range(200):  # either item is shown half of the time until the relation is found
        if clicks < needed:
            assert not agent.state.beats.any(), f"found after {clicks} clicks"
        clicks += int(show(agent, [0, 1])[0] == 1)
    assert agent.state.beats.tolist() == [[False, False], [True, False]]
    assert agent.state.n_blocks[0] == 2
    assert all(show(agent, [0, 0])[0] == 1 for _ in range(20))


def test_toprank_default_delta():
    assert TopRank(3, 2, horizon=50).state.log_c_delta == pytest.approx(math.log(C * 50), rel=1e-14)
    assert TopRank(3, 2, horizon=50, delta=0.3).state.log_c_delta == pytest.approx(
        math.log(C / 0.3), rel=1e-14
    )


def partition(state):
    state.n_blocks[0] = topological_layers(state.beats, state.block, state.order, state.start)


def blocks_of(relation: Iterable[tuple[int, int]], n_items: int) -> list[set[int]]:
    agent = TopRank(n_items, 2, horizon=100)
    for i, j in relation:
        agent.state.beats[i, j] = True
    partition(agent.state)
    start = agent.state.start[: agent.state.n_blocks[0] + 1]
    blocks = [set(agent.state.order[a:b].tolist()) for a, b in itertools.pairwise(start)]
    assert all(agent.state.block[item] == b for b, block in enumerate(blocks) for item in block)
    return blocks


@given(
    st.sets(
        st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1]),
        max_size=20,
    )
)
def test_toprank_blocks_of_any_relation(relation):
    reference = TopRankReference(6, 6, 0.1)
    reference.better = relation
    assert blocks_of(relation, 6) == reference.blocks()
