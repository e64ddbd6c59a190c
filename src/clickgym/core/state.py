"""Initial states of agents and environments: named tuples whose fields declare the dtype, the shape
and the first value of each array.

::

    class State(NamedTuple):
        clicks: Annotated[Ints, "L K"]  # one 0 for each item and position
        mean: Annotated[Floats, "L", math.inf]  # another first value
        changes: Annotated[Floats, "3", (0.0, 0.0, -1.0)]  # a first value for each entry
        order: Annotated[Ints, "L", range]  # 0, 1, ..., L - 1, in each row
        epsilon: float  # no declaration: the hyperparameter of this name, or the value that
            `first_values` returns

Letters stand for sizes. In an agent's state, the letters are L items, K positions, d features, S
states of users, and the letters that the agent defines in `sizes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
STATE, IS_FIRST, SESSIONS_LEFT = range(3)
"""The entries of a user with memory, in the state of users and in what agents read of it."""


@cache
def _arrays_of(state: type) -> list[tuple[str, np.dtype[Any], list[Any]]]:
    """Return the name, the dtype and the declaration of each array field of a named tuple. A
    declaration is empty, or consists of a shape and, optionally, a first value.
    """
    arrays = []
    for name, hint in get_type_hints(state, include_extras=True).items():
        array, *declaration = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        # NDArray[scalar] is ndarray[..., dtype[scalar]], and has another name in NumPy 2.5
        while arguments := get_args(array):
            array = arguments[-1]
        if isinstance(array, type) and issubclass(array, np.generic):
            arrays.append((name, np.dtype(array), declaration))
    return arrays


def check_dtypes(state: tuple[Any, ...]) -> None:
    """Raise a ValueError if the dtype of an array in a state is not the dtype that the array's
    field declares. Kernels would, for example, silently drop fractions when they write to an
    integer array.
    """
    for name, expected, _ in _arrays_of(type(state)):
        dtype = getattr(getattr(state, name), "dtype", expected)
        if dtype != expected:
            raise ValueError(
                f"the array {name} of {type(state).__name__} has the dtype {dtype}, but its field "
                f"declares {expected}"
            )


def first_arrays(state: type, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Create the arrays that a named tuple declares, with their values before the first session,
    and return the arrays by name.

    Raises:
        ValueError: a shape is malformed, or contains a letter that ``sizes`` lacks; or the first
            value of an array of integers is not a whole number.

    Example:
        >>> from typing import NamedTuple
        >>> class State(NamedTuple):
        ...     rows: Annotated[Ints, "K L", range]
        ...     seen: Annotated[Flags, "2K+1", True]
        ...     epsilon: float
        >>> first_arrays(State, {"L": 3, "K": 2})  # doctest: +NORMALIZE_WHITESPACE
        {'rows': array([[0, 1, 2], [0, 1, 2]]), 'seen': array([ True,  True,  True,  True,  True])}
    """
    arrays = {}
    for name, dtype, declaration in _arrays_of(state):
        if declaration:
            shape, *first = declaration
            arrays[name] = np.zeros([length_of(text, sizes) for text in shape.split()], dtype)
            for value in first:
                arrays[name][...] = np.arange(arrays[name].shape[-1]) if value is range else value
                if dtype.kind == "i" and value is not range and np.any(arrays[name] != value):
                    raise ValueError(
                        f"the first value of {name} in {state.__name__} is {value}; expected "
                        "whole numbers, because its field declares integers"
                    )
    return arrays


def length_of(text: str, sizes: Mapping[str, int]) -> int:
    """Return the length of a dimension that is declared as ``"L"``, ``"K+1"``, ``"2K+1"`` or
    ``"64"``.
    """
    match = re.fullmatch(r"(\d*)(\D?)(?:\+(\d+))?", text)
    if match is None or match[2] not in ("", *sizes):
        raise ValueError(
            f"an array in the state has the length {text!r}; expected lengths such as L, K+1, "
            f"2K+1 or 64, with the letters {', '.join(sizes)}, and a space between two "
            "lengths: 'L K'"
        )
    factor, letter, addend = match.groups()
    return int(factor or 1) * (sizes[letter] if letter else 1) + int(addend or 0)
