"""Settings with which click models are fitted where the caller gives no estimator."""

from __future__ import annotations

from typing import NamedTuple

from ..log import ClickLog
from .estimator import Estimator

ITERATIONS, TOL = 1000, 1e-7


class FitSettings(NamedTuple):
    """The settings with which click models are fitted.

    Attributes:
        iterations: the most steps of EM.
        tol: EM ends where a step gains less; None takes all steps, and judges nothing.
        per_query: position parameters of each query by itself, where they are offered.
    """

    iterations: int
    tol: float | None
    per_query: bool = False

    def fit(self, estimator: type[Estimator], log: ClickLog, start: Estimator | None = None) -> Estimator:
        """An estimator with these settings, fitted; ``log`` and ``start`` as for `Estimator.fit`."""
        return estimator.create(self.iterations, self.tol, per_query=self.per_query).fit(log, start=start)


CONVERGED = FitSettings(ITERATIONS, TOL)
"""For models that are the result: those of `fit_models` and the users of `decide`."""
QUICK = FitSettings(50, None)
"""For models that only weigh logged clicks or predict them: those of `evaluate`."""
