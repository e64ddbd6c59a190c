"""Compilation of the inner functions: one decorator, one disk cache, and how templates become compiled functions.

A *kernel* is a small function that numba compiles: the inner part of a click model, an agent or a metric. A *template* is
a function written once against names that it leaves open (``sample``, ``rank``, ...); `specialise` binds those names to
the kernels of one click model, or of one model-agent pair, and compiles the result. That is how the scalar
environment, the vector environment and the runner's loop share one definition of a session.

The disk cache. numba does not recompile a cached caller when a kernel that it calls in another file has changed, so the
folder is named by a hash of every source file that may contain kernels and of the versions that matter; different
source states never share it. Kernels from outside the package are not cached at all, for their sources are not in the
hash. Delete the folder (`cache_folder()` names it) at any time: it only costs compiling again.
"""

from __future__ import annotations

import hashlib
import platform
import threading
import types
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import platformdirs

__all__ = ["cache_folder", "inner", "kernel", "specialise"]

njit: Any = numba.njit
config: Any = numba.config
_setting = threading.Lock()

# Kernels allocate nothing, so no reference is counted; and they are small, so a caller gets them inlined.
OPTIONS = {"nogil": True, "_nrt": False, "forceinline": True, "no_cfunc_wrapper": True}

# Compiled functions whose code, or the code of a kernel bound into them, is not part of the package.
_foreign: set[Callable[..., Any]] = set()


@cache
def _package_sources() -> frozenset[Path]:
    """Every Python file of the package that may hold kernels, whether installed or mapped from a checkout."""
    return frozenset(file for name in ("envs", "agents", "runner", "offline") for file in (_root() / name).rglob("*.py"))


def _root() -> Path:
    return Path(__file__).resolve().parents[1]


@cache
def cache_folder() -> Path:
    """The folder of compiled kernels for this exact state of the sources, of numba, NumPy and Python.

    Returns:
        A path below the user's cache folder; it need not exist yet.
    """
    digest = hashlib.sha256()
    for text in (numba.__version__, np.__version__, platform.python_version(), platform.machine()):
        digest.update(text.encode())
    for file in sorted(_package_sources()):
        digest.update(file.relative_to(_root()).as_posix().encode() + file.read_bytes())
    return Path(platformdirs.user_cache_dir("clickgym", appauthor=False)) / f"kernels-{digest.hexdigest()[:16]}"


@cache
def _cache_is_writable() -> bool:
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        probe = cache_folder() / f".writable-{platform.node()}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(f"compiled kernels are not kept on disk: cannot write to {cache_folder()}: {error}", stacklevel=3)
        return False
    return True


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with numba on its first call, without the GIL; kernels of the package are cached on disk.

    A kernel allocates nothing: its working memory is an argument. Reference counts are therefore switched off (they took
    most of the time of an agent's step), and the kernels it calls are compiled into it.

    Args:
        function: a function in numba's subset of Python that makes no array, list or string.

    Returns:
        The compiled function, called like the original.

    Example:
        >>> import numpy as np
        >>> @kernel
        ... def total(values):
        ...     result = 0.0
        ...     for value in values:
        ...         result += value
        ...     return result
        >>> total(np.array([1.0, 2.0]))
        3.0
    """
    return _compiled(function, foreign=Path(function.__code__.co_filename).resolve() not in _package_sources())


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """`kernel` for a function that only kernels call: spared the entry from Python, it compiles faster.

    Args:
        function: as for `kernel`.

    Returns:
        The compiled function, for use in kernels.
    """
    foreign = Path(function.__code__.co_filename).resolve() not in _package_sources()
    return _compiled(function, foreign, OPTIONS | {"no_cpython_wrapper": True})


def _compiled(function: Callable[..., Any], foreign: bool, options: dict[str, bool] = OPTIONS) -> Callable[..., Any]:
    if foreign or not _cache_is_writable():
        result = njit(**options)(function)
    else:
        # numba reads the folder from its settings when the cached function is made, and only then: one thread at a time, or
        # one would read what another has just set back, and write into the working folder.
        with _setting:
            before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())
            try:
                result = njit(**options, cache=True)(function)
            finally:
                config.CACHE_DIR = before
    if foreign:
        _foreign.add(result)
    return result


def specialise(template: Callable[..., Any], *, counted: bool = False, **kernels: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``template`` with its open names bound to ``kernels``.

    The compiled function is cached on disk under a name made of the template's and the kernels' own names, provided that
    all of them belong to the package.

    Args:
        template: a plain function that calls the open names as globals of its module.
        counted: count references at this level. What Python calls with a `numpy.random.Generator` must do so, or the generator
            is never let go; a thin template around an uncounted kernel costs nothing inside.
        **kernels: the compiled kernel to bind to each name.

    Returns:
        The compiled function, the same object for the same arguments.
    """
    return _specialise(template, counted, tuple(sorted(kernels.items())))


@cache
def _specialise(template: Any, counted: bool, kernels: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    bound = types.FunctionType(template.__code__, template.__globals__ | dict(kernels), template.__name__)
    # The name is part of the key of the disk cache, so it must tell apart what is bound.
    parts = [f"{name}={function.py_func.__module__}.{function.py_func.__qualname__}" for name, function in kernels]
    bound.__qualname__ = f"{template.__qualname__}_{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}"
    foreign = any(function in _foreign for _, function in kernels)
    return _compiled(bound, foreign, {"nogil": True} if counted else OPTIONS)
