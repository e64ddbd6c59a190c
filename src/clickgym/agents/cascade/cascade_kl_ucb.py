"""CascadeKL-UCB (Kveton et al. 2015), a cascade agent with KL-UCB indices. `kl_ucb_kernels` has its
state and its kernels.
"""

from __future__ import annotations

from ...core.checks import check_number
from ..agent import Seed
from ..common.cascade_agent import CascadeAgent, Feedback
from ..common.kl_ucb_kernels import C, KLUCBState, kl_index, level_klucb, rank_klucb, update_klucb
from .many_items import ManyItemsAgent, make_class_rank_kernel


class CascadeKLUCB(ManyItemsAgent, CascadeAgent):
    """CascadeKL-UCB: an agent for the cascade model that shows the K items with the largest KL-UCB
    indices ``kl_upper(ŵ, (log t + c log log t) / N)``.

    Idea:
        In the cascade model, a user scans the list from the top, clicks the first attractive item,
        and leaves. Items above the click were examined and not attractive, and so were all items of
        a session without a click. For each item, CascadeKL-UCB counts its examinations, N, and
        keeps ŵ, the fraction of its examinations with a click. It shows the K items with the
        largest indices. The index of an item is the highest attraction that N and ŵ do not rule
        out, measured by the Kullback-Leibler divergence. If clicks are rare, this confidence bound
        is much tighter than that of `CascadeUCB1`, and the paper's regret bound nearly matches the
        lower bound for the cascade model. If users skip positions, as in the position-based model,
        items at low positions look less attractive than they are, and the agent may show a wrong
        list forever.

    Algorithm:
        ::

            N(e) ← 0, the examinations, and ŵ(e) ← 0, the share of them with a click,
                for each item e
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, 2, ...:
                b ← max(log t + c log log t, 0), the level of confidence, with the constant c = 3
                for each item e:
                    U_t(e) ← max{q ∈ [ŵ(e), 1] : N(e) KL(ŵ(e), q) ≤ b}, and ∞ where N(e) = 0
                A_t ← the list of the K items of largest U_t, in decreasing order, ties at random
                show A_t and observe the clicks c_t(1), ..., c_t(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first),
                    or K without a click
                for k = 1, ..., k', the examined positions:
                    ŵ(A_t(k)) ← (N(A_t(k)) ŵ(A_t(k)) + c_t(k)) / (N(A_t(k)) + 1)
                    N(A_t(k)) ← N(A_t(k)) + 1

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        feedback: the positions that count as examined, ``"last_click"`` or ``"first_click"``; see
            `CascadeUCB1`.
        c: the constant c of the confidence level log t + c log log t, at least 0. The paper uses 3.
            With 0, the level is log t, as in the code with which the BatchRank paper compares.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``feedback`` is neither ``"last_click"`` nor ``"first_click"``, or ``c`` is
            negative or not a number.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits: learning to rank in the cascade
    model*, ICML 2015, Algorithm 1 with eq. 6.

    Deviations from the paper:
        1. ⚠ Items with equal indices are ordered uniformly at random. Items that were never
           examined come first, also in random order.
        2. ⚠ A session with several clicks is treated as in `CascadeUCB1`.
        3. The exploration term ``log t + c log log t`` is replaced by 0 if it is negative, and at t
           = 1.
        4. ⚠ The agent starts without observations, N = 0. The paper starts with N = 1: before the
           first list, it observes each item once (w_0), although no session shows these items.
        5. From 1,000 items on, items with equal counts share one index, as in `CascadeUCB1`.

    Example:
        >>> CascadeKLUCB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    bibtex_keys = ["cascadingbandits"]
    state_type, rank_kernel, update_kernel = KLUCBState, rank_klucb, update_klucb
    rank_many_kernel = make_class_rank_kernel(level_klucb, kl_index)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        feedback: Feedback = "last_click",
        c: float = C,
        seed: Seed = None,
    ) -> None:
        c = check_number("c", c, 0)
        super().__init__(n_items, n_positions, seed, feedback=feedback, c=c)
