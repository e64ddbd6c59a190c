"""numba, where it is installed: how it compiles kernels, what it says of those that it refuses, and
its events that say when it compiles. The rest of the package reaches it through this file.
"""

from __future__ import annotations

import linecache
import multiprocessing
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

numba: Any
try:
    import numba
    from numba.core import event
    from numba.extending import register_jitable
except ImportError:  # kernels run as Python
    numba = event = register_jitable = None  # type: ignore[assignment]

COMPILES = numba is not None and not numba.config.DISABLE_JIT

OPTIONS: dict[str, Any] = {}
"""How numba compiles a kernel that other kernels call."""
try:  # what numba does not document: without it a cold start takes half as long again
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.options import DefaultOptions
except ImportError:
    pass
else:

    class Part(JITCodeLibrary):
        """The code of a kernel in its callers, which is optimised where they inline it."""

        def _optimize_final_module(self) -> None:
            pass

    class PartCompiler(Compiler):
        """Compiles a kernel to a part."""

        def compile_extra(self, func: Any) -> Any:
            with suppress(AttributeError, TypeError):
                self.state.library = Part(self.state.targetctx.codegen(), func.__qualname__)
            return super().compile_extra(func)

    OPTIONS |= {
        "forceinline": True,
        "_nrt": False,  # no references are counted (see `numba.extending.register_jitable`)
        "no_cpython_wrapper": True,  # like the next: only compiled code calls it
        "no_cfunc_wrapper": True,
    }
    OPTIONS = {name: value for name, value in OPTIONS.items() if hasattr(DefaultOptions, name)}
    OPTIONS["pipeline_class"] = PartCompiler

ALLOCATES = (
    "NRT required but not enabled",
    "Only accept returning of array passed into the function as argument",
)
"""Messages of numba about a function without reference counts that allocates an array."""


class KernelError(TypeError):
    """A kernel breaks a rule or does not compile; the message names the line."""


def explanation(error: str) -> str:
    """Return in one line where a kernel does not compile, and why.

    Args:
        error: the message of numba. It reports all its attempts, the innermost first, and names no
            line where a name does not exist.
    """
    *_, kernel = re.findall(r"<function (\S+) at", error) or ["?"]
    where, account = f"kernel {kernel}", error
    for match in re.finditer(r"During: .* at (\S+) \((\d+)\)", error):
        line = linecache.getline(match[1], int(match[2])).strip()
        if line and not match[1].startswith(numba.__path__[0]):
            where, account = f"line {match[2]} of {match[1]}, {line!r}", error[: match.start()]
            break
    if any(phrase in account for phrase in ALLOCATES):
        reason = (
            "an array, list or string is made, but the working memory of kernels is an argument"
        )
    else:
        reason = account.rpartition("pipeline (step: nopython frontend)")[2]
        reason = " ".join(re.split("There are|File |During", reason)[0].split())
    return f"a kernel does not compile: {where}: {reason}"


COMPILING = "compiling …"

Listener: Any = event.Listener if numba else object


class Compiling(Listener):
    """Context that reports when compilation starts and when it ends; kernels loaded from disk do
    not count.

    Args:
        callback: called with True at the start and with False at the end, from any thread.

    Attributes:
        listening: the number of active contexts in the process.
    """

    listening = 0

    def __init__(self, callback: Callable[[bool], object]) -> None:
        self._callback, self._open, self._lock = callback, 0, threading.Lock()

    def __enter__(self) -> Self:
        if numba:
            event.register("numba:compile", self)
        Compiling.listening += 1
        return self

    def __exit__(self, *_: object) -> None:
        if numba:
            event.unregister("numba:compile", self)
        Compiling.listening -= 1

    def on_start(self, _: Any) -> None:
        """Called when a kernel starts to compile, possibly within another one."""
        self._change(1)

    def on_end(self, _: Any) -> None:
        self._change(-1)

    def _change(self, by: int) -> None:
        with self._lock:
            before, self._open = self._open, self._open + by
            if not before or not self._open:
                self._callback(bool(self._open))


@contextmanager
def compilation_note() -> Iterator[None]:
    """Context that prints a note on stderr, if it is a terminal, when compilation first starts.

    It prints nothing in worker processes, or where a sweep or a command prints its own note.
    """
    is_worker = multiprocessing.current_process().name != "MainProcess"
    if is_worker or Compiling.listening or not sys.stderr.isatty():
        yield
        return
    is_noted = False

    def note(is_compiling: bool) -> None:
        nonlocal is_noted
        if not is_noted:
            print(COMPILING, file=sys.stderr)
        is_noted = True

    with Compiling(note):
        yield
