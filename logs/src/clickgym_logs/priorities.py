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
from .within_blocks import LEAST_SESSIONS, POWER

TEST_LEVEL = 0.025
"""The level of an A/B test, one-sided: it compares two lists once, and no list was picked."""
LEAST_OF_TEST = 3 * LEAST_SESSIONS
"""The fewest sessions of a test: chance hardly gives an arm fewer than `LEAST_SESSIONS` of them."""


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


def sessions_of_test(gain: float, variance: float, most: float) -> int | None:
    """The sessions of an A/B test, both lists together, at least `LEAST_OF_TEST`.

    The test proves a gain at `TEST_LEVEL` with the probability `POWER`; or it is as long as
    allowed, if it then still proves it more often than not.

    Args:
        gain: how much more a session earns with the one list.
        variance: of what a session earns.
        most: the most sessions that the test may take.

    Returns:
        How many; None if a test that is as long as allowed would rather miss the gain.

    Example:
        >>> sessions_of_test(0.1, 0.8, 5000), sessions_of_test(0.1, 0.8, 2000)
        (2512, 2000)
        >>> sessions_of_test(0.1, 0.8, 1000)
    """
    z = NormalDist().inv_cdf(1 - TEST_LEVEL) + NormalDist().inv_cdf(POWER)
    sessions = max(LEAST_OF_TEST, 2 * math.ceil(2 * variance * (z / gain) ** 2))
    sessions = min(sessions, math.floor(most))
    enough = sessions >= LEAST_OF_TEST and power_of_test(gain, variance, sessions) >= 0.5
    return sessions if enough else None


def power_of_test(gain: float, variance: float, sessions: int) -> float:
    """The probability that an A/B test proves a gain, half of its sessions with each list.

    Example:
        >>> round(power_of_test(0.1, 0.8, 2512), 3)
        0.8
    """
    return NormalDist().cdf(
        gain / math.sqrt(4 * variance / sessions) - NormalDist().inv_cdf(1 - TEST_LEVEL)
    )
