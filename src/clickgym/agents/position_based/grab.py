"""GRAB (Gauthier et al. 2021), a unimodal bandit that explores only the neighbours of the best list
so far.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_count, check_horizon
from ...core.kernels import entry, kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.leader_agent import LeaderAgent, find_leader, level_of
from ..common.ranking import rank_by_index, shuffle_front
from .assignment import assign
from .grab_shortcuts import confirm_only_leader, kl_ucb_index, note_change

TIE_TOLERANCE = 1e-10  # sums of indices that differ by less than this count as equal


class GRABState(NamedTuple):
    clicks: Annotated[Ints, "L K"]  # clicks on each item at each position
    shown: Annotated[Ints, "L K"]  # n, the displays of each item at each position
    mean: Annotated[Floats, "L K"]  # ρ̂; 0 if never shown
    leader: Annotated[Ints, "K", -1]  # a, the item at each position
    place_of: Annotated[Ints, "L", -1]  # the position of each item in the leader, or -1
    # How often each leader was chosen: see `leader_agent.py`.
    leaders: Annotated[NDArray[np.int32], "C K"]
    counts: Annotated[Ints, "C"]
    n_leaders: Annotated[Ints, "1"]
    leader_number: Annotated[Ints, "1"]  # the current leader's row in `leaders`
    gamma: int  # γ
    log_horizon: float  # log T; negative if no horizon was given
    # What need not be computed again: see `grab_shortcuts.py`.
    upper: Annotated[Floats, "L K", 1.0]
    minus_entropy: Annotated[Floats, "L K"]
    known: Annotated[NDArray[np.int8], "L K"]
    ahead: Annotated[Floats, "1", -np.inf]
    before: Annotated[Floats, "L K"]
    won: Annotated[Floats, "K"]
    # Working memory.
    items: Annotated[Ints, "L", range]
    positions: Annotated[Ints, "K", range]  # π
    value: Annotated[Floats, "K"]
    gain: Annotated[Floats, "N"]  # a neighbour's sum of indices minus the leader's
    change: Annotated[Ints, "N 2"]  # a position of each neighbour, and its new item
    potential: Annotated[Floats, "3 L+1"]
    path: Annotated[Ints, "3 L+1"]
    detour: Annotated[Floats, "K+1 K+1"]


@kernel
def choose_leader(state, rng):
    """Choose as leader the list with the largest sum of means. A random order of the items breaks
    ties.
    """
    n_items = len(state.items)
    shuffle_front(rng, state.items, 0, n_items, n_items)
    assign(state.mean, state.items, state.leader, state.potential, state.path)
    state.place_of[:] = -1
    for k in range(len(state.leader)):
        state.place_of[state.leader[k]] = k
    state.leader_number[0] = find_leader(state, state.leader)


@kernel
def add_swap(state, n, k, other, level):
    """Add the neighbour in which positions k and ``other`` of the leader exchange their items, and
    return the new number of neighbours.
    """
    item, moved = state.leader[k], state.leader[other]
    after = kl_ucb_index(state, moved, k, level) + kl_ucb_index(state, item, other, level)
    state.gain[n] = after - state.value[k] - state.value[other]
    state.change[n, 0], state.change[n, 1] = k, moved
    return n + 1


@kernel
def add_replacements(state, n, k, level):
    """Add the neighbours in which an item from outside the leader replaces the item at position k,
    and return the new number of neighbours.
    """
    for item in range(len(state.place_of)):
        if state.place_of[item] < 0:
            state.gain[n] = kl_ucb_index(state, item, k, level) - state.value[k]
            state.change[n, 0], state.change[n, 1] = k, item
            n += 1
    return n


@kernel
def add_neighbours(state, rng, level):
    """List all neighbours of the leader in ``state.gain`` and ``state.change``, and return their
    number.
    """
    n_positions, n = len(state.leader), 0
    for k in range(n_positions):
        state.value[k] = state.mean[state.leader[k], k]
    rank_by_index(state.value, state.positions, rng, n_positions)
    for k in range(n_positions):
        state.value[k] = kl_ucb_index(state, state.leader[k], k, level)
    for j in range(n_positions - 1):
        n = add_swap(state, n, state.positions[j], state.positions[j + 1], level)
    return add_replacements(state, n, state.positions[n_positions - 1], level)


@kernel
def choose_change(state, rng, n):
    """Return the number of the neighbour with the largest sum of indices, or -1 if the leader's sum
    is the largest. Ties are broken at random.
    """
    largest = 0.0
    for i in range(n):
        largest = max(largest, state.gain[i])
    chosen, n_tied = -1, int(largest <= TIE_TOLERANCE)
    for i in range(n):
        if state.gain[i] >= largest - TIE_TOLERANCE:
            n_tied += 1
            if n_tied == 1 or rng.random() * n_tied < 1.0:
                chosen = i
    return chosen


@kernel
def rank(state, rng, ranking):
    if not confirm_only_leader(state):
        choose_leader(state, rng)
    for k in range(len(ranking)):
        ranking[k] = state.leader[k]
    times = state.counts[state.leader_number[0]]  # how often the leader was chosen before
    state.counts[state.leader_number[0]] += 1
    if times % state.gamma == 0:
        return
    chosen = choose_change(state, rng, add_neighbours(state, rng, level_of(state, times + 1)))
    if chosen >= 0:
        k, item = state.change[chosen, 0], state.change[chosen, 1]
        if state.place_of[item] >= 0:
            ranking[state.place_of[item]] = ranking[k]
        ranking[k] = item


@kernel
def update(state, ranking, clicks):
    for k in range(len(ranking)):
        item = ranking[k]
        state.clicks[item, k] += clicks[k]
        state.shown[item, k] += 1
        state.mean[item, k] = state.clicks[item, k] / state.shown[item, k]
        note_change(state, item, k)


class GRAB(LeaderAgent):
    """GRAB: an agent for the position-based model that shows the list with the most estimated
    clicks, or a neighbour of this list with larger upper confidence bounds.

    Idea:
        GRAB is made for the position-based model, where users examine each position with a fixed
        probability, which the agent does not know. GRAB keeps the mean number of clicks ρ of each
        item at each position, and its *leader* is the list with the largest sum of these means. A
        neighbour of the leader exchanges two items whose positions are adjacent in the order of the
        leader's means, or replaces the item with the smallest mean. GRAB shows the leader or
        neighbour with the largest sum of KL-UCB indices (upper confidence bounds), and every γ-th
        time the leader itself. The expected clicks are unimodal: each list except the best one has
        a better neighbour, so L - 1 neighbours are enough to reach the best list. GRAB learns L K
        separate numbers, which takes longer than learning one attraction for each item.

    Algorithm:
        ::

            for each item i at each position k: ρ(i, k) ← 0, the mean clicks; n(i, k) ← 0, displays
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws; γ = L - 1
            for t = 1, 2, ...:
                a ← the leader: the list with the largest Σ_k ρ(a_k, k), solved exactly as an
                    assignment problem, ties at random
                s ← how often a was the leader before
                if s is a multiple of γ:
                    R_t ← a, the list to show
                else:
                    f ← log T, the level of confidence; without a horizon
                        log(s + 1) + 3 log log(s + 1), ∞ for s < 2
                    u(i, k) ← max{q : n(i, k) KL(ρ(i, k), q) ≤ f}, and 1 where n(i, k) = 0
                    π ← the positions by ρ(a_k, k), in decreasing order
                    𝒩 ← the neighbours: a with the items of π_j and π_{j+1} exchanged, j < K
                    𝒩 ← 𝒩 and a with another item at π_K, for each item that a does not show
                    R_t ← the list of {a} ∪ 𝒩 of largest Σ_k u(R_k, k), ties at random
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                for k = 1, ..., K:
                    n(R_t(k), k) ← n(R_t(k), k) + 1; ρ(R_t(k), k) ← the mean of the clicks there

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        horizon: the number of sessions, T; the confidence level of the indices is then log T. By
            default, the level is ``log s + 3 log log s``, where s counts the sessions in which the
            current leader was chosen.
        gamma: the agent shows the leader itself every γ-th time that the leader is chosen, γ ≥ 1.
            By default, L - 1; the authors also ran 10 and L - K.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``horizon`` or ``gamma`` is invalid.

    Source: Gauthier, Gaudel, Fromont, Lompo, *Parametric graph for unimodal ranking bandit*, ICML
        2021, Algorithm 1.

    Deviations from the paper:
        1. ⚠ A random order of the items breaks ties between possible leaders (sums of means that
           differ by at most 1e-12); an item with exactly the same advantage at two positions gets
           the first of them. Ties between the leader and its neighbours (sums of indices that
           differ by at most 1e-10), and ties between the means of positions, are broken uniformly
           at random.
        2. ⚠ An item that was never shown at a position has the mean 0 there, and the index 1.
        3. ⚠ Without a horizon, the confidence level is that of UniRank, which is infinite for s = 1
           and 2.

    Memory: 9 L K numbers, and a table of past leaders with 4 K + 8 bytes for each leader. Before
    each chunk of sessions, the table grows so that every session could add a new leader.

    Example:
        >>> GRAB(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Gauthier et al. 2021a, Algorithm 1"
    bibtex_keys = ["grab"]
    click_models = "PBM"
    made_for_models = ("PBM",)
    state_type, rank_kernel, update_kernel = GRABState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        horizon: float | None = None,
        gamma: int | None = None,
        seed: Seed = None,
    ) -> None:
        horizon = None if horizon is None else check_horizon(horizon)
        gamma = None if gamma is None else check_count("gamma", gamma)
        super().__init__(n_items, n_positions, seed, horizon=horizon, gamma=gamma)

    def best(self) -> NDArray[np.int64]:
        state, ranking = self.state, np.empty(self.n_positions, np.int64)
        entry(assign)(
            state.mean, np.arange(self.n_items), ranking, state.potential.copy(), state.path.copy()
        )
        return ranking

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"N": self.n_items - 1}

    def first_values(self) -> dict[str, Any]:
        horizon, gamma = self.hyperparameters["horizon"], self.hyperparameters["gamma"]
        return {
            "gamma": gamma or max(self.n_items - 1, 1),
            "log_horizon": -1.0 if horizon is None else math.log(horizon),
        }
