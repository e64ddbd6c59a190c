"""Tests of CascadeKL-UCB, whose lists equal, bit for bit, those of the plain definition that solves
all indices in every session; and of the knowledge that dcmKL-UCB receives.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import CascadeKLUCB
from clickgym.agents.common.kl_bounds import exploration, kl_upper
from clickgym.agents.common.ranking import rank_by_index
from clickgym.core.kernels import kernel
from clickgym.envs import ClickEnv, PositionBasedModel
from tests.helpers.slow import slow


@kernel
def rank_plainly(state, rng, ranking):
    bound = exploration(state.t[0] + 1, state.c)
    for item in range(len(state.indices)):
        n = state.examined[item]
        state.indices[item] = kl_upper(state.clicks[item] / n, bound / n) if n > 0 else np.inf
    rank_by_index(state.indices, state.order, rng, len(ranking))
    for k in range(len(ranking)):
        ranking[k] = state.order[k]


class CascadePlain(CascadeKLUCB):
    rank_kernel = rank_plainly


def assert_same_run(model, n, seed, **given):
    """Check that both agents learn alike, get the same clicks in every session and draw the same
    random numbers.
    """
    sizes = model.n_items, model.n_positions
    agents = [kind(*sizes, seed=seed, **given) for kind in (CascadeKLUCB, CascadePlain)]
    env, every = ClickEnv(model), np.arange(1, n + 1, max(n // 1000, 1))
    plain, other = (clickgym.run(agent, env, n, seed=seed, checkpoints=every) for agent in agents)
    np.testing.assert_array_equal(plain.regret, other.regret)
    np.testing.assert_array_equal(plain.clicks, other.clicks)
    assert agents[0].rng.bit_generator.state == agents[1].rng.bit_generator.state


SMALL = {
    "usual": PositionBasedModel([0.4, 0.3, 0.5, 0.2, 0.35, 0.1, 0.6], [1.0, 0.75, 0.56, 0.42]),
    "tiny": PositionBasedModel([1e-4, 2e-5, 3e-4, 1e-6, 0.0], [1.0, 1.0]),
    "near one": PositionBasedModel([1 - 1e-4, 1 - 2e-5, 1 - 1e-6, 0.999], [1.0, 1.0]),
    "all 1": PositionBasedModel([1.0, 1.0, 1.0], [1.0, 1.0]),
}


@pytest.mark.parametrize(
    ("name", "n"), [*((name, 100_000) for name in SMALL), *slow(*((n, 3_000_000) for n in SMALL))]
)
def test_lists_in_small_models(name, n):
    assert_same_run(SMALL[name], n, 1)


@pytest.mark.uncompiled
def test_dcm_klucb_is_told_where_sessions_end():
    """The best items go to the positions where a click most likely ends the session. For these
    users, the regret in satisfied users is lower than with items sorted from top to bottom; other
    users do not have such an order.
    """
    users = {"attraction": [0.5, 0.3, 0.2, 0.1], "termination": [0.1, 0.9, 0.5]}
    env = gym.make("DCMRank-v0", **users, reward="satisfaction")
    assert clickgym.make_agent("DCMKLUCB", env).filled_in["position_order"].tolist() == [1, 2, 0]
    from_top = clickgym.make_agent("DCMKLUCB", env, position_order=[0, 1, 2])
    lost = [clickgym.run(agent, env, 3000, seed=0).regret[-1] for agent in ("DCMKLUCB", from_top)]
    assert lost[0] < 0.5 * lost[1]
    assert "position_order" not in clickgym.make_agent("DCMKLUCB", gym.make("CMRank-v0")).filled_in
