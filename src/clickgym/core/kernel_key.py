"""The key of a compiled kernel: a hash of everything it is compiled from.

The problem: numba keeps machine code until the file of its function changes, and detects neither an
edit in another file nor changed fields of a named tuple; it would run old code. This file may go
when numba's own cache depends on all that a function calls and reads.

The key is made of the code of the functions that the kernel calls, directly or not, with their
files and the values that they read, also as attributes of modules; the fields of the named tuples
among its arguments; the versions of Python, numba and NumPy; whether shortcuts through numba are
taken (`parts`). A kernel that reads something whose content is unknown is not kept.
"""

from __future__ import annotations

import builtins
import dis
import enum
import hashlib
import inspect
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from .kernel_errors import KernelError, kernel_name
from .parts import SHORT

NUMBA: Any = numba.config
LIBRARIES = ("_operator", "builtins", "cmath", "math", "numba", "numpy")
"""Modules that change with the versions of Python, numba and NumPy only."""
OF_LIBRARIES = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)
"""What kernels use of them; its name tells what it is."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.dtype)
UNDEFINED = object()


class Reached(NamedTuple):
    """What a kernel is compiled from.

    Attributes:
        functions: the kernel, then the functions that it calls, directly or not, each with a hash
            of its place, its instructions and the values that it reads.
        unknown: values that it reads and whose content is unknown, such as a function in C, or one
            that numba compiles by options of its own.
    """

    functions: dict[Any, str]
    unknown: list[Any]


_first_hashes: dict[Any, str] = {}
"""The hash of each function when this process first reached it; empty once it has been another.
What it reads is compiled into it once for each kind of arguments, so its code may be of either.
"""


def key_of(reached: Reached, records: list[Any]) -> str:
    """Return a hash of what a kernel is compiled from, and of the fields of named tuples."""
    versions = (
        "sealed",
        sys.version,
        numba.__version__,
        np.__version__,
        NUMBA.OPT,
        NUMBA.BOUNDSCHECK,
        SHORT,
        *_unseen_code(),
    )
    kernel, *_ = reached.functions.values()
    return _hash(versions, [_fields_of(kind) for kind in records], kernel)[:40]


def _hash(*content: Any) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


@cache
def _unseen_code() -> tuple[bytes, ...]:
    """Return the text of the code that numba generates for kernels without calling a function."""
    return tuple(Path(__file__).with_name(name).read_bytes() for name in ("draws.py", "parts.py"))


def reached_by(kernel: Any) -> Reached:
    """Return what a kernel is compiled from; the kernel itself comes first.

    Raises:
        KernelError: it, or a function that it calls, calls itself or reads an undefined name.
    """
    reached = Reached({}, [])

    def visit(function: Any, callers: tuple[Any, ...]) -> str:
        if function in callers:
            raise KernelError(
                f"kernel {kernel_name(function)} calls itself; expected a kernel without recursion"
            )
        if function not in reached.functions:
            reached.functions[function] = ""  # before those that it calls
            read = [(name, text(value, (*callers, function))) for name, value in _read(function)]
            # An error of a kernel names its file, and numba imports its module.
            place = function.__module__, function.__code__.co_filename
            reached.functions[function] = _hash(place, _instructions(function.__code__), read)
        return reached.functions[function]

    def text(value: Any, callers: tuple[Any, ...]) -> str:
        """Different values have different texts, unless they are unknown."""
        if isinstance(value, np.ndarray | np.generic):
            return f"{value.dtype.descr} {value.shape} {value.tobytes()!r}"
        if isinstance(value, enum.Enum):
            return f"{_name_of(type(value))} {value.name}={text(value.value, callers)}"
        if isinstance(value, PLAIN):
            return repr(value)
        if isinstance(value, tuple):
            kind = "" if type(value) is tuple else _fields_of(type(value))
            return f"{kind}({', '.join(text(item, callers) for item in value)})"
        if isinstance(value, OF_LIBRARIES) and _is_of_library(value):
            return _name_of(value)
        if isinstance(value, types.FunctionType) and hasattr(value, "is_kernel"):
            return visit(value, callers)
        if isinstance(value, enum.EnumType):
            return text(tuple(value.__members__.items()), callers)
        if isinstance(value, type) and issubclass(value, BaseException):  # it is never compiled
            return _name_of(value)
        if isinstance(value, type) and hasattr(value, "_fields"):
            return _fields_of(value)
        reached.unknown.append(value)
        return "unknown"

    visit(kernel, ())
    return reached


def _read(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the defaults of a function, and what numba compiles into it: its globals and free
    variables, or what it reads through them of modules, with their names.

    Raises:
        KernelError: there is no such name.
    """
    yield "defaults", function.__defaults__
    code = function.__code__
    free = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name, *attributes in sorted(_names(code)):
        if name in free:
            value = free[name].cell_contents
        else:
            value = function.__globals__.get(name, vars(builtins).get(name, UNDEFINED))
        for attribute in attributes:
            if not isinstance(value, types.ModuleType) or _is_of_library(value):
                break
            name, value = f"{name}.{attribute}", getattr(value, attribute, UNDEFINED)
        if value is UNDEFINED:
            raise KernelError(f"kernel {kernel_name(function)}: the name {name!r} is not defined")
        yield name, value


def _names(code: types.CodeType) -> set[tuple[str, ...]]:
    """Return the globals and free variables that code reads, each with the attributes that it reads
    of it, such as ``("package", "module", "function")``.
    """
    names: set[tuple[str, ...]] = set()
    chain: tuple[str, ...] = ()
    for step in dis.get_instructions(code):
        if chain and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain = (*chain, step.argval)
        elif step.opname != "EXTENDED_ARG":
            names.add(chain)
            is_read = step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
            chain = (step.argval,) if is_read else ()
    inner = [_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return names.union(*inner) - {()}


def _instructions(code: types.CodeType) -> tuple[Any, ...]:
    """Return the instructions of a function, independent of comments and layout; a docstring is the
    first of its constants.
    """
    constants = [
        _instructions(value) if isinstance(value, types.CodeType) else repr(value)
        for value in code.co_consts
    ]
    # before 3.14 the first constant of a function without a docstring is None
    may_be_other = sys.version_info >= (3, 14) and not code.co_flags & inspect.CO_HAS_DOCSTRING
    if constants and isinstance(code.co_consts[0], str) and not may_be_other:
        constants[0] = "None"
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_exceptiontable, names, code.co_argcount, constants


def _is_of_library(value: Any) -> bool:
    module = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return str(module).partition(".")[0] in LIBRARIES


def _name_of(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"


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


def may_be_kept(reached: Reached, records: list[Any]) -> bool:
    """Whether the key tells all, no value has changed since it was first reached in this process,
    and another process can import the classes of named tuples by their names, as numba does.
    """
    for function, content in reached.functions.items():
        if _first_hashes.setdefault(function, content) != content:
            _first_hashes[function] = ""
    return (
        not reached.unknown
        and all(_first_hashes[function] for function in reached.functions)
        and all(
            getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
            for kind in records
        )
        and not any(kind.__module__ == "__main__" for kind in records)
    )
