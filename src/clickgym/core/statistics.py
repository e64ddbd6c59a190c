"""Student's t: quantiles and half widths of confidence intervals."""

from __future__ import annotations

import math

__all__ = ["CONFIDENCE", "half_width", "t_quantile"]

CONFIDENCE = 0.95


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """How many standard errors half a confidence interval is wide, by Student's t.

    Args:
        freedom: degrees of freedom.
        confidence: of the interval.
    """
    from scipy.special import stdtrit  # slow to load

    return float(stdtrit(freedom, (1 + confidence) / 2))


def half_width(n: int, confidence: float = CONFIDENCE) -> float:
    """Half the width of the confidence interval of the mean of n independent values, per standard deviation of theirs.

    Args:
        n: how many; of a single value no interval can be told, and the result is nan.
        confidence: of the interval.

    Example:
        >>> round(half_width(3), 4)
        2.4841
    """
    return t_quantile(n - 1, confidence) / math.sqrt(n) if n > 1 else math.nan
