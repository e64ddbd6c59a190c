"""Tests of kernels that agents share: rankings with ties, and bounds by KL divergence.

Random choices are compared with the exact law by chi-square tests. The null hypothesis of each test
is the law in its docstring; each test has a fixed seed and a false-alarm rate of 1e-5.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickgym.agents.shared_kernels import (
    kl,
    kl_lower,
    kl_upper,
    rank_by_draw,
    rank_by_index,
)
from tests.helpers.click_stories import assert_uniform
from tests.reference_agents import bernoulli_kl, lower_bound, upper_bound


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


@given(st.floats(0, 1), st.floats(0, 1))
@example(0.0, 0.0)
@example(1.0, 1.0)
@example(1.0, 0.0)
@example(0.0, 1.0)
def test_kl(p, q):
    assert kl(p, q) == pytest.approx(max(bernoulli_kl(p, q), 0.0), rel=1e-12, abs=1e-15)


@given(st.floats(0, 1), st.floats(0, 30))
@example(0.4, 0.0)
@example(1.0, 0.5)
@example(0.0, 0.5)
def test_kl_bounds(p, bound):
    upper, lower = kl_upper(p, bound), kl_lower(p, bound)
    assert 0 <= lower <= p + 1e-15
    assert p <= upper <= 1
    # the reference rounds where KL is flat
    assert upper == pytest.approx(upper_bound(p, bound), abs=1e-7)
    assert lower == pytest.approx(lower_bound(p, bound), abs=1e-7)
    # elsewhere KL is too flat or too steep to ask
    if bound > 1e-6 and lower > 1e-6 and upper < 1 - 1e-6:
        assert kl(p, upper) == pytest.approx(bound, rel=1e-6)
        assert kl(p, lower) == pytest.approx(bound, rel=1e-6)
