"""Progress in a terminal and in a notebook: bars with rate and time left."""

from __future__ import annotations

import time

import rich.progress
from rich.console import Console

WIDE = 80
"""The narrowest terminal, in characters, that shows a bar."""


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
