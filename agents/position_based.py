"""Optimistic agents for the position-based model with known examination: PBM-UCB and PBM-PIE
(Lagrée et al. 2016).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_count, check_horizon, check_number, probabilities
from ..core.kernels import kernel
from ..core.state import Flags, Floats, Ints
from .agent import Seed
from .compiled_agent import CompiledAgent, rates
from .shared_kernels import log_likelihood, rank_by_index, show_at

MIN_EXAMINATION = 1e-100  # quotients by a smaller κ may overflow


def check_examination(examination: ArrayLike, n_positions: int) -> NDArray[np.float64]:
    """Return the checked examination probabilities κ ``(K,)``: above 0, because clicks at a
    position with κ = 0 carry no information.
    """
    check_count("n_positions", n_positions)
    return probabilities("examination", examination, (n_positions,), least=MIN_EXAMINATION)


class ExaminationAgent(CompiledAgent):
    """Base class of the agents for the position-based model that require the examination
    probabilities κ.
    """

    click_models = "PBM"

    requires = {"examination": "examination"}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        seed: Seed,
        *,
        examination: ArrayLike,
        **hyperparameters: Any,
    ) -> None:
        examination = check_examination(examination, n_positions)
        super().__init__(n_items, n_positions, seed, examination=examination, **hyperparameters)

    def best(self) -> NDArray[np.int64]:
        estimates = rates(self.state.clicks, self.state.weight)
        return self._best_by(estimates, self.state.positions)

    def first_values(self) -> dict[str, Any]:
        return {"positions": np.argsort(-self.hyperparameters["examination"], kind="stable")}


# ------------------------------------------------------------------------------------------ PBM-UCB


class PBMUCBState(NamedTuple):
    clicks: Annotated[Ints, "L"]  # S
    displays: Annotated[Ints, "L"]  # N
    weight: Annotated[Floats, "L"]  # Ñ, displays weighted by κ
    mean: Annotated[Floats, "L", np.inf]  # S/Ñ, infinite before the first display
    width: Annotated[Floats, "L"]  # sqrt(N/2)/Ñ
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items by index
    t: Annotated[Ints, "1"]  # sessions
    examination: Floats  # (K,) κ
    positions: Annotated[Ints, "K"]  # by decreasing κ
    epsilon: float


@kernel
def rank_ucb(state, rng, ranking):
    # S/Ñ + sqrt(N/Ñ) sqrt(δ/(2Ñ)) with δ = (1 + ε) log t
    radius = math.sqrt((1.0 + state.epsilon) * math.log(state.t[0] + 1))
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]
    rank_by_index(state.indices, state.order, rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def update_ucb(state, ranking, clicks):
    state.t[0] += 1
    for k in range(len(ranking)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.displays[item] += 1
        state.weight[item] += state.examination[k]
        state.mean[item] = state.clicks[item] / state.weight[item]
        state.width[item] = math.sqrt(0.5 * state.displays[item]) / state.weight[item]


class PBMUCB(ExaminationAgent):
    """PBM-UCB: the K items with the largest upper confidence bounds of attraction, for known
    examination probabilities.

    Idea:
        Users look at some positions of a list more often than at others, whatever items are there.
        PBM-UCB is given the probability κ_l that position l is examined, and learns the attraction
        of each item, its click probability once examined. It estimates attraction by S / Ñ: S
        counts the clicks on an item, and Ñ counts its displays, each weighted by κ_l. This estimate
        has no position bias, and it uses all positions, so PBM-UCB learns faster than agents that
        must also estimate κ. It shows the K items with the largest upper confidence bounds
        (Hoeffding's inequality), the largest at the position with the largest κ_l. Its bounds are
        wide where clicks are rare, and it may settle on a wrong list if κ or the click model is
        wrong.

    Algorithm:
        ::

            κ_l: the given examination probability of position l;  ε: epsilon
            for each item k: S_k ← 0, N_k ← 0, Ñ_k ← 0, its clicks, displays, and displays weighted
                by κ
            for t = 1, 2, ...:
                δ ← (1 + ε) log t
                for each item k:
                    U_k ← S_k / Ñ_k + sqrt(N_k / Ñ_k) sqrt(δ / (2 Ñ_k)), and ∞ where N_k = 0
                for j = 1, ..., K:
                    put the item of the j-th largest U on the position of the j-th largest κ, ties
                        at random
                show this list A(t) and observe the clicks Z_1, ..., Z_K
                for l = 1, ..., K:
                    k ← A_l(t), the item on position l
                    S_k ← S_k + Z_l
                    N_k ← N_k + 1
                    Ñ_k ← Ñ_k + κ_l

    Args:
        n_items: L.
        n_positions: K.
        examination: ``(K,)`` κ, the known examination probabilities, in ``(0, 1]``; ``make_agent``
            fills them in.
        epsilon: ε ≥ 0; the regret bound holds for any ε > 0.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a wrong shape, a κ outside ``(0, 1]``, or a negative epsilon.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016,
        section 4 (PBM-UCB).

    Deviations from the paper:
        1. ⚠ Ties, and items never shown (which rank first), are ordered uniformly at random.
        2. κ need not decrease: the paper numbers positions by κ, here they keep their own order.
        3. ⚠ The default ε is 0, which the regret bound does not cover.

    Example:
        >>> PBMUCB(4, 2, examination=[1.0, 0.5], seed=0).rank(None).shape
        (2,)
    """

    paper = "Lagrée et al. 2016, section 4"
    bibtex_keys = ["pbmbandits"]
    state_type, rank_kernel, update_kernel = PBMUCBState, rank_ucb, update_ucb

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        epsilon: float = 0.0,
        seed: Seed = None,
    ) -> None:
        epsilon = check_number("epsilon", epsilon, 0)
        super().__init__(n_items, n_positions, seed, examination=examination, epsilon=epsilon)


# ------------------------------------------------------------------------------------------ PBM-PIE


class PBMPIEState(NamedTuple):
    clicks: Annotated[Ints, "L K"]  # S_{i,l}
    displays: Annotated[Ints, "L K"]  # N_{i,l}
    weight: Annotated[Floats, "L"]  # Ñ, displays weighted by κ
    mean: Annotated[Floats, "L", -1.0]  # θ̂ = S/Ñ, -1 where Ñ = 0
    order: Annotated[Ints, "L", range]  # items by θ̂, the leaders first
    peak: Annotated[Floats, "L"]  # Σ_l of the log-likelihoods at S_{i,l}/N_{i,l}
    # whether `peak` is out of date: it is needed for items outside the leaders only
    stale: Annotated[Flags, "L", True]
    t: Annotated[Ints, "1"]  # sessions
    start: Annotated[Ints, "L"]  # the order of the items in the cyclic start
    examination: Floats  # (K,) κ
    positions: Annotated[Ints, "K"]  # by decreasing κ
    log_miss: Annotated[Floats, "K"]  # log(1 - κ_l x) for the x at hand
    bound: float  # (1 + ε) log T


@kernel
def is_promising(state, item, x):
    """Whether U_i ≥ x, where U_i is the largest q from the minimiser of Φ_i on with Φ_i(q) ≤ bound.

    Φ_i(q) = Σ_l N_{i,l} KL(S_{i,l}/N_{i,l}, κ_l q) is convex: x is at most the minimiser if Φ_i'(x)
    ≤ 0.
    """
    if x <= 0.0:
        return True
    slope, phi, clicks = 0.0, state.peak[item], 0
    for k in range(len(state.examination)):
        c = state.clicks[item, k]
        misses = state.displays[item, k] - c
        clicks += c
        if c > 0:
            phi -= c * math.log(state.examination[k] * x)
        if misses > 0:
            if state.examination[k] * x >= 1.0:
                return False  # Φ is infinite there
            phi -= misses * state.log_miss[k]
            slope += misses * state.examination[k] / (1.0 - state.examination[k] * x)
    return slope <= clicks / x or phi <= state.bound


@kernel
def rank_pie(state, rng, ranking):
    n_items, n_positions = len(state.order), len(ranking)
    if state.t[0] < n_items:  # every item once at every position
        for k in range(n_positions):
            ranking[k] = state.start[(state.t[0] + k) % n_items]
        return
    rank_by_index(state.mean, state.order, rng, n_positions)
    show_at(state.positions, state.order, ranking)
    x = state.mean[state.order[n_positions - 1]]
    if x > 1.0:
        return  # no index exceeds 1
    for k in range(n_positions):
        state.log_miss[k] = (
            math.log1p(-state.examination[k] * x) if state.examination[k] * x < 1.0 else -np.inf
        )
    chosen, promising = -1, 0
    for i in range(n_positions, n_items):
        item = state.order[i]
        if state.stale[item]:
            state.stale[item] = False
            state.peak[item] = 0.0
            for k in range(n_positions):
                state.peak[item] += log_likelihood(state.clicks[item, k], state.displays[item, k])
        if is_promising(state, item, x):
            promising += 1
            # each of those seen so far with equal probability
            if int(rng.random() * promising) == 0:
                chosen = item
    if promising > 0 and rng.random() < 0.5:
        ranking[state.positions[n_positions - 1]] = chosen


@kernel
def update_pie(state, ranking, clicks):
    state.t[0] += 1
    for k in range(len(ranking)):
        item, total = ranking[k], 0
        state.clicks[item, k] += clicks[k]
        state.displays[item, k] += 1
        state.weight[item] += state.examination[k]
        state.stale[item] = True
        for position in range(len(ranking)):
            total += state.clicks[item, position]
        state.mean[item] = total / state.weight[item]


class PBMPIE(ExaminationAgent):
    """PBM-PIE: the K best items so far, with experiments only on the position that is examined
    least.

    Idea:
        In the position-based model users examine position l with a known probability κ_l, whatever
        item is there. PBM-PIE counts the clicks and displays of each item at each position, and
        estimates attraction by clicks divided by displays weighted by κ_l. It shows the leaders,
        the K items with the largest estimates, the better ones at positions with larger κ_l. With
        probability 1/2 it replaces the last leader by a random item whose upper confidence bound
        (KL-UCB) reaches the estimate of this leader. Such experiments cost little, because few
        users examine the position of the last leader, and the paper proves regret close to the
        lower bound. However, clicks are also rare there, so it takes long to find a good item, and
        the agent requires the horizon and the true κ.

    Algorithm:
        ::

            κ_l: the given examination probability of position l;  ε: epsilon
            KL(p, q) = p log(p/q) + (1 - p) log((1 - p)/(1 - q))
            for each item k at each position l: S_{k,l} ← 0, N_{k,l} ← 0, its clicks and displays
            in the first L sessions: show each item once at each position
            for t = L + 1, ..., T:
                θ_k ← Σ_l S_{k,l} / Σ_l κ_l N_{k,l} for each item k
                ℒ ← the leaders: the K items of largest θ, in decreasing order, ties at random
                A(t) ← the j-th leader on the position of the j-th largest κ
                for each item k outside ℒ:
                    Φ(q) = Σ_l N_{k,l} KL(S_{k,l} / N_{k,l}, κ_l q), with its minimum at q_min
                    U_k ← sup{q ∈ [q_min, 1] : Φ(q) ≤ (1 + ε) log T}, the upper confidence bound
                B ← the items k outside ℒ with U_k ≥ θ of the last leader
                if B is not empty, with probability 1/2:
                    put an item of B, uniformly at random, on the position of the least κ
                show A(t) and observe the clicks Z_1, ..., Z_K
                for l = 1, ..., K, with A_l(t) the item on position l:
                    S_{A_l(t),l} ← S_{A_l(t),l} + Z_l; N_{A_l(t),l} ← N_{A_l(t),l} + 1

    Args:
        n_items: L.
        n_positions: K.
        examination: ``(K,)`` κ, the known examination probabilities, in ``(0, 1]``; ``make_agent``
            fills them in.
        horizon: T.
        epsilon: ε ≥ 0; the regret bound holds for any ε > 0.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a wrong shape, a κ outside ``(0, 1]``, a bad horizon, or a negative epsilon.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016,
        Algorithm 1.

    Deviations from the paper:
        1. ⚠ The first L sessions show every item once at every position, in a cyclic design over a
           random order of the items.
        2. ⚠ Ties among θ̂ are broken uniformly at random. If the θ̂ of the last leader is above 1,
           no item replaces it, because no index exceeds 1. An item without data ranks last.
        3. κ need not decrease: the k-th leader goes to the position with the k-th largest κ.
        4. ⚠ The default ε is 0. Algorithm 1 and its regret bound require ε > 0.

    Example:
        >>> PBMPIE(4, 2, examination=[1.0, 0.5], horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Lagrée et al. 2016, Algorithm 1"
    bibtex_keys = ["pbmbandits"]
    state_type, rank_kernel, update_kernel = PBMPIEState, rank_pie, update_pie

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        horizon: float,
        epsilon: float = 0.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            seed,
            examination=examination,
            horizon=check_horizon(horizon),
            epsilon=check_number("epsilon", epsilon, 0),
        )

    def best(self) -> NDArray[np.int64]:
        return self._best_by(self.state.mean, self.state.positions)

    def first_values(self) -> dict[str, Any]:
        bound = (1.0 + self.hyperparameters["epsilon"]) * math.log(self.hyperparameters["horizon"])
        return super().first_values() | {
            "start": self.rng.permutation(self.n_items),
            "bound": bound,
        }
