"""Whether kernels are being compiled, from the events of numba; and a note of it in a terminal or a
notebook.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from numba.core import event

COMPILING = "compiling …"
PATIENCE = 1.0
"""Seconds of compilation, after which there is a note."""

Listener: Any = event.Listener


class Compiling(Listener):
    """Within, tells when the first of some kernels begins to be compiled, and when the last is;
    those loaded from disk do not count.

    Args:
        callback: is called with True and with False, from any thread.

    Attributes:
        listening: how many of these there are in the process.
    """

    listening = 0

    def __init__(self, callback: Callable[[bool], object]) -> None:
        self._callback, self._open, self._lock = callback, 0, threading.Lock()

    def __enter__(self) -> Self:
        event.register("numba:compile", self)
        Compiling.listening += 1
        return self

    def __exit__(self, *_: object) -> None:
        event.unregister("numba:compile", self)
        Compiling.listening -= 1

    def on_start(self, _: Any) -> None:
        """A kernel, perhaps for another one."""
        self._change(1)

    def on_end(self, _: Any) -> None:
        """It is there."""
        self._change(-1)

    def _change(self, by: int) -> None:
        with self._lock:
            before, self._open = self._open, self._open + by
            if not before or not self._open:
                self._callback(bool(self._open))


class CompilationNote:
    """Context in which a terminal or a notebook says on stderr that kernels are compiled, once this
    has taken a second.

    It says nothing where a sweep or a command does, nor in its worker processes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiling = Compiling(self._compile)
        self._active = False
        self._due = 0.0  # when there is to be a note, from the first compilation on
        self._timer: threading.Timer | None = None
        self._status: Any = None

    def __enter__(self) -> Self:
        self._active = (
            not Compiling.listening and multiprocessing.current_process().name == "MainProcess"
        )
        if self._active:
            self._compiling.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._active:
            self._compiling.__exit__()

    def _compile(self, going_on: bool) -> None:
        with self._lock:
            if going_on:
                self._due = self._due or time.monotonic() + PATIENCE
                self._timer = threading.Timer(max(self._due - time.monotonic(), 0.0), self._show)
                self._timer.daemon = True
                self._timer.start()
            else:
                self._timer, timer = None, self._timer
                if timer is not None:
                    timer.cancel()
                if self._status is not None:
                    self._status.stop()
                    self._status = None

    def _show(self) -> None:
        from rich.console import Console  # only who waits pays for its import

        console = Console(stderr=True)
        with self._lock:
            if self._timer is None:  # it is done
                return
            if console.is_jupyter:
                self._status = _NotebookStatus()
            elif console.is_terminal:
                self._status = console.status(COMPILING)
                self._status.start()


class _NotebookStatus:
    """As a status of rich, which in a notebook would need ipywidgets."""

    def __init__(self) -> None:
        from IPython.display import display  # there in every notebook, and nowhere else needed

        self._shown: Any = display({"text/plain": COMPILING}, raw=True, display_id=True)

    def stop(self) -> None:
        self._shown.update({"text/plain": ""}, raw=True)
