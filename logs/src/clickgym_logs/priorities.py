"""What to test first, and for how long: the gains of lists, shrunk over the queries of a log.

The list that seems best of many is not as good as it seems. So the measured gains Δ of all lists
with standard errors s are taken as draws around normally distributed true gains, of which mean and
variance are estimated by moments (DerSimonian and Laird). That shrinks each gain to
(Δ τ² + m s²) / (τ² + s²), with the variance τ² s² / (τ² + s²).

Source: DerSimonian, Laird, *Meta-analysis in clinical trials*, Controlled Clinical Trials 1986.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr

from .lists import Floats
from .log import BLOCKS
from .within_blocks import PASSED

MOST_PERIODS = 10
"""Times as long as the log that an A/B test may take."""
LEAST_IN_TEST = 20
"""Sessions of each list in a block of time of an A/B test: fewer blocks would compare them."""


def shrunken(gains: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """The mean and the standard deviation of each true gain. A single one is taken as a draw around
    0, as large as it is.

    Example:
        >>> means, deviations = shrunken(np.array([0.3, 0.1, -0.1]), np.array([0.1, 0.1, 0.1]))
        >>> means.round(3).tolist(), deviations.round(3).tolist()
        ([0.25, 0.1, -0.05], [0.087, 0.087, 0.087])
    """
    if len(gains) < 2:
        share = gains**2 / (gains**2 + errors**2)
        return share * gains, np.sqrt(share) * errors
    weights = errors**-2.0
    total = weights.sum()
    cochran = (weights * (gains - (weights * gains).sum() / total) ** 2).sum()
    between = max((cochran - len(gains) + 1) / (total - (weights**2).sum() / total), 0.0)
    mean = (gains / (between + errors**2)).sum() / (1 / (between + errors**2)).sum()
    share = between / (between + errors**2)
    return share * gains + (1 - share) * mean, np.sqrt(share) * errors


def expected_gains(means: Floats, deviations: Floats) -> Floats:
    """What is gained by a test, on average: the gain where it is positive, else 0.

    Example:
        >>> expected_gains(np.array([0.1, -0.1, 0.0]), np.array([0.0, 0.0, 0.1])).round(4)
        array([0.1   , 0.    , 0.0399])
    """
    ratio = means / np.where(deviations > 0, deviations, 1.0)
    density = np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
    gains = np.where(deviations > 0, means * ndtr(ratio) + deviations * density, means)
    return np.maximum(gains, 0.0)


def sessions_of_test(gain: float, variance: float, level: float) -> int:
    """The sessions of an A/B test, both lists together, that proves a gain at a level with
    probability `POWER`; at least `LEAST_IN_TEST` of each list in each block of time.

    Example:
        >>> sessions_of_test(0.1, 0.8, 0.005)
        5460
    """
    z = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(PASSED)
    return 2 * max(BLOCKS * LEAST_IN_TEST, math.ceil(2 * variance * (z / gain) ** 2))
