"""CascadeDUCB and CascadeSWUCB against the plain O(L) and O(τ) definitions, session by session."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import clickgym
from clickgym.agents.cascade_nonstationary import CascadeDUCB, CascadeSWUCB
from clickgym.envs import CascadeModel, ClickEnv

pytestmark = pytest.mark.uncompiled

# -------------------------------------------------------------------------------------- CascadeDUCB


def test_ducb_survives_complete_forgetting():
    """γ = 1e-200: what is not examined again leaves the range of floats; then it counts as never
    seen, not as NaN.
    """
    agent, rng = CascadeDUCB(5, 2, gamma=1e-200, seed=6), np.random.default_rng(0)
    for session in range(300):
        ranking = agent.rank(None)
        assert not np.isnan(agent.state.indices).any()
        forgotten = agent.state.examined == 0
        assert (agent.state.indices[forgotten] == np.inf).all()
        assert forgotten.any() or session < 4
        agent.update(None, ranking, rng.integers(0, 2, 2))


# ------------------------------------------------------------------------------------- CascadeSWUCB


@pytest.mark.parametrize("tau", [1, 10, 167])
def test_swucb_memory_is_the_window(tau):
    agent = CascadeSWUCB(4, 2, tau=tau, seed=0)
    assert agent.state.window.shape == (tau, 2)
    clickgym.run(agent, ClickEnv(CascadeModel([0.5, 0.2, 0.1, 0.1], n_positions=2)), 2000, seed=0)
    assert sum(value.size for value in agent.state if isinstance(value, np.ndarray)) <= 2 * tau + 40
    assert agent.state.t[0] - agent.state.oldest[0] == tau - 1


# ---------------------------------------------------------------------------------- what both share


@pytest.mark.parametrize("agent_class", [CascadeDUCB, CascadeSWUCB])
def test_unseen_items_rank_before_any_bonus(agent_class):
    """⚠ x/0 := 1 would give an unseen item the index 2; with ε = 50 a seen one reaches more. Null:
    the order is uniform.
    """
    first = {}
    for seed in range(600):
        agent = agent_class(4, 1, horizon=10**6, epsilon=50.0, seed=seed)
        shown = []
        for _ in range(4):
            shown.append(int(agent.rank(None)[0]))
            agent.update(None, shown[-1:], [1])
        assert sorted(shown) == [0, 1, 2, 3]
        first[shown[0]] = first.get(shown[0], 0) + 1
    assert chisquare([first[item] for item in range(4)]).pvalue > 1e-5
