"""CascadeUCB-V (Vial et al. 2022), a cascade agent whose confidence bounds depend on the variance
of clicks.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ...core.checks import check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.cascade_agent import CascadeAgent, Feedback, examined_positions
from ..common.ranking import rank_by_index, show


class CascadeUCBVState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N, the examinations of each item
    mean: Annotated[Floats, "L", np.inf]  # ŵ; infinite before the first examination
    deviation: Annotated[Floats, "L"]  # sqrt(ŵ (1 - ŵ) / N); 0 before the first examination
    inverse: Annotated[Floats, "L"]  # 1 / N; 0 before the first examination
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    variance: float
    bias: float
    feedback: int


@kernel
def rank(state, rng, ranking):
    log_t = math.log(state.t[0] + 1)
    radius, correction = math.sqrt(state.variance * log_t), state.bias * log_t
    for item in range(len(state.indices)):
        bonus = radius * state.deviation[item] + correction * state.inverse[item]
        state.indices[item] = state.mean[item] + bonus
    rank_by_index(state.indices, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.examined[item] += 1
        n, mean = state.examined[item], state.clicks[item] / state.examined[item]
        state.mean[item] = mean
        state.deviation[item] = math.sqrt(mean * (1.0 - mean) / n)
        state.inverse[item] = 1.0 / n


class CascadeUCBV(CascadeAgent):
    """CascadeUCB-V: an agent for the cascade model that shows the K items with the largest upper
    confidence bounds ``ŵ + sqrt(4 ŵ (1 - ŵ) log t / N) + 6 log t / N``.

    Idea:
        In the cascade model, a user scans the list from the top, clicks the first attractive item,
        and leaves. For each item, CascadeUCB-V counts its examinations, N, and keeps ŵ, the
        fraction of its examinations with a click, as `CascadeUCB1` does. Its upper bounds are those
        of UCB-V, which come from Bernstein's inequality: the term with 1 / sqrt(N) is proportional
        to the empirical standard deviation sqrt(ŵ (1 - ŵ)), which is small if clicks are rare. The
        paper proves that the regret of CascadeUCB-V is minimax optimal up to logarithms, and that
        this is not true of agents with bounds from Hoeffding's inequality, such as CascadeUCB1. If
        clicks are frequent, CascadeUCB-V explores more than CascadeUCB1: its interval for an item
        without clicks is wider until N > 24 log t. If users skip positions, items that they did not
        examine count as not attractive.

    Algorithm:
        ::

            N(e) ← 0, the examinations, and ŵ(e) ← 0, the share of them with a click,
                for each item e
            a = 4 and b = 6 are the weights of the variance and of the bias
            for t = 1, 2, ...:
                for each item e:
                    V(e) ← ŵ(e) (1 - ŵ(e)), the empirical variance of its clicks
                    U_t(e) ← ŵ(e) + sqrt(a V(e) log t / N(e)) + b log t / N(e), its upper bound,
                        and ∞ where N(e) = 0
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
        variance: the weight a of the empirical variance in the bound, at least 0.
        bias: the weight b of the correction for a variance that is estimated from few clicks, at
            least 0.
        feedback: the positions that count as examined, ``"last_click"`` or ``"first_click"``; see
            `CascadeUCB1`.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``feedback`` is neither ``"last_click"`` nor ``"first_click"``, or ``variance``
            or ``bias`` is negative or not a number.

    Source: Vial, Sanghavi, Shakkottai, Srikant, *Minimax regret for cascading bandits*, NeurIPS
    2022; the index of Audibert, Munos, Szepesvári 2009 (UCB-V). The weights 4 and 6 are those of
    ``casUCBV.py`` in https://github.com/rishabbala/robust-cmab-code.

    Deviations from the paper:
        1. ⚠ Items with equal bounds are ordered uniformly at random. Items that were never examined
           come first, so the agent needs no separate initialisation.
        2. ⚠ A session with several clicks is treated as in `CascadeUCB1`.
        3. ⚠ The bound is not capped at 1. The authors' code caps the bound, so all items stay tied
           until N > 6 log t, which is 55 examinations at t = 10⁴.

    Example:
        >>> CascadeUCBV(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Vial et al. 2022, CascadeUCB-V"
    bibtex_keys = ["cascadingminimax"]
    state_type, rank_kernel, update_kernel = CascadeUCBVState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        variance: float = 4.0,
        bias: float = 6.0,
        feedback: Feedback = "last_click",
        seed: Seed = None,
    ) -> None:
        variance, bias = check_number("variance", variance, 0), check_number("bias", bias, 0)
        super().__init__(
            n_items, n_positions, seed, variance=variance, bias=bias, feedback=feedback
        )
