"""Agents of the cascading bandits: CascadeUCB1 and CascadeKL-UCB (Kveton et al. 2015)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..envs.checks import unknown
from ..envs.kernels import kernel
from .agent import CompiledAgent, Seed
from .kernels import FEEDBACK, examined_positions, exploration, kl_upper, rank_by_index

__all__ = ["CascadeKLUCB", "CascadeUCB1"]


class CascadeAgent(CompiledAgent):
    """Base of the cascade agents: which positions they take as examined."""

    click_models = "CM; others by the feedback rule"

    def __init__(
        self, n_items: int, n_positions: int, seed: Seed, *, feedback: str = "last_click", **hyperparameters: Any
    ) -> None:
        if feedback not in FEEDBACK:
            raise ValueError(unknown("feedback", feedback, FEEDBACK))
        super().__init__(n_items, n_positions, seed, feedback=feedback, **hyperparameters)

    @property
    def _feedback(self) -> int:
        return FEEDBACK.index(self.hyperparameters["feedback"])


# ----------------------------------------------------------------------------------------------------------- CascadeUCB1


class UCB1State(NamedTuple):
    clicks: NDArray[np.int64]  # (L,)
    examined: NDArray[np.int64]  # (L,) N
    mean: NDArray[np.float64]  # (L,) ŵ = clicks / N, infinite before the first examination
    width: NDArray[np.float64]  # (L,) 1 / sqrt(N), 0 before it
    indices: NDArray[np.float64]  # (L,)
    order: NDArray[np.int64]  # (L,) items by index
    t: NDArray[np.int64]  # (1,) the session, counted from 1
    feedback: int


@kernel
def rank_ucb1(state, rng, ranking):  # type: ignore[no-untyped-def]
    radius = math.sqrt(1.5 * math.log(state.t[0]))
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]
    rank_by_index(state.indices, state.order, rng, len(ranking))
    for k in range(len(ranking)):
        ranking[k] = state.order[k]


@kernel
def update_ucb1(state, ranking, clicks):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.examined[item] += 1
        state.mean[item] = state.clicks[item] / state.examined[item]
        state.width[item] = 1.0 / math.sqrt(state.examined[item])


class CascadeUCB1(CascadeAgent):
    """CascadeUCB1: show the K items of largest ``ŵ + sqrt(1.5 log t / N)``, in decreasing order.

    Args:
        n_items: L.
        n_positions: K.
        feedback: what counts as examined: ``"last_click"``, positions down to the last click, each with its own click, or
            ``"first_click"``, positions down to the first click; all K without a click.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits*, ICML 2015, Algorithm 1 with eq. 5.

    Deviations from the paper:
        1. ⚠ Ties, and items not examined yet (which rank first), are ordered uniformly at random, so there is no separate
           initialisation.
        2. ⚠ The paper knows one click per list. With several, ``last_click`` is the default: it is what implementations of the
           authors' school do and makes the stronger baseline in a PBM; ``first_click`` is the exact rule in a DCM.

    Example:
        >>> CascadeUCB1(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    rank_kernel = rank_ucb1
    update_kernel = update_ucb1

    def __init__(self, n_items: int, n_positions: int, *, feedback: str = "last_click", seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)

    def _initial_state(self) -> UCB1State:
        n = self.n_items
        return UCB1State(
            clicks=np.zeros(n, np.int64),
            examined=np.zeros(n, np.int64),
            mean=np.full(n, np.inf),
            width=np.zeros(n),
            indices=np.full(n, np.inf),
            order=np.arange(n),
            t=np.ones(1, np.int64),
            feedback=self._feedback,
        )


# ---------------------------------------------------------------------------------------------------------- CascadeKL-UCB


class KLUCBState(NamedTuple):
    clicks: NDArray[np.int64]  # (L,)
    examined: NDArray[np.int64]  # (L,) N
    indices: NDArray[np.float64]  # (L,) as last solved for
    order: NDArray[np.int64]  # (L,) items by index
    t: NDArray[np.int64]  # (1,) the session, counted from 1
    feedback: int
    # What certifies the order without solving for an index (see `order_is_certain`): values x between neighbouring indices.
    fenced: NDArray[np.bool_]  # (1,) whether there are fences
    fence: NDArray[np.float64]  # (K,) x_k, between the indices of the k-th and the next item
    fence_log: NDArray[np.float64]  # (K,) -log x_k
    fence_log1m: NDArray[np.float64]  # (K,) -log(1 - x_k)
    peak: NDArray[np.float64]  # (L,) c log(c/N) + (N-c) log((N-c)/N), the log-likelihood at ŵ
    rest: NDArray[np.float64]  # (1,) least N KL(ŵ, x_K) of the items below the list, less its margin


@kernel
def x_log_x(x):  # type: ignore[no-untyped-def]
    return x * math.log(x) if x > 0 else 0.0


@kernel
def divergence(state, item, k):  # type: ignore[no-untyped-def]
    """N KL(ŵ, x_k) of an item, from stored logarithms."""
    c, n = state.clicks[item], state.examined[item]
    return state.peak[item] + c * state.fence_log[k] + (n - c) * state.fence_log1m[k]


@kernel
def margin(n):  # type: ignore[no-untyped-def]
    """What a divergence must differ from the bound by to tell an order; far above the rounding errors of n terms."""
    return 1e-7 + 1e-12 * n


@kernel
def is_above(state, item, k, bound):  # type: ignore[no-untyped-def]
    """Whether the index of an item is certainly above the k-th fence: N KL(ŵ, x) < bound, or ŵ ≥ x."""
    c, n = state.clicks[item], state.examined[item]
    return c >= n * state.fence[k] or divergence(state, item, k) < bound - margin(n)


@kernel
def is_below(state, item, k, bound):  # type: ignore[no-untyped-def]
    """Whether the index of an item is certainly below the k-th fence."""
    c, n = state.clicks[item], state.examined[item]
    return c < n * state.fence[k] and divergence(state, item, k) > bound + margin(n)


@kernel
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


@kernel
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


@kernel
def order_is_refined(state, bound, rng, spare):  # type: ignore[no-untyped-def]
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
    rank_by_index(state.indices, state.order, rng, 0)
    for k in range(min(n_positions, n_items - 1)):
        if state.indices[state.order[k]] - state.indices[state.order[k + 1]] < 1e-10:
            return False
    return not spare or state.indices[state.order[n_positions - 1]] > state.fence[n_positions - 1]


@kernel
def put_fences(state):  # type: ignore[no-untyped-def]
    """Put a fence midway between neighbouring indices of the list, and one below it; none where they are equal."""
    n_items, n_positions = len(state.order), len(state.fence)
    state.fenced[0] = False
    for k in range(n_positions):
        upper = state.indices[state.order[k]]
        lower = state.indices[state.order[k + 1]] if k + 1 < n_items else 0.0
        x = 0.5 * (upper + lower)
        if not lower < x < upper < 1.0:
            return
        state.fence[k], state.fence_log[k], state.fence_log1m[k] = x, -math.log(x), -math.log1p(-x)
    state.fenced[0] = True
    state.rest[0] = np.inf
    for i in range(n_positions, n_items):
        item = state.order[i]
        c, n = state.clicks[item], state.examined[item]
        above = c >= n * state.fence[n_positions - 1]
        state.rest[0] = min(state.rest[0], 0.0 if above else divergence(state, item, n_positions - 1) - margin(n))


@kernel
def rank_klucb(state, rng, ranking):  # type: ignore[no-untyped-def]
    bound = exploration(state.t[0])
    if not order_is_certain(state, bound):
        spare = state.fenced[0]
        if not ((spare and order_is_refined(state, bound, rng, True)) or order_is_refined(state, bound, rng, False)):
            for item in range(len(state.indices)):
                n = state.examined[item]
                state.indices[item] = kl_upper(state.clicks[item] / n, bound / n) if n > 0 else np.inf
            rank_by_index(state.indices, state.order, rng, len(ranking))
        put_fences(state)
    for k in range(len(ranking)):
        ranking[k] = state.order[k]


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

    What matters is the order of the indices, not their values. An index exceeds x > ŵ exactly if ``N KL(ŵ, x)`` is under the
    exploration term, so the order is certified from session to session by values x between neighbouring indices, and
    indices are solved for only where that fails. The lists are those of the plain definition, bit for bit.

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
        n, k = self.n_items, self.n_positions
        return KLUCBState(
            clicks=np.zeros(n, np.int64),
            examined=np.zeros(n, np.int64),
            indices=np.full(n, np.inf),
            order=np.arange(n),
            t=np.ones(1, np.int64),
            feedback=self._feedback,
            fenced=np.zeros(1, np.bool_),
            fence=np.zeros(k),
            fence_log=np.zeros(k),
            fence_log1m=np.zeros(k),
            peak=np.zeros(n),
            rest=np.zeros(1),
        )
