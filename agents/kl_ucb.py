"""KL-UCB for lists: CascadeKL-UCB (Kveton et al. 2015) and dcmKL-UCB (Katariya et al. 2016).

The list depends only on the order of the indices, not on their values. An index ``kl_upper(ŵ, bound / N)`` exceeds x > ŵ
exactly if ``N KL(ŵ, x) < bound``. Therefore values x between neighbouring indices ("fences") certify the order from session to
session. If a fence fails, indices are computed, but only of the items above a lower fence (the "floor"). Items of equal counts
tie under every bound, which certifies the order where there are no fences, for example in the first sessions. The lists are
bit for bit those of the plain definition.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.kernels import inner, kernel
from ..core.state import Flags, Floats, Ints
from ..envs.spaces import check_ranking
from .agent import CompiledAgent, rates
from .cascade import CascadeAgent
from .hyperparameters import at_least, hyperparameter
from .kernels import (
    LAST_CLICK,
    choose_largest,
    examined_positions,
    exploration,
    kl_upper,
    log_likelihood,
    shuffle_ties,
    sort_by_index,
)
from .search_space import Range
from .templates import put_by_position

C = 3.0  # of the papers' exploration term, log t + 3 log log t
FRONT = 16  # items in front of a new floor beside those of the list, at least
NEAR_ONE = 1.0 - 1e-6  # above it neighbouring floats are too far apart for their order to be told by divergences
UNBOUNDED = 1e300  # stands for -log(1 - x) where no index reaches x
DOUBT = 1e-10  # indices closer than this may be in another order than the plain definition's


class KLUCBState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N
    indices: Annotated[Floats, "L", np.inf]  # as last solved for
    order: Annotated[Ints, "L", range]  # the items of the front by index, then others
    t: Annotated[Ints, "1"]  # sessions
    positions: Annotated[Ints, "K", range]  # the position of the k-th largest index
    feedback: int
    c: float  # of the exploration term
    # What certifies the order without solving for an index (see `order_is_certain`): values x between neighbouring indices.
    fenced: Annotated[Flags, "1"]  # whether there are all fences
    floored: Annotated[Flags, "1"]  # whether there is the last one
    fence: Annotated[Floats, "K"]  # x_k, between the indices of the k-th and the next item
    fence_log: Annotated[Floats, "K"]  # -log x_k
    fence_log1m: Annotated[Floats, "K"]  # -log(1 - x_k)
    peak: Annotated[Floats, "L"]  # c log(c/N) + (N-c) log((N-c)/N), the log-likelihood at ŵ
    known: Annotated[Floats, "64 4"]  # clicks, N, bound, and the index solved for them
    rest: Annotated[Floats, "1"]  # least N KL(ŵ, x_K) of the items below the list or its tie, less its margin
    front: Annotated[Ints, "1"]  # how many items are not certainly below the floor
    tied: Annotated[Ints, "1"]  # how many items of equal counts stand first, if they fill the list, else 0
    floor: Annotated[Floats, "4"]  # its x, -log x, -log(1 - x), and the least N KL(ŵ, x) of the others, less its margin


@inner
def divergence(state, item, log_x, log1m_x):  # type: ignore[no-untyped-def]
    """N KL(ŵ, x) of an item, from ``-log x`` and ``-log(1 - x)``."""
    c, n = state.clicks[item], state.examined[item]
    return state.peak[item] + c * log_x + (n - c) * log1m_x


@inner
def margin(n):  # type: ignore[no-untyped-def]
    """The least difference between a divergence and the bound that decides an order; far above rounding errors of n terms."""
    return 1e-7 + 1e-12 * n


@inner
def reach(state, item, x, log_x, log1m_x):  # type: ignore[no-untyped-def]
    """The bound up to which the index of an item is certainly below x: N KL(ŵ, x) minus its margin; 0 if ŵ ≥ x."""
    c, n = state.clicks[item], state.examined[item]
    return divergence(state, item, log_x, log1m_x) - margin(n) if c < n * x else 0.0


@inner
def is_certainly_above(state, item, x, log_x, log1m_x, bound):  # type: ignore[no-untyped-def]
    """Whether the index of an item is certainly above x: N KL(ŵ, x) < bound, or ŵ ≥ x."""
    c, n = state.clicks[item], state.examined[item]
    return c >= n * x or divergence(state, item, log_x, log1m_x) < bound - margin(n)


@inner
def is_above(state, item, k, bound):  # type: ignore[no-untyped-def]
    """Whether the index of an item is certainly above the k-th fence."""
    return is_certainly_above(state, item, state.fence[k], state.fence_log[k], state.fence_log1m[k], bound)


@inner
def reach_fence(state, item, k):  # type: ignore[no-untyped-def]
    """`reach` for the k-th fence."""
    return reach(state, item, state.fence[k], state.fence_log[k], state.fence_log1m[k])


@inner
def is_below(state, item, k, bound):  # type: ignore[no-untyped-def]
    """Whether the index of an item is certainly below the k-th fence."""
    return reach_fence(state, item, k) > bound


@inner
def have_equal_counts(state, item, other):  # type: ignore[no-untyped-def]
    return state.clicks[item] == state.clicks[other] and state.examined[item] == state.examined[other]


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
def tie_is_certain(state, bound):  # type: ignore[no-untyped-def]
    """Whether the list is certainly drawn from the items of equal counts that stood first, less those shown last.

    These must have fallen below the last fence, where all others are; above it the rest of the tie stays, for indices rise. The
    tie is left at the front, by id; the indices of those shown are kept near, for `gather_front`.
    """
    size, n_positions = state.tied[0], len(state.fence)
    last = n_positions - 1
    if size < 2 * n_positions:
        return False
    for k in range(n_positions):
        state.rest[0] = min(state.rest[0], reach_fence(state, state.order[k], last))
    if not state.rest[0] > bound:
        return False
    for _ in range(n_positions):
        item = state.order[0]
        for i in range(1, size):
            state.order[i - 1] = state.order[i]
        state.order[size - 1] = item
        index = refine(state, item, bound)
        state.indices[item] = index if index > 0.0 else min(state.indices[item], state.fence[last])
    state.tied[0] = size - n_positions
    sort_by_index(state.indices, state.order[: state.tied[0]])
    return True


@inner
def gather_front(state, bound, everything):  # type: ignore[no-untyped-def]
    """Set the floor below the largest indices last computed, and put the items not certainly below it in front, by id.

    An index rises while its item is not shown. Therefore only the items shown last can fall below the floor.
    """
    n_items, n_positions = len(state.indices), len(state.fence)
    wanted = n_positions + FRONT
    everything = everything or wanted * 2 > n_items
    if not everything:
        choose_largest(state.indices, state.order, wanted)
        upper, lower = state.indices[state.order[wanted - 1]], 0.0
        for item in range(n_items):
            if lower < state.indices[item] < upper:
                lower = state.indices[item]
        x = min(0.5 * (upper + lower), NEAR_ONE)
        state.floor[0], state.floor[1], state.floor[2] = x, -math.log(x), -math.log1p(-x)
    state.front[0], state.floor[3] = 0, np.inf
    for item in range(n_items):
        out_of_reach = 0.0 if everything else reach(state, item, state.floor[0], state.floor[1], state.floor[2])
        if out_of_reach > bound:
            state.floor[3] = min(state.floor[3], out_of_reach)
            state.indices[item] = min(state.indices[item], state.floor[0])
        else:
            state.order[state.front[0]] = item
            state.front[0] += 1
    if everything:
        state.floor[0] = 0.0
        if wanted * 2 <= n_items:
            state.floor[3] = 0.0  # for one session


@inner
def is_clear(state, spare):  # type: ignore[no-untyped-def]
    """Whether the list is certainly above the floor, and with ``spare`` above its last fence."""
    n_positions, least = len(state.fence), state.floor[0]
    if state.front[0] < n_positions:
        return False
    if spare:
        least = max(least, state.fence[n_positions - 1])
    return least == 0.0 or state.indices[state.order[n_positions - 1]] - least > DOUBT


@inner
def is_in_place(state, i, bound):  # type: ignore[no-untyped-def]
    """Whether the i-th item of `order` certainly stays between its fences, as last solved for, or below the last one."""
    item, last = state.order[i], len(state.fence) - 1
    if i > last:
        return is_below(state, item, last, bound)
    if not state.indices[item] > state.fence[i] or (i > 0 and not state.indices[item] < state.fence[i - 1]):
        return False
    return is_above(state, item, i, bound) and (i == 0 or is_below(state, item, i - 1, bound))


@inner
def are_apart(state, items):  # type: ignore[no-untyped-def]
    """Whether the indices of neighbours in a sorted order differ by more than the error of `refine`."""
    for k in range(len(items) - 1):
        upper, lower = state.indices[items[k]], state.indices[items[k + 1]]
        if not upper - lower >= DOUBT * max(upper, 1.0):  # two may be infinite
            return False
    return True


@inner
def is_alone(state, k, separate):  # type: ignore[no-untyped-def]
    """Whether no other index lies between the fences of place k; below the list, the answer is ``separate``."""
    if k >= len(state.fence):
        return separate
    lower, upper, n = state.fence[k], state.fence[k - 1] if k > 0 else np.inf, 0
    for i in range(state.front[0]):
        n += lower < state.indices[state.order[i]] < upper
    return n == 1


@inner
def keeps_index(state, i, bound, attempt, separate):  # type: ignore[no-untyped-def]
    """Whether the i-th item of `order` needs no refining: it is certainly in place, in the second attempt alone there, too."""
    certain = is_in_place(state, i, bound)
    if attempt == 0:
        return certain
    return not certain or is_alone(state, i, separate)  # refined before, or alone


@inner
def order_is_refined(state, bound, spare):  # type: ignore[no-untyped-def]
    """Whether refined indices leave no doubt about the order; then `order` is it.

    With ``spare``, what is certain without keeps its old index: items of the list that certainly stayed between their fences,
    where no other index has come between these, and items certainly below the last fence, where none of the list has come.
    """
    n_front, n_positions = state.front[0], len(state.fence)
    lowest, separate = state.fence[n_positions - 1], True  # whether none of the list has come below
    for attempt in range(1 + spare):
        for i in range(n_front):
            item = state.order[i]
            if spare and keeps_index(state, i, bound, attempt, separate):
                if attempt == 0 and i >= n_positions:
                    state.indices[item] = min(state.indices[item], lowest)
                continue
            index = refine(state, item, bound)
            if not index > 0.0:
                return False
            state.indices[item] = index
            separate = separate and (i >= n_positions or index > lowest)
    sort_by_index(state.indices, state.order[:n_front])
    return are_apart(state, state.order[: min(n_positions + 1, n_front)]) and is_clear(state, spare and separate)


@inner
def solve(state, bound, spare):  # type: ignore[no-untyped-def]
    """Solve for the indices, sort by them, and say whether the K largest are certainly so.

    With ``spare``, items certainly below the last fence keep their old index, if it is; the list's must then be above. Items of
    equal counts, which tie, are solved for once.
    """
    n_front, n_positions = state.front[0], len(state.fence)
    last_c, last_n, index, spared = -1, -1, np.inf, False
    for i in range(n_front):
        item = state.order[i]
        c, n = state.clicks[item], state.examined[item]
        if c != last_c or n != last_n or i <= n_positions:
            last_c, last_n = c, n
            spared = spare and i >= n_positions and is_below(state, item, n_positions - 1, bound)
            index = np.inf
            if n > 0 and not spared:
                place = (7 * n + c) % len(state.known)
                if state.known[place, 0] != c or state.known[place, 1] != n or state.known[place, 2] != bound:
                    state.known[place, 0], state.known[place, 1], state.known[place, 2] = c, n, bound
                    state.known[place, 3] = kl_upper(c / n, bound / n)
                index = state.known[place, 3]
        state.indices[item] = min(state.indices[item], state.fence[n_positions - 1]) if spared else index
    sort_by_index(state.indices, state.order[:n_front])
    return is_clear(state, spare)


@inner
def put_fences(state):  # type: ignore[no-untyped-def]
    """Put a fence midway between neighbouring indices of the list, and one below those that tie with the last, none near 1."""
    n_front, n_positions = state.front[0], len(state.fence)
    last = n_positions - 1
    below = n_positions
    while below < n_front and state.indices[state.order[below]] == state.indices[state.order[last]]:
        below += 1
    state.fenced[0] = below == n_positions
    state.floored[0] = False
    for k in range(n_positions):
        upper = state.indices[state.order[k]]
        under = k + 1 if k < last else below
        lower = max(state.indices[state.order[under]], state.floor[0]) if under < n_front else state.floor[0]
        x = min(0.5 * (upper + lower), NEAR_ONE)
        if upper == np.inf and lower <= 1.0:  # of items never examined: above every index
            state.fence[k], state.fence_log[k], state.fence_log1m[k] = 2.0, UNBOUNDED, UNBOUNDED
            state.floored[0] = k == last
        elif lower < x < upper:
            if x != state.fence[k]:
                state.fence[k], state.fence_log[k], state.fence_log1m[k] = x, -math.log(x), -math.log1p(-x)
            state.floored[0] = k == last
        else:
            state.fenced[0] = False
    state.rest[0] = state.floor[3] if state.floor[0] > 0.0 else np.inf
    state.tied[0] = 0
    if state.floored[0]:
        for i in range(below, n_front):
            state.rest[0] = min(state.rest[0], reach_fence(state, state.order[i], last))
        state.tied[0] = below
        for i in range(below):
            if not have_equal_counts(state, state.order[0], state.order[i]):
                state.tied[0] = 0


@kernel
def rank_klucb(state, rng, ranking):  # type: ignore[no-untyped-def]
    """Write the list of the present session."""
    bound = exploration(state.t[0] + 1, state.c)
    if not order_is_certain(state, bound):
        # Unless a tie goes on: in the front as it is, in one gathered anew, among all; each time with what is certainly below
        # the list spared, then without. Loops, for every call in the text is compiled on its own.
        tied, refined = tie_is_certain(state, bound), False
        settled = tied
        for effort in range(3):
            if not settled:
                if effort > 0 or not state.floor[3] > bound:
                    gather_front(state, bound, effort == 2)
                for attempt in range(2):
                    refined = refined or (state.fenced[0] and order_is_refined(state, bound, attempt == 0))
                settled = refined
                for attempt in range(2):
                    settled = settled or ((attempt == 1 or state.floored[0]) and solve(state, bound, attempt == 0))
        if not refined:
            shuffle_ties(state.indices, state.order[: state.tied[0] if tied else state.front[0]], rng, len(ranking))
        if not tied:
            put_fences(state)
    put_by_position(state, state.order, ranking)


@inner
def doubt_order(state):  # type: ignore[no-untyped-def]
    """Discard what certifies the order, which assumes that only items of the present list get clicks."""
    state.fenced[0] = False
    state.floored[0] = False
    state.tied[0] = 0
    for i in range(4):
        state.floor[i] = 0.0


@inner
def reckon_with(state, item):  # type: ignore[no-untyped-def]
    """Update what certifies the order after a click on an item that is not in the present list."""
    n_positions = len(state.fence)
    if not state.floored[0] and state.floor[0] == 0.0 and state.tied[0] == 0:
        return
    for k in range(n_positions):
        if state.order[k] == item:  # its fences are asked in every session
            return
    state.tied[0] = 0
    if state.floored[0]:
        state.rest[0] = min(state.rest[0], reach_fence(state, item, n_positions - 1))
    if state.floor[0] > 0.0:
        for i in range(n_positions, state.front[0]):
            if state.order[i] == item:
                return
        state.floor[3] = min(state.floor[3], reach(state, item, state.floor[0], state.floor[1], state.floor[2]))


@kernel
def update_klucb(state, ranking, clicks):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    difference = 0  # without a branch for each position, which would take twice the time
    for k in range(len(ranking)):
        difference |= ranking[state.positions[k]] ^ state.order[k]
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.examined[item] += 1
        state.peak[item] = log_likelihood(state.clicks[item], state.examined[item])
        if difference != 0:
            reckon_with(state, item)


@inner
def forget_klucb(state, item):  # type: ignore[no-untyped-def]
    """Forget the clicks on an item."""
    state.clicks[item], state.examined[item], state.peak[item] = 0, 0, 0.0
    state.indices[item] = np.inf
    doubt_order(state)


class CascadeKLUCB(CascadeAgent):
    """CascadeKL-UCB: show the K items of largest ``kl_upper(ŵ, (log t + c log log t) / N)``, in decreasing order.

    Idea:
        In the cascade model, a user scans the list from the top, clicks the first attractive item, and leaves. Items above the
        click were examined and not attractive, and so were all items of a session without a click. For each item, CascadeKL-UCB
        counts the examinations, N, and keeps the share ŵ of them with a click. It shows the K items with the largest index: the
        highest attraction that N and ŵ do not rule out, measured by the Kullback-Leibler divergence. For rare clicks this
        interval is much narrower than that of `CascadeUCB1`, and the paper's regret bound nearly matches the lower bound of the
        cascade model. If users skip positions, as in the position-based model, items at low positions look less attractive than
        they are, and the list may stay wrong for ever.

    Algorithm:
        ::

            N(e) ← 0, the examinations, and ŵ(e) ← 0, the share of them with a click, for each item e
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, 2, ...:
                b ← max(log t + c log log t, 0), the level of confidence, with the constant c = 3
                for each item e:
                    U_t(e) ← max{q ∈ [ŵ(e), 1] : N(e) KL(ŵ(e), q) ≤ b}, and ∞ where N(e) = 0
                A_t ← the list of the K items of largest U_t, in decreasing order, ties at random
                show A_t and observe the clicks c_t(1), ..., c_t(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first), or K without a click
                for k = 1, ..., k', the examined positions:
                    ŵ(A_t(k)) ← (N(A_t(k)) ŵ(A_t(k)) + c_t(k)) / (N(A_t(k)) + 1)
                    N(A_t(k)) ← N(A_t(k)) + 1

    Args:
        n_items: L.
        n_positions: K.
        feedback: as in `CascadeUCB1`.
        c: ≥ 0, the constant of the level. The paper has 3; 0 gives log t, as in the code to which the BatchRank paper compares.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule, or a bad c.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits: learning to rank in the cascade model*, ICML 2015, Algorithm 1
    with eq. 6.

    Deviations from the paper:
        1. ⚠ Ties, and items not examined yet (which rank first), are ordered uniformly at random.
        2. ⚠ Several clicks: as in `CascadeUCB1`.
        3. The exploration term is floored at 0 as a whole; at t = 1 it is 0.

    Example:
        >>> CascadeKLUCB(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    state_type = KLUCBState
    rank_kernel = rank_klucb
    update_kernel = update_klucb

    c: float = hyperparameter(default=C, check=at_least(0), search=Range(0.0, 6.0))


def check_position_order(name: str, position_order: Any, n_positions: int) -> NDArray[np.int64]:
    """Return the checked order of the positions."""
    try:
        return check_ranking(position_order, n_positions, n_positions)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a permutation of the positions: {error}") from None


class DCMKLUCB(CompiledAgent):
    """dcmKL-UCB: put the items of largest KL-UCB index at the positions where a click most likely ends a session.

    Idea:
        In the dependent click model, users scan from the top, may click several items, and after a click stop with a
        probability that depends on the position. Nobody can see whether a user looked below the last click, so dcmKL-UCB counts
        positions down to it, or all if there is no click. It keeps the number N of these observations of each item and its
        share of clicks ŵ, and computes the KL-UCB index of `CascadeKLUCB`. A session earns a reward if the user ends satisfied,
        so the best items belong to the positions where a click most likely ends the session. The item of the k-th largest index
        takes the position of the k-th largest termination probability, of which only the order must be known. It loses
        observations below the last click, its estimates are slightly biased because that position was always clicked, and under
        other click models it fails like cascade agents.

    Algorithm:
        ::

            N(e) ← 0, the observations, and ŵ(e) ← 0, the share of them with a click, for each item e
            p_1, ..., p_K ← the positions, from the most to the least likely to end a session (by default top to bottom)
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for t = 1, 2, ...:
                b ← max(log t + 3 log log t, 0), the level of confidence
                for each item e:
                    U_t(e) ← max{q ∈ [ŵ(e), 1] : N(e) KL(ŵ(e), q) ≤ b}, and ∞ where N(e) = 0
                A_t(p_k) ← the item of the k-th largest U_t, ties at random, for k = 1, ..., K
                show the list A_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click, or K without a click
                for k = 1, ..., k':
                    ŵ(A_t(k)) ← (N(A_t(k)) ŵ(A_t(k)) + c(k)) / (N(A_t(k)) + 1)
                    N(A_t(k)) ← N(A_t(k)) + 1

    Args:
        n_items: L.
        n_positions: K.
        position_order: ``(K,)`` positions, the most likely to end a session after a click first; None: top to bottom.
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
    learns_from_any_list = True
    click_models = "DCM"
    state_type = KLUCBState
    rank_kernel = rank_klucb
    update_kernel = update_klucb

    position_order: ArrayLike | None = hyperparameter(default=None, check=check_position_order, sizes=("n_positions",))

    def best(self) -> NDArray[np.int64]:
        return self._best_by(rates(self.state.clicks, self.state.examined))

    def _first_values(self) -> dict[str, Any]:
        order = self.hyperparameters["position_order"]
        positions = {} if order is None else {"positions": order.copy()}
        return {"feedback": LAST_CLICK, "c": C} | positions
