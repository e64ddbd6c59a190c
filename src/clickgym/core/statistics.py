"""Student's t: quantiles and half widths of intervals."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
POWER = 7.848879734
"""``(z(0.975) + z(0.8))²``: for a two-sided test at 5 % with a power of 80 %."""


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return a quantile of Student's t distribution: half the width of a confidence interval, in
    standard errors.

    Args:
        freedom: degrees of freedom.
        confidence: the level of the interval, in (0, 1).
    """
    from scipy.special import stdtrit  # slow to load

    return float(stdtrit(freedom, (1 + confidence) / 2))


def half_width(n: int, confidence: float = CONFIDENCE) -> float:
    """Return half the width of the confidence interval of a mean of n independent values, in
    standard deviations.

    Args:
        n: the number of values; a single value has no interval, and the result is nan.
        confidence: the level of the interval, in (0, 1).

    Example:
        >>> round(half_width(3), 4)
        2.4841
    """
    return t_quantile(n - 1, confidence) / math.sqrt(n) if n > 1 else math.nan
