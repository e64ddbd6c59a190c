"""KL-UCB indices in less time: the same order of the items as by the definition in `solve_index`,
and the same ties.

An index changes little from session to session, so Newton's method starts from the last index, and
one step is enough in most sessions. For two items with equal counts, the results may differ by
rounding. Indices that differ by less than `CLOSE` are therefore computed again by their definition,
which depends only on the counts and on b.

Without this module, an agent would compute each index with `solve_index` and then sort. A session
would take four to five times as long with 10 or 100 items (``benchmarks/speed.py``).
"""

from __future__ import annotations

import numpy as np

from ..core.kernels import kernel
from .shared_kernels import kl_upper, kl_upper_near, sort_by_index

CLOSE = 1e-10
"""Two indices that differ by more than this value are certainly in the correct order. The value is
several times the sum of their errors.
"""


@kernel
def kl_index(clicks, n, bound):
    """Return the index of an item with c clicks in N > 0 examinations by its definition: the
    largest q with N KL(c / N, q) ≤ b.
    """
    return kl_upper(clicks / n, bound / n)


@kernel
def solve_index(state, item, bound):
    """Return an item's index by its definition, or infinity if N = 0."""
    n = state.examined[item]
    return kl_index(state.clicks[item], n, bound) if n > 0 else np.inf


@kernel
def refine_index(state, item, bound):
    """Return an item's index by Newton's method from the last index."""
    clicks, n = state.clicks[item], state.examined[item]
    if n == 0:
        return np.inf
    return kl_upper_near(clicks, n, state.peak[item], bound, state.indices[item])


@kernel
def solve_close(state, bound, count):
    """Compute indices again by `solve_index` where neighbours in the sorted order are closer than
    `CLOSE`, in all runs of close indices that begin among the first ``count`` items. Items with
    equal counts share one result.
    """
    is_solved = False  # whether the index of the previous item was computed again
    for k in range(1, len(state.order)):
        above, item = state.order[k - 1], state.order[k]
        is_seen = state.indices[item] < np.inf  # if infinite, all indices above are, too
        if is_seen and state.indices[above] - state.indices[item] >= CLOSE:
            if k >= count:  # the run of this item begins below the list
                break
            is_solved = False
            continue
        if not is_solved:
            state.indices[above] = solve_index(state, above, bound)
            is_solved = True
        if (
            state.clicks[item] == state.clicks[above]
            and state.examined[item] == state.examined[above]
        ):
            state.indices[item] = state.indices[above]
        else:
            state.indices[item] = solve_index(state, item, bound)


@kernel
def sort_by_kl_index(state, bound, count):
    """Compute the indices of all items for the confidence level b, and sort the items.

    The first ``count`` items of ``state.order``, and all items with the same index as one of them,
    are those that `solve_index` and `sort_by_index` would give, and so are their ties.

    Args:
        state: a `KLUCBState` or a named tuple with its fields ``clicks``, ``examined``, ``peak``,
            ``indices`` and ``order``. The kernel changes the last two.
        bound: the confidence level b.
        count: the number of items to choose.
    """
    for item in range(len(state.indices)):
        state.indices[item] = refine_index(state, item, bound)
    sort_by_index(state.indices, state.order)
    solve_close(state, bound, count)
    sort_by_index(state.indices, state.order)
