"""Errors that agents and click models cause during a run, with the failing line of the user's own
code.
"""

from __future__ import annotations

import inspect
import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = Path(__file__).parents[1]
"""The folder of the clickgym package, either installed or in a checkout of the repository."""
LIBRARY_FOLDERS = (
    str(PACKAGE),
    "<frozen",
    *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
)
"""The beginnings of the paths of source files that do not belong to the user."""
FAILURES = (Exception, SystemExit)
"""The exceptions that count as a failure of user code. `SystemExit` is included, because user code
may call `sys.exit`; `KeyboardInterrupt` (Ctrl-C) is not.
"""


FIXED_FIELD = (
    "a kernel can change the arrays of a named tuple, but not replace its fields: make a counter "
    "an array with one entry, and write to counter[0]"
)
"""What a message says if a kernel assigns to a field, as in ``state.counter += 1``."""


class SessionError(RuntimeError):
    """An error during a run. The message names the agent or model, the environment, the step and
    the cause.

    Compiled code raises the same errors as Python, with three exceptions: an index out of range is
    not detected, integers overflow silently, and functions from `math` return nan or infinity
    outside their domain.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> class NoReward(gym.RewardWrapper):
        ...     def reward(self, reward):
        ...         return float("nan")
        >>> env = clickgym.RecordRegret(NoReward(gym.make("PBMRank-v0")))
        >>> env.reset(seed=0)[0].shape
        (5,)
        >>> try:
        ...     env.step([0, 1, 2, 3, 4])
        ... except clickgym.envs.SessionError as error:
        ...     print(error)
        PBMRank-v0, session 1: reward is nan; expected a finite number
    """


class WorkerError(RuntimeError):
    """An error for a worker process that died, possibly because memory ran out, or that could not
    load the objects sent to it. Finished runs are kept.
    """


def cause(error: BaseException) -> str:
    """Describe an exception in one line: its class, its message and, if known, the line in the
    user's own code.

    In compiled code, the line is known for a ``raise`` statement, but not for a division by zero.
    """
    frames = traceback.extract_tb(error.__traceback__)
    # NumPy's compiled files have no folder in their names.
    files = [frame for frame in frames if not frame.filename.endswith((".pyx", ".pxd"))]
    user_frames = [frame for frame in files if not frame.filename.startswith(LIBRARY_FOLDERS)]
    line = ""
    if user_frames:
        last_frame = user_frames[-1]
        file = last_frame.filename.removeprefix(f"{Path.cwd()}{os.sep}")
        line = f" ({file}:{last_frame.lineno} in {last_frame.name}: {last_frame.line!r})"
    return f"{type(error).__name__}{': ' if str(error) else ''}{' '.join(str(error).split())}{line}"


class Fault(Exception):
    """An error that a check has found, with a message that describes the error in one line."""


def expect(condition: object, fault: str) -> None:
    """Raise a `Fault` with the given description unless a condition holds."""
    if not condition:
        raise Fault(fault)


def expect_arguments(name: str, kernel: Callable[..., Any], arguments: Sequence[str]) -> None:
    """Raise a `Fault` unless a kernel takes as many arguments as it is called with. ``name`` is the
    name of the attribute that holds the kernel.
    """
    signature = inspect.signature(kernel)
    try:
        signature.bind(*arguments)
    except TypeError:
        taken = ", ".join(signature.parameters)
        raise Fault(f"{name} takes ({taken}); expected ({', '.join(arguments)})") from None


class _DivisionByZero:
    """The object to which `as_in_compiled_code` lets NumPy report floating-point errors."""

    @staticmethod
    def write(message: str) -> None:
        """Raise an error if the message is about a division by zero."""
        if re.search("in (scalar )?(divide|floor_divide|remainder)", message):
            raise ZeroDivisionError("division by zero")


def as_in_compiled_code() -> np.errstate:
    """Return a context manager for calling a kernel as a plain Python function, in which NumPy's
    numbers overflow silently and cannot be divided by zero, as in compiled code.
    """
    return np.errstate(over="ignore", divide="log", invalid="log", call=_DivisionByZero())


@contextmanager
def kernels_in_python() -> Iterator[None]:
    """Context manager for calling kernels as plain Python functions. Python detects an index out of
    range, whereas compiled code would overwrite other memory. Any error is re-raised as a `Fault`
    that names the failing line.
    """
    try:
        with as_in_compiled_code():
            yield
    except Fault:
        raise
    except FAILURES as error:
        hint = f"; {FIXED_FIELD}" if str(error) == "can't set attribute" else ""
        raise Fault(cause(error) + hint) from None
