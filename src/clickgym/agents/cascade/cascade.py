"""Agents for the cascade model: CascadeUCB1 (Kveton et al. 2015), and CascadeTS, which uses
Thompson sampling.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_choice
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..compiled_agent import CompiledAgent, rates
from ..shared_kernels import (
    FEEDBACK,
    Feedback,
    examined_positions,
    rank_by_draw,
    rank_by_index,
    show,
)
from .count_classes import IndexAgent, rank_by_classes


class CascadeAgent(CompiledAgent):
    """Base class of the cascade agents. Their argument ``feedback`` decides which positions count
    as examined.
    """

    click_models = "CM; others: see `feedback`"
    made_for_models = ("CM",)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        seed: Seed,
        *,
        feedback: Feedback,
        **hyperparameters: Any,
    ) -> None:
        check_choice("feedback", feedback, FEEDBACK)
        super().__init__(n_items, n_positions, seed, feedback=feedback, **hyperparameters)

    def first_values(self) -> dict[str, Any]:
        return {"feedback": FEEDBACK.index(self.hyperparameters["feedback"])}

    def best(self) -> NDArray[np.int64]:
        return self._best_by(rates(self.state.clicks, self.state.examined))


# -------------------------------------------------------------------------------------- CascadeUCB1


class UCB1State(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N, the examinations of each item
    mean: Annotated[Floats, "L", np.inf]  # ŵ; infinite before the first examination
    width: Annotated[Floats, "L"]  # 1 / sqrt(N); 0 before the first examination
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    feedback: int


@kernel
def rank_by_bounds(state, radius, rng, ranking):
    """Write the items with the largest upper bounds ``ŵ + radius · width`` into the list."""
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]
    rank_by_index(state.indices, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def radius_ucb1(state):
    return math.sqrt(1.5 * math.log(state.t[0] + 1))


@kernel
def index_ucb1(clicks, n, radius):
    return clicks / n + radius * (1.0 / math.sqrt(n))


@kernel
def rank_ucb1(state, rng, ranking):
    rank_by_bounds(state, radius_ucb1(state), rng, ranking)


@kernel
def update_ucb1(state, ranking, clicks):
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.examined[item] += 1
        state.mean[item] = state.clicks[item] / state.examined[item]
        state.width[item] = 1.0 / math.sqrt(state.examined[item])


class CascadeUCB1(IndexAgent, CascadeAgent):
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
           (``clickgym/agents/cascade/count_classes.py``). The distribution of the lists stays the
           same.

    Example:
        >>> CascadeUCB1(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    bibtex_keys = ["cascadingbandits"]
    state_type, rank_kernel, update_kernel = UCB1State, rank_ucb1, update_ucb1
    large_kernel = rank_by_classes(radius_ucb1, index_ucb1)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        feedback: Feedback = "last_click",
        seed: Seed = None,
    ) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)


# ---------------------------------------------------------------------------------------- CascadeTS


class TSState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]
    draws: Annotated[Floats, "L"]  # this session's draw from each item's posterior
    order: Annotated[Ints, "L", range]  # the K items with the largest draws, then the others
    feedback: int


@kernel
def rank_ts(state, rng, ranking):
    for item in range(len(state.draws)):
        clicks = state.clicks[item]
        state.draws[item] = rng.beta(1.0 + clicks, 1.0 + state.examined[item] - clicks)
    rank_by_draw(state.draws, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def update_ts(state, ranking, clicks):
    for k in range(examined_positions(clicks, state.feedback)):
        state.clicks[ranking[k]] += clicks[k]
        state.examined[ranking[k]] += 1


class CascadeTS(CascadeAgent):
    """CascadeTS: an agent for the cascade model that draws the attraction of each item from its
    Beta posterior and shows the K items with the largest draws.

    Idea:
        CascadeTS assumes the cascade model: a user scans the list from the top, clicks the first
        attractive item, and leaves. It keeps a Beta posterior of each item's attraction, which
        starts as the uniform distribution. Positions down to the last click count as examined, or
        all positions if there is no click. In each session it draws one attraction for each item
        from its posterior and shows the K items with the largest draws. CascadeTS explores less
        than agents with upper confidence bounds: it tries an item about as often as the item is
        likely to be in the best list, and its regret grows only with log t. If users skip low
        positions, as in a position-based model, CascadeTS underestimates the items there. False
        clicks at the start mislead it for many sessions.

    Algorithm:
        ::

            S(i) ← 0, the clicks, and F(i) ← 0, the examinations without a click, for each item i
            for t = 1, 2, ...:
                for each item i:
                    draw an attraction θ(i) from its posterior Beta(1 + S(i), 1 + F(i))
                R_t ← the list of the K items of largest θ, in decreasing order
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first),
                    or K without a click
                for k = 1, ..., k', the examined positions:
                    S(R_t(k)) ← S(R_t(k)) + c(k)
                    F(R_t(k)) ← F(R_t(k)) + 1 - c(k)

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        feedback: the positions that count as examined, ``"last_click"`` or ``"first_click"``; see
            `CascadeUCB1`.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``feedback`` is neither ``"last_click"`` nor ``"first_click"``.

    Source: Hüyük, Tekin, *Analysis of Thompson sampling for combinatorial multi-armed bandit with
    probabilistically triggered arms*, AISTATS 2019, Algorithm 1 (CTS); Zhong, Cheung, Tan,
    *Thompson sampling algorithms for cascading bandits*, JMLR 2021, section 3, which bounds its
    regret in cascades.

    Deviations from the paper:
        1. ⚠ A session with several clicks is treated as in `CascadeUCB1`.

    Example:
        >>> CascadeTS(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Hüyük and Tekin 2019, Algorithm 1; Zhong et al. 2021, section 3"
    bibtex_keys = ["cts", "cascadingts"]
    state_type, rank_kernel, update_kernel = TSState, rank_ts, update_ts

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        feedback: Feedback = "last_click",
        seed: Seed = None,
    ) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)
