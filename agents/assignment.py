"""Compiled solver of the assignment problem: assign items to positions such that the sum of their
weights is maximal.
"""

from __future__ import annotations

import numpy as np

from ..core.kernels import kernel

ROUNDING = 1e-12  # sums of weights this close are equal


@kernel
def is_better(loss, distance, current, place):
    """Whether a path costs less than another. If the costs differ only by rounding, the path whose
    previous place comes first is better.
    """
    if loss == distance or abs(loss - distance) > ROUNDING:
        return loss < distance
    return current < place


@kernel
def assign(weight, items, chosen, potential, path):
    """Choose an item for each position such that the sum of the weights is exactly maximal, by
    shortest augmenting paths.

    If several assignments are best (sums within `ROUNDING`), the order of the items decides, not
    their ids. If the costs of two paths to a place differ only by rounding, the path whose previous
    place is earlier in the order is chosen. Therefore a random order gives a random choice. Of
    paths with bitwise equal costs the first is chosen: if an item has the same advantage at two
    positions, the first position gets it in any order.

    Args:
        weight: ``(L, K)`` the weight of each item at each position.
        items: ``(L,)`` the items in the order in which they are tried.
        chosen: ``(K,)`` output, the items.
        potential: ``(3, L + 1)`` working memory: the price of each place in the order, its
            distance, and the potentials of the positions.
        path: ``(3, L + 1)`` working memory: the position of each place in the order, the previous
            place, and whether it is reached.
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


@kernel
def margin(weight, chosen, position_of, detour):
    """Return by how much the sum of weights of an assignment exceeds that of any other: 0 for a
    tie, negative if another is better.

    Any other assignment follows from this one by cyclic exchanges: position k takes the item of
    position k', or an item without a position, and so on until the cycle closes. The algorithm of
    Floyd and Warshall finds the cheapest cycle.

    Args:
        weight: ``(L, K)``.
        chosen: ``(K,)`` the assignment.
        position_of: ``(L,)`` the position of each item, -1 for those without.
        detour: ``(K + 1, K + 1)`` working memory; the last row and column represent the items
            without a position.
    """
    n_items, n_positions = weight.shape
    for k in range(n_positions):
        chosen_weight = weight[chosen[k], k]
        for other in range(n_positions):
            detour[k, other] = chosen_weight - weight[chosen[other], k] if other != k else np.inf
        largest = -np.inf
        for item in range(n_items):
            if position_of[item] < 0:
                largest = max(largest, weight[item, k])
        detour[k, n_positions] = chosen_weight - largest
        detour[n_positions, k] = 0.0 if n_items > n_positions else np.inf
    detour[n_positions, n_positions] = np.inf
    for middle in range(n_positions + 1):
        for k in range(n_positions + 1):
            first = detour[k, middle]
            for other in range(n_positions + 1):
                detour[k, other] = min(detour[k, other], first + detour[middle, other])
    least = np.inf
    for k in range(n_positions + 1):
        least = min(least, detour[k, k])
    return least
