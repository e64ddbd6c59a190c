"""The order of values in best lists: by twelve significant digits, so that values that are equal in
mathematics and differ in their last bits count as equal.

A comparison within a tolerance would not be transitive: a and c may differ by more than a and b, b
and c. Rounded values have one order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.kernels import entry, kernel

CLOSE = 1.1e-11
"""The relative difference above which two numbers differ in twelve digits."""


@kernel
def smaller(x, y):
    """Return ``x < y``."""
    return x < y


@kernel
def smaller_by_digits(x, y):
    """Return whether x is smaller than y after both are rounded to twelve significant digits."""
    if not x < y:
        return False
    size = max(abs(x), abs(y))
    # Rounding changes no order, so only close values are rounded; tiny ones have too few digits.
    if y - x > CLOSE * size or not 1e-290 < size < np.inf:
        return True
    low, high = (x, y) if y > 0.0 else (-y, -x)  # of one sign, because they are close
    scale = 1.0  # the power of ten that gives `high` twelve digits before the point
    while high * scale < 1e11:
        scale *= 10.0
    while high * scale >= 1e12:
        scale /= 10.0
    if low * scale < 1e11:  # the decade below: equal only if both are rounded to the power of ten
        return np.rint(low * scale * 10.0) < 1e12 or np.rint(high * scale) > 1e11
    return np.rint(low * scale) < np.rint(high * scale)


@kernel
def sort(values, order):
    """Sort ``(L,)`` values so that they decrease, and write their ids into ``order``; of equal
    values the smaller id comes first. Shell's sort, which allocates no memory.
    """
    n_items = len(order)
    for item in range(n_items):
        order[item] = item
    gap = 1
    while gap < n_items // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n_items):
            item, value, place = order[i], values[i], i
            while place >= gap:
                above = values[place - gap]
                if above > value or (above == value and order[place - gap] < item):
                    break
                order[place], values[place] = order[place - gap], above
                place -= gap
            order[place], values[place] = item, value
        gap //= 3


@kernel
def order_ties(decreasing, order):
    """Complete an order by decreasing value: of values that are equal in twelve digits, the smaller
    id comes first.

    Args:
        decreasing: ``(L,)`` the values in this order.
        order: ``(L,)`` the ids.
    """
    is_close = False  # hardly ever; without branches, because this is done in every session
    for k in range(1, len(order)):
        gap = decreasing[k - 1] - decreasing[k]
        is_close |= (gap > 0.0) & (gap <= CLOSE * abs(decreasing[k]))
    if not is_close:
        return
    first = 0  # of a run of equal values
    for k in range(1, len(order)):
        if smaller_by_digits(decreasing[k], decreasing[k - 1]):
            first = k
        item, place = order[k], k
        while place > first and order[place - 1] > item:
            order[place] = order[place - 1]
            place -= 1
        order[place] = item


@kernel
def sort_by_digits(values, order):
    """As `sort`, by twelve significant digits."""
    sort(values, order)
    order_ties(values, order)


def best_first(values: ArrayLike) -> NDArray[np.int64]:
    """Return item ids by decreasing value, in twelve significant digits; of equal values the
    smaller id comes first.

    Args:
        values: ``(L,)`` numbers.

    Returns:
        ``(L,)`` int64.

    Example:
        >>> best_first([0.3, 0.1 + 0.2, 0.5])
        array([2, 0, 1])
    """
    numbers = np.array(values, dtype=np.float64)  # a copy, which is sorted
    order: NDArray[np.int64] = np.empty(len(numbers), np.int64)
    entry(sort_by_digits)(numbers, order)
    return order


def may_be_equal(probabilities: NDArray[np.float64]) -> bool:
    """Return whether some of the numbers, which are at most 1, differ, but so little that they may
    be equal in twelve digits, also after the same number is added to all.
    """
    gaps = np.diff(np.sort(probabilities))
    return bool(((gaps > 0.0) & (gaps <= CLOSE)).any())
