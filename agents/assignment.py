"""The assignment problem in compiled code: which item goes to which position, so that the weights' sum is largest."""

from __future__ import annotations

import numpy as np

from ..core.kernels import inner, kernel

__all__ = ["ROUNDING", "assign", "lead"]

ROUNDING = 1e-12  # sums of weights this close are equal


@inner
def is_better(loss, distance, current, place):  # type: ignore[no-untyped-def]
    """Whether a path to a place costs less than another; if they differ by rounding alone, whether it comes from before it."""
    if loss == distance or abs(loss - distance) > ROUNDING:
        return loss < distance
    return current < place


@kernel
def assign(weight, items, chosen, potential, path):  # type: ignore[no-untyped-def]
    """Choose an item for each position such that the sum of the weights is largest, by shortest augmenting paths; exact.

    Which one of several best assignments is found (sums within `ROUNDING`) depends on the order of the items alone, not on
    their ids. Where two paths to a place differ by rounding alone, the later one is taken if it comes from a place before it in
    the order, so that an order drawn at random draws between them. Of paths that are equal to the last bit the first is taken:
    an item that two positions want by the same amount then goes to the first of them, whatever the order.

    Args:
        weight: ``(L, K)`` of each item at each position.
        items: ``(L,)`` the items in the order in which they are tried.
        chosen: ``(K,)`` receives the items.
        potential: ``(3, L + 1)`` working memory: the price of each place in the order, its distance, and the positions' worth.
        path: ``(3, L + 1)`` working memory: the position of each place in the order, the place before it, and whether it is
            reached.
    """
    n_items, n_positions = weight.shape
    price, distance, worth = potential[0], potential[1], potential[2]
    owner, before, reached = path[0], path[1], path[2]
    for place in range(n_items + 1):
        price[place] = 0.0
        owner[place] = -1
    for k in range(n_positions):
        worth[k] = 0.0
    for k in range(n_positions):
        for place in range(n_items):
            distance[place] = np.inf
            reached[place] = 0
        reached[n_items] = 0
        owner[n_items] = k  # the root of the paths
        current = n_items
        while owner[current] >= 0:
            reached[current] = 1
            position = owner[current]
            shortest, nearest = np.inf, -1
            for place in range(n_items):
                if reached[place]:
                    continue
                loss = -weight[items[place], position] - worth[position] - price[place]
                if is_better(loss, distance[place], current, place):
                    distance[place] = min(loss, distance[place])
                    before[place] = current
                if distance[place] < shortest - ROUNDING:
                    shortest, nearest = distance[place], place
            for place in range(n_items + 1):
                if reached[place]:
                    worth[owner[place]] += shortest
                    price[place] -= shortest
                else:
                    distance[place] -= shortest
            current = nearest
        while current != n_items:
            owner[current] = owner[before[current]]
            current = before[current]
    for place in range(n_items):
        if owner[place] >= 0:
            chosen[owner[place]] = items[place]


@inner
def lead(weight, chosen, place_of, detour):  # type: ignore[no-untyped-def]
    """By how much the weights of an assignment exceed those of every other: 0 for a tie, negative if another is better.

    Another assignment is this one with items passed on in a circle: position k takes the item of position k', or one that
    nothing has, as long as the last gives its own away. The cheapest circle is found by Floyd's and Warshall's algorithm.

    Args:
        weight: ``(L, K)``.
        chosen: ``(K,)`` the assignment.
        place_of: ``(L,)`` the position of each item, -1 for those without.
        detour: ``(K + 1, K + 1)`` working memory; the last row and column stand for the items without a position.
    """
    n_items, n_positions = weight.shape
    for k in range(n_positions):
        own = weight[chosen[k], k]
        for other in range(n_positions):
            detour[k, other] = own - weight[chosen[other], k] if other != k else np.inf
        largest = -np.inf
        for item in range(n_items):
            if place_of[item] < 0:
                largest = max(largest, weight[item, k])
        detour[k, n_positions] = own - largest
        detour[n_positions, k] = 0.0 if n_items > n_positions else np.inf
    detour[n_positions, n_positions] = np.inf
    for through in range(n_positions + 1):
        for k in range(n_positions + 1):
            first = detour[k, through]
            for other in range(n_positions + 1):
                detour[k, other] = min(detour[k, other], first + detour[through, other])
    least = np.inf
    for k in range(n_positions + 1):
        least = min(least, detour[k, k])
    return least
