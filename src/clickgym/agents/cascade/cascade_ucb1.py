"""CascadeUCB1 (Kveton et al. 2015), a cascade agent with confidence bounds."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.cascade_agent import CascadeAgent, Feedback, examined_positions
from ..common.ranking import rank_by_bounds
from .many_items import ManyItemsAgent, make_class_rank_kernel


class CascadeUCB1State(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N, the examinations of each item
    mean: Annotated[Floats, "L", np.inf]  # ŵ; infinite before the first examination
    width: Annotated[Floats, "L"]  # 1 / sqrt(N); 0 before the first examination
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    feedback: int


@kernel
def radius_ucb1(state):
    return math.sqrt(1.5 * math.log(state.t[0] + 1))


@kernel
def index_ucb1(clicks, n, radius):
    return clicks / n + radius * (1.0 / math.sqrt(n))


@kernel
def rank(state, rng, ranking):
    rank_by_bounds(state, radius_ucb1(state), rng, ranking)


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.examined[item] += 1
        state.mean[item] = state.clicks[item] / state.examined[item]
        state.width[item] = 1.0 / math.sqrt(state.examined[item])


class CascadeUCB1(ManyItemsAgent, CascadeAgent):
    """CascadeUCB1: an agent for the cascade model that shows the K items with the largest upper
    confidence bounds ``ŵ + sqrt(1.5 log t / N)``.

    Idea:
        In the cascade model, a user scans the list from the top, clicks the first attractive item,
        and leaves. Items above the click were examined and not attractive; about items below the
        click, the session says nothing. For each item, CascadeUCB1 counts its examinations, N, and
        keeps ŵ, the fraction of its examinations with a click. It shows the K items with the
        largest upper confidence bounds of UCB1: ŵ plus a bonus that shrinks as N grows. Each
        session tests several items at once, without position bias, because only examined items
        count. In the cascade model, regret grows only with log t. If clicks are rare, the intervals
        are wider than necessary, and `CascadeKLUCB` explores less. If users skip positions, items
        that they did not examine count as not attractive.

    Algorithm:
        ::

            N(e) ← 0, the examinations, and ŵ(e) ← 0, the share of them with a click,
                for each item e
            for t = 1, 2, ...:
                for each item e:
                    U_t(e) ← ŵ(e) + sqrt(1.5 log t / N(e)), its upper bound, and ∞ where N(e) = 0
                A_t ← the list of the K items of largest U_t, in decreasing order, ties at random
                show A_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first),
                    or K without a click
                for k = 1, ..., k', the examined positions:
                    ŵ(A_t(k)) ← (N(A_t(k)) ŵ(A_t(k)) + c(k)) / (N(A_t(k)) + 1)
                    N(A_t(k)) ← N(A_t(k)) + 1

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        feedback: the positions that count as examined: with ``"last_click"``, all positions down to
            the last click; with ``"first_click"``, all positions down to the first click. If there
            is no click, all K positions count.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``feedback`` is neither ``"last_click"`` nor ``"first_click"``.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits: learning to rank in the cascade
    model*, ICML 2015, Algorithm 1 with eq. 5.

    Deviations from the paper:
        1. ⚠ Items with equal indices are ordered uniformly at random. Items that were never
           examined come first, also in random order. The agent starts without observations, N = 0.
           The paper starts with N = 1: before the first list, it observes each item once (w_0),
           although no session shows these items.
        2. ⚠ The paper assumes at most one click per list. For several clicks, the default is
           ``"last_click"``, as in other implementations by these authors; in a PBM, it makes the
           stronger baseline. ``"first_click"`` is the exact rule in a DCM.
        3. From 1,000 items on, the index is computed once for all items with equal counts
           (``clickgym/agents/cascade/many_items.py``). The distribution of the lists stays the
           same.

    Example:
        >>> CascadeUCB1(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    default_advice = (
        "CascadeUCB1 explores as much as theory prescribes, which is often far too much; "
        "CascadeKLUCB:c=0 explores less."
    )
    bibtex_keys = ["cascadingbandits"]
    state_type, rank_kernel, update_kernel = CascadeUCB1State, rank, update
    rank_many_kernel = make_class_rank_kernel(radius_ucb1, index_ucb1)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        feedback: Feedback = "last_click",
        seed: Seed = None,
    ) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)
