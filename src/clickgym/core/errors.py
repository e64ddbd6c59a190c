"""Errors of agents and click models during a run, with the line of the user's own code."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).parents[1]
"""The folder of the package, installed or in a checkout."""
LIBRARIES = (str(PACKAGE), "<frozen", *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
"""The folders of files that are not the user's own."""
FAILURES = (Exception, SystemExit)
"""The exceptions that count as a failure of user code, which may also call `sys.exit`. Ctrl-C does
not count.
"""


class SessionError(RuntimeError):
    """An error during a run. The message names the agent or model, the environment, the step and
    the cause.

    Compiled code raises the same errors as Python, with three exceptions: an index out of range is
    not detected, integers overflow silently, and functions of `math` return nan or an infinity
    outside their domain.
    """


class WorkerError(RuntimeError):
    """A worker process died, possibly for lack of memory, or could not load the objects that were
    sent to it. Finished runs are kept.
    """


def cause(error: BaseException) -> str:
    """Return a short description of an error: its class, its message, and the line in the user's
    own files, if known.

    In compiled code, the line is known for a ``raise`` statement, but not for a division by zero.
    """
    frames = traceback.extract_tb(error.__traceback__)
    # NumPy's compiled files have no folder in their names.
    files = [frame for frame in frames if not frame.filename.endswith((".pyx", ".pxd"))]
    user_frames = [frame for frame in files if not frame.filename.startswith(LIBRARIES)]
    line = ""
    if user_frames:
        last_frame = user_frames[-1]
        file = last_frame.filename.removeprefix(f"{Path.cwd()}{os.sep}")
        line = f" ({file}:{last_frame.lineno} in {last_frame.name}: {last_frame.line!r})"
    return f"{type(error).__name__}{': ' if str(error) else ''}{' '.join(str(error).split())}{line}"


class Fault(Exception):
    """One fault that a check has found, described in one line."""


def expect(condition: object, fault: str) -> None:
    """Raise a `Fault` unless the condition holds."""
    if not condition:
        raise Fault(fault)


@contextmanager
def kernels_in_python() -> Iterator[None]:
    """Context manager for calling kernels as Python functions. Python detects an index out of
    range, where compiled code would overwrite other memory. Any error is re-raised as a `Fault`
    that names the line.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # as in compiled code
            yield
    except Fault:
        raise
    except FAILURES as error:
        raise Fault(cause(error)) from None
