"""KL-UCB for lists: CascadeKL-UCB (Kveton et al. 2015) and dcmKL-UCB (Katariya et al. 2016).

The index of an item with c clicks in N examinations, ŵ = c / N, is the root q > ŵ of ``N KL(ŵ, q) =
b``. It changes little from session to session, so Newton's method starts from the last index, and
one step is enough in most sessions. Two results may differ by rounding although the counts are
equal. Therefore indices closer than `CLOSE` are computed again by `kl_upper`, which depends only on
the counts and on b: the lists and the ties are those of the definition.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_count, check_number
from ..core.kernels import kernel
from ..core.state import Floats, Ints
from ..envs.spaces import check_ranking
from .agent import Seed
from .cascade import CascadeAgent
from .compiled_agent import rates
from .count_classes import IndexAgent
from .shared_kernels import (
    LAST_CLICK,
    Feedback,
    examined_positions,
    exploration,
    kl_upper,
    log_likelihood,
    show_at,
    shuffle_ties,
    sort_by_index,
)

C = 3.0  # c in the papers' exploration term, log t + c log log t
STEP = 1e-5
"""Newton's method stops after a step below this share of (q - ŵ) (1 - q): the error is below STEP²
/ 8.
"""
CLOSE = 1e-10
"""Indices that differ by more than this value, several times the error of both, are certainly in
the order of the definition.
"""


class KLUCBState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N
    peak: Annotated[Floats, "L"]  # c log(c/N) + (N-c) log((N-c)/N), the log-likelihood at ŵ
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items by index
    t: Annotated[Ints, "1"]  # sessions
    positions: Annotated[Ints, "K", range]  # the position of the k-th largest index
    feedback: int
    c: float  # of the exploration term


@kernel
def solve_index(state, item, bound):
    """Compute the index by its definition: the largest q with N KL(ŵ, q) ≤ b; infinite if N = 0."""
    n = state.examined[item]
    return kl_upper(state.clicks[item] / n, bound / n) if n > 0 else np.inf


@kernel
def refine_index(state, item, bound):
    """Compute the index by Newton's method from its last value, or by `solve_index` if that does
    not converge.

    f(q)  = N KL(ŵ, q) - b = peak - c log q - (N - c) log(1 - q) - b
    f'(q) = N (q - ŵ) / (q (1 - q))
    After a step s the error is about s² f'' / 2 f' ≤ s² / (2 (q - ŵ) (1 - q)).
    """
    c, n, q = state.clicks[item], state.examined[item], state.indices[item]
    if c > 0:
        mean = c / n
        for _ in range(8):
            if not mean < q < 1.0:
                break
            excess = state.peak[item] - c * math.log(q) - (n - c) * math.log(1.0 - q) - bound
            step = excess * q * (1.0 - q) / (n * (q - mean))
            q -= step
            if abs(step) < STEP * (q - mean) * (1.0 - q):
                return q
    return solve_index(state, item, bound)


@kernel
def solve_close(state, bound, count):
    """Compute the indices again in runs of close indices that begin among the first ``count``
    items, once for each pair of counts.
    """
    is_solved = False  # whether the index of the previous item is computed again
    for k in range(1, len(state.order)):
        above, item = state.order[k - 1], state.order[k]
        is_seen = state.indices[item] < np.inf  # otherwise all indices above are infinite, too
        if is_seen and state.indices[above] - state.indices[item] >= CLOSE:
            if k >= count:
                break
            is_solved = False
            continue
        if not is_solved:
            state.indices[above] = solve_index(state, above, bound)
            is_solved = True
        if (
            state.clicks[item] == state.clicks[above]
            and state.examined[item] == state.examined[above]
        ):
            state.indices[item] = state.indices[above]
        else:
            state.indices[item] = solve_index(state, item, bound)


@kernel
def rank_klucb(state, rng, ranking):
    bound = exploration(state.t[0] + 1, state.c)
    for item in range(len(state.indices)):
        state.indices[item] = refine_index(state, item, bound)
    sort_by_index(state.indices, state.order)
    solve_close(state, bound, len(ranking))
    sort_by_index(state.indices, state.order)
    shuffle_ties(state.indices, state.order, rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def learn_klucb(state, item, click):
    state.clicks[item] += click
    state.examined[item] += 1
    state.peak[item] = log_likelihood(state.clicks[item], state.examined[item])


@kernel
def update_klucb(state, ranking, clicks):
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        learn_klucb(state, ranking[k], clicks[k])


@kernel
def forget_klucb(state, item):
    """Forget the clicks on an item."""
    state.clicks[item], state.examined[item], state.peak[item] = 0, 0, 0.0
    state.indices[item] = np.inf


class CascadeKLUCB(IndexAgent, CascadeAgent):
    """CascadeKL-UCB: show the K items of largest ``kl_upper(ŵ, (log t + c log log t) / N)``, in
    decreasing order.

    Idea:
        In the cascade model, a user scans the list from the top, clicks the first attractive item,
        and leaves. Items above the click were examined and not attractive, and so were all items of
        a session without a click. For each item, CascadeKL-UCB counts the examinations, N, and
        keeps the share ŵ of them with a click. It shows the K items with the largest index: the
        highest attraction that N and ŵ do not rule out, measured by the Kullback-Leibler
        divergence. For rare clicks this interval is much narrower than that of `CascadeUCB1`, and
        the paper's regret bound nearly matches the lower bound of the cascade model. If users skip
        positions, as in the position-based model, items at low positions look less attractive than
        they are, and the list may stay wrong forever.

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
        n_items: L.
        n_positions: K.
        feedback: as in `CascadeUCB1`.
        c: ≥ 0, the constant of the level. The paper uses 3. With 0 the level is log t, as in the
            code that the BatchRank paper compares with.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule, or a bad c.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits: learning to rank in the cascade
    model*, ICML 2015, Algorithm 1 with eq. 6.

    Deviations from the paper:
        1. ⚠ Ties, and items not examined yet (which rank first), are ordered uniformly at random.
        2. ⚠ Several clicks are read as in `CascadeUCB1`.
        3. The exploration term is floored at 0 as a whole; at t = 1 it is 0.
        4. ⚠ Nothing is known at the start, N = 0. The paper starts with N = 1: it observes each
           item once before the first list (w_0), which no session shows.
        5. Many items with equal counts share an index, as in `CascadeUCB1`.

    Example:
        >>> CascadeKLUCB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    bibtex_keys = ["cascadingbandits"]
    state_type, rank_kernel, update_kernel = KLUCBState, rank_klucb, update_klucb

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


def check_position_order(position_order: Any, n_positions: int) -> NDArray[np.int64]:
    """Return the checked order of the positions."""
    check_count("n_positions", n_positions)
    try:
        return check_ranking(position_order, n_positions, n_positions)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"position_order must be a permutation of the positions: {error}"
        ) from None


class DCMKLUCB(IndexAgent):
    """dcmKL-UCB: put the items of largest KL-UCB index at the positions where a click most likely
    ends a session.

    Idea:
        In the dependent click model, users scan from the top, may click several items, and after a
        click stop with a probability that depends on the position. The clicks do not show whether a
        user looked below the last one, so dcmKL-UCB counts positions down to it, or all if there is
        no click. It keeps for each item the number N of these observations and the share ŵ of them
        with a click, and computes the KL-UCB index of `CascadeKLUCB`. A session earns a reward if
        the user ends satisfied, so the best items belong to the positions where a click most likely
        ends the session. The item of the k-th largest index takes the position of the k-th largest
        termination probability, of which only the order must be known. If this order is from top to
        bottom, as for the real queries of this package and in all click models but the DCM,
        dcmKL-UCB shows the same lists as `CascadeKLUCB`. It ignores the positions below the last
        click, and its estimates are slightly biased because the last counted position was always
        clicked. Under other click models it fails like the cascade agents.

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
        n_items: L.
        n_positions: K.
        position_order: ``(K,)`` positions, starting with the position where a click most likely
            ends the session; ``make_agent`` fills it in if users follow the DCM. By default,
            positions go from top to bottom.
        c: as in `CascadeKLUCB`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: if position_order is not a permutation of the positions, or on a bad c.

    Source: Katariya, Kveton, Szepesvári, Wen, *DCM bandits: learning to rank with multiple clicks*,
        ICML 2016, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Ties, and items not observed yet (which rank first), are ordered uniformly at random.
        2. The exploration term is floored at 0 as a whole; at t = 1 it is 0.
        3. ⚠ Nothing is known at the start, as in `CascadeKLUCB`; the paper starts with N = 1.
        4. ⚠ The paper's reward is whether the user leaves satisfied, ``reward="satisfaction"``. If
           the reward is the number of clicks, as by default in ``DCMRank-v0``, this order may earn
           less than the order from top to bottom, because a satisfied user does not click below.
        5. Many items with equal counts share an index, as in `CascadeUCB1`.

    Example:
        >>> DCMKLUCB(4, 2, position_order=[1, 0], seed=0).rank(None).shape
        (2,)
    """

    paper = "Katariya et al. 2016, Algorithm 1"
    bibtex_keys = ["dcmbandits"]
    click_models = "DCM"
    requires = {"position_order": "termination_order"}
    state_type, rank_kernel, update_kernel = KLUCBState, rank_klucb, update_klucb

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
