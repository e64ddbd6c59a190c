"""Intervals of means of weighted clicks, in closed form, and of their differences.

Weighted clicks are sums of few numbers of unequal size: their law is skewed, and where no weighted
session has a click their sample shows no variance at all. A gamma law with the mean and the
variance of the sum is skewed as they are. For the upper end one more click of the largest weight is
added to both. For equal weights these are the exact intervals of a Poisson count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtri

Floats = NDArray[np.float64]
Interval = tuple[float, float]
Users = NDArray[np.int64] | None

LEAST_CLICKS = 10
"""Fewer effective clicks tell neither better nor worse."""


def by_user(per_session: Floats, users: Users) -> Floats:
    """What sessions contribute, summed by user; as it stands without users."""
    if users is None:
        return per_session
    sums: Floats = np.bincount(users, per_session).astype(np.float64)
    return sums


def deviations(per_session: Floats, users: Users) -> Floats:
    """How far sessions lie from their mean, or the sums of this by user.

    The sum of a user with n of N sessions is multiplied by N/(N - n), because the user pulls the
    mean (a jackknife).
    """
    own = by_user(per_session - per_session.mean(), users)
    if users is None:
        return own
    numbers = np.bincount(users)
    result: Floats = own * (len(users) / np.maximum(len(users) - numbers, 1))
    return result


def interval_of_clicks(
    per_session: Floats, largest: float, level: float, variance: float = 0.0, users: Users = None
) -> Interval:
    """The interval of the mean of what sessions contribute; NaN for a single session or user.

    With the sum y of the contributions, the variance v of the sum (by user where users are known;
    at least the square of the largest contribution), and the largest weight j of a click, the ends
    are quantiles of the gamma laws of mean and variance ``y, v`` and ``y + j, v + j²``, over N.
    Without a click they are 0 and ``-log((1 - level) / 2) j / N``.

    Args:
        per_session: ``(N,)``, not negative.
        largest: the largest weight that a click could have had.
        level: confidence level.
        variance: of the sum, where more is known to vary than the sessions.
        users: ``(N,)`` the user of each session, numbered from 0; None if unknown.

    Source: Fay, Feuer, *Confidence intervals for directly standardized rates: a method based on the
        gamma distribution*, Statistics in Medicine 1997.

    Example:
        >>> clicks = np.repeat([1.0, 0.0], [2, 99_998])
        >>> low, high = interval_of_clicks(clicks, 1.0, 0.95)
        >>> round(1e5 * low, 3), round(1e5 * high, 3)  # of a Poisson count of 2
        (0.242, 7.225)
    """
    n_sessions = len(per_session)
    if len(by_user(per_session, users)) < 2:
        return np.nan, np.nan
    unit = max(largest, float(per_session.max()))  # so that squares stay in range
    sizes = per_session / unit
    total = float(sizes.sum())
    spread = max(float((deviations(sizes, users) ** 2).sum()), float(sizes.max()) ** 2)
    spread = max(spread, variance / unit / unit)
    tail, low = (1 - level) / 2, 0.0
    if spread > 0 and total > 0:
        low = spread / total * float(gammaincinv(total**2 / spread, tail))
    # The quantiles of a gamma law fall again where its deviation is many times its mean.
    normal = total - float(ndtri(tail) * np.sqrt(spread))
    total, spread = total + 1, spread + 1
    high = max(normal, spread / total * float(gammainccinv(total**2 / spread, tail)))
    return low * unit / n_sessions, high * unit / n_sessions


def interval_of_difference(
    first: float, interval: Interval, second: float, other: Interval, correlation: float
) -> Interval:
    """The interval of ``first - second``, from the interval of each and their correlation.

    Source: Zou, Donner, *Construction of confidence limits about effect measures: a general
        approach*, Statistics in Medicine 2008 (MOVER).
    """
    # For the lower end; for the upper one, where both are negative.
    one, two = np.subtract(first, interval), np.subtract(other[::-1], second)
    distance = np.sqrt(np.maximum(one**2 + two**2 - 2 * correlation * one * two, 0.0))
    return first - second - float(distance[0]), first - second + float(distance[1])


def effective_number(per_session: Floats) -> float:
    """``(Σx)²/Σx²``, how many equal contributions would vary as much as these; 0 if all are 0."""
    return float(per_session.sum() ** 2 / max((per_session**2).sum(), 1e-300))
