"""The order of items in best lists: by twelve significant digits, so that values that are equal in
mathematics and differ in their last bits count as equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
    numbers = np.asarray(values, np.float64).tolist()
    rounded = np.array([float(f"{value:.11e}") for value in numbers])
    return np.argsort(-rounded, kind="stable")
