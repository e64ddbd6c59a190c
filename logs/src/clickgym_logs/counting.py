"""Compiled passes over the sessions of a log: numbering its (query, item) pairs, and what the
estimators count.

Where a list ends before the last position, its items are followed by -1, and so are the numbers of
its pairs: nothing is counted there. The sessions are taken in the order of their queries. A pair
belongs to one query, so whatever is summed by pair can be summed for several ranges of queries at
once, with no lock and in the same order for any number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clickgym.core.kernels import entry, kernel

from .distinct import distinct

Long = NDArray[np.int64]
Ints = NDArray[np.int32]


def by_query(queries: Ints, items: Ints, n_items: int) -> tuple[Long, Long, Ints]:
    """Sort the sessions by query and number the pairs.

    Args:
        queries: ``(N,)``.
        items: ``(N, K)``, -1 below the end of a list.
        n_items: items are numbered below this.

    Returns:
        ``(N,)`` the sessions in the order of their queries; ``(P,)`` the code ``query * n_items +
        item`` of each pair, ascending; ``(N, K)`` int32 the number of the pair at each position, -1
        where there is none, sessions in that order.
    """
    order = np.argsort(queries, kind="stable")
    codes = np.empty(0, np.int64)
    codes = np.empty(
        find_pairs(queries, items, order, np.full(n_items, -1, np.int32), codes), np.int64
    )
    find_pairs(queries, items, order, np.full(n_items, -1, np.int32), codes)
    codes.sort()
    numbers = np.empty(items.shape, np.int32)
    number_pairs(queries, items, order, codes, np.empty(n_items, np.int32), numbers)
    return order, codes, numbers


@kernel
def list_length(row):  # type: ignore[no-untyped-def]
    """How many positions of a list there are, of its items or the numbers of its pairs; at least
    one.
    """
    n = len(row)
    while n > 1 and row[n - 1] < 0:
        n -= 1
    return n


@entry
def faulty_list(items, clicks, seen_in):  # type: ignore[no-untyped-def]
    """The first session whose list has an item twice, and the item; -1 for the item where there is
    none at a position that has one below it or a click, or at the first; twice -1 where all is
    well. ``seen_in`` has a -1 for each item there is.
    """
    for session in range(len(items)):
        n = list_length(items[session])
        for k in range(n):
            item = items[session, k]
            if item < 0:
                return session, -1
            if seen_in[item] == session:
                return session, item
            seen_in[item] = session
        for k in range(n, items.shape[1]):
            if clicks[session, k]:
                return session, -1
    return -1, -1


@entry
def find_pairs(queries, items, order, seen_for, codes):  # type: ignore[no-untyped-def]
    """Write the code of each pair where there is room for it, and return how many pairs there
    are.
    """
    n_pairs = 0
    for session in order:
        for k in range(items.shape[1]):
            item = items[session, k]
            if item >= 0 and seen_for[item] != queries[session]:
                seen_for[item] = queries[session]
                if n_pairs < len(codes):
                    codes[n_pairs] = np.int64(queries[session]) * len(seen_for) + item
                n_pairs += 1
    return n_pairs


@entry
def number_pairs(queries, items, order, codes, number_of, numbers):  # type: ignore[no-untyped-def]
    """Replace the items of each session, in the given order, by the numbers of their pairs."""
    n_items, next_pair, query = len(number_of), 0, -1
    for row in range(len(order)):
        session = order[row]
        if queries[session] != query:
            query = queries[session]
            while next_pair < len(codes) and codes[next_pair] // n_items == query:
                number_of[codes[next_pair] % n_items] = next_pair
                next_pair += 1
        for k in range(items.shape[1]):
            item = items[session, k]
            numbers[row, k] = number_of[item] if item >= 0 else -1


def last_clicks(clicks: NDArray[np.int8]) -> Ints:
    """``(N,)`` the position of each session's last click, -1 without clicks."""
    last = np.full(len(clicks), -1, np.int32)
    for k, clicked in enumerate(clicks.T):
        last[clicked > 0] = k
    return last


def last_clicks_above(clicks: NDArray[np.int8]) -> Ints:
    """``(N, K)`` the position, from 1, of the last click above each position; 0 where there is
    none.
    """
    marks = np.where(clicks > 0, np.arange(1, clicks.shape[1] + 1, dtype=np.int32), np.int32(0))
    return np.pad(np.maximum.accumulate(marks, axis=1)[:, :-1], ((0, 0), (1, 0)))


@entry
def count_examined(  # type: ignore[no-untyped-def]
    pairs, clicks, until_first, examined, clicked, last_of_pair, last_at, clicked_at
):
    """Count what the models that scan from the top take as certain.

    Examined is what stands down to the first click, or to the last one; everything, if there is no
    click. Clicks below that do not count. The last clicks are counted by pair and by position.
    """
    for session in range(len(pairs)):
        end = -1
        for k in range(pairs.shape[1]):
            if clicks[session, k] and not (until_first and end >= 0):
                end = k
        for k in range(list_length(pairs[session]) if end < 0 else end + 1):
            pair = pairs[session, k]
            examined[pair] += 1
            if clicks[session, k]:
                clicked[pair] += 1
                clicked_at[k] += 1
        if end >= 0:
            last_of_pair[pairs[session, end]] += 1
            last_at[end] += 1


@entry
def count_certain(  # type: ignore[no-untyped-def]
    pairs, clicks, last, by_pair, displays, clicked, skipped, passed, asked, at_end
):
    """What exact EM need not count again: displays and clicks of each pair, the skips above a last
    click (or on the first position), and of each group the clicks that were not the last, all
    clicks, and those at the end of a list. A group is a pair, or a position.
    """
    for session in range(len(pairs)):
        certain, n = max(last[session], 0), list_length(pairs[session])
        for k in range(n):
            pair = pairs[session, k]
            group = pair if by_pair else k
            displays[pair] += 1
            if clicks[session, k]:
                clicked[pair] += 1
                asked[group] += 1
                if k < last[session]:
                    passed[group] += 1
                elif k == n - 1:
                    at_end[group] += 1
            elif k <= certain:
                skipped[pair] += 1


def merge_tails(pairs: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """Merge the sessions of which exact EM sees the same: the last click, the item that it was on,
    and all items below.

    Args:
        pairs: ``(N, K)``, sorted by query.
        last: ``(N,)`` as from `last_clicks`.

    Returns:
        ``(M, K)`` pairs and ``(M,)`` last clicks of the first session of each kind, in their order,
        and ``(M,)`` how many sessions there are of each.
    """
    # Without a click all is known of the first position.
    start = np.where(last < 0, 1, last)
    tails = np.where(np.arange(pairs.shape[1]) < start[:, None], -1, pairs)
    first, _, counts = distinct(np.column_stack([last, tails]))
    order = np.argsort(first)
    first = first[order]
    return pairs[first], last[first], counts[order].astype(np.int32)


def count_cells(
    pairs: Ints, clicks: NDArray[np.int8], n_pairs: int, after_click: bool
) -> tuple[Long, Ints, Ints, Ints]:
    """Displays and clicks of each pair in each context, without the contexts in which it never
    stood.

    Args:
        pairs, clicks: ``(N, K)``.
        n_pairs: P.
        after_click: the context is the position k and the last click above it, numbered ``k * K +
            last`` with ``last`` as in `UserBrowsingModel`; else it is the position alone.

    Returns:
        ``(P + 1,)`` the first cell of each pair; then for each cell the context, the clicks, and
        the displays without click.
    """
    n_positions = pairs.shape[1]
    context = np.broadcast_to(np.arange(n_positions, dtype=np.int32), pairs.shape)
    if after_click:
        context = context * n_positions + last_clicks_above(clicks)
    shown = pairs >= 0
    shape = n_pairs, n_positions**2 if after_click else n_positions
    # A display counts 1, and a click 2**32 more, so that one pass sums both.
    counts = 1 + (clicks[shown].astype(np.int64) << 32)
    cells = sparse.coo_array((counts, (pairs[shown], context[shown])), shape).tocsr()
    clicked, displays = (part.astype(np.int32) for part in np.divmod(cells.data, 2**32))
    return cells.indptr.astype(np.int64), cells.indices, clicked, displays - clicked


def cut(first: Long, size: int) -> Long:
    """Cut a row of groups into blocks of whole groups, about ``size`` elements each.

    Args:
        first: ``(n + 1,)`` ascending, the first element of each group, and the number of elements.
        size: elements of a block, unless a single group is larger.

    Returns:
        The group with which each block begins, and n.
    """
    marks = np.searchsorted(first, np.arange(0, max(int(first[-1]), 1), size))
    return np.unique(np.append(marks, len(first) - 1)).astype(np.int64)


def in_parallel(work: Callable[[int], None], n_blocks: int) -> None:
    """Call ``work`` with the number of each block, in as many threads as there are processors."""
    if n_blocks == 1:
        work(0)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(work, range(n_blocks)))
