"""Ranked bandits (Radlinski et al. 2008): agents with a separate bandit for each position, either
Exp3 or KL-UCB.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_horizon, check_number
from ...core.kernels import kernel
from ...core.state import Flags, Floats, Ints
from ..agent import Seed
from ..common.cascade_agent import LAST_CLICK
from ..common.kl_ucb_kernels import C, KLUCBState, learn_klucb, rank_klucb
from ..compiled_agent import CompiledAgent, rates

# ----------------------------------------------------------------------------------- shared kernels


def make_rank_kernel(choose: Callable[..., int]) -> Callable[..., None]:
    """Return the `rank_kernel` of an agent whose bandit for position k chooses the item
    ``choose(state, k, rng)``.
    """

    @kernel
    def rank(state, rng, ranking):
        n_left = len(state.shown)
        for k in range(len(ranking)):
            item = choose(state, k, rng)
            state.choice[k] = item
            if state.shown[item]:  # replace it with a random item that is not yet in the list
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


def make_update_kernel(learn: Callable[..., None]) -> Callable[..., None]:
    """Return the `update_kernel` of an agent whose bandit for position k learns by ``learn(state,
    k, item, reward)``, where ``item`` is the bandit's choice and ``reward`` the reward for this
    choice.
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
    """Return the ``(K,)`` list of the bandits' best items. If a bandit's best item is already
    higher in the list, its next best item takes the position.

    Args:
        estimates: ``(K, L)`` the estimates of the items, with a row for the bandit of each
            position.
    """
    estimates, ranking = estimates.copy(), np.empty(len(estimates), np.int64)
    for k in range(len(ranking)):
        ranking[k] = estimates[k].argmax()
        estimates[:, ranking[k]] = -np.inf
    return ranking


# --------------------------------------------------------------------------------------------- Exp3


class Exp3State(NamedTuple):
    choice: Annotated[Ints, "K"]  # the choice of each bandit
    shown: Annotated[Flags, "L"]  # all false between sessions
    t: Annotated[Ints, "1"]  # sessions so far
    chance: Annotated[Floats, "K"]  # p, the probability with which each choice was drawn
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
        return  # the weight would be multiplied by exp(0)
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
    """RankedExp3: an agent with an Exp3 bandit for each position, which chooses among all items and
    is rewarded if its choice was shown and clicked.

    Idea:
        Ranked bandits assume no click model: each position has its own bandit, which chooses one of
        all L items and is rewarded if the user clicks it. RankedExp3 uses Exp3 bandits, which do
        not even assume that users' behaviour stays the same. Each bandit keeps a weight for each
        item. With probability γ, it draws an item uniformly; otherwise, it draws an item in
        proportion to the weights. If the drawn item is already at a higher position, a random item
        replaces it, and the bandit earns nothing. The first bandit learns which item most users
        click, the second which item attracts most additional clicks, and so on, so the lists are
        diverse. Learning is slow: each bandit learns L numbers from the clicks at its own position
        alone, and a lower bandit can converge only after the bandits above have converged.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        horizon: the number of sessions, T, from which the default of γ is computed.
        gamma: the share γ of uniform draws, in ``(0, 1]``; by default ``min(1, sqrt(L log L /
            ((e-1) T)))``.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``horizon`` or ``gamma`` is invalid.

    Source: Radlinski, Kleinberg, Joachims, *Learning diverse rankings with multi-armed bandits*,
    ICML 2008, Algorithm 2; with Exp3 of Auer, Cesa-Bianchi, Freund, Schapire, *Gambling in a rigged
    casino: the adversarial multi-armed bandit problem*, FOCS 1995.

    Deviations from the paper:
        1. ⚠ A bandit whose choice was replaced gets the reward 0, even if the replacement was
           clicked.
        2. Weights are stored as logarithms, so they do not overflow, however long the run is.

    Example:
        >>> RankedExp3(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Radlinski et al. 2008, Algorithm 2, with Exp3"
    bibtex_keys = ["rankedbandits", "exp3"]
    state_type = Exp3State
    rank_kernel = make_rank_kernel(choose_exp3)
    update_kernel = make_update_kernel(learn_exp3)

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
    shown: Annotated[Flags, "L"]  # all false between sessions
    t: Annotated[Ints, "1"]  # sessions so far
    positions: Annotated[Ints, "1"]  # 0, the only position in a bandit's list
    # Row k of each array is the state of a KL-UCB agent for lists with a single position: see
    # `KLUCBState`.
    clicks: Annotated[Ints, "K L"]
    examined: Annotated[Ints, "K L"]
    peak: Annotated[Floats, "K L"]
    indices: Annotated[Floats, "K L", np.inf]
    order: Annotated[Ints, "K L", range]


@kernel
def bandit_of(state, k):
    """Return the state of the bandit for position k, as a `KLUCBState`. The kernels that use it do
    not read its feedback rule.
    """
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
    """RankedKL-UCB: an agent with a KL-UCB bandit for each position, which chooses the item with
    the largest ``kl_upper(mean, (log t + 3 log log t) / pulls)``.

    Idea:
        RankedKL-UCB assumes no click model: as in `RankedExp3`, each position has its own bandit,
        but the bandits use KL-UCB. For each item, the bandit of position k counts how often it
        chose the item, N_k, and keeps the fraction of these choices that were clicked. It chooses
        the item with the highest click rate that these counts do not rule out, measured by the
        Kullback-Leibler divergence. If the chosen item is already at a higher position, a random
        item replaces it, and the choice counts as a failure. RankedKL-UCB needs no examination
        probabilities, so it became a benchmark for the position-based model. Each bandit learns L
        numbers from the clicks at its own position alone, which takes about K times as many
        sessions as learning from the clicks at all positions.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        seed: the seed of the agent's own random generator.

    Source: Radlinski, Kleinberg, Joachims, *Learning diverse rankings with multi-armed bandits*,
    ICML 2008, Algorithm 2; with KL-UCB of Garivier, Cappé, *The KL-UCB algorithm for bounded
    stochastic bandits and beyond*, COLT 2011.

    Deviations from the paper:
        1. ⚠ A choice that was replaced counts as a pull with reward 0.
        2. ⚠ A bandit breaks ties uniformly at random. It first chooses the items that it has never
           chosen, also in random order.

    Example:
        >>> RankedKLUCB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Radlinski et al. 2008, Algorithm 2, with KL-UCB"
    bibtex_keys = ["rankedbandits", "klucb"]
    state_type = RankedKLUCBState
    rank_kernel = make_rank_kernel(choose_klucb)
    update_kernel = make_update_kernel(learn_choice)

    def __init__(self, n_items: int, n_positions: int, *, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed)

    def best(self) -> NDArray[np.int64]:
        return best_choices(rates(self.state.clicks, self.state.examined))
