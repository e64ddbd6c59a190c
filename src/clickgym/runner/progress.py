"""The progress of sweeps in a terminal and in a notebook: a bar with rate and time left, and lines
of finished pairs.

That kernels are compiled, which takes seconds the first time, is known from the events of numba.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import polars
from rich.console import Console
from rich.text import Text

from ..core.checks import check_flag, check_kind
from ..core.compiling import COMPILING, Compiling
from ..core.formats import duration, folded, regret_text, visible
from ..core.progress import columns, progress_bar
from .results import Trial
from .summaries import final_table


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

    def sessions(self, count: int) -> None:
        """Called when so many more sessions were played (only from trials that run in this
        process).
        """

    def finished(self, trial: Trial, frame: polars.DataFrame, counted: bool) -> None:
        """Called when a trial was written; ``counted`` says whether its sessions were reported."""


class Progress(Callback):
    """Shows sweeps on a console, each by a bar, or several by one (`whole`); in a file or a pipe,
    only by lines.

    Args:
        console: where to.
        lines: whether there is a line for each finished pair of a sweep, or only the bar.

    Attributes:
        started: whether the arguments were accepted and work began.
        drawn: whether there is a bar: the console is a terminal, or a notebook.
    """

    def __init__(self, console: Console, lines: bool = True) -> None:
        self.started = False
        self.drawn = console.is_terminal or console.is_jupyter
        self._console, self._lines = console, lines
        self._lock = threading.Lock()
        self._bar = progress_bar(console)
        self._task: Any = None  # until the bar begins
        self._whole = ""
        self._counted: set[Trial] = set()
        self._trials, self._finished = 0, 0
        self._before = console.status(COMPILING)  # until the bar begins
        self._compiling, self._listener = False, Compiling(self._compile)

    def __enter__(self) -> Self:
        self._listener.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.__exit__(*error)
        self._before.stop()
        self._bar.stop()

    def whole(self, name: str, sessions: int) -> None:
        self.started, self._whole, self._counted = True, name, set()
        if not self._lines and not self.drawn:
            self._console.print(Text(f"{name}: {sessions:,} sessions"), soft_wrap=True)
        self._begin(sessions, 0)

    def start(
        self, trials: Sequence[Trial], done: Mapping[Trial, polars.DataFrame], horizon: int
    ) -> None:
        self.started = True
        self._trials, self._finished, self._horizon = len(trials), len(done), horizon
        self._runs = len({trial.run for trial in trials})
        self._several_instances = len({trial.instance for trial in trials}) > 1
        self._frames: dict[tuple[str, ...], list[polars.DataFrame]] = defaultdict(list)
        for trial, frame in done.items():
            self._frames[trial[:3]].append(frame)
        if self._whole:
            self.sessions(len(done.keys() - self._counted) * horizon)
            self._counted.update(done)
            return
        if done and self._lines:
            text = f"{len(done)} of {len(trials)} runs were finished before"
            self._console.print(text, highlight=False)
        if len(done) < len(trials):
            self._begin(len(trials) * horizon, len(done) * horizon)

    def sessions(self, count: int) -> None:
        if self._task is not None:
            self._bar.advance(self._task, count)

    def finished(self, trial: Trial, frame: polars.DataFrame, counted: bool) -> None:
        if not counted:
            self.sessions(self._horizon)
        with self._lock:
            self._finished += 1
            self._counted.add(trial)
            frames = self._frames[trial[:3]]
            frames.append(frame)
            complete = len(frames) == self._runs
        if self._task is not None:
            self._describe()
        if complete and self._lines and not self._whole:
            for line in folded(self._fields(polars.concat(frames)), self._console.width):
                # As `Text`, for rich would read [x] and :x: in a name as its own language.
                self._console.print(Text(visible(line)), soft_wrap=True)

    def kept(self, out: str | os.PathLike[str]) -> str:
        """What a sweep or study that ends early has kept, in words for the message."""
        if not self._lines or self._whole:
            return f"what is finished is kept in {out}"
        return f"{self._finished} of {self._trials} runs are finished and kept in {out}"

    def _begin(self, total: int, completed: int) -> None:
        """A new bar in the place of the one before."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._bar.columns = columns(self._console.width)
        self._bar.start()
        self._task = self._bar.add_task("", total=total, completed=completed)
        self._describe()

    def _compile(self, going_on: bool) -> None:
        self._compiling = going_on
        if self._task is not None:
            self._describe()
        elif self.drawn and not self._console.is_jupyter:  # rich needs ipywidgets there
            self._before.start() if going_on else self._before.stop()

    def _describe(self) -> None:
        now = self._whole or f"run {min(self._finished + 1, self._trials)} of {self._trials}"
        text = COMPILING if self._compiling else now
        self._bar.update(self._task, description=text, refresh=True)

    def _fields(self, frame: polars.DataFrame) -> list[str]:
        """What the line of a finished pair says."""
        by = ["env", "instance"] if self._several_instances else ["env"]
        row = final_table(frame, by).row(0, named=True)
        regret = f"regret {regret_text(row['regret'] or 0.0, row['regret_ci95'])}"
        return [
            *(row[name] for name in (*by, "agent")),
            f"reward {row['reward']:.4f} / session" if row["regret"] is None else regret,
            f"{frame.filter(step=self._horizon)['seconds'].sum():.1f} s",
            f"{duration(row['ns_per_session'])} / session",
            row["engine"],
        ]


def listener_of(
    progress: bool | None, callback: Callback | None
) -> AbstractContextManager[Callback]:
    """The callback that receives the progress; if none is wanted, one that does nothing.

    Args:
        progress, callback: as in `clickgym.sweep`.
    """
    progress = None if progress is None else check_flag("progress", progress)
    check_kind("callback", callback, Callback | None, "a Callback")
    if callback is not None:
        if progress:
            raise ValueError("pass either progress or callback: the callback shows the progress")
        return nullcontext(callback)
    bar = Progress(Console(stderr=True), lines=False)
    if progress or (progress is None and bar.drawn):
        return bar if bar.drawn else Progress(Console(stderr=True, width=1000))
    return nullcontext(Callback())
