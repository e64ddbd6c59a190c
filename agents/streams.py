"""Streams of random numbers in the state of an agent, for draws when clicks arrive: kernels that learn get no generator.

A stream is one uint64 in an array. It is saved with the state, and a display can repeat its draws from the number with which
its stream began. The generator is SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, OOPSLA
2014). Its arithmetic is modulo 2⁶⁴, which compiled code guarantees only for unsigned integers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import inner

STEP, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BY_11, BY_27, BY_30, BY_31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


def new_stream(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return a new stream, ``(1,)``."""
    return rng.integers(2**64, size=1, dtype=np.uint64)


@inner
def next_uniform(stream):  # type: ignore[no-untyped-def]
    """Return a uniform number in [0, 1), and advance the stream."""
    stream[0] += STEP
    x = stream[0]
    x = (x ^ (x >> BY_30)) * FIRST
    x = (x ^ (x >> BY_27)) * SECOND
    x ^= x >> BY_31
    return np.float64(x >> BY_11) * 2.0**-53


@inner
def draw_direction(stream, direction):  # type: ignore[no-untyped-def]
    """Fill a vector ``(d,)`` with a point of the unit sphere: independent normal numbers, divided by their norm."""
    d, norm = len(direction), 0.0
    while norm == 0.0:
        for j in range(0, d, 2):
            radius, angle = math.sqrt(-2.0 * math.log(1.0 - next_uniform(stream))), 2.0 * math.pi * next_uniform(stream)
            direction[j] = radius * math.cos(angle)
            if j + 1 < d:
                direction[j + 1] = radius * math.sin(angle)
        for j in range(d):
            norm += direction[j] * direction[j]
    norm = math.sqrt(norm)
    for j in range(d):
        direction[j] /= norm


@inner
def shuffle(stream, items, count):  # type: ignore[no-untyped-def]
    """Put ``items[:count]`` in a uniformly random order."""
    for i in range(count - 1):
        j = i + int(next_uniform(stream) * (count - i))
        items[i], items[j] = items[j], items[i]
