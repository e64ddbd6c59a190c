"""Bootstrap over sessions: estimates from sessions drawn with replacement, and percentile intervals
of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

Floats = NDArray[np.float64]


class Resampling(NamedTuple):
    """Resampling of sessions with replacement; the same seed gives the same resamples.

    Attributes:
        n: how many times all sessions are drawn.
        level: confidence level of the intervals.
        seed: of the draws.
    """

    n: int
    level: float
    seed: int

    def estimates(self, values: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """``n`` plain and self-normalised estimates.

        Sessions that contribute the same are drawn together: how often each kind comes up in N
            draws is multinomial.
        """
        rng = np.random.default_rng(self.seed)
        columns = values.shape[1]
        rows = np.hstack([values, weights])
        rows = rows[np.lexsort(rows.T[::-1])]  # `np.unique` of whole rows takes ten times as long
        first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
        kinds, counts = rows[first], np.diff(first, append=len(rows))
        plain, normalised = np.empty((2, self.n))
        block = 1 + 2**22 // len(kinds)  # bounds the memory; the numbers drawn do not depend on it
        for start in range(0, self.n, block):
            part = slice(start, min(start + block, self.n))
            sums = rng.multinomial(len(values), counts / len(values), part.stop - start) @ kinds
            plain[part] = sums[:, :columns].sum(axis=1) / len(values)
            with np.errstate(invalid="ignore"):
                normalised[part] = (sums[:, :columns] / sums[:, columns:]).sum(axis=1)
        return plain, normalised

    def interval_of_mean(self, values: Floats) -> tuple[float, float]:
        """The interval of the mean of the contributions of sessions, ``(N,)`` or ``(N, K)``."""
        per_session = values.reshape(len(values), -1).sum(axis=1)
        ones = np.ones((len(values), 1))
        return self.interval(self.estimates(per_session[:, None], ones)[0], per_session)

    def interval(self, estimates: Floats, per_session: Floats) -> tuple[float, float]:
        """The percentile interval of the estimates; NaN for a single session.

        ⚠ Percentiles of few contributions are too narrow, so they are those at which Student's
        distribution would have the level: with n effective contributions, at Φ(√(n/(n-1)) t).
        A resampling without positive weights has no self-normalised estimate (NaN), and does not
        count.

        Args:
            estimates: from resampled sessions.
            per_session: ``(N,)`` what sessions contribute.

        Source: Hesterberg, *What teachers should know about the bootstrap*, The American
            Statistician 2015.
        """
        numbers = estimates[~np.isnan(estimates)]
        if len(per_session) < 2 or not len(numbers):
            return np.nan, np.nan
        sizes = np.abs(in_units(per_session[:, None])[0])
        effective = max(float(sizes.sum() ** 2 / max((sizes**2).sum(), 1e-300)), 2.0)
        t = stdtrit(effective - 1, (1 - self.level) / 2)
        tail = 100 * float(ndtr(np.sqrt(effective / (effective - 1)) * t))
        low, high = np.percentile(numbers, [tail, 100 - tail]).tolist()
        return low, high


def in_units(values: Floats) -> tuple[Floats, Floats]:
    """The numbers of each column in units of a power of two near its largest, so that squares stay
    in range; and these units.

    To divide by a power of two rounds nothing.
    """
    units = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0))[1])
    return values / units, units
