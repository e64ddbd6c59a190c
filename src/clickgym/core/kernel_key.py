"""The key of a compiled kernel: a hash of everything it is compiled from.

The problem: numba keeps machine code until the file of its function changes, and detects neither an
edit in another file nor changed fields of a named tuple; it would run old code. This file may go
when numba's own cache depends on all that a function calls and reads.

The key is made of the code of the functions that the kernel calls, directly or not, and the values
that they read; the fields of the named tuples among its arguments; the versions of Python, numba
and NumPy. A kernel that reads something whose content is unknown is not kept.
"""

from __future__ import annotations

import enum
import hashlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from .compiling import OPTIONS, numba
from .kernel_errors import KernelError, kernel_name

LIBRARIES = ("_operator", "builtins", "cmath", "math", "numba", "numpy")
"""Modules that change with the versions of Python, numba and NumPy only."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.dtype)
UNKNOWN = ""

_first: dict[Any, str] = {}
"""What each function was compiled from when this process first reached it; `UNKNOWN` once that has
changed: numba compiles what it reads only once, so its code may be of either.
"""


def reached_by(kernel: Any) -> dict[Any, str]:
    """Return by function what a kernel is compiled from: of the kernel, then of the functions that
    it calls, directly or not, the code and the values that they read, or `UNKNOWN`.

    Raises:
        KernelError: it, or a function that it calls, calls itself.
    """
    reached: dict[Any, str] = {}

    def visit(function: Any, callers: tuple[Any, ...]) -> str:
        if function in callers:
            raise KernelError(
                f"kernel {kernel_name(function)} calls itself; expected a kernel without recursion"
            )
        if function not in reached:
            reached[function] = UNKNOWN  # before those that it calls
            code, texts = function.__code__, []
            for name, value in _read(function):
                texts += [name, text(value, _names_in(code), (*callers, function))]
            place = function.__module__, function.__qualname__, code.co_filename
            content = repr((place, _instructions(code), texts))
            if UNKNOWN in texts or _first.setdefault(function, content) != content:
                _first[function] = content = UNKNOWN
            reached[function] = content
        return reached[function]

    def text(value: Any, names: set[str], callers: tuple[Any, ...]) -> str:
        """Different values have different texts; of a module only what the names may read."""
        if isinstance(value, types.FunctionType) and hasattr(value, "is_kernel"):
            return visit(value, callers)
        if isinstance(value, PLAIN):
            return repr(value)
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            return f"{value.dtype.descr} {value.shape} {value.tobytes()!r}"
        if isinstance(value, type) and issubclass(value, tuple | BaseException):
            return _fields_of(value)
        if _is_of_library(value):
            return f"{value.__name__} of {getattr(value, '__module__', '')}"
        if isinstance(value, types.ModuleType):
            value = [(name, getattr(value, name)) for name in sorted(names) if hasattr(value, name)]
        elif isinstance(value, enum.EnumType):
            value = [(name, value[name].value) for name in value.__members__]
        elif isinstance(value, enum.Enum):
            value = [(type(value), value.value)]
        elif not isinstance(value, tuple):
            return UNKNOWN
        parts = [text(part, names, callers) for part in value]
        fields = getattr(value, "_fields", ())
        return UNKNOWN if UNKNOWN in parts else f"{type(value)} {fields} {parts}"

    visit(kernel, ())
    return reached


def _read(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield what numba compiles into a function beside its code: defaults, globals and the free
    variables of a closure, with their names.
    """
    yield "defaults", function.__defaults__
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    for name in sorted(_names_in(code) & function.__globals__.keys()):
        yield name, function.__globals__[name]


def _names_in(code: types.CodeType) -> set[str]:
    """Return the names of globals and attributes in a function, also in functions within it."""
    inner = (value for value in code.co_consts if isinstance(value, types.CodeType))
    return {*code.co_names}.union(*map(_names_in, inner))


def _instructions(code: types.CodeType) -> tuple[Any, ...]:
    """Return the instructions of a function, independent of its place in the file."""
    constants = [
        _instructions(value) if isinstance(value, types.CodeType) else repr(value)
        for value in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_exceptiontable, names, code.co_argcount, constants


def _is_of_library(value: Any) -> bool:
    module = value if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    return (
        name is not None and str(getattr(module, "__name__", module)).partition(".")[0] in LIBRARIES
    )


def _fields_of(record: Any) -> str:
    """Return as text what numba uses of a class of named tuples: the order of its fields, and their
    defaults.
    """
    fields = getattr(record, "_fields", ()), getattr(record, "_field_defaults", {})
    return f"{record.__module__}.{record.__qualname__}{fields}"


def records_among(values: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the classes of the named tuples among values, nested ones included."""
    for value in values:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                yield type(value)
            yield from records_among(value)


def key_of(reached: dict[Any, str], arguments: tuple[Any, ...], text: str) -> str:
    """Return a hash of what a kernel is compiled from for some arguments, in a function of this
    text; empty if that is unknown, or another process cannot import a class of named tuples by its
    name, as numba does.
    """
    records = [*records_among(arguments)]
    if UNKNOWN in reached.values() or not all(map(_is_importable, records)):
        return ""
    config = numba.config
    versions = sys.version, numba.__version__, np.__version__, config.OPT, config.BOUNDSCHECK
    kernel, *_ = reached.values()
    content = repr((versions, text, [*OPTIONS], [*map(_fields_of, records)], kernel))
    return hashlib.sha256(content.encode()).hexdigest()[:40]


def _is_importable(kind: Any) -> bool:
    module = sys.modules.get(kind.__module__)
    return kind.__module__ != "__main__" and getattr(module, kind.__qualname__, None) is kind
