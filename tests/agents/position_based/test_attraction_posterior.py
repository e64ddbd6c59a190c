"""Tests of draws from the posterior of an item's attraction where errors are likely: nothing or
everything clicked, huge counts, modes close to 0 and 1. `test_references_draw_alike` tests the
ordinary cases.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlog1py, xlogy
from scipy.stats import kstest

from clickgym.agents import PBMTS
from clickgym.agents.position_based.attraction_posterior import draw_posterior
from clickgym.core.kernels import kernel

EDGES = {  # Σ S_l, N_l - S_l, κ_l
    "usual": (17, [18, 28], [0.9, 0.4]),
    "usual, mode just below one": (11, [1, 9], [0.95, 0.1]),
    "never shown": (0, [0, 0], [1.0, 0.5]),
    "never clicked": (0, [10**4, 7], [1.0, 0.5]),
    "never clicked, κ tiny": (0, [1, 0], [1e-100, 1.0]),
    "always clicked in 10⁷": (10**7, [0, 0], [1.0, 0.5]),
    "one miss at κ = 1 after 10⁷ clicks": (10**7, [1, 0], [1.0, 0.5]),
    "slope at 1 all but 0": (9, [0, 1], [1.0, 0.9]),
    "κ all 1": (3, [4, 5], [1.0, 1.0]),
    "κ tiny": (5, [100, 10**7], [1e-100, 1e-13]),
    "10⁷ of both": (10**7, [2 * 10**7, 10**7], [1.0, 0.4]),
}


def log_posterior(
    theta: NDArray, clicks: ArrayLike, displays: ArrayLike, kappa: ArrayLike
) -> NDArray:
    """The log of θ^S Π (1 - κ_l θ)^(N_l - S_l), up to a constant."""
    result = np.zeros_like(theta)
    for s, n, w in zip(clicks, displays, kappa, strict=True):
        result += xlogy(s, theta) + xlog1py(n - s, -w * theta)
    return result


def posterior_cdf(clicks: ArrayLike, displays: ArrayLike, kappa: ArrayLike) -> Any:
    """The posterior's distribution function, integrated on a grid that is finer where the
    mass is.
    """
    low, high = 0.0, 1.0
    for _ in range(6):
        grid = np.linspace(low, high, 20_001)
        height = log_posterior(grid, clicks, displays, kappa)
        mass = np.flatnonzero(height > height.max() - 45)
        low, high = grid[max(mass[0] - 1, 0)], grid[min(mass[-1] + 1, 20_000)]
    grid = np.linspace(low, high, 200_001)
    density = np.exp(log_posterior(grid, clicks, displays, kappa) - height.max())
    integral = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return lambda x: np.interp(x, grid, integral / integral[-1])


@kernel
def draw_posteriors(state, item, rng, draws):
    for n in range(len(draws)):
        draws[n] = draw_posterior(state, item, rng)


@pytest.mark.parametrize("name", EDGES)
def test_pbmts_draws_from_the_exact_posterior(name):
    """Null: 20,000 draws follow the integrated density, after a session in which the mode was close
    to 1.
    """
    clicks, misses, kappa = EDGES[name]
    agent = PBMTS(len(kappa), len(kappa), examination=kappa, seed=1)
    state = agent.state
    state.clicks[0], state.misses[0], state.mode[0] = clicks, misses, math.nextafter(1.0, 0.0)
    draw_posteriors(state, 0, agent.rng, draws := np.empty(20_000))
    assert 0 < draws.min() < draws.max() < 1
    cdf = posterior_cdf([clicks, *np.zeros_like(misses)], [clicks, *misses], [0.5, *kappa])
    assert kstest(draws, cdf).pvalue > 1e-5
