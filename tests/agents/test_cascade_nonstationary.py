"""CascadeDUCB and CascadeSWUCB against the plain O(L) and O(τ) definitions, session by session."""

from __future__ import annotations

import numpy as np
import pytest

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
