"""numba as an optional import, with the numba options for kernels and readable versions of numba's
error messages. All other modules import numba from this module.
"""

from __future__ import annotations

import linecache
import re
from typing import Any

from .errors import PACKAGE

numba: Any
try:
    import numba
    from numba.extending import register_jitable as register_jitable
except ImportError:  # then kernels run as plain Python
    numba = register_jitable = ArgumentsReference = None  # type: ignore[assignment]
else:
    from numba.experimental import structref

    @structref.register
    class ArgumentsReferenceType(numba.types.StructRef):
        """The numba type of `ArgumentsReference`."""

        @property
        def key(self) -> Any:
            """What numba compares to tell types apart. By default it is a text, which is the same
            for two classes of named tuples with one name; numba would use the first class for both.
            """
            return self._fields

    class ArgumentsReference(structref.StructRefProxy):  # type: ignore[no-redef]
        """The arguments of a kernel in numba's memory, so that a compiled generator copies one
        pointer at each ``next``, and not all arguments. It serves only speed.

        Attributes:
            arguments: the tuple of arguments.
        """

    structref.define_proxy(ArgumentsReference, ArgumentsReferenceType, ["arguments"])

COMPILES = numba is not None and not numba.config.DISABLE_JIT

OPTIONS: dict[str, Any] = {}
"""The numba options for kernels that other kernels call. numba does not document these options, so
those that a version of numba lacks are left out.
"""
if numba is not None:
    OPTIONS = {
        "forceinline": True,
        "_nrt": False,  # kernels count no references (see `numba.extending.register_jitable`)
        "no_cpython_wrapper": True,  # like the next option: only compiled code calls the kernel
        "no_cfunc_wrapper": True,
    }
    known = getattr(numba.core.options, "DefaultOptions", None)
    OPTIONS = {name: value for name, value in OPTIONS.items() if hasattr(known, name)}

ALLOCATION_PHRASES = (
    "NRT required but not enabled",
    "Only accept returning of array passed into the function as argument",
    "imprecise type: list(undefined)",
)
"""Phrases in numba's error messages for an array allocation without reference counting, and for an
empty list that the kernel never fills.
"""


class KernelError(TypeError):
    """An error in a kernel that breaks a rule or does not compile. If numba reports the line of the
    error, the message names this line.

    Example:
        >>> from clickgym.core.kernels import kernel
        >>> try:
        ...     kernel(print)
        ... except KernelError as error:
        ...     print(error)
        kernel got <built-in function print>; expected a Python function
    """


def explain_error(error: str) -> str:
    """Return a one-line message that says where and why a kernel does not compile.

    Args:
        error: numba's error message, which lists all attempts at compilation, innermost first. For
            an undefined name, numba's message contains no line number.
    """
    *_, kernel = re.findall(r"Function\(<function (\S+) at", error) or ["?"]
    location, message = f"kernel {kernel}", error
    callee = r"(?:callee type: Function\(<function (\S+) at \S+\)\s+)?"
    for match in re.finditer(callee + r"During: .* at (\S+) \((\d+)\)", error):
        called, file, number = match.groups()
        line = linecache.getline(file, int(number)).strip()
        if line and not file.startswith(numba.__path__[0]):
            location, message = f"line {number} of {file}, {line!r}", error[: match.start()]
            if called and file.startswith(str(PACKAGE)):  # the kernel that our line calls is wrong
                location = f"kernel {called}"
            break
    if any(phrase in message for phrase in ALLOCATION_PHRASES):
        reason = (
            "the kernel creates an array, list or string, but kernels cannot allocate memory; "
            "create the array outside the kernel, and pass it as an argument"
        )
    elif called := re.search(r"Untyped global name '(\w+)':.*<class 'function'>", message):
        reason = f"the function {called[1]} is not a kernel; decorate it with @kernel"
    else:
        reason = re.split(r"nopython frontend\)|specific error:", message)[-1]
        reason = " ".join(re.split("There are|File |During|raised from", reason)[0].split())
    return f"a kernel does not compile: {location}: {reason}"
