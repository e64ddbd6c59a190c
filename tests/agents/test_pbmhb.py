"""PB-MHB: the law of its steps, what makes them accepted, and its draws against the posterior on a
grid.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_agents import PBMHBReference
from reference_agents.plain import draw_steps
from scipy.stats import ks_1samp, truncnorm
from slow import slow

from clickgym.agents import PBMHB, pbmhb
from clickgym.envs import PositionBasedModel

pytestmark = pytest.mark.uncompiled

FALSE_ALARM = 1e-5


class Fixed:
    """A generator whose every number is the same."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


# ---------------------------------------------------------------------------------------- the steps


@pytest.mark.parametrize("sigma", [0.01, 0.3, pbmhb.WIDE - 1e-9, pbmhb.WIDE, 0.8, 1000.0])
@pytest.mark.parametrize("x", [0.0, 0.03, 0.7, 1.0])
def test_a_step_has_the_law_of_the_truncated_gaussian(sigma, x):
    """Null: Kolmogorov-Smirnov against SciPy's, 4,000 steps; both sides of WIDE."""
    rng = np.random.default_rng(1)
    draw_steps(rng, x, sigma, steps := np.empty(4000))
    assert 0 <= steps.min() <= steps.max() <= 1
    law = truncnorm(-x / sigma, (1 - x) / sigma, x, sigma)
    assert ks_1samp(steps, law.cdf).pvalue > FALSE_ALARM
    other = truncnorm(-x / (1.2 * sigma), (1 - x) / (1.2 * sigma), x, 1.2 * sigma)
    assert sigma > 0.4 or ks_1samp(steps, other.cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 1000.0])
def test_acceptance_ratio(sigma):
    """The number below which a step is accepted, against the reference's ratio; for θ and κ, with
    cells of no clicks.
    """
    rng, reference = np.random.default_rng(2), PBMHBReference(3, 2, fix_first=False)
    reference.shown = np.array([[4, 2], [0, 2], [6, 0]])
    reference.clicks = np.array([[3, 1], [0, 0], [6, 0]])
    misses, tried = reference.shown - reference.clicks, 0
    for _ in range(200):
        point = rng.random(5)
        coordinate, new = int(rng.integers(5)), rng.random()
        theta, kappa = point[:3], point[3:]
        if coordinate < 3:
            clicks, missed, others = reference.clicks[coordinate].sum(), misses[coordinate], kappa
        else:
            clicks, missed, others = (
                reference.clicks[:, coordinate - 3].sum(),
                misses[:, coordinate - 3],
                theta,
            )
        x, proposed = point[coordinate], np.empty(len(others))
        change = pbmhb.log_likelihood_change(
            clicks, missed, x, new, others, np.log1p(-x * others), proposed
        )
        np.testing.assert_allclose(proposed, np.log1p(-new * others))
        ratio = math.exp(reference.log_ratio(point, coordinate, new, sigma))
        below, above = ratio * (1 - 1e-6), ratio * (1 + 1e-6)
        assert pbmhb.is_accepted(Fixed(min(below, 1.0)), change, x, new, sigma)
        if above < 1:
            tried += 1
            assert not pbmhb.is_accepted(Fixed(above), change, x, new, sigma)
    assert tried > 50


def test_a_step_to_a_click_that_is_impossible_or_certain():
    """θ = 0 cannot have been clicked; θ κ = 1 cannot have been missed."""
    log_miss, proposed = np.log1p([-0.5]), np.empty(1)
    change = pbmhb.log_likelihood_change
    assert change(0, np.array([1]), 0.5, 1.0, np.array([1.0]), log_miss, proposed) == -math.inf
    assert change(0, np.array([0]), 0.5, 1.0, np.array([1.0]), log_miss, proposed) == 0.0


# ------------------------------------------------------------------------------------ the posterior


SHOWN, CLICKS = np.array([[4, 2], [3, 2]]), np.array([[3, 1], [0, 1]])


def chain(sigma, fix_first, n_sweeps, n_samples):
    """Draws of an agent of few observations, whose steps keep their width."""
    agent = PBMHB(2, 2, c=sigma, fix_first=fix_first, n_sweeps=n_sweeps, seed=3)
    agent.state.clicks[...], agent.state.misses[...] = CLICKS, SHOWN - CLICKS
    samples = []
    for _ in range(n_samples):
        agent.rank(None)
        samples.append([*agent.state.theta, *agent.state.kappa])
    return np.array(samples)


def p_values(samples, fix_first):
    reference = PBMHBReference(2, 2, fix_first=fix_first)
    reference.shown, reference.clicks = SHOWN, CLICKS
    middles, mass = reference.grid_posterior(100 if fix_first else 40)
    ends = np.append(middles - middles[0], 1.0)
    cumulated = np.hstack([np.zeros((len(mass), 1)), mass.cumsum(axis=1)])
    return [
        ks_1samp(samples[:, coordinate], lambda x, a=a: np.interp(x, ends, cumulated[a])).pvalue
        for a, coordinate in enumerate(reference.coordinates())
    ]


@pytest.mark.parametrize(
    ("fix_first", "sigma"), [(True, 0.45), (False, 1.0), *slow((True, 1000.0), (False, 0.45))]
)
def test_draws_are_those_of_the_posterior(fix_first, sigma):
    """Null: the marginals of the grid; every tenth sweep of 15,000."""
    samples = chain(sigma, fix_first, 10, 1500)
    assert min(p_values(samples, fix_first)) > FALSE_ALARM
    assert np.all(samples[:, 2] == 1.0) == fix_first


# ------------------------------------------------------------------------------------- the sessions


@pytest.mark.parametrize("fix_first", [True, False])
def test_first_position_that_is_not_the_best(fix_first):
    """Only where the first examination is free the agent learns."""
    model, rng = PositionBasedModel([0.1, 0.8, 0.5], [0.3, 1.0]), np.random.default_rng(7)
    agent, best = PBMHB(3, 2, fix_first=fix_first, seed=8), 0
    for session in range(3000):
        ranking = agent.rank(None)
        best += session >= 2000 and ranking.tolist() == [2, 1]
        agent.update(None, ranking, model.sample(ranking, rng))
    assert (best > 700) == (not fix_first)
