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
    innermost. It names no line where a name or an attribute of a module does not exist.

    Args:
        functions: the kernel, then the functions that it calls, directly or not.
        error: the message of numba.
    """
    lines = [
        (each, each.__code__.co_filename, number)
        for each in functions
        for number in sorted({line for *_, line in each.__code__.co_lines() if line})
    ]
    missing = re.search(r"name '(\w+)' is not defined|module \S+ has no attribute '(\w+)'", error)
    if missing:
        word, account = rf"\b{missing[1] or missing[2]}\b", missing[0]
        named = [line for line in lines if re.search(word, linecache.getline(*line[1:]))]
    else:
        named, account = [], error
        for match in re.finditer(r"During: .* at (\S+) \((\d+)\)", error):
            named = [line for line in lines if line[1:] == (match[1], int(match[2]))]
            if named:
                account = error[: match.start()]
                break
    function, file, number = [*named, *lines][0]
    source = linecache.getline(file, number).strip()
    where = f"kernel {kernel_name(function)}: line {number} of {file}, {source!r}"
    if any(phrase in account for phrase in ALLOCATES):
        rule = "a kernel allocates nothing: its working memory is an argument"
        return f"{where}, makes an array, list or string, but {rule}"
    reason = account.rpartition("pipeline (step: nopython frontend)")[2]
    words = re.split("There are|File ", reason)[0].split()
    return f"{where}, does not compile: {' '.join(words) or 'numba does not say why'}"
