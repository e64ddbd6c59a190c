"""Bootstrap over sessions: percentile intervals of means of sessions drawn with replacement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

Floats = NDArray[np.float64]


def interval_of_mean(
    per_session: Floats, *, level: float, seed: int, resamples: int = 1000
) -> tuple[float, float]:
    """The percentile interval of the mean of what sessions contribute; NaN for a single session.

    Sessions that contribute the same are drawn together: how often each kind comes up in N draws is
    multinomial. The same seed gives the same draws.

    ⚠ Percentiles of few contributions are too narrow, so they are those at which Student's
    distribution would have the level: with n effective contributions, at Φ(√(n/(n-1)) t).

    Args:
        per_session: ``(N,)``.
        level: confidence level.
        seed: of the draws.
        resamples: how many times N sessions are drawn.

    Source: Hesterberg, *What teachers should know about the bootstrap*, The American
        Statistician 2015.
    """
    n_sessions = len(per_session)
    if n_sessions < 2:
        return np.nan, np.nan
    rng = np.random.default_rng(seed)
    kinds, counts = np.unique(per_session, return_counts=True)
    means = np.empty(resamples)
    block = 1 + 2**22 // len(kinds)  # bounds the memory; the numbers drawn do not depend on it
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        draws = rng.multinomial(n_sessions, counts / n_sessions, size)
        means[start : start + size] = draws @ kinds / n_sessions
    effective = effective_number(per_session)
    t = stdtrit(effective - 1, (1 - level) / 2)
    tail = 100 * float(ndtr(np.sqrt(effective / (effective - 1)) * t))
    low, high = np.percentile(means, [tail, 100 - tail]).tolist()
    return low, high


def effective_number(per_session: Floats) -> float:
    """How many equal contributions would vary as much as these, at least 2."""
    sizes = np.abs(in_units(per_session[:, None])[0])
    return max(float(sizes.sum() ** 2 / max((sizes**2).sum(), 1e-300)), 2.0)


def in_units(values: Floats) -> tuple[Floats, Floats]:
    """The numbers of each column in units of a power of two near its largest, so that squares stay
    in range; and these units.

    To divide by a power of two rounds nothing.
    """
    units = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0))[1])
    return values / units, units
