"""The progress of a sweep: in a terminal and in a notebook a bar with rate and time left, in a file
or a pipe a line now and then.

That kernels are compiled, which takes seconds the first time, is known from the events of numba.
"""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np
import rich.progress
from rich.console import Console

from ..core.compiling import COMPILING, Compiling
from .results import Trial

WIDE = 80
"""The narrowest terminal, in characters, that shows a bar."""
RATE_OVER = 5.0
"""Seconds over which the rate is averaged."""
SURE = 0.1
"""The share of a run after which it tells the speed of its agent, if no run has finished."""
LINE_EVERY = 60.0
"""Seconds between two lines in a file or a pipe."""
POLL = 0.2
"""Seconds between two looks at what worker processes have played."""


class TimeLeft:
    """The time until all runs are finished, by the speed of each agent in runs that were played.

    Args:
        horizon: the sessions of a run.
        trials: the runs that are left.
        n_workers: how many are played at a time.
        clock: returns seconds.
    """

    def __init__(
        self,
        horizon: int,
        trials: Sequence[Trial],
        n_workers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._horizon, self._n_workers, self._clock = horizon, n_workers, clock
        self._waiting: Counter[Any] = Counter(trial[:3] for trial in trials)
        self._first: dict[Trial, tuple[float, int]] = {}  # time and sessions of the first report
        self._played: dict[Trial, int] = {}
        self._ended: dict[Trial, float] = {}
        self._lasted: dict[Any, float] = {}  # the last finished run, by cell and by agent

    def played(self, trial: Trial, sessions: int) -> None:
        """Note how many sessions of a run are played; 0 when it starts."""
        if trial not in self._played:
            self._waiting[trial[:3]] -= 1
        if sessions:
            self._first.setdefault(trial, (self._clock(), sessions))
        if sessions == self._horizon:
            self._ended.setdefault(trial, self._clock())
        self._played[trial] = sessions

    def finished(self, trial: Trial, seconds: float) -> None:
        """Note that a run is finished and kept, and how long it took; the start of a long one, in
        which libraries are loaded, does not count.
        """
        if trial not in self._played:
            self._waiting[trial[:3]] -= 1
        self._played.pop(trial, None)
        since, first = self._first.pop(trial, (self._clock(), self._horizon))
        lasted = self._ended.pop(trial, self._clock()) - since
        if lasted > 1 and first < self._horizon:
            seconds = lasted / (self._horizon - first) * self._horizon
        self._lasted[trial[:3]] = self._lasted[trial.agent] = seconds

    def seconds(self) -> float | None:
        """Return the time left; None while the speed of an agent is not known."""
        now, lasting = self._clock(), dict(self._lasted)
        playing = list(self._played.items())  # threads may start further runs meanwhile
        for trial, played in playing:
            since, first = self._first.get(trial, (now, 0))
            if played >= SURE * self._horizon and played > first:
                lasts = (now - since) / (played - first) * self._horizon
                lasting[trial] = lasts
                lasting.setdefault(trial[:3], lasts)
                lasting.setdefault(trial.agent, lasts)
        runs = [(trial, 1 - played / self._horizon) for trial, played in playing]
        total = longest = 0.0
        for place, count in [*runs, *self._waiting.items()]:
            if count:
                known = [key for key in (place, place[:3], place[2]) if key in lasting]
                if not known:
                    return None
                lasts = lasting[known[0]]
                total, longest = total + count * lasts, max(longest, min(count, 1) * lasts)
        return max(total / self._n_workers, longest)

    def __str__(self) -> str:
        seconds = self.seconds()
        return "" if seconds is None else f"{timedelta(seconds=math.ceil(seconds))} left"


class Progress:
    """Shows how many sessions and runs of a sweep are finished.

    Args:
        console: where to.
        is_shown: whether a bar is drawn, or lines are printed if the console is neither a terminal
            nor a notebook.
        horizon: the sessions of a run.
        n_runs: the runs of the sweep.
        trials: the runs that are left; earlier sweeps finished the others.
        n_workers: how many runs are played at a time.
        clock: returns seconds.
    """

    def __init__(
        self,
        console: Console,
        is_shown: bool,
        horizon: int,
        n_runs: int,
        trials: Sequence[Trial],
        n_workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._is_shown, self._clock = console, is_shown, clock
        self._left, self._line_due = TimeLeft(horizon, trials, n_workers, clock), math.inf
        self._bar = progress_bar(console, is_shown, self._left)
        self._compiling = Compiling(self._describe)
        self._horizon, self._n_runs, self._n_finished = horizon, n_runs, n_runs - len(trials)
        self._played: Counter[Trial] = Counter()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._compiling.__enter__()
        self._bar.start()
        if self._is_shown and self._bar.disable:
            self._line_due = self._clock() + LINE_EVERY
        total, completed = self._n_runs * self._horizon, self._n_finished * self._horizon
        self._task = self._bar.add_task("", total=total, completed=completed)
        self._describe(is_compiling=False)
        return self

    def __exit__(self, *error: object) -> None:
        self._compiling.__exit__(*error)
        self._bar.stop()

    def played(self, trial: Trial, sessions: int) -> None:
        """Note how many sessions of a run are played, of all since it started; from any thread."""
        with self._lock:
            more = sessions - self._played[trial]
            if more < 0:  # the run was finished meanwhile
                return
            self._played[trial] = sessions
            self._left.played(trial, sessions)
            if more:
                self._bar.advance(self._task, more)
            if self._clock() >= self._line_due:
                self._print_line()

    def finished(self, trial: Trial, seconds: float) -> None:
        """Note that a run is finished and kept, and how long it took."""
        self.played(trial, self._horizon)
        with self._lock:
            self._left.finished(trial, seconds)
            self._n_finished += 1
        self._describe(is_compiling=False)

    def _describe(self, is_compiling: bool) -> None:
        self._bar.update(self._task, description=COMPILING if is_compiling else self._run())

    def _run(self) -> str:
        return f"run {min(self._n_finished + 1, self._n_runs)} of {self._n_runs}"

    def _print_line(self) -> None:
        self._line_due = self._clock() + LINE_EVERY
        share = f"{self._bar.tasks[self._task].percentage:.0f} %"
        parts = [self._run(), share, str(self._left)]
        self._console.print(f"clickgym: {', '.join(filter(None, parts))}", highlight=False)

    @contextmanager
    def watching(self, trials: Sequence[Trial]) -> Iterator[Sequence[Callable[[int], None]]]:
        """Context with what counts the sessions of each run in a worker process on this machine:
        they write into a file, at which a thread looks; if nothing is shown, nobody counts.
        """
        if not self._is_shown:
            yield [count_nothing] * len(trials)
            return
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "sessions"
            np.full(len(trials), -1, np.int64).tofile(file)
            ended, counts = threading.Event(), np.memmap(file, np.int64, "r")

            def look() -> None:
                while not ended.wait(POLL):
                    for trial, count in zip(trials, counts.tolist(), strict=True):
                        if self._played[trial] < count < self._horizon:
                            self.played(trial, count)

            watcher = threading.Thread(target=look, daemon=True)
            watcher.start()
            try:
                yield [CountedSessions(file, number) for number in range(len(trials))]
            finally:
                ended.set()
                watcher.join()


def count_nothing(sessions: int) -> None:
    """Do nothing."""


class CountedSessions:
    """Counts the sessions of a run for a process that watches; on another machine for nobody."""

    def __init__(self, file: Path, number: int) -> None:
        self._file, self._number = file, number
        self._counts: Any = None

    def __call__(self, sessions: int) -> None:
        with suppress(OSError):
            if self._counts is None:
                self._counts = np.memmap(self._file, np.int64, "r+")
                self._counts[self._number] = 0
            self._counts[self._number] += sessions


def progress_bar(console: Console, is_shown: bool, left: TimeLeft) -> rich.progress.Progress:
    """Return a progress bar for a terminal or a notebook; it draws nothing in a file or a pipe.

    In a narrow terminal it shows only the columns that always fit, because a truncated column
    would show a wrong number.
    """
    parts: list[rich.progress.ProgressColumn] = [rich.progress.TextColumn("{task.description}")]
    if console.width >= WIDE:
        share = rich.progress.TextColumn("{task.percentage:.0f} %")
        parts += [rich.progress.BarColumn(20), share, _Rate()]
    parts.append(_TimeLeft(left))
    if is_shown and console.is_jupyter:
        return _NotebookBar(*parts, console=console, speed_estimate_period=RATE_OVER)
    is_hidden = not (is_shown and console.is_terminal)
    return rich.progress.Progress(
        *parts,
        console=console,
        disable=is_hidden,
        transient=True,
        speed_estimate_period=RATE_OVER,
    )


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
        if speed >= 1e6:
            return f"{speed / 1e6:.1f} M/s"
        return f"{speed / 1e3:.0f} k/s" if speed >= 1e4 else f"{speed:.0f} /s"


class _TimeLeft(rich.progress.ProgressColumn):
    def __init__(self, left: TimeLeft) -> None:
        self._left = left
        super().__init__()

    def render(self, task: rich.progress.Task) -> str:
        return str(self._left)
