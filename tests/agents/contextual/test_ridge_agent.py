"""Tests of the inverse in the contextual agents: its drift, and large features.
`test_references_in_edge_cases` compares their lists with references in plain NumPy.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

import clickgym
from clickgym.agents import C2UCB, LinearTS
from tests.helpers.slow import slow

pytestmark = pytest.mark.uncompiled


def drift(n, n_features, ridge=None):
    """Return the relative error of the inverse after n sessions, compared with a fresh solve, in
    the spectral norm.
    """
    env = gym.make("ContextualUBMRank-v0", instance=f"linear:n_features={n_features},seed=1")
    agent = clickgym.make_agent("UBMLinUCB", env, seed=0, alpha=0.5, ridge=ridge)
    clickgym.run(agent, env, n, seed=0)
    fresh = np.linalg.solve(agent.state.gram, np.eye(n_features))
    return np.linalg.norm(agent.state.inverse - fresh, 2) / np.linalg.norm(fresh, 2)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("n", "n_features", "ridge", "tolerance"),
    [
        (99, 10, None, 1e-10),
        *((20_099, n_features, None, 1e-10) for n_features in (3, 10, 25)),
        *((20_099, 10, ridge, 1e-8) for ridge in (1e-3, 1e6)),
        *slow((1_000_099, 25, None, 1e-8)),
    ],
)
def test_the_inverse_does_not_drift(n, n_features, ridge, tolerance):
    """The drift is measured just before a new factorisation, when it is largest."""
    assert drift(n, n_features, ridge) < tolerance


def test_large_features_are_solved_exactly():
    """The inverse is recomputed where a rank-one update would lose all digits."""
    agent, rng = C2UCB(7, 4, n_features=3, ridge=1.0, seed=0), np.random.default_rng(0)
    for _ in range(5):
        seen = {"features": 50 * rng.normal(size=(7, 3))}
        agent.update(seen, agent.rank(seen), rng.integers(0, 2, 4))
        solved = np.linalg.solve(agent.state.gram, agent.state.moment)
        np.testing.assert_allclose(agent.state.theta, solved, rtol=1e-6)


@pytest.mark.parametrize("ridge", [1e-6, *slow(1.0), 1e6])
@pytest.mark.parametrize(("samples", "clicked"), [(0, 0), (1, 0), (1, 1), (10**7, 0), (10**7, 1)])
def test_linear_ts_draws_from_the_posterior_at_the_edges(ridge, samples, clicked):
    """One candidate was seen in all samples. Null: 5000 draws of θ, along the candidate's features
    and orthogonal to them, are independent normals with the right standard deviations.
    """
    d, x = 3, np.array([0.6, 0.0, 0.8])
    agent = LinearTS(2, 1, n_features=d, alpha=0.5, ridge=ridge, seed=7)
    state = agent.state
    state.gram[:] += samples * np.outer(x, x)
    state.moment[:] += samples * clicked * x
    state.theta[:] = theta = samples * clicked / (ridge + samples) * x
    draws = []
    for _ in range(5000):
        agent.rank({"features": np.zeros((2, d))})
        draws.append(state.vector.copy())
    directions = np.array([x, [0.8, 0.0, -0.6], [0.0, 1.0, 0.0]])
    widths = 0.5 / np.sqrt([ridge + samples, ridge, ridge])
    scores = (np.array(draws) - theta) @ directions.T / widths
    for k in range(d):
        assert kstest(scores[:, k], norm.cdf).pvalue > 1e-5
    assert kstest(np.sum(scores**2, axis=1), chi2(d).cdf).pvalue > 1e-5
