"""Settings with which click models are fitted, and fitted again to resampled sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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

    def fit(
        self,
        estimator: type[Estimator],
        log: ClickLog,
        start: Estimator | None = None,
    ) -> Estimator:
        """An estimator with these settings, fitted; ``log`` and ``start`` as for
        `Estimator.fit`.
        """
        return estimator.create(self.iterations, self.tol, per_query=self.per_query).fit(
            log, start=start
        )

    def refits(
        self, fitted: Estimator, log: ClickLog, n: int, seed: int, size: int | None = None
    ) -> Iterator[Estimator]:
        """Draw sessions with replacement and fit a model to them, starting from what it is in the
        log: how far estimates would differ in another log of the same users.

        Args:
            fitted: an estimator fitted to the log with these settings.
            log: the sessions.
            n: how many times.
            seed: the same seed draws the same sessions, whatever the model.
            size: sessions of a draw; None: as many as the log has. Estimates from fewer vary by the
                square root of the ratio more.

        Yields:
            The estimator fitted to the sessions drawn.
        """
        for draw in range(n):
            drawn = np.random.default_rng([seed, draw]).integers(len(log), size=size or len(log))
            part = log[np.sort(drawn)]  # sorted rows are copied faster
            yield self.fit(type(fitted), part, start=fitted)


CONVERGED = FitSettings(ITERATIONS, TOL)
"""For models that are the result: those of `fit_models` and the users of `decide`."""
QUICK = FitSettings(50, None)
"""For models that only weigh logged clicks or predict them: those of `evaluate`."""
