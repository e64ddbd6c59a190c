"""Shortcuts through numba's internals that keep a cold start short.

The problem: numba translates each function to machine code by itself, also one that is only called
by others, and translates it again where it is inlined. A *part* represents a kernel in the kernels
that call it: typed and lowered, but not translated by itself, which takes most of the time.

The way out: without the shortcuts kernels compile too, to the same digits, in up to twice the time.
``CLICKGYM_PARTS=0`` in the environment takes it, and so does a numba that lacks one of the names
that are imported here; a comment marks each. A numba that has changed what is behind them needs the
variable. Then `SHORT` is False, and `numba.extending.register_jitable` replaces parts. So the part
below ``if SHORT`` may go as soon as a cold start without it is short enough.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.options import DefaultOptions
from numba.extending import intrinsic, overload, register_jitable

config: Any = numba.config

# `_nrt` appears in the docstring of `register_jitable`: no references are counted.
# If numba ignores it, kernels are correct, but slower.
UNCOUNTED = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
INLINED = {"nogil": True, "forceinline": True, **UNCOUNTED}

try:
    from numba.core.codegen import (
        JITCodeLibrary,
    )  # the code of one function, and when it becomes machine code
    from numba.core.compiler import Compiler  # what a dispatcher compiles by
    from numba.core.registry import CPUDispatcher  # what `njit` returns
    from numba.core.types import Dispatcher  # the type of such a function in others

    SHORT = os.environ.get("CLICKGYM_PARTS", "1") != "0"
    SHORT = SHORT and not config.DISABLE_JIT
except ImportError:
    SHORT = False

GENERATOR = numba.typeof(np.random.default_rng(0))
BITS = types.NumPyRandomBitGeneratorType("bit_generator")


def compiled_part(function: Any) -> Callable[..., Any]:
    """Let compiled code call a function; the function itself is unchanged."""
    if not SHORT:
        return register_jitable(**INLINED)(function)
    if not hasattr(function, "_numba_type_"):
        options = {
            "nopython": True,
            "no_cpython_wrapper": True,
            "no_cfunc_wrapper": True,
            **INLINED,
        }
        # a reference, because its type holds none
        function.part = CPUDispatcher(function, targetoptions=options, pipeline_class=_PartCompiler)
        # numba asks a global for its type by this name
        function._numba_type_ = Dispatcher(function.part)
    return function


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Context without garbage collection, which would take a tenth of the time of compilation and
    free little.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


@cache
def has_members(names: tuple[str, ...]) -> bool:
    """Whether bit generators in compiled code have members of these names."""
    if not SHORT:
        return False
    from numba.core.datamodel import default_manager
    from numba.np.random import generator_core  # noqa: F401 (registers them)

    return set(names) <= set(default_manager[BITS]._fields)


def made_generator(function: Any, record: type) -> None:
    """Let compiled code make a generator from a ``record`` of members of a bit generator by calling
    ``function(source)``; what is no such record is returned as it is.

    The members' names are numba's, and undocumented. The generator owns nothing.
    """

    @intrinsic
    def make(_: Any, source: Any) -> Any:
        def codegen(context: Any, builder: Any, _: Any, values: Any) -> Any:
            bits = cgutils.create_struct_proxy(BITS)(context, builder)
            for number, field in enumerate(source.fields):
                setattr(bits, field, builder.extract_value(values[0], number))
            made = cgutils.create_struct_proxy(GENERATOR)(context, builder)
            made.bit_generator = bits._getvalue()
            return made._getvalue()

        return GENERATOR(source), codegen

    @overload(function, inline="always")
    def choose(source: Any) -> Any:
        def made(source: Any) -> Any:
            return make(source)  # type: ignore[call-arg]

        def same(source: Any) -> Any:
            return source

        return made if getattr(source, "instance_class", None) is record else same

    function.is_kernel = True  # the key of every kernel tells this file


if SHORT:

    class _Part(JITCodeLibrary):
        """Code that is optimised together with its callers."""

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0

        @property
        def codegen(self) -> Any:
            return self

        def set_env(self, name: str, env: object) -> None:
            """Nothing to do: the environment is set in the machine code of the callers."""

    class _PartCompiler(Compiler):
        def compile_extra(self, func: Any) -> Any:
            self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)
            return super().compile_extra(func)
