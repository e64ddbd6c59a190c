"""The distinct lists among those of many sessions, and sessions that a log has several times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Codes = NDArray[np.uint64]

MARGIN = 4
"""How many times as many pairs of sessions must be alike as chance would make."""


def codes_of(rng: np.random.Generator, *columns: NDArray[np.integer]) -> Codes:
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
    alike = int(_pairs(counts).sum())
    if not alike:
        return again
    _, single, sizes = np.unique(lists + moment, return_index=True, return_counts=True)
    met = _pairs(sizes)  # pairs of sessions of one time with the same list
    chance = _chance_alike(lists[single], clicked[single], met)
    # one more pair that differs than there are: of few, by luck
    if alike * (1 - chance) >= MARGIN * chance * (int(met.sum()) - alike + 1):
        again[:] = True
        again[first] = False
    return again


def _chance_alike(lists: Codes, clicks: Codes, met: Indices) -> float:
    """An upper bound of how often the clicks of different users who meet the same list are equal.

    Sessions of one list at different times are different users, so their pairs tell the share by
    chance. A list counts by its pairs of one time, which are to be judged, for a frequent list of
    one day may have other users than the rare lists of a year. Of n independent pairs without equal
    clicks no share below 3/n is excluded at 95 % (the rule of three); a list that was shown at one
    time tells nothing, and its users may all be alike.

    Args:
        lists, clicks: codes of one session of each list and time.
        met: the pairs of sessions of this list and time.
    """
    _, row = np.unique(lists, return_inverse=True)
    times = np.bincount(row)
    _, one, counts = np.unique(lists + clicks, return_index=True, return_counts=True)
    equal = np.bincount(row[one], _pairs(counts), len(times))
    weights = np.bincount(row, met) / met.sum()
    share = np.where(times > 1, equal / np.maximum(_pairs(times), 1), 1.0)
    unseen = 3 * (weights / np.maximum(times // 2, 1)).max()
    return float(min(1.0, weights @ share + unseen))


def _pairs(counts: Indices) -> Indices:
    """How many pairs each number of sessions has."""
    pairs: Indices = counts * (counts - 1) // 2
    return pairs
