"""Bootstrap over sessions: estimates from sessions drawn with replacement, and percentile intervals
of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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

    def means(self, values: Floats) -> Floats:
        """``n`` means of the contributions of sessions."""
        per_session = values.reshape(len(values), -1).sum(axis=1, keepdims=True)
        return self.estimates(per_session, np.ones(per_session.shape))[0]

    def interval(self, estimates: Floats, n_sessions: int) -> tuple[float, float]:
        """The percentile interval of the estimates; NaN for a single session.

        A resampling without positive weights has no self-normalised estimate (NaN), and does not
        count.
        """
        numbers = estimates[~np.isnan(estimates)]
        if n_sessions < 2 or not len(numbers):
            return np.nan, np.nan
        low, high = np.percentile(
            numbers, [50.0 * (1.0 - self.level), 50.0 * (1.0 + self.level)]
        ).tolist()
        return low, high


def in_units(values: Floats) -> tuple[Floats, Floats]:
    """The numbers of each column in units of a power of two near its largest, so that squares stay
    in range; and these units.

    To divide by a power of two rounds nothing.
    """
    units = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0))[1])
    return values / units, units
