"""PBM-PIE (Lagrée et al. 2016), a position-based agent that explores only at one position."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_horizon, check_number
from ...core.kernels import kernel
from ...core.state import Flags, Floats, Ints
from ..agent import Seed
from ..common.kl_bounds import log_likelihood
from ..common.ranking import rank_by_index, show_at
from .examination_agent import ExaminationAgent


class PBMPIEState(NamedTuple):
    clicks: Annotated[Ints, "L K"]  # S_{i,l}, the clicks on each item at each position
    displays: Annotated[Ints, "L K"]  # N_{i,l}, the displays of each item at each position
    weight: Annotated[Floats, "L"]  # Ñ, the sum of κ over displays
    mean: Annotated[Floats, "L", -1.0]  # θ̂ = S/Ñ, -1 where Ñ = 0
    order: Annotated[Ints, "L", range]  # items, sorted by decreasing θ̂: the leaders first
    peak: Annotated[Floats, "L"]  # the log-likelihood of each item's counts at S_{i,l}/N_{i,l}
    # whether `peak` is out of date; only items outside the leaders need it
    stale: Annotated[Flags, "L", True]
    t: Annotated[Ints, "1"]  # sessions so far
    start: Annotated[Ints, "L"]  # the random order of the items in the first L sessions
    examination: Floats  # (K,) κ, the examination probabilities
    positions: Annotated[Ints, "K"]  # positions, sorted by decreasing κ
    log_miss: Annotated[Floats, "K"]  # working memory: log(1 - κ_l x)
    bound: float  # (1 + ε) log T


@kernel
def is_promising(state, item, x):
    """Return whether the upper confidence bound U_i of an item is at least x. U_i is the largest q
    at or above the minimiser of Φ_i with Φ_i(q) ≤ bound.

    Φ_i(q) = Σ_l N_{i,l} KL(S_{i,l}/N_{i,l}, κ_l q) is convex, so x is at most the minimiser if
    Φ_i'(x) ≤ 0.
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
                return False  # Φ_i(x) is infinite
            phi -= misses * state.log_miss[k]
            slope += misses * state.examination[k] / (1.0 - state.examination[k] * x)
    return slope <= clicks / x or phi <= state.bound


@kernel
def rank(state, rng, ranking):
    n_items, n_positions = len(state.order), len(ranking)
    if state.t[0] < n_items:  # show every item once at every position
        for k in range(n_positions):
            ranking[k] = state.start[(state.t[0] + k) % n_items]
        return
    rank_by_index(state.mean, state.order, rng, n_positions)
    show_at(state.positions, state.order, ranking)
    x = state.mean[state.order[n_positions - 1]]
    if x > 1.0:
        return  # no upper bound exceeds 1
    for k in range(n_positions):
        state.log_miss[k] = (
            math.log1p(-state.examination[k] * x) if state.examination[k] * x < 1.0 else -np.inf
        )
    chosen, n_promising = -1, 0
    for i in range(n_positions, n_items):
        item = state.order[i]
        if state.stale[item]:
            state.stale[item] = False
            state.peak[item] = 0.0
            for k in range(n_positions):
                state.peak[item] += log_likelihood(state.clicks[item, k], state.displays[item, k])
        if is_promising(state, item, x):
            n_promising += 1
            # so each promising item has equal probability
            if int(rng.random() * n_promising) == 0:
                chosen = item
    if n_promising > 0 and rng.random() < 0.5:
        ranking[state.positions[n_positions - 1]] = chosen


@kernel
def update(state, ranking, clicks):
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
    """PBM-PIE: an agent that shows the K best items so far, and explores only at the position that
    users examine least, for the position-based model with known examination probabilities.

    Idea:
        In the position-based model, users examine position l with a known probability κ_l,
        regardless of the item there. PBM-PIE counts the clicks and displays of each item at each
        position, and estimates an item's attraction as its clicks divided by the sum of κ_l over
        its displays. It shows the *leaders*, the K items with the largest estimates, with the
        better items at the positions with larger κ_l. With probability 1/2 it replaces the last
        leader by a random item whose upper confidence bound (KL-UCB) reaches the estimate of this
        leader. Such experiments cost little, because few users examine the position of the last
        leader, and the paper proves regret close to the lower bound. However, clicks at this
        position are also rare, so it takes a long time to find a good item. PBM-PIE requires the
        horizon and the true κ.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        examination: ``(K,)`` the probability κ that users examine each position, in ``(0, 1]``;
            ``make_agent`` fills in these probabilities.
        horizon: the number of sessions, T.
        epsilon: ε ≥ 0; a larger ε explores more. The paper proves its regret bound for any ε > 0.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``examination`` has a wrong shape or a number outside ``(0, 1]``, ``horizon`` is
            invalid, or ``epsilon`` is negative.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016,
        Algorithm 1.

    Deviations from the paper:
        1. ⚠ The first L sessions show every item once at every position: the list moves cyclically
           through a random order of the items.
        2. ⚠ Ties between estimates θ̂ are broken uniformly at random. If the last leader's θ̂ is
           above 1, no item replaces the last leader, because no upper confidence bound exceeds 1.
           An item without data ranks last.
        3. κ need not decrease with the position: the k-th leader is shown at the position with the
           k-th largest κ.
        4. ⚠ By default, ε is 0. Algorithm 1 of the paper and its regret bound require ε > 0.

    Example:
        >>> PBMPIE(4, 2, examination=[1.0, 0.5], horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Lagrée et al. 2016, Algorithm 1"
    bibtex_keys = ["pbmbandits"]
    state_type, rank_kernel, update_kernel = PBMPIEState, rank, update

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
