"""The state and the kernels of the agents with KL-UCB indices. The index U of an item with c clicks
in N examinations is the largest click rate q with N KL(c / N, q) ≤ b.

An index changes little from session to session, so Newton's method starts from the last index, and
one step is enough in most sessions. For two items with equal counts, the results may differ by
rounding. Indices that differ by less than `CLOSE` are therefore computed again by their definition,
which depends only on the counts and on b. The order of the items is the same as by the definition
in `solve_index`, and so are the ties.

Without these steps, an agent would compute each index with `solve_index` and then sort. A session
would take four to five times as long with 10 or 100 items (``speed/measure.py``).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ...core.kernels import kernel
from ...core.state import Floats, Ints
from .cascade_agent import examined_positions
from .kl_bounds import exploration, kl_upper, kl_upper_near, log_likelihood
from .ranking import show_at, shuffle_ties, sort_by_index

C = 3.0  # c in the papers' confidence level, log t + c log log t
CLOSE = 1e-10
"""Two indices that differ by more than this value are certainly in the correct order. The value is
several times the sum of their errors.
"""


class KLUCBState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N, the examinations of each item
    peak: Annotated[Floats, "L"]  # c log(c/N) + (N-c) log((N-c)/N), the log-likelihood at ŵ
    indices: Annotated[Floats, "L", np.inf]  # U
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    positions: Annotated[Ints, "K", range]  # the position of the k-th largest index
    feedback: int
    c: float  # the constant of the confidence level


@kernel
def level_klucb(state):
    """Return b, the level of confidence in this session."""
    return exploration(state.t[0] + 1, state.c)


@kernel
def kl_index(clicks, n, level):
    """Return the index of an item with c clicks in N > 0 examinations by its definition: the
    largest q with N KL(c / N, q) ≤ b.
    """
    return kl_upper(clicks / n, level / n)


@kernel
def solve_index(state, item, level):
    """Return an item's index by its definition, or infinity if N = 0."""
    n = state.examined[item]
    return kl_index(state.clicks[item], n, level) if n > 0 else np.inf


@kernel
def refine_index(state, item, level):
    """Return an item's index by Newton's method from the last index."""
    clicks, n = state.clicks[item], state.examined[item]
    if n == 0:
        return np.inf
    return kl_upper_near(clicks, n, state.peak[item], level, state.indices[item])


@kernel
def solve_close(state, level, count):
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
            state.indices[above] = solve_index(state, above, level)
            is_solved = True
        if (
            state.clicks[item] == state.clicks[above]
            and state.examined[item] == state.examined[above]
        ):
            state.indices[item] = state.indices[above]
        else:
            state.indices[item] = solve_index(state, item, level)


@kernel
def sort_by_kl_index(state, level, count):
    """Compute the indices of all items for the confidence level b, and sort the items.

    The first ``count`` items of ``state.order``, and all items with the same index as one of them,
    are those that `solve_index` and `sort_by_index` would give, and so are their ties.

    Args:
        state: a `KLUCBState` or a named tuple with its fields ``clicks``, ``examined``, ``peak``,
            ``indices`` and ``order``. The kernel changes the last two.
        level: the confidence level b.
        count: the number of items to choose.
    """
    for item in range(len(state.indices)):
        state.indices[item] = refine_index(state, item, level)
    sort_by_index(state.indices, state.order)
    solve_close(state, level, count)
    sort_by_index(state.indices, state.order)


@kernel
def rank_klucb(state, rng, ranking):
    sort_by_kl_index(state, level_klucb(state), len(ranking))
    shuffle_ties(state.indices, state.order, rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def learn_klucb(state, item, click):
    state.clicks[item] += click
    state.examined[item] += 1
    state.peak[item] = log_likelihood(state.clicks[item], state.examined[item])


@kernel
def update_klucb(state, ranking, clicks):
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        learn_klucb(state, ranking[k], clicks[k])


@kernel
def forget_klucb(state, item):
    """Forget the clicks and examinations of an item."""
    state.clicks[item], state.examined[item], state.peak[item] = 0, 0, 0.0
    state.indices[item] = np.inf
