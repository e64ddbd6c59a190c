"""The callback of a sweep: what it reports as it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars

from .results import Trial

__all__ = ["Callback"]


class Callback:
    """Listener to the progress of a sweep; subclass to show it. All methods may be called from any thread."""

    def start(self, trials: Sequence[Trial], done: Mapping[Trial, polars.DataFrame], horizon: int) -> None:
        """Before any work: all trials, and the tables of those that an earlier sweep finished."""

    def cost(self, agent: str, seconds: float, runs: int, workers: int) -> None:
        """After `start`, for each learner: what a run is expected to take, and how many there are to be done by how many
        workers."""

    def sessions(self, count: int) -> None:
        """So many more sessions were played (only from trials that run in this process)."""

    def finished(self, trial: Trial, frame: polars.DataFrame, counted: bool) -> None:
        """A trial was written; ``counted`` says whether its sessions were reported."""

    def batch(self, trials: polars.DataFrame, sessions: int) -> None:
        """A batch of a tuning was written: a row for each of its trials so far, and the sessions played."""
