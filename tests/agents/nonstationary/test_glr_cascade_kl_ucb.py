"""Tests of GLR-CascadeKLUCB: its statistic, computed from convex hulls, against a scan of all
splits; and its restarts.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from clickgym.agents import GLRCascadeKLUCB
from clickgym.agents.nonstationary.glr_cascade_kl_ucb import likelihood_ratio
from clickgym.envs import CascadeModel
from tests.reference_agents.detection import GLRReference, glr_statistics
from tests.reference_agents.following import follow

pytestmark = pytest.mark.uncompiled


def of_all_slopes(most):
    """Observations whose hull has as many vertices as possible: consecutive stretches whose means
    are all the quotients p / q with q < ``most``, in increasing order.
    """
    slopes = sorted(
        (p / q, p, q) for q in range(1, most) for p in range(q + 1) if math.gcd(p, q) == 1
    )
    return [click for _, p, q in slopes for click in [1] * p + [0] * (q - p)]


def sequences():
    """Random observations, and observations that make the hulls large, restart their sides, or put
    the best split at an end.
    """
    rng = np.random.default_rng(1)
    yield from ((rng.random(250) < p).astype(int).tolist() for p in (0.0, 0.02, 0.3, 0.5, 0.9, 1.0))
    yield from (
        (rng.random(240) < np.repeat(rng.random(4), 60)).astype(int).tolist() for _ in range(6)
    )
    yield [0] * 100 + [1] * 100
    yield [1] * 100 + [0] * 3
    yield [0] + [1] * 150
    yield [0, 1] * 100
    yield [0] * 60 + [1] * 60 + [0] * 60
    convex = of_all_slopes(10)
    yield convex
    yield convex[::-1]
    yield convex + convex[::-1]


@pytest.mark.parametrize("n_vertices", [4, 1000])
@pytest.mark.parametrize("observations", list(sequences()))
def test_the_statistic_by_hulls_is_that_of_a_full_scan(observations, n_vertices):
    """If only a few vertices are kept, the statistic is at most that of the scan."""
    agent = GLRCascadeKLUCB(1, 1, horizon=10**9, delta=1e-299, n_vertices=n_vertices, seed=0)
    for n, click in enumerate(observations, 1):
        agent.update(None, agent.rank(None), [click])
        assert agent.state.n_vertices.max() <= n_vertices
        if n > 1:
            scanned = max(glr_statistics(observations[:n]).max(), 0.0)
            found = likelihood_ratio(agent.state, 0, n, sum(observations[:n]))
            assert found <= scanned + 1e-9
            if n_vertices == 1000:
                assert found == pytest.approx(scanned, rel=1e-9, abs=1e-9)
                assert agent.state.statistic_bound[0] >= scanned - 1e-9
    assert agent.state.n_restarts[0] == 0


def changing(session, first=(0.95, 0.05, 0.5, 0.5, 0.1), second=(0.05, 0.95, 0.5, 0.1, 0.9)):
    return CascadeModel(second if session // 100 % 2 else first, n_positions=3)


@pytest.mark.parametrize("feedback", ["last_click", "first_click"])
def test_restarts_follow_the_reference_where_users_change(feedback):
    reference = GLRReference(5, 3, 300, feedback=feedback)
    agent = GLRCascadeKLUCB(5, 3, horizon=300, feedback=feedback, seed=2)
    follow(agent, reference, changing, 800)
    assert agent.state.restart_steps[: agent.state.n_restarts[0]].tolist() == reference.restarts
    assert len(reference.restarts) >= 4
