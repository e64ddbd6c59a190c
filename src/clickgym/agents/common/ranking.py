"""Kernels that rank items: random choices, sorting with random ties, and writing the list."""

from __future__ import annotations

import numpy as np

from ...core.kernels import kernel


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
