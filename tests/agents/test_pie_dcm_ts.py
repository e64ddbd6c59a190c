"""PIE and dcmKL-UCB: candidates, indices and what counts as observed.

Random choices are tested against their exact laws, with fixed seeds and a false-alarm rate of 1e-5 each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from reference_agents import MODELS, each_model, follow, upper_bound
from reference_agents.indices import DCMReference, PIEReference
from scipy.stats import chisquare

from clickgym.agents.kl_ucb import DCMKLUCB
from clickgym.agents.pie import PIE
from clickgym.envs import DependentClickModel

FALSE_ALARM = 1e-5


# -------------------------------------------------------------------------------------------------------------------- PIE


def promising(
    clicks: Sequence[int], examined: Sequence[int], last_mean: float, horizon: int, outside: Sequence[int]
) -> set[int]:
    """The items outside the leaders whose KL-UCB index reaches the last leader's mean, by bisection."""
    bound = math.log(horizon) + 4 * math.log(math.log(horizon))
    result = set()
    for item in outside:
        if examined[item] == 0 or upper_bound(clicks[item] / examined[item], bound / examined[item]) >= last_mean:
            result.add(item)
    return result


@pytest.mark.parametrize("horizon", [3, 1000, 10**7])
def test_pie_bound(horizon):
    assert PIE(4, 2, horizon=horizon).state.bound == pytest.approx(
        math.log(horizon) + 4 * math.log(math.log(horizon)), rel=1e-14
    )


def test_pie_explores_exactly_the_promising_items():
    """300 random states: what appears at the last position over 150 lists is the last leader and the promising items."""
    rng = np.random.default_rng(2)
    sizes = Counter()
    for trial in range(300):
        horizon = int(rng.choice([3, 20, 1000, 10**6]))
        examined = rng.integers(1, rng.choice([5, 40, 400]), 6)
        clicks = rng.binomial(examined, rng.choice([0.05, 0.5, 0.95], 6))
        means = clicks / examined
        if len(set(means)) < 6:
            continue
        order = np.argsort(-means)
        bound = math.log(horizon) + 4 * math.log(math.log(horizon))
        agent = PIE(6, 3, horizon=horizon, seed=trial)
        agent.state.clicks[:], agent.state.examined[:], agent.state.mean[:] = clicks, examined, means
        shown = [agent.rank(None).tolist() for _ in range(150)]
        assert {tuple(ranking[:2]) for ranking in shown} == {tuple(order[:2].tolist())}
        expected = promising(clicks, examined, means[order[2]], horizon, order[3:])
        assert {ranking[2] for ranking in shown} == {int(order[2])} | expected, (clicks, examined, bound)
        sizes[len(expected)] += 1
    assert all(sizes[size] > 10 for size in range(4))


def test_pie_explores_half_of_the_time_and_uniformly():
    """Null: the last leader with 1/2, else one of three promising items alike; 6000 lists."""
    agent = PIE(5, 2, horizon=1000, seed=4)
    agent.state.clicks[:], agent.state.examined[:] = [10, 9, 4, 5, 6], [10] * 5
    agent.state.mean[:] = agent.state.clicks / 10
    last = Counter(int(agent.rank(None)[1]) for _ in range(6000))
    assert chisquare([last[1], last[2], last[3], last[4]], [3000, 1000, 1000, 1000]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("feedback", ["last_click", "first_click"])
@each_model
def test_pie_follows_its_definition(model, feedback):
    agent = PIE(5, 3, horizon=300, feedback=feedback, seed=5)
    follow(agent, PIEReference(5, 3, 300, feedback), model, 300)


# --------------------------------------------------------------------------------------------------------------- DCMKLUCB


@pytest.mark.parametrize("order", [None, [2, 0, 1], [1, 2, 0]])
@pytest.mark.parametrize("model", [MODELS["DCM"], MODELS["PBM"]], ids=["DCM", "PBM"])
def test_dcm_klucb_follows_its_definition(model, order):
    """KL-UCB indices of what was observed down to the last click; the k-th largest stands at the k-th position of the order."""
    agent = DCMKLUCB(5, 3, position_order=order, seed=7)
    follow(agent, DCMReference(5, 3, order), model, 500)


def test_dcm_klucb_puts_the_best_where_sessions_end():
    model = DependentClickModel([0.9, 0.6, 0.3, 0.1], [0.2, 0.9, 0.5])
    agent, rng = DCMKLUCB(4, 3, position_order=[1, 2, 0], seed=10), np.random.default_rng(0)
    for _ in range(4000):
        ranking = agent.rank(None)
        agent.update(None, ranking, model.sample(ranking, rng))
    assert agent.rank(None).tolist() == [2, 0, 1] == model.optimal_ranking("satisfaction").tolist()
