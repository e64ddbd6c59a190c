"""MixTS: Thompson sampling from a mixture of click models, whose parameters it learns."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_flag
from ..core.kernels import inner, kernel
from ..envs.scan import scan
from .agent import ANY_LIST, CompiledAgent, Seed
from .bubble_rank import check_initial
from .kernels import choose_largest, rank_available, rank_by_draw
from .state import Flags, Floats, Ints

PBM, UBM, DBN, DCM, TPBM = range(5)
NAMES = ("PBM", "UBM", "DBN", "DCM", "TPBM")
N_SOURCES = 300
PRIOR = 0.75
GROWTH = 0.005
M = 2.0
FADE = 0.0005
TRIALS = 2.0
FLOOR = 0.3


class State(NamedTuple):
    clicks: Annotated[Floats, "L K K"]
    displays: Annotated[Floats, "L K K"]
    total: Annotated[Floats, "L"]
    exposure: Annotated[Floats, "5 L"]
    offset: Annotated[Floats, "L"]
    gamma: Annotated[Floats, "2 K K", 1.0]
    gamma_n: Annotated[Floats, "2 K K", M]
    # scanning: DBN
    slot: Ints  # (L,)
    owner: Ints  # (M+2,)
    f_item: Annotated[Floats, "M+2 L"]
    p_item: Annotated[Floats, "M+2 L"]
    s_item: Annotated[Floats, "M+2"]
    q_item: Annotated[Floats, "L"]
    c_item: Annotated[Floats, "M+2", 0.5]
    n_item: Annotated[Floats, "M+2", M]
    # DCM
    f_place: Annotated[Floats, "K+1 L"]
    p_place: Annotated[Floats, "K+1 L"]
    s_place: Annotated[Floats, "K+1"]
    q_place: Annotated[Floats, "L"]
    c_place: Annotated[Floats, "K+1", 0.5]
    n_place: Annotated[Floats, "K+1", M]
    go_on: Annotated[Floats, "2", 0.95]
    # TPBM
    low: Annotated[Floats, "K"]
    slope: Annotated[Floats, "K", 1.0]
    low_error: Annotated[Floats, "K"]
    slope_error: Annotated[Floats, "K"]
    evidence_for: Annotated[Floats, "5"]
    share: Annotated[Floats, "5", 0.2]
    t: Annotated[Ints, "3", (0, 0, 0)]  # displays, learned, due
    # scratch
    draws: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    places: Annotated[Ints, "5 K", range]
    row: Annotated[Ints, "K"]
    chosen: Annotated[Ints, "K"]
    attraction: Annotated[Floats, "L"]
    drawn: Annotated[Floats, "K K"]
    drawn_low: Annotated[Floats, "K"]
    after: Annotated[Floats, "K"]
    last: Annotated[Floats, "K+1"]
    gain: Floats
    onward: Floats
    ratio: Floats
    by_ratio: Ints
    values: Floats
    likelihood: Annotated[Floats, "5"]
    exam: Annotated[Floats, "5"]


@inner
def estimate(state, h, i):  # type: ignore[no-untyped-def]
    s = state.total[i]
    if h == TPBM:
        s = max(s - state.offset[i], 0.0)
    return (s + PRIOR) / (max(s, state.exposure[h, i]) + 2.0 * PRIOR)


@inner
def draw_probability(p, n, z):  # type: ignore[no-untyped-def]
    """sin²(asin √p + z / (2 √n)), continued beyond 0 and 1."""
    s = math.sin(0.5 * z / math.sqrt(n))
    c = math.sqrt(1.0 - s * s)
    a, b = math.sqrt(p), math.sqrt(max(1.0 - p, 0.0))
    root = a * c + b * s
    if root < 0.0:
        return -root * root
    if b * c - a * s < 0.0:
        return 2.0 - root * root
    return root * root


@inner
def within(p):  # type: ignore[no-untyped-def]
    return min(max(p, 1e-4), 1.0 - 1e-4)


# ------------------------------------------------------------------------------------------------ refits


@inner
def fit_table(state, h):  # type: ignore[no-untyped-def]
    """PBM, UBM: Gauss-Seidel Newton steps on the profile likelihood."""
    n, table, exposure = len(state.row), state.gamma[h], state.exposure[h]
    n_items = len(state.total)
    above, clicked, expected, largest = 1.0, M, M, 0.0
    for first in range(2):  # cells without a click above first
        for k in range(n):
            if first == 0:
                begin, end = 0, (1 if h == UBM else k + 1)
            else:
                begin, end = 1, (k + 1 if h == UBM else 1)
            for j in range(begin, end):
                stop = j + 1 if h == UBM else end
                if j > begin and h == PBM:
                    continue
                old = table[k, j]
                prior = above if first == 0 else table[k, 0] * clicked / expected
                score, info = -M * math.log(old / prior), M
                for i in range(n_items):
                    seen, s = 0.0, 0.0
                    for cell in range(j, stop):
                        seen += state.displays[i, k, cell]
                        s += state.clicks[i, k, cell]
                    if seen > 0.0:
                        w = old * seen * (state.total[i] + PRIOR) / (exposure[i] + 2.0 * PRIOR)
                        score += s - w
                        info += w * max(1.0 - w / (state.total[i] + PRIOR), 0.0)
                new = max(old * math.exp(min(max(score / info, -0.5), 0.5)), 1e-6)
                for i in range(n_items):
                    seen = 0.0
                    for cell in range(j, stop):
                        seen += state.displays[i, k, cell]
                    exposure[i] = max(exposure[i] + (new - old) * seen, 0.0)
                for cell in range(j, stop):
                    table[k, cell] = new
                    state.gamma_n[h, k, cell] = info
                largest = max(largest, new)
                if first == 0:
                    above = new
        if first == 0 and h == UBM:
            for i in range(n_items):
                alpha = (state.total[i] + PRIOR) / (exposure[i] + 2.0 * PRIOR)
                for k in range(1, n):
                    for j in range(1, k + 1):
                        clicked += state.clicks[i, k, j]
                        expected += table[k, 0] * state.displays[i, k, j] * alpha
    for k in range(n):
        for j in range(k + 1):
            table[k, j] /= largest
    for i in range(n_items):
        exposure[i] = 0.0
        for k in range(n):
            for j in range(k + 1):
                exposure[i] += table[k, j] * state.displays[i, k, j]


@inner
def fit_scan(state, h, weight, power, after, hits, c, c_n):  # type: ignore[no-untyped-def]
    exposure, g = state.exposure[h], state.go_on[h - DBN]
    n_items, n_sources = len(state.total), len(c)
    score, info = -2.0 * math.log(g), 2.0
    for i in range(n_items):
        w, wp, wpp = 0.0, 0.0, 0.0
        for x in range(n_sources):
            if weight[x, i] > 0.0:
                w += c[x] * weight[x, i]
                wp += c[x] * power[x, i]
                wpp += c[x] * power[x, i] * power[x, i] / weight[x, i]
        exposure[i] = w
        if w > 0.0:
            score += hits[i] - wp / w * state.total[i]
            info += (state.total[i] + PRIOR) / (w + 2.0 * PRIOR) * max(wpp - wp * wp / w, 0.0)
    new = min(max(g * math.exp(min(max(score / info, -0.2), 0.2)), 0.05), 0.9999)
    change = math.log(new / g)
    state.go_on[h - DBN] = new
    for i in range(n_items):
        exposure[i] = 0.0
        for x in range(n_sources):
            if weight[x, i] > 0.0:
                factor = math.exp(power[x, i] / weight[x, i] * change)
                weight[x, i] *= factor
                power[x, i] *= factor
                exposure[i] += c[x] * weight[x, i]
    clicked, expected = 2.0, 4.0
    for x in range(1, n_sources):
        c_n[x] = 0.0
        for i in range(n_items):
            if weight[x, i] > 0.0:
                c_n[x] += weight[x, i] * (state.total[i] + PRIOR) / (exposure[i] + 2.0 * PRIOR)
        clicked += after[x]
        expected += c_n[x]
    mean = min(clicked / expected, 1.0)
    for x in range(1, n_sources):
        old = c[x]
        score, info = after[x] + M * mean - M * old, M * old
        for i in range(n_items):
            if weight[x, i] > 0.0:
                w = old * weight[x, i] * (state.total[i] + PRIOR) / (exposure[i] + 2.0 * PRIOR)
                score -= w
                info += w * max(1.0 - w / (state.total[i] + PRIOR), 0.0)
        new = min(max(old * math.exp(min(max(score / info, -0.5), 0.5)), 1e-4), 1.0)
        c[x] = new
        c_n[x] = M + info / new
        for i in range(n_items):
            exposure[i] = max(exposure[i] + (new - old) * weight[x, i], 0.0)


@inner
def fit_trust(state):  # type: ignore[no-untyped-def]
    n, exposure, offset = len(state.row), state.exposure[TPBM], state.offset
    n_items = len(state.total)
    best = 0
    for k in range(n):
        w, wa, waa, wr, war = 20.0, 0.0, 0.0, 0.0, 0.0
        u, v = state.low[k], state.slope[k]
        for i in range(n_items):
            seen, s = 0.0, 0.0
            for j in range(k + 1):
                seen += state.displays[i, k, j]
                s += state.clicks[i, k, j]
            other = exposure[i] - v * seen
            if seen > 0.0 and other > 1.0:
                a = min(max((state.total[i] - s - (offset[i] - u * seen)) / other, 0.0), 1.0)
                weight = 1.0 / (1.0 / seen + v * v / other)
                w += weight
                wa += weight * a
                waa += weight * a * a
                wr += weight * s / seen
                war += weight * a * s / seen
        waa += 2.0
        war += 2.0 * v
        det = w * waa - wa * wa
        slope = (w * war - wa * wr) / det
        low = (waa * wr - wa * war) / det
        if low < 0.0:
            low, slope = 0.0, war / waa
        state.drawn_low[k], state.after[k] = low, max(slope, 0.02)
        state.low_error[k], state.slope_error[k] = math.sqrt(0.2 * waa / det), math.sqrt(0.2 * w / det)
    for k in range(n):
        if state.after[k] > state.after[best]:
            best = k
    u, v = state.drawn_low[best], state.after[best]
    for k in range(n):
        state.slope[k] = max(state.after[k] / v, 0.02)
        state.low[k] = min(max(state.drawn_low[k] - state.after[k] * u / v, 0.0), 0.9)
    for i in range(n_items):
        exposure[i], offset[i] = 0.0, 0.0
        for k in range(n):
            seen = 0.0
            for j in range(k + 1):
                seen += state.displays[i, k, j]
            exposure[i] += state.slope[k] * seen
            offset[i] += state.low[k] * seen


@inner
def weigh(state):  # type: ignore[no-untyped-def]
    best, total = 0, 0.0
    for h in range(5):
        if state.evidence_for[h] > state.evidence_for[best]:
            best = h
    top = state.evidence_for[best]
    floor = FLOOR * math.pow(max(state.t[0], 1), -2.0 / 3.0)
    for h in range(5):
        state.evidence_for[h] = (state.evidence_for[h] - top) * (1.0 - FADE)
        state.share[h] = max(math.exp(state.evidence_for[h]), floor)
        total += state.share[h]
    for h in range(5):
        state.share[h] /= total


@inner
def refit(state):  # type: ignore[no-untyped-def]
    for h in range(2):
        fit_table(state, h)
    fit_scan(state, DBN, state.f_item, state.p_item, state.s_item, state.q_item, state.c_item, state.n_item)
    fit_scan(state, DCM, state.f_place, state.p_place, state.s_place, state.q_place, state.c_place, state.n_place)
    fit_trust(state)
    weigh(state)


# -------------------------------------------------------------------------------------------------- lists


@inner
def expected_clicks(state, h):  # type: ignore[no-untyped-def]
    """Of the list ``row``, for drawn parameters."""
    n, total = len(state.row), 0.0
    if h == DCM:
        for k in range(n - 1, -1, -1):
            a = state.attraction[state.row[k]]
            total = a + (a * state.after[k] + (1.0 - a) * state.go_on[1]) * total
        return total
    if h == UBM:
        state.last[0] = 1.0
        for k in range(n):
            clicks, a = 0.0, state.attraction[state.row[k]]
            for j in range(k + 1):
                p = state.last[j] * a * state.drawn[k, j]
                state.last[j] -= p
                clicks += p
            state.last[k + 1] = clicks
            total += clicks
        return total
    for k in range(n):
        total += state.drawn_low[k] + state.after[k] * state.attraction[state.row[k]]
    return total


@inner
def swap(array, i, j):  # type: ignore[no-untyped-def]
    array[i], array[j] = array[j], array[i]


@inner
def arrange(state, h):  # type: ignore[no-untyped-def]
    n, places = len(state.row), state.places[h]
    for k in range(n):
        state.row[places[k]] = state.order[k]
    clicks, improved, rounds = expected_clicks(state, h), True, 0
    while improved and rounds < 3:
        improved = False
        rounds += 1
        for x in range(n):
            for y in range(x + 1, n):
                swap(state.row, x, y)
                more = expected_clicks(state, h)
                if more > clicks + 1e-9:
                    clicks, improved = more, True
                else:
                    swap(state.row, x, y)
    for k in range(n):
        for place in range(n):
            if state.row[place] == state.order[k]:
                places[k] = place


@inner
def draw_parameters(state, h, rng):  # type: ignore[no-untyped-def]
    n = len(state.row)
    for k in range(n):
        if h == PBM:
            state.drawn_low[k] = 0.0
            state.after[k] = min(state.gamma[0, k, 0] * math.exp(0.5 * rng.standard_normal() / math.sqrt(state.gamma_n[0, k, 0])), 1.0)
        elif h == UBM:
            for j in range(k + 1):
                state.drawn[k, j] = min(
                    state.gamma[1, k, j] * math.exp(0.5 * rng.standard_normal() / math.sqrt(state.gamma_n[1, k, j])), 1.0
                )
        elif h == DCM:
            state.after[k] = min(max(draw_probability(state.c_place[k + 1], state.n_place[k + 1], rng.standard_normal()), 0.0), 1.0)
        elif h == TPBM:
            state.drawn_low[k] = max(state.low[k] + state.low_error[k] * rng.standard_normal(), 0.0)
            state.after[k] = max(state.slope[k] + state.slope_error[k] * rng.standard_normal(), 0.02)


@inner
def arrange_scan(state, n_available, width, rng):  # type: ignore[no-untyped-def]
    n = min(4 * len(state.row), n_available)
    choose_largest(state.draws, state.order, n)
    for k in range(n):
        i = state.order[k]
        a, x = state.attraction[i], state.slot[i]
        c = min(max(draw_probability(state.c_item[x], state.n_item[x], width * rng.standard_normal()), 0.0), 1.0)
        state.gain[k], state.onward[k] = a, min(a * c + (1.0 - a) * state.go_on[0], 1.0)
    scan(state.gain[:n], state.onward[:n], 0.0, state.ratio[:n], state.by_ratio[:n], state.values[: n + 1], state.chosen)
    for k in range(len(state.row)):
        state.row[k] = state.order[state.chosen[k]]


@inner
def make_list(state, rng, available, masked, ranking):  # type: ignore[no-untyped-def]
    n, n_items = len(ranking), len(state.draws)
    state.t[0] += 1
    t = state.t[0]
    width = 1.0 / math.sqrt(1.0 + 1.0 / math.sqrt(1.0 + t / 3000.0))
    u, h = rng.random(), 0
    while h < 4 and u >= state.share[h]:
        u -= state.share[h]
        h += 1
    for i in range(n_items):
        z = width * rng.standard_normal()
        s = state.total[i]
        if h == TPBM:
            s = max(s - state.offset[i], 0.0)
            z *= math.sqrt((state.total[i] + PRIOR) / (s + PRIOR))
        m = max(s, state.exposure[h, i]) + 2.0 * PRIOR
        state.draws[i] = draw_probability((s + PRIOR) / m, m, z)
        state.attraction[i] = min(max(state.draws[i], 0.0), 1.0)
    n_available = n_items
    if masked:
        rank_available(state.draws, state.order, rng, available, n)
        n_available = available.sum()
    elif h != DBN:
        rank_by_draw(state.draws, state.order, rng, n)
    if h == DBN:
        arrange_scan(state, n_available, width, rng)
    else:
        draw_parameters(state, h, rng)
        arrange(state, h)
    if n > 1 and rng.random() < TRIALS * math.pow(t, -2.0 / 3.0):
        x = int(n * rng.random())
        y = int((n - 1) * rng.random())
        swap(state.row, x, y + (y >= x))
    for k in range(n):
        ranking[k] = state.row[k]


@kernel
def count_display(state):  # type: ignore[no-untyped-def]
    state.t[0] += 1


@kernel
def rank(state, rng, ranking):  # type: ignore[no-untyped-def]
    make_list(state, rng, state.order, False, ranking)


@kernel
def rank_among(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    make_list(state, rng, available, True, ranking)


# -------------------------------------------------------------------------------------------------- clicks


@inner
def skip(b, p, g, a):  # type: ignore[no-untyped-def]
    left = max(1.0 - b * a, 1e-4)
    return g * b * (1.0 - a) / left, min(1.0 + p / left, 8.0)


@kernel
def update(state, ranking, clicks):  # type: ignore[no-untyped-def]
    j, exam, likelihood = 0, state.exam, state.likelihood
    source, b_item, b_place, p_item, p_place = 0, 1.0, 1.0, 0.0, 0.0
    likelihood[:] = 1.0
    for k in range(len(ranking)):
        if clicks[k] > 3:
            break
        i, click = ranking[k], clicks[k] & 1
        exam[PBM], exam[UBM], exam[DBN], exam[DCM], exam[TPBM] = (
            state.gamma[0, k, j], state.gamma[1, k, j], b_item, b_place, state.slope[k]
        )
        a_item, a_place = estimate(state, DBN, i), estimate(state, DCM, i)
        if clicks[k] <= 1:
            for h in range(5):
                p = exam[h] * estimate(state, h, i)
                if h == TPBM:
                    p += state.low[k]
                p = within(p)
                likelihood[h] *= p if click else 1.0 - p
            for h in range(5):
                state.exposure[h, i] += exam[h]
            state.offset[i] += state.low[k]
            state.total[i] += click
            state.clicks[i, k, j] += click
            state.displays[i, k, j] += 1.0
            f = b_item / state.c_item[source] if source > 0 else b_item
            state.f_item[source, i] += f
            state.p_item[source, i] += f * p_item
            f = b_place / state.c_place[j] if j > 0 else b_place
            state.f_place[j, i] += f
            state.p_place[j, i] += f * p_place
            if click:
                state.s_item[source] += 1.0
                state.s_place[j] += 1.0
                state.q_item[i] += p_item
                state.q_place[i] += p_place
        if click:
            j, source, p_item, p_place = k + 1, state.slot[i], 0.0, 0.0
            b_item, b_place = state.c_item[source], state.c_place[j]
        else:
            b_item, p_item = skip(b_item, p_item, state.go_on[0], a_item)
            b_place, p_place = skip(b_place, p_place, state.go_on[1], a_place)
    for h in range(5):
        state.evidence_for[h] += math.log(likelihood[h] / likelihood[0])
    state.t[1] += 1
    if state.t[1] >= state.t[2]:
        refit(state)
        state.t[2] = state.t[1] + 1 + int(GROWTH * state.t[1])


class MixTS(CompiledAgent):
    """MixTS."""

    paper = "ours, 2026"
    told: ClassVar = {"initial": "initial_ranking"}
    learns_from = ANY_LIST
    state_type = State
    rank_kernel = rank
    rank_available_kernel = rank_among
    update_kernel = update
    count_kernel = count_display

    def __init__(self, n_items: int, n_positions: int, *, initial: ArrayLike | None = None, safe: bool = False,
                 tolerance: float = 0.2, detect: bool = True, seed: Seed = None) -> None:
        initial = check_initial(initial, n_items, n_positions)
        super().__init__(n_items, n_positions, seed, initial=initial, safe=check_flag("safe", safe), tolerance=tolerance,
                         detect=check_flag("detect", detect))

    def beliefs(self) -> dict[str, float]:
        return dict(zip(NAMES, self.state.share.tolist(), strict=True))

    def _state_sizes(self) -> dict[str, int]:
        return {"L": self.n_items, "K": self.n_positions, "M": min(self.n_items, N_SOURCES)}

    def _first_values(self) -> dict[str, Any]:
        n, k = self.n_items, self.n_positions
        m, c = min(n, N_SOURCES), min(4 * k, n)
        c_item = np.full(m + 2, 0.5)
        c_item[0] = 1.0
        c_place = np.full(k + 1, 0.5)
        c_place[0] = 1.0
        slot = np.minimum(np.arange(n) + 1, m + 1)
        return {
            "slot": slot, "owner": np.arange(-1, m + 1), "c_item": c_item, "c_place": c_place,
            "gain": np.zeros(c), "onward": np.zeros(c), "ratio": np.zeros(c), "by_ratio": np.zeros(c, np.int64),
            "values": np.zeros((c + 1, k + 1)),
        }
