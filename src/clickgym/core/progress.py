"""Progress in a terminal and in a notebook: bars with rate and time left."""

from __future__ import annotations

import time

import rich.progress
from rich.console import Console

from .compiling import COMPILING

LEAST_BAR = 8
"""Characters of a bar, below which there is none."""


def progress_bar(console: Console) -> rich.progress.Progress:
    """A bar on a terminal or in a notebook; it draws nothing in a file or a pipe."""
    kind = _NotebookBar if console.is_jupyter else rich.progress.Progress
    return kind(
        console=console, disable=not (console.is_terminal or console.is_jupyter), transient=True
    )


def columns(width: int, longest: str, sessions: int) -> tuple[rich.progress.ProgressColumn, ...]:
    """What the bar shows: of its parts those that have room, for one that is cut would tell a wrong
    number.

    Args:
        width: of the console.
        longest: description.
        sessions: in all.
    """
    description = max(len(COMPILING), len(longest))
    counts = 2 * len(f"{sessions:,}") + len(" of  sessions")
    # From the first that has no room: the bar, the rate, the sessions. A gap of one stands between them.
    room = width - description - len(" 00:00:00 left")
    parts: list[rich.progress.ProgressColumn] = [rich.progress.TextColumn("{task.description}")]
    with_sessions, with_rate = room > counts, room > counts + 1 + len("999.9 M/s")
    bar = room - counts - len(" 999.9 M/s") - 2
    if with_rate and bar >= LEAST_BAR:
        parts.append(rich.progress.BarColumn(min(bar, 40)))
    if with_sessions:
        parts.append(
            rich.progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} sessions")
        )
    if with_rate:
        parts.append(_Rate())
    return (*parts, rich.progress.TimeRemainingColumn(), rich.progress.TextColumn("left"))


class _NotebookBar(rich.progress.Progress):
    """The bar in a notebook, where rich by itself needs ipywidgets: a table of rich, replaced by
    the next in its place.
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
    """Sessions per second, over the last seconds."""

    def render(self, task: rich.progress.Task) -> str:
        speed = task.finished_speed or task.speed
        return (
            ""
            if not speed
            else f"{speed / 1e6:.1f} M/s"
            if speed >= 1e6
            else f"{speed / 1e3:.0f} k/s"
        )
