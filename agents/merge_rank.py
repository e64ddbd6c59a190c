"""MergeRank, the algorithm of the code that the authors of BatchRank (Zoghi et al. 2017) released."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import inner, kernel
from ..core.state import Floats, Ints
from .agent import ITS_DISPLAYS, CompiledAgent, rates
from .hyperparameters import hyperparameter, sessions
from .kernels import count_session, kl_lower, kl_upper, show, shuffle_front, sort_stably


class State(NamedTuple):
    # Per item that is left; dropped items keep what they had.
    clicks: Annotated[Ints, "L"]  # C
    observed: Annotated[Ints, "L"]  # N
    upper: Annotated[Floats, "L"]
    lower: Annotated[Floats, "L"]
    items: Annotated[Ints, "L", range]  # the order, of which the first K are shown
    # Per batch, in the order of their places; there are at most K. Batch b has the places first[b] .. first[b + 1] - 1.
    n_batches: Annotated[Ints, "1", 1]
    first: Ints  # (K + 1,)
    epoch: Annotated[Ints, "K"]  # how many clearings there had been, that of this batch included
    halvings: Annotated[Ints, "K"]  # δ_b = 2^{-halvings - 1}
    ready: Annotated[Ints, "K"]  # how many items have enough observations to be compared
    cuts: Annotated[Ints, "K"]  # where the pieces of a batch begin, while it is cut
    n_epochs: Annotated[Ints, "1"]  # how many there have been
    shown_epoch: Annotated[Ints, "1"]  # how many there had been at a display
    t: Annotated[Ints, "1"]  # displays
    horizon: int  # T
    level: float  # log(L T)


@inner
def enough(state, b):  # type: ignore[no-untyped-def]
    """The number of observations that each item of a batch needs before a test, ``⌈log(L T) / δ²⌉``."""
    return math.ceil(state.level * 4.0 ** (state.halvings[b] + 1))


@inner
def count_ready(state, b):  # type: ignore[no-untyped-def]
    needed = enough(state, b)
    state.ready[b] = 0
    for place in range(state.first[b], state.first[b + 1]):
        state.ready[b] += state.observed[state.items[place]] >= needed


@inner
def drop_items(state, b, n_positions):  # type: ignore[no-untyped-def]
    """Drop the items that are certainly worse than the item at position K; the dropped items move behind the others."""
    end = state.first[b + 1]
    if end <= n_positions:
        return False
    threshold = state.lower[state.items[n_positions - 1]]
    kept = n_positions
    for place in range(n_positions, end):
        item = state.items[place]
        if state.upper[item] >= threshold:
            state.items[place], state.items[kept] = state.items[kept], item
            kept += 1
    state.first[b + 1] = kept
    return kept < end


@inner
def cut(state, b):  # type: ignore[no-untyped-def]
    """Cut a sorted batch where all items above are certainly better than all below; returns the number of pieces."""
    first, end = state.first[b], state.first[b + 1]
    n_cuts = 0  # found from below
    highest = -1.0  # the largest upper bound below
    for place in range(end - 1, first, -1):
        highest = max(highest, state.upper[state.items[place]])
        if state.lower[state.items[place - 1]] > highest:
            state.cuts[n_cuts] = place
            n_cuts += 1
    for other in range(state.n_batches[0], b, -1):
        state.first[other + n_cuts] = state.first[other]
        if other < state.n_batches[0]:
            state.epoch[other + n_cuts] = state.epoch[other]
            state.halvings[other + n_cuts] = state.halvings[other]
            state.ready[other + n_cuts] = state.ready[other]
    for i in range(n_cuts):
        state.first[b + n_cuts - i] = state.cuts[i]
    state.n_batches[0] += n_cuts
    return n_cuts + 1


@inner
def clear(state, b):  # type: ignore[no-untyped-def]
    """Set the counts of a batch to 0."""
    state.n_epochs[0] += 1
    state.epoch[b] = state.n_epochs[0]
    state.halvings[b], state.ready[b] = 0, 0
    for place in range(state.first[b], state.first[b + 1]):
        state.clicks[state.items[place]] = 0
        state.observed[state.items[place]] = 0


@inner
def test_batch(state, b, n_positions):  # type: ignore[no-untyped-def]
    """Compare the items of a batch, all of which have enough observations."""
    first, end = state.first[b], state.first[b + 1]
    for place in range(first, end):
        item = state.items[place]
        n = state.observed[item]
        state.upper[item] = kl_upper(state.clicks[item] / n, state.level / n)
        state.lower[item] = kl_lower(state.clicks[item] / n, state.level / n)
    sort_stably(state.lower, state.items[first:end])
    dropped = drop_items(state, b, n_positions)
    pieces = cut(state, b)
    if dropped or pieces > 1:
        for piece in range(b, b + pieces):
            clear(state, piece)
    else:
        state.halvings[b] += 1
        count_ready(state, b)


@kernel
def rank(state, rng, ranking):  # type: ignore[no-untyped-def]
    count_session(state)
    state.shown_epoch[0] = state.n_epochs[0]
    n_positions = len(ranking)
    if state.t[0] <= state.horizon:
        for b in range(state.n_batches[0]):
            first, end = state.first[b], state.first[b + 1]
            shuffle_front(rng, state.items, first, end, min(end, n_positions) - first)
    show(state.items, ranking)


@kernel
def update(state, ranking, clicks):  # type: ignore[no-untyped-def]
    n_positions = len(ranking)
    for b in range(state.n_batches[0] - 1, -1, -1):  # from below, so that a cut moves only batches already done
        first, end = state.first[b], state.first[b + 1]
        if end - first == 1 or state.epoch[b] > state.shown_epoch[0]:
            continue
        needed = enough(state, b)
        for k in range(first, min(end, n_positions)):
            if clicks[k] <= 1:
                item = ranking[k]
                state.clicks[item] += clicks[k]
                state.observed[item] += 1
                state.ready[b] += state.observed[item] == needed
        if state.ready[b] == end - first:
            test_batch(state, b, n_positions)


@kernel
def replace(state, rng, item):  # type: ignore[no-untyped-def]
    for place in range(len(state.items)):
        state.items[place] = place
    state.n_batches[0], state.first[1] = 1, len(state.items)
    clear(state, 0)


class MergeRank(CompiledAgent):
    """MergeRank: shuffle batches of items in every session, and drop items or split a batch as soon as confidence bounds allow.

    Idea:
        MergeRank learns in the same click models as `BatchRank`: it is the released code behind that paper's figures, and
        `BatchRank` is the printed algorithm. It keeps an order of all items, cut into batches, and starts with one batch of all
        L items. In each session it shuffles every batch, which gives its items equal shares of well-examined positions, shows
        the first K items, and counts clicks. Once every item has log(L T) / δ² observations, where δ is the precision of the
        batch, it sorts the batch by KL lower bounds. It drops items that are surely worse than the item at position K, and cuts
        the batch where all items above are surely better than all below. It tests earlier than BatchRank, after 4 log(L T)
        observations, but compares only within batches, and its decisions are final, even after bots or changes of users.

    Algorithm:
        ::

            items ← all L items in one batch b, in any order; δ_b ← 1/2, the precision of batch b
            C(i) ← 0, the clicks, and N(i) ← 0, the observations, for each item i
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, ..., T:
                shuffle the items of each batch
                show the first K items of the order and observe the clicks
                for each item i that was shown and is not alone in its batch:
                    C(i) ← C(i) + the click on i; N(i) ← N(i) + 1
                for each batch b of several items in which N(i) ≥ log(L T) / δ_b² for all i:
                    low(i), up(i) ← the least and largest q with N(i) KL(C(i) / N(i), q) ≤ log(L T), the bounds of i
                    sort b by low, in decreasing order
                    if b reaches below position K:
                        drop the items below K whose up is less than low of the item at K
                    cut b at every place where the least low above exceeds the largest up below
                    if something was dropped or cut:
                        C(i) ← 0 and N(i) ← 0 for all i of b; δ ← 1/2 for each piece
                    else:
                        δ_b ← δ_b / 2

    Args:
        n_items: L.
        n_positions: K.
        horizon: T ≥ 1, which sets the level of confidence ``log(L T)``.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a horizon below 1.

    Source: Zoghi, Tunys, Ghavamzadeh, Kveton, Szepesvári, Wen, *Online learning to rank in stochastic click models*, ICML 2017:
    the code that its authors released in January 2017 (``RealMergeRankAlgorithm``); described anew, no code was taken.

    Deviations from the paper:
        What the released code does otherwise than the printed algorithm, `BatchRank`:

        1. ⚠ The items of a batch are shown uniformly at random, not the least observed first, and every one shown is counted.
        2. ⚠ The confidence is ``log(L T)`` with each item's own count, not ``log T + 3 log log T`` with that of the stage.
        3. ⚠ A first test after ``4 log(L T)`` observations, not ``16 log T``; where nothing is found, counts are kept.
        4. ⚠ A batch is cut at every place at once, not at one, and items are dropped from it in the same test.
        5. ⚠ After session T nothing is shuffled any more.

    Late clicks count unless the counts of their batch were cleared since. A replaced item clears everything.

    Example:
        >>> MergeRank(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Zoghi et al. 2017, the released code"
    stands: ClassVar = {"late clicks": "late-clicks"}
    click_models = "CM, PBM and alike"
    learns_from = ITS_DISPLAYS
    remembered = ("shown_epoch",)
    state_type = State
    rank_kernel = rank
    update_kernel = update
    count_kernel = count_session
    replace_kernel = replace

    horizon: int = hyperparameter(check=sessions())

    def best(self) -> NDArray[np.int64]:
        state = self.state
        estimates, order = rates(state.clicks, state.observed), []
        for b in range(state.n_batches[0]):
            items = state.items[state.first[b] : state.first[b + 1]]
            order.append(items[np.lexsort((items, -estimates[items]))])
        return np.concatenate(order)[: self.n_positions]

    def _first_values(self) -> dict[str, Any]:
        n, k = self.n_items, self.n_positions
        return {"first": np.array([0] + [n] * k, np.int64), "level": math.log(n * self.hyperparameters["horizon"])}
