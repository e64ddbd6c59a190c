"""What a sweep shows as it goes: a bar with rate and time left, and one line for every finished pair."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import polars
import rich.progress
from rich.console import Console

from .report import duration, regret_text
from .summary import summary
from .sweep import Cell, Watcher

__all__ = ["Progress"]


class Progress(Watcher):
    """Shows a sweep on a console; without a terminal, only the lines of finished pairs.

    Args:
        console: where to.

    Attributes:
        started: whether the arguments were accepted and work began.
    """

    def __init__(self, console: Console) -> None:
        self.started = False
        self._console = console
        self._lock = threading.Lock()
        self._frames: dict[tuple[str, str, str], list[polars.DataFrame]] = defaultdict(list)
        self._cells, self._finished = 0, 0
        self._bar = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} sessions"),
            _Rate(),
            rich.progress.TimeRemainingColumn(),
            rich.progress.TextColumn("left"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._bar.stop()

    def start(self, cells: Sequence[Cell], done: Mapping[Cell, polars.DataFrame], horizon: int) -> None:
        self.started = True
        self._cells, self._finished = len(cells), len(done)
        self._runs = len({cell.run for cell in cells})
        self._several_instances = len({cell.instance for cell in cells}) > 1
        self._horizon = horizon
        for cell, frame in done.items():
            self._frames[cell[:3]].append(frame)
        if done:
            self._console.print(f"{len(done)} of {len(cells)} runs were finished before", highlight=False)
        if len(done) < len(cells):
            self._bar.start()
            self._task = self._bar.add_task("", total=len(cells) * horizon, completed=len(done) * horizon)
            self._describe()

    def sessions(self, count: int) -> None:
        self._bar.advance(self._task, count)

    def finished(self, cell: Cell, frame: polars.DataFrame, counted: bool) -> None:
        if not counted:
            self._bar.advance(self._task, self._horizon)
        with self._lock:
            self._finished += 1
            frames = self._frames[cell[:3]]
            frames.append(frame)
            complete = len(frames) == self._runs
        self._describe()
        if complete:
            self._console.print(self._line(polars.concat(frames)), highlight=False, soft_wrap=True)

    def kept(self, out: str | os.PathLike[str]) -> str:
        """What there is to keep, for the message of a sweep that ends early."""
        return f"{self._finished} of {self._cells} runs are finished and kept in {out}"

    def _describe(self) -> None:
        self._bar.update(self._task, description=f"run {min(self._finished + 1, self._cells)} of {self._cells}")

    def _line(self, frame: polars.DataFrame) -> str:
        by = ["env", "instance", "agent"] if self._several_instances else ["env", "agent"]
        row = summary(frame, frame.unique("run"), by).row(0, named=True)
        return "  ".join([
            *(row[name] for name in by),
            f"regret {regret_text(row['regret'], row['regret_ci95'])}",
            f"{frame.unique('run')['seconds'].sum():.1f} s",
            f"{duration(row['ns_per_session'])} / session",
            row["engine"],
        ])  # fmt: skip


class _Rate(rich.progress.ProgressColumn):
    """Sessions per second, over the last seconds."""

    def render(self, task: rich.progress.Task) -> str:
        speed = task.finished_speed or task.speed
        return "" if not speed else f"{speed / 1e6:.1f} M/s" if speed >= 1e6 else f"{speed / 1e3:.0f} k/s"
