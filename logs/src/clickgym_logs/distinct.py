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
    users: NDArray[np.int64] | None,
) -> NDArray[np.bool_]:
    """``(N,)`` which sessions repeat one above them; see `ClickLog.repeated`."""
    again = np.zeros(len(items), np.bool_)
    if times is None:
        return again
    rng = np.random.default_rng(0)
    lists = codes_of(rng, queries, *items.T)
    meetings = lists + codes_of(
        rng, (times + 0.0).view(np.int64) if times.dtype == float else times
    )
    codes, sizes = np.unique(meetings, return_counts=True)
    # Those who share time and list with others: few, unless times are coarse.
    crowd = np.flatnonzero(np.isin(meetings, codes[sizes > 1]))
    if not len(crowd):
        return again
    clicked = codes_of(rng, *clicks.T)
    alike_codes = meetings[crowd] + clicked[crowd]
    if users is not None:
        alike_codes += codes_of(rng, users[crowd])
    _, first, counts = np.unique(alike_codes, return_index=True, return_counts=True)
    alike = int(_pairs(counts).sum())
    if not alike:
        return again
    _, earliest, sizes = np.unique(meetings[crowd], return_index=True, return_counts=True)
    single = np.setdiff1d(np.arange(len(items)), np.delete(crowd, earliest), assume_unique=True)
    met = np.zeros(len(items), np.int64)
    met[crowd[earliest]] = _pairs(sizes)
    chance = _chance_alike(lists[single], clicked[single], met[single])
    # one more pair that differs than there are: of few, by luck
    if alike * (1 - chance) >= MARGIN * chance * (int(met.sum()) - alike + 1):
        again[crowd] = True
        again[crowd[first]] = False
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
    _, one, counts = np.unique(lists + clicks, return_index=True, return_counts=True)
    names, row = np.unique(lists[one], return_inverse=True)
    times = np.bincount(row, counts).astype(np.int64)
    equal = np.bincount(row, _pairs(counts))
    judged = met > 0
    of_list = np.searchsorted(names, lists[judged])
    weights = np.bincount(of_list, met[judged], len(names)) / met.sum()
    share = np.where(times > 1, equal / np.maximum(_pairs(times), 1), 1.0)
    unseen = 3 * (weights * (times > 1) / np.maximum(times // 2, 1)).max()
    return float(min(1.0, weights @ share + unseen))


def _pairs(counts: Indices) -> Indices:
    """How many pairs each number of sessions has."""
    pairs: Indices = counts * (counts - 1) // 2
    return pairs
