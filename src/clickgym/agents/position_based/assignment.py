"""A compiled solver for the assignment problem: choose an item for each position so that the sum of
weights is maximal.
"""

from __future__ import annotations

import numpy as np

from ...core.kernels import kernel

ROUNDING = 1e-12  # sums of weights that differ by less than this count as equal


@kernel
def is_better_path(loss, distance, current, place):
    """Return whether a new path to a place is better than the known one. ``loss`` and ``current``
    are the cost and the previous place of the new path, ``distance`` and ``place`` those of the
    known path. The cheaper path is better; if the costs differ only by rounding, the path whose
    previous place comes earlier is better.
    """
    if loss == distance or abs(loss - distance) > ROUNDING:
        return loss < distance
    return current < place


@kernel
def assign(weight, items, chosen, potential, path):
    """Choose an item for each position so that the sum of weights is maximal, by shortest
    augmenting paths.

    If several assignments are best (their sums differ by at most `ROUNDING`), the order of
    ``items`` decides between them, not the item ids. A random order therefore breaks ties at
    random: of two paths to a place whose costs differ only by rounding, the algorithm takes the
    path whose previous place is earlier in the order. There is one exception: of paths with exactly
    equal costs, it takes the first one found, so an item with the same advantage at two positions
    always gets the first of them.

    Args:
        weight: ``(L, K)`` the weight of each item at each position.
        items: ``(L,)`` the items, in the order in which the algorithm tries them.
        chosen: ``(K,)`` output: the item at each position.
        potential: ``(3, L + 1)`` working memory. The rows hold the price and the distance of each
            place in the order, and the potential of each position.
        path: ``(3, L + 1)`` working memory. The rows hold, for each place in the order, the
            position assigned to this place, the previous place on the path, and whether a path has
            reached this place.
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
        owner[n_items] = k  # all paths start at this extra place
        current = n_items
        while owner[current] >= 0:
            reached[current] = 1
            position = owner[current]
            shortest, nearest = np.inf, -1
            for place in range(n_items):
                if reached[place]:
                    continue
                loss = -weight[items[place], position] - worth[position] - price[place]
                if is_better_path(loss, distance[place], current, place):
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
    """Return how much larger the sum of weights of an assignment is than the largest sum of any
    other assignment: 0 if both are equal, negative if another assignment is better.

    Cyclic exchanges turn an assignment into any other one: position k takes the item of position
    k', or an item without a position, and so on until the cycle closes. The Floyd-Warshall
    algorithm finds the exchange that loses least.

    Args:
        weight: ``(L, K)`` the weight of each item at each position.
        chosen: ``(K,)`` the assignment: the item at each position.
        position_of: ``(L,)`` the position of each item; -1 for an item without a position.
        detour: ``(K + 1, K + 1)`` working memory: the loss from moving one item for another. The
            last row and column represent the items without a position.
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
