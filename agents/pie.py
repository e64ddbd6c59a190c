"""PIE(L), an agent for the cascade model that explores only at the last position (Combes et al. 2015)."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..core.kernels import inner, kernel
from ..core.state import Floats, Ints
from .cascade import CascadeAgent
from .hyperparameters import hyperparameter, sessions
from .kernels import kl, rank_by_index, show
from .templates import from_examined


class State(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N
    mean: Annotated[Floats, "L", np.inf]  # θ̂ = clicks / N, infinite before the first examination
    order: Annotated[Ints, "L", range]  # items by mean, the leaders first
    bound: float  # f(T)
    feedback: int


@kernel
def rank(state, rng, ranking):  # type: ignore[no-untyped-def]
    n_positions = len(ranking)
    rank_by_index(state.mean, state.order, rng, n_positions)
    show(state.order, ranking)
    last = state.mean[state.order[n_positions - 1]]
    chosen, promising = -1, 0
    for i in range(n_positions, len(state.order)):
        # kl_upper(θ̂, f(T)/N) ≥ θ̂(last leader), which is the largest mean left over: N KL(θ̂, that) ≤ f(T)
        item = state.order[i]
        mean = state.mean[item]
        if last == mean or (last < np.inf and state.examined[item] * kl(mean, last) <= state.bound):
            promising += 1
            if int(rng.random() * promising) == 0:  # each of those seen so far with equal probability
                chosen = item
    if promising > 0 and rng.random() < 0.5:
        ranking[n_positions - 1] = chosen


@inner
def learn(state, item, click):  # type: ignore[no-untyped-def]
    state.clicks[item] += click
    state.examined[item] += 1
    state.mean[item] = state.clicks[item] / state.examined[item]


@kernel
def replace(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.examined[item], state.mean[item] = 0, 0, np.inf


class PIE(CascadeAgent):
    """Parsimonious item exploration, PIE(L): show the K items of largest mean, and explore only at the last position.

    Idea:
        PIE assumes the cascade model: a user scans the list from the top, clicks the first attractive item, and leaves. It
        counts the examinations of each item, N, and keeps the share θ of them with a click. Its leaders are the K items with
        the largest θ, and it shows them in this order. With probability 1/2, the last position goes to a random other item
        whose upper confidence bound (KL-UCB) reaches the θ of the last leader. Few users reach the last position, so an
        experiment there costs little, and the paper shows that this matches the cascade model's lower bound in long runs.
        Clicks are rare there too, so it learns slowly and loses much in short runs, and it must know the horizon.

    Algorithm:
        ::

            N(i) ← 0, the examinations, and θ(i) ← ∞, the share of them with a click, for each item i
            f(T) = log T + 4 log log T is the level of confidence; KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, 2, ..., T:
                (i_1, ..., i_K) ← the leaders: the K items of largest θ, in decreasing order, ties at random
                U(i) ← sup{q : N(i) KL(θ(i), q) ≤ f(T)}, the upper bound of each item i that is no leader
                B ← the items i that are no leader and have U(i) ≥ θ(i_K)
                R_t ← (i_1, ..., i_K), the list
                if B is not empty, with probability 1/2:
                    R_t(K) ← an item of B, uniformly at random
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first), or K without a click
                for k = 1, ..., k', the examined positions:
                    N(R_t(k)) ← N(R_t(k)) + 1
                    θ(R_t(k)) ← the clicks on R_t(k) so far / N(R_t(k))

    Args:
        n_items: L.
        n_positions: K.
        horizon: T ≥ 3.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a horizon below 3, or an unknown feedback rule.

    Source: Combes, Magureanu, Proutière, Laroche, *Learning to rank: regret lower bounds and efficient algorithms*, SIGMETRICS
    2015, algorithm PIE(l) with l = L, the last position (their L is our K).

    Deviations from the paper:
        1. ⚠ The index uses the horizon, ``f(T)``, not the step, as its analysis does.
        2. ⚠ Ties, and items not examined yet (which lead), are ordered uniformly at random; several clicks as in `CascadeUCB1`.

    Example:
        >>> PIE(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Combes et al. 2015, PIE(l)"
    click_models = "CM"
    state_type = State
    rank_kernel = rank
    update_kernel = from_examined(learn)
    replace_kernel = replace

    horizon: int = hyperparameter(check=sessions(3))

    def _first_values(self) -> dict[str, Any]:
        log_horizon = math.log(self.hyperparameters["horizon"])
        return super()._first_values() | {"bound": log_horizon + 4.0 * math.log(log_horizon)}
