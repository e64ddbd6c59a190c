"""The progress of a sweep: in a terminal and in a notebook a bar with rate and time left.

That kernels are compiled, which takes seconds the first time, is known from the events of numba.
"""

from __future__ import annotations

from typing import Self

from rich.console import Console

from ..core.compiling import COMPILING, Compiling
from ..core.progress import progress_bar


class Progress:
    """Shows how many sessions and runs of a sweep are finished.

    Args:
        console: where to.
        is_shown: whether a bar is drawn, if the console is a terminal or a notebook.
        horizon: the sessions of a run.
        n_runs: the runs of the sweep.
        n_finished: those that an earlier sweep finished.
    """

    def __init__(
        self, console: Console, is_shown: bool, horizon: int, n_runs: int, n_finished: int
    ) -> None:
        self._bar, self._compiling = progress_bar(console, is_shown), Compiling(self._describe)
        self._horizon, self._n_runs, self._n_finished = horizon, n_runs, n_finished

    def __enter__(self) -> Self:
        self._compiling.__enter__()
        self._bar.start()
        total, completed = self._n_runs * self._horizon, self._n_finished * self._horizon
        self._task = self._bar.add_task("", total=total, completed=completed)
        self._describe(is_compiling=False)
        return self

    def __exit__(self, *error: object) -> None:
        self._compiling.__exit__(*error)
        self._bar.stop()

    def sessions(self, count: int) -> None:
        """Add sessions that were played; from any thread."""
        self._bar.advance(self._task, count)

    def finished(self) -> None:
        """Add a run."""
        self._n_finished += 1
        self._describe(is_compiling=False)

    def _describe(self, is_compiling: bool) -> None:
        run = f"run {min(self._n_finished + 1, self._n_runs)} of {self._n_runs}"
        self._bar.update(self._task, description=COMPILING if is_compiling else run)
