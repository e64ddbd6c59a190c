"""Student's t: intervals and levels of significance; Holm's procedure."""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95


def t_quantile(freedom: int) -> float:
    """Return a quantile of Student's t distribution: half the width of a 95 % confidence
    interval, in standard errors.

    Args:
        freedom: degrees of freedom.
    """
    from scipy.special import stdtrit  # slow to load

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def half_width(n: int) -> float:
    """Return half the width of the 95 % confidence interval of a mean of n independent values,
    in standard deviations.

    Args:
        n: the number of values; a single value has no interval, and the result is nan.

    Example:
        >>> round(half_width(3), 4)
        2.4841
    """
    return t_quantile(n - 1) / math.sqrt(n) if n > 1 else math.nan


def t_level(mean: float, error: float, freedom: int) -> float:
    """Return the level of significance at which a mean differs from zero, by the two-sided t test.

    Args:
        mean: the mean.
        error: its standard error; if it is 0, all values are the same, and the level is 0.
        freedom: degrees of freedom.
    """
    from scipy.special import stdtr  # slow to load

    if error == 0:
        return 0.0
    return 2 * float(stdtr(freedom, -abs(mean) / error))


def holm(levels: Sequence[float]) -> list[float]:
    """Return the levels of significance of several tests, adjusted by Holm's procedure: of those
    that are at most 5 % afterwards, any is false with a probability of at most 5 %.

    Source: Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of
    Statistics 1979.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    adjusted, least = [1.0] * len(levels), 0.0
    for rank, place in enumerate(sorted(range(len(levels)), key=levels.__getitem__)):
        least = max(least, min(1.0, levels[place] * (len(levels) - rank)))
        adjusted[place] = least
    return adjusted
