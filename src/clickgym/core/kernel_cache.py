"""The cache of compiled kernels on disk: its folder, and the key of a compiled kernel, which is a
hash of everything that the kernel is compiled from.

numba's own cache reuses a function's machine code until the function's source file changes. numba
notices neither an edit in another file nor a change to the fields of a named tuple, so it would run
outdated code. `key_of` can be deleted once numba's cache depends on everything that a function
calls and reads.

The key is a hash of the kernel's code; the code of all functions that the kernel calls, directly or
indirectly; the values that these functions read; the fields of the named tuples among the kernel's
arguments; and the versions of Python, numba and NumPy. A kernel that reads anything else, or that
contains an inner function, is not saved on disk.
"""

from __future__ import annotations

import hashlib
import os
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .compiling import OPTIONS, numba

VERSIONED_MODULES = ("_operator", "builtins", "cmath", "math", "numba", "numpy")
"""Modules whose contents change only with the version of Python, numba or NumPy."""
PLAIN_TYPES = (type(None), bool, int, float, complex, str, bytes, np.dtype)


class _UnknownContent(Exception):
    """An error for a kernel that cannot be hashed, because the kernel contains an inner function,
    or reads a value that is not a kernel, not a constant, and not part of one of the
    `VERSIONED_MODULES`.
    """


def cache_folder() -> Path:
    """Return the folder of all compiled kernels, including those from older versions of the source
    code. The folder may not exist yet.
    """
    base = (
        os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    )
    return Path(base) / "clickgym" / "entries"


def make_file(file: Path) -> bool:
    """Create the source file of an entry, and return whether the file can be used. If the folder is
    not writable, warn and return False.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            file.touch()  # an empty file, because numba checks only its size and time
    except OSError as error:
        warnings.warn(
            "compiled kernels cannot be saved to disk, so every process compiles them again; set "
            f"XDG_CACHE_HOME to a writable folder ({error})",
            stacklevel=2,
        )
        return False
    return True


def key_of(kernels: list[Any], arguments: tuple[Any, ...], text: str) -> str:
    """Return a hash of everything that a kernel is compiled from.

    Args:
        kernels: the kernel, as a plain Python function, and all kernels that it calls, as
            `kernels_called_by` returns them.
        arguments: the arguments of the kernel's first call. Their types determine what is compiled.
        text: the source code of the function through which Python calls the kernel.

    Returns:
        The hash, or an empty string if the kernel cannot be saved on disk, because the kernel reads
        something that cannot be hashed, or because other processes cannot import the class of an
        argument.
    """
    config, records = numba.config, [*records_among(arguments)]
    versions = sys.version, numba.__version__, np.__version__, config.OPT, config.BOUNDSCHECK
    if any(kind.__module__ == "__main__" or "<" in kind.__qualname__ for kind in records):
        return ""
    content: list[Any] = [versions, text, [*OPTIONS], [*map(_fields_of, records)]]
    try:
        for function in kernels:
            content.append((*_name_of(function), _instructions(function.__code__)))
            values = _values_read(function)
            content += [(name, _content_of(value, kernels)) for name, value in values]
    except _UnknownContent:
        return ""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:40]


def kernels_called_by(kernel: Any) -> list[Any]:
    """Return a kernel and all kernels that it calls, directly or indirectly."""
    kernels = [kernel]  # grows in the loop, because kernels call other kernels
    for function in kernels:
        for _, value in _values_read(function):
            for called in _kernels_in(value):
                if called not in kernels:
                    kernels.append(called)
    return kernels


def _kernels_in(value: Any) -> Iterator[Any]:
    """Yield a value if it is a kernel, or the kernels among the parts of a tuple."""
    if isinstance(value, types.FunctionType) and hasattr(value, "is_kernel"):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _kernels_in(part)


def _values_read(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of everything, apart from code, that numba compiles into a
    function: defaults, free variables of a closure, and globals.
    """
    yield "defaults", function.__defaults__
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    for name in sorted({*code.co_names} & function.__globals__.keys()):
        yield name, function.__globals__[name]


def _content_of(value: Any, kernels: list[Any]) -> Any:
    """Return an object that stands for ``value`` in the key: different values have stand-ins with
    different ``repr``. A kernel is one of ``kernels``, whose code is hashed as well.
    """
    if isinstance(value, types.FunctionType) and value in kernels:
        return "kernel", kernels.index(value)
    if isinstance(value, PLAIN_TYPES):
        return value
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return value.dtype.descr, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return _fields_of(type(value)), [_content_of(part, kernels) for part in value]
    if isinstance(value, type) and issubclass(value, tuple | BaseException):
        return _fields_of(value)
    if hasattr(value, "__name__") and _module_of(value).partition(".")[0] in VERSIONED_MODULES:
        return _name_of(value)
    raise _UnknownContent


def _module_of(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return str(getattr(value, "__module__", ""))


def _name_of(value: Any) -> tuple[str, str]:
    """Return the name of the module that defines a value, and the value's name in this module."""
    return _module_of(value), getattr(value, "__qualname__", getattr(value, "__name__", ""))


def _instructions(code: types.CodeType) -> tuple[Any, ...]:
    """Return a function's instructions and constants, which do not depend on the function's
    position in its file.
    """
    if any(isinstance(value, types.CodeType) for value in code.co_consts):
        raise _UnknownContent  # an inner function, whose repr would contain a memory address
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_exceptiontable, names, code.co_argcount, code.co_consts


def _fields_of(record: Any) -> Any:
    """Return what numba reads from a named tuple's class: the class's name, its fields in order,
    and the fields' defaults.
    """
    return *_name_of(record), getattr(record, "_fields", ()), getattr(record, "_field_defaults", {})


def records_among(values: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the class of every named tuple among some values, including nested named tuples."""
    for value in values:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                yield type(value)
            yield from records_among(value)
