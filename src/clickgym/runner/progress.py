"""The progress of a sweep: in a terminal a bar, elsewhere a line a minute."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Self

import rich.progress
from rich.console import Console

from ..core.compiling import COMPILING, Compiling
from .console import errors, say

WIDE = 80
"""The narrowest terminal, in characters, that shows a bar."""
SPEED_OVER = 3600.0
"""Seconds of the past from which the time left is estimated: a run may take minutes."""
LINE_EVERY = 60.0
"""Seconds between two lines outside of a terminal."""


def say_resumed(folder: Path, kept: str, own: Mapping[str, Path | None]) -> None:
    """Say on stderr what a results folder has already, and which code of yours is played.

    Args:
        folder: of the results.
        kept: what is there, as in "6 of 6 runs".
        own: of the labels that have one the file of your own class; None if it is in a notebook.
    """
    files = "".join(f"; {label} is in {file or 'this notebook'}" for label, file in own.items())
    say(errors(), f"clickgym: {kept} were in {folder} already{files}")


class Progress:
    """Context that shows how many runs and sessions of a sweep are finished.

    Sessions are counted while a run plays in this process, and when it ends in a worker process.

    Args:
        is_shown: whether anything is shown.
        horizon: the sessions of a run.
        n_runs: the runs of the sweep.
        n_left: those that earlier sweeps have not finished.
        is_even: whether all runs are about equally fast, so that the time left can be told. Those
            in plain Python take up to a thousand times as long as compiled ones.
    """

    def __init__(
        self, is_shown: bool, horizon: int, n_runs: int, n_left: int, is_even: bool = True
    ) -> None:
        console = Console(stderr=True)
        parts: list[rich.progress.ProgressColumn] = [rich.progress.TextColumn("{task.description}")]
        if console.width >= WIDE:
            share = rich.progress.TextColumn("{task.percentage:.0f} %")
            parts += [rich.progress.BarColumn(20), share]
        if is_even:
            parts.append(rich.progress.TimeRemainingColumn())
        self._is_even = is_even
        self._bar = rich.progress.Progress(
            *parts,
            console=console,
            disable=not (is_shown and console.file.isatty()),
            transient=True,
            speed_estimate_period=SPEED_OVER,
        )
        self._is_printed = is_shown and self._bar.disable
        self._compiling = Compiling(self._describe)
        self._horizon, self._n_runs, self._n_finished = horizon, n_runs, n_runs - n_left
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._compiling.__enter__()
        self._bar.start()
        total, completed = self._n_runs * self._horizon, self._n_finished * self._horizon
        self._task = self._bar.add_task("", total=total, completed=completed)
        self._describe(is_compiling=False)
        self._due = time.monotonic() + LINE_EVERY
        return self

    def __exit__(self, *error: object) -> None:
        self._compiling.__exit__(*error)
        self._bar.stop()

    def played(self, sessions: int) -> None:
        """Note that further sessions are played; from any thread."""
        with self._lock:
            self._bar.advance(self._task, sessions)
            if self._is_printed and time.monotonic() >= self._due:
                self._print()

    def finished(self, n_runs: int = 1) -> None:
        """Note that runs are finished and kept."""
        self._n_finished += n_runs
        self._describe(is_compiling=False)

    def _describe(self, is_compiling: bool) -> None:
        run = f"run {min(self._n_finished + 1, self._n_runs)} of {self._n_runs}"
        self._bar.update(self._task, description=COMPILING if is_compiling else run)

    def _print(self) -> None:
        """Print a line."""
        self._due, task = time.monotonic() + LINE_EVERY, self._bar.tasks[self._task]
        left = task.time_remaining if self._is_even else None
        time_left = "" if left is None else f", {timedelta(seconds=math.ceil(left))} left"
        line = f"clickgym: {task.description}, {task.percentage:.0f} %{time_left}"
        self._bar.console.print(line, highlight=False)
