"""Ranked bandits (Radlinski et al. 2008): a bandit for each position, by Exp3 or KL-UCB."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_horizon, check_number
from ..core.kernels import kernel
from ..core.state import Flags, Floats, Ints
from .agent import Seed
from .compiled_agent import CompiledAgent, rates
from .kl_ucb import C, KLUCBState, learn_klucb, rank_klucb
from .shared_kernels import LAST_CLICK

# ----------------------------------------------------------------------------------- shared kernels


def rank_by_choices(choose: Callable[..., int]) -> Callable[..., None]:
    """Return the `rank_kernel` of bandits whose choice at position k is ``choose(state, k,
    rng)``.
    """

    @kernel
    def rank(state, rng, ranking):
        n_left = len(state.shown)
        for k in range(len(ranking)):
            item = choose(state, k, rng)
            state.choice[k] = item
            if state.shown[item]:  # replace it by a random item that is not shown above
                skip, item = int(rng.random() * n_left), 0
                while state.shown[item] or skip > 0:
                    skip -= not state.shown[item]
                    item += 1
            state.shown[item] = True
            ranking[k] = item
            n_left -= 1
        for k in range(len(ranking)):
            state.shown[ranking[k]] = False

    return rank


def learn_choices(learn: Callable[..., None]) -> Callable[..., None]:
    """Return the `update_kernel` of bandits; ``learn(state, k, item, reward)`` gets the reward of
    the choice at position k.
    """

    @kernel
    def update(state, ranking, clicks):
        state.t[0] += 1
        for k in range(len(ranking)):
            item = state.choice[k]
            reward = clicks[k] if ranking[k] == item else 0  # a replacement earns nothing
            learn(state, k, item, reward)

    return update


def best_choices(estimates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the ``(K,)`` list of the bandits' best choices, from the top; an item that is already
    above is replaced by the next best item.

    Args:
        estimates: ``(K, L)`` the estimate of each item by the bandit of each position.
    """
    estimates, ranking = estimates.copy(), np.empty(len(estimates), np.int64)
    for k in range(len(ranking)):
        ranking[k] = estimates[k].argmax()
        estimates[:, ranking[k]] = -np.inf
    return ranking


# --------------------------------------------------------------------------------------------- Exp3


class Exp3State(NamedTuple):
    choice: Annotated[Ints, "K"]  # the choice of each bandit
    shown: Annotated[Flags, "L"]  # false between sessions
    t: Annotated[Ints, "1"]  # sessions
    chance: Annotated[Floats, "K"]  # p of each choice
    log_weight: Annotated[Floats, "K L"]  # log w
    offset: Annotated[Floats, "K"]  # subtracted from log w before exponentiation
    weight: Annotated[Floats, "K L", 1.0]  # exp(log w - offset)
    total: Floats  # (K,) Σ weight
    gamma: float


@kernel
def draw_exp3(state, k, rng):
    n_items = state.weight.shape[1]
    u = rng.random()
    if u < state.gamma:
        return min(int(u / state.gamma * n_items), n_items - 1)
    left = (u - state.gamma) / (1.0 - state.gamma) * state.total[k]
    for item in range(n_items):
        left -= state.weight[k, item]
        if left < 0.0:
            return item
    return n_items - 1


@kernel
def choose_exp3(state, k, rng):
    item = draw_exp3(state, k, rng)
    share = state.weight[k, item] / state.total[k]
    state.chance[k] = (1.0 - state.gamma) * share + state.gamma / state.weight.shape[1]
    return item


@kernel
def learn_exp3(state, k, item, reward):
    if reward == 0:
        return  # w · exp(0)
    n_items = state.weight.shape[1]
    state.log_weight[k, item] += state.gamma / (state.chance[k] * n_items)
    if state.log_weight[k, item] - state.offset[k] > 30.0:
        state.offset[k] = state.log_weight[k, item]
        for i in range(n_items):
            state.weight[k, i] = math.exp(state.log_weight[k, i] - state.offset[k])
    else:
        state.weight[k, item] = math.exp(state.log_weight[k, item] - state.offset[k])
    state.total[k] = 0.0
    for i in range(n_items):
        state.total[k] += state.weight[k, i]


class RankedExp3(CompiledAgent):
    """RankedExp3: an Exp3 bandit over all items for each position, rewarded if its own choice was
    shown and clicked.

    Idea:
        Ranked bandits assume no click model: each position has its own bandit, which chooses one of
        all L items and is rewarded if the user clicks it. RankedExp3 uses Exp3 bandits, which do
        not even assume that users stay the same. Each bandit keeps a weight for each item and draws
        items in proportion to the weights, except for a share γ of uniform draws. If the drawn item
        is already at a higher position, a random item replaces it, and the bandit earns nothing.
        The first bandit learns what most users click, the second what users click in addition, and
        so on, which makes the lists diverse. Learning is slow: each position learns L numbers from
        its own clicks alone, and lower positions only after the upper ones have converged.

    Algorithm:
        ::

            w_k(i) ← 1, the weight of item i in the bandit of position k, for all k and i
            γ = min(1, sqrt(L log L / ((e - 1) T))) is the share of uniform draws, e = 2.718...
            for t = 1, 2, ..., T:
                for k = 1, ..., K:
                    p_k(i) ← (1 - γ) w_k(i) / Σ_j w_k(j) + γ / L, the probability of each item i
                    draw the choice b_k of bandit k from p_k
                    R_t(k) ← b_k, or, if b_k is already above position k, a random item that is not
                show the list R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                for k = 1, ..., K:
                    f ← c(k) if R_t(k) = b_k, else 0: the reward of the bandit
                    w_k(b_k) ← w_k(b_k) exp(γ (f / p_k(b_k)) / L)

    Args:
        n_items: L.
        n_positions: K.
        horizon: T, for the default of γ.
        gamma: γ in ``(0, 1]``, the share of uniform exploration; by default ``min(1, sqrt(L log L /
            ((e-1) T)))``.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a bad horizon or gamma.

    Source: Radlinski, Kleinberg, Joachims, *Learning diverse rankings with multi-armed bandits*,
    ICML 2008, Algorithm 2; with Exp3 of Auer, Cesa-Bianchi, Freund, Schapire, *Gambling in a rigged
    casino: the adversarial multi-armed bandit problem*, FOCS 1995.

    Deviations from the paper:
        1. ⚠ The bandit of a position whose choice was replaced gets reward 0, whatever the
           replacement earned.
        2. Weights are stored as logarithms, so they do not overflow at any horizon.

    Example:
        >>> RankedExp3(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Radlinski et al. 2008, Algorithm 2, with Exp3"
    bibtex_keys = ["rankedbandits", "exp3"]
    state_type = Exp3State
    rank_kernel = rank_by_choices(choose_exp3)
    update_kernel = learn_choices(learn_exp3)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        horizon: float,
        gamma: float | None = None,
        seed: Seed = None,
    ) -> None:
        horizon = check_horizon(horizon)
        if gamma is not None:
            gamma = check_number("gamma", gamma, most=1, above=0)
        super().__init__(n_items, n_positions, seed, horizon=horizon, gamma=gamma)

    def best(self) -> NDArray[np.int64]:
        return best_choices(self.state.log_weight)

    def first_values(self) -> dict[str, Any]:
        n, gamma = self.n_items, self.hyperparameters["gamma"]
        if gamma is None:  # γ must be positive even for a single item
            per_session = (math.e - 1.0) * self.hyperparameters["horizon"]
            gamma = min(1.0, math.sqrt(n * math.log(max(n, 2)) / per_session))
        return {"total": np.full(self.n_positions, float(n)), "gamma": gamma}


# ------------------------------------------------------------------------------------------- KL-UCB


class RankedKLUCBState(NamedTuple):
    choice: Annotated[Ints, "K"]  # the choice of each bandit
    shown: Annotated[Flags, "L"]  # false between sessions
    t: Annotated[Ints, "1"]  # sessions
    positions: Annotated[Ints, "1"]  # 0, the only position of a bandit's list
    # Row k is the state of a KL-UCB agent with a list of one position: see `KLUCBState`.
    clicks: Annotated[Ints, "K L"]
    examined: Annotated[Ints, "K L"]
    peak: Annotated[Floats, "K L"]
    indices: Annotated[Floats, "K L", np.inf]
    order: Annotated[Ints, "K L", range]


@kernel
def bandit_of(state, k):
    """Return the state of the bandit of position k; its feedback rule is not used."""
    counts = state.clicks[k], state.examined[k], state.peak[k]
    return KLUCBState(
        *counts, state.indices[k], state.order[k], state.t, state.positions, LAST_CLICK, C
    )


@kernel
def choose_klucb(state, k, rng):
    rank_klucb(bandit_of(state, k), rng, state.choice[k : k + 1])
    return state.choice[k]


@kernel
def learn_choice(state, k, item, reward):
    learn_klucb(bandit_of(state, k), item, reward)


class RankedKLUCB(CompiledAgent):
    """RankedKL-UCB: `RankedExp3` with KL-UCB bandits: the largest ``kl_upper(mean, (log t + 3 log
    log t) / pulls)``.

    Idea:
        RankedKL-UCB assumes no click model: as in `RankedExp3`, each position has its own bandit,
        here KL-UCB. The bandit of position k keeps, for each item, how often it chose this item,
        N_k, and the share of these choices with a click. It chooses the item with the highest click
        rate that these counts do not rule out, measured by the Kullback-Leibler divergence. If the
        chosen item is already at a higher position, a random item replaces it, and the choice
        counts as a failure. It needs no examination probabilities, which made it a benchmark for
        the position-based model. Each position learns L numbers from its own clicks alone, which
        takes about K times as many sessions as sharing the clicks between positions.

    Algorithm:
        ::

            S_k(i) ← 0, the clicks, and N_k(i) ← 0, the choices,
                of item i in the bandit of position k, for all k and i
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, 2, ...:
                b ← max(log t + 3 log log t, 0), the level of confidence
                for k = 1, ..., K:
                    U_k(i) ← max{q : N_k(i) KL(S_k(i) / N_k(i), q) ≤ b}, the upper bound of item i,
                        ∞ where N_k(i) = 0
                    b_k ← the item of largest U_k, the choice of bandit k, ties at random
                    R_t(k) ← b_k, or, if b_k is already above position k, a random item that is not
                show the list R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                for k = 1, ..., K:
                    f ← c(k) if R_t(k) = b_k, else 0: the reward of the bandit
                    S_k(b_k) ← S_k(b_k) + f
                    N_k(b_k) ← N_k(b_k) + 1

    Args:
        n_items: L.
        n_positions: K.
        seed: seeds the agent's own generator.

    Source: Radlinski, Kleinberg, Joachims, *Learning diverse rankings with multi-armed bandits*,
    ICML 2008, Algorithm 2; with KL-UCB of Garivier, Cappé, *The KL-UCB algorithm for bounded
    stochastic bandits and beyond*, COLT 2011.

    Deviations from the paper:
        1. ⚠ A replaced choice counts as a pull with reward 0.
        2. ⚠ Ties, and items never chosen (which rank first), are ordered uniformly at random.

    Example:
        >>> RankedKLUCB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Radlinski et al. 2008, Algorithm 2, with KL-UCB"
    bibtex_keys = ["rankedbandits", "klucb"]
    state_type = RankedKLUCBState
    rank_kernel = rank_by_choices(choose_klucb)
    update_kernel = learn_choices(learn_choice)

    def __init__(self, n_items: int, n_positions: int, *, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed)

    def best(self) -> NDArray[np.int64]:
        return best_choices(rates(self.state.clicks, self.state.examined))
