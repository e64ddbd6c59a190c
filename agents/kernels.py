"""Compiled pieces that agents share: random choices, rankings with random ties, KL bounds, the best
list where users scan.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.kernels import kernel
from ..envs.scan import scan as scan

FIRST_CLICK, LAST_CLICK = 0, 1
FEEDBACK = ("first_click", "last_click")


@kernel
def shuffle_front(rng, items, start, stop, count):
    """Move a uniformly random ordered choice of ``count`` from ``items[start:stop]`` to its front
    (Fisher-Yates).
    """
    for i in range(start, min(start + count, stop - 1)):
        j = i + int(rng.random() * (stop - i))
        items[i], items[j] = items[j], items[i]


@kernel
def sort_by_index(index, order):
    """Sort ``order`` by decreasing index, ties by id: insertion sort, for little moves between two
    sessions.
    """
    for i in range(1, len(order)):
        item = order[i]
        j = i - 1
        value = index[item]
        while j >= 0 and (
            index[order[j]] < value or (index[order[j]] == value and order[j] > item)
        ):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item


@kernel
def sort_stably(index, order):
    """Sort ``order`` by decreasing index, ties as they stand."""
    for i in range(1, len(order)):
        item = order[i]
        j = i - 1
        while j >= 0 and index[order[j]] < index[item]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item


@kernel
def shuffle_ties(index, order, rng, count):
    """In a sorted order, put ties that reach into the first ``count`` in random order."""
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
    """Sort so that ``order[:count]`` holds the ``count`` largest indices in decreasing order, ties
    in random order.

    The result is a function of the indices and of the generator alone: ties are first put in the
    order of their ids, then shuffled, so the permutation found in ``order`` does not matter.

    Args:
        index: ``(L,)`` the index of each item; no NaN.
        order: ``(L,)`` a permutation of the items, best the last one found.
        rng: draws only where there are ties to break.
        count: how many items are wanted.
    """
    sort_by_index(index, order)
    shuffle_ties(index, order, rng, count)


@kernel
def choose_largest(index, order, count):
    """Put the items of the ``count`` largest indices into ``order[:count]``, in decreasing order,
    ties by id.

    Returns:
        Whether an item left out equals the last one chosen.
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
    """`rank_by_index` for indices drawn anew, of whose order the last one tells nothing: the same
    choice without a full sort.

    Args:
        index, rng, count: as for `rank_by_index`.
        order: ``(L,)`` receives the choice in ``order[:count]``; the rest is of no use.
    """
    if choose_largest(index, order, count):
        for item in range(len(order)):
            order[item] = item
        rank_by_index(index, order, rng, count)
    else:
        shuffle_ties(index, order[:count], rng, count)


@kernel
def show(order, ranking):
    """Write the first items of an order into the list."""
    for k in range(len(ranking)):
        ranking[k] = order[k]


@kernel
def show_at(positions, order, ranking):
    """Write the first items of an order into the list, the k-th at the k-th of the positions."""
    for k in range(len(ranking)):
        ranking[positions[k]] = order[k]


@kernel
def show_any(order, rng, ranking):
    """Write a uniformly random list of the items of an order."""
    shuffle_front(rng, order, 0, len(order), len(ranking))
    show(order, ranking)


@kernel
def kl(p, q):
    """Kullback-Leibler divergence KL(p, q) between Bernoulli laws, in nats."""
    result = 0.0
    if p > 0.0:
        result += p * math.log(p / q) if q > 0.0 else np.inf
    if p < 1.0:
        result += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else np.inf
    return max(result, 0.0)


@kernel
def kl_upper(p, bound):
    """The largest q ≥ p with KL(p, q) ≤ bound, to rounding; a function of its arguments alone.

    Newton's method from above: KL(p, ·) is convex and increasing beyond p, so the iterates decrease
    to the root.
    """
    if p >= 1.0 or bound <= 0.0:
        return min(p, 1.0)
    if p <= 0.0:
        return -math.expm1(-bound)
    minus_entropy = p * math.log(p) + (1.0 - p) * math.log1p(-p)
    # Two upper bounds on the root: Pinsker's inequality, and dropping the term in log q ≤ 0.
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


@kernel
def kl_lower(p, bound):
    """The smallest q ≤ p with KL(p, q) ≤ bound, to rounding."""
    return 1.0 - kl_upper(1.0 - p, bound)


@kernel
def x_log_x(x):
    """x log x, with 0 log 0 = 0."""
    return x * math.log(x) if x > 0 else 0.0


@kernel
def log_likelihood(clicks, displays):
    """The log-likelihood of counts under the rate at which it is largest, their mean."""
    return x_log_x(clicks) + x_log_x(displays - clicks) - x_log_x(displays)


@kernel
def exploration(t, c):
    """``log t + c log log t``, floored at 0 as a whole (t counts from 1; t = 1 gives 0)."""
    log_t = math.log(t)
    return max(log_t + c * math.log(log_t), 0.0) if log_t > 0.0 else 0.0


@kernel
def examined_positions(clicks, feedback):
    """How many positions a cascade agent takes as examined: up to the first or last click, all
    shown ones without a click.
    """
    if feedback == FIRST_CLICK:
        for k in range(len(clicks)):
            if clicks[k] == 1:
                return k + 1
    else:
        for k in range(len(clicks) - 1, -1, -1):
            if clicks[k] == 1:
                return k + 1
    n_shown = len(clicks)
    while n_shown > 0 and clicks[n_shown - 1] < 0:
        n_shown -= 1
    return n_shown


@kernel
def is_beaten(beats, layer, item, number):
    """Whether an item is beaten by one that has no layer yet, or this one."""
    beaten = False
    for other in range(len(layer)):
        if beats[other, item] and (layer[other] < 0 or layer[other] == number):
            beaten = True
            break
    return beaten


@kernel
def topological_layers(beats, layer, order, start):
    """Divide the items into layers: those that no other item beats, then those that none of the
    rest beats, and so on; where only circles are left, the rest is one layer.

    Args:
        beats: ``(L, L)`` whether the first item beats the second.
        layer: ``(L,)`` receives the layer of each item.
        order: ``(L,)`` receives the items, layer by layer.
        start: ``(L + 1,)`` receives where each layer begins in it; then where the last one ends.

    Returns:
        The number of layers.
    """
    n_items = len(order)
    placed, n_layers, circular = 0, 0, False
    layer[:] = -1
    while placed < n_items:
        start[n_layers] = placed
        for item in range(n_items):
            if layer[item] < 0 and (circular or not is_beaten(beats, layer, item, n_layers)):
                layer[item] = n_layers
                order[placed] = item
                placed += 1
        circular = placed == start[n_layers]
        n_layers += not circular
    start[n_layers] = n_items
    return n_layers


@kernel
def cholesky(matrix, ridge, factor):
    """The lower triangle of ``factor`` becomes the F with ``F Fᵀ = matrix``, whose eigenvalues are
    ``ridge`` or more.

    Nor is the square of any diagonal entry of F smaller; where rounding makes it so, half of that
    is taken.
    """
    for i in range(len(matrix)):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = math.sqrt(max(total, 0.5 * ridge)) if i == j else total / factor[j, j]
