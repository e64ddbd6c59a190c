"""MixTS: Thompson sampling from a mixture of click models, whose parameters it learns.

Five click models are its hypotheses. All of them explain the same clicks, each with its own
probability that an item is examined, and therefore with its own estimates of the attractions:

1. *Counts.* Clicks and displays of each item by its position and by the position of the last click
   above. For users who scan, also by what was clicked last above: by the item in the DBN, by the
   position in the DCM.
2. *Fit.* Whenever there are 0.5 % more sessions, the parameters of each hypothesis take a Newton
   step on the likelihood that is left when the attractions are maximised over (the profile
   likelihood). A step that keeps the attractions as they are would creep if one list is shown for
   long, because attractions and examination then explain each other's errors.
3. *Belief.* The share of a hypothesis follows from how well it foretold the clicks of each session
   before it learned them.
4. *List.* In each session one hypothesis is drawn by its share, its parameters and the attractions
   by their posteriors, and the list with most clicks for these values is shown.
5. *Change.* Each item has a window of recent clicks, and the odds that its attraction has changed
   since.
6. *Guard.* Where a production list is given, a list is shown only if no credible hypothesis lets it
   lose too many clicks.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickgym.agents import CompiledAgent
from clickgym.agents.kernels import cholesky, choose_largest, rank_by_draw, scan
from clickgym.core.checks import as_array, check_between, check_flag, check_positions
from clickgym.core.kernels import entry, kernel
from clickgym.core.state import Floats, Ints
from clickgym.envs import check_ranking

PBM, UBM, DBN, DCM, TPBM = range(5)
HYPOTHESES = ("PBM", "UBM", "DBN", "DCM", "TPBM")
FOLLOWED = 300
"""Items at most whose own continuation is estimated; the others have one in common."""
PRIOR = 0.75
"""Clicks, and displays without a click, that each item has beforehand."""
WEIGHT = 2.0
"""The weight of the prior of an examination or continuation probability, in expected clicks."""
FLAT = 20.0
"""Displays without a click of an item that attracts nobody, which each position of the TPBM has
beforehand.
"""
NOISE = 0.2
"""The variance of a click in the TPBM."""
GROWTH = 0.005
"""Parameters are fitted anew when there are so many more sessions: as if in each one, for a
hundredth of the cost.
"""
FADE = 0.0005
"""By this share the evidence for and against hypotheses fades at each fit: that of the first
sessions is their ignorance.
"""
LEAST_SHARE = 0.1
"""Of a hypothesis at least, times t^(-2/3)."""
EXCHANGES = 2.0
"""Of two positions, with this probability times (t + 10,000)^(-2/3)."""
CALM = 5000.0
"""Sessions after which the sharpness has fallen from 2 to 1.7; it ends at 1."""
COSTS = 0.7
"""By so many clicks must a click shorten what the page below earns for an item to enter that gets
few of them.
"""
FEW = 20.0
"""Clicks below which a posterior is not sharpened much: an item without luck in its first displays
would not come back.
"""
STEEPEST = 8.0
"""The largest power of g to which an examination probability is taken to be proportional."""
RESERVE = 4
"""Of so many times K items the list may be made where users scan."""
ROUNDS = 2
"""Passes of exchanges over a list."""
TINY = 1e-9
"""Rounding error of expected clicks."""
SMALL = 1e-100
"""A likelihood below this is turned into a logarithm, before it is no number any more."""
LEAST = 1e-4
"""The smallest probability of a click, and of none."""
FIRST_CHANGE = 0.0003
"""Changes expected before the first one is seen, whenever t grows by e: an item is then tried about
once in 10⁵ sessions.
"""
FALLEN = 0.05
"""A window whose evidence of a change falls below this is closed: a change is then 20 times less
likely than none.
"""
HALF = 0.5 + 1e-9
"""A window is closed when it holds more than half of the exposure of its item, rounding apart."""
ALARM = 1000.0
"""Odds of a change above which what was learned before it is forgotten: 1 in 1,000 alarms would be
false in the model.
"""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
CREDIBLE = 0.01
"""The share of a hypothesis from which on the guard asks it."""
CERTAIN = 3.0
"""Standard deviations below the predicted clicks that the guard still counts on."""


class State(NamedTuple):
    # Of each item: counts by the position k and the position j of the last click above, from 1; 0:
    # no click above.
    clicks: Annotated[Floats, "L K K"]  # S_ikj
    displays: Annotated[Floats, "L K K"]  # N_ikj
    total: Annotated[Floats, "L"]  # S_i
    # Of each item, by hypothesis: E_hi, the sum of the examination probabilities of its displays;
    # of the TPBM, Σ v_k.
    exposure: Annotated[Floats, "5 L"]
    offset: Annotated[Floats, "L"]  # Σ u_k of the TPBM
    # PBM, UBM: γ_kj, and the Cholesky factor of the precision of its rows' logarithms.
    examination: Annotated[Floats, "2 K K", 1.0]
    precision: Annotated[Floats, "2 K K", 1.0]
    part: Annotated[Floats, "2 L K"]  # of each item: the share of its exposure on position k
    # DBN, DCM: by what was clicked last above, the source x of a display. In the DBN 0: nothing; 1
    # to M: an item; M + 1: any other item. In the DCM M + 2: nothing; then the positions.
    owner: Annotated[Ints, "M", range]  # the item of each source
    displays_after: Annotated[Floats, "X L"]  # F_xi: displays of i after x, each counted by b / c_x
    powers_after: Annotated[Floats, "X L"]  # the sum of F's terms times the powers of g in them
    clicks_after: Annotated[Floats, "X"]  # S_x
    continuation: Annotated[Floats, "X", 1.0]  # c_x; for ever 1 for nothing
    weight: Annotated[Floats, "X", WEIGHT]  # observations that c_x is worth
    click_powers: Annotated[Floats, "2 L"]  # the sum of the powers of g at the clicks on i
    go_on: Annotated[Floats, "2", 0.95]  # g
    # TPBM: a click has the probability u_k + v_k a_i.
    base: Annotated[Floats, "K"]  # u
    slope: Annotated[Floats, "K", 1.0]  # v
    middle: Annotated[Floats, "K"]  # the attraction at which the errors of u and v are independent
    base_error: Annotated[Floats, "K"]  # standard error of the rate there
    slope_error: Annotated[Floats, "K"]
    # Of the hypotheses.
    evidence: Annotated[Floats, "5"]  # log likelihoods, up to a constant
    likelihood: Annotated[Floats, "5", 1.0]  # of the latest clicks, which are not in it yet
    share: Annotated[Floats, "5", 0.2]
    leader: Annotated[Ints, "1"]  # the hypothesis with the largest share
    t: Annotated[Ints, "3"]  # sessions; those learned; those when parameters are fitted again
    # Of each item: its window, and the odds that it has changed.
    recent_total: Annotated[Floats, "L"]
    recent_exposure: Annotated[Floats, "L"]  # of the leader
    recent_offset: Annotated[Floats, "L"]  # if it is the TPBM
    # Bayes factor of the window's own attraction to that of all clicks
    change: Annotated[Floats, "L", 1.0]
    began: Annotated[Floats, "L"]  # the expected number of changes when the window began
    seen: Annotated[Floats, "L"]  # that when the item was last observed
    # expected by now; seen; the first when the last was seen
    changes: Annotated[Floats, "3", (0.0, 0.0, -1.0)]
    # Scratch.
    draws: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    row: Annotated[Ints, "K"]  # a list
    candidates: Annotated[Ints, "2K"]
    target: Annotated[Ints, "K"]  # another one
    attraction: Annotated[Floats, "L"]
    stay: Annotated[Floats, "L"]  # c of the item
    gamma: Annotated[Floats, "K K"]
    low: Annotated[Floats, "K"]
    high: Annotated[Floats, "K"]
    last: Annotated[Floats, "K+1"]
    # of those that a list of the DBN may be made of: gain, continuation, ratio
    scanned: Annotated[Floats, "3 C"]
    by_ratio: Annotated[Ints, "C"]
    values: Annotated[Floats, "C+1 K+1"]
    examined: Annotated[Floats, "5"]
    source: Annotated[Ints, "2"]
    factor: Annotated[Floats, "2"]  # b / c_x
    power: Annotated[Floats, "2"]  # of g in it
    # The production list, and hyper-parameters.
    production: Ints  # (K,)
    tolerance: float
    detect: bool
    guards: bool


# -------------------------------------------------------------------------------------- attractions


@kernel
def clicks_on(state, h, i):  # type: ignore[no-untyped-def]
    """Those that tell of the attraction: in the TPBM without those that the position gets
    anyway.
    """
    return max(state.total[i] - state.offset[i], 0.0) if h == TPBM else state.total[i]


@kernel
def estimate(state, h, i):  # type: ignore[no-untyped-def]
    s = clicks_on(state, h, i)
    return (s + PRIOR) / (max(s, state.exposure[h, i]) + 2.0 * PRIOR)


@kernel
def profile(state, h, i):  # type: ignore[no-untyped-def]
    """The attraction for which a fit is made: a small correction of S/E, without bounds."""
    return (state.total[i] + PRIOR) / (state.exposure[h, i] + 2.0 * PRIOR)


@kernel
def own_share(state, w, i):  # type: ignore[no-untyped-def]
    """Expected clicks that tell of their cell alone; the rest tells of the attraction of the
    item.
    """
    return w * max(1.0 - w / (state.total[i] + PRIOR), 0.0)


@kernel
def vary(p, d):  # type: ignore[no-untyped-def]
    """sin²(asin √p + atan d), a draw from the posterior of a probability; continued beyond 0 and
    1.
    """
    q = 1.0 - p
    drawn = (p + 2.0 * d * math.sqrt(max(p * q, 0.0)) + q * d * d) / (1.0 + d * d)
    if d < 0.0:
        return -drawn if q * d * d > p else drawn
    return 2.0 - drawn if p * d * d > q else drawn


@kernel
def bounded(p):  # type: ignore[no-untyped-def]
    return min(max(p, LEAST), 1.0 - LEAST)


# ---------------------------------------------------------------------------------------------- fit


@kernel
def step(score, information, longest):  # type: ignore[no-untyped-def]
    """The factor of a Newton step on a logarithmic scale."""
    return math.exp(min(max(score / information, -longest), longest))


@kernel
def fit_cell(state, h, k, begin, end, prior):  # type: ignore[no-untyped-def]
    """A Newton step for γ_kj, the same for begin ≤ j < end."""
    old = state.examination[h, k, begin]
    score, information = -WEIGHT * math.log(old / prior), WEIGHT
    for i in range(len(state.total)):
        n = state.displays[i, k, begin:end].sum()
        if n > 0.0:
            w = old * n * profile(state, h, i)
            score += state.clicks[i, k, begin:end].sum() - w
            information += own_share(state, w, i)
    new = max(old * step(score, information, 0.5), 1e-6)
    state.examination[h, k, begin:end] = new
    for i in range(len(state.total)):
        state.exposure[h, i] = max(
            state.exposure[h, i] + (new - old) * state.displays[i, k, begin:end].sum(), 0.0
        )
    return new


@kernel
def fit_examination(state, h):  # type: ignore[no-untyped-def]
    """PBM, UBM: γ, of which the largest is 1, because only products with attractions can be known.

    The prior of γ_k0 is about γ_(k-1)0, that of γ_kj about γ_k0 times what clicks above cost on
    average.
    """
    n, above, clicked, expected, largest = len(state.row), 1.0, WEIGHT, WEIGHT, 0.0
    for k in range(n):
        above = fit_cell(state, h, k, 0, 1 if h == UBM else k + 1, above)
        largest = max(largest, above)
    if h == UBM:
        for i in range(len(state.total)):
            for k in range(1, n):
                for j in range(1, k + 1):
                    clicked += state.clicks[i, k, j]
                    expected += (
                        state.examination[h, k, 0] * state.displays[i, k, j] * profile(state, h, i)
                    )
        for k in range(1, n):
            for j in range(1, k + 1):
                prior = state.examination[h, k, 0] * clicked / expected
                largest = max(largest, fit_cell(state, h, k, j, j + 1, prior))
    for k in range(n):
        for j in range(k + 1):
            state.examination[h, k, j] /= largest
    decompose(state, h, state.examination[h], state.precision[h])


@kernel
def decompose(state, h, gamma, root):  # type: ignore[no-untyped-def]
    """The Cholesky factor of the precision of log γ, whole rows of it, on the profile likelihood;
    and the exposures anew.
    """
    n, w = len(state.row), state.low
    root[:] = 0.0
    for k in range(n):
        root[k, k] = WEIGHT
    for i in range(len(state.total)):
        for k in range(n):
            w[k] = 0.0
            for j in range(k + 1):
                w[k] += gamma[k, j] * state.displays[i, k, j]
        state.exposure[h, i] = w.sum()
        alpha, weight = profile(state, h, i), state.exposure[h, i] + 2.0 * PRIOR
        for k in range(n):
            root[k, k] += alpha * w[k]
            state.part[h, i, k] = w[k] / weight
            for j in range(k + 1):
                root[k, j] -= alpha * w[k] * w[j] / weight
    cholesky(root, 2.0 * TINY, root)


@kernel
def fit_scan(state, h, first, end):  # type: ignore[no-untyped-def]
    """DBN, DCM: g, the probability to go on after a skip, and c_x, that after a click of the source
    x.

    The sources are those from the first one, which is nothing, up to the end. The stored displays
    are brought to the new g. Each c_x has a prior about the mean of all.
    """
    exposure, c, g = state.exposure[h], state.continuation, state.go_on[h - DBN]
    score, information, expected = -2.0 * math.log(g), 2.0, 4.0
    for i in range(len(state.total)):
        n, p, pp, after = 0.0, 0.0, 0.0, 0.0
        for x in range(first, end):
            displays, powers = state.displays_after[x, i], state.powers_after[x, i]
            if displays > 0.0:
                n += c[x] * displays
                p += c[x] * powers
                pp += c[x] * powers * powers / displays
                after += displays if x > first else 0.0
        exposure[i] = n
        expected += after * profile(state, h, i)
        if n > 0.0:
            score += state.click_powers[h - DBN, i] - p / n * state.total[i]
            information += profile(state, h, i) * max(pp - p * p / n, 0.0)
    new = min(max(g * step(score, information, 0.2), 0.05), 0.9999)
    state.go_on[h - DBN] = new
    mean = min((2.0 + state.clicks_after[first + 1 : end].sum()) / expected, 1.0)
    exposure[:] = 0.0
    for x in range(first, end):
        for i in range(len(state.total)):
            if state.displays_after[x, i] > 0.0:
                factor = math.exp(
                    state.powers_after[x, i] / state.displays_after[x, i] * math.log(new / g)
                )
                state.displays_after[x, i] *= factor
                state.powers_after[x, i] *= factor
                exposure[i] += c[x] * state.displays_after[x, i]
    for x in range(first + 1, end):
        old = c[x]
        score, information = state.clicks_after[x] + WEIGHT * (mean - old), WEIGHT * old
        for i in range(len(state.total)):
            if state.displays_after[x, i] > 0.0:
                w = old * state.displays_after[x, i] * profile(state, h, i)
                score -= w
                information += own_share(state, w, i)
        c[x] = min(max(old * step(score, information, 0.5), LEAST), 1.0)
        state.weight[x] = WEIGHT + information / c[x]
        for i in range(len(state.total)):
            exposure[i] = max(exposure[i] + (c[x] - old) * state.displays_after[x, i], 0.0)


@kernel
def fit_trust(state):  # type: ignore[no-untyped-def]
    """TPBM: u and v, by least squares; the least u/v is 0, the largest v is 1, because only u + v a
    can be known.
    """
    n, least, largest = len(state.row), np.inf, 0.0
    for k in range(n):
        u, v = state.base[k], state.slope[k]
        w, wa, waa, error, error_a = FLAT, 0.0, WEIGHT, -FLAT * u, 0.0
        for i in range(len(state.total)):
            displays = state.displays[i, k, : k + 1].sum()
            if displays > 0.0:
                exposure = state.exposure[TPBM, i] + 2.0 * PRIOR
                a = max(state.total[i] - state.offset[i] + PRIOR, 0.0) / exposure
                own = displays * max(1.0 - v * displays / exposure, 0.0)
                excess = state.clicks[i, k, : k + 1].sum() - (u + v * a) * displays
                w += own
                wa += own * a
                waa += own * a * a
                error += excess
                error_a += excess * a
        determinant = w * waa - wa * wa
        state.middle[k] = wa / w
        state.base_error[k] = math.sqrt(NOISE / w)
        state.slope_error[k] = math.sqrt(NOISE * w / determinant)
        state.base[k] = min(max(u + (waa * error - wa * error_a) / determinant, 0.0), 0.95)
        state.slope[k] = min(max(v + (w * error_a - wa * error) / determinant, 0.02), 2.0)
        for i in range(len(state.total)):
            displays = state.displays[i, k, : k + 1].sum()
            state.offset[i] += (state.base[k] - u) * displays
            state.exposure[TPBM, i] = max(
                state.exposure[TPBM, i] + (state.slope[k] - v) * displays, 0.0
            )
        least = min(least, state.base[k] / state.slope[k])
        largest = max(largest, state.slope[k])
    state.offset[:] = 0.0
    state.exposure[TPBM, :] = 0.0
    for k in range(n):
        state.base[k] -= least * state.slope[k]
        state.slope[k] = max(state.slope[k] / largest, 0.02)
        # anew: what is only brought up to date drifts away from the counts
        for i in range(len(state.total)):
            displays = state.displays[i, k, : k + 1].sum()
            state.offset[i] += state.base[k] * displays
            state.exposure[TPBM, i] += state.slope[k] * displays


@kernel
def compare_trust(state):  # type: ignore[no-untyped-def]
    """The evidence for the TPBM beside that for the PBM, which it contains: from all counts, less
    3/2 for each parameter more.

    Its estimates begin as those of the PBM and take long, so what it foretold in the first sessions
    speaks against it for ever.
    """
    state.evidence[TPBM] = state.evidence[PBM] - 1.5 * len(state.row)
    for i in range(len(state.total)):
        for k in range(len(state.row)):
            n, s = state.displays[i, k, : k + 1].sum(), state.clicks[i, k, : k + 1].sum()
            if n > 0.0:
                p = bounded(state.examination[PBM, k, 0] * estimate(state, PBM, i))
                q = bounded(state.base[k] + state.slope[k] * estimate(state, TPBM, i))
                state.evidence[TPBM] += s * math.log(q / p) + (n - s) * math.log(
                    (1.0 - q) / (1.0 - p)
                )


@kernel
def weigh_hypotheses(state):  # type: ignore[no-untyped-def]
    least, total = LEAST_SHARE * state.t[0] ** (-2.0 / 3.0), 0.0
    state.leader[0] = np.argmax(state.evidence)
    most = state.evidence[state.leader[0]]
    for h in range(len(state.share)):
        state.evidence[h] = (1.0 - FADE) * (state.evidence[h] - most)
        state.share[h] = max(math.exp(state.evidence[h]), least)
        total += state.share[h]
    for h in range(len(state.share)):
        state.share[h] /= total


@kernel
def fit(state):  # type: ignore[no-untyped-def]
    """Estimate all parameters anew. The windows keep their share of the exposures, also those of a
    new leader.
    """
    for h in range(len(state.evidence)):
        state.evidence[h] += math.log(state.likelihood[h])
        state.likelihood[h] = 1.0
    for i in range(len(state.total)):
        state.recent_exposure[i] /= max(state.exposure[state.leader[0], i], TINY)
    fit_examination(state, PBM)
    fit_examination(state, UBM)
    fit_scan(state, DBN, 0, len(state.owner) + 2)
    fit_scan(state, DCM, len(state.owner) + 2, len(state.weight))
    fit_trust(state)
    compare_trust(state)
    weigh_hypotheses(state)
    for i in range(len(state.total)):
        state.recent_offset[i] = (
            state.recent_exposure[i] * state.offset[i] if state.leader[0] == TPBM else 0.0
        )
        state.recent_exposure[i] *= state.exposure[state.leader[0], i]


# --------------------------------------------------------------------------------------------- list


@kernel
def take_parameters(state, h):  # type: ignore[no-untyped-def]
    """The estimates of a hypothesis, to be varied."""
    for k in range(len(state.row)):
        state.low[k] = state.base[k] if h == TPBM else 0.0
        state.high[k] = (
            state.slope[k]
            if h == TPBM
            else state.continuation[len(state.owner) + 3 + k]
            if h == DCM
            else 1.0
        )
        if h <= UBM:
            for j in range(k + 1):
                state.gamma[k, j] = state.examination[h, k, j]


@kernel
def draw_parameters(state, h, width, rng):  # type: ignore[no-untyped-def]
    """Around the estimates; rows of γ by the factors exp x, with x = R^-T z less its mean. ``last``
    becomes these, less 1.
    """
    take_parameters(state, h)
    n, x, mean = len(state.row), state.last, 0.0
    for k in range(n if h != DBN else 0):
        z = width * rng.standard_normal()
        x[k] = width * width * z
        if h == DCM:
            state.high[k] = bounded(
                vary(state.high[k], 0.5 * z / math.sqrt(state.weight[len(state.owner) + 3 + k]))
            )
        elif h == TPBM:
            more = state.slope_error[k] * z
            state.high[k] = max(state.high[k] + more, 0.02)
            state.low[k] += (
                width * state.base_error[k] * rng.standard_normal() - state.middle[k] * more
            )
    for k in range(n - 1 if h <= UBM else -1, -1, -1):
        for j in range(k + 1, n):
            x[k] -= state.precision[h, j, k] * x[j]
        x[k] /= state.precision[h, k, k]
        mean += x[k] / n
    for k in range(n if h <= UBM else 0):
        factor = math.exp(x[k] - mean)
        for j in range(k + 1):
            state.gamma[k, j] = min(state.gamma[k, j] * factor, 1.0)
        x[k] = factor - 1.0


@kernel
def draw_attractions(state, h, t, calm, rng):  # type: ignore[no-untyped-def]
    """A draw for each item: from all of its clicks, or, with the odds of a change, from those
    since, or from the prior.
    """
    detects, now, u = (
        state.detect and h == state.leader[0],
        state.changes[0] + rate_of_changes(state, t),
        rng.random(),
    )
    for i in range(len(state.draws)):
        s, n = clicks_on(state, h, i), state.exposure[h, i]
        noise = state.total[i] + PRIOR
        if detects:
            unseen = now - state.seen[i]
            odds = unseen + (now - state.began[i]) * state.change[i]
            u += GOLDEN  # as good as a number of its own for each item
            u -= u >= 1.0
            if u * (1.0 + odds) < unseen:
                s, n, noise = 0.0, 0.0, PRIOR
            elif u * (1.0 + odds) < odds:
                s, n = (
                    max(state.recent_total[i] - state.recent_offset[i], 0.0),
                    state.recent_exposure[i],
                )
                noise = state.recent_total[i] + PRIOR
        n = max(s, n) + 2.0 * PRIOR
        if h <= UBM:  # the exposure for the γ that was drawn
            more = 0.0
            for k in range(len(state.row)):
                more += state.last[k] * state.part[h, i, k]
            n *= 1.0 + more
        p = min((s + PRIOR) / n, 1.0 - LEAST)
        ratio = noise * (s + FEW) / (n * n * p * (s + FEW + calm * s))
        state.draws[i] = vary(p, 0.5 * math.sqrt(ratio) * rng.standard_normal())
        state.attraction[i] = bounded(state.draws[i])


@kernel
def expected_clicks(state, h, row):  # type: ignore[no-untyped-def]
    """On a list, if attractions and parameters are those of the scratch arrays."""
    total = 0.0
    if h in (DBN, DCM):
        for k in range(len(row) - 1, -1, -1):
            a, c = state.attraction[row[k]], state.high[k] if h == DCM else state.stay[row[k]]
            total = a + (a * c + (1.0 - a) * state.go_on[h - DBN]) * total
    elif h == UBM:
        state.last[0] = 1.0
        for k in range(len(row)):
            a, clicks = state.attraction[row[k]], 0.0
            for j in range(k + 1):
                p = state.last[j] * a * state.gamma[k, j]
                state.last[j] -= p
                clicks += p
            state.last[k + 1] = clicks
            total += clicks
    else:
        for k in range(len(row)):
            total += (
                state.low[k]
                + (state.high[k] if h == TPBM else state.gamma[k, 0]) * state.attraction[row[k]]
            )
    return total


@kernel
def swap(array, i, j):  # type: ignore[no-untyped-def]
    array[i], array[j] = array[j], array[i]


@kernel
def arrange_scan(state, n):  # type: ignore[no-untyped-def]
    """DBN: the best list of the first n items of the order, exactly."""
    gain, onward, ratio = state.scanned[0, :n], state.scanned[1, :n], state.scanned[2, :n]
    for m in range(n):
        i = state.order[m]
        a = state.attraction[i]
        gain[m], onward[m] = a, min(a * state.stay[i] + (1.0 - a) * state.go_on[0], 1.0)
    scan(gain, onward, 0.0, ratio, state.by_ratio[:n], state.values[: n + 1], state.target)
    for k in range(len(state.row)):
        state.row[k] = state.order[state.target[k]]


@kernel
def arrange(state, h, m):  # type: ignore[no-untyped-def]
    """The list of the first m items of the order, more than K in the DBN alone.

    In the others it is the best items in page order, of which two change places as long as this
    brings clicks. In the DCM there may be positions where a click ends more than it brings. For
    each one an item that gets few may enter.
    """
    if h == DBN:
        arrange_scan(state, m)
        return
    items, n, below = state.candidates, len(state.row), 0.0
    for k in range(n - 1, -1, -1):
        items[k] = state.order[k]
        costs = (
            h == DCM and (state.go_on[1] - state.high[k]) * below > COSTS and m < len(state.draws)
        )
        m += costs
        a = 0.0 if costs else state.attraction[items[k]]
        below = a + (a * state.high[k] + (1.0 - a) * state.go_on[1]) * below
    if m > n:
        for i in range(len(state.draws)):
            state.stay[i] = -state.draws[i]
        for k in range(n):
            state.stay[items[k]] = -np.inf
        choose_largest(state.stay, items[n:m], m - n)
    clicks = expected_clicks(state, h, items[:n])
    for _ in range(ROUNDS):
        before = clicks
        for x in range(n):
            for y in range(x + 1, m):
                swap(items, x, y)
                more = expected_clicks(state, h, items[:n])
                if more > clicks + TINY:
                    clicks = more
                else:
                    swap(items, x, y)
        if clicks == before:
            break
    for k in range(n):
        state.row[k] = items[k]


@kernel
def rank(state, rng, ranking):  # type: ignore[no-untyped-def]
    n, t = len(ranking), state.t[0] + 1
    calm = 1.0 / math.sqrt(1.0 + t / CALM)
    width = 1.0 / math.sqrt(1.0 + calm)
    u, h = rng.random(), 0
    while h < TPBM and u >= state.share[h]:
        u -= state.share[h]
        h += 1
    draw_parameters(state, h, width, rng)
    draw_attractions(state, h, t, calm, rng)
    m = min(RESERVE * n, len(state.draws)) if h == DBN else n
    rank_by_draw(state.draws, state.order, rng, m)
    if h == DBN:
        for place in range(m):
            x = source_of(state, state.order[place])
            d = 0.5 * width * rng.standard_normal() / math.sqrt(state.weight[x])
            state.stay[state.order[place]] = bounded(vary(state.continuation[x], d))
    arrange(state, h, m)
    if n > 1 and rng.random() < EXCHANGES * (t + 10000.0) ** (-2.0 / 3.0):
        x, y = int(n * rng.random()), int((n - 1) * rng.random())
        swap(state.row, x, y + (y >= x))
    if state.guards:
        guard(state)
    for k in range(n):
        ranking[k] = state.row[k]


@kernel
def find_best(state):  # type: ignore[no-untyped-def]
    """Write the leader's list, without draws, into ``row``; estimates of items that were never
    observed are 0.
    """
    h = state.leader[0]
    take_parameters(state, h)
    for i in range(len(state.draws)):
        state.draws[i] = (
            estimate(state, h, i) if state.total[i] + state.exposure[h, i] > 0.0 else 0.0
        )
        state.attraction[i], state.stay[i] = state.draws[i], state.continuation[source_of(state, i)]
    m = min(RESERVE * len(state.row), len(state.draws)) if h == DBN else len(state.row)
    choose_largest(state.draws, state.order, m)
    arrange(state, h, m)


# ------------------------------------------------------------------------------------------- clicks


@kernel
def update(state, ranking, clicks):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    state.changes[0] += rate_of_changes(state, state.t[0])
    j, common = 0, len(state.owner) + 1
    examined, source, factor, power = state.examined, state.source, state.factor, state.power
    source[0], source[1] = 0, common + 1
    factor[:], power[:] = 1.0, 0.0
    for k in range(len(ranking)):
        if clicks[k] < 0:
            break
        i, click = ranking[k], clicks[k]
        examined[PBM], examined[UBM] = state.examination[PBM, k, j], state.examination[UBM, k, j]
        examined[TPBM] = state.slope[k]
        for s in range(2):
            x, a, g = source[s], estimate(state, DBN + s, i), state.go_on[s]
            examined[DBN + s] = state.continuation[x] * factor[s]
            state.displays_after[x, i] += factor[s]
            state.powers_after[x, i] += factor[s] * power[s]
            state.clicks_after[x] += click
            state.click_powers[s, i] += click * power[s]
            # if there is no click, the user goes on:
            none = max(1.0 - examined[DBN + s] * a, LEAST)
            factor[s] *= g * (1.0 - a) / none
            power[s] = min(1.0 + power[s] / none, STEEPEST)
        foretell(state, i, click, k)
        if state.detect:
            look_for_change(state, i, click, k)
        for h in range(len(examined)):
            state.exposure[h, i] += examined[h]
        state.offset[i] += state.base[k]
        state.total[i] += click
        state.clicks[i, k, j] += click
        state.displays[i, k, j] += 1.0
        if state.detect:
            judge_window(state, i)
        if click:
            j = k + 1
            source[0], source[1] = take_source(state, i), common + 1 + j
            factor[:], power[:] = 1.0, 0.0
    state.t[1] += 1
    if state.t[1] >= state.t[2]:
        fit(state)
        state.t[2] = state.t[1] + 1 + int(GROWTH * state.t[1])


@kernel
def foretell(state, i, click, k):  # type: ignore[no-untyped-def]
    """Each hypothesis gets the probability that it gave to what happened."""
    for h in range(len(state.likelihood)):
        p = bounded(
            state.examined[h] * estimate(state, h, i) + (state.base[k] if h == TPBM else 0.0)
        )
        state.likelihood[h] *= p if click else 1.0 - p
        if state.likelihood[h] < SMALL:
            state.evidence[h] += math.log(state.likelihood[h])
            state.likelihood[h] = 1.0


@kernel
def source_of(state, i):  # type: ignore[no-untyped-def]
    """What a click on an item is: a source of its own, or, if another item has taken that, the
    common one.
    """
    m = i % len(state.owner)
    return m + 1 if state.owner[m] == i else len(state.owner) + 1


@kernel
def take_source(state, i):  # type: ignore[no-untyped-def]
    """What a click on an item is, after it has taken its source from another item that has fewer
    clicks.
    """
    m = i % len(state.owner)
    if state.total[state.owner[m]] < state.total[i]:
        release(state, m + 1)
        state.owner[m] = i
    return source_of(state, i)


@kernel
def release(state, x):  # type: ignore[no-untyped-def]
    """Add what is known of a source to the common one, whose continuation it gets."""
    common = len(state.owner) + 1
    for i in range(len(state.total)):
        state.displays_after[common, i] += state.displays_after[x, i]
        state.powers_after[common, i] += state.powers_after[x, i]
        state.displays_after[x, i], state.powers_after[x, i] = 0.0, 0.0
    state.clicks_after[common] += state.clicks_after[x]
    state.clicks_after[x] = 0.0
    state.continuation[x], state.weight[x] = state.continuation[common], WEIGHT


# ------------------------------------------------------------------------------------------- change


@kernel
def rate_of_changes(state, t):  # type: ignore[no-untyped-def]
    """How many changes are expected in the next session."""
    return (FIRST_CHANGE + state.changes[1]) / t


@kernel
def close_window(state, i, began):  # type: ignore[no-untyped-def]
    state.recent_total[i], state.recent_exposure[i], state.recent_offset[i] = 0.0, 0.0, 0.0
    state.change[i], state.began[i] = 1.0, began


@kernel
def look_for_change(state, i, click, k):  # type: ignore[no-untyped-def]
    """Evidence of an observation: how much better the window foretells it than all clicks do, as
    the leader sees it.
    """
    h, now = state.leader[0], state.changes[0]
    # An item that was away for longer than its window is old may have changed in between: the
    # window begins there.
    if state.change[i] < 1.0 and now - state.seen[i] > rate_of_changes(state, state.t[0]) * (
        1.0 + state.recent_exposure[i]
    ):
        close_window(state, i, state.seen[i])
    state.seen[i] = now
    b, u = state.examined[h], state.base[k] if h == TPBM else 0.0
    s, recent = clicks_on(state, h, i), max(state.recent_total[i] - state.recent_offset[i], 0.0)
    p = min(u + b * (1.0 + s) / (2.0 + max(s, state.exposure[h, i])), 1.0 - LEAST)
    q = min(u + b * (1.0 + recent) / (2.0 + max(recent, state.recent_exposure[i])), 1.0 - LEAST)
    state.change[i] *= q / p if click else (1.0 - q) / (1.0 - p)
    state.recent_total[i] += click
    state.recent_exposure[i] += b
    state.recent_offset[i] += u


@kernel
def judge_window(state, i):  # type: ignore[no-untyped-def]
    now = state.changes[0]
    if (
        state.change[i] < FALLEN
        or state.recent_exposure[i] > HALF * state.exposure[state.leader[0], i]
    ):
        close_window(state, i, now)
    elif (now - state.began[i]) * state.change[i] > ALARM:
        clicks = state.recent_total[i] / state.total[i] if state.total[i] > 0.0 else 0.0
        keep(state, i, clicks, state.recent_exposure[i] / state.exposure[state.leader[0], i])
        # the first item to change makes it as likely as not that the others have, too
        if state.began[i] > state.changes[2]:
            state.changes[1] += 1.0
            state.changes[2] = now
            for other in range(len(state.draws)):
                state.began[other] -= 1.0
                state.seen[other] -= 1.0
            state.seen[i] = now
        close_window(state, i, now)


@kernel
def keep(state, i, clicks, displays):  # type: ignore[no-untyped-def]
    """Keep of an item these shares of its clicks and of its displays; what follows clicks on it is
    forgotten.
    """
    common = len(state.owner) + 1
    # of the clicks after a source as many are forgotten as were expected
    for x in range(len(state.weight)):
        expected = (
            state.continuation[x]
            * state.displays_after[x, i]
            * estimate(state, DBN if x <= common else DCM, i)
        )
        state.clicks_after[x] = max(state.clicks_after[x] - (1.0 - clicks) * expected, 0.0)
        state.displays_after[x, i] *= displays
        state.powers_after[x, i] *= displays
    state.click_powers[0, i] *= clicks
    state.click_powers[1, i] *= clicks
    if source_of(state, i) < common:
        release(state, source_of(state, i))
    for k in range(len(state.row)):
        for j in range(k + 1):
            state.clicks[i, k, j] *= clicks
            state.displays[i, k, j] *= displays
    for h in range(len(state.share)):
        state.exposure[h, i] *= displays
    state.total[i] *= clicks
    state.offset[i] *= displays


# -------------------------------------------------------------------------------------------- guard


@kernel
def guard(state):  # type: ignore[no-untyped-def]
    """From production towards the list that is wanted: all at once, or else in steps, those of them
    that are safe.

    Items enter from below, in place of those that are not wanted; then neighbours change places.
    """
    row, wanted, n = state.row, state.target, len(state.row)
    if is_safe(state):
        return
    for k in range(n):
        wanted[k], row[k] = row[k], state.production[k]
    for item in wanted:
        if place_of(row, item) == n:
            k = n - 1
            while place_of(wanted, row[k]) < n:
                k -= 1
            old, row[k] = row[k], item
            if not is_safe(state):
                row[k] = old
    for x in range(1, n):
        for y in range(x, 0, -1):
            if place_of(wanted, row[y - 1]) <= place_of(wanted, row[y]):
                break
            swap(row, y - 1, y)
            if not is_safe(state):
                swap(row, y - 1, y)
                break


@kernel
def place_of(row, item):  # type: ignore[no-untyped-def]
    for k in range(len(row)):
        if row[k] == item:
            return k
    return len(row)


@kernel
def is_safe(state):  # type: ignore[no-untyped-def]
    """Whether under every credible hypothesis the list surely loses no more than it may."""
    safe = True
    for h in range(len(state.share)):
        safe = safe and (state.share[h] < CREDIBLE or surplus(state, h) > 0.0)
    return safe


@kernel
def advantage(state, h):  # type: ignore[no-untyped-def]
    return expected_clicks(state, h, state.row) - (1.0 - state.tolerance) * expected_clicks(
        state, h, state.production
    )


@kernel
def surplus(state, h):  # type: ignore[no-untyped-def]
    """A lower bound of the advantage: CERTAIN standard errors below its estimate, to first order in
    what is uncertain.

    An item that was never observed gets no clicks.
    """
    row, n, variance = state.row, len(state.row), 0.0
    take_parameters(state, h)
    for place in range(2 * n):
        i = row[place] if place < n else state.production[place - n]
        state.attraction[i] = (
            estimate(state, h, i) if state.total[i] + state.exposure[h, i] > 0.0 else 0.0
        )
        state.stay[i] = state.continuation[source_of(state, i)]
    estimated = advantage(state, h)
    for place in range(2 * n):
        i = row[place] if place < n else state.production[place - n]
        if place < n or place_of(row, i) == n:
            a, c = state.attraction[i], state.stay[i]
            state.attraction[i] = a + math.sqrt(
                a * (1.0 - a) / (state.exposure[h, i] + 2.0 * PRIOR)
            )
            variance += (advantage(state, h) - estimated) ** 2
            state.attraction[i] = a
            state.stay[i] = c + math.sqrt(c * (1.0 - c) / state.weight[source_of(state, i)])
            variance += (advantage(state, h) - estimated) ** 2
            state.stay[i] = c
    return estimated - CERTAIN * math.sqrt(variance)


def check_initial(
    name: str, initial: ArrayLike, n_items: int, n_positions: int
) -> NDArray[np.int64]:
    """Return the checked production list, of K items or of all."""
    check_positions(n_positions, n_items)
    length = n_positions if as_array(name, initial).shape == (n_positions,) else n_items
    try:
        return check_ranking(initial, n_items, length)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


class MixTS(CompiledAgent):
    """MixTS: Thompson sampling from a mixture of five click models, whose parameters it learns from
    the clicks.

    Idea:
        Agents that assume one click model can settle on a wrong list where users follow another
        one. MixTS keeps five click models as hypotheses, and estimates parameters and attractions
        of each one from the same clicks. The hypothesis that foretells clicks best leads, but in
        each session one is drawn by its share, with parameters and attractions from their
        posteriors; the list with most clicks for what was drawn is shown (Thompson sampling).
        Estimates maximise the profile likelihood, in which attractions follow the parameters, so
        that they do not creep while one list is shown. For each item recent clicks are compared
        with older ones, which are forgotten if the two contradict each other. It has no proven
        bound, needs more memory than agents for one click model, and stays close to a production
        list only with ``safe=True``.

    Algorithm:
        ::

            hypotheses h: PBM, γ_k; UBM, γ_kj; DBN, g after a skip and c_i after a click on item i; DCM, g and c_k after a
                click on position k; TPBM, a click has the probability u_k + v_k α
            S_i ← 0 and E_h(i) ← 0 for each item i: its clicks; its displays, each counted by b_h, that i was examined
            for t = 1, 2, ...:
                draw h by its share, and its parameters (but for g) around their estimates
                draw α_i from its posterior with mean (S_i + 3/4) / (E_h(i) + 3/2), in PBM and UBM with E_h(i) for the γ drawn;
                    items with many clicks as if they had 1 + 1/√(1 + t/5000) times as many, which falls from 2 to 1
                R ← the list with most expected clicks under h; with probability 2 (t + 10⁴)^(-2/3) exchange two places
                if safe: from production towards R, as far as under each h with a share of 1 % or more the expected clicks less
                    3 standard errors exceed 1 - tolerance times those of production; an item never seen gets none
                show R, observe the clicks; b_h(k) follows from the clicks above k: γ_k; γ_kj after a click on j; v_k; in DBN
                    and DCM 1 on top, c after a click, g b (1 - α) / (1 - b α) after a skip
                evidence_h ← evidence_h + log probability of the clicks under h, then S_i and E_h(i) for each shown item
                if detect: compare recent clicks with all of them, by b of the h with the largest share
                whenever t has grown by 0.5 %:
                    a Newton step for each parameter on the profile likelihood; E_h anew
                    share_h ∝ max(exp(evidence_h - the largest), 0.1 t^(-2/3))

    Args:
        n_items: L.
        n_positions: K.
        initial: the production list, of K or of all L items; ``make_agent`` fills in the
            instance's, where there is one. It matters to ``safe`` alone.
        safe: whether lists are kept from being much worse than the first K items of ``initial``, as
            far as the credible hypotheses know; without a list it changes nothing. It costs regret
            at the beginning.
        tolerance: in ``(0, 1]``, the share of the expected clicks of ``initial`` that a list may
            lose with ``safe``.
        detect: whether attractions may change.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a bad list, number or flag.

    Source: ours. The hypotheses are the click models of Craswell, Zoeter, Taylor, Ramsey, *An
    experimental comparison of click position-bias models*, WSDM 2008 (PBM); Dupret, Piwowarski, *A
    user browsing model to predict search engine click data from past observations*, SIGIR 2008
    (UBM); Chapelle, Zhang, *A dynamic Bayesian network click model for web search ranking*, WWW
    2009 (DBN); Guo, Liu, Wang, *Efficient multiple-click models in web search*, WSDM 2009 (DCM);
    and users who trust the top of the list (TPBM), as in `TrustBiasModel`.

    What decides, and is covered by tests:
        1. ``DBN`` stands for all users who scan and whose continuation depends on the clicked item:
           CM, DBN, and CCM, where it follows from the attraction. ``DCM`` contains the CM, too, and
           ``UBM`` the PBM and the CM.
        2. The TPBM contains the PBM. It is compared with it on all counts (u and v as they are
           now), less 3/2 for each of its K further parameters; the other hypotheses by what they
           foretold.
        3. No hypothesis gets a handicap. None is ever given up: its share is at least 0.1 t^(-2/3).
        4. In the DCM the least attractive items may be shown, too, above positions at which many
           users leave after a click.
        5. With more than 300 items those whose ids are alike modulo 300 share a continuation of
           their own: the one with most clicks has it, the others have the one in common.
        6. What a skip tells of the user depends on the attraction as it was before the skip was
           counted.
        7. The guard lets an item in from below, in place of one that is not wanted, and exchanges
           neighbours only as the wanted list has them: an item that it keeps out does not move
           those that stay. It knows how uncertain attractions and the continuations after items
           are, not how uncertain other parameters are.

    Memory: 2 L K² + 2 L (min(L, 300) + 2 K) + 26 L numbers and little more: 12 kB with L = 10 and K
    = 5, 26 kB with L = 20 and K = 5, 0.4 MB with L = 100 and K = 10, 6.9 MB with L = 1,000 and K =
    10.

    Example:
        >>> agent = MixTS(4, 2, seed=0)
        >>> agent.rank(None).shape
        (2,)
        >>> agent.beliefs()
        {'PBM': 0.2, 'UBM': 0.2, 'DBN': 0.2, 'DCM': 0.2, 'TPBM': 0.2}
    """

    paper = "ours, 2026"
    learns_from_any_list = True
    state_type = State
    rank_kernel = rank
    update_kernel = update

    requires = {"initial": "initial_ranking"}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        initial: ArrayLike | None = None,
        safe: bool = False,
        tolerance: float = 0.2,
        detect: bool = True,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            seed,
            initial=None
            if initial is None
            else check_initial("initial", initial, n_items, n_positions),
            safe=check_flag("safe", safe),
            tolerance=check_between("tolerance", tolerance, 0, 1, closed=True),
            detect=check_flag("detect", detect),
        )

    def beliefs(self) -> dict[str, float]:
        """Return the share of each hypothesis by the short name of its click model; they sum to
        1.
        """
        return dict(zip(HYPOTHESES, self.state.share.tolist(), strict=True))

    def best(self) -> NDArray[np.int64]:
        copies = self.state._replace(**{name: array.copy() for name, array in self.arrays.items()})
        entry(find_best)(copies)
        return copies.row

    def sizes(self) -> dict[str, int]:
        n, k = self.n_items, self.n_positions
        return {
            "L": n,
            "K": k,
            "M": min(n, FOLLOWED),
            "X": min(n, FOLLOWED) + k + 3,
            "C": min(RESERVE * k, n),
        }

    def first_values(self) -> dict[str, Any]:
        initial = self.hyperparameters["initial"]
        production = np.array(
            range(self.n_positions) if initial is None else initial[: self.n_positions], np.int64
        )
        return {
            "production": production,
            "guards": self.hyperparameters["safe"] and initial is not None,
        }
