"""Ranked bandits: the shell and its two bases against plain-Python definitions.

Random choices are tested by chi-square against the exact law, with fixed seeds and a false-alarm
rate of 1e-5 each.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chisquare
from slow import slow

from clickgym.agents.kernels import log_likelihood
from clickgym.agents.ranked_bandits import RankedExp3, RankedKLUCB

pytestmark = pytest.mark.uncompiled

FALSE_ALARM = 1e-5


# ---------------------------------------------------------------------------------------- the shell


def all_want(agent: RankedKLUCB, item: int) -> None:
    """Makes every KL-UCB bandit choose one item."""
    agent.state.clicks[:], agent.state.examined[:] = 100, 1000
    agent.state.clicks[:, item] = 900
    agent.state.peak[:] = log_likelihood(100, 1000)  # of 900 out of 1000, too


def test_a_replacement_is_uniform_over_the_items_not_shown_above():
    """All bandits want item 2. Null: ordered pairs of the others are equally likely below it; 6000
    draws.
    """
    agent = RankedKLUCB(5, 3, seed=1)
    all_want(agent, 2)
    draws = Counter(tuple(agent.rank(None).tolist()) for _ in range(6000))
    support = [(2, i, j) for i in (0, 1, 3, 4) for j in (0, 1, 3, 4) if i != j]
    assert set(draws) == set(support)
    assert chisquare([draws[shown] for shown in support]).pvalue > FALSE_ALARM


def test_items_never_chosen_come_first_in_random_order():
    """K = 1. Null: the first choice is uniform; then every item is chosen once before any is chosen
    twice.
    """
    first = Counter()
    for seed in range(2000):
        agent = RankedKLUCB(4, 1, seed=seed)
        chosen = []
        for _ in range(4 if seed < 50 else 1):
            chosen.append(int(agent.rank(None)[0]))
            agent.update(None, chosen[-1:], [1])
        assert len(set(chosen)) == len(chosen)
        first[chosen[0]] += 1
    assert chisquare([first[item] for item in range(4)]).pvalue > FALSE_ALARM


# --------------------------------------------------------------------------------------------- Exp3


def probabilities(log_weight: np.ndarray, gamma: float) -> np.ndarray:
    return (1 - gamma) * softmax(log_weight, axis=-1) + gamma / log_weight.shape[-1]


@pytest.mark.parametrize("gamma", [0.4, 1.0, *slow(0.0173)])
def test_exp3_draws_from_its_probabilities(gamma):
    """Null: the choice of position k has the law (1-γ) w/Σw + γ/L; 20000 draws from fixed
    weights.
    """
    agent = RankedExp3(4, 2, horizon=1000, gamma=gamma, seed=9)
    rng = np.random.default_rng(0)
    for _ in range(500):
        ranking = agent.rank(None)
        agent.update(
            None,
            ranking,
            (rng.random(2) < [0.8 if item == 2 else 0.2 for item in ranking]).astype(int),
        )
    p = probabilities(agent.state.log_weight, gamma)
    counts = np.zeros((2, 4))
    for _ in range(20000):
        agent.rank(None)
        counts[[0, 1], agent.state.choice] += 1
    for k in range(2):
        assert chisquare(counts[k], p[k] * 20000).pvalue > FALSE_ALARM
