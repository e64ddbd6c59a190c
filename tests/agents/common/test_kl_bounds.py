"""Tests of bounds by KL divergence."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickgym.agents.common.kl_bounds import kl, kl_lower, kl_upper
from tests.reference_agents.bounds import bernoulli_kl, lower_bound, upper_bound


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
