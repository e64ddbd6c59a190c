"""Student's t: quantiles and half widths of confidence intervals."""

from __future__ import annotations

import math

__all__ = ["half_width", "t_quantile"]

CONFIDENCE = 0.95


def t_quantile(freedom: int) -> float:
    """How many standard errors half a 95 % interval is wide, by Student's t.

    Args:
        freedom: degrees of freedom.
    """
    from scipy.special import stdtrit  # slow to load

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def half_width(n: int) -> float:
    """Half the width of the 95 % interval of the mean of n independent values, per standard deviation of theirs.

    Args:
        n: how many; of a single value no interval can be told, and the result is nan.

    Example:
        >>> round(half_width(3), 4)
        2.4841
    """
    return t_quantile(n - 1) / math.sqrt(n) if n > 1 else math.nan
