"""Confidence intervals and p-values from Student's t distribution, and Holm's procedure for several
tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95


def t_quantile(freedom: int) -> float:
    """Return the half-width of a 95 % confidence interval, in standard errors: a quantile of
    Student's t distribution.

    Args:
        freedom: the degrees of freedom.
    """
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def half_width(n: int) -> float:
    """Return the half-width, in standard deviations, of the 95 % confidence interval for the mean
    of n independent values.

    Args:
        n: the number of values. A single value has no interval, so the result is nan.

    Example:
        >>> round(half_width(3), 4)
        2.4841
    """
    return t_quantile(n - 1) / math.sqrt(n) if n > 1 else math.nan


def p_value(mean: float, error: float, freedom: int) -> float:
    """Return the p-value of a two-sided t test of whether a mean differs from zero.

    Args:
        mean: the mean to be tested.
        error: the standard error of the mean. If the standard error is 0, because all values are
            equal, the result is 0.
        freedom: the degrees of freedom.
    """
    from scipy.special import stdtr  # slow to import

    if error == 0:
        return 0.0
    return 2 * float(stdtr(freedom, -abs(mean) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of several tests by Holm's procedure. If you call a test significant when
    its adjusted p-value is at most 5 %, the probability of any false positive is at most 5 %.

    Source: Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of
    Statistics 1979.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    adjusted, least = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = least
    return adjusted
