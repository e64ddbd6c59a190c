"""Event files of TensorBoard, whose writers work in threads: what fails there is raised in the next call, and told once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_within = 0
_before = threading.excepthook


@contextmanager
def quiet_writers() -> Iterator[None]:
    """Within, in any thread, the threads of TensorBoard's writers do not print what their next call raises anyway."""
    global _within, _before
    with _lock:
        if not _within:
            _before, threading.excepthook = threading.excepthook, _tell_others
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if not _within:
                threading.excepthook = _before


def _tell_others(failed: threading.ExceptHookArgs) -> None:
    if not type(failed.thread).__module__.startswith("tensorboard."):
        _before(failed)
