"""BatchRank (Zoghi et al. 2017), an agent for many click models that repeatedly splits batches of
items into better and worse ones.
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
from ..common.kl_bounds import kl_lower, kl_upper
from ..common.ranking import shuffle_front, sort_stably
from ..compiled_agent import CompiledAgent, rates


class BatchRankState(NamedTuple):
    # Fields with an entry for each item. An item belongs to at most one active batch.
    clicks: Annotated[Ints, "L"]  # c_{b,ℓ}(d)
    observed: Annotated[Ints, "L"]  # n_{b,ℓ}(d), at most n_ℓ
    upper: Annotated[Floats, "L"]  # U_{b,ℓ}(d)
    lower: Annotated[Floats, "L"]  # L_{b,ℓ}(d)
    # Fields with an entry for each of at most K active batches, in the order of their positions.
    n_batches: Annotated[Ints, "1", 1]  # |𝒜|
    # I_b(1), counted from 0, then K: batch b has the positions first[b] to first[b + 1] - 1
    first: Annotated[Ints, "K+1"]
    stage: Annotated[Ints, "K"]  # ℓ_b
    # the number of items with the fewest displays in this stage; the other items of the batch have
    # one display more
    pending: Annotated[Ints, "K"]
    size: Annotated[Ints, "K"]  # |B_{b,ℓ}|
    # The items of batch b are items[first[b] : first[b] + size[b]], and the items with the fewest
    # displays come first. Only the last batch can have more items than positions.
    items: Annotated[Ints, "L", range]
    filler: Annotated[Flags, "K"]  # whether the item at a position fills a gap and is not pending
    log_horizon: float  # log T
    delta: float  # δ_T = log T + 3 log log T


@kernel
def stage_length(state, stage):
    """Return the number of displays of each item in a stage: n_ℓ = ⌈16 Δ̃_ℓ^{-2} log T⌉, with Δ̃_ℓ
    = 2^{-ℓ}.
    """
    return math.ceil((16 << 2 * stage) * state.log_horizon)


@kernel
def display_batch(state, rng, b, ranking):
    """Write a batch's items with the fewest displays into its positions, in random order; ties are
    broken at random (Algorithm 2).
    """
    first, pending = state.first[b], state.pending[b]
    length = state.first[b + 1] - first
    end = first + state.size[b]
    if pending >= length:
        shuffle_front(rng, state.items, first, first + pending, length)
        for k in range(first, first + length):
            ranking[k] = state.items[k]
            state.filler[k] = False
    else:  # show all pending items, and fill the other positions at random
        shuffle_front(rng, state.items, first + pending, end, length - pending)
        for k in range(first, first + length):
            ranking[k] = k  # a place in `items`, replaced by its item below
        shuffle_front(rng, ranking, first, first + length, length)
        for k in range(first, first + length):
            state.filler[k] = ranking[k] >= first + pending
            ranking[k] = state.items[ranking[k]]
    count_displays(state, b)


@kernel
def count_displays(state, b):
    """Count one display of the pending items that were shown; pending items are those with the
    fewest displays. In ``items``, the shown ones move from the front to behind the items that are
    still pending. If no pending item is left, all items of the batch become pending.
    """
    first, pending = state.first[b], state.pending[b]
    counted = min(state.first[b + 1] - first, pending)
    for i in range(counted):
        j = first + pending - 1 - i
        if j > first + i:
            state.items[first + i], state.items[j] = state.items[j], state.items[first + i]
    state.pending[b] = pending - counted
    if state.pending[b] == 0:
        state.pending[b] = state.size[b]


@kernel
def collect_clicks(state, b, ranking, clicks, n):
    """Count the displays and clicks of a batch's items, up to n displays of each item and not
    counting fillers. Return whether all items have n displays (Algorithm 3).
    """
    complete = False
    for k in range(state.first[b], state.first[b + 1]):
        item = ranking[k]
        if state.filler[k] or state.observed[item] == n:
            continue
        state.clicks[item] += clicks[k]
        state.observed[item] += 1
        complete = complete or state.observed[item] == n
    if complete:
        for place in range(state.first[b], state.first[b] + state.size[b]):
            complete = complete and state.observed[state.items[place]] == n
    return complete


@kernel
def restart(state, b, stage):
    """Start a stage of batch b, with all counts at 0."""
    state.stage[b] = stage
    state.pending[b] = state.size[b]
    for i in range(state.first[b], state.first[b] + state.size[b]):
        state.clicks[state.items[i]] = 0
        state.observed[state.items[i]] = 0


@kernel
def update_batch(state, b, n):
    """Split batch b, or eliminate some of its items and start its next stage, after n observations
    of each item (Algorithm 4).
    """
    first, size = state.first[b], state.size[b]
    length = state.first[b + 1] - first
    for i in range(first, first + size):
        item = state.items[i]
        estimate = state.clicks[item] / n
        state.upper[item] = kl_upper(estimate, state.delta / n)
        state.lower[item] = kl_lower(estimate, state.delta / n)
    sort_stably(state.lower, state.items[first : first + size])
    # Lines 12-15: the largest s at which the s-th lower bound exceeds the upper bounds of all later
    # items.
    split = 0
    highest = -1.0  # the largest U of the items behind the split (B_k^-)
    for k in range(size - 1, 0, -1):
        highest = max(highest, state.upper[state.items[first + k]])
        if k <= length - 1 and state.lower[state.items[first + k - 1]] > highest:
            split = k
            break
    if split == 0:
        # Line 18: keep the items that may still belong in the batch's positions.
        threshold = state.lower[state.items[first + length - 1]]
        n_kept = 0
        for i in range(first, first + size):
            item = state.items[i]
            if state.upper[item] >= threshold:
                state.items[first + n_kept] = item
                n_kept += 1
        state.size[b] = n_kept
        restart(state, b, state.stage[b] + 1)
    else:
        # Lines 22-27, except that the second half becomes the next batch.
        for other in range(state.n_batches[0], b + 1, -1):
            state.first[other + 1] = state.first[other]
            state.stage[other] = state.stage[other - 1]
            state.pending[other] = state.pending[other - 1]
            state.size[other] = state.size[other - 1]
        state.first[b + 2] = first + length
        state.first[b + 1] = first + split
        state.n_batches[0] += 1
        state.size[b], state.size[b + 1] = split, size - split
        restart(state, b, np.int64(0))
        restart(state, b + 1, np.int64(0))


@kernel
def rank(state, rng, ranking):
    for b in range(state.n_batches[0]):
        display_batch(state, rng, b, ranking)


@kernel
def update(state, ranking, clicks):
    for b in range(state.n_batches[0] - 1, -1, -1):  # from the last: a split moves later batches
        if state.size[b] > 1:  # otherwise nothing is left to learn
            n = stage_length(state, state.stage[b])
            if collect_clicks(state, b, ranking, clicks, n):
                update_batch(state, b, n)


class BatchRank(CompiledAgent):
    """BatchRank: an agent that shows batches of items, each in random order on its own range of
    positions, and splits a batch once some of its items are clearly better.

    Idea:
        BatchRank learns in many click models, among them the cascade and the position-based model,
        without knowing which of them users follow. It divides the items into batches, each with its
        own range of positions, and counts the clicks and displays of each item in the current
        stage. In each session it shows the items of a batch with the fewest displays, in random
        order, so all items of the batch get the same share of the positions that users examine
        most. After stage ℓ, with n_ℓ displays of each item, it splits the batch if some items are
        better than all others with high confidence. Otherwise it drops items that are too bad for
        the batch, and the next stage is four times as long. Its regret grows only with log T, but
        it is large, because every stage starts again from counts of 0. BatchRank never revises a
        decision, even if bots caused the decision or users have changed.

    Algorithm:
        ::

            𝒜 ← {1}, the batches; B_1 ← all L items; I_1 ← the positions 1, ..., K;
                ℓ_1 ← 0, the stage of batch 1
            c(d) ← 0, the clicks, and n(d) ← 0, the counted displays,
                of each item d in the stage of its batch
            δ_T = log T + 3 log log T, larger for more confidence;
                KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, ..., T:
                for each batch b ∈ 𝒜:
                    put the |I_b| least displayed items of B_b, ties at random,
                        in random order on I_b
                show the list and observe the clicks
                for each batch b ∈ 𝒜 of more than one item:
                    n_ℓ ← ⌈16 · 4^{ℓ_b} log T⌉, the length of the stage
                    for each item d of B_b in the list with the least n(d) of B_b, if n(d) < n_ℓ:
                        c(d) ← c(d) + the click on d; n(d) ← n(d) + 1
                    if n(d) = n_ℓ for all d ∈ B_b:
                        low(d), up(d) ← the least and the largest q with
                            KL(c(d) / n_ℓ, q) ≤ δ_T / n_ℓ, the bounds of d
                        sort B_b by low, in decreasing order
                        s ← the largest s < |I_b| for which the first s items have low above up of
                            all others
                        if there is one: cut B_b and I_b after s into two batches, both with ℓ ← 0
                        else: drop the items with up below the |I_b|-th largest low; ℓ_b ← ℓ_b + 1
                        c(d) ← 0 and n(d) ← 0 for all these items

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        horizon: the number of sessions, T ≥ 5, which sets the lengths of the stages and the level
            of confidence ``δ_T = log T + 3 log log T``.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``horizon`` is below 5 or not a whole number.

    Source: Zoghi, Tunys, Ghavamzadeh, Kveton, Szepesvári, Wen, *Online learning to rank in
    stochastic click models*, ICML 2017, Algorithms 1-4.

    Deviations from the paper:
        1. ⚠ Line 16 of Algorithm 4 as printed starts the next stage only if the batch has more
           items than positions. A batch with as many items as positions that its first test cannot
           split would then never be tested again. Here the next stage starts whenever there is no
           split, with the items that survive the elimination.
        2. The clicks on a batch with a single item are no longer counted.

    Example:
        >>> BatchRank(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Zoghi et al. 2017, Algorithms 1-4"
    bibtex_keys = ["batchrank"]
    click_models = "CM, PBM and similar models"
    made_for_models = ("CM", "PBM")
    state_type, rank_kernel, update_kernel = BatchRankState, rank, update

    def __init__(
        self, n_items: int, n_positions: int, *, horizon: float, seed: Seed = None
    ) -> None:
        super().__init__(n_items, n_positions, seed, horizon=check_horizon(horizon, 5))

    def best(self) -> NDArray[np.int64]:
        state = self.state
        estimates, order = rates(state.clicks, state.observed), []
        for b in range(state.n_batches[0]):
            items = state.items[state.first[b] : state.first[b] + state.size[b]]
            order.append(items[np.lexsort((items, -estimates[items]))])
        return np.concatenate(order)[: self.n_positions]

    def first_values(self) -> dict[str, Any]:
        n, k = self.n_items, self.n_positions
        log_horizon = math.log(self.hyperparameters["horizon"])
        return {
            "first": np.array([0] + [k] * k),
            "pending": np.array([n] + [0] * (k - 1)),
            "size": np.array([n] + [0] * (k - 1)),
            "log_horizon": log_horizon,
            "delta": log_horizon + 3.0 * math.log(log_horizon),
        }
