"""Kernels, small functions in numba's subset of Python; their entries, which Python calls; their
cache.

A *kernel* stays a plain function: a debugger steps through it, and compiled code that calls it
inlines it. It allocates no array, list or string (its working memory is an argument), so no
references are counted. An *entry* is the compiled version of a kernel that Python calls; it is
compiled at its first call. A *factory* is a function that takes kernels and returns a closure that
calls them.

The cache on disk is that of numba, but each entry lies in a file that is named by a hash of
everything it is compiled from (`kernel_key`). So an edit of a kernel never runs old code, an edit
elsewhere compiles nothing, and a warm process compiles nothing. The folder can be deleted at any
time.

Where numba is not installed, or ``NUMBA_DISABLE_JIT=1``, kernels run as Python, to the same digits.
"""

from __future__ import annotations

import gc
import inspect
import os
import re
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .checks import short
from .compiling import COMPILES, OPTIONS, NumbaError, numba, register_jitable
from .kernel_errors import KernelError as KernelError
from .kernel_errors import explanation
from .kernel_key import key_of, reached_by


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let compiled code call a function; Python still calls it as it is.

    Args:
        function: a function in numba's subset of Python that allocates no array, list or string.

    Returns:
        The same function.

    Raises:
        KernelError: ``function`` is not a Python function.

    Example:
        >>> import numpy as np
        >>> @kernel
        ... def total(values):
        ...     result = 0.0
        ...     for value in values:
        ...         result += value
        ...     return result
        >>> entry(total)(np.array([1.0, 2.0]))
        3.0
    """
    if not isinstance(function, types.FunctionType):
        raise KernelError(f"kernel got {short(function)}; expected a function")
    if COMPILES and not hasattr(function, "is_kernel"):
        register_jitable(**OPTIONS)(function)
    function.is_kernel = True  # type: ignore[attr-defined]
    return function


@cache
def entry(function: Callable[..., Any]) -> Any:
    """Return a kernel as Python calls it: compiled without the GIL at its first call, and kept on
    disk.

    Args:
        function: a kernel.

    Returns:
        A function with the same positional arguments; the same object for the same kernel. Its
        method ``code(*arguments)`` returns the machine code for exactly the types of these
        arguments. It does not look at types again, which takes numba longer than most kernels run.
        So pass it only arguments of these types.

    Raises:
        KernelError: ``function`` is not a Python function.
    """
    return _Entry(kernel(function))


class _FirstCalls(threading.local):
    seconds = 0.0


_first_calls = _FirstCalls()


def clock() -> float:
    """Return seconds of wall time, without the time in which this thread compiled kernels."""
    return time.perf_counter() - _first_calls.seconds


class _Entry:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.kernel, self.__name__, self.__doc__ = function, function.__name__, function.__doc__
        self._compiled: dict[Any, Any] = {}
        """By the classes of arguments, because a file is named by the fields of named tuples."""

    def __call__(self, *arguments: Any) -> Any:
        compiled = self._compiled.get((*map(type, arguments),))
        return (compiled or self._compile(arguments))(*arguments)

    def code(self, *arguments: Any) -> Callable[..., Any]:
        if not COMPILES:
            return self.kernel
        compiled = self._compiled.get((*map(type, arguments),)) or self._compile(arguments)
        return compiled.compile((*map(numba.typeof, arguments),))

    def _compile(self, arguments: tuple[Any, ...]) -> Any:
        """Return numba's version of the kernel, compiled for these arguments or read from disk."""
        if not COMPILES:
            return self.kernel
        before = time.perf_counter()
        reached = reached_by(self.kernel)
        key = key_of(reached, arguments)
        compiled = _named(self.kernel, key)
        collects = gc.isenabled()
        gc.disable()  # it would take a tenth of the time of compilation and free little
        try:
            compiled.compile((*map(numba.typeof, arguments),))
        except NumbaError as error:
            raise KernelError(explanation(reached, str(error))) from None
        except Exception as error:  # of many classes, from a damaged file
            compiled = _named(self.kernel, "")
            compiled.compile((*map(numba.typeof, arguments),))
            text = f"compiled kernels are not read from disk or kept: {error}; you can delete"
            warnings.warn(f"{text} {cache_folder()}", stacklevel=2)
        finally:
            if collects:
                gc.enable()
        self._compiled[(*map(type, arguments),)] = compiled
        _first_calls.seconds += time.perf_counter() - before
        return compiled


def _named(function: Callable[..., Any], key: str) -> Any:
    """Return a function of one line that calls the kernel, as numba compiles it. It has a file of
    its own, beside which numba stores the machine code; without a key nothing is stored.
    """
    name = f"{re.sub('[^A-Za-z0-9]', '_', function.__name__)}_{key}"
    arguments = ", ".join(inspect.signature(function).parameters)
    text = f"def {name}({arguments}):\n    return kernel({arguments})\n"
    file = _kept_file(f"{name}.py") if key else None
    scope: dict[str, Any] = {"kernel": function, "__name__": __name__}
    exec(compile(text, str(file or "<entry>"), "exec"), scope)
    return numba.njit(nogil=True, cache=file is not None)(scope[name])


def static_kernels(cls: type, names: Iterable[str]) -> None:
    """Make the kernels in the body of a class static, so that access through an instance does not
    bind them.

    Args:
        cls: the class.
        names: the attributes that are kernels; those that are missing from the body, or None, stay
            as they are.

    Raises:
        KernelError: an attribute is not a function.
    """
    for name in names:
        member = vars(cls).get(name)
        member = member.__func__ if isinstance(member, staticmethod) else member
        if member is not None:
            if not isinstance(member, types.FunctionType):
                raise KernelError(
                    f"{cls.__module__}:{cls.__qualname__}: {name} is {member!r}; expected a kernel"
                )
            setattr(cls, name, staticmethod(kernel(member)))


# ------------------------------------------------------------ the folder


def cache_folder() -> Path:
    """Return the folder of compiled kernels, of all versions of the sources; it need not exist."""
    base = (
        os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    )
    return Path(base) / "clickgym" / "entries"


def _kept_file(name: str) -> Path | None:
    """Return the file of an entry; None, after a warning, if the folder is not writable."""
    file = cache_folder() / name
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            with suppress(FileExistsError):
                file.open("x").close()  # stays empty: numba compares its size and its time
    except OSError as error:
        warnings.warn(f"compiled kernels are not kept on disk: {error}", stacklevel=2)
        return None
    return file
