"""The key of a compiled kernel: a hash of everything it is compiled from.

That is the code of the functions that it calls, directly or not, with their files and the
constants that they read; the fields of the named tuples among its arguments; the versions of
Python, numba and NumPy. numba itself detects neither an edit in another file nor changed fields.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from .kernel_errors import KernelError, kernel_name

NUMBA: Any = numba.config
LIBRARIES = ("builtins", "math", "numba", "numpy")
"""Modules whose functions numba supports."""


def key_of(functions: dict[Any, list[Any]], records: list[type]) -> str:
    """Return a hash of functions, each with its callees, and of the fields of named tuples."""
    numbers = {function: number for number, function in enumerate(functions)}
    versions = (
        "sealed",
        sys.version,
        numba.__version__,
        np.__version__,
        NUMBA.OPT,
        NUMBA.BOUNDSCHECK,
        *_unseen_code(),
    )
    digest = hashlib.sha256(repr((versions, [_fields_of(kind) for kind in records])).encode())
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


def reached_by(function: Any) -> dict[Any, list[Any]]:
    """Return the functions that a kernel calls, directly or not, each with its callees; the kernel
    itself comes first.

    Raises:
        KernelError: one of them calls itself.
    """
    reached: dict[Any, list[Any]] = {}

    def visit(function: Any, callers: tuple[Any, ...]) -> None:
        if function in callers:
            raise KernelError(
                f"kernel {kernel_name(function)} calls itself; expected a kernel without recursion"
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
        kind = "" if type(value) is tuple else _fields_of(type(value))
        return f"{kind}({', '.join(_text(function, item) for item in value)})"
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype.descr} {value.shape} {value.tobytes()!r}"
    if isinstance(value, type) and hasattr(value, "_fields"):
        return _fields_of(value)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.dtype):
        return repr(value)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if name is None:
        raise KernelError(
            f"kernel {kernel_name(function)} reads a {type(value).__name__}; "
            "expected a number, an array, a tuple or a kernel"
        )
    return f"{getattr(value, '__module__', '')}.{name}"


def _fields_of(record: Any) -> str:
    """Return as text what numba uses of a class of named tuples: the order of its fields, and their
    defaults.
    """
    return f"{record.__module__}.{record.__qualname__}{record._fields}{record._field_defaults}"


def records_among(values: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the classes of the named tuples among values, nested ones included."""
    for value in values:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                yield type(value)
            yield from records_among(value)


def may_be_kept(records: list[Any]) -> bool:
    """Whether another process can import the classes by their names, as numba does."""
    return all(
        getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
        for kind in records
    ) and not any(kind.__module__ == "__main__" for kind in records)
