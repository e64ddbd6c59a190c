"""The progress of a sweep: in a terminal a bar, elsewhere a line a minute."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

import rich.progress
from rich.console import Console

from ..core.compiling import COMPILING, Compiling
from .console import errors, say

WIDE = 80
"""The narrowest terminal, in characters, that shows a bar."""
LINE_EVERY = 60.0
"""Seconds between two lines outside of a terminal."""


def say_resumed(folder: Path, kept: str, anew: str = "") -> None:
    """Say on stderr what a results folder has already, as in "6 of 6 runs", and what is played
    anew.
    """
    say(errors(), f"clickgym: {kept} were in {folder} already{anew}")


class Progress:
    """Context that shows how many runs and sessions of a sweep are finished.

    Sessions are counted while a run plays in this process, and when it ends in a worker process.

    Args:
        is_shown: whether anything is shown.
        horizon: the sessions of a run.
        n_runs: the runs of the sweep.
        n_left: those that earlier sweeps have not finished.
    """

    def __init__(self, is_shown: bool, horizon: int, n_runs: int, n_left: int) -> None:
        console = Console(stderr=True)
        parts: list[rich.progress.ProgressColumn] = [rich.progress.TextColumn("{task.description}")]
        if console.width >= WIDE:
            share = rich.progress.TextColumn("{task.percentage:.0f} %")
            parts += [rich.progress.BarColumn(20), share]
        self._bar = rich.progress.Progress(
            *parts,
            console=console,
            disable=not (is_shown and console.file.isatty()),
            transient=True,
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
        line = f"clickgym: {task.description}, {task.percentage:.0f} %"
        self._bar.console.print(line, highlight=False)
