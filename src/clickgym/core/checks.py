"""Checks of arguments. A failed check raises a one-line error that names the argument, its value
and what was expected.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .messages import short_repr, suggestions, value_error

MAX_SESSIONS = 10**15
"""The largest horizon that clickgym accepts. At 10 ns per session, a run of this length takes four
months.
"""
MAX_NUMBER = 1e100
"""The largest absolute value that `check_number` accepts. The product of two such numbers is still
a finite float.
"""
MIN_EXAMINATION = 1e-100  # division by a smaller κ may overflow

EXACT = 1e-9
"""The largest rounding error of a computed probability or expectation."""
AN_ENV = "an environment, as gym.make returns it"

Shape = tuple[int | str | None, ...]
"""The expected shape of an array. For each dimension, an integer is the exact length; a name or
None allows any positive length.
"""


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Check that an argument is one of ``choices``; a ValueError lists valid choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"unknown {name} {short_repr(value)}{suggestions(value, choices)}")
    return value


def as_list(name: str, values: Any, expected: str) -> list[Any]:
    """Return an ordered iterable as a list; a ValueError for any other value names the argument."""
    if isinstance(values, str | bytes | Mapping | Set) or not np.iterable(values):
        raise value_error(name, values, expected)
    return list(values)


def check_labels(name: str, values: Any) -> tuple[str, ...]:
    """Return a sequence of distinct strings as a tuple; a ValueError for any other value names the
    argument.
    """
    example = f", such as [{values!r}]" if isinstance(values, str) else ""
    labels = tuple(as_list(name, values, f"a sequence of strings{example}"))
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
        raise value_error(name, values, "distinct strings")
    return labels


def check_kind(name: str, value: Any, kinds: Any, expected: str) -> None:
    """Check that an argument is an instance of ``kinds``; a TypeError names the argument."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {short_repr(value)}; expected {expected}")


def check_path(name: str, value: Any) -> Path:
    """Return an argument as a `Path`, in which a leading ``~`` is replaced by the home folder; a
    TypeError or ValueError names an argument that is not a path.
    """
    check_kind(name, value, (str, os.PathLike), "a path")
    if not os.fspath(value):
        raise value_error(name, value, "a path")
    return Path(os.path.expanduser(value))  # Path.expanduser fails for an unknown user


def check_flag(name: str, value: Any) -> bool:
    """Check that an argument is exactly True or False; a ValueError names the argument."""
    if not isinstance(value, bool | np.bool_):
        raise value_error(name, value, "True or False")
    return bool(value)


# ------------------------------------------------------------ numbers


def is_integer(value: Any) -> bool:
    """Return whether a value is a Python or NumPy integer. Booleans do not count as integers."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Check that an argument is an integer between ``least`` and ``most``, inclusive; a ValueError
    names the argument.
    """
    if is_integer(value) and least <= value and (most is None or value <= most):
        return int(value)
    if most is not None:
        raise value_error(name, value, f"an integer from {least} to {most}")
    raise value_error(
        name, value, "a positive integer" if least == 1 else f"an integer of at least {least}"
    )


def check_horizon(horizon: Any, least: int = 1, name: str = "horizon") -> int:
    """Check a horizon, and return it as an ``int``. A horizon is at least ``least``, and is either
    an integer or a float without a fractional part, such as ``1e6``.
    """
    is_whole_float = isinstance(horizon, float | np.floating) and horizon.is_integer()
    is_whole = is_integer(horizon) or is_whole_float
    if not is_whole or not least <= horizon <= MAX_SESSIONS:
        raise value_error(name, horizon, f"an integer from {least} to {MAX_SESSIONS:,}")
    return int(horizon)


def check_positions(n_positions: Any, n_items: int, available: int | None = None) -> int:
    """Check that the number of positions exceeds neither the number of items nor the number of
    positions that the parameters cover (``available``).
    """
    check_count("n_positions", n_positions)
    if n_positions > n_items:
        raise ValueError(
            f"n_positions is {n_positions}, but there are only n_items = {n_items} items to show"
        )
    if available is not None and n_positions > available:
        raise ValueError(
            f"n_positions is {n_positions}, but the parameters cover only {available} positions"
        )
    return int(n_positions)


def check_seed(seed: Any) -> int:
    """Check that a seed is a non-negative integer; a ValueError is raised for any other value."""
    return check_count("seed", seed, 0)


def make_rng(seed: Any) -> np.random.Generator:
    """Return the random generator for a seed. A seed is a non-negative integer; None for a random
    seed; or a `SeedSequence`, `BitGenerator` or `Generator` from ``np.random``.
    """
    sources = np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None
    return np.random.default_rng(seed if isinstance(seed, sources) else check_seed(seed))


def check_number(
    name: str,
    value: Any,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """Return a number within bounds as a float; a ValueError for any other value names the
    argument. No number may be larger in absolute value than `MAX_NUMBER`.

    Args:
        name, value: the argument's name, for messages, and its value.
        least, most: inclusive bounds of the number.
        above, below: exclusive bounds of the number.
    """
    is_number = isinstance(value, float | np.floating) or is_integer(value)
    if isinstance(value, np.generic):  # compared with it, `MAX_NUMBER` would overflow in float32
        value = value.item()
    number = float(value) if is_number and abs(value) <= MAX_NUMBER else math.nan
    if least <= number <= most and above < number < below:
        return number
    bounds = []
    if max(least, above) > -math.inf:
        bounds.append(f">= {least:g}" if least > above else f"> {above:g}")
    if min(most, below) < math.inf:
        bounds.append(f"<= {most:g}" if most < below else f"< {below:g}")
    expected = f"a finite number {' and '.join(bounds)}".rstrip()
    raise value_error(name, value, "a probability" if (least, most) == (0, 1) else expected)


# ------------------------------------------------------------ arrays


def is_sequence(values: Any) -> bool:
    """Return whether a value is a sequence other than text or bytes, or an array with at least one
    dimension.
    """
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray)


def as_array(name: str, values: Any, entry_word: str = "") -> NDArray[Any]:
    """Convert an argument to an array; a ValueError names an argument that is not an array.

    If the entries must be numbers, ``entry_word`` is the word for the entries in messages, such as
    "integers". Masked entries raise an error, because NumPy would use the values behind the mask.
    """
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        raise ValueError(f"{name} has masked entries; expected an array without missing entries")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:  # for example, rows have different lengths
        raise value_error(name, values, f"an array ({error})") from None
    if entry_word and array.dtype.kind not in "iuf":
        raise value_error(name, values, f"an array of {entry_word}")
    return array


def _check_shape(name: str, array: NDArray[Any], shape: Shape, allow_empty: bool = False) -> None:
    sizes = zip(shape, array.shape, strict=False)
    fits = array.ndim == len(shape) and all(
        size == length or not isinstance(size, int) for size, length in sizes
    )
    if not fits or not (allow_empty or array.size):
        expected = str(tuple("n" if size is None else size for size in shape)).replace("'", "")
        raise ValueError(f"{name} has shape {array.shape}; expected {expected}")


def _raise_for_first(
    name: str, array: NDArray[Any], is_valid: NDArray[np.bool_], expected: str
) -> None:
    index = np.argwhere(~is_valid)[0]
    index_text, entry = ", ".join(map(str, index)), array[tuple(index)].item()
    raise value_error(f"{name}[{index_text}]" if index_text else name, entry, expected)


def as_integers(
    name: str,
    values: Any,
    shape: Shape,
    least: int = 0,
    below: int | None = None,
    *,
    dtype: type[np.integer[Any]] = np.int64,
    allow_empty: bool = False,
    allow_floats: bool = False,
) -> NDArray[Any]:
    """Convert an argument to an array of integers. Values that are not integers raise an error;
    they are never rounded or truncated.

    Args:
        name: the argument's name, for messages.
        values: integers, as an array of any integer type or as nested sequences.
        shape: the expected shape, in the form of a `Shape`.
        least, below: the smallest allowed integer, and the exclusive upper bound; by default, the
            upper bound is the largest integer that ``dtype`` can hold.
        dtype: the dtype of the result. An array that already has this dtype is returned without a
            copy.
        allow_empty: whether the array may be empty.
        allow_floats: whether floats without a fractional part, such as 1e6, are accepted.

    Raises:
        ValueError: the shape or an entry is invalid; the message names the argument, the shape or
            the first invalid entry, and what was expected.
    """
    array = as_array(name, values, "integers")
    if array.dtype.kind == "f":
        is_valid = (array == np.floor(array)) & np.isfinite(array) & allow_floats
        if not is_valid.all():
            _raise_for_first(name, array, is_valid, "an integer")
    _check_shape(name, array, shape, allow_empty)
    most = int(np.iinfo(dtype).max) if below is None else below - 1
    expected = f"an integer from {least}" + ("" if below is None else f" to {most}")
    if array.size and not least <= array.min() <= array.max() <= most:
        _raise_for_first(name, array, (array >= least) & (array <= most), expected)
    return array.astype(dtype, copy=False)


def as_numbers(
    name: str,
    values: Any,
    shape: Shape,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    expected: str = "a finite number",
    copy: bool = True,
    allow_float32: bool = False,
) -> NDArray[Any]:
    """Convert an argument to a float64 array of finite numbers; raise the same errors as
    `as_integers` for invalid values.

    Args:
        name, values, shape: the argument's name, its value and the expected shape; see
            `as_integers`. The array must not be empty.
        least, most: inclusive bounds of the entries.
        expected: a description of valid entries, for messages.
        copy: whether the result is always a copy of ``values``.
        allow_float32: whether a float32 array stays float32.
    """
    array = as_array(name, values, "numbers")
    dtype = np.float32 if allow_float32 and array.dtype == np.float32 else np.float64
    array = array.astype(dtype, order="C", copy=copy)
    _check_shape(name, array, shape)
    low, high = array.min(), array.max()  # nan if an entry is nan
    if not (least <= low and high <= most and -math.inf < low and high < math.inf):
        is_valid = (array >= least) & (array <= most) & np.isfinite(array)
        _raise_for_first(name, array, is_valid, expected)
    return array


def probabilities(
    name: str, values: Any, shape: Shape, *, least: float = 0.0
) -> NDArray[np.float64]:
    """Convert an argument to a read-only float64 array of probabilities.

    Args:
        name: the argument's name, for messages.
        values: numbers between 0 and 1.
        shape: the expected shape, in the form of a `Shape`.
        least: the smallest allowed probability.

    Raises:
        ValueError: an entry is invalid; the message names the argument, the first invalid entry
            and what was expected.
    """
    range_ = f"(0, 1], at least {least:g}" if least else "[0, 1]"
    array = as_numbers(name, values, shape, least, 1.0, expected=f"a probability in {range_}")
    array.flags.writeable = False
    return array


def outside_unit_interval(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the computed probabilities, of any shape, that are not between 0 and 1, as a vector:
    those that are nan or exceed the interval by more than a rounding error.
    """
    return values[~((values >= -EXACT) & (values <= 1.0 + EXACT))]


def check_examination(examination: ArrayLike, n_positions: int) -> NDArray[np.float64]:
    """Return the examination probabilities κ ``(K,)`` as an array, after checking that each is
    above 0 and at most 1. Clicks at a position with κ = 0 would carry no information.
    """
    check_count("n_positions", n_positions)
    return probabilities("examination", examination, (n_positions,), least=MIN_EXAMINATION)


def browsing_probabilities(examination: ArrayLike, size: int | None = None) -> NDArray[np.float64]:
    """Return the examination probabilities of a user browsing model as a read-only ``(K, K)``
    array, by position and last click. Entries above the diagonal, which the model does not use,
    become 0.
    """
    array = as_array("examination", examination, "numbers").astype(np.float64)
    if array.ndim == 2:
        array[np.triu_indices(len(array), 1, array.shape[1])] = 0.0
    size = len(array) if size is None and array.ndim else size
    return probabilities("examination", array, (size, size))
