"""Detection of kernels that are being compiled, by the events of numba."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from numba.core import event

COMPILING = "compiling …"

Listener: Any = event.Listener


class Compiling(Listener):
    """Context that reports when compilation starts and when it ends; kernels loaded from disk do
    not count.

    Args:
        callback: called with True at the start and with False at the end, from any thread.

    Attributes:
        listening: the number of active contexts in the process.
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
        """Called when a kernel starts to compile, possibly within another one."""
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
    """Context that prints a note on stderr, if it is a terminal, when compilation first starts.

    It prints nothing in worker processes, or where a sweep or a command prints its own note.
    """
    is_worker = multiprocessing.current_process().name != "MainProcess"
    if is_worker or Compiling.listening or not sys.stderr.isatty():
        yield
        return
    is_noted = False

    def note(is_compiling: bool) -> None:
        nonlocal is_noted
        if not is_noted:
            print(COMPILING, file=sys.stderr)
        is_noted = True

    with Compiling(note):
        yield
