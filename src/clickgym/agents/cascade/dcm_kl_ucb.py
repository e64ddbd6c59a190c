"""dcmKL-UCB (Katariya et al. 2016), an agent for the dependent click model with KL-UCB indices.
`kl_ucb_kernels` has its state and its kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_count, check_number
from ...envs.spaces import check_ranking
from ..agent import Seed
from ..common.cascade_agent import LAST_CLICK
from ..common.kl_ucb_kernels import C, KLUCBState, kl_index, level_klucb, rank_klucb, update_klucb
from ..compiled_agent import rates
from .many_items import ManyItemsAgent, make_class_rank_kernel


def check_position_order(position_order: Any, n_positions: int) -> NDArray[np.int64]:
    """Return an order of the positions as an array, after checking that it is a permutation."""
    check_count("n_positions", n_positions)
    try:
        return check_ranking(position_order, n_positions, n_positions)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"position_order must be a permutation of the positions: {error}"
        ) from None


class DCMKLUCB(ManyItemsAgent):
    """dcmKL-UCB: an agent for the dependent click model that shows the items with the largest
    KL-UCB indices, the best ones at the positions where a click is most likely to end the session.

    Idea:
        In the dependent click model, users scan from the top, may click several items, and after a
        click stop with a probability that depends on the position. The clicks do not show whether a
        user looked below the last click, so dcmKL-UCB counts the positions down to the last click
        as observed, or all positions if there is no click. For each item, it keeps the number N of
        these observations and ŵ, the fraction of them with a click, and computes the KL-UCB index
        of `CascadeKLUCB`. A session earns a reward if the user leaves satisfied, so the best items
        belong at the positions where a click is most likely to end the session. The item with the
        k-th largest index gets the position with the k-th largest termination probability; the
        agent must know only the order of these probabilities. If this order is from top to bottom,
        as for the real queries in clickgym and in all click models except the DCM, dcmKL-UCB shows
        the same lists as `CascadeKLUCB`. It ignores the positions below the last click, and its
        estimates are slightly biased, because the last observed position was always clicked. Under
        other click models, it fails in the same way as the cascade agents.

    Algorithm:
        ::

            N(e) ← 0, the observations, and ŵ(e) ← 0, the share of them with a click,
                for each item e
            p_1, ..., p_K ← the positions, from the most to the least likely to end a session
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, 2, ...:
                b ← max(log t + c log log t, 0), the level of confidence, with the constant c = 3
                for each item e:
                    U_t(e) ← max{q ∈ [ŵ(e), 1] : N(e) KL(ŵ(e), q) ≤ b}, and ∞ where N(e) = 0
                A_t(p_k) ← the item of the k-th largest U_t, ties at random, for k = 1, ..., K
                show the list A_t and observe the clicks c_t(1), ..., c_t(K), each 0 or 1
                k' ← the position of the last click, or K without a click
                for k = 1, ..., k':
                    ŵ(A_t(k)) ← (N(A_t(k)) ŵ(A_t(k)) + c_t(k)) / (N(A_t(k)) + 1)
                    N(A_t(k)) ← N(A_t(k)) + 1

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        position_order: ``(K,)`` the positions, counted from 0 and sorted by decreasing probability
            that a click there ends the session. ``make_agent`` fills in this order if users follow
            the DCM. By default, positions go from top to bottom.
        c: the constant c of the confidence level log t + c log log t, at least 0; see
            `CascadeKLUCB`.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``position_order`` is not a permutation of the positions, or ``c`` is negative
            or not a number.

    Source: Katariya, Kveton, Szepesvári, Wen, *DCM bandits: learning to rank with multiple clicks*,
        ICML 2016, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Items with equal indices are ordered uniformly at random. Items that were never
           observed come first, also in random order.
        2. The exploration term ``log t + c log log t`` is replaced by 0 if it is negative, and at t
           = 1.
        3. ⚠ The agent starts without observations, as `CascadeKLUCB` does; the paper starts with N
           = 1.
        4. ⚠ The paper's reward is 1 if the user leaves satisfied (``reward="satisfaction"``). If
           the reward is the number of clicks, the default in ``DCMRank-v0``, the paper's order of
           positions may earn less than the order from top to bottom, because a satisfied user
           clicks no lower position.
        5. From 1,000 items on, items with equal counts share one index, as in `CascadeUCB1`.

    Example:
        >>> DCMKLUCB(4, 2, position_order=[1, 0], seed=0).rank(None).shape
        (2,)
    """

    paper = "Katariya et al. 2016, Algorithm 1"
    bibtex_keys = ["dcmbandits"]
    click_models = "DCM"
    made_for_models = ("DCM",)
    requires = {"position_order": "termination_order"}
    state_type, rank_kernel, update_kernel = KLUCBState, rank_klucb, update_klucb
    rank_many_kernel = make_class_rank_kernel(level_klucb, kl_index)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        position_order: ArrayLike | None = None,
        c: float = C,
        seed: Seed = None,
    ) -> None:
        if position_order is not None:
            position_order = check_position_order(position_order, n_positions)
        c = check_number("c", c, 0)
        super().__init__(n_items, n_positions, seed, position_order=position_order, c=c)

    def best(self) -> NDArray[np.int64]:
        estimates = rates(self.state.clicks, self.state.examined)
        return self._best_by(estimates, self.state.positions)

    def first_values(self) -> dict[str, Any]:
        order = self.hyperparameters["position_order"]
        positions = {} if order is None else {"positions": order.copy()}
        return super().first_values() | {"feedback": LAST_CLICK} | positions
