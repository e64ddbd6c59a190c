"""Tests of PB-MHB: steps on both sides of the point where the sampling method changes, impossible
steps, and the best list.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ks_1samp, truncnorm

from clickgym.agents import PBMHB
from clickgym.agents.position_based import pbmhb
from clickgym.core.kernels import kernel

pytestmark = pytest.mark.uncompiled


@kernel
def draw_steps(rng, x, sigma, draws):
    for n in range(len(draws)):
        draws[n] = pbmhb.step_within(rng, x, sigma)


@pytest.mark.parametrize("sigma", [0.01, pbmhb.WIDE_SIGMA - 1e-9, pbmhb.WIDE_SIGMA, 1000.0])
@pytest.mark.parametrize("x", [0.0, 0.7])
def test_a_step_has_the_law_of_the_truncated_gaussian(sigma, x):
    """Null: the steps follow SciPy's truncated Gaussian. Kolmogorov-Smirnov test, 4,000 steps."""
    draw_steps(np.random.default_rng(1), x, sigma, steps := np.empty(4000))
    law = truncnorm(-x / sigma, (1 - x) / sigma, x, sigma)
    assert ks_1samp(steps, law.cdf).pvalue > 1e-5


def test_a_step_to_a_click_that_is_impossible_or_certain():
    """θ = 0 is impossible after a click; θ κ = 1 is impossible after a missing click."""
    log_miss, proposed = np.log1p([-0.5]), np.empty(1)
    change = pbmhb.log_likelihood_change
    assert change(0, np.array([1]), 0.5, 1.0, np.array([1.0]), log_miss, proposed) == -math.inf
    assert change(0, np.array([0]), 0.5, 1.0, np.array([1.0]), log_miss, proposed) == 0.0


def test_the_best_list_has_half_a_click_and_half_a_miss_beforehand():
    """The estimate of an item with 0 clicks in 1 display is 0.5 / 2, with 4 clicks in 10 displays
    4.5 / 11.
    """
    agent = PBMHB(2, 1, seed=0)
    agent.state.clicks[:], agent.state.misses[:] = [[0], [4]], [[1], [6]]
    assert agent.best().tolist() == [1]
