"""Compilation of the inner functions: one decorator, one disk cache, and how templates become compiled functions.

A *kernel* is a small function that numba compiles: the inner part of a click model, an agent or a metric. A *template* is
a function written once against names that it leaves open (``sample``, ``rank``, ...); `specialise` binds those names to
the kernels of one click model, or of one model-agent pair, and compiles the result. That is how the scalar
environment, the vector environment and the runner's loop share one definition of a session.

The disk cache. numba does not recompile a cached caller when a kernel that it calls in another file has changed, so the
folder is named by a hash of every source file that may contain kernels and of the versions that matter; different
source states never share it. Kernels from outside the package are not cached at all, for their sources are not in the
hash; nor are those of the package where they are called with a type from outside, which another process may not be able to
load. What is damaged is compiled again. Delete the folder (`cache_folder()` names it) at any time: it only costs compiling
again; those of other source states go when none has used them for `MAX_AGE` days.

What is relied upon of numba beyond its documented interface: that a compiled function keeps what it is loaded from and saved
to in ``_cache``, and the two methods that it calls there (`_DiskCache`, `_Entry`); that it compiles by its ``compile``, and
that an error which is not numba's own passes through the compilation of callers (`_explain`).
"""

from __future__ import annotations

import hashlib
import io
import linecache
import os
import pickle
import platform
import re
import shutil
import sys
import sysconfig
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numba
import numpy as np
import platformdirs
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.errors import ForceLiteralArg
from numba.core.serialize import dumps

__all__ = [
    "KernelError",
    "SessionError",
    "cache_folder",
    "cause",
    "inner",
    "kernel",
    "only_own_frames",
    "specialise",
    "static_kernels",
]

njit: Any = numba.njit
config: Any = numba.config
_setting = threading.Lock()

ROOMS = ("core", "envs", "agents", "runner", "offline", "lab")

MAX_AGE = 90
"""Days after which the folder of a source state that nobody uses is removed."""

# Kernels allocate nothing, so no reference is counted; and they are small, so a caller gets them inlined.
OPTIONS = {"nogil": True, "_nrt": False, "forceinline": True, "no_cfunc_wrapper": True}

ALLOCATES = ("NRT required but not enabled", "Only accept returning of array passed into the function as argument")
"""How numba says that a function without reference counts makes something."""


class KernelError(TypeError):
    """A kernel breaks a rule or does not compile; its message is one line, which names the kernel and where."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message  # numba writes into the arguments of what passes through it


class SessionError(RuntimeError):
    """What went wrong while sessions were played; its message is one line, which names who, in which environment, when and why.

    Compiled code raises what Python would, with three exceptions: an index out of range is not noticed, integers overflow in
    silence, and functions of `math` return nan or an infinity where they have no value.
    """


def cause(error: BaseException) -> str:
    """An error in a few words: its kind, its message, and where in the user's own files, if it is known.

    Compiled code tells where only what a kernel raises by a statement of its own; not a division by zero.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _lies_in_package(frame.filename)]
    # What fails in a library was called by the user, who looks for the call.
    where = next((frame for frame in reversed(frames) if not _lies_in_library(frame.filename)), frames[-1] if frames else None)
    line = ""
    if where is not None:
        file = where.filename.removeprefix(f"{Path.cwd()}{os.sep}")
        line = f" ({file}:{where.lineno} in {where.name}: {where.line!r})"
    return f"{type(error).__name__}{': ' if str(error) else ''}{' '.join(str(error).split())}{line}"


def only_own_frames(error: Exception) -> None:
    """Leave of an error's traceback what lies outside the package, if there is any: what its user can look at and put right."""
    frames = []
    step = error.__traceback__
    while step is not None:
        if not _lies_in_package(step.tb_frame.f_code.co_filename):
            frames.append(step)
        step = step.tb_next
    kept = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    if kept is not None:
        error.__traceback__ = kept


@cache
def _package_sources() -> frozenset[Path]:
    """Every Python file of the package that may hold kernels, whether installed or mapped from a checkout."""
    folders = (folder for name in ROOMS for folder in find_spec(f"clickgym.{name}").submodule_search_locations)  # type: ignore
    return frozenset(file for folder in folders for file in Path(folder).resolve().rglob("*.py"))


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
        digest.update(file.as_posix().encode() + file.read_bytes())
    return Path(platformdirs.user_cache_dir("clickgym", appauthor=False)) / f"kernels-{digest.hexdigest()[:16]}"


@cache
def _cache_is_writable() -> bool:
    folder = cache_folder()
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{platform.node()}"
        probe.touch()  # which also tells when the folder was last used
        probe.unlink(missing_ok=True)
        if new:
            _remove_old_folders()
    except OSError as error:
        _warn_once(f"cannot write to {folder}: {error}")
        return False
    return True


def _remove_old_folders() -> None:
    """By age only: whoever changes between two source states comes back to a filled cache."""
    for folder in cache_folder().parent.glob("kernels-*"):
        with suppress(OSError):  # another process may be removing it, too
            if folder != cache_folder() and time.time() - folder.stat().st_mtime > MAX_AGE * 86400:
                shutil.rmtree(folder)


@cache
def _warned() -> set[str]:
    return set()


def _warn_once(problem: str) -> None:
    """A cache that fails costs time, so the first of its problems is enough to say."""
    if not _warned():
        _warned().add(problem)
        warnings.warn(f"compiled kernels are not kept on disk: {problem}", stacklevel=3)


class _OwnNames(pickle.Unpickler):
    """Reads what names only classes that every process with this package can load; refuses before it imports any other."""

    def find_class(self, module: str, name: str) -> Any:
        by_value = module.startswith("numba.cloudpickle")  # a class of __main__ or of a function is rebuilt from its parts
        if module.partition(".")[0] in ("builtins", "copyreg", "numba", "numpy") and not by_value:
            return super().find_class(module, name)
        if not by_value and _lies_in_package(getattr(sys.modules.get(module), "__file__", None)):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not of the package")


def _is_own(signature: Any) -> bool:
    """Whether the types of a signature can be loaded without anything from outside the package."""
    try:
        _OwnNames(io.BytesIO(dumps(signature))).load()
    except Exception:  # refused, or what cannot even be written
        return False
    return True


class _Entry(CompileResultCacheImpl):
    """A compiled function as it is written: with a checksum, for damaged machine code would end the process."""

    # Only in our folder: numba's other places are not named by the sources of what a function calls.
    _locator_classes = [UserProvidedCacheLocator]  # noqa: RUF012

    def reduce(self, data: Any) -> tuple[bytes, bytes]:
        written = dumps(super().reduce(data))
        return hashlib.sha256(written).digest(), written

    def rebuild(self, target_context: Any, reduced_data: tuple[bytes, bytes]) -> Any:
        checksum, written = reduced_data
        if hashlib.sha256(written).digest() != checksum:
            raise ValueError("a file is damaged")
        return super().rebuild(target_context, pickle.loads(written))


class _DiskCache(FunctionCache):
    """numba's cache of one function, of which no failure is anything but a compilation."""

    _impl_class = _Entry

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
            # A full disk may have left the file of another signature under the number of this one.
            if found is None or tuple(found.signature.args) == tuple(getattr(sig, "args", sig)):
                return found
            problem: object = "a file is that of another signature"
        except Exception as error:  # whatever damaged files make of themselves
            problem = repr(error)
        _warn_once(f"cannot read {self.cache_path}: {problem}")
        with suppress(Exception):
            self.flush()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            if _is_own(sig):
                super().save_overload(sig, data)
        except Exception as error:
            _warn_once(f"cannot write to {self.cache_path}: {error}")


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
    return _compiled(function, _is_foreign(function))


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """`kernel` for a function that only kernels call: spared the entry from Python, it compiles faster.

    Args:
        function: as for `kernel`.

    Returns:
        The compiled function, for use in kernels.
    """
    return _compiled(function, _is_foreign(function), OPTIONS | {"no_cpython_wrapper": True})


def static_kernels(cls: type, names: Iterable[str]) -> None:
    """Make the kernels in the body of a class static, so that access through an instance does not bind them.

    Plain functions are compiled by `kernel`: there is nothing else that they could be meant for.

    Args:
        cls: the class.
        names: of the attributes that are kernels; those that the body does not have, or that are None, are left alone.

    Raises:
        KernelError: on what is not a function.
    """
    for name in names:
        given = vars(cls).get(name)
        given = given.__func__ if isinstance(given, staticmethod) else given
        if isinstance(given, types.FunctionType):
            given = kernel(given)
        elif given is not None and not isinstance(given, Dispatcher):
            raise KernelError(f"{cls.__module__}:{cls.__qualname__}: {name} is {given!r}; expected a kernel")
        if given is not None:
            setattr(cls, name, staticmethod(given))


def _lies_in_package(file: str | None) -> bool:
    return file is not None and Path(file).resolve() in _package_sources()


def _lies_in_library(file: str) -> bool:
    """Whether a file comes with Python or is installed: none that who runs it has just written."""
    path = Path(file)
    return path.is_relative_to(sysconfig.get_path("stdlib")) or not {"site-packages", "dist-packages"}.isdisjoint(path.parts)


def _is_foreign(function: Any) -> bool:
    """Whether its source, or that of a kernel which it calls, lies outside the package.

    The code itself tells, so what was sent here by value is known for what it is.
    """
    plain = getattr(function, "py_func", function)
    return not _lies_in_package(plain.__code__.co_filename) or any(map(_is_foreign_kernel, _called(plain)))


_is_foreign_kernel = cache(_is_foreign)


def _called(plain: types.FunctionType) -> list[Dispatcher]:
    """The compiled functions among the globals that a function names."""
    found = [plain.__globals__.get(name) for name in plain.__code__.co_names]
    return [each for each in found if isinstance(each, Dispatcher)]


def _compiled(function: Callable[..., Any], foreign: bool, options: dict[str, bool] = OPTIONS) -> Callable[..., Any]:
    # numba reads the folder from its settings when the cached function is made, and only then: one thread at a time, or
    # one would read what another has just set back, and write into the working folder.
    with _setting:
        before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())
        try:
            result: Any = njit(**options)(function)
            if isinstance(result, Dispatcher):
                _explain(result)
                if not foreign and _cache_is_writable():
                    result._cache = _DiskCache(function)  # type: ignore[attr-defined]
        except (OSError, RuntimeError) as error:  # numba's, where it finds no folder
            _warn_once(f"cannot write to {cache_folder()}: {error}")
        finally:
            config.CACHE_DIR = before
    return result


def _explain(compiled: Any) -> None:
    """Let compilation raise `KernelError` instead of what numba says, which is an account of all that it has tried.

    The innermost kernel raises it, and as it is no error of numba's, the callers pass it on.
    """
    if "compile" in vars(compiled):
        return
    compile_ = compiled.compile

    def explained(signature: Any) -> Any:
        try:
            return compile_(signature)
        except ForceLiteralArg:  # asks for another signature
            raise
        except KernelError as error:
            message = error.message
        except Exception as error:
            message = _explanation(compiled.py_func, tuple(getattr(signature, "args", signature)), str(error))
        raise KernelError(message)

    compiled.compile = explained


def _explanation(function: types.FunctionType, arguments: tuple[Any, ...], error: str) -> str:
    """What is wrong with a kernel, where, and the rule, in one line."""
    code, name = function.__code__, f"{function.__module__}:{function.__qualname__}"
    own = [f"{called.py_func.__module__}:{called.py_func.__qualname__}" for called in _called(function) if _is_foreign(called)]
    if own and _lies_in_package(code.co_filename):
        name += f", which calls {', '.join(own)}"
    file = re.escape(Path(code.co_filename).name)
    said = [int(line) for line in re.findall(rf'{file}(?: \(|", line )(\d+)', error)]
    lines = {line for *_, line in code.co_lines()}
    line = next((line for line in reversed(said) if line in lines), code.co_firstlineno)
    where = f"kernel {name}: line {line} of {code.co_filename}, {linecache.getline(code.co_filename, line).strip()!r}"
    if any(phrase in error for phrase in ALLOCATES):
        return f"{where}, makes an array, list or string, but a kernel allocates nothing: its working memory is an argument"
    unknown = [repr(name) for name, kind in zip(code.co_varnames, arguments, strict=False) if kind is numba.types.pyobject]
    if unknown:
        return f"{where}, does not compile: {', '.join(unknown)} holds something else than numbers and arrays"
    told = [line.strip() for line in error.splitlines() if line.strip() and not line.startswith(("Failed in", "- Resolution"))]
    return f"{where}, does not compile: {' '.join(told[: 1 + told[0].endswith(':')]) if told else 'numba does not say why'}"


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
    for name, function in kernels:
        if not isinstance(function, Dispatcher):
            raise KernelError(f"{name} is {function!r}; expected a kernel: decorate it with clickgym.envs.kernel")
        _explain(function)  # which one that was sent here by value has not been
    bound = types.FunctionType(template.__code__, template.__globals__ | dict(kernels), template.__name__)
    # The name is part of the key of the disk cache, so it must tell apart what is bound.
    parts = [f"{name}={function.py_func.__module__}.{function.py_func.__qualname__}" for name, function in kernels]
    bound.__qualname__ = f"{template.__qualname__}_{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}"
    return _compiled(bound, _is_foreign(bound), {"nogil": True} if counted else OPTIONS)
