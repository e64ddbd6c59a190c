"""KL-UCB for lists: CascadeKL-UCB (Kveton et al. 2015) and dcmKL-UCB (Katariya et al. 2016).

What matters is the order of the indices, not their values. An index ``kl_upper(ŵ, bound / N)`` exceeds x > ŵ exactly if
``N KL(ŵ, x) < bound``, so the order is certified from session to session by values x between neighbouring indices
("fences"), and indices are solved for only where that fails. The lists are those of the plain definition, bit for bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..envs.checks import check_positions
from ..envs.kernels import inner, kernel
from ..envs.spaces import check_ranking
from .agent import CompiledAgent, Seed
from .cascade import CascadeAgent
from .kernels import FEEDBACK, examined_positions, exploration, kl_upper, shuffle_ties, sort_by_index, x_log_x

__all__ = ["DCMKLUCB", "CascadeKLUCB"]


class KLUCBState(NamedTuple):
    clicks: NDArray[np.int64]  # (L,)
    examined: NDArray[np.int64]  # (L,) N
    indices: NDArray[np.float64]  # (L,) as last solved for
    order: NDArray[np.int64]  # (L,) items by index
    t: NDArray[np.int64]  # (1,) the session, counted from 1
    positions: NDArray[np.int64]  # (K,) the position of the k-th largest index
    feedback: int
    # What certifies the order without solving for an index (see `order_is_certain`): values x between neighbouring indices.
    fenced: NDArray[np.bool_]  # (1,) whether there are all fences
    floored: NDArray[np.bool_]  # (1,) whether there is the last one
    fence: NDArray[np.float64]  # (K,) x_k, between the indices of the k-th and the next item
    fence_log: NDArray[np.float64]  # (K,) -log x_k
    fence_log1m: NDArray[np.float64]  # (K,) -log(1 - x_k)
    peak: NDArray[np.float64]  # (L,) c log(c/N) + (N-c) log((N-c)/N), the log-likelihood at ŵ
    known: NDArray[np.float64]  # (64, 4) clicks, N, bound, and the index solved for them
    rest: NDArray[np.float64]  # (1,) least N KL(ŵ, x_K) of the items below the list, less its margin


def initial_state(n_items: int, n_positions: int, positions: NDArray[np.int64], feedback: str) -> KLUCBState:
    """The state before the first session."""
    return KLUCBState(
        clicks=np.zeros(n_items, np.int64),
        examined=np.zeros(n_items, np.int64),
        indices=np.full(n_items, np.inf),
        order=np.arange(n_items),
        t=np.ones(1, np.int64),
        positions=positions,
        feedback=FEEDBACK.index(feedback),
        fenced=np.zeros(1, np.bool_),
        floored=np.zeros(1, np.bool_),
        fence=np.zeros(n_positions),
        fence_log=np.zeros(n_positions),
        fence_log1m=np.zeros(n_positions),
        peak=np.zeros(n_items),
        known=np.zeros((64, 4)),
        rest=np.zeros(1),
    )


@inner
def divergence(state, item, k):  # type: ignore[no-untyped-def]
    """N KL(ŵ, x_k) of an item, from stored logarithms."""
    c, n = state.clicks[item], state.examined[item]
    return state.peak[item] + c * state.fence_log[k] + (n - c) * state.fence_log1m[k]


@inner
def margin(n):  # type: ignore[no-untyped-def]
    """What a divergence must differ from the bound by to tell an order; far above the rounding errors of n terms."""
    return 1e-7 + 1e-12 * n


@inner
def is_above(state, item, k, bound):  # type: ignore[no-untyped-def]
    """Whether the index of an item is certainly above the k-th fence: N KL(ŵ, x) < bound, or ŵ ≥ x."""
    c, n = state.clicks[item], state.examined[item]
    return c >= n * state.fence[k] or divergence(state, item, k) < bound - margin(n)


@inner
def is_below(state, item, k, bound):  # type: ignore[no-untyped-def]
    """Whether the index of an item is certainly below the k-th fence."""
    c, n = state.clicks[item], state.examined[item]
    return c < n * state.fence[k] and divergence(state, item, k) > bound + margin(n)


@inner
def order_is_certain(state, bound):  # type: ignore[no-untyped-def]
    """Whether the order last found is certainly still that of the indices.

    Each item of the list must be above the fence below it and below the fence above it. The items below the list were not
    shown, so of them only the least divergence from the last fence has to be remembered.
    """
    if not state.fenced[0]:
        return False
    n_positions = len(state.fence)
    for k in range(n_positions):
        item = state.order[k]
        if not (is_above(state, item, k, bound) and (k == 0 or is_below(state, item, k - 1, bound))):
            return False
    return state.rest[0] > bound


@inner
def refine(state, item, bound):  # type: ignore[no-untyped-def]
    """The index of an item to about 1e-13, by Newton's method from its last value; NaN where that does not apply."""
    c, n = state.clicks[item], state.examined[item]
    if c == 0 and n > 0:
        return -math.expm1(-bound / n)
    p, q = c / n if n > 0 else 1.0, state.indices[item]
    if not (p < q < 1.0 and bound > 0.0):
        return np.nan
    for _ in range(8):
        excess = state.peak[item] - c * math.log(q) - (n - c) * math.log1p(-q) - bound
        step = excess * q * (1.0 - q) / (n * (q - p))
        q -= step
        if not p < q < 1.0:
            break
        if abs(step) < 1e-9 * (q - p):  # the error left is about step² / (q - p)
            return q
    return np.nan


@inner
def order_is_refined(state, bound, spare):  # type: ignore[no-untyped-def]
    """Whether refined indices leave no doubt about the order; then `order` is it.

    With ``spare``, items certainly below the last fence keep their old index; it must then be below all of the list's.
    """
    n_items, n_positions = len(state.order), len(state.fence)
    for i in range(n_items):
        item = state.order[i]
        if not (spare and i >= n_positions and is_below(state, item, n_positions - 1, bound)):
            state.indices[item] = refine(state, item, bound)
            if not state.indices[item] > 0.0:
                return False
    sort_by_index(state.indices, state.order)
    for k in range(min(n_positions, n_items - 1)):
        if state.indices[state.order[k]] - state.indices[state.order[k + 1]] < 1e-10:
            return False
    return not spare or state.indices[state.order[n_positions - 1]] > state.fence[n_positions - 1]


@inner
def solve(state, bound, spare):  # type: ignore[no-untyped-def]
    """Solve for the indices, sort by them, and say whether the K largest are certainly so.

    With ``spare``, items certainly below the last fence keep their old index; it must then be below all of the list's. Nothing
    is solved for while there are K items never examined, and items of equal counts are solved for once.
    """
    n_items, n_positions = len(state.order), len(state.fence)
    unseen = 0
    for item in range(n_items):
        unseen += state.examined[item] == 0
    for i in range(n_items):
        item = state.order[i]
        c, n = state.clicks[item], state.examined[item]
        if n == 0:
            state.indices[item] = np.inf
        elif unseen >= n_positions:
            state.indices[item] = min(state.indices[item], 1.0)
        elif not (spare and i >= n_positions and is_below(state, item, n_positions - 1, bound)):
            place = (7 * n + c) % len(state.known)
            if state.known[place, 0] != c or state.known[place, 1] != n or state.known[place, 2] != bound:
                state.known[place, 0], state.known[place, 1], state.known[place, 2] = c, n, bound
                state.known[place, 3] = kl_upper(c / n, bound / n)
            state.indices[item] = state.known[place, 3]
    sort_by_index(state.indices, state.order)
    return not spare or state.indices[state.order[n_positions - 1]] > state.fence[n_positions - 1]


@inner
def put_fences(state):  # type: ignore[no-untyped-def]
    """Put a fence midway between neighbouring indices of the list, and one below those that tie with the last.

    Near 1 neighbouring floats are too far apart for their order to be told by divergences: there are no fences.
    """
    n_items, n_positions = len(state.order), len(state.fence)
    last = n_positions - 1
    below = n_positions
    while below < n_items and state.indices[state.order[below]] == state.indices[state.order[last]]:
        below += 1
    state.fenced[0] = below == n_positions
    state.floored[0] = False
    for k in range(n_positions):
        upper = state.indices[state.order[k]]
        under = k + 1 if k < last else below
        lower = state.indices[state.order[under]] if under < n_items else 0.0
        x = 0.5 * (upper + lower)
        if lower < x < upper < 1.0 - 1e-6:
            state.fence[k], state.fence_log[k], state.fence_log1m[k] = x, -math.log(x), -math.log1p(-x)
            state.floored[0] = k == last
        else:
            state.fenced[0] = False
    if not state.fenced[0]:
        return
    state.rest[0] = np.inf
    for i in range(n_positions, n_items):
        item = state.order[i]
        c, n = state.clicks[item], state.examined[item]
        above = c >= n * state.fence[last]
        state.rest[0] = min(state.rest[0], 0.0 if above else divergence(state, item, last) - margin(n))


@kernel
def rank_klucb(state, rng, ranking):  # type: ignore[no-untyped-def]
    bound = exploration(state.t[0])
    if not order_is_certain(state, bound):
        # With the items below the list spared, then without; a loop, for every call in the text is compiled on its own.
        settled = False
        for attempt in range(2):
            settled = settled or (state.fenced[0] and order_is_refined(state, bound, attempt == 0))
        if not settled:
            for attempt in range(2):
                settled = settled or ((attempt == 1 or state.floored[0]) and solve(state, bound, attempt == 0))
            shuffle_ties(state.indices, state.order, rng, len(ranking))
        put_fences(state)
    for k in range(len(ranking)):
        ranking[state.positions[k]] = state.order[k]


@kernel
def update_klucb(state, ranking, clicks):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.examined[item] += 1
        c, n = state.clicks[item], state.examined[item]
        state.peak[item] = x_log_x(c) + x_log_x(n - c) - x_log_x(n)


class CascadeKLUCB(CascadeAgent):
    """CascadeKL-UCB: show the K items of largest ``kl_upper(ŵ, (log t + 3 log log t) / N)``, in decreasing order.

    Args:
        n_items: L.
        n_positions: K.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits*, ICML 2015, Algorithm 1 with eq. 6.

    Deviations from the paper:
        1. ⚠ Ties, and items not examined yet (which rank first), are ordered uniformly at random.
        2. ⚠ Several clicks: as in `CascadeUCB1`.
        3. The exploration term is floored at 0 as a whole; at t = 1 it is 0.

    Example:
        >>> CascadeKLUCB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    rank_kernel = rank_klucb
    update_kernel = update_klucb

    def __init__(self, n_items: int, n_positions: int, *, feedback: str = "last_click", seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)

    def _initial_state(self) -> KLUCBState:
        positions = np.arange(self.n_positions)
        return initial_state(self.n_items, self.n_positions, positions, self.hyperparameters["feedback"])


class DCMKLUCB(CompiledAgent):
    """dcmKL-UCB: the KL-UCB indices of the items observed down to the last click, matched to the termination order.

    The k-th largest index goes to the position with the k-th largest termination probability, of which only the order has to
    be known.

    Args:
        n_items: L.
        n_positions: K.
        position_order: ``(K,)`` positions from the likeliest to end a satisfied session to the least; None is top to bottom.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: if position_order is not a permutation of the positions.

    Source: Katariya, Kveton, Szepesvári, Wen, *DCM bandits: learning to rank with multiple clicks*, ICML 2016, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Ties, and items not observed yet (which rank first), are ordered uniformly at random.
        2. The exploration term is floored at 0 as a whole; at t = 1 it is 0.

    Example:
        >>> DCMKLUCB(4, 2, position_order=[1, 0], seed=0).rank(None).shape
        (2,)
    """

    paper = "Katariya et al. 2016, Algorithm 1"
    click_models = "DCM"
    rank_kernel = rank_klucb
    update_kernel = update_klucb

    def __init__(self, n_items: int, n_positions: int, *, position_order: ArrayLike | None = None, seed: Seed = None) -> None:
        if position_order is not None:
            n_positions = check_positions(n_positions, n_items)
            try:
                position_order = check_ranking(position_order, n_positions, n_positions)
            except (TypeError, ValueError) as error:
                raise ValueError(f"position_order must be a permutation of the positions: {error}") from None
        super().__init__(n_items, n_positions, seed, position_order=position_order)

    def _initial_state(self) -> KLUCBState:
        order = self.hyperparameters["position_order"]
        positions = np.arange(self.n_positions) if order is None else order.copy()
        return initial_state(self.n_items, self.n_positions, positions, "last_click")
