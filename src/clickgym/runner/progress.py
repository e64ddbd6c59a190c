"""Progress of sweeps in a terminal and in a notebook: a bar with rate and time left, and lines of
finished pairs.

That kernels are compiled, which takes seconds the first time, is known from the events that numba
tells.
"""

from __future__ import annotations

import math
import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self

import polars
from rich.console import Console
from rich.text import Text

from ..core.checks import check_flag, check_kind
from ..core.compiling import COMPILING, Compiling
from ..core.formats import duration, folded, regret_text, visible, wait
from ..core.progress import columns, progress_bar
from .callback import Callback
from .results import Trial
from .summaries import summary

LONG = 600.0
"""Seconds of one agent's runs, from which on it is warned."""


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
        self._trials, self._finished = 0, 0
        self._bar = progress_bar(console)
        self._task: Any = None  # until the bar begins
        self._whole = ""
        self._counted: set[Trial] = (
            set()
        )  # of the whole: a tuning goes on with runs of its sweeps before
        self._before = console.status(COMPILING)  # what is compiled before there is a bar
        self._compiling, self._listener = False, Compiling(self._compile)

    def __enter__(self) -> Self:
        self._listener.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._listener.__exit__(kind, error, traceback)
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
        self._trials, self._finished = len(trials), len(done)
        self._runs = len({trial.run for trial in trials})
        self._several_instances = len({trial.instance for trial in trials}) > 1
        self._horizon = horizon
        self._frames: dict[tuple[str, str, str], list[polars.DataFrame]] = defaultdict(list)
        for trial, frame in done.items():
            self._frames[trial[:3]].append(frame)
        if self._whole:
            self.sessions(len(done.keys() - self._counted) * horizon)
            self._counted.update(done)
            return
        if done and self._lines:
            self._console.print(
                f"{len(done)} of {len(trials)} runs were finished before", highlight=False
            )
        if len(done) < len(trials):
            self._begin(len(trials) * horizon, len(done) * horizon)

    def cost(self, agent: str, seconds: float, runs: int, workers: int) -> None:
        """One line before the work; the trial ran alone, and several workers at once are slower on
        a busy machine.
        """
        total = seconds * math.ceil(runs / workers)
        text = Text(f"{visible(agent)}: {wait(seconds)} per run")
        if runs > 1:
            text += f", {runs} runs, {wait(total)} with {workers} worker{'s' * (workers > 1)}"
        if total > LONG:
            text.append(
                " (long: fewer --runs or a smaller --horizon would do; what is finished is kept)",
                "yellow",
            )
        self._console.print(text, soft_wrap=True)

    def sessions(self, count: int) -> None:
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

    def _compile(self, going_on: bool) -> None:
        self._compiling = going_on
        if self._task is not None:
            self._describe()
        elif self.drawn and not self._console.is_jupyter:  # where rich needs ipywidgets for it
            self._before.start() if going_on else self._before.stop()

    def _begin(self, total: int, completed: int) -> None:
        """A new bar in the place of the one before."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._bar.columns = columns(self._console.width)
        self._bar.start()
        self._task = self._bar.add_task("", total=total, completed=completed)
        self._describe()

    def _describe(self) -> None:
        now = self._whole or f"run {min(self._finished + 1, self._trials)} of {self._trials}"
        self._bar.update(
            self._task, description=COMPILING if self._compiling else now, refresh=True
        )

    def _fields(self, frame: polars.DataFrame) -> list[str]:
        by = ["env", "instance", "agent"] if self._several_instances else ["env", "agent"]
        runs = frame.unique("run")
        row = summary(frame, runs, by).row(0, named=True)
        return [
            *(row[name] for name in by),
            f"regret {regret_text(row['regret'], row['regret_ci95'])}"
            if row["regret"] is not None
            else f"reward {row['reward']:.4f} / session",
            f"{runs['seconds'].sum():.1f} s",
            f"{duration(row['ns_per_session'])} / session",
            row["engine"],
        ]


def listener_of(
    progress: bool | None, callback: Callback | None
) -> AbstractContextManager[Callback]:
    """The callback that receives the progress; where none is wanted, one that does nothing.

    Args:
        progress, callback: as in `clickgym.sweep`.
    """
    progress = None if progress is None else check_flag("progress", progress)
    check_kind("callback", callback, Callback | None, "a Callback")
    if callback is not None:
        if progress:
            raise ValueError(
                "progress and callback cannot both be given: the callback shows the progress"
            )
        return nullcontext(callback)

    bar = Progress(Console(stderr=True), lines=False)
    if progress or (progress is None and bar.drawn):
        return bar if bar.drawn else Progress(Console(stderr=True, width=1000))
    return nullcontext(Callback())
