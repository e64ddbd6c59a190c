"""A random generator as compiled code gets it: by its addresses, which cost nothing to pass.

The problem: numba takes five microseconds to unpack a generator at every call, more than most
kernels run. An entry that is called once a session therefore gets a `Source`, and makes a generator
from it inside compiled code. Kernels get that generator, and draw the same numbers as from the
original.

The way out: an entry also takes the generator itself, which is what `source_of` returns without
the shortcuts of `parts`. `Source` may go when numba unpacks generators in less than a microsecond.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from .parts import has_members, made_generator


class Source(NamedTuple):
    """Addresses in a bit generator, named as numba names them; valid while it exists."""

    state: int
    fnptr_next_uint64: int
    fnptr_next_uint32: int
    fnptr_next_double: int


class Bound:
    """Machine code that an object has bound (see `clickgym.core.kernels.entry`), and the source of
    its generator. A copy has none: addresses are others there.
    """

    def __init__(self, rng: Any = None, made_for: tuple[Any, ...] = (None, None)) -> None:
        self.rng, self.made_for = rng, made_for
        self.source = None if rng is None else source_of(rng)
        self.code: dict[Any, Any] = {}

    def drawing_from(self, rng: Any) -> Bound:
        """Return the same machine code with another generator."""
        bound = Bound(rng, self.made_for)
        bound.code = self.code
        return bound

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


def source_of(rng: np.random.Generator) -> Any:
    """Return the source of a generator; the generator itself where kernels run as Python, or where
    numba builds generators otherwise.
    """
    if not has_members(Source._fields):
        return rng
    bits = rng.bit_generator.ctypes
    functions = bits.next_uint64, bits.next_uint32, bits.next_double
    addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    return Source(bits.state_address, *addresses)


def generator_of(source: Any) -> Any:
    """Return the generator of a source, in compiled code; a generator itself is returned as it
    is.
    """
    return source


made_generator(generator_of, Source)
