"""Divergences and confidence bounds, by bisection or by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable


def bernoulli_kl(p: float, q: float) -> float:
    """Return KL(p, q), which is infinite if q excludes an outcome that p allows."""
    total = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            total += a * math.log(a / b) if b > 0 else math.inf
    return total


def bisect(is_low: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return (low + high) / 2


def upper_bound(p: float, bound: float) -> float:
    """Return the largest q ≥ p with KL(p, q) ≤ bound, by Newton's method from above (KL is convex),
    or by bisection if p is 0 or 1.
    """
    if p in (0.0, 1.0):
        return bisect(lambda q: bernoulli_kl(p, q) <= bound, p, 1.0)
    entropy = -p * math.log(p) - (1 - p) * math.log1p(-p)
    q = min(p + math.sqrt(bound / 2), 1 - 2**-53)  # KL(p, q) is at least 2 (q - p)²
    for _ in range(100):  # for tiny numbers, rounding always leaves an excess
        if (
            q <= p
            or (excess := -entropy - p * math.log(q) - (1 - p) * math.log(1 - q) - bound) <= 0
        ):
            break
        lower = q - excess * q * (1 - q) / (q - p)
        if not p < lower < q:
            break
        q = lower
    return q


def lower_bound(p: float, bound: float) -> float:
    """Return the smallest q ≤ p with KL(p, q) ≤ bound, by bisection."""
    return bisect(lambda q: bernoulli_kl(p, q) > bound, 0.0, p)


def exploration(t: int, c: float = 3.0) -> float:
    """Return the confidence level log t + c log log t, or 0 if it is negative."""
    return max(0.0, math.log(t) + c * math.log(math.log(t))) if t > 1 else 0.0
