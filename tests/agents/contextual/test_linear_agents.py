"""Tests of the contextual agents against plain NumPy: samples and weights, indices, α_t, ties,
drift of the inverse, and regret.
"""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.envs import DependentClickModel
from tests.helpers.click_stories import assert_uniform
from tests.helpers.registries import CONTEXTUAL_AGENTS
from tests.helpers.slow import slow
from tests.reference_agents import follow, reference_of

pytestmark = pytest.mark.uncompiled

L, K, D = 7, 4, 3
WEIGHTS = np.array([[0.9, 0, 0, 0], [0.6, 0.8, 0, 0], [0.4, 0.5, 0.75, 0], [0.2, 0.3, 0.35, 0.7]])
KAPPA = np.array([0.9, 0.7, 0.5, 0.3])
TOLD = {"UBMLinUCB": {"examination": WEIGHTS}, "PBMLinUCB": {"examination": KAPPA}}
OPTIMISTIC = [name for name in CONTEXTUAL_AGENTS if name.endswith("UCB")]


def make(name, **arguments):
    return CONTEXTUAL_AGENTS[name](L, K, n_features=D, seed=0, **(TOLD.get(name, {}) | arguments))


# --------------------------------------------------------------------------------- ridge regression


TRIED = [*((name, None) for name in OPTIMISTIC), ("PBMLinUCB", 0.0), ("DCMLinUCB", 0.7)]


@pytest.mark.parametrize(("name", "alpha"), TRIED)
def test_lists_are_those_of_the_largest_indices(name, alpha):
    agent = make(name, alpha=alpha)
    users = DependentClickModel(np.linspace(0.1, 0.7, L), [0.6, 0.3, 0.8, 0.5])
    follow(agent, reference_of(agent), users, 300, n_features=D)


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
    agent, rng = make("C2UCB", ridge=1.0), np.random.default_rng(0)
    for _ in range(5):
        seen = {"features": 50 * rng.normal(size=(L, D))}
        agent.update(seen, agent.rank(seen), rng.integers(0, 2, K))
        solved = np.linalg.solve(agent.state.gram, agent.state.moment)
        np.testing.assert_allclose(agent.state.theta, solved, rtol=1e-6)


# --------------------------------------------------------------------------------------------- ties


@pytest.mark.parametrize("name", [name for name in CONTEXTUAL_AGENTS if name != "LinearTS"])
def test_a_cold_start_shows_every_list_of_equal_norms_alike(name):
    """If norms are equal up to rounding, each ordered pair of items is equally likely, whatever the
    items' ids and features.
    """
    rng = np.random.default_rng(1)
    features = rng.normal(size=(4, 6))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    told = {**TOLD.get(name, {})}
    if "examination" in told:
        told["examination"] = told["examination"][(slice(2),) * told["examination"].ndim]
    shown = []
    for seed in range(600):
        agent = CONTEXTUAL_AGENTS[name](4, 2, n_features=6, seed=seed, **told)
        shown.append(tuple(agent.rank({"features": features}).tolist()))
    assert_uniform(shown, itertools.permutations(range(4), 2))
