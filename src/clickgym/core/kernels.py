"""Kernels, small functions in numba's subset of Python; their entries, which Python calls; their
cache.

A *kernel* stays a plain function: a debugger steps through it, and compiled code that calls it
inlines it. It allocates no array, list or string (its working memory is an argument), so no
references are counted. An *entry* is the compiled version of a kernel that Python calls; it is
compiled at its first call. A *factory* is a function that takes kernels and returns a closure that
calls them.

The cache on disk is that of numba, which detects neither an edit in another file nor changed
fields of a named tuple. Each entry therefore lies in a file that is named by a hash of everything
it is compiled from: the code of the functions that it calls, directly or not, with their files and
the constants that they read; the fields of the named tuples among its arguments; the versions of
Python, numba and NumPy. So an edit of a kernel never runs old code, an edit elsewhere compiles
nothing, and a warm process compiles nothing. The folder can be deleted at any time.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import inspect
import linecache
import os
import pickle
import re
import shutil
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from .checks import short
from .parts import compiled_entry, compiled_part, without_garbage_collection

config: Any = numba.config

MAX_AGE = 90
"""Days after which an entry is removed; if it is still in use, it is compiled again."""
DAY = 86_400
"""Seconds."""
LIBRARIES = ("builtins", "math", "numba", "numpy")
"""Modules whose functions numba supports."""
ALLOCATES = (
    "NRT required but not enabled",
    "Only accept returning of array passed into the function as argument",
)
"""Messages of numba about a function without reference counts that allocates an array."""


class KernelError(TypeError):
    """A kernel breaks a rule or does not compile; the message names the kernel and the line."""


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
    return function if config.DISABLE_JIT else compiled_part(function)


_entries: dict[Any, Any] = {}


def entry(function: Callable[..., Any]) -> Any:
    """Return a kernel as Python calls it: compiled without the GIL at its first call, and kept on
    disk.

    Args:
        function: a kernel.

    Returns:
        A function with the same positional arguments; the same object for the same kernel. Its
        method ``bound(*arguments)`` returns the machine code for exactly the types of these
        arguments. The code looks at no type again, which takes numba longer than most kernels
        run: pass it only arguments of these types.

    Raises:
        KernelError: ``function`` is not a Python function.
    """
    try:
        return _entries[function]
    except (KeyError, TypeError):  # it is new, or perhaps no function
        made: Any = kernel(function)
    if config.DISABLE_JIT:
        made.bound = lambda *arguments: made
    else:
        made = _Entry(made)
    return _entries.setdefault(function, made)


class _FirstCalls(threading.local):
    seconds = 0.0


_first_calls = _FirstCalls()


def clock() -> float:
    """Return seconds of wall time, without the time in which this thread compiled kernels."""
    return time.perf_counter() - _first_calls.seconds


class _Entry:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.kernel, self.__name__, self.__doc__ = function, function.__name__, function.__doc__
        self._compiled: dict[tuple[type, ...], Any] = {}
        self._bound: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        compiled = self._compiled.get(tuple(map(type, arguments)))
        return (compiled or self._compile(arguments)[0])(*arguments)

    def bound(self, *arguments: Any) -> Callable[..., Any]:
        form = form_of(arguments)
        code = self._bound.get(form)
        if code is None:
            self._bound[form] = code = self._compile(arguments)[1]
        return code

    def _compile(self, arguments: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
        """Compile for the types of these arguments, or read from disk what was; return the
        function that looks at types, and the machine code for these.
        """
        before, classes = time.perf_counter(), tuple(map(type, arguments))
        functions, records = _reached(self.kernel), list(_records(arguments))
        key, is_kept = _key(functions, records), _may_be_kept(records)
        compiled: Any = self._compiled.get(classes) or _named_entry(self.kernel, key, is_kept)
        try:
            with without_garbage_collection():
                code = compiled.compile(tuple(map(compiled.typeof_pyval, arguments)))
        except NumbaError as error:
            raise KernelError(_explanation(functions, str(error))) from None
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            warnings.warn(f"compiled kernels are not read from disk or kept: {error}", stacklevel=2)
            compiled = _named_entry(self.kernel, key, is_kept=False)
            code = compiled.compile(tuple(map(compiled.typeof_pyval, arguments)))
        self._compiled[classes] = compiled
        _first_calls.seconds += time.perf_counter() - before
        return compiled, code


def form_of(value: Any) -> Any:
    """Return what numba's types depend on: equal forms have equal types."""
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.ndim, value.flags.num
    return (type(value), *map(form_of, value)) if isinstance(value, tuple) else type(value)


def _named_entry(function: Callable[..., Any], key: str, is_kept: bool) -> Callable[..., Any]:
    """Return a function of one line that calls the kernel. It has a file of its own, beside which
    numba stores the machine code.
    """
    name = f"{re.sub('[^A-Za-z0-9]', '_', function.__name__)}_{key}"
    arguments = ", ".join(inspect.signature(function).parameters)
    text = f"def {name}({arguments}):\n    return kernel({arguments})\n"
    file = _kept_file(f"{name}.py") if is_kept else None
    scope: dict[str, Any] = {"kernel": function, "__name__": __name__}
    exec(compile(text, str(file or "<entry>"), "exec"), scope)
    return compiled_entry(scope[name], file)


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
    """Return the file of an entry; None, after a warning, if the folder is not writable, or others
    may write into it.
    """
    file = cache_folder() / name
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close(file.parent)
        (file.parent / "__pycache__").mkdir(exist_ok=True)
        if not file.exists():
            _remove_old_files(file.parent)
            with suppress(FileExistsError):
                file.open("x").close()  # stays empty: numba compares its size and its time
    except OSError as error:
        warnings.warn(f"compiled kernels are not kept on disk: {error}", stacklevel=2)
        return None
    return file


@cache  # once in a process
def _close(folder: Path) -> None:
    """Let nobody else write into the folder, because what is read from it is run.

    Raises:
        PermissionError: it is not ours, and another user may write into it.
    """
    if not hasattr(os, "getuid"):
        return
    status = folder.stat()
    is_open = status.st_mode & 0o022
    if status.st_uid == os.getuid():
        folder.chmod(0o700)
        if is_open:
            warnings.warn(f"others could write into {folder}; it is emptied", stacklevel=2)
            shutil.rmtree(folder)
            folder.mkdir(mode=0o700)
    elif status.st_uid != 0 or is_open:
        raise PermissionError(f"others may write into {folder}")


def _remove_old_files(folder: Path) -> None:
    """Remove old entries, once a day; an entry that is still in use is compiled again."""
    stamp = folder / "last-cleanup"
    if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY:
        return
    stamp.touch()
    for file in [*folder.glob("*.py"), *folder.glob("__pycache__/*")]:
        with suppress(OSError):  # another process may be removing it, too
            if time.time() - file.stat().st_mtime > MAX_AGE * DAY:
                file.unlink()


# ------------------------------------------------------------ the hash


def _key(functions: dict[Any, list[Any]], records: list[type]) -> str:
    """Return a hash of functions, each with its callees, and of the fields of named tuples."""
    numbers = {function: number for number, function in enumerate(functions)}
    versions = (
        "sealed",
        sys.version,
        numba.__version__,
        np.__version__,
        config.OPT,
        config.BOUNDSCHECK,
        *_unseen_code(),
    )
    digest = hashlib.sha256(repr((versions, [_record(kind) for kind in records])).encode())
    for function, called in functions.items():
        calls = [numbers[callee] for callee in called]
        content = _instructions(function.__code__), _constants(function), calls
        # An error of a kernel names its file, and numba imports its module.
        place = function.__module__, function.__code__.co_filename
        digest.update(repr((place, content)).encode())
    return digest.hexdigest()[:40]


@cache
def _unseen_code() -> tuple[bytes, ...]:
    """Return the text of the code that numba generates for kernels without calling a function."""
    return tuple(Path(__file__).with_name(name).read_bytes() for name in ("draws.py", "parts.py"))


def _reached(function: Any) -> dict[Any, list[Any]]:
    """Return the functions that a kernel calls, directly or not, each with its callees; the kernel
    itself comes first.

    Raises:
        KernelError: one of them calls itself.
    """
    reached: dict[Any, list[Any]] = {}

    def visit(function: Any, callers: tuple[Any, ...]) -> None:
        if function in callers:
            raise KernelError(
                f"kernel {_name(function)} calls itself; expected a kernel without recursion"
            )
        if function not in reached:
            reached[function] = [value for value in _read(function).values() if _is_kernel(value)]
            for callee in reached[function]:
                visit(callee, (*callers, function))

    visit(function, ())
    return reached


def _read(function: Any) -> dict[str, Any]:
    """Return the values of the globals and free variables that a function names; numba's wrappers
    are replaced by the functions that they compile.
    """
    code = function.__code__
    free = {
        name: cell.cell_contents
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
    }
    scope = vars(builtins) | function.__globals__ | free
    names = sorted({*_global_names(code), *free})
    return {name: getattr(scope.get(name), "py_func", scope.get(name)) for name in names}


def _is_kernel(value: Any) -> bool:
    return (
        isinstance(value, types.FunctionType)
        and value.__module__.partition(".")[0] not in LIBRARIES
    )


def _global_names(code: types.CodeType) -> set[str]:
    names = {
        step.argval
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    return names.union(
        *(_global_names(const) for const in code.co_consts if isinstance(const, types.CodeType))
    )


def _instructions(code: types.CodeType) -> tuple[Any, ...]:
    """Return the instructions of a function, independent of comments and layout; the docstring is
    the first of its constants.
    """
    constants = [
        _instructions(value) if isinstance(value, types.CodeType) else repr(value)
        for value in code.co_consts
    ]
    if constants and isinstance(code.co_consts[0], str):
        constants[0] = "None"
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_exceptiontable, names, code.co_argcount, constants


def _constants(function: Any) -> list[str]:
    """Return as text the defaults of a function and the values that numba compiles into it;
    different values give different texts.
    """
    read = {name: value for name, value in _read(function).items() if not _is_kernel(value)}
    return [
        f"{name}={_text(function, value)}"
        for name, value in [("defaults", function.__defaults__), *read.items()]
    ]


def _text(function: Any, value: Any) -> str:
    if isinstance(value, tuple):
        kind = "" if type(value) is tuple else _record(type(value))
        return f"{kind}({', '.join(_text(function, item) for item in value)})"
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype.descr} {value.shape} {value.tobytes()!r}"
    if isinstance(value, type) and hasattr(value, "_fields"):
        return _record(value)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.dtype):
        return repr(value)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if name is None:
        raise KernelError(
            f"kernel {_name(function)} reads a {type(value).__name__}; "
            "expected a number, an array, a tuple or a kernel"
        )
    return f"{getattr(value, '__module__', '')}.{name}"


def _record(kind: Any) -> str:
    """Return as text what numba uses of a class of named tuples: the order of its fields, and their
    defaults.
    """
    return f"{kind.__module__}.{kind.__qualname__}{kind._fields}{kind._field_defaults}"


def _records(values: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the classes of the named tuples among values, nested ones included."""
    for value in values:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                yield type(value)
            yield from _records(value)


def _may_be_kept(records: list[Any]) -> bool:
    """Whether another process can import the classes by their names, as numba does."""
    return all(
        getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
        for kind in records
    ) and not any(kind.__module__ == "__main__" for kind in records)


# ------------------------------------------------------------ errors


def _name(function: Any) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _explanation(functions: dict[Any, list[Any]], error: str) -> str:
    """Return in one line what is wrong with a kernel, and where.

    numba reports all its attempts. The first line that it names in one of the kernels is the
    innermost.
    """
    entry, *_ = functions
    function, line, account = entry, entry.__code__.co_firstlineno, error
    for match in re.finditer(r"During: .* at (\S+) \((\d+)\)", error):
        named = [f for f in functions if _has_line(f, match[1], int(match[2]))]
        if named:
            function, line, account = named[0], int(match[2]), error[: match.start()]
            break
    file = function.__code__.co_filename
    source = linecache.getline(file, line).strip()
    where = f"kernel {_name(function)}: line {line} of {file}, {source!r}"
    if any(phrase in account for phrase in ALLOCATES):
        rule = "a kernel allocates nothing: its working memory is an argument"
        return f"{where}, makes an array, list or string, but {rule}"
    reason = account.rpartition("pipeline (step: nopython frontend)")[2]
    words = re.split("There are|File ", reason)[0].split()
    return f"{where}, does not compile: {' '.join(words) or 'numba does not say why'}"


def _has_line(function: Any, file: str, line: int) -> bool:
    code = function.__code__
    return code.co_filename == file and any(line == number for *_, number in code.co_lines())
