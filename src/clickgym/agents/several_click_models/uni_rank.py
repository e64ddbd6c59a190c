"""UniRank (Gauthier, Gaudel and Fromont 2022), an agent that learns an ordered partition of the
items by comparing pairs of items within a part.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_horizon
from ...core.kernels import kernel
from ...core.state import Flags, Floats, Ints
from ..agent import Seed
from ..common.kl_bounds import kl_upper
from ..common.leader_agent import LeaderAgent, find_leader, level_of
from ..common.ranking import show, shuffle_front
from .topological_layers import topological_layers
from .uni_rank_relation import end_weak_relations, log_log_t, note_comparison

TIE_TOLERANCE = 1e-10  # indices that differ by less than this count as equal
UNKNOWN = -1.0


class UniRankState(NamedTuple):
    difference: Annotated[Ints, "L L"]  # the sum of c_i - c_j over the sessions that compared them
    compared: Annotated[Ints, "L L"]  # n, the number of these sessions
    # n KL((1 + τ)/2, 1/2), or UNKNOWN until it is computed; it tells whether an index exceeds 1/2
    evidence: Annotated[Floats, "L L", UNKNOWN]
    t: Annotated[Ints, "1"]  # sessions so far
    # Which items certainly beat which: see `uni_rank_relation.py`.
    beats: Annotated[Flags, "L L"]
    may_win: Annotated[Flags, "L", True]
    weakest: Annotated[Floats, "1", np.inf]
    settled: Annotated[Flags, "1"]
    # The leader partition: its parts from the top.
    part: Annotated[NDArray[np.int32], "L"]  # the part of each item
    order: Annotated[Ints, "L", range]  # items, part by part
    # the start of each part in `order`, then the end of the last part
    start: Annotated[Ints, "L+1"]
    n_parts: Annotated[Ints, "1"]
    # The parts that the list shows, some of them merged.
    shown_part: Annotated[Ints, "L"]  # the shown part of each item; -1 below the list
    shown_order: Annotated[Ints, "L", range]
    shown_start: Annotated[Ints, "K+1"]
    # How often each leader partition was chosen: see `leader_agent.py`.
    leaders: Annotated[NDArray[np.int32], "C L"]
    counts: Annotated[Ints, "C"]
    n_leaders: Annotated[Ints, "1"]
    leader_number: Annotated[Ints, "1"]  # the current leader's row in `leaders`
    clicked: Annotated[Flags, "L"]  # all false between sessions
    log_horizon: float  # log T; negative if no horizon was given


@kernel
def choose_leader(state):
    """Update the leader partition for this session, and count that it was chosen."""
    if end_weak_relations(state):
        state.n_parts[0] = topological_layers(state.beats, state.part, state.order, state.start)
        state.leader_number[0] = find_leader(state, state.part)
        state.settled[0] = True
    state.counts[state.leader_number[0]] += 1


@kernel
def may_be_better(state, j, i, level):
    """Return whether item j may be better than item i according to the data so far, that is,
    whether kl_upper((1 + τ_ji)/2, level / n_ji) > 1/2. The kernel reads only the row of i, because
    callers vary j for a fixed i.
    """
    n = state.compared[i, j]
    if n == 0 or level == np.inf or state.difference[i, j] < 0:
        return True
    if state.evidence[i, j] == UNKNOWN:
        p = 0.5 * (1.0 - state.difference[i, j] / n)
        divergence = math.log(2.0) + (1.0 - p) * math.log1p(-p)
        if p > 0.0:
            divergence += p * math.log(p)
        state.evidence[i, j] = n * max(divergence, 0.0)
    return state.evidence[i, j] < level


@kernel
def may_be_merged(state, order, start, b, level):
    """Return whether some item in the part directly below part b may be better than some item in
    part b.
    """
    for place in range(start[b + 1], start[b + 2]):
        for above in range(start[b], start[b + 1]):
            if may_be_better(state, order[place], order[above], level):
                return True
    return False


@kernel
def find_challenger(state, rng, order, start, n_parts, b, level):
    """Return the place of the item to add to part b, or -1 if there is none. The item comes from
    the nearest lower part with an item that may be better than an item in part b; it has the
    largest index there, with ties broken at random.
    """
    # In a large part, many consecutive pairs have the same counts and therefore the same index,
    # which is reused.
    last_n, last_difference, last_index = -1, 0, 0.0
    for below in range(b + 1, n_parts):
        chosen, largest, n_tied = -1, 0.5, 0
        for place in range(start[below], start[below + 1]):
            index = largest - TIE_TOLERANCE
            for above in range(start[b], start[b + 1]):
                i, j = order[above], order[place]
                n, difference = state.compared[i, j], state.difference[i, j]
                if n == 0 or level == np.inf:
                    index = 1.0
                    break
                if n != last_n or difference != last_difference:
                    p, bound = 0.5 * (1.0 - difference / n), level / n
                    # By Pinsker's inequality, most pairs cannot have a larger index, so their
                    # indices are not computed.
                    if p + math.sqrt(0.5 * bound) <= index or not may_be_better(state, j, i, level):
                        continue
                    last_n, last_difference, last_index = n, difference, kl_upper(p, bound)
                index = max(index, last_index)
            if index > largest + TIE_TOLERANCE:
                chosen, largest, n_tied = place, index, 1
            elif index > largest - TIE_TOLERANCE and chosen >= 0:
                n_tied += 1
                if rng.random() * n_tied < 1.0:
                    chosen = place
        if chosen >= 0:
            return chosen
    return -1


@kernel
def merge_parts(state, rng, level, n_positions):
    """Write the parts to show, from the top, and return their number. They are the parts of the
    leader partition, some of them merged.
    """
    order, start, n_parts = state.order, state.start, state.n_parts[0]
    for place in range(start[n_parts]):
        state.shown_order[place] = order[place]
    state.shown_part[:] = -1
    b, shown = 0, 0
    while b < n_parts and start[b] < n_positions:
        state.shown_start[shown] = start[b]
        end = start[b + 1]
        if end >= n_positions:
            place = find_challenger(state, rng, order, start, n_parts, b, level)
            if place >= 0:
                state.shown_order[end], state.shown_order[place] = order[place], order[end]
                end += 1
            b += 1
        elif b + 1 < n_parts and may_be_merged(state, order, start, b, level):
            end = start[b + 2]
            b += 2
        else:
            b += 1
        for place in range(state.shown_start[shown], end):
            state.shown_part[state.shown_order[place]] = shown
        shown += 1
        state.shown_start[shown] = end
    return shown


@kernel
def rank(state, rng, ranking):
    choose_leader(state)
    n_positions, level = len(ranking), level_of(state, state.counts[state.leader_number[0]])
    for b in range(merge_parts(state, rng, level, n_positions)):
        first, stop = state.shown_start[b], state.shown_start[b + 1]
        shuffle_front(rng, state.shown_order, first, stop, min(stop, n_positions) - first)
    show(state.shown_order, ranking)


@kernel
def count_win(state, i, j, threshold):
    """Count a session with a click on item i and none on item j. ``threshold`` is log log(t + 3),
    the evidence that a win needs.
    """
    state.difference[i, j] += 1
    state.difference[j, i] -= 1
    state.compared[i, j] += 1
    state.compared[j, i] += 1
    state.evidence[i, j] = UNKNOWN
    state.evidence[j, i] = UNKNOWN
    note_comparison(state, i, j, threshold)


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    threshold = log_log_t(state)
    for k in range(len(ranking)):
        state.clicked[ranking[k]] = clicks[k]
    for k in range(len(ranking)):
        if clicks[k]:
            i = ranking[k]
            part = state.shown_part[i]
            for place in range(state.shown_start[part], state.shown_start[part + 1]):
                j = state.shown_order[place]
                if not state.clicked[j]:  # this excludes i itself
                    count_win(state, i, j, threshold)
    for k in range(len(ranking)):
        state.clicked[ranking[k]] = False


class UniRank(LeaderAgent):
    """UniRank: an agent that ranks by an ordered partition of the items, and merges neighbouring
    parts while their order is uncertain.

    Idea:
        UniRank learns an order of the items in cascade and position-based models alike, without
        knowing the examination probabilities. For each pair of items in one part, it keeps n, the
        sessions in which exactly one was clicked, and their mean click difference τ. Its *leader*
        is an ordered partition: the first part contains the items that no other item certainly
        beats, the second part the items that no other remaining item certainly beats, and so on.
        UniRank shows the parts in order, each shuffled, and merges two neighbouring parts if, by
        KL-UCB, an item in the lower part may be better than an item in the upper part. It therefore
        compares only items in the same or in neighbouring parts. It can revise a relation, because
        the required evidence grows slowly with t. A good item that loses its first few comparisons
        may rarely be shown again, and the regret of such a run is high.

    Algorithm:
        ::

            for each pair of items: τ_ij ← 0, the mean click difference, and n_ij ← 0, the sessions
                with a click on one of both
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, 2, ...:
                rest ← all L items; P ← (), the parts
                while rest is not empty:
                    Q ← {i ∈ rest : τ_ij + sqrt(log log(t + 2) / n_ij) ≥ 0 for all j ∈ rest}, the
                        items that are not certainly beaten
                    if Q is empty: Q ← rest
                    P ← P and the part Q; rest ← rest without Q
                s ← how often P was the leader, this session included
                f(s) = log s + 3 log log s (∞ for s < 3)
                u_ji = max{q : n_ji KL((1 + τ_ji) / 2, q) ≤ f(s)}: j may be better if u_ji > 1/2
                for each part of P that begins within the list, from the top:
                    if it ends above position K, and an item of the next part may be better:
                        merge both, and continue below them
                    else if it reaches position K:
                        add the item of largest u_ji > 1/2 from the nearest part below that has one
                show the parts in order, each shuffled, cut at position K
                c_i ← 1 if i was clicked, else 0
                for all pairs i, j of one part that was shown with c_i ≠ c_j:
                    n_ij ← n_ij + 1; τ_ij ← the mean of c_i - c_j over these sessions

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        horizon: the number of sessions, T; the confidence level is then ``log T``. By default, the
            level is f(s), as in the paper.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``horizon`` is below 1 or not a whole number.

    Source: Gauthier, Gaudel, Fromont, *UniRank: unimodal bandit algorithms for online ranking*,
        ICML 2022, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Two parts are merged if any item of the lower part may be better than any item of the
           upper part; the authors' code compares only the i-th item of one part with the i-th item
           of the other. The additional item is the one with the largest index, with ties broken at
           random; the authors' code takes the first one in memory.
        2. ⚠ If the last part reaches below the list, its items that are not shown count as not
           clicked.
        3. ⚠ The part at position K gets one additional item from below that may be better, even if
           the part has only a single item. A merged part gets no additional item.
        4. ⚠ The levels f(1) and f(2) are infinite.

    In some of our runs, a good item that lost its first few comparisons was rarely shown again,
    because the additional item comes from the nearest part that contains a possibly better item. In
    3 of 40 runs on the default query of the PBM, the regret after 10⁵ sessions was two to three
    times the median.

    Memory: 25 L² bytes, and a table of past leaders with 4 L + 8 bytes for each leader. Before each
    chunk of sessions, the table grows so that every session could add a new leader.

    Example:
        >>> UniRank(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Gauthier et al. 2022, Algorithm 1"
    bibtex_keys = ["unirank"]
    click_models = "CM, PBM and similar models"
    made_for_models = ("CM", "PBM")
    state_type, rank_kernel, update_kernel = UniRankState, rank, update

    def __init__(
        self, n_items: int, n_positions: int, *, horizon: float | None = None, seed: Seed = None
    ) -> None:
        horizon = None if horizon is None else check_horizon(horizon)
        super().__init__(n_items, n_positions, seed, horizon=horizon)

    def best(self) -> NDArray[np.int64]:
        state = self.state
        return np.lexsort((-state.difference.sum(axis=1), state.part))[: self.n_positions]

    def first_values(self) -> dict[str, Any]:
        horizon = self.hyperparameters["horizon"]
        return {"log_horizon": -1.0 if horizon is None else math.log(horizon)}
