"""The distinct lists among those of many sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def distinct(rows: NDArray[np.integer]) -> tuple[Indices, Indices, Indices]:
    """The distinct rows of integers, by 64 bits of each that are drawn at random; sorting whole
    rows takes ten times as long.

    Returns:
        The first place of each, which of them every row is, and how many rows are alike.
    """
    rng, codes = np.random.default_rng(0), np.zeros(len(rows), np.uint64)
    with np.errstate(over="ignore"):
        for column in rows.T:
            odd = rng.integers(1, 2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
            codes += (column + 2).astype(np.uint64) * odd
    _, first, index, counts = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    return first, index.ravel(), counts


def sorted_distinct(rows: NDArray[Any]) -> tuple[NDArray[Any], Indices, Indices]:
    """The distinct rows of integers in increasing order, which of them every row is, and how many
    rows are alike.
    """
    first, index, counts = distinct(rows)
    order = np.lexsort(rows[first].T[::-1])
    return rows[first[order]], np.argsort(order)[index], counts[order]


def grouped(keys: NDArray[Any]) -> tuple[NDArray[Any], list[Indices]]:
    """The distinct keys in increasing order, and where each stands, in increasing order.

    Example:
        >>> grouped(np.array([5, 3, 5]))
        (array([3, 5]), [array([1]), array([0, 2])])
    """
    order = np.argsort(keys, kind="stable")
    values, starts = np.unique(keys[order], return_index=True)
    return values, np.split(order, starts[1:])[: len(values)]
