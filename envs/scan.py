"""The best list for users who scan from the top without memory.

An examined item i earns ``gain(i)``, and the scan continues below it with probability
``continuation(i)``, whatever its position and the items above it. So a list is worth ``Σ_k
gain(d_k) Π_{j<k} continuation(d_j)``, plus ``terminal`` if the scan reaches its end. Two
neighbours, a above b, are worth ``gain(a) + continuation(a) gain(b)``, and the items below them are
reached with the same probability in either order. So the item with the larger ``gain / (1 -
continuation)`` comes first. This orders any set of items, and dynamic programming from the bottom
finds the best set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import entry, kernel
from .spaces import argsort_descending


@kernel
def sort(values, order):
    """Sort ``(L,)`` values in decreasing order, and write their ids into ``order``; among equal
    values the smaller id comes first. This is Shell's sort, which allocates no memory.
    """
    n_items = len(order)
    for item in range(n_items):
        order[item] = item
    gap = 1
    while gap < n_items // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n_items):
            item, value, j = order[i], values[i], i
            while j >= gap:
                above = values[j - gap]
                if above > value or (above == value and order[j - gap] < item):
                    break
                order[j], values[j] = order[j - gap], above
                j -= gap
            order[j], values[j] = item, value
        gap //= 3


@kernel
def weigh_items(gain, continuation, ratio):
    """Write each item's gain relative to leaving, by which items are ordered."""
    for item in range(len(gain)):
        if continuation[item] < 1.0:
            ratio[item] = gain[item] / (1.0 - continuation[item])
        elif gain[item] == 0.0:  # changes nothing at any position
            ratio[item] = 0.0
        else:  # never ends the scan: first if the gain is positive, last if it is negative
            ratio[item] = np.inf if gain[item] > 0.0 else -np.inf


@kernel
def choose_items(gain, continuation, terminal, order, values, ranking):
    """Write the best list into ``ranking`` and return its value, in O(L·K), given the best
    ``order`` of all items; other arguments as in `scan`.
    """
    n_items, n_chosen = len(gain), len(ranking)
    values[n_items, 0] = terminal
    for i in range(n_items - 1, -1, -1):
        item = order[i]
        values[i, 0] = terminal
        for m in range(1, min(n_chosen, n_items - i) + 1):
            values[i, m] = gain[item] + continuation[item] * values[i + 1, m - 1]
            if m < n_items - i:  # otherwise all remaining items are needed
                values[i, m] = max(values[i, m], values[i + 1, m])
    i = 0
    for k in range(n_chosen):
        m = n_chosen - k
        while (
            m < n_items - i
            and gain[order[i]] + continuation[order[i]] * values[i + 1, m - 1] < values[i, m]
        ):
            i += 1
        ranking[k] = order[i]
        i += 1
    return values[0, n_chosen]


@kernel
def scan(gain, continuation, terminal, ratio, order, values, ranking):
    """Write the best list into ``ranking`` and return its value, in O(L·K) beyond sorting.

    Args:
        gain, continuation: ``(L,)``; gains are finite, continuations in ``[0, 1]``.
        terminal: the value of reaching the end of the list.
        ratio: ``(L,)`` working memory: gain over leaving, decreasing.
        order: ``(L,)`` integers, working memory: the best order of all items.
        values: ``(L + 1, K + 1)`` working memory: ``values[i, m]`` is the value of the best list of
            m items from ``order[i:]``.
        ranking: ``(K,)`` output, the best list. Ties: the smaller item id comes first.
    """
    weigh_items(gain, continuation, ratio)
    sort(ratio, order)
    return choose_items(gain, continuation, terminal, order, values, ranking)


def best_scan(
    gain: NDArray[np.float64],
    continuation: NDArray[np.float64],
    n_chosen: int,
    terminal: float = 0.0,
) -> NDArray[np.int64]:
    """Return the best list of exactly ``n_chosen`` items for users who scan from the top without
    memory; the items in the list are ordered as by `argsort_descending`.

    Args:
        gain: ``(L,)`` the expected reward of each item if examined.
        continuation: ``(L,)`` probabilities that the user continues below each item.
        n_chosen: the number of items shown, from 1 to L.
        terminal: the expected reward of reaching the end of the list.

    Returns:
        ``(n_chosen,)`` int64 item ids.

    Source: Du, Srikant, Chen, *Cascading reinforcement learning*, ICLR 2024, for gains ``q·w`` and
        continuations ``1 - q``.

    Example:
        >>> best_scan(np.array([0.6, 0.5]), np.array([0.4, 1.0]), 2)
        array([1, 0])
    """
    n_items = len(gain)
    ratio, values = np.empty(n_items), np.empty((n_items + 1, n_chosen + 1))
    ranking: NDArray[np.int64] = np.empty(n_chosen, np.int64)
    weigh_items(gain, continuation, ratio)
    entry(choose_items)(gain, continuation, terminal, argsort_descending(ratio), values, ranking)
    return ranking
