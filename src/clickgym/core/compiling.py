"""Whether kernels are being compiled, by the events of numba."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def compilation_note() -> Iterator[None]:
    """Context in which a terminal says on stderr that kernels are compiled, once this has taken a
    second.

    It says nothing where a sweep or a command does, nor in its worker processes.
    """
    if multiprocessing.current_process().name != "MainProcess" or Compiling.listening:
        yield
        return
    note = _Note()
    event.register("numba:compile", note)
    try:
        yield
    finally:
        event.unregister("numba:compile", note)


class _Note(Listener):
    due = 0.0
    """When the note is to be printed, from the first compilation on."""

    def on_start(self, _: Any) -> None:
        now = time.monotonic()
        self.due = self.due or now + PATIENCE
        if now >= self.due and sys.stderr.isatty():
            self.due = float("inf")
            print(COMPILING, file=sys.stderr)

    def on_end(self, _: Any) -> None:
        """Another kernel may follow."""
