"""Kernels (small functions in numba's subset of Python), and the entries through which Python calls
kernels.

A *kernel* remains a plain function: a debugger can step through it, and compiled code that calls
the kernel inlines it. A kernel allocates no array, list or string, so numba need not count
references; if a kernel needs working memory, the caller passes an array. An *entry* is the compiled
version of a kernel, for calls from Python; the first call compiles the entry. `RepeatedCalls` calls
kernels again and again with the same arguments, for example for the steps of an environment. A
*factory* is a function that takes kernels and returns a closure that calls these kernels.

clickgym uses numba's cache on disk, but each entry has its own file, whose name contains a hash of
everything that the entry is compiled from (see `kernel_cache`). After an edit of a kernel, old code
therefore never runs; edits elsewhere cause no compilation; and a process that finds all its entries
on disk compiles nothing. You can delete the cache folder at any time.

Kernels run as plain Python if numba is not installed, if ``NUMBA_DISABLE_JIT=1`` is set, and within
`uncompiled`. They then return the same digits.
"""

from __future__ import annotations

import gc
import inspect
import multiprocessing
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from operator import is_
from typing import Any

import numpy as np

from .compiling import (
    COMPILES,
    OPTIONS,
    ArgumentsReference,
    KernelError,
    explain_error,
    numba,
    register_jitable,
)
from .errors import FIXED_FIELD
from .kernel_cache import cache_folder as cache_folder  # the pages import it from here
from .kernel_cache import kernels_called_by, key_of, make_file, records_among
from .messages import short_repr

_known_to_numba = set[Callable[..., Any]]()
"""The kernels that compiled code can call in this process. A worker process has copies of the
kernels in a user's script, which have the attribute ``is_kernel``, but are new to numba.
"""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as a kernel, which compiled code can call. In Python, the function behaves as
    before.

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
        raise KernelError(f"kernel got {short_repr(function)}; expected a Python function")
    if COMPILES and function not in _known_to_numba:
        # "never" is numba's default; with no option at all, numba expects the function instead
        register_jitable(inline="never", **OPTIONS)(function)
        _known_to_numba.add(function)
    function.is_kernel = True  # type: ignore[attr-defined]
    return function


@cache
def entry(function: Callable[..., Any]) -> Any:
    """Return the compiled version of a kernel, for calls from Python. The first call compiles the
    kernel and saves the machine code on disk. The machine code runs without the GIL.

    Args:
        function: a kernel.

    Returns:
        A function with the kernel's positional arguments. For the same kernel, the result is always
        the same object.

    Raises:
        KernelError: ``function`` is not a Python function.

    Example:
        >>> @kernel
        ... def double(x):
        ...     return 2 * x
        >>> entry(double)(3)
        6
    """
    return _Entry(kernel(function), CALL_SOURCE)


@cache
def _generator(function: Callable[..., Any]) -> Any:
    return _Entry(kernel(function), CALLS_SOURCE)


CALL_SOURCE = """\
def {name}({arguments}):
    return kernel({arguments})
"""
CALLS_SOURCE = """\
@njit(nogil=True)
def calls(is_open, held):
    while is_open[0]:
        yield kernel(*held.arguments)


def {name}(is_open, {arguments}):
    return calls(is_open, ArgumentsReference(({arguments},)))
"""
"""The source code that numba compiles for calls from Python. `CALL_SOURCE` is a function that calls
the kernel. `CALLS_SOURCE` is a function that returns a generator, which calls the kernel at each
``next``. The generator gets its arguments by reference, because numba copies the local variables of
a generator at each ``next``.
"""


class RepeatedCalls:
    """Repeated calls of kernels with the same arguments, such as the steps of an environment.

    When Python calls an entry, numba checks the types of all arguments and unpacks the arguments.
    This takes longer than most kernels run: seven microseconds for a random generator alone. A
    compiled generator unpacks its arguments only once. A `RepeatedCalls` object therefore keeps one
    generator for each kernel, as long as the kernel is called with the same argument objects; with
    other objects, it closes the generator and starts a new one. A copy starts without generators.
    """

    def __init__(self) -> None:
        self._held: dict[Any, tuple[Any, ...]] = {}
        """For each kernel: the arguments, the generator, and the array whose entry keeps the
        generator open.
        """

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the kernel ``function`` and return its result. Between two calls, change the
        contents of array arguments instead of passing other arrays, which numba would have to
        unpack again.
        """
        if not _is_compiled:
            return function(*arguments)
        held, calls, _ = self._held.get(function, NO_CALLS)
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
        """End the generator of a kernel, because numba never frees the arguments of an unfinished
        generator.
        """
        _, calls, is_open = self._held.pop(function, NO_CALLS)
        if calls:
            is_open[0] = False
            next(calls, None)

    def __del__(self) -> None:
        for function in [*self._held]:
            self._close(function)

    def __reduce__(self) -> tuple[Any, ...]:
        return RepeatedCalls, ()


NO_CALLS: tuple[Any, ...] = (), None, None


@contextmanager
def uncompiled() -> Iterator[None]:
    """Context manager within which kernels run as plain Python in all threads, for debugging and
    for tests that finish sooner than compilation would.
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
    """Return the wall-clock time in seconds, minus the time that this thread has spent on compiling
    kernels.
    """
    return time.perf_counter() - _first_calls.seconds


_is_announced = False


def _announce() -> None:
    """Say on stderr that a kernel is being compiled, once in each process, and only if a person may
    wait for it: in a terminal or a notebook, but not in a worker process.
    """
    global _is_announced
    is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    if is_watched and not _is_announced and multiprocessing.parent_process() is None:
        print("compiling … (only the first time, some seconds)", file=sys.stderr)
    _is_announced = True


class _Entry:
    """A kernel, with the compiled functions or generators through which Python calls the kernel."""

    def __init__(self, function: Callable[..., Any], template: str) -> None:
        self.kernel, self._template = function, template
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._compiled: dict[Any, Any] = {}
        """The compiled versions of the kernel. Each combination of named tuples among the arguments
        has its own version, because the key depends on the fields of their classes.
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
        """Return the compiled version of the kernel for the types of some arguments, newly compiled
        or loaded from disk.

        numba saves the machine code of a function next to the function's source file. The function
        that calls the kernel therefore gets its own source file, with the kernel's key in the
        file's name.
        """
        start, kernels = time.perf_counter(), kernels_called_by(self.kernel)
        key = key_of(kernels, arguments, self._template)
        name = f"{re.sub('[^A-Za-z0-9]', '_', self.__name__)}_{key}"
        file = cache_folder() / f"{name}.py" if key else None
        if file is None or not file.exists():
            _announce()
        is_cached = file is not None and make_file(file)
        parameters = ", ".join(inspect.signature(self.kernel).parameters)
        source = self._template.format(name=name, arguments=parameters)
        scope: dict[str, Any] = {"kernel": self.kernel, "__name__": __name__}
        scope |= {"ArgumentsReference": ArgumentsReference, "njit": numba.njit}
        exec(compile(source, str(file or "<entry>"), "exec"), scope)
        options = {"nogil": True, "no_cfunc_wrapper": True}  # nothing calls the entry from C
        compiled = numba.njit(cache=is_cached, **options)(scope[name])
        for called in kernels:
            kernel(called)
        was_collecting = gc.isenabled()
        gc.disable()  # collection would take a twelfth of the time of a command that compiles
        try:
            compiled.compile((*map(numba.typeof, arguments),))
        except numba.core.errors.NumbaError as error:
            raise KernelError(explain_error(str(error))) from None
        except NotImplementedError as error:  # numba's only word on an assignment to a field
            raise KernelError(f"a kernel does not compile: {error}; {FIXED_FIELD}") from None
        finally:
            if was_collecting:
                gc.enable()
                gc.collect(0)  # otherwise the next allocation would start it, while `clock` runs
        _first_calls.seconds += time.perf_counter() - start
        return compiled


def make_kernels_static(cls: type, names: Iterable[str]) -> None:
    """Turn the kernels in the body of a class into static methods, so that access through an
    instance does not bind the kernels.

    Args:
        cls: the class.
        names: the names of the attributes that are kernels. Names that the class body does not
            define, or for which it defines None or a property, are skipped.

    Raises:
        KernelError: an attribute is not a plain function, for example because `numba.njit` has
            already compiled it.
    """
    for name in names:
        member = vars(cls).get(name)
        if member is not None and not isinstance(member, property):
            setattr(cls, name, staticmethod(kernel(getattr(member, "__func__", member))))
