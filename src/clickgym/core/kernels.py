"""Kernels (small functions in numba's subset of Python), the entries through which Python calls
them, and their cache on disk.

A *kernel* stays a plain function: a debugger can step through it, and compiled code that calls the
kernel inlines it. A kernel allocates no array, list or string (its working memory is an argument),
so numba need not count references. An *entry* is the compiled version of a kernel that Python
calls; it is compiled at its first call. `Repeated` calls kernels again and again with the same
arguments, for example for the steps of an environment. A *factory* is a function that takes kernels
and returns a closure that calls them.

The cache on disk is numba's own, but each entry has its own file, named by a hash of everything
that the entry is compiled from (`kernel_key`). So after an edit of a kernel, old code never runs;
an edit elsewhere causes no compilation; and a process that finds all its entries on disk compiles
nothing. You can delete the folder at any time.

If numba is not installed, with ``NUMBA_DISABLE_JIT=1``, and within `uncompiled`, kernels run as
plain Python and return the same digits.
"""

from __future__ import annotations

import gc
import inspect
import os
import re
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from operator import is_
from pathlib import Path
from typing import Any

import numpy as np

from .checks import short_repr
from .compiling import COMPILES, OPTIONS, KernelError, explanation, numba, register_jitable
from .kernel_key import key_of, records_among


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as a kernel, which compiled code can call. Python still calls it unchanged.

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
        raise KernelError(f"kernel got {short_repr(function)}; expected a function")
    if COMPILES and not hasattr(function, "is_kernel"):
        register_jitable(**OPTIONS)(function)
    function.is_kernel = True  # type: ignore[attr-defined]
    return function


@cache
def entry(function: Callable[..., Any]) -> Any:
    """Return the compiled version of a kernel for calls from Python. It is compiled at its first
    call, kept on disk, and runs without the GIL.

    Args:
        function: a kernel.

    Returns:
        A function with the same positional arguments; always the same object for a kernel.

    Raises:
        KernelError: ``function`` is not a Python function.
    """
    return _Entry(kernel(function), CALL)


@cache
def _generator(function: Callable[..., Any]) -> Any:
    return _Entry(kernel(function), CALLS)


CALL = """\
def {name}({arguments}):
    return kernel({arguments})
"""
CALLS = """\
def {name}(is_open, {arguments}):
    while is_open[0]:
        yield kernel({arguments})
"""
"""The sources that numba compiles for Python: a function that calls the kernel, and a generator
that calls the kernel at each ``next``."""


class Repeated:
    """Repeated calls of kernels with the same arguments, such as the steps of an environment.

    At each call of an entry, numba checks the types of all arguments and unpacks the arguments.
    This takes longer than most kernels run: seven microseconds for a random generator alone. A
    compiled generator unpacks its arguments only once. So this object keeps a generator for each
    kernel, as long as the kernel is called with the same argument objects. A copy of this object
    starts without generators.
    """

    def __init__(self) -> None:
        self._held: dict[Any, tuple[Any, ...]] = {}
        """For each kernel: its arguments, its generator, and the array that keeps that open."""

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the kernel ``function`` returns. Between two calls, change the contents of
        array arguments rather than pass other objects, which must be unpacked again.
        """
        if not _is_compiled:
            return function(*arguments)
        held, calls, _ = self._held.get(function, NOTHING)
        if not (calls and all(map(is_, held, arguments))):
            self._close(function)
            is_open = np.ones(1, np.bool_)
            calls = _generator(function)(is_open, *arguments)
            self._held[function] = arguments, calls, is_open
        try:
            return next(calls)
        except BaseException:
            del self._held[function]  # numba does not document what a generator does after an error
            raise

    def _close(self, function: Any) -> None:
        """Let a generator end, because numba never frees the arguments of an unfinished one."""
        _, calls, is_open = self._held.pop(function, NOTHING)
        if calls:
            is_open[0] = False
            next(calls, None)

    def __del__(self) -> None:
        for function in [*self._held]:
            self._close(function)

    def __reduce__(self) -> tuple[Any, ...]:
        return Repeated, ()


NOTHING: tuple[Any, ...] = (), None, None


@contextmanager
def uncompiled() -> Iterator[None]:
    """Context manager within which kernels run as Python, in all threads: for debuggers, and for
    tests that take less time than compilation.
    """
    global _is_compiled
    previous, _is_compiled = _is_compiled, False
    try:
        yield
    finally:
        _is_compiled = previous


_is_compiled = COMPILES


class _FirstCalls(threading.local):
    seconds = 0.0


_first_calls = _FirstCalls()


def clock() -> float:
    """Return the wall time in seconds, minus the time that this thread spent compiling kernels."""
    return time.perf_counter() - _first_calls.seconds


COMPILING = "compiling …"
_listeners: list[Callable[[bool], object]] = []


@contextmanager
def compiling(callback: Callable[[bool], object]) -> Iterator[None]:
    """Context manager that reports the compilation of kernels that are not on disk.

    Args:
        callback: called, from any thread, with True when the compilation of a kernel starts and
            with False when it ends.
    """
    _listeners.append(callback)
    try:
        yield
    finally:
        _listeners.remove(callback)


@contextmanager
def compilation_note() -> Iterator[None]:
    """Context manager that prints a note on stderr when compilation first starts. It prints nothing
    if stderr is not a terminal, or if a `compiling` context is already active.
    """
    notes = [] if _listeners or not sys.stderr.isatty() else [COMPILING]
    with compiling(lambda _: notes and print(notes.pop(), file=sys.stderr)):
        yield


class _Entry:
    """A kernel, and the compiled functions or generators through which Python calls it."""

    def __init__(self, function: Callable[..., Any], text: str) -> None:
        self.kernel, self._text = function, text
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._compiled: dict[Any, Any] = {}
        """The compiled versions, by the classes of the named tuples among the arguments, whose
        fields determine the file.
        """

    def __call__(self, *arguments: Any) -> Any:
        if not _is_compiled:
            return self.kernel(*arguments)
        records = (*records_among(arguments),)
        compiled = self._compiled.get(records)
        if compiled is None:
            compiled = self._compiled[records] = self._compile(arguments)
        return compiled(*arguments)

    def _compile(self, arguments: tuple[Any, ...]) -> Any:
        """Return numba's version of the kernel, compiled for these arguments or loaded from disk.

        numba keeps the machine code of a function next to the function's source file. So the
        function that calls the kernel is given its own file, which has the kernel's key in its
        name.
        """
        start, key = time.perf_counter(), key_of(self.kernel, arguments, self._text)
        name = f"{re.sub('[^A-Za-z0-9]', '_', self.__name__)}_{key}"
        file = cache_folder() / f"{name}.py" if key else None
        listeners = [] if file is not None and os.path.exists(file) else [*_listeners]
        is_cached = file is not None and _make_file(file)
        parameters = ", ".join(inspect.signature(self.kernel).parameters)
        text = self._text.format(name=name, arguments=parameters)
        scope: dict[str, Any] = {"kernel": self.kernel, "__name__": __name__}
        exec(compile(text, str(file or "<entry>"), "exec"), scope)
        compiled = numba.njit(nogil=True, cache=is_cached)(scope[name])
        for listener in listeners:
            listener(True)
        was_collecting = gc.isenabled()
        gc.disable()  # collection would take a twelfth of a cold command's time, and free little
        try:
            compiled.compile((*map(numba.typeof, arguments),))
        except numba.core.errors.NumbaError as error:
            raise KernelError(explanation(str(error))) from None
        finally:
            if was_collecting:
                gc.enable()
            for listener in listeners:
                listener(False)
        _first_calls.seconds += time.perf_counter() - start
        return compiled


def static_kernels(cls: type, names: Iterable[str]) -> None:
    """Make the kernels in the body of a class static, so that access through an instance does not
    bind them.

    Args:
        cls: the class.
        names: the attributes that are kernels. An attribute that the body lacks, or that is None
            or a property, stays as it is.

    Raises:
        KernelError: an attribute is not a plain function, for example because `numba.njit` has
            compiled it.
    """
    for name in names:
        member = vars(cls).get(name)
        if member is not None and not isinstance(member, property):
            setattr(cls, name, staticmethod(kernel(getattr(member, "__func__", member))))


# ------------------------------------------------------------ the folder


def cache_folder() -> Path:
    """Return the folder of compiled kernels, from all versions of the sources. The folder may not
    exist yet.
    """
    base = (
        os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    )
    return Path(base) / "clickgym" / "entries"


def _make_file(file: Path) -> bool:
    """Make the file of an entry. If the folder is not writable, warn and return False."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            with suppress(FileExistsError):
                file.open("x").close()  # stays empty: numba compares only its size and time
    except OSError as error:
        warnings.warn(
            "compiled kernels cannot be saved to disk, so every process compiles them again: "
            f"{error}",
            stacklevel=2,
        )
        return False
    return True
