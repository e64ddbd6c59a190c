"""The parameters of the hypotheses: Newton steps on the profile likelihood.

*Likelihood.* Hypothesis h says that a displayed item i is clicked with probability b(θ) α_i. Clicks
are taken for Poisson numbers, and each attraction has a Gamma prior with a = 3/4 clicks and
d = 3/2 displays beforehand (`PRIOR` and twice `PRIOR`):

    log p(clicks | θ, α) = Σ_(displays with a click) log(b α_i) - Σ_i E_i α_i
                           + Σ_i (a log α_i - d α_i),       E_i(θ) = Σ_(displays of i) b

It is largest at α_i = (S_i + a) / (E_i + d), which `profile` returns; S_i are the clicks on i. With
these attractions, and up to a constant, the *profile likelihood* is

    ℓ(θ) = Σ_(displays with a click) log b - Σ_i (S_i + a) log(E_i + d)

Steps that hold the attractions fixed would creep while one list is shown, because attractions and
examination explain each other's errors.

*Score and information*, by x = log θ for a parameter θ. With ' the derivative by x,

    ℓ'   = Σ_(displays with a click) (log b)' - Σ_i α_i E_i'
    -ℓ'' = Σ_i α_i (E_i'' - E_i'² / (E_i + d)) - Σ_(displays with a click) (log b)''

- γ_kj of the PBM and the UBM, and c_x of the DBN and the DCM, are factors of b in their cell, whose
  n_i displays (or F_xi, displays counted by b / c) give E_i' = E_i'' = w_i / α_i with the expected
  clicks w_i = θ n_i α_i:

      ℓ' = clicks - Σ_i w_i,    -ℓ'' = Σ_i w_i (1 - w_i / (S_i + a))      (`own_information`)

- g of the DBN and the DCM is in b of all items below a skip. `slope` of the state is ∂F / ∂log g,
  and `click_slope` Σ (log b)' over the clicks on an item, both summed session by session with the
  parameters of then. E_i'' is taken to be Σ_x c_x slope² / F, as if b were a power of g; a, d are
  left out:

      ℓ' = Σ_i (click_slope_i - S_i E_i' / E_i),    -ℓ'' = Σ_i α_i (E_i'' - E_i'² / E_i)

- Priors: -W/2 log²(γ / its prior) with W = `WEIGHT`; W (c₀ log c - c) with the prior c₀ of c;
  -log² g. They add -W log(γ / prior), W (c₀ - c), -2 log g to the score, and W, W c, 2 to the
  information.
- u and v of the table are fitted by least squares with attractions that follow them (`fit_law`).

A step multiplies θ by exp(ℓ' / -ℓ''), bounded (`step`).
"""

from __future__ import annotations

import math

from clickgym.core.kernels import kernel

from .hypotheses import LEAST, PRIOR, without_trust
from .state import DBN, DCM, PBM, TABLE, UBM, WEIGHT

LAW_WEIGHT = 3.0
"""Displays that u is 0 and v is that of the PBM beforehand, for each position."""
LAW_VARIANCE = 0.2
"""Of a click."""
LAW_STEP = 0.2
"""The longest step of u and v."""
LEAST_SLOPE = 0.02
"""The smallest v."""


@kernel
def fit(state):  # type: ignore[no-untyped-def]
    """One step for each parameter. Windows keep their share of the exposure."""
    n_items = len(state.total)
    for i in range(n_items):
        state.recent_exposure[i] /= max(state.exposure[state.leader[0], i], 1e-9)
    fit_examination(state, PBM)
    fit_examination(state, UBM)
    fit_scan(state, DBN, 0, n_items + 1)
    fit_scan(state, DCM, n_items + 1, len(state.continuation))
    fit_table(state)


@kernel
def profile(state, h, i):  # type: ignore[no-untyped-def]
    """The attraction at which the likelihood is largest, without bounds."""
    return (state.total[i] + PRIOR) / (state.exposure[h, i] + 2.0 * PRIOR)


@kernel
def own_information(state, w, i):  # type: ignore[no-untyped-def]
    """The information of a cell with w expected clicks; the rest of w tells of the attraction."""
    return w * max(1.0 - w / (state.total[i] + PRIOR), 0.0)


@kernel
def step(score, information, longest):  # type: ignore[no-untyped-def]
    """The factor exp(ℓ' / -ℓ'') of a Newton step, at most exp(longest)."""
    return math.exp(min(max(score / information, -longest), longest))


@kernel
def fit_cell(state, h, k, begin, end, prior):  # type: ignore[no-untyped-def]
    """A step for γ_kj, the same for begin ≤ j < end."""
    old = state.examination[h, k, begin]
    score, information = -WEIGHT * math.log(old / prior), WEIGHT
    for i in range(len(state.total)):
        n = state.displays[i, k, begin:end].sum()
        if n > 0.0:
            w = old * n * profile(state, h, i)
            score += state.clicks[i, k, begin:end].sum() - w
            information += own_information(state, w, i)
    new = max(old * step(score, information, 0.5), 1e-6)
    state.examination[h, k, begin:end] = new
    state.information[h, k] += information
    for i in range(len(state.total)):
        more = (new - old) * state.displays[i, k, begin:end].sum()
        state.exposure[h, i] = max(state.exposure[h, i] + more, 0.0)
    return new


@kernel
def fit_examination(state, h):  # type: ignore[no-untyped-def]
    """PBM and UBM: γ, of which the largest is 1, because only products with attractions are
    identifiable.

    The prior of γ_k0 is γ_(k-1)0; that of γ_kj is γ_k0 times what clicks above cost on average.
    """
    n, above, clicks, expected, largest = len(state.gamma), 1.0, WEIGHT, WEIGHT, 0.0
    state.information[h, :] = 0.0
    for k in range(n):
        above = fit_cell(state, h, k, 0, 1 if h == UBM else k + 1, above)
        largest = max(largest, above)
    if h == UBM:
        for i in range(len(state.total)):
            a = profile(state, h, i)
            for k in range(1, n):
                clicks += state.clicks[i, k, 1 : k + 1].sum()
                expected += state.examination[h, k, 0] * a * state.displays[i, k, 1 : k + 1].sum()
        for k in range(1, n):
            for j in range(1, k + 1):
                prior = state.examination[h, k, 0] * clicks / expected
                largest = max(largest, fit_cell(state, h, k, j, j + 1, prior))
    for k in range(n):
        for j in range(k + 1):
            state.examination[h, k, j] /= largest
    state.exposure[h, :] = 0.0
    for i in range(len(state.total)):
        for k in range(n):
            for j in range(k + 1):
                state.exposure[h, i] += state.examination[h, k, j] * state.displays[i, k, j]


@kernel
def fit_scan(state, h, first, end):  # type: ignore[no-untyped-def]
    """DBN and DCM: g, and the continuation c of the sources between the first, which is nothing,
    and the end.
    """
    exposure, c, g = state.exposure[h], state.continuation, state.go_on[h - DBN]
    score, information, expected = -2.0 * math.log(g), 2.0, 4.0
    for i in range(len(state.total)):
        n, p, pp, after = 0.0, 0.0, 0.0, 0.0
        for x in range(first, end):
            displays, slope = state.below[x, i], state.slope[x, i]
            if displays > 0.0:
                n += c[x] * displays
                p += c[x] * slope
                pp += c[x] * slope * slope / displays
                after += displays if x > first else 0.0
        exposure[i] = n
        expected += after * profile(state, h, i)
        if n > 0.0:
            score += state.click_slope[h - DBN, i] - p / n * state.total[i]
            information += profile(state, h, i) * max(pp - p * p / n, 0.0)
    new = min(max(g * step(score, information, 0.2), 0.05), 0.9999)
    state.go_on[h - DBN] = new
    scale_displays(state, h, first, end, math.log(new / g))
    prior = min((2.0 + state.clicks_below[first + 1 : end].sum()) / expected, 1.0)
    for x in range(first + 1, end):
        fit_continuation(state, h, x, prior)


@kernel
def scale_displays(state, h, first, end, change):  # type: ignore[no-untyped-def]
    """Bring the stored displays to the new g, and compute the exposures anew."""
    state.exposure[h, :] = 0.0
    for x in range(first, end):
        for i in range(len(state.total)):
            if state.below[x, i] > 0.0:
                factor = math.exp(state.slope[x, i] / state.below[x, i] * change)
                state.below[x, i] *= factor
                state.slope[x, i] *= factor
                state.exposure[h, i] += state.continuation[x] * state.below[x, i]


@kernel
def fit_continuation(state, h, x, prior):  # type: ignore[no-untyped-def]
    """A step for the continuation below a source."""
    old = state.continuation[x]
    score, information = state.clicks_below[x] + WEIGHT * (prior - old), WEIGHT * old
    for i in range(len(state.total)):
        if state.below[x, i] > 0.0:
            w = old * state.below[x, i] * profile(state, h, i)
            score -= w
            information += own_information(state, w, i)
    new = min(max(old * step(score, information, 0.5), LEAST), 1.0)
    state.continuation[x] = new
    for i in range(len(state.total)):
        more = (new - old) * state.below[x, i]
        state.exposure[h, i] = max(state.exposure[h, i] + more, 0.0)


@kernel
def law_attraction(state, i):  # type: ignore[no-untyped-def]
    """The attraction under the table's law, whose clicks by trust say nothing of it."""
    return without_trust(state, i) / (state.by_attraction[i] + 2.0 * PRIOR)


@kernel
def fit_table(state):  # type: ignore[no-untyped-def]
    """A step for the law of each position, and the exposures with its attractions."""
    state.by_trust[:] = 0.0
    state.by_attraction[:] = 0.0
    for k in range(len(state.gamma)):
        add_law(state, k, state.law[k, 0], state.law[k, 1])
    for k in range(len(state.gamma)):
        fit_law(state, k)
    for i in range(len(state.total)):
        exposure = (state.total[i] + PRIOR) / law_attraction(state, i) - 2.0 * PRIOR
        state.exposure[TABLE, i] = max(exposure, 0.0)


@kernel
def add_law(state, k, u, v):  # type: ignore[no-untyped-def]
    """Add u and v for all displays at a position."""
    for i in range(len(state.total)):
        n = state.displays[i, k, : k + 1].sum()
        state.by_trust[i] += n * u
        state.by_attraction[i] += n * v


@kernel
def fit_law(state, k):  # type: ignore[no-untyped-def]
    """A step for u and v of a position: least squares, with attractions that follow them. Before
    any click the law is that of the PBM.
    """
    law = state.law[k]
    u, v = law[0], law[1]
    uu, uv, vv = LAW_WEIGHT, 0.0, LAW_WEIGHT
    at_u, at_v = -LAW_WEIGHT * u, LAW_WEIGHT * (state.examination[PBM, k, 0] - v)
    for i in range(len(state.total)):
        n = state.displays[i, k, : k + 1].sum()
        if n > 0.0:
            a = law_attraction(state, i)
            w = n * max(1.0 - v * n / (state.by_attraction[i] + 2.0 * PRIOR), 0.0)
            error = state.clicks[i, k, : k + 1].sum() - n * (u + v * a)
            at_u += error
            at_v += error * a
            uu += w
            uv += w * a
            vv += w * a * a
    determinant = uu * vv - uv * uv
    du = min(max((at_u * vv - at_v * uv) / determinant, -LAW_STEP), LAW_STEP)
    dv = min(max((at_v * uu - at_u * uv) / determinant, -LAW_STEP), LAW_STEP)
    dv = max(v + dv, LEAST_SLOPE) - v
    law[0], law[1] = u + du, v + dv
    law[2] = math.sqrt(LAW_VARIANCE * vv / determinant)
    law[3] = -uv / vv * law[2]
    law[4] = math.sqrt(LAW_VARIANCE / vv)
    add_law(state, k, du, dv)
