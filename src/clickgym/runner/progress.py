"""The progress of sweeps: in a terminal and in a notebook a bar with rate and time left; in a file
or a pipe a line for each finished pair.

That kernels are compiled, which takes seconds the first time, is known from the events of numba.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from rich.console import Console
from rich.text import Text

from ..core.checks import check_flag, check_kind
from ..core.compiling import COMPILING, Compiling
from ..core.formats import visible
from ..core.progress import progress_bar
from .results import Trial


class Callback:
    """Base class of listeners to the progress of a sweep; override methods to show it. They may be
    called from any thread.
    """

    def start(self, trials: Sequence[Trial], done: Container[Trial], horizon: int) -> None:
        """Called before any run: with all trials, and those that an earlier sweep finished."""

    def sessions(self, count: int) -> None:
        """Called when so many more sessions were played (only from trials that run in this
        process).
        """

    def finished(self, trial: Trial, counted: bool) -> None:
        """Called when a trial was written; ``counted`` says whether its sessions were reported."""


class Progress(Callback):
    """Shows sweeps, one after the other, on a console.

    Args:
        console: where to.
        lines: whether there is a line for each finished pair where no bar can be drawn.

    Attributes:
        started: whether the arguments of a sweep were accepted and work began.
        drawn: whether there is a bar: the console is a terminal, or a notebook.
    """

    def __init__(self, console: Console, lines: bool = True) -> None:
        self.started = False
        self.drawn = console.is_terminal or console.is_jupyter
        self._lines = lines and not self.drawn
        self._console, self._bar = console, progress_bar(console)
        self._listener = Compiling(self._compile)
        self._text = ""

    def __enter__(self) -> Self:
        self._listener.__enter__()
        self._bar.start()
        self._task = self._bar.add_task("", total=None)
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.__exit__(*error)
        self._bar.stop()

    def start(self, trials: Sequence[Trial], done: Container[Trial], horizon: int) -> None:
        self.started, self._horizon, self._trials = True, horizon, len(trials)
        due = [trial for trial in trials if trial not in done]
        self._left = Counter(trial[:3] for trial in due)
        self._finished = len(trials) - len(due)
        self._bar.reset(self._task, total=len(trials) * horizon, completed=self._finished * horizon)
        self._describe()

    def sessions(self, count: int) -> None:
        self._bar.advance(self._task, count)

    def finished(self, trial: Trial, counted: bool) -> None:
        if not counted:
            self.sessions(self._horizon)
        self._finished += 1
        self._left[trial[:3]] -= 1
        self._describe()
        if self._lines and not self._left[trial[:3]]:
            line = visible(f"{self._finished} of {self._trials} runs: {', '.join(trial[:3])}")
            # As `Text`, for rich would read [x] and :x: in a name as its own language.
            self._console.print(Text(line), soft_wrap=True)

    def _compile(self, going_on: bool) -> None:
        self._bar.update(self._task, description=COMPILING if going_on else self._text)

    def _describe(self) -> None:
        self._text = f"run {min(self._finished + 1, self._trials)} of {self._trials}"
        self._bar.update(self._task, description=self._text, refresh=True)


def listener_of(
    progress: bool | None, callback: Callback | None
) -> AbstractContextManager[Callback]:
    """The callback that receives the progress; if none is wanted, one that does nothing.

    Args:
        progress, callback: as in `clickgym.sweep`.
    """
    check_kind("callback", callback, Callback | None, "a Callback")
    if callback is not None:
        return nullcontext(callback)
    bar = Progress(Console(stderr=True))
    wanted = bar.drawn if progress is None else check_flag("progress", progress)
    return bar if wanted else nullcontext(Callback())
