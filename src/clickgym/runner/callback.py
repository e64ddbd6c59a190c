"""The callback of a sweep: its methods receive the progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars

from .results import Trial


class Callback:
    """Base class of listeners to the progress of a sweep; override methods to show it. They may be
    called from any thread.
    """

    def whole(self, name: str, sessions: int) -> None:
        """Called before several sweeps that belong together: a name for them, and the sessions that
        they play in all.
        """

    def start(
        self, trials: Sequence[Trial], done: Mapping[Trial, polars.DataFrame], horizon: int
    ) -> None:
        """Called before any run: with all trials, and the tables of those that an earlier sweep
        finished.
        """

    def cost(self, agent: str, seconds: float, runs: int, workers: int) -> None:
        """Called after `start`, for each learner: the expected time of a run, the number of runs,
        and the number of workers.
        """

    def sessions(self, count: int) -> None:
        """Called when so many more sessions were played (only from trials that run in this
        process).
        """

    def finished(self, trial: Trial, frame: polars.DataFrame, counted: bool) -> None:
        """Called when a trial was written; ``counted`` says whether its sessions were reported."""
