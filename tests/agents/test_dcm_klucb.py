"""dcmKL-UCB: what counts as observed, and where the items of largest index stand."""

from __future__ import annotations

import numpy as np
import pytest
from reference_agents import MODELS, follow
from reference_agents.indices import DCMReference

from clickgym.agents import DCMKLUCB
from clickgym.envs import DependentClickModel


@pytest.mark.parametrize("order", [None, [2, 0, 1], [1, 2, 0]])
@pytest.mark.parametrize("model", [MODELS["DCM"], MODELS["PBM"]], ids=["DCM", "PBM"])
def test_dcm_klucb_follows_its_definition(model, order):
    """KL-UCB indices of what was observed down to the last click; the k-th largest stands at the
    k-th position of the order.
    """
    agent = DCMKLUCB(5, 3, position_order=order, seed=7)
    follow(agent, DCMReference(5, 3, order), model, 500)


def test_dcm_klucb_puts_the_best_where_sessions_end():
    model = DependentClickModel([0.9, 0.6, 0.3, 0.1], [0.2, 0.9, 0.5])
    agent, rng = DCMKLUCB(4, 3, position_order=[1, 2, 0], seed=10), np.random.default_rng(0)
    for _ in range(4000):
        ranking = agent.rank(None)
        agent.update(None, ranking, model.sample(ranking, rng))
    assert agent.rank(None).tolist() == [2, 0, 1] == model.optimal_ranking("satisfaction").tolist()
