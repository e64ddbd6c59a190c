"""Initial states of agents and environments: the fields declare dtype, shape and first value of
their arrays.

::

    class State(NamedTuple):
        clicks: Annotated[Ints, "L K"]  # one 0 for each item and position
        mean: Annotated[Floats, "L", math.inf]  # another first value
        changes: Annotated[Floats, "3", (0.0, 0.0, -1.0)]  # a first value for each entry
        order: Annotated[Ints, "L", range]  # 0, 1, ..., L - 1, in each row
        epsilon: float  # no declaration: the hyper-parameter of this name, or the value that
            `first_values` returns

Letters are sizes. For agents: L items, K positions, d features, S states of users, and those that
the agent adds in `sizes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Declared(NamedTuple):
    """An array of a state, as its field declares it."""

    name: str
    dtype: str
    """Its name."""
    shape: tuple[str, ...]
    initial: Any
    """The value of all entries, a value for each entry, or `range`."""


@cache
def declared(state: type) -> tuple[Declared, ...]:
    """Return the arrays that a named tuple declares."""
    arrays = []
    for name, hint in get_type_hints(state, include_extras=True).items():
        if get_origin(hint) is Annotated:
            array, shape, *rest = get_args(hint)
            first = rest[0] if rest else 0
            arrays.append(Declared(name, _scalar(array).__name__, tuple(shape.split()), first))
    return tuple(arrays)


def check_dtypes(state: tuple[Any, ...]) -> None:
    """Raise a ValueError if an array of a state has another dtype than its field says: in an array
    of integers, kernels would silently lose fractions.
    """
    for name, expected in _dtypes(type(state)):
        dtype = getattr(getattr(state, name), "dtype", expected)
        if dtype != expected:
            raise ValueError(
                f"the array {name} of {type(state).__name__} has the dtype {dtype}; its field says "
                f"{expected}"
            )


@cache
def _dtypes(state: type) -> list[tuple[str, np.dtype[Any]]]:
    """Return the name and the dtype of each field that is an array."""
    scalars = {name: _scalar(hint) for name, hint in get_type_hints(state).items()}
    return [
        (name, np.dtype(scalar))
        for name, scalar in scalars.items()
        if isinstance(scalar, type) and issubclass(scalar, np.generic)
    ]


def _scalar(hint: Any) -> type:
    """Return the scalar of an array's type: ``NDArray[scalar]`` is ``ndarray[..., dtype[scalar]]``,
    and has another name in NumPy 2.5.
    """
    while arguments := get_args(hint):
        hint = arguments[-1]
    return hint


def first_arrays(state: type, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Return by name the arrays that a named tuple declares, with their values before the first
    session.

    Raises:
        ValueError: a shape is none, or has a letter that ``sizes`` lacks.
    """
    arrays = {}
    for name, dtype, shape, initial in _measured(state, tuple(sizes.items())):
        arrays[name] = array = np.zeros(shape, dtype)
        if initial is not None:
            array[...] = initial
    return arrays


@lru_cache
def _measured(
    state: type, sizes: tuple[tuple[str, int], ...]
) -> list[tuple[str, np.dtype[Any], tuple[int, ...], Any]]:
    """Return name, dtype, shape and initial value (None: 0) of each array; cached, because many
    agents have the same sizes.
    """
    lengths, arrays = dict(sizes), []
    for name, dtype, declared_shape, initial in declared(state):
        shape = tuple(length_of(text, lengths) for text in declared_shape)
        value = np.arange(shape[-1], dtype=dtype) if initial is range else np.array(initial, dtype)
        arrays.append((name, np.dtype(dtype), shape, value if value.any() else None))
    return arrays


def length_of(text: str, sizes: Mapping[str, int]) -> int:
    """Return the length that ``"L"``, ``"K+1"``, ``"2K+1"`` or ``"64"`` describes."""
    match = re.fullmatch(r"(\d*)(\D?)(?:\+(\d+))?", text)
    if match is None or match[2] not in ("", *sizes):
        raise ValueError(
            f"a length of an array in the state is {text!r}; expected a form such as L, K+1, 2K+1 "
            f"or 64, with the letters {', '.join(sizes)}, and a space between two lengths: 'L K'"
        )
    factor, letter, addend = match.groups()
    return int(factor or 1) * (sizes[letter] if letter else 1) + int(addend or 0)
