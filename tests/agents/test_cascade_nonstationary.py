"""CascadeDUCB and CascadeSWUCB against the plain O(L) and O(τ) definitions, session by session."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import clickgym
from clickgym.agents import CascadeUCB1
from clickgym.agents.cascade_nonstationary import CascadeDUCB, CascadeSWUCB
from clickgym.envs import CascadeModel, ClickEnv, PiecewiseStationaryModel, PositionBasedModel

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


@pytest.mark.slow
@pytest.mark.compiled
def test_they_follow_users_who_change():
    """An item that nobody liked becomes the best after 10⁵ sessions: CascadeUCB1 hardly looks at it
    any more.
    """
    before, after = [0.5, 0.1, 0.1, 0.1], [0.5, 0.1, 0.1, 0.9]
    users = [PositionBasedModel(each, [1.0]) for each in (before, after)]  # as in a cascade
    model = PiecewiseStationaryModel(users, starts=[0, 100_000])
    lost = {}
    for agent_class in (CascadeUCB1, CascadeDUCB, CascadeSWUCB):
        arguments = {} if agent_class is CascadeUCB1 else {"horizon": 110_000}
        result = clickgym.run(
            agent_class(4, 1, seed=0, **arguments),
            ClickEnv(model),
            110_000,
            seed=0,
            checkpoints=[100_000],
        )
        lost[agent_class] = result.regret[-1] - result.regret[0]
    assert 4 * max(lost[CascadeDUCB], lost[CascadeSWUCB]) < lost[CascadeUCB1]
