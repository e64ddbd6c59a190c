"""Functions that number the (query, item) pairs of a log, and count the displays and clicks that
the estimators need.

If a list has fewer than K items, the remaining entries of the arrays of items and pairs are -1, and
nothing is counted there. The sessions are sorted by query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.kernels import kernel
from ...core.state import Floats, Ints

Indices = NDArray[np.int32]


class ConstantCounts(NamedTuple):
    """Counts that stay the same in all steps of exact EM, for each pair and for each group. A group
    is a pair or a position.

    Attributes:
        displays, clicked: the numbers of displays and of clicks of each pair.
        skipped: for each pair, the number of displays without a click that were certainly examined,
            because they are above the last click or on the first position.
        not_last: for each group, the number of clicks that were not the last click of a session.
        group_clicks: for each group, the number of clicks.
        at_end: for each group, the number of clicks at the end of a list.
    """

    displays: Floats
    clicked: Floats
    skipped: Floats
    not_last: Floats
    group_clicks: Floats
    at_end: Floats


class ContextCounts(NamedTuple):
    """Displays and clicks of (query, item) pairs, counted separately for each context. A pair in a
    context is called a cell.

    Attributes:
        first: ``(P + 1,)`` the index of each pair's first cell, followed by the number of cells.
        context, clicked, skipped: for each cell, the context, the number of clicks, and the number
            of displays without a click.
    """

    first: Ints
    context: Indices
    clicked: Indices
    skipped: Indices


def by_query(queries: Indices, items: Indices, n_items: int) -> tuple[Ints, Ints, Indices]:
    """Sort the sessions of a log by query, and number the (query, item) pairs.

    Args:
        queries: ``(N,)`` the query of each session.
        items: ``(N, K)`` the item at each position; -1 below the end of a list.
        n_items: the number of items.

    Returns:
        ``(N,)`` the indices that sort the sessions by query; ``(P,)`` the code ``query * n_items +
        item`` of each pair, in ascending order; and ``(N, K)`` int32 the number of the pair at each
        position of the sorted sessions, or -1 below the end of a list.
    """
    order = np.argsort(queries, kind="stable")
    sorted_items = items[order]
    pair_codes = np.where(
        sorted_items < 0, -1, queries[order, None] * np.int64(n_items) + sorted_items
    )
    codes, numbers = np.unique(pair_codes, return_inverse=True)
    n_gaps = int(codes[:1].sum() < 0)  # 1 if there are gaps, whose code is -1
    return order, codes[n_gaps:], numbers.reshape(items.shape).astype(np.int32) - n_gaps


@kernel
def list_length(row):
    """Return the number of items on a list, at least 1. ``row`` contains the list's items or pairs;
    entries below the end of the list are negative.
    """
    n = len(row)
    while n > 1 and row[n - 1] < 0:
        n -= 1
    return n


def last_clicks(clicks: NDArray[np.int8]) -> Indices:
    """Return the position of each session's last click, ``(N,)``, counted from 0; -1 for a session
    without a click.
    """
    last = np.full(len(clicks), -1, np.int32)
    for k, clicked in enumerate(clicks.T):
        last[clicked > 0] = k
    return last


def last_clicks_above(clicks: NDArray[np.int8]) -> Indices:
    """Return the position of the last click above each position, ``(N, K)``, counted from 1; 0 if
    there is no click above.
    """
    marks = np.where(clicks > 0, np.arange(1, clicks.shape[1] + 1, dtype=np.int32), np.int32(0))
    return np.pad(np.maximum.accumulate(marks, axis=1)[:, :-1], ((0, 0), (1, 0)))


def count_where(numbers: Indices, mask: NDArray[np.bool_], size: int) -> Floats:
    """Count how often each number below ``size`` occurs among the entries that a mask selects."""
    return np.bincount(numbers[mask], minlength=size).astype(np.float64)


def count_constants(
    pairs: Indices, clicks: NDArray[np.int8], last: Indices, n_pairs: int, is_by_pair: bool
) -> ConstantCounts:
    """Compute the counts that stay the same in all steps of exact EM.

    Args:
        pairs, clicks: ``(N, K)`` pairs and clicks of the sessions.
        last: ``(N,)`` the position of each session's last click, from `last_clicks`.
        n_pairs: the number of pairs, including the pair that stands for all others.
        is_by_pair: whether a group is a pair; if not, a group is a position.
    """
    positions = np.broadcast_to(np.arange(pairs.shape[1], dtype=np.int32), pairs.shape)
    groups, n_groups = (pairs, n_pairs) if is_by_pair else (positions, pairs.shape[1])
    is_shown, is_clicked, is_last = pairs >= 0, clicks > 0, positions == last[:, None]
    is_certain = positions <= np.maximum(last, 0)[:, None]
    is_end = positions == is_shown.sum(axis=1, keepdims=True) - 1
    pair_masks = (is_shown, is_clicked, is_shown & ~is_clicked & is_certain)
    group_masks = (is_clicked & ~is_last, is_clicked, is_last & is_end)
    return ConstantCounts(
        *(count_where(pairs, mask, n_pairs) for mask in pair_masks),
        *(count_where(groups, mask, n_groups) for mask in group_masks),
    )


def unique_rows(rows: NDArray[np.integer]) -> tuple[Ints, Ints, Ints]:
    """Find the distinct rows of an array of integers. Rows are compared by a random 64-bit hash,
    because sorting whole rows takes ten times as long.

    Returns:
        The index of the first occurrence of each distinct row; for every row, the number of its
        distinct row; and the number of occurrences of each distinct row.
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


def merge_tails(pairs: Indices, last: Indices) -> tuple[Indices, Indices, Indices]:
    """Merge the sessions that exact EM cannot tell apart, because they have the same last click,
    the same item at this click, and the same items below.

    Args:
        pairs: ``(N, K)`` pairs of the sessions, sorted by query.
        last: ``(N,)`` the position of each session's last click, from `last_clicks`.

    Returns:
        For each group of merged sessions, in the order of their first sessions: ``(M, K)`` the
        pairs of the first session, ``(M,)`` the position of the last click, and ``(M,)`` the number
        of sessions.
    """
    # Without a click, everything is known about the first position: it was examined and skipped.
    start = np.where(last < 0, 1, last)
    tails = np.where(np.arange(pairs.shape[1]) < start[:, None], -1, pairs)
    first, _, counts = unique_rows(np.column_stack([last, tails]))
    order = np.argsort(first)
    first = first[order]
    return pairs[first], last[first], counts[order].astype(np.int32)


def count_by_context(
    pairs: Indices, clicks: NDArray[np.int8], n_pairs: int, uses_last_click: bool
) -> ContextCounts:
    """Count the displays and clicks of each pair in each context. A context in which a pair was
    never displayed has no cell.

    Args:
        pairs, clicks: ``(N, K)`` pairs and clicks of the sessions.
        n_pairs: P, the number of pairs.
        uses_last_click: whether the context is the position k together with the last click above
            it, numbered ``k * K + last``, where ``last`` is the column of `UserBrowsingModel`; if
            not, the context is the position alone.
    """
    n_positions = pairs.shape[1]
    context = np.broadcast_to(np.arange(n_positions, dtype=np.int32), pairs.shape)
    if uses_last_click:
        context = context * n_positions + last_clicks_above(clicks)
    is_shown = pairs >= 0
    shape = n_pairs, n_positions**2 if uses_last_click else n_positions
    # A display counts 1, and a click 2**32 more, so that one pass sums both.
    counts = 1 + (clicks[is_shown].astype(np.int64) << 32)
    matrix = sparse.coo_array((counts, (pairs[is_shown], context[is_shown])), shape).tocsr()
    clicked, displays = (part.astype(np.int32) for part in np.divmod(matrix.data, 2**32))
    first = matrix.indptr.astype(np.int64)
    return ContextCounts(first, matrix.indices, clicked, displays - clicked)
