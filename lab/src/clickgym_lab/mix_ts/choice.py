"""The choice of a list: Thompson sampling.

A hypothesis is drawn by its share, then the attractions from their posteriors, and γ of the PBM and
the UBM, and the rates of the table. The list with most expected clicks for these values is shown.
"""

from __future__ import annotations

import math

from clickgym.agents.kernels import rank_by_draw, scan
from clickgym.core.kernels import kernel

from .change import rate_of_changes
from .hypotheses import LEAST, PRIOR, bounded, expected_clicks, rate, without_trust
from .state import DBN, DCM, RESERVE, TABLE

CALM = 5000.0
"""Sessions after which the sharpness of draws has fallen from 2 to 1.7; it ends at 1."""
FEW = 20.0
"""Clicks below which a posterior is not sharpened much: an item without luck in its first displays
would not come back.
"""
CELL_NOISE = 0.2
"""The standard deviation of the rate drawn for a cell of the table, times √(displays + 401)."""
EXCHANGES = 2.0
"""Two positions are exchanged with this probability times (t + 10,000)^(-2/3)."""
ROUNDS = 2
"""Passes of exchanges over a list."""
TINY = 1e-9
"""Rounding error of expected clicks."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@kernel
def choose(state, rng, ranking):  # type: ignore[no-untyped-def]
    """Write the list to show."""
    n, t = len(ranking), state.t[0] + 1
    calm = 1.0 / math.sqrt(1.0 + t / CALM)
    h, u = 0, rng.random()
    while h < TABLE and u >= state.share[h]:
        u -= state.share[h]
        h += 1
    arrange(state, h, n, calm, 1.0, rng)
    if n > 1 and rng.random() < EXCHANGES * (t + 10000.0) ** (-2.0 / 3.0):
        x, y = int(n * rng.random()), int((n - 1) * rng.random())
        swap(state.row, x, y + (y >= x))
    for k in range(n):
        ranking[k] = state.row[k]


@kernel
def arrange(state, h, n, calm, noise, rng):  # type: ignore[no-untyped-def]
    """Write the best list of n items for a draw into ``row``.

    Args:
        calm: what sharpens the draws.
        noise: 1; or 0 for estimates in place of draws, which are 0 for items never shown.
    """
    draw_attractions(state, h, calm, noise, rng)
    m = min(RESERVE * n if h == DBN else 2 * n, len(state.draws))
    rank_by_draw(state.draws, state.order, rng, m)
    if h == DBN:
        arrange_scan(state, n, m)
        return
    for place in range(m):
        state.row[place] = state.order[place]
    noise /= math.sqrt(1.0 + calm)
    if h == TABLE:
        draw_law(state, noise, rng)
        draw_rates(state, m, noise, rng)
    elif h != DCM:
        draw_examination(state, h, noise, rng)
    exchange(state, h, n, m if h in (DCM, TABLE) else n)


@kernel
def vary(p, d):  # type: ignore[no-untyped-def]
    """sin²(asin √p + atan d), a draw from the posterior of a probability, continued beyond 0 and
    1.
    """
    q = 1.0 - p
    drawn = (p + 2.0 * d * math.sqrt(max(p * q, 0.0)) + q * d * d) / (1.0 + d * d)
    if d < 0.0:
        return -drawn if q * d * d > p else drawn
    return 2.0 - drawn if p * d * d > q else drawn


@kernel
def draw_attractions(state, h, calm, noise, rng):  # type: ignore[no-untyped-def]
    """From all clicks of each item; with the odds of a change from those since; or from the
    prior.
    """
    detects = state.detect and h == state.leader[0] and noise > 0.0
    now, u = state.changes[0] + rate_of_changes(state), rng.random()
    for i in range(len(state.draws)):
        s, n = state.total[i], state.exposure[h, i]
        if noise == 0.0 and s + n == 0.0:
            state.draws[i] = 0.0
            continue
        if detects:
            unseen = now - state.seen[i]
            odds = unseen + (now - state.began[i]) * state.odds[i]
            u += GOLDEN  # as good as a number of its own for each item
            u -= u >= 1.0
            if u * (1.0 + odds) < unseen:
                s, n = 0.0, 0.0
            elif u * (1.0 + odds) < odds:
                s, n = state.recent_clicks[i], state.recent_exposure[i]
        n = max(s, n) + 2.0 * PRIOR
        p = min((s + PRIOR) / n, 1.0 - LEAST)
        sharp = n * (1.0 + calm * s / (s + FEW))
        if h == TABLE:  # clicks by trust say nothing of the attraction
            sharp *= (without_trust(state, i) / (state.total[i] + PRIOR)) ** 2
        state.draws[i] = vary(p, noise * 0.5 / math.sqrt(sharp) * rng.standard_normal())


@kernel
def draw_examination(state, h, noise, rng):  # type: ignore[no-untyped-def]
    """Each row of γ by a factor."""
    for k in range(len(state.gamma)):
        sd = 0.5 * noise / math.sqrt(state.information[h, k])
        factor = math.exp(sd * rng.standard_normal())
        for j in range(k + 1):
            state.gamma[k, j] = min(state.examination[h, k, j] * factor, 1.0)


@kernel
def draw_law(state, noise, rng):  # type: ignore[no-untyped-def]
    """The law of the table: u and v of each position."""
    for k in range(len(state.gamma)):
        law, z = state.law[k], noise * rng.standard_normal()
        state.drawn_law[0, k] = law[0] + law[2] * z
        state.drawn_law[1, k] = law[1] + law[3] * z + noise * law[4] * rng.standard_normal()


@kernel
def draw_rates(state, m, noise, rng):  # type: ignore[no-untyped-def]
    """The cells of the table for the items that may enter the list."""
    for place in range(m):
        i = state.row[place]
        for k in range(len(state.gamma)):
            prior = state.drawn_law[0, k] + state.drawn_law[1, k] * bounded(state.draws[i])
            z = noise * CELL_NOISE * rng.standard_normal()
            state.rates[i, k] = rate(state, i, k, prior, z)


@kernel
def swap(array, x, y):  # type: ignore[no-untyped-def]
    array[x], array[y] = array[y], array[x]


@kernel
def exchange(state, h, n, m):  # type: ignore[no-untyped-def]
    """Exchange two of the first m items as long as the list of the first n gains."""
    row = state.row
    clicks = expected_clicks(state, h, row[:n])
    for _ in range(ROUNDS):
        before = clicks
        for x in range(n):
            for y in range(x + 1, m):
                swap(row, x, y)
                more = expected_clicks(state, h, row[:n])
                if more > clicks + TINY:
                    clicks = more
                else:
                    swap(row, x, y)
        if clicks == before:
            break


@kernel
def arrange_scan(state, n, m):  # type: ignore[no-untyped-def]
    """DBN: the best list of the first m items of the order, exactly."""
    gain, onward, ratio = state.scanned[0, :m], state.scanned[1, :m], state.scanned[2, :m]
    for place in range(m):
        i = state.order[place]
        a = bounded(state.draws[i])
        gain[place] = a
        onward[place] = min(a * state.continuation[1 + i] + (1.0 - a) * state.go_on[0], 1.0)
    scan(gain, onward, 0.0, ratio, state.by_ratio[:m], state.values[: m + 1], state.row[:n])
    for k in range(n):
        state.row[k] = state.order[state.row[k]]
