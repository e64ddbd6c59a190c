"""PBM-PIE: its candidates, against numerically solved indices; and the posterior of PBM-TS."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from reference_agents import bernoulli_kl
from scipy.optimize import brentq

from clickgym.agents.position_based import PBMPIE

pytestmark = pytest.mark.uncompiled


# ------------------------------------------------------------------------------------------ PBM-PIE


def phi(clicks: NDArray, displays: NDArray, kappa: NDArray, q: float) -> float:
    """Σ_l N_l KL(S_l/N_l, κ_l q); positions where the item was not displayed drop out."""
    return sum(
        n * bernoulli_kl(s / n, w * q)
        for s, n, w in zip(clicks, displays, kappa, strict=True)
        if n > 0
    )


def upper_index(clicks: NDArray, displays: NDArray, kappa: NDArray, bound: float) -> float:
    """U = sup{q in [q_min, 1] : Φ(q) ≤ bound}, q_min if there is none; q_min from the root of
    Φ'.
    """

    def slope(q: float) -> float:
        misses = displays - clicks
        with np.errstate(divide="ignore", invalid="ignore"):
            return -clicks.sum() / q + np.sum(
                np.where(misses > 0, misses * kappa / np.maximum(1 - kappa * q, 0), 0.0)
            )

    if clicks.sum() == 0:
        least = 0.0
    elif slope(1.0) <= 0:
        least = 1.0
    else:
        least = brentq(slope, 1e-12, 1.0 - 1e-15 if np.isinf(slope(1.0)) else 1.0, xtol=1e-15)
    if phi(clicks, displays, kappa, least) > bound:
        return least
    if phi(clicks, displays, kappa, 1.0) <= bound:
        return 1.0
    top = 1.0 if np.isfinite(phi(clicks, displays, kappa, 1.0)) else 1.0 - 1e-16
    if phi(clicks, displays, kappa, top) <= bound:  # the crossing lies between the last two floats
        return top
    return brentq(lambda q: phi(clicks, displays, kappa, q) - bound, least, top, xtol=1e-15)


def put(agent: PBMPIE, clicks: ArrayLike, displays: ArrayLike) -> None:
    """Set the counts ``(L, K)`` of an agent, as if its start were over."""
    state = agent.state
    state.clicks[:], state.displays[:] = clicks, displays
    state.weight[:] = state.displays @ state.examination
    state.mean[:] = state.clicks.sum(axis=1) / state.weight
    state.stale[:], state.t[0] = True, agent.n_items


def test_pie_exploration():
    """500 random states, with S = N, S = 0, unseen positions, κ = 1 and θ̂ > 1 among them; indices
    by root finding.
    """
    rng = np.random.default_rng(2)
    sizes, above_one, certain = Counter(), 0, 0
    for trial in range(500):
        kappa = rng.choice([1.0, 0.9, 0.6, 0.3, 0.05], 3)
        kappa += rng.random(3) * 1e-3 * (kappa < 1)  # no equal weights
        displays = rng.integers(0, rng.choice([3, 12, 80]), (5, 3))
        displays[np.arange(5), rng.integers(0, 3, 5)] += 1
        theta = (
            rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], (5, 1))
            if trial % 3
            else rng.choice([0.7, 1.0], (5, 1))
        )
        clicks = rng.binomial(displays, np.minimum(theta * kappa ** (trial % 2), 1.0))
        horizon, epsilon = int(rng.choice([2, 30, 1000, 10**7])), float(rng.choice([0.0, 0.5]))
        bound = (1 + epsilon) * math.log(horizon)
        agent = PBMPIE(5, 3, examination=kappa, horizon=horizon, epsilon=epsilon, seed=trial)
        put(agent, clicks, displays)
        means = agent.state.mean.copy()
        order = np.argsort(-means)
        if (
            len(set(np.sort(means)[::-1][:4].tolist())) < 4
            or means[order[2]] == means[order[3]]
            or len(set(kappa)) < 3
        ):
            continue
        x, where = means[order[2]], np.argsort(-kappa)
        indices = {
            int(item): upper_index(clicks[item], displays[item], kappa, bound) for item in order[3:]
        }
        if any(abs(u - x) < 1e-9 for u in indices.values()) and x != 1.0:
            continue
        expected = {item for item, u in indices.items() if u >= x}
        shown = [agent.rank(None)[where] for _ in range(80)]
        assert {tuple(ranking[:2].tolist()) for ranking in shown} == {tuple(order[:2].tolist())}
        context = (
            f"S={clicks.tolist()}, N={displays.tolist()}, kappa={kappa.tolist()}, bound={bound}"
        )
        assert {int(ranking[2]) for ranking in shown} == {int(order[2])} | expected, context
        sizes[len(expected)] += 1
        above_one += x > 1
        certain += bool(np.any((clicks == displays).all(axis=1) & (means < x)))
    assert all(sizes[size] > 20 for size in range(3))
    assert above_one > 10
    assert certain > 3


# ------------------------------------------------------------------------------------------- PBM-TS


def log_posterior(
    theta: NDArray, clicks: ArrayLike, displays: ArrayLike, kappa: ArrayLike
) -> NDArray:
    """log of θ^S Π (1 - κ_l θ)^(N_l - S_l), up to a constant."""
    result = np.zeros_like(theta)
    with np.errstate(divide="ignore"):
        for s, n, w in zip(clicks, displays, kappa, strict=True):
            result += (s * np.log(theta) if s else 0.0) + (
                (n - s) * np.log1p(-w * theta) if n > s else 0.0
            )
    return result


def posterior_cdf(clicks: ArrayLike, displays: ArrayLike, kappa: ArrayLike) -> Any:
    """The posterior's distribution function, integrated on a grid that is refined where the mass
    is.
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
