"""What a sweep prints to standard error: its progress, and what is saved if it stops."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import rich.progress
from numpy.typing import NDArray
from rich.console import Console

from ...core.errors import SessionError
from ..console import error_console, print_text

FIRST_LINE, LINE_EVERY = 10.0, 60.0
"""The seconds before the first line of progress, and between two lines, outside a terminal."""
LOOK_EVERY = 0.5
"""Seconds between two readings of the session counters of worker processes."""
Pair = tuple[str, str]
"""The labels of an environment and an agent. The speed of one pair says little about others."""


def print_resumed(folder: object, progress: str) -> None:
    """Print to standard error how many runs a folder already had, such as "4 of 6 runs"."""
    print_text(error_console(), f"clickgym: {progress} were in {folder} already")


@contextmanager
def resumable(
    out: object, count_finished: Callable[[], int], n_all: int, noun: str
) -> Iterator[None]:
    """Context manager that makes a KeyboardInterrupt say what is saved and how to resume, and the
    error of an agent or an environment what is lost.

    Args:
        out: the folder in which runs are saved; None if nothing is saved.
        count_finished: a function that returns how many are finished so far.
        n_all: how many there are.
        noun: the word for what is counted, such as ``"runs"``.
    """
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        n_finished = count_finished()
        message = f"stopped; {n_finished} of {n_all} {noun} are saved in {out}"
        if 0 < n_finished < n_all:
            message += ": run the same command again to resume"
        raise KeyboardInterrupt(message) from None
    except SessionError as error:
        if out is None and (n_finished := count_finished()):
            cure = "to keep them, pass out= (--out DIR)"
            error.args = (f"{error}; finished {noun} that are lost: {n_finished}; {cure}",)
        raise


def time_left(seconds: float) -> str:
    """Return a remaining time as text, in seconds, minutes or hours.

    Example:
        >>> time_left(0.2), time_left(70.2), time_left(1000), time_left(9000)
        ('about 1 s left', 'about 70 s left', 'about 17 min left', 'about 2.5 h left')
    """
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s left"
    minutes = seconds / 60
    return f"about {minutes:.0f} min left" if minutes < 90 else f"about {minutes / 60:.1f} h left"


class Progress:
    """Context manager that shows the progress of a sweep, as a bar in a terminal and as lines of
    text elsewhere.

    The first line appears after ten seconds, and then one line a minute. The time left is shown
    once each pair has finished a run. It is estimated from the average time of the runs that these
    workers have finished, which does not include the compilation of kernels.

    Args:
        is_shown: whether the progress is shown.
        n_runs: the number of runs in the sweep.
        n_finished: the number of runs that are already finished.
        horizon: T, the number of sessions in each run.
        pairs: the pairs that have runs to be played.
    """

    def __init__(
        self, is_shown: bool, n_runs: int, n_finished: int, horizon: int, pairs: Iterable[Pair]
    ) -> None:
        console = Console(stderr=True)
        self._bar = rich.progress.Progress(
            "{task.description}",
            rich.progress.BarColumn(20),
            rich.progress.TaskProgressColumn(),
            "{task.fields[left]}",
            console=console,
            disable=not (is_shown and console.is_terminal),
            transient=True,
        )
        self._horizon, self._n_runs, self._n_finished = horizon, n_runs, n_finished
        self._task = self._bar.add_task(
            "", total=n_runs * horizon, completed=n_finished * horizon, left=""
        )
        self._pending = {*pairs}
        """The pairs that have not finished a run."""
        self._n_workers = 1
        self._seconds = list[float]()
        """The times of the runs that these workers have finished."""
        self._lock = threading.Lock()  # worker threads report their sessions themselves
        self._is_printed = is_shown and self._bar.disable
        self._next_line_at = time.monotonic() + FIRST_LINE

    def __enter__(self) -> Self:
        self._show()
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def begin(self, n_workers: int) -> None:
        """Begin with a number of workers of another kind, whose runs take another time."""
        self._n_workers, self._seconds = n_workers, []

    def advance(self, n_sessions: int) -> None:
        """Add ``n_sessions`` to the number of sessions played, which may be in unfinished runs."""
        self._bar.advance(self._task, n_sessions)
        self._show()

    @contextmanager
    def session_counters(self, n_calls: int) -> Iterator[NDArray[np.int64]]:
        """Context manager that provides session counters, one for each call of a worker process.

        A worker process adds the sessions that it plays to its call's counter. The array of
        counters is stored in a file. joblib sends the file's name to processes on this machine, but
        a copy of the array to other machines, so other machines report only finished runs.
        """
        is_over, n_before = threading.Event(), self._n_finished

        def show() -> None:
            n_here = int(counts.sum())
            n_played = max(n_here, (self._n_finished - n_before) * self._horizon)
            self._bar.update(self._task, completed=n_before * self._horizon + n_played)
            self._show()

        def watch() -> None:
            while not is_over.wait(LOOK_EVERY):
                show()

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            counts = np.memmap(Path(folder) / "counts", np.int64, "w+", shape=(n_calls,))
            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            try:
                yield counts
            finally:
                is_over.set()
                watcher.join()
            show()

    def add_finished(self, pair: Pair, seconds: Sequence[float]) -> None:
        """Add finished runs of one pair, given the time that each of them took."""
        self._n_finished += len(seconds)
        self._seconds += seconds
        self._pending.discard(pair)
        self._show()

    def _time_left(self, n_sessions: int) -> str:
        """Return the time in which the workers can play a number of sessions; an empty text if it
        cannot be estimated yet. At the end, some workers have no run to play.
        """
        n_runs = self._n_runs - self._n_finished
        if self._pending or not (self._seconds and n_runs):
            return ""
        runs_of_worker = n_sessions / self._horizon / min(self._n_workers, n_runs)
        if n_runs > self._n_workers:  # the last run has not begun
            runs_of_worker = max(runs_of_worker, 1)
        return time_left(runs_of_worker * sum(self._seconds) / len(self._seconds))

    def _show(self) -> None:
        """Update the bar or, when it is time, print a line."""
        n_played, n_sessions = int(self._bar.tasks[0].completed), self._n_runs * self._horizon
        runs = f"{self._n_finished:,} of {self._n_runs:,} runs"
        left = self._time_left(n_sessions - n_played)
        self._bar.update(self._task, description=runs, left=left)
        with self._lock:
            is_due = time.monotonic() >= self._next_line_at
            if not (self._is_printed and is_due and 0 < n_played < n_sessions):
                return
            self._next_line_at = time.monotonic() + LINE_EVERY
        share = f"{100 * n_played / n_sessions:.0f} % of the sessions"
        print_text(error_console(), f"clickgym: {', '.join(filter(None, [runs, share, left]))}")
