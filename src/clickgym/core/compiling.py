"""Whether kernels are being compiled, by the events of numba."""

from __future__ import annotations

import multiprocessing
import sys
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
        self._change(-1)

    def _change(self, by: int) -> None:
        with self._lock:
            before, self._open = self._open, self._open + by
            if not before or not self._open:
                self._callback(bool(self._open))


class CompilationNote(Listener):
    """Context in which a terminal says on stderr that kernels are compiled, once this has taken a
    second.

    It says nothing where a sweep or a command does, nor in its worker processes.
    """

    def __init__(self) -> None:
        self._due = 0.0  # when there is to be a note, from the first compilation on

    def __enter__(self) -> Self:
        is_main = multiprocessing.current_process().name == "MainProcess"
        self._is_active = is_main and not Compiling.listening
        if self._is_active:
            event.register("numba:compile", self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_active:
            event.unregister("numba:compile", self)

    def on_start(self, _: Any) -> None:
        now = time.monotonic()
        self._due = self._due or now + PATIENCE
        if now >= self._due and sys.stderr.isatty():
            self._due = float("inf")
            print(COMPILING, file=sys.stderr)

    def on_end(self, _: Any) -> None:
        """Another kernel may follow."""
