"""The progress of a sweep: in a terminal and in a notebook a bar with rate and time left.

That kernels are compiled, which takes seconds the first time, is known from the events of numba.
"""

from __future__ import annotations

import time
from typing import Self

import rich.progress
from rich.console import Console

from ..core.compiling import COMPILING, Compiling

WIDE = 80
"""The narrowest terminal, in characters, that shows a bar."""


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


def progress_bar(console: Console, is_shown: bool) -> rich.progress.Progress:
    """Return a progress bar for a terminal or a notebook; it draws nothing in a file or a pipe.

    In a narrow terminal it shows only the columns that always fit, because a truncated column
    would show a wrong number.
    """
    parts: list[rich.progress.ProgressColumn] = [rich.progress.TextColumn("{task.description}")]
    if console.width >= WIDE:
        share = rich.progress.TextColumn("{task.percentage:.0f} %")
        parts += [rich.progress.BarColumn(20), share, _Rate()]
    parts += [rich.progress.TimeRemainingColumn(), rich.progress.TextColumn("left")]
    if is_shown and console.is_jupyter:
        return _NotebookBar(*parts, console=console)
    is_shown = is_shown and console.is_terminal
    return rich.progress.Progress(*parts, console=console, disable=not is_shown, transient=True)


class _NotebookBar(rich.progress.Progress):
    """The bar in a notebook, without the ipywidgets that rich requires: a table that is replaced in
    place.
    """

    def start(self) -> None:
        from IPython.display import display

        self._display = display(self.make_tasks_table(self.tasks), display_id=True)
        self._due = 0.0

    def stop(self) -> None:
        if self.tasks:  # it was started
            self._due = 0.0
            self.refresh()

    def refresh(self) -> None:
        if self._display is not None and time.monotonic() >= self._due:
            self._due = time.monotonic() + 0.1
            self._display.update(self.make_tasks_table(self.tasks))

    def advance(self, task_id: rich.progress.TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self.refresh()


class _Rate(rich.progress.ProgressColumn):
    """Sessions per second, averaged over the last seconds."""

    def render(self, task: rich.progress.Task) -> str:
        speed = task.finished_speed or task.speed
        if not speed:
            return ""
        return f"{speed / 1e6:.1f} M/s" if speed >= 1e6 else f"{speed / 1e3:.0f} k/s"
