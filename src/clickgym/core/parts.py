"""Shortcuts through numba's interior that keep a cold start short.

Without them kernels are compiled all the same, in up to twice the time.

A *part* is what stands for a kernel in the kernels that call it: typed and lowered, but never
translated to machine code by itself, which takes most of the time. Each reliance on what numba
does not document is named at its line. Where a numba lacks one of them, `SHORT` is False, and
`numba.extending.register_jitable` takes the place of parts.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba.core.options import DefaultOptions
from numba.extending import register_jitable

# `_nrt` is named in the docstring of `register_jitable`: no reference is counted.
# Where it is unknown, kernels are right, and slower.
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
except ImportError:
    SHORT = False


def compiled_part(function: Any) -> Callable[..., Any]:
    """Let compiled code call a function, which stays as it is."""
    if not SHORT:
        return register_jitable(**INLINED)(function)
    if not hasattr(function, "_numba_type_"):
        options = {
            "nopython": True,
            "no_cpython_wrapper": True,
            "no_cfunc_wrapper": True,
            **INLINED,
        }
        # held here: its type does not
        function.part = CPUDispatcher(function, targetoptions=options, pipeline_class=_PartCompiler)
        # numba asks a global for its type by this name
        function._numba_type_ = Dispatcher(function.part)
    return function


def compiled_entry(function: Any, is_cached: bool) -> Any:
    """What Python calls: compiled without the GIL, and kept on disk if it lies in a file."""
    compiled = numba.njit(nogil=True, cache=is_cached)(function)
    if SHORT:
        compiled.__class__ = _QuickEntry
    return compiled


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """numba makes little garbage out of very many objects; going through them takes a tenth of the
    time.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


if SHORT:
    _GENERATOR = numba.typeof(np.random.default_rng(0))

    class _QuickEntry(CPUDispatcher):
        def typeof_pyval(self, val: Any) -> Any:
            """numba asks this for the type of an argument; of a generator it takes longer than most
            kernels run.
            """
            return _GENERATOR if type(val) is np.random.Generator else super().typeof_pyval(val)

    class _Part(JITCodeLibrary):
        """Code that its callers optimise with their own."""

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
            """In the machine code of the callers."""

    class _PartCompiler(Compiler):
        def compile_extra(self, func: Any) -> Any:
            self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)
            return super().compile_extra(func)
