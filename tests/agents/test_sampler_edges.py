"""The samplers where they are easily wrong: nothing or everything clicked, huge counts, modes next
to 0 and 1, extreme weights.

Null of every distribution test: the exact law, by Kolmogorov-Smirnov or chi-square, at the sample
sizes given; fixed seeds and a false-alarm rate of 1e-5 each.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import ArrayLike
from reference_agents.plain import draw_posteriors
from scipy.special import softmax
from scipy.stats import beta, chi2, chisquare, kstest, norm
from slow import slow
from test_position_based_agents import posterior_cdf

import clickgym
from clickgym.agents import BCMPTS, PBMTS, CascadeTS, LinearTS, RankedExp3
from clickgym.agents.attraction_posterior import build_hat
from clickgym.envs import ClickEnv, PositionBasedModel

FALSE_ALARM = 1e-5
BELOW_ONE = math.nextafter(1.0, 0.0)
WARM_STARTS = [0.0, 1.0, 0.5, 1e-300, 1e-12, 1.0 - 1e-13, BELOW_ONE, math.nan, math.inf]
"""Modes that an earlier session may have left, and some that none can."""

# ------------------------------------------------------------------------------------------- PBM-TS


EDGES = {  # Σ S_l, N_l - S_l, κ_l
    "usual": (17, [18, 28], [0.9, 0.4]),
    "usual, mode just below one": (11, [1, 9], [0.95, 0.1]),
    "low weights": (3, [398, 899], [0.02, 0.005]),
    "many": (49_000, [60_000, 51_000], [0.9, 0.35]),
    "never shown": (0, [0, 0], [1.0, 0.5]),
    "never clicked": (0, [10**4, 7], [1.0, 0.5]),
    "never clicked in 10⁷": (0, [10**7, 10**7], [0.9, 0.5]),
    "never clicked, κ tiny": (0, [1, 0], [1e-100, 1.0]),
    "never clicked, κ small": (0, [1000, 0], [1e-3, 1.0]),
    "always clicked": (1000, [0, 0], [1.0, 0.5]),
    "always clicked in 10⁷": (10**7, [0, 0], [1.0, 0.5]),
    "one miss at κ = 1 after 10³ clicks": (1000, [1, 0], [1.0, 0.5]),
    "one miss at κ = 1 after 10⁷ clicks": (10**7, [1, 0], [1.0, 0.5]),
    "one miss at κ = 1 where the slope at 1 was 0": (9, [1, 1], [1.0, 0.9]),
    "slope at 1 all but 0": (9, [0, 1], [1.0, 0.9]),
    "slope at 1 just negative": (10**6 - 1, [0, 10**6], [1.0, 0.5]),
    "slope at 1 just positive": (10**6 + 1, [0, 10**6], [1.0, 0.5]),
    "κ all 1": (3, [4, 5], [1.0, 1.0]),
    "κ next to 1": (1000, [1, 1], [BELOW_ONE, BELOW_ONE]),
    "κ tiny": (5, [100, 10**7], [1e-100, 1e-13]),
    "10⁷ of both": (10**7, [2 * 10**7, 10**7], [1.0, 0.4]),
    "one click in 10⁷": (1, [10**7, 10**7], [1.0, 0.3]),
}


def pbmts(clicks: int, misses: ArrayLike, kappa: ArrayLike, warm_start: float = 0.5) -> PBMTS:
    """An agent whose item 0 has these counts and last had this mode."""
    n = len(list(kappa))
    agent = PBMTS(n, n, examination=kappa, seed=1)
    agent.state.clicks[0], agent.state.misses[0], agent.state.mode[0] = clicks, misses, warm_start
    return agent


def exact_log_density(clicks: int, misses: list[int], kappa: list[float], x: Decimal) -> Decimal:
    terms = [m * (1 - Decimal(w) * x).ln() for m, w in zip(misses, kappa, strict=True) if m]
    return sum(terms, clicks * x.ln() if clicks else Decimal(0))


def exact_mode(clicks: int, misses: list[int], kappa: list[float]) -> Decimal:
    """The mode by bisection; in [0, 1] the slope decreases."""
    seen = [(m, Decimal(w)) for m, w in zip(misses, kappa, strict=True) if m]

    def rises(x: Decimal) -> bool:
        return clicks / x > sum((m * w / (1 - w * x) for m, w in seen), Decimal(0))

    if clicks == 0:
        return Decimal(0)
    if all(w < 1 for _, w in seen) and not clicks < sum(
        (m * w / (1 - w) for m, w in seen), Decimal(0)
    ):
        return Decimal(1)
    low, high = Decimal(0), Decimal(1)
    for _ in range(160):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low


def random_counts(rng: np.random.Generator) -> tuple[int, list[int], list[float]]:
    """Counts of an item and weights, mostly at some edge."""
    n = int(rng.integers(1, 5))
    kappa = rng.choice(
        [1.0, 1.0, BELOW_ONE, 0.99, 0.9, 0.5, 1e-3, 1e-13, 1e-99, 1e-100], n
    ).tolist()
    misses = (rng.integers(0, rng.choice([2, 5, 1000, 10**8]), n) * rng.integers(0, 2, n)).tolist()
    clicks = int(rng.choice([0, 1, 2, 9, 1000, 10**8])) + int(rng.integers(0, 2))
    if rng.random() < 0.2:  # the slope vanishes next to 1
        kappa, misses = (
            [1.0, *rng.choice([0.9, 0.5, 0.99, 0.75], n).tolist()],
            [int(rng.random() < 0.3), *misses],
        )
        clicks = round(
            sum(m * w / (1 - w) for m, w in zip(misses[1:], kappa[1:], strict=True))
        ) + int(rng.integers(-1, 2))
    return max(clicks, 0), misses, kappa


def test_the_mode_is_that_of_fifty_digits():
    """1500 random counts: the log density at the mode lacks at most 1e-9 of its largest value, and
    the hat is finite.
    """
    rng = np.random.default_rng(1)
    kinds = {"at 0": 0, "next to 1": 0, "at 1": 0, "between": 0}
    for _ in range(1500):
        clicks, misses, kappa = random_counts(rng)
        agent = pbmts(clicks, misses, kappa, float(rng.choice(WARM_STARTS)))
        build_hat(agent.state, 0)
        state = agent.state
        context = f"S={clicks}, misses={misses}, kappa={kappa}"
        fields = [
            state.mode,
            state.top,
            state.left,
            state.right,
            state.rise,
            state.fall,
            state.before,
            state.after,
        ]
        fields += [state.low, state.high, state.ascent, state.descent]
        assert all(math.isfinite(field[0]) for field in fields), context
        assert 0 <= state.left[0] <= state.mode[0] <= state.right[0] <= 1, context
        assert state.low[0] <= state.mode[0] <= state.high[0] <= 1, context
        assert min(state.rise[0], state.fall[0], state.before[0], state.after[0]) >= 0, context
        assert state.before[0] + state.right[0] - state.left[0] + state.after[0] > 0, context
        with localcontext() as exact:
            exact.prec = 50
            mode, found = exact_mode(clicks, misses, kappa), Decimal(float(state.mode[0]))
            kinds[
                "at 0"
                if mode == 0
                else "at 1"
                if mode == 1
                else "next to 1"
                if mode > 1 - 1e-6
                else "between"
            ] += 1
            if mode in (0, 1) or found in (0, 1):
                assert abs(mode - found) < Decimal("1e-15"), context
            if mode != found:
                lacks = exact_log_density(clicks, misses, kappa, mode) - exact_log_density(
                    clicks, misses, kappa, found
                )
                assert abs(lacks) < Decimal("1e-9"), context
    assert min(kinds.values()) > 40, kinds


TYPICAL = ("usual", "never clicked", "always clicked in 10⁷", "slope at 1 all but 0", "κ tiny")


@pytest.mark.parametrize(
    "name", [*TYPICAL, *slow(*(name for name in EDGES if name not in TYPICAL))]
)
def test_pbmts_draws_from_the_exact_posterior(name):
    """20,000 draws against the integrated density, where the last mode was next to 1."""
    clicks, misses, kappa = EDGES[name]
    agent = pbmts(clicks, misses, kappa, BELOW_ONE)
    draw_posteriors(agent.state, 0, agent.rng, draws := np.empty(20_000))
    assert 0 < draws.min() < draws.max() < 1
    cdf = posterior_cdf([clicks, *np.zeros_like(misses)], [clicks, *misses], [0.5, *kappa])
    assert kstest(draws, cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("n_misses", [0, 1, *slow(50)])
@pytest.mark.parametrize("clicks", [0, 1000, *slow(1, 10**7)])
def test_pbmts_is_beta_where_examination_is_certain(clicks, n_misses):
    """10,000 draws, where the last mode was next to 1."""
    agent = pbmts(clicks, [n_misses], [1.0], BELOW_ONE)
    draw_posteriors(agent.state, 0, agent.rng, draws := np.empty(10_000))
    assert kstest(draws, beta(1 + clicks, 1 + n_misses).cdf).pvalue > FALSE_ALARM


# ---------------------------------------------------------------------------- CascadeTS and BC-MPTS


def assert_beta(agent: CascadeTS | BCMPTS, a: ArrayLike, b: ArrayLike) -> None:
    """20,000 draws of every item."""
    draws = []
    for _ in range(20_000):
        ranking = agent.rank(None)
        draws.append(agent.state.draws.copy())
        assert ranking.tolist() == np.argsort(-draws[-1])[: agent.n_positions].tolist()
    for sample, *parameters in zip(np.array(draws).T, a, b, strict=True):
        assert 0 <= sample.min() < sample.max() <= 1
        assert kstest(sample, beta(*parameters).cdf).pvalue > FALSE_ALARM, parameters


def test_cascade_ts_draws_from_beta_also_at_the_edges():
    agent = CascadeTS(10, 3, seed=5)
    clicks = np.array([0, 0, 0, 1, 10**7, 10**7 - 1, 5 * 10**6, 1, 3, 500])
    examined = np.array([0, 1, 10**7, 1, 10**7, 10**7, 10**7, 10**7, 5, 4000])
    agent.state.clicks[:], agent.state.examined[:] = clicks, examined
    assert_beta(agent, 1 + clicks, 1 + examined - clicks)


def test_bc_mpts_draws_from_beta_also_at_the_edges():
    """Fractional weights, and Ñ < S, where the second parameter is 1."""
    agent = BCMPTS(10, 3, examination=[1.0, 0.5, 1e-100], seed=6)
    clicks = np.array([0, 0, 0, 1, 10**7, 10**7, 3, 7, 3, 4])
    weight = np.array([0.0, 1e-100, 1e7, 1e-100, 1e7, 9.9e6, 3.0 + 1e-9, 7.25, 7.5, 2.2])
    agent.state.clicks[:], agent.state.weight[:] = clicks, weight
    assert_beta(agent, 1 + clicks, 1 + np.maximum(0.0, weight - clicks))


# ----------------------------------------------------------------------------------------- LinearTS


@pytest.mark.parametrize("ridge", [1e-6, *slow(1.0), 1e6])
@pytest.mark.parametrize(("samples", "clicked"), [(0, 0), (1, 0), (1, 1), (10**7, 0), (10**7, 1)])
def test_linear_ts_draws_from_the_posterior_at_the_edges(ridge, samples, clicked):
    """One candidate seen in all samples: 5000 draws along it and across it are independent normals
    of the right widths.
    """
    d, x = 3, np.array([0.6, 0.0, 0.8])
    agent = LinearTS(2, 1, n_features=d, alpha=0.5, ridge=ridge, seed=7)
    state = agent.state
    state.gram[:] += samples * np.outer(x, x)
    state.moment[:] += samples * clicked * x
    theta = samples * clicked / (ridge + samples) * x
    state.theta[:] = theta
    draws = []
    for _ in range(5000):
        agent.rank({"features": np.zeros((2, d))})
        draws.append(state.vector.copy())
    directions = np.array([x, [0.8, 0.0, -0.6], [0.0, 1.0, 0.0]])
    widths = 0.5 / np.sqrt([ridge + samples, ridge, ridge])
    scores = (np.array(draws) - theta) @ directions.T / widths
    for k in range(d):
        assert kstest(scores[:, k], norm.cdf).pvalue > FALSE_ALARM
    assert kstest(np.sum(scores**2, axis=1), chi2(d).cdf).pvalue > FALSE_ALARM


# --------------------------------------------------------------------------------------- RankedExp3


def law_of(agent: RankedExp3) -> np.ndarray:
    """The probabilities from which the choices are drawn."""
    state = agent.state
    return (1 - state.gamma) * state.weight / state.total[:, None] + state.gamma / agent.n_items


@pytest.mark.parametrize("gamma", [5e-324, 1e-3, 0.5, BELOW_ONE, 1.0])
def test_exp3_stays_a_law_when_one_item_wins_a_million_times(gamma):
    """Item 0 of the first position is always paid: numbers stay finite and 5000 choices follow the
    law.
    """
    agent = RankedExp3(4, 2, horizon=10**6, gamma=gamma, seed=8)
    clickgym.run(
        agent,
        ClickEnv(PositionBasedModel([1.0, 0.0, 0.0, 0.0], [1.0, 1.0])),
        10**6,
        seed=9,
        checkpoints=[10**6],
    )
    state = agent.state
    assert all(np.isfinite(values).all() for values in state)
    np.testing.assert_allclose(
        state.weight / state.total[:, None], softmax(state.log_weight, axis=1), atol=1e-12
    )
    law = law_of(agent)
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-12)
    counts = np.zeros((2, 4))
    for _ in range(5000):
        agent.rank(None)
        counts[[0, 1], state.choice] += 1
    for seen, expected in zip(counts, 5000 * law, strict=True):
        likely = expected > 5
        assert seen[~likely].sum() <= 40  # of at most 15 expected: less than 1e-6
        if likely.sum() > 1:
            scale = seen[likely].sum() / expected[likely].sum()
            assert chisquare(seen[likely], expected[likely] * scale).pvalue > FALSE_ALARM


@pytest.mark.parametrize("behind", [10.0, 700.0, 740.0, 1e4, 1e6])
@pytest.mark.parametrize("gamma", [1e-3, 1.0])
def test_exp3_takes_up_an_item_from_far_behind(gamma, behind):
    """Its weight is all but 0, denormal or 0; rewards bring it back by what they are worth, and the
    law stays one.
    """
    agent = RankedExp3(3, 1, horizon=10**6, gamma=gamma, seed=10)
    state = agent.state
    state.log_weight[0] = [behind, 0.0, 0.0]
    state.offset[0], state.weight[0] = behind, np.exp(state.log_weight[0] - behind)
    state.total[0] = state.weight[0].sum()
    for _ in range(1000):
        p = law_of(agent)[0, 1]
        before = state.log_weight[0, 1]
        agent.rank(None)
        agent.ranking[0] = state.choice[0] = 1
        state.chance[0] = p
        agent.update(None, [1], [1])
        assert state.log_weight[0, 1] - before == pytest.approx(gamma / (3 * p), rel=1e-9)
        assert all(np.isfinite(values).all() for values in state)
        assert law_of(agent).sum() == pytest.approx(1.0, rel=1e-12)
