"""PBM-UCB (Lagrée et al. 2016), a position-based agent with confidence bounds."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.checks import check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.ranking import rank_by_index, show_at
from .examination_agent import ExaminationAgent


class PBMUCBState(NamedTuple):
    clicks: Annotated[Ints, "L"]  # S, the clicks on each item
    displays: Annotated[Ints, "L"]  # N, the displays of each item
    weight: Annotated[Floats, "L"]  # Ñ, the sum of κ over displays
    mean: Annotated[Floats, "L", np.inf]  # S/Ñ, infinite before the first display
    width: Annotated[Floats, "L"]  # sqrt(N/2)/Ñ
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    examination: Floats  # (K,) κ, the examination probabilities
    positions: Annotated[Ints, "K"]  # positions, sorted by decreasing κ
    epsilon: float


@kernel
def rank(state, rng, ranking):
    # The bound is S/Ñ + sqrt(N/Ñ) sqrt(δ/(2Ñ)), with δ = (1 + ε) log t.
    radius = math.sqrt((1.0 + state.epsilon) * math.log(state.t[0] + 1))
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]
    rank_by_index(state.indices, state.order, rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    for k in range(len(ranking)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.displays[item] += 1
        state.weight[item] += state.examination[k]
        state.mean[item] = state.clicks[item] / state.weight[item]
        state.width[item] = math.sqrt(0.5 * state.displays[item]) / state.weight[item]


class PBMUCB(ExaminationAgent):
    """PBM-UCB: an agent that shows the K items with the largest upper confidence bounds of
    attraction, for the position-based model with known examination probabilities.

    Idea:
        Users look at some positions of a list more often than at others, regardless of the items
        there. PBM-UCB is given the probability κ_l that position l is examined, and learns the
        attraction of each item, which is the item's click probability once examined. It estimates
        attraction by S / Ñ: S counts the clicks on an item, and Ñ counts its displays, each
        weighted by κ_l. This estimate has no position bias and uses all positions, so PBM-UCB
        learns faster than agents that must also estimate κ. It shows the K items with the largest
        upper confidence bounds (Hoeffding's inequality), the largest at the position with the
        largest κ_l. Its bounds are wide if clicks are rare, and it may settle on a wrong list if κ
        or the click model is wrong.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        examination: ``(K,)`` the probability κ that users examine each position, in ``(0, 1]``;
            ``make_agent`` fills in these probabilities.
        epsilon: ε ≥ 0; a larger ε explores more. The paper proves its regret bound for any ε > 0.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``examination`` has a wrong shape or a number outside ``(0, 1]``, or ``epsilon``
            is negative.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016,
        section 4 (PBM-UCB).

    Deviations from the paper:
        1. ⚠ Items with equal bounds are ordered uniformly at random. Items that were never shown
           come first, also in random order.
        2. κ need not decrease with the position. The paper numbers positions by decreasing κ; here
           position 1 is always the top of the list.
        3. ⚠ By default, ε is 0, which the paper's regret bound does not cover.

    Example:
        >>> PBMUCB(4, 2, examination=[1.0, 0.5], seed=0).rank(None).shape
        (2,)
    """

    paper = "Lagrée et al. 2016, section 4"
    bibtex_keys = ["pbmbandits"]
    state_type, rank_kernel, update_kernel = PBMUCBState, rank, update

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
