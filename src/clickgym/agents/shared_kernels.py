"""Kernels that several agents share: random choices, sorting with random ties, KL bounds, the
layers of a relation, and Cholesky factors.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from ..core.kernels import kernel
from ..envs.simulation.scan import scan as scan

FIRST_CLICK, LAST_CLICK = 0, 1
Feedback = Literal["first_click", "last_click"]
FEEDBACK = get_args(Feedback)


@kernel
def shuffle_front(rng, items, start, stop, count):
    """Move a uniformly random ordered sample of ``count`` elements of ``items[start:stop]`` to the
    front of this range (Fisher-Yates).
    """
    for i in range(start, min(start + count, stop - 1)):
        j = i + int(rng.random() * (stop - i))
        items[i], items[j] = items[j], items[i]


@kernel
def precedes(index, item, other):
    """Return whether ``item`` sorts before ``other``: by decreasing index, then by id."""
    return index[item] > index[other] or (index[item] == index[other] and item < other)


@kernel
def reverse(items, start, stop):
    """Reverse ``items[start:stop]``."""
    for i in range((stop - start) // 2):
        items[start + i], items[stop - 1 - i] = items[stop - 1 - i], items[start + i]


@kernel
def sort_by_index(index, order):
    """Sort ``order`` by decreasing index, then by id, with an insertion sort that is fast if
    ``order`` is almost sorted.

    Consecutive items that are already in order move together: if K such items fall behind n others,
    sorting takes about n + K steps instead of n times K.
    """
    i = 1
    while i < len(order):
        item, place, stop = order[i], i, i + 1
        while place > 0 and precedes(index, item, order[place - 1]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = item
        if place < i:
            while (
                stop < len(order)
                and precedes(index, order[stop], order[place + 1])
                and precedes(index, order[stop - 1 if stop > i + 1 else place], order[stop])
            ):
                stop += 1
            if stop > i + 1:
                reverse(order, place + 1, i + 1)
                reverse(order, i + 1, stop)
                reverse(order, place + 1, stop)
        i = stop


@kernel
def sort_stably(index, order):
    """Sort ``order`` by decreasing index; items with equal indices keep their order."""
    for i in range(1, len(order)):
        item = order[i]
        j = i - 1
        while j >= 0 and index[order[j]] < index[item]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item


@kernel
def shuffle_ties(index, order, rng, count):
    """Shuffle each group of items with equal indices that begins among the first ``count`` items of
    a sorted order.
    """
    n_items = len(order)
    start = 0
    while start < count:
        stop = start + 1
        while stop < n_items and index[order[stop]] == index[order[start]]:
            stop += 1
        shuffle_front(rng, order, start, stop, min(stop, count) - start)
        start = stop


@kernel
def rank_by_index(index, order, rng, count):
    """Write the items with the ``count`` largest indices into ``order[:count]``, in decreasing
    order of their indices, with ties in random order.

    The result depends only on the indices and the generator, not on the initial permutation in
    ``order``: ties are first sorted by id, then shuffled.

    Args:
        index: ``(L,)`` the index of each item; NaN is not allowed.
        order: ``(L,)`` a permutation of the items. Sorting is fastest if you pass the result of the
            last call.
        rng: the random generator, which draws only if there are ties.
        count: the number of items to choose.
    """
    sort_by_index(index, order)
    shuffle_ties(index, order, rng, count)


@kernel
def choose_largest(index, order, count):
    """Write the items with the ``count`` largest indices into ``order[:count]``, in decreasing
    order of their indices, with ties sorted by id.

    Returns:
        Whether an item that was not chosen has the same index as the last chosen item.
    """
    worst, tied = -np.inf, False
    for item in range(len(index)):
        value, j = index[item], min(item, count - 1)
        if item >= count and value <= worst:
            tied = tied or value == worst
            continue
        while j > 0 and index[order[j - 1]] < value:
            order[j] = order[j - 1]
            j -= 1
        order[j] = item
        if item >= count - 1:
            left_out, worst = worst, index[order[count - 1]]
            tied = item >= count and left_out == worst
    return tied


@kernel
def rank_by_draw(index, order, rng, count):
    """Make the same choice as `rank_by_index`, without a full sort; faster if the indices change
    completely in every session.

    Args:
        index, rng, count: the same as for `rank_by_index`.
        order: ``(L,)`` output: the chosen items in ``order[:count]``; the other entries are
            undefined.
    """
    if choose_largest(index, order, count):
        for item in range(len(order)):
            order[item] = item
        rank_by_index(index, order, rng, count)
    else:
        shuffle_ties(index, order[:count], rng, count)


@kernel
def show(order, ranking):
    """Write the first K items of an order into the list."""
    for k in range(len(ranking)):
        ranking[k] = order[k]


@kernel
def show_at(positions, order, ranking):
    """Write the first K items of an order into the list, with the k-th item at ``positions[k]``."""
    for k in range(len(ranking)):
        ranking[positions[k]] = order[k]


@kernel
def rank_by_bounds(state, radius, rng, ranking):
    """Write the items with the largest upper bounds ``ŵ + radius · width`` into the list."""
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]
    rank_by_index(state.indices, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def show_any(order, rng, ranking):
    """Write a uniformly random list of the items in ``order`` into ``ranking``. The kernel shuffles
    ``order`` to draw the list.
    """
    shuffle_front(rng, order, 0, len(order), len(ranking))
    show(order, ranking)


@kernel
def kl(p, q):
    """Return the Kullback-Leibler divergence KL(p, q) between the Bernoulli distributions with
    means p and q, in nats.
    """
    result = 0.0
    if p > 0.0:
        result += p * math.log(p / q) if q > 0.0 else np.inf
    if p < 1.0:
        result += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else np.inf
    return max(result, 0.0)


@kernel
def kl_upper(p, bound):
    """Return the largest q ≥ p with KL(p, q) ≤ bound, up to rounding. Equal arguments always give
    the same result.

    The kernel uses Newton's method from above. KL(p, ·) is convex and increasing above p, so the
    iterates decrease to the root.
    """
    if p >= 1.0 or bound <= 0.0:
        return min(p, 1.0)
    if p <= 0.0:
        return -math.expm1(-bound)
    minus_entropy = p * math.log(p) + (1.0 - p) * math.log1p(-p)
    # Start from the smaller of two upper bounds of the root: the bound from Pinsker's inequality,
    # and the root without the term in log q.
    q = min(p + math.sqrt(0.5 * bound), -math.expm1((minus_entropy - bound) / (1.0 - p)))
    for _ in range(100):
        if not p < q < 1.0:
            break
        excess = minus_entropy - p * math.log(q) - (1.0 - p) * math.log1p(-q) - bound
        lower = q - excess * q * (1.0 - q) / (q - p)
        if not lower < q - 1e-16:
            break
        q = max(lower, p)
    return q


STEP = 1e-5
"""`kl_upper_near` stops after a step that is smaller than this fraction of (q - p) (1 - q). The
error is then below STEP² / 8.
"""


@kernel
def kl_upper_near(clicks, n, peak, bound, q):
    """Return ``kl_upper(clicks / n, bound / n)`` with an error of about 1e-11, by Newton's method
    from a value q. One step is enough if q is near. If the method does not converge, the result is
    that of `kl_upper`.

    ``peak`` is ``log_likelihood(clicks, n)``. With p = clicks / n, the result is the root of

    f(q)  = n KL(p, q) - bound = peak - clicks log q - (n - clicks) log(1 - q) - bound,
    f'(q) = n (q - p) / (q (1 - q)).

    After a step s the error is about s² f'' / 2 f' ≤ s² / (2 (q - p) (1 - q)).
    """
    p = clicks / n
    if clicks > 0:
        for _ in range(8):
            if not p < q < 1.0:
                break
            excess = peak - clicks * math.log(q) - (n - clicks) * math.log(1.0 - q) - bound
            step = excess * q * (1.0 - q) / (n * (q - p))
            q -= step
            if abs(step) < STEP * (q - p) * (1.0 - q):
                return q
    return kl_upper(p, bound / n)


@kernel
def kl_lower(p, bound):
    """Return the smallest q ≤ p with KL(p, q) ≤ bound, up to rounding."""
    return 1.0 - kl_upper(1.0 - p, bound)


@kernel
def x_log_x(x):
    """Return x log x, which is 0 for x = 0."""
    return x * math.log(x) if x > 0 else 0.0


@kernel
def log_likelihood(clicks, displays):
    """Return the maximal log-likelihood of a number of clicks in a number of displays: the
    log-likelihood under the click rate clicks / displays.
    """
    return x_log_x(clicks) + x_log_x(displays - clicks) - x_log_x(displays)


@kernel
def exploration(t, c):
    """Return the confidence level ``max(log t + c log log t, 0)`` in session t, counted from 1; for
    t = 1, the level is 0.
    """
    log_t = math.log(t)
    return max(log_t + c * math.log(log_t), 0.0) if log_t > 0.0 else 0.0


@kernel
def examined_positions(clicks, feedback):
    """Return the number of positions that a cascade agent counts as examined: the positions down to
    the first or last click, or all positions if there is no click.
    """
    if feedback == FIRST_CLICK:
        for k in range(len(clicks)):
            if clicks[k] == 1:
                return k + 1
    else:
        for k in range(len(clicks) - 1, -1, -1):
            if clicks[k] == 1:
                return k + 1
    return len(clicks)


@kernel
def count_beaten(beats, item, layer, sign):
    """Add ``sign`` to the entry in ``layer`` of each item that ``item`` beats."""
    wins = False
    for other in range(len(layer)):
        wins |= beats[item, other]
    if not wins:  # like most items in a large catalogue; adding zeros would take longer
        return
    for other in range(len(layer)):
        layer[other] += sign * beats[item, other]


@kernel
def topological_layers(beats, layer, order, start):
    """Divide the items into layers. The first layer contains the items that no other item beats,
    the second the items that no remaining item beats, and so on. If every remaining item is beaten,
    the relation has a cycle, and the remaining items form one layer.

    Args:
        beats: ``(L, L)`` whether the item of the row beats the item of the column.
        layer: ``(L,)`` output: the layer of each item.
        order: ``(L,)`` output: the items, layer by layer.
        start: ``(L + 1,)`` output: the start of each layer in ``order``, then the end of the last
            layer.

    Returns:
        The number of layers.
    """
    n_items = len(order)
    # The entry of an item without a layer is -1 - n, where n is the number of items without a layer
    # that beat it.
    layer[:] = -1
    for item in range(n_items):
        count_beaten(beats, item, layer, -1)
    placed, n_layers = 0, 0
    while placed < n_items:
        start[n_layers] = placed
        for item in range(n_items):
            if layer[item] == -1:
                layer[item] = n_layers
                order[placed] = item
                placed += 1
        if placed > start[n_layers]:
            for place in range(start[n_layers], placed):
                count_beaten(beats, order[place], layer, 1)
        else:  # a cycle
            for item in range(n_items):
                if layer[item] < 0:
                    layer[item] = n_layers
                    order[placed] = item
                    placed += 1
        n_layers += 1
    start[n_layers] = n_items
    return n_layers


@kernel
def cholesky(matrix, ridge, factor):
    """Write the Cholesky factor F of ``matrix``, with ``F Fᵀ = matrix``, into the lower triangle of
    ``factor``, and Fᵀ into the upper triangle. The eigenvalues of ``matrix`` must be at least
    ``ridge``.

    The square of each diagonal entry of F is then also at least ``ridge``; the kernel replaces it
    by ``ridge / 2`` if rounding errors make it smaller. The loops process whole rows, which the
    compiler turns into vector instructions; each entry subtracts its products in the order of the
    columns.
    """
    for i in range(len(matrix)):
        for j in range(i + 1):
            factor[i, j] = matrix[i, j]
    for k in range(len(matrix)):
        factor[k, k] = math.sqrt(max(factor[k, k], 0.5 * ridge))
        for i in range(k + 1, len(matrix)):
            factor[i, k] /= factor[k, k]
            factor[k, i] = factor[i, k]
        for i in range(k + 1, len(matrix)):
            row, above, scale = factor[i, k + 1 : i + 1], factor[k, k + 1 : i + 1], factor[i, k]
            for j in range(i - k):
                row[j] -= scale * above[j]
