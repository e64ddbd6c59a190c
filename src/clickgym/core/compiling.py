"""numba, if it is installed: its options for kernels, and readable versions of its error messages.
The rest of the package imports numba from this file.
"""

from __future__ import annotations

import linecache
import re
from contextlib import suppress
from typing import Any

numba: Any
try:
    import numba
    from numba.extending import register_jitable
except ImportError:  # kernels run as Python
    numba = register_jitable = None  # type: ignore[assignment]

COMPILES = numba is not None and not numba.config.DISABLE_JIT

OPTIONS: dict[str, Any] = {}
"""numba's options for a kernel that other kernels call."""
try:  # undocumented parts of numba, without which a cold start takes 50 % longer
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.options import DefaultOptions
except ImportError:
    pass
else:

    class CalleeLibrary(JITCodeLibrary):
        """The machine code of a kernel that only other kernels call. It is not optimised here,
        because the callers inline it and are optimised themselves.
        """

        def _optimize_final_module(self) -> None:
            pass

    class CalleeCompiler(Compiler):
        """The compiler of a kernel that only other kernels call."""

        def compile_extra(self, func: Any) -> Any:
            with suppress(AttributeError, TypeError):
                codegen = self.state.targetctx.codegen()
                self.state.library = CalleeLibrary(codegen, func.__qualname__)
            return super().compile_extra(func)

    OPTIONS |= {
        "forceinline": True,
        "_nrt": False,  # no references are counted (see `numba.extending.register_jitable`)
        "no_cpython_wrapper": True,  # like the next option: only compiled code calls the kernel
        "no_cfunc_wrapper": True,
    }
    OPTIONS = {name: value for name, value in OPTIONS.items() if hasattr(DefaultOptions, name)}
    OPTIONS["pipeline_class"] = CalleeCompiler

ALLOCATES = (
    "NRT required but not enabled",
    "Only accept returning of array passed into the function as argument",
)
"""numba's messages if a function compiled without reference counting allocates an array."""


class KernelError(TypeError):
    """A kernel breaks a rule or does not compile; the message names the line."""


def explanation(error: str) -> str:
    """Return one line that says where a kernel does not compile, and why.

    Args:
        error: numba's message. It lists all of numba's attempts, the innermost first. If a name is
            undefined, the message gives no line.
    """
    *_, kernel = re.findall(r"<function (\S+) at", error) or ["?"]
    location, message = f"kernel {kernel}", error
    for match in re.finditer(r"During: .* at (\S+) \((\d+)\)", error):
        line = linecache.getline(match[1], int(match[2])).strip()
        if line and not match[1].startswith(numba.__path__[0]):
            location, message = f"line {match[2]} of {match[1]}, {line!r}", error[: match.start()]
            break
    if any(phrase in message for phrase in ALLOCATES):
        reason = (
            "it creates an array, list or string, but kernels cannot allocate memory; create "
            "the array outside, and pass it as an argument"
        )
    else:
        reason = message.rpartition("pipeline (step: nopython frontend)")[2]
        reason = " ".join(re.split("There are|File |During", reason)[0].split())
    return f"a kernel does not compile: {location}: {reason}"
