"""Student's t: quantiles and half widths of intervals; Holm's correction of several tests; the worst tenth of some scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The quantile of Student's t distribution: half of a confidence interval in standard errors.

    Args:
        freedom: degrees of freedom.
        confidence: of the interval.
    """
    from scipy.special import stdtrit  # slow to load

    return float(stdtrit(freedom, (1 + confidence) / 2))


def half_width(n: int, confidence: float = CONFIDENCE) -> float:
    """Half the width of the confidence interval of a mean of n independent values, in standard deviations.

    Args:
        n: how many; of a single value no interval can be told, and the result is nan.
        confidence: of the interval.

    Example:
        >>> round(half_width(3), 4)
        2.4841
    """
    return t_quantile(n - 1, confidence) / math.sqrt(n) if n > 1 else math.nan


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Correct the p-values of several tests by Holm's procedure.

    Args:
        p_values: of the tests.

    Returns:
        As many: whoever rejects those below a level is wrong about any with at most that probability.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values)
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def worst_tenth(scores: ArrayLike) -> float:
    """The mean of the tenth of some scores that are lowest, rounded up to whole scores; nan where there are none.

    Args:
        scores: of any shape; the higher, the better. Losses are passed with a minus sign.

    Example:
        >>> worst_tenth([3.0, 1.0, 2.0]), worst_tenth(range(20))
        (1.0, 0.5)
    """
    values = np.sort(np.ravel(scores))
    return float(values[: math.ceil(values.size / 10)].mean()) if values.size else math.nan
