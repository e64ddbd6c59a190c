"""Click models fitted again to resampled sessions: how far estimates would differ in another log of the same users."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..log import ClickLog
from .estimator import Estimator
from .settings import FitSettings


def refits(
    fitted: Estimator, settings: FitSettings, log: ClickLog, n: int, seed: int, size: int | None = None
) -> Iterator[tuple[ClickLog, Estimator]]:
    """Draw sessions with replacement and fit a model to them, starting from what it is in the log.

    Args:
        fitted: an estimator fitted to the log.
        settings: with which it was fitted.
        log: the sessions.
        n: how many times.
        seed: the same seed draws the same sessions, whatever the model.
        size: sessions of a draw; None: as many as the log has. Estimates from fewer vary by the square root of the ratio more.

    Yields:
        The sessions drawn, and the estimator fitted to them.
    """
    for draw in range(n):
        drawn = np.random.default_rng([seed, draw]).integers(len(log), size=size or len(log))
        part = log[np.sort(drawn)]  # sorted rows are copied faster
        yield part, settings.fit(type(fitted), part, start=fitted)
