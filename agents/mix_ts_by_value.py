"""`MixTS` where a click on item i earns w(i) instead of 1: it learns as without values, and arranges by expected value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import inner, kernel
from ..core.state import joined
from ..envs.scan import scan
from .by_value import ByValue, Values
from .kernels import choose_largest, rank_available
from .mix_ts import (
    CALM,
    DBN,
    DCM,
    EXCHANGES,
    RESERVE,
    ROUNDS,
    TINY,
    TPBM,
    UBM,
    MixTS,
    State,
    bounded,
    count_display,
    draw_attractions,
    draw_parameters,
    estimate,
    source_of,
    swap,
    take_parameters,
    vary,
)

MixTSValues = joined("MixTSValues", State, Values)


@inner
def expected_value(state, h, row):  # type: ignore[no-untyped-def]
    """Of a list, if attractions and parameters are those of the scratch arrays."""
    total, worth = 0.0, state.item_values
    if h in (DBN, DCM):
        for k in range(len(row) - 1, -1, -1):
            a, c = state.attraction[row[k]], state.high[k] if h == DCM else state.stay[row[k]]
            total = a * worth[row[k]] + (a * c + (1.0 - a) * state.go_on[h - DBN]) * total
    elif h == UBM:
        state.last[0] = 1.0
        for k in range(len(row)):
            a, clicks = state.attraction[row[k]], 0.0
            for j in range(k + 1):
                p = state.last[j] * a * state.gamma[k, j]
                state.last[j] -= p
                clicks += p
            state.last[k + 1] = clicks
            total += clicks * worth[row[k]]
    else:
        for k in range(len(row)):
            seen = state.high[k] if h == TPBM else state.gamma[k, 0]
            total += (state.low[k] + seen * state.attraction[row[k]]) * worth[row[k]]
    return total


@inner
def arrange_by_value(state, h, m):  # type: ignore[no-untyped-def]
    """The list of the first m items of the order, which is by value times attraction.

    In the DBN it is the best one. In the others it begins with the first K, and any of them changes places with any of the m as
    long as this brings value: an item of little attraction and much value may belong in the list, too.
    """
    if h == DBN:
        scan_by_value(state, m)
    else:
        exchange_by_value(state, h, m)


@inner
def scan_by_value(state, m):  # type: ignore[no-untyped-def]
    gain, onward, ratio = state.scanned[0, :m], state.scanned[1, :m], state.scanned[2, :m]
    for place in range(m):
        i = state.order[place]
        a = state.attraction[i]
        gain[place] = a * state.item_values[i]
        onward[place] = min(a * state.stay[i] + (1.0 - a) * state.go_on[0], 1.0)
    scan(gain, onward, 0.0, ratio, state.by_ratio[:m], state.values[: m + 1], state.target)
    for k in range(len(state.row)):
        state.row[k] = state.order[state.target[k]]


@inner
def exchange_by_value(state, h, m):  # type: ignore[no-untyped-def]
    n, items = len(state.row), state.candidates
    for place in range(m):
        items[place] = state.order[place]
    value = expected_value(state, h, items[:n])
    for _ in range(2 * ROUNDS):
        before = value
        for x in range(n):
            for y in range(x + 1, m):
                swap(items, x, y)
                more = expected_value(state, h, items[:n])
                if more > value + TINY:
                    value = more
                else:
                    swap(items, x, y)
        if value == before:
            break
    for k in range(n):
        state.row[k] = items[k]


@inner
def considered(state, h, n_available):  # type: ignore[no-untyped-def]
    """How many items a list is made of."""
    return min((RESERVE if h == DBN else 2) * len(state.row), n_available)


@kernel
def rank_among(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    """As that of `MixTS`, but by value."""
    n = len(ranking)
    count_display(state)
    calm = 1.0 / math.sqrt(1.0 + state.t[0] / CALM)
    width = 1.0 / math.sqrt(1.0 + calm)
    u, h = rng.random(), 0
    while h < TPBM and u >= state.share[h]:
        u -= state.share[h]
        h += 1
    draw_parameters(state, h, width, rng)
    draw_attractions(state, h, calm, rng)
    for i in range(len(state.draws)):
        state.draws[i] *= state.item_values[i]
    m = considered(state, h, available.sum())
    rank_available(state.draws, state.order, rng, available, m)
    for place in range(m if h == DBN else 0):
        x = source_of(state, state.order[place])
        d = 0.5 * width * rng.standard_normal() / math.sqrt(state.weight[x])
        state.stay[state.order[place]] = bounded(vary(state.continuation[x], d))
    arrange_by_value(state, h, m)
    if n > 1 and rng.random() < EXCHANGES * (state.t[0] + 10000.0) ** (-2.0 / 3.0):
        x, y = int(n * rng.random()), int((n - 1) * rng.random())
        swap(state.row, x, y + (y >= x))
    for k in range(n):
        ranking[k] = state.row[k]


@kernel
def rank(state, rng, ranking):  # type: ignore[no-untyped-def]
    rank_among(state, rng, state.everything, ranking)


@kernel
def find_best(state):  # type: ignore[no-untyped-def]
    """Write the leader's list, without draws, into ``row``; estimates of items that were never observed are 0."""
    h = state.leader[0]
    take_parameters(state, h)
    for i in range(len(state.draws)):
        state.attraction[i] = estimate(state, h, i) if state.total[i] + state.exposure[h, i] > 0.0 else 0.0
        state.draws[i], state.stay[i] = state.attraction[i] * state.item_values[i], state.continuation[source_of(state, i)]
    m = considered(state, h, len(state.draws))
    choose_largest(state.draws, state.order, m)
    arrange_by_value(state, h, m)


class MixTSByValue(ByValue, MixTS):
    """`MixTS` that maximises the values of clicks; made by ``MixTS(..., item_values=...)``.

    ⚠ The guard counts clicks, not values, so ``safe=True`` is refused.
    """

    state_type = MixTSValues
    rank_kernel = rank
    rank_available_kernel = rank_among

    def __init__(self, n_items: int, n_positions: int, **others: Any) -> None:
        if others.get("safe"):
            raise ValueError("safe is True with item_values; the guard of MixTS counts clicks, expected one of the two")
        super().__init__(n_items, n_positions, **others)

    def best(self) -> NDArray[np.int64]:
        copies = self.state._replace(**{name: array.copy() for name, array in self._arrays().items()})
        find_best(copies)
        return copies.row
