"""Kernels that compute the best list for users who scan from the top without memory.

An examined item i earns ``gain(i)``, and the user continues to the next position with probability
``continuation(i)``. Both numbers depend neither on the position nor on the items above. Therefore,
a list is worth ``Σ_k gain(d_k) Π_{j<k} continuation(d_j)``, plus ``terminal`` if the user reaches
the end of the list. Two neighbours, a above b, are worth ``gain(a) + continuation(a) gain(b)``, and
their order does not change the probability that the user reaches the items below. Therefore, the
item with the larger ``gain / (1 - continuation)`` comes first. This rule orders any given set of
items; dynamic programming from the bottom of the list finds the best set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.kernels import entry, kernel
from ..spaces import argsort_descending


@kernel
def sort_descending(values, order):
    """Sort ``values``, ``(L,)``, in decreasing order, and write their former indices into
    ``order``. Among equal values, the smaller index comes first. Shell's sort is used because it
    allocates no memory.
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
    """Write the ratio by which items are ordered, ``gain / (1 - continuation)``, into ``ratio``."""
    for item in range(len(gain)):
        if continuation[item] < 1.0:
            ratio[item] = gain[item] / (1.0 - continuation[item])
        elif gain[item] == 0.0:  # the item has no effect at any position
            ratio[item] = 0.0
        else:  # users never leave here: the item comes first if it gains, and last if it costs
            ratio[item] = np.inf if gain[item] > 0.0 else -np.inf


@kernel
def choose_items(gain, continuation, terminal, order, values, ranking):
    """Write the best list into ``ranking`` and return its value, in time O(L·K).

    ``order`` contains all items in their best order; for the other arguments, see `scan`.
    """
    n_items, n_chosen = len(gain), len(ranking)
    values[n_items, 0] = terminal
    for i in range(n_items - 1, -1, -1):
        item = order[i]
        values[i, 0] = terminal
        for m in range(1, min(n_chosen, n_items - i) + 1):
            values[i, m] = gain[item] + continuation[item] * values[i + 1, m - 1]
            if m < n_items - i:  # item may be left out only if enough others remain
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
    """Write the best list into ``ranking`` and return its value, in time O(L·K) after sorting.

    Args:
        gain: ``(L,)`` the expected reward of each item if examined, finite.
        continuation: ``(L,)`` probabilities that the user continues below each item.
        terminal: the expected reward when the user reaches the end of the list.
        ratio: ``(L,)`` working memory for the ratios ``gain / (1 - continuation)``.
        order: ``(L,)`` integers, working memory for the best order of all items.
        values: ``(L + 1, K + 1)`` working memory: ``values[i, m]`` becomes the value of the best
            list of m items from ``order[i:]``.
        ranking: ``(K,)`` output, the best list. Among items with equal ratios, the smaller item id
            comes first.
    """
    weigh_items(gain, continuation, ratio)
    sort_descending(ratio, order)
    return choose_items(gain, continuation, terminal, order, values, ranking)


def best_scan(
    gain: NDArray[np.float64],
    continuation: NDArray[np.float64],
    n_chosen: int,
    terminal: float = 0.0,
) -> NDArray[np.int64]:
    """Return the best list of exactly ``n_chosen`` items for users who scan from the top without
    memory. Ratios that are equal in twelve digits count as ties (see `argsort_descending`).

    Args:
        gain: ``(L,)`` the expected reward of each item if examined.
        continuation: ``(L,)`` probabilities that the user continues below each item.
        n_chosen: the number of items shown, from 1 to L.
        terminal: the expected reward when the user reaches the end of the list; by default 0.

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
