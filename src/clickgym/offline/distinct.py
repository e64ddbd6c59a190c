"""The distinct lists among those of many sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def distinct(rows: NDArray[np.integer]) -> tuple[Indices, Indices, Indices]:
    """The distinct rows of integers, by 64 bits of each that are drawn at random; sorting whole rows takes ten times as long.

    Returns:
        The first place of each, which of them every row is, and how many rows are alike.
    """
    factors = np.random.default_rng(0).integers(1, 2**63, rows.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    with np.errstate(over="ignore"):
        codes = ((rows + 2).astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    _, first, index, counts = np.unique(codes, return_index=True, return_inverse=True, return_counts=True)
    return first, index.ravel(), counts


def sorted_distinct(rows: NDArray[Any]) -> tuple[NDArray[Any], Indices, Indices]:
    """The distinct rows of integers in increasing order, which of them every row is, and how many rows are alike."""
    first, index, counts = distinct(rows)
    order = np.lexsort(rows[first].T[::-1])
    return rows[first[order]], np.argsort(order)[index], counts[order]
