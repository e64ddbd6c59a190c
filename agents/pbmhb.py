"""PB-MHB (Gauthier, Gaudel and Fromont 2021): Thompson sampling for the position-based model with
unknown examination.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_count, check_flag, check_number
from ..core.kernels import kernel
from ..core.state import Floats, Ints
from ..core.sums import weighted_sums
from .agent import Seed
from .compiled_agent import CompiledAgent
from .shared_kernels import rank_by_draw, show_at

# standard deviations above which a step is drawn by rejection from the uniform distribution
WIDE = 0.5
LEAST = 1e-6  # the distance of a fit from 0 and 1


class State(NamedTuple):
    clicks: Annotated[Ints, "L K"]  # S
    misses: Annotated[Ints, "L K"]  # F
    theta: Floats  # (L,) θ, the sample of the attractions
    kappa: Floats  # (K,) κ, the sample of the examination
    log_miss: Floats  # (L, K) log(1 - θ_i κ_k)
    t: Annotated[Ints, "1"]  # sessions
    c: float
    n_sweeps: int
    fixed: int  # 1 if the first position is always examined, otherwise 0
    items: Annotated[Ints, "L", range]  # working memory
    positions: Annotated[Ints, "K", range]  # working memory
    proposed: Annotated[Floats, "L"]  # working memory: log(1 - θ_i κ_k) after a step


@kernel
def step_within(rng, x, sigma):
    """Draw from the normal distribution around x, truncated at 0 and 1."""
    if sigma < WIDE:
        while True:  # accepts at least two of five draws
            y = x + sigma * rng.standard_normal()
            if 0.0 <= y <= 1.0:
                return y
    while True:  # accepts at least three of five draws
        y = rng.random()
        if rng.random() < math.exp(-0.5 * ((y - x) / sigma) ** 2):
            return y


@kernel
def mass_within(x, sigma):
    """Return the probability that a normal draw around x lies in [0, 1]."""
    scale = sigma * math.sqrt(2.0)
    return 0.5 * (math.erf((1.0 - x) / scale) + math.erf(x / scale))


@kernel
def log_likelihood_change(clicks, misses, x, y, others, log_miss, proposed):
    """Return the change of the log-likelihood if one parameter changes from x to y.

    Args:
        clicks: the number of clicks whose probability has this parameter as a factor.
        misses: ``(n,)`` the displays without a click, for each of the other factors.
        x, y: the parameter before and after.
        others: ``(n,)`` the other factors o.
        log_miss: ``(n,)`` log(1 - x o).
        proposed: ``(n,)`` output, log(1 - y o).
    """
    change = clicks * (math.log(y) - math.log(x)) if clicks > 0 else 0.0
    for i in range(len(others)):
        proposed[i] = math.log1p(-y * others[i]) if y * others[i] < 1.0 else -np.inf
        if misses[i] > 0:
            change += misses[i] * (proposed[i] - log_miss[i])
    return change


@kernel
def is_accepted(rng, change, x, y, sigma):
    """Whether Metropolis-Hastings accepts the step from x to y, corrected for the truncation at 0
    and 1, which differs between x and y.
    """
    chance = change + math.log(mass_within(x, sigma) / mass_within(y, sigma))
    return chance >= 0.0 or rng.random() < math.exp(chance)


@kernel
def sweep(state, rng, sigma):
    """Propose one step of each parameter."""
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
        if is_accepted(rng, change, x, y, sigma):
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
        if is_accepted(rng, change, x, y, sigma):
            state.kappa[k] = y
            for item in range(n_items):
                state.log_miss[item, k] = state.proposed[item]


@kernel
def rank(state, rng, ranking):
    for _ in range(state.n_sweeps):
        sweep(state, rng, state.c / math.sqrt(state.t[0] + 1))
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
    """PB-MHB: Thompson sampling of attractions and examination probabilities together, by
    Metropolis-Hastings.

    Idea:
        In the position-based model users click item i at position k with probability θ_i κ_k, the
        attraction of the item times the examination probability. PB-MHB (position-based,
        Metropolis-Hastings bandit) requires neither the attractions nor the examination
        probabilities, and learns both from the numbers of clicks and skips of each item at each
        position. In each session a Markov chain (Metropolis-Hastings) proposes a random new value
        for each parameter, and accepts or rejects it by the posterior given all counts. It shows
        the item with the j-th largest θ at the position with the j-th largest κ, and learns about
        an item from all positions. The chain starts at random values and rejects most proposals
        when the counts are large. It forgets nothing, so it hardly recovers from misleading first
        sessions, and its regret is high if the first position is not the one examined most, unless
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
        n_items: L.
        n_positions: K.
        c: > 0; proposals of session t have the width ``c / sqrt(t)``. With the default they are
            nearly uniform on [0, 1] in the first 100,000 sessions.
        n_sweeps: the number of proposals for each parameter in a session.
        fix_first: whether κ_1 = 1, as in the paper: the first position is assumed to be examined
            most. If it is not, regret is linear; False draws κ_1, too.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a bad c, number of sweeps or flag.

    Source: Gauthier, Gaudel, Fromont, *Bandit algorithm for both unknown best position and best
    item display on web pages*, IDA 2021, Algorithms 1 and 2.

    Deviations from the paper:
        1. ⚠ The prior is uniform; the authors' code starts with half a click and half a miss for
           each pair.
        2. ⚠ The first draw is uniform, and a sweep precedes the first session.
        3. Steps are drawn from the truncated normal distribution. If σ is larger than 0.5, this is
           done by rejection sampling from the uniform distribution.

    Memory: 3 L K + 3 (L + K) numbers. Time: a session takes ``O(n_sweeps L K)``.

    Example:
        >>> PBMHB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Gauthier et al. 2021b, Algorithm 1"
    bibtex_keys = ["pbmhb"]
    click_models = "PBM"
    state_type, rank_kernel, update_kernel = State, rank, update

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
        """As `CompiledAgent.best`, by the best fit of θ and κ to the counts, not the last draw."""
        theta, kappa = self._fit()
        theta[(self.state.clicks + self.state.misses).sum(axis=1) == 0] = 0.0  # never observed
        return self._best_by(theta, np.argsort(-kappa, kind="stable"))

    def _fit(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return θ and κ within the limits of the chain, fitted as the means of Poisson counts: the
        row and column sums of the fit equal those of the clicks. Each item and position starts with
        half a click and half a display without a click.
        """
        clicks, displays = self.state.clicks, self.state.clicks + self.state.misses
        kappa = np.ones(self.n_positions)
        for _ in range(100):
            theta = (clicks.sum(axis=1) + 0.5) / (weighted_sums(displays, kappa) + 1.0)
            kappa = (clicks.sum(axis=0) + 0.5) / (weighted_sums(displays.T, theta) + 1.0)
            kappa[: self.state.fixed] = 1.0
        theta, kappa = (np.clip(values, LEAST, 1.0 - LEAST) for values in (theta, kappa))
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
