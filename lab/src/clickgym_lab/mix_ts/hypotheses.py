"""The hypotheses: what each says of the examination of an item, and of the clicks on a list.

In all of them a click needs an examined item that attracts. They differ in the probability b that
an item is examined, given the clicks above it:

- PBM: γ_k at position k.
- UBM: γ_kj, where j is the position of the last click.
- DBN and DCM, whose users scan from the top: b = 1 at the top, c below a click, and g b (1 - α) /
  (1 - b α) below a skip. c belongs to the clicked item (DBN) or its position (DCM).
- table: the click rate of the item at the position, shrunk to u_k + v_k α, over its attraction.
"""

from __future__ import annotations

import math

from clickgym.core.kernels import kernel

from .state import DBN, DCM, PBM, TABLE, UBM

PRIOR = 0.75
"""Clicks, and displays without a click, that each item has beforehand."""
LEAST = 1e-4
"""The smallest probability of a click, and of none."""
STEEPEST = 8.0
"""The largest derivative of log b by log g, as if b were proportional to that power of g."""
SHRINKAGE = 400.0
"""Displays by u_k + v_k α that each cell of the table has beforehand."""


@kernel
def bounded(p):  # type: ignore[no-untyped-def]
    return min(max(p, LEAST), 1.0 - LEAST)


@kernel
def estimate(state, h, i):  # type: ignore[no-untyped-def]
    """The attraction of an item."""
    s = state.total[i]
    return (s + PRIOR) / (max(s, state.exposure[h, i]) + 2.0 * PRIOR)


@kernel
def rate(state, i, k, prior, noise):  # type: ignore[no-untyped-def]
    """The click rate in a cell of the table, shrunk to a prior."""
    n, s = SHRINKAGE, SHRINKAGE * prior
    for j in range(k + 1):
        n += state.displays[i, k, j]
        s += state.clicks[i, k, j]
    return bounded(s / n + noise / math.sqrt(n + 1.0))


@kernel
def without_trust(state, i):  # type: ignore[no-untyped-def]
    """The clicks on an item that the table's law does not expect by trust alone, and the prior."""
    return max(state.total[i] - state.by_trust[i], 0.0) + PRIOR


@kernel
def source_of(state, h, i, k):  # type: ignore[no-untyped-def]
    """The source that a click on an item at a position is."""
    return 1 + i if h == DBN else len(state.total) + 2 + k


@kernel
def examine(state, ranking, clicks):  # type: ignore[no-untyped-def]
    """Write b and the estimated attractions of the shown items, and return how many those are."""
    n, j = 0, 0
    while n < len(ranking) and clicks[n] >= 0:
        i = ranking[n]
        for h in range(len(state.attraction)):
            state.attraction[h, n] = estimate(state, h, i)
        state.examined[PBM, n] = state.examination[PBM, n, 0]
        state.examined[UBM, n] = state.examination[UBM, n, j]
        a = state.attraction[TABLE, n]
        p = rate(state, i, n, state.law[n, 0] + state.law[n, 1] * a, 0.0)
        state.examined[TABLE, n] = p / a
        j = n + 1 if clicks[n] else j
        n += 1
    follow_scan(state, DBN, ranking, clicks, n)
    follow_scan(state, DCM, ranking, clicks, n)
    return n


@kernel
def follow_scan(state, h, ranking, clicks, n):  # type: ignore[no-untyped-def]
    """Follow the user down the list: write b, and count displays and clicks below each source, with
    their derivatives by log g: ``power`` is ∂log b / ∂log g.
    """
    s = h - DBN
    x = 0 if h == DBN else len(state.total) + 1
    factor, power = 1.0, 0.0
    for k in range(n):
        i, b = ranking[k], state.continuation[x] * factor
        state.examined[h, k] = b
        state.below[x, i] += factor
        state.slope[x, i] += factor * power
        if clicks[k]:
            state.clicks_below[x] += 1.0
            state.click_slope[s, i] += power
            x, factor, power = source_of(state, h, i, k), 1.0, 0.0
        else:
            a = state.attraction[h, k]
            skipped = max(1.0 - b * a, LEAST)
            factor *= state.go_on[s] * (1.0 - a) / skipped
            power = min(1.0 + power / skipped, STEEPEST)


@kernel
def count(state, ranking, clicks, n):  # type: ignore[no-untyped-def]
    """Add the clicks and displays of a session."""
    j = 0
    for k in range(n):
        i = ranking[k]
        for h in range(len(state.exposure)):
            state.exposure[h, i] += state.examined[h, k]
        state.total[i] += clicks[k]
        state.clicks[i, k, j] += clicks[k]
        state.displays[i, k, j] += 1.0
        j = k + 1 if clicks[k] else j


@kernel
def expected_clicks(state, h, row):  # type: ignore[no-untyped-def]
    """On a list, for the attractions in ``draws`` and what was drawn with them."""
    total, n = 0.0, len(row)
    if h == TABLE:
        for k in range(n):
            total += state.rates[row[k], k]
    elif h == PBM:
        for k in range(n):
            total += state.gamma[k, 0] * bounded(state.draws[row[k]])
    elif h == UBM:
        state.last[0] = 1.0
        for k in range(n):
            a, clicks = bounded(state.draws[row[k]]), 0.0
            for j in range(k + 1):
                p = state.last[j] * a * state.gamma[k, j]
                state.last[j] -= p
                clicks += p
            state.last[k + 1] = clicks
            total += clicks
    else:
        for k in range(n - 1, -1, -1):
            a = bounded(state.draws[row[k]])
            c = state.continuation[source_of(state, h, row[k], k)]
            total = a + (a * c + (1.0 - a) * state.go_on[h - DBN]) * total
    return total
