"""Confidence bounds by the Kullback-Leibler divergence, and the confidence level of KL-UCB."""

from __future__ import annotations

import math

import numpy as np

from ...core.kernels import kernel


@kernel
def kl(p, q):
    """Return the Kullback-Leibler divergence KL(p, q) between the Bernoulli distributions with
    means p and q, in nats.
    """
    result = 0.0
    if p > 0.0:
        result += p * math.log(p / q) if q > 0.0 else np.inf
    if p < 1.0:
        result += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else np.inf
    return max(result, 0.0)


@kernel
def kl_upper(p, bound):
    """Return the largest q ≥ p with KL(p, q) ≤ bound, up to rounding. Equal arguments always give
    the same result.

    The kernel uses Newton's method from above. KL(p, ·) is convex and increasing above p, so the
    iterates decrease to the root.
    """
    if p >= 1.0 or bound <= 0.0:
        return min(p, 1.0)
    if p <= 0.0:
        return -math.expm1(-bound)
    minus_entropy = p * math.log(p) + (1.0 - p) * math.log1p(-p)
    # Start from the smaller of two upper bounds of the root: the bound from Pinsker's inequality,
    # and the root without the term in log q.
    q = min(p + math.sqrt(0.5 * bound), -math.expm1((minus_entropy - bound) / (1.0 - p)))
    for _ in range(100):
        if not p < q < 1.0:
            break
        excess = minus_entropy - p * math.log(q) - (1.0 - p) * math.log1p(-q) - bound
        lower = q - excess * q * (1.0 - q) / (q - p)
        if not lower < q - 1e-16:
            break
        q = max(lower, p)
    return q


STEP = 1e-5
"""`kl_upper_near` stops after a step that is smaller than this fraction of (q - p) (1 - q). The
error is then below STEP² / 8.
"""


@kernel
def kl_upper_near(clicks, n, peak, bound, q):
    """Return ``kl_upper(clicks / n, bound / n)`` with an error of about 1e-11, by Newton's method
    from a value q. One step is enough if q is near. If the method does not converge, the result is
    that of `kl_upper`.

    ``peak`` is ``log_likelihood(clicks, n)``. With p = clicks / n, the result is the root of

    f(q)  = n KL(p, q) - bound = peak - clicks log q - (n - clicks) log(1 - q) - bound,
    f'(q) = n (q - p) / (q (1 - q)).

    After a step s the error is about s² f'' / 2 f' ≤ s² / (2 (q - p) (1 - q)).
    """
    p = clicks / n
    if clicks > 0:
        for _ in range(8):
            if not p < q < 1.0:
                break
            excess = peak - clicks * math.log(q) - (n - clicks) * math.log(1.0 - q) - bound
            step = excess * q * (1.0 - q) / (n * (q - p))
            q -= step
            if abs(step) < STEP * (q - p) * (1.0 - q):
                return q
    return kl_upper(p, bound / n)


@kernel
def kl_lower(p, bound):
    """Return the smallest q ≤ p with KL(p, q) ≤ bound, up to rounding."""
    return 1.0 - kl_upper(1.0 - p, bound)


@kernel
def x_log_x(x):
    """Return x log x, which is 0 for x = 0."""
    return x * math.log(x) if x > 0 else 0.0


@kernel
def log_likelihood(clicks, displays):
    """Return the maximal log-likelihood of a number of clicks in a number of displays: the
    log-likelihood under the click rate clicks / displays.
    """
    return x_log_x(clicks) + x_log_x(displays - clicks) - x_log_x(displays)


@kernel
def exploration(t, c):
    """Return the confidence level ``max(log t + c log log t, 0)`` in session t, counted from 1; for
    t = 1, the level is 0.
    """
    log_t = math.log(t)
    return max(log_t + c * math.log(log_t), 0.0) if log_t > 0.0 else 0.0
