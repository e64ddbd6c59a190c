"""Errors of kernels: one line that names the kernel, its line and what is wrong there."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable
from typing import Any

ALLOCATES = (
    "NRT required but not enabled",
    "Only accept returning of array passed into the function as argument",
)
"""Messages of numba about a function without reference counts that allocates an array."""


class KernelError(TypeError):
    """A kernel breaks a rule or does not compile; the message names the kernel and the line."""


def kernel_name(function: Any) -> str:
    """Return what messages call a kernel."""
    return f"{function.__module__}:{function.__qualname__}"


def explanation(functions: Iterable[Any], error: str) -> str:
    """Return in one line what is wrong with a kernel, and where.

    numba reports all its attempts. The first line that it names in one of the kernels is the
    innermost.

    Args:
        functions: the kernel, then the functions that it calls, directly or not.
        error: the message of numba.
    """
    function, *_ = functions
    line, account = function.__code__.co_firstlineno, error
    for match in re.finditer(r"During: .* at (\S+) \((\d+)\)", error):
        named = [each for each in functions if _has_line(each, match[1], int(match[2]))]
        if named:
            function, line, account = named[0], int(match[2]), error[: match.start()]
            break
    file = function.__code__.co_filename
    source = linecache.getline(file, line).strip()
    where = f"kernel {kernel_name(function)}: line {line} of {file}, {source!r}"
    if any(phrase in account for phrase in ALLOCATES):
        rule = "a kernel allocates nothing: its working memory is an argument"
        return f"{where}, makes an array, list or string, but {rule}"
    reason = account.rpartition("pipeline (step: nopython frontend)")[2]
    words = re.split("There are|File ", reason)[0].split()
    return f"{where}, does not compile: {' '.join(words) or 'numba does not say why'}"


def _has_line(function: Any, file: str, line: int) -> bool:
    code = function.__code__
    return code.co_filename == file and any(line == number for *_, number in code.co_lines())
