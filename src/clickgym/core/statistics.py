"""Student's t: quantiles and half widths of intervals; the worst tenth of some scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95
POWER = 7.848879734
"""``(z(0.975) + z(0.8))²``: of a two-sided test at 5 % with a power of 80 %."""


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The quantile of Student's t distribution: half of a confidence interval in standard errors.

    Args:
        freedom: degrees of freedom.
        confidence: of the interval.
    """
    from scipy.special import stdtrit  # slow to load

    return float(stdtrit(freedom, (1 + confidence) / 2))


def half_width(n: int, confidence: float = CONFIDENCE) -> float:
    """Half the width of the confidence interval of a mean of n independent values, in standard
    deviations.

    Args:
        n: how many; of a single value no interval can be told, and the result is nan.
        confidence: of the interval.

    Example:
        >>> round(half_width(3), 4)
        2.4841
    """
    return t_quantile(n - 1, confidence) / math.sqrt(n) if n > 1 else math.nan


def worst_tenth(scores: ArrayLike) -> float:
    """The mean of the tenth of some scores that are lowest, rounded up to whole scores; nan where
    there are none.

    Args:
        scores: of any shape; the higher, the better. Losses are passed with a minus sign.

    Example:
        >>> worst_tenth([3.0, 1.0, 2.0]), worst_tenth(range(20))
        (1.0, 0.5)
    """
    values = np.sort(np.ravel(scores))
    return float(values[: math.ceil(values.size / 10)].mean()) if values.size else math.nan
