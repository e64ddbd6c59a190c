"""PB-MHB (Gauthier, Gaudel and Fromont 2021), an agent that uses Thompson sampling for the
position-based model with unknown examination probabilities.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_count, check_flag, check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ...core.sums import weighted_sums
from ..agent import Seed
from ..common.ranking import rank_by_draw, show_at
from ..compiled_agent import CompiledAgent

# the standard deviation from which a step is drawn by rejection sampling from the uniform
# distribution
WIDE_SIGMA = 0.5
MARGIN = 1e-6  # the least distance of fitted values from 0 and 1


class PBMHBState(NamedTuple):
    clicks: Annotated[Ints, "L K"]  # S, the clicks on each item at each position
    misses: Annotated[Ints, "L K"]  # F, the displays without a click
    theta: Floats  # (L,) θ, the current draw of the attractions
    kappa: Floats  # (K,) κ, the current draw of the examination probabilities
    log_miss: Floats  # (L, K) log(1 - θ_i κ_k)
    t: Annotated[Ints, "1"]  # sessions so far
    c: float
    n_sweeps: int
    fixed: int  # 1 if the first position is always examined, otherwise 0
    items: Annotated[Ints, "L", range]  # working memory
    positions: Annotated[Ints, "K", range]  # working memory
    proposed: Annotated[Floats, "L"]  # working memory: log(1 - θ_i κ_k) after a step


@kernel
def step_within(rng, x, sigma):
    """Draw from the normal distribution with mean x and standard deviation sigma, truncated to [0,
    1].
    """
    if sigma < WIDE_SIGMA:
        while True:  # at least two of five draws are accepted
            y = x + sigma * rng.standard_normal()
            if 0.0 <= y <= 1.0:
                return y
    while True:  # at least three of five draws are accepted
        y = rng.random()
        if rng.random() < math.exp(-0.5 * ((y - x) / sigma) ** 2):
            return y


@kernel
def mass_within(x, sigma):
    """Return the probability that a normal draw with mean x and standard deviation sigma lies in
    [0, 1].
    """
    scale = sigma * math.sqrt(2.0)
    return 0.5 * (math.erf((1.0 - x) / scale) + math.erf(x / scale))


@kernel
def log_likelihood_change(clicks, misses, x, y, others, log_miss, proposed):
    """Return the change of the log-likelihood if one parameter (θ_i or κ_k) changes from x to y.

    Args:
        clicks: the number of clicks whose probability contains this parameter as a factor.
        misses: ``(n,)`` the number of displays without a click, for each of the other factors.
        x, y: the value of the parameter before and after the change.
        others: ``(n,)`` the other factors o, with which the parameter is multiplied.
        log_miss: ``(n,)`` log(1 - x o) for each of the other factors.
        proposed: ``(n,)`` output: log(1 - y o) for each of the other factors.
    """
    change = clicks * (math.log(y) - math.log(x)) if clicks > 0 else 0.0
    for i in range(len(others)):
        proposed[i] = math.log1p(-y * others[i]) if y * others[i] < 1.0 else -np.inf
        if misses[i] > 0:
            change += misses[i] * (proposed[i] - log_miss[i])
    return change


@kernel
def draw_acceptance(rng, change, x, y, sigma):
    """Decide at random whether Metropolis-Hastings accepts the step from x to y, and return the
    decision. ``change`` is the change of the log-likelihood. The acceptance probability corrects
    for the truncation to [0, 1], which differs between x and y.
    """
    chance = change + math.log(mass_within(x, sigma) / mass_within(y, sigma))
    return chance >= 0.0 or rng.random() < math.exp(chance)


@kernel
def step_chain(state, rng, sigma):
    """Propose one step of the Markov chain for each parameter, and accept or reject the step."""
    n_items, n_positions = state.clicks.shape
    for item in range(n_items):
        x, clicks = state.theta[item], 0
        for k in range(n_positions):
            clicks += state.clicks[item, k]
        y = step_within(rng, x, sigma)
        change = log_likelihood_change(
            clicks,
            state.misses[item],
            x,
            y,
            state.kappa,
            state.log_miss[item],
            state.proposed[:n_positions],
        )
        if draw_acceptance(rng, change, x, y, sigma):
            state.theta[item] = y
            for k in range(n_positions):
                state.log_miss[item, k] = state.proposed[k]
    for k in range(state.fixed, n_positions):
        x, clicks = state.kappa[k], 0
        for item in range(n_items):
            clicks += state.clicks[item, k]
        y = step_within(rng, x, sigma)
        change = log_likelihood_change(
            clicks,
            state.misses[:, k],
            x,
            y,
            state.theta,
            state.log_miss[:, k],
            state.proposed[:n_items],
        )
        if draw_acceptance(rng, change, x, y, sigma):
            state.kappa[k] = y
            for item in range(n_items):
                state.log_miss[item, k] = state.proposed[item]


@kernel
def rank(state, rng, ranking):
    for _ in range(state.n_sweeps):
        step_chain(state, rng, state.c / math.sqrt(state.t[0] + 1))
    rank_by_draw(state.theta, state.items, rng, len(ranking))
    rank_by_draw(state.kappa, state.positions, rng, len(ranking))
    show_at(state.positions, state.items, ranking)


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    for k in range(len(ranking)):
        state.clicks[ranking[k], k] += clicks[k]
        state.misses[ranking[k], k] += 1 - clicks[k]


class PBMHB(CompiledAgent):
    """PB-MHB: an agent for the position-based model that draws attractions and examination
    probabilities together (Thompson sampling, by a Metropolis-Hastings chain).

    Idea:
        In the position-based model, users click item i at position k with probability θ_i κ_k, the
        item's attraction times the position's examination probability. PB-MHB (position-based,
        Metropolis-Hastings bandit) knows neither of them, and learns both from the numbers of
        clicks and skips of each item at each position. In each session, a Metropolis-Hastings chain
        proposes a random new value for each parameter, and accepts or rejects the value according
        to the posterior given all counts. PB-MHB shows the item with the j-th largest θ at the
        position with the j-th largest κ, so it learns about an item from all positions. The chain
        starts at random values, and rejects most proposals when the counts are large. PB-MHB
        forgets nothing, so it hardly recovers from misleading first sessions. If the first position
        is not the one that users examine most, its regret is high, unless you pass
        ``fix_first=False``.

    Algorithm:
        ::

            S(i, k) ← 0 and F(i, k) ← 0 for each item i and position k: its clicks and skips there
            attractions θ_1, ..., θ_L and examination κ_2, ..., κ_K ← uniform draws from [0, 1]
            κ_1 ← 1 (with fix_first=False it is drawn like the others)
            for t = 1, 2, ...:
                σ ← c / sqrt(t), the width of the proposals (c = 1000: nearly uniform)
                n_sweeps times (1), for each parameter x of θ_1, ..., θ_L, κ_2, ..., κ_K:
                    draw a proposal x' from the normal distribution N(x, σ²), cut off at 0 and 1
                    Λ ← Π_{i,k} (θ_i κ_k)^{S(i,k)} (1 - θ_i κ_k)^{F(i,k)} with x' / the same with x
                    r ← P(N(x, σ²) in [0, 1]) / P(N(x', σ²) in [0, 1]), for proposals near 0 and 1
                        are drawn more often
                    with probability min(1, Λ r): x ← x'
                R_t ← the item of the j-th largest θ on the position of the j-th largest κ, j ≤ K
                show R_t and observe the clicks, y(k) at position k
                for k = 1, ..., K:
                    S(R_t(k), k) ← S(R_t(k), k) + y(k)
                    F(R_t(k), k) ← F(R_t(k), k) + 1 - y(k)

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        c: the scale of the proposals, above 0: their standard deviation in session t is ``c /
            sqrt(t)``. With the default, proposals are nearly uniform on [0, 1] in the first 100,000
            sessions.
        n_sweeps: the number of proposals for each parameter per session.
        fix_first: whether κ_1 is fixed at 1, as in the paper, which assumes that users examine the
            first position most. If they do not, regret is linear; with False, the chain draws κ_1,
            too.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``c``, ``n_sweeps`` or ``fix_first`` is invalid.

    Source: Gauthier, Gaudel, Fromont, *Bandit algorithm for both unknown best position and best
    item display on web pages*, IDA 2021, Algorithms 1 and 2.

    Deviations from the paper:
        1. ⚠ The prior is uniform. The authors' code starts with half a click and half a miss for
           each item and position.
        2. ⚠ The first values of the parameters are drawn uniformly, and a sweep of the chain
           precedes the first session.
        3. Steps are drawn from the truncated normal distribution; from σ = 0.5 on, by rejection
           sampling from the uniform distribution.

    Memory: 3 L K + 3 (L + K) numbers. Time: a session takes ``O(n_sweeps L K)``.

    Example:
        >>> PBMHB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Gauthier et al. 2021b, Algorithm 1"
    bibtex_keys = ["pbmhb"]
    click_models = "PBM"
    made_for_models = ("PBM",)
    state_type, rank_kernel, update_kernel = PBMHBState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        c: float = 1000.0,
        n_sweeps: int = 1,
        fix_first: bool = True,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            seed,
            c=check_number("c", c, above=0),
            n_sweeps=check_count("n_sweeps", n_sweeps),
            fix_first=check_flag("fix_first", fix_first),
        )

    def best(self) -> NDArray[np.int64]:
        """Return the list that is best by the agent's current estimates; see `CompiledAgent.best`.
        The estimates are the best fit of θ and κ to all counts, not the last draw.
        """
        theta, kappa = self._fit()
        theta[(self.state.clicks + self.state.misses).sum(axis=1) == 0] = 0.0  # never observed
        return self._best_by(theta, np.argsort(-kappa, kind="stable"))

    def _fit(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the estimates of θ and κ from all counts. The fit treats clicks as Poisson counts,
        so the row and column sums of the fitted counts equal those of the clicks. Each item and
        each position starts with half a click and half a display without a click.
        """
        clicks, displays = self.state.clicks, self.state.clicks + self.state.misses
        kappa = np.ones(self.n_positions)
        for _ in range(100):
            theta = (clicks.sum(axis=1) + 0.5) / (weighted_sums(displays, kappa) + 1.0)
            kappa = (clicks.sum(axis=0) + 0.5) / (weighted_sums(displays.T, theta) + 1.0)
            kappa[: self.state.fixed] = 1.0
        theta, kappa = (np.clip(values, MARGIN, 1.0 - MARGIN) for values in (theta, kappa))
        kappa[: self.state.fixed] = 1.0
        return theta, kappa

    def first_values(self) -> dict[str, Any]:
        fixed = int(self.hyperparameters["fix_first"])
        theta, kappa = self.rng.random(self.n_items), self.rng.random(self.n_positions)
        kappa[:fixed] = 1.0
        return {
            "theta": theta,
            "kappa": kappa,
            "log_miss": np.log1p(-np.outer(theta, kappa)),
            "fixed": fixed,
        }
