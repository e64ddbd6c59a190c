"""Sampling from the exact posterior of an item's attraction θ, for known examination probabilities
κ.

The log density of this posterior is ``S log θ + Σ_l (N_l - S_l) log(1 - κ_l θ)``, for an item with
S clicks in total, where the item had S_l clicks in N_l displays at position l. This log density is
concave, so rejection sampling is efficient: a hat function of three pieces lies closely above the
density, and a draw from the hat is accepted with the probability density / hat (Devroye,
*Non-uniform random variate generation*, 1986, section VII.2).

The state of `PBMTS` keeps the hat of each item until the item is shown again. If each session built
every hat, it would take 1.4 times as long with 10 items, and three times with 100 items.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.kernels import kernel

INVISIBLE = 1e-12  # a smaller decrease of the log density counts as 0
# An upper bound on the rounding error of a log density up to 10⁸ sessions; all its terms have the
# same sign.
ROUNDING = 1e-6


@kernel
def log_density(state, item, x):
    """Return the log posterior of an item's attraction at x, up to a constant."""
    result = state.clicks[item] * math.log(x) if state.clicks[item] > 0 else 0.0
    for k in range(len(state.examination)):
        if state.misses[item, k] > 0:
            result += state.misses[item, k] * math.log1p(-state.examination[k] * x)
    return result


@kernel
def slope(state, item, x):
    result = state.clicks[item] / x if state.clicks[item] > 0 else 0.0
    for k in range(len(state.examination)):
        if state.misses[item, k] > 0:
            result -= (
                state.misses[item, k] * state.examination[k] / (1.0 - state.examination[k] * x)
            )
    return result


@kernel
def curvature(state, item, x):
    """Return minus the second derivative of the log posterior at x."""
    result = state.clicks[item] / (x * x) if state.clicks[item] > 0 else 0.0
    for k in range(len(state.examination)):
        if state.misses[item, k] > 0:
            ratio = state.examination[k] / (1.0 - state.examination[k] * x)
            result += state.misses[item, k] * ratio * ratio
    return result


@kernel
def find_mode(state, item):
    """Return the mode of the posterior, the root of `slope` in [0, 1], by Newton's method within a
    shrinking bracket.
    """
    if state.clicks[item] == 0:
        return 0.0
    # if a position with κ = 1 has misses, the slope at 1 is minus infinity
    steepest = 0.0
    for k in range(len(state.examination)):
        if state.misses[item, k] > 0:
            if state.examination[k] >= 1.0:
                steepest = np.inf
            else:
                steepest += (
                    state.misses[item, k] * state.examination[k] / (1.0 - state.examination[k])
                )
    if state.clicks[item] >= steepest:
        return 1.0
    low, high, x = 0.0, 1.0, state.mode[item]
    if not 1e-30 < x < 1.0:  # not the mode, which is at least the clicks per display
        x = 0.5
    for _ in range(200):
        derivative = slope(state, item, x)
        if derivative > 0.0:
            low = x
        else:
            high = x
        step = derivative / curvature(state, item, x)
        # Steps can be short far from the root, too, namely near a pole of the slope, so their
        # length is no sign of convergence. But the log density is self-concordant: near the root,
        # slope times step is about twice the distance of the log density from its maximum, and far
        # from the root this product is not small.
        if abs(step) < 1e-12 * x and step * derivative < 1e-10:
            break
        x += step
        if not low < x < high:
            x = 0.5 * (low + high)
            if not low < x < high:
                return low  # neighbouring floats
    return x


@kernel
def build_hat(state, item):
    """Build a hat over an item's posterior for rejection sampling. The hat is flat around the mode;
    on both sides, its logarithm follows a tangent to the log density.

    The log density is concave, so every tangent lies above it and every chord below it. The
    tangents touch the log density about √2 standard deviations from the mode, where the density has
    decreased by a factor near e; most proposals are then accepted. On a side where the density
    would not decrease visibly along the tangent, the hat stays flat.

    With m the mode, f the log density and x a point where a tangent touches, relative to f(m):

    - left of m, the tangent is ``rise (y - left)``, and the chord ``-ascent (m - y)`` for y ≥ low;
    - right of m, the tangent is ``-fall (y - right)``, the chord ``-descent (y - m)`` for y ≤ high;
    - between ``left`` and ``right``, the hat is flat, and chord ≤ f ≤ hat everywhere.
    """
    mode = find_mode(state, item)
    top = log_density(state, item, mode)
    state.mode[item], state.top[item] = mode, top
    state.left[item], state.rise[item], state.before[item] = 0.0, 0.0, 0.0
    state.right[item], state.fall[item], state.after[item] = 1.0, 0.0, 0.0
    state.low[item], state.ascent[item] = mode, 0.0
    state.high[item], state.descent[item] = mode, 0.0
    falling = -slope(state, item, mode) if mode == 0.0 else 0.0
    spread = (
        1.0 / max(falling, 1.0) if mode == 0.0 else math.sqrt(2.0 / curvature(state, item, mode))
    )
    if mode > 0.0:
        x = mode - spread if spread < mode else 0.5 * mode
        rise = slope(state, item, x)
        if rise * mode > INVISIBLE and x < mode:
            drop = top - log_density(state, item, x)
            left = min(x + drop / rise, mode)
            state.left[item], state.rise[item] = left, rise
            state.before[item] = -math.expm1(-rise * left) / rise
            state.low[item], state.ascent[item] = x, drop / (mode - x)
    has_misses = False
    for k in range(len(state.examination)):
        has_misses = has_misses or state.misses[item, k] > 0
    if mode < 1.0 and has_misses:
        x = mode + spread if mode + spread < 1.0 else 0.5 * (mode + 1.0)
        fall = -slope(state, item, x) if mode < x < 1.0 else 0.0
        if fall * (1.0 - mode) > INVISIBLE:
            drop = top - log_density(state, item, x)
            right = min(max(x - drop / fall, mode), 1.0)
            state.right[item], state.fall[item] = right, fall
            state.after[item] = -math.expm1(-fall * (1.0 - right)) / fall
            state.high[item], state.descent[item] = x, drop / (x - mode)


@kernel
def draw_from_hat(state, item, rng):
    """Draw x from the hat over an item's posterior. Return x and the log of the hat at x, in units
    of the hat's top.
    """
    left, right = state.left[item], state.right[item]
    before = state.before[item]
    u = rng.random() * (before + right - left + state.after[item])
    if u < before:
        x = left + math.log1p(-u * state.rise[item]) / state.rise[item]
        return x, state.rise[item] * (x - left)
    if u < before + right - left:
        return left + u - before, 0.0
    fall = state.fall[item]
    x = right - math.log1p(-(u - before - (right - left)) * fall) / fall
    return x, fall * (right - x)


@kernel
def is_below_chord(state, item, x, height):
    """Return whether a chord shows that the log density at x is above ``height``. Computing the
    density for every proposal would take a tenth of a session with 100 items.
    """
    if not state.low[item] <= x <= state.high[item]:
        return False
    distance = x - state.mode[item]
    chord = state.ascent[item] * distance if distance < 0.0 else -state.descent[item] * distance
    return height < chord - ROUNDING


@kernel
def draw_posterior(state, item, rng):
    """Draw an item's attraction from its posterior, by rejection sampling under the hat."""
    if state.stale[item]:
        state.stale[item] = False
        build_hat(state, item)
    while True:
        x, log_hat = draw_from_hat(state, item, rng)
        if 0.0 < x < 1.0:
            height = math.log1p(-rng.random()) + log_hat  # in units of the top
            if is_below_chord(state, item, x, height):
                return x
            if height + state.top[item] <= log_density(state, item, x):
                return x
