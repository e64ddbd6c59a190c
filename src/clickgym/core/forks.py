"""Forked processes, in which Polars hangs if the process before the fork had used it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

THREADS = Path("/proc/self/task")
"""Of this process, on Linux: the other systems do not fork by default."""
_polars_runs_in: int | None = None
"""The process that had threads of Polars when it was last forked."""


def _note_threads() -> None:
    global _polars_runs_in
    for thread in THREADS.glob("*/comm"):
        with suppress(OSError):  # it has just ended
            if thread.read_text().startswith("polars-0"):
                _polars_runs_in = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_threads)


def check_fork() -> None:
    """Check that Polars can be used in this process, whose threads do not survive a fork.

    Raises:
        RuntimeError: this process was forked from one that had used it.
    """
    if _polars_runs_in not in (None, os.getpid()):
        raise RuntimeError(
            "this process was forked from one that had used Polars, which would hang here: start "
            'it by multiprocessing.get_context("spawn"), or let one sweep use all processors '
            "(n_jobs)"
        )
