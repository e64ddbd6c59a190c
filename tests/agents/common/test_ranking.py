"""Tests of the kernels that rank items, where indices are equal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from clickgym.agents.common.ranking import rank_by_draw, rank_by_index
from tests.helpers.click_stories import assert_uniform


@pytest.mark.parametrize("rank", [rank_by_index, rank_by_draw])
@pytest.mark.parametrize(
    ("values", "count"),
    [([1, 2, 1, 1], 2), ([1, 1, 1, 1], 4), ([0, 3, 3, 0], 3), ([1, 1, 2, 2], 1), ([1, 1, 0, 0], 1)],
)
def test_ties(rank, values, count):
    """Null: all lists in decreasing order of index are equally likely. The test draws 6,000
    lists.
    """
    rng, index = np.random.default_rng(2), np.array(values, float)
    order = np.arange(4)
    draws = []
    for _ in range(6000):
        rank(index, order, rng, count)
        draws.append(tuple(order[:count].tolist()))
    best = sorted(values, reverse=True)[:count]
    lists = [
        r for r in itertools.permutations(range(4), count) if [values[item] for item in r] == best
    ]
    assert_uniform(draws, lists)
