"""The distinct lists among those of many sessions, and sessions that a log has several times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

MARGIN = 4
"""How many times as many pairs of sessions must be alike as chance would make."""


def codes_of(rng: np.random.Generator, *columns: NDArray[np.integer]) -> NDArray[np.uint64]:
    """A number of 64 bits for each row, column by column, because the columns of a log together
    take much memory.
    """
    codes = np.zeros(len(columns[0]), np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            codes += (column + 2).astype(np.uint64) * (
                rng.integers(1, 2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
            )
    return codes


def distinct(rows: NDArray[np.integer]) -> tuple[Indices, Indices, Indices]:
    """The distinct rows of integers, by 64 bits of each that are drawn at random; sorting whole
    rows takes ten times as long.

    Returns:
        The first place of each, which of them every row is, and how many rows are alike.
    """
    codes = codes_of(np.random.default_rng(0), *rows.T)
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


def repeated_sessions(
    times: NDArray[Any] | None,
    queries: NDArray[np.int32],
    items: NDArray[np.int32],
    clicks: NDArray[np.int8],
) -> NDArray[np.bool_]:
    """``(N,)`` which sessions repeat one above them; see `ClickLog.repeated`."""
    again = np.zeros(len(items), np.bool_)
    if times is None:
        return again
    rng = np.random.default_rng(0)
    lists = codes_of(rng, queries, *items.T)
    moment = codes_of(rng, np.unique(times, return_inverse=True)[1])
    clicked = codes_of(rng, *clicks.T)
    _, first, counts = np.unique(lists + moment + clicked, return_index=True, return_counts=True)
    alike = _pairs(counts)
    if not alike:
        return again
    met, same_list, same_clicks = (
        _pairs(np.unique(codes, return_counts=True)[1])
        for codes in (lists + moment, lists, lists + clicked)
    )
    # Of two sessions with the same list, at different times, how often the clicks are the same.
    share = (same_clicks - alike) / max(same_list - met, 1)
    # one more pair that differs than there are: of few, by luck
    if alike * (1 - share) >= MARGIN * share * (met - alike + 1):
        again[:] = True
        again[first] = False
    return again


def _pairs(counts: NDArray[np.int64]) -> int:
    return int((counts * (counts - 1) // 2).sum())
