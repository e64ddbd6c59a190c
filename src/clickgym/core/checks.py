"""Argument checks. Each check raises a one-line error that names the argument, its value and what
was expected.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_SESSIONS = 10**15
"""The largest number of sessions that a command accepts. At 10 ns a session, they take one
processor four months.
"""
LARGEST = 1e100
"""The largest absolute value of a number: products of such numbers stay within the range of floats.
"""

AN_ENV = "an environment, as gym.make returns it"

Shape = tuple[int | str | None, ...]
"""An expected shape. An integer is an exact length; a name or None allows any positive length."""


def short_repr(value: object) -> str:
    """Return the ``repr`` of a value for a message: on one line, shortened if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def value_error(name: str, value: object, expected: str) -> ValueError:
    """Return the ValueError for an argument: its name, its value and what was expected."""
    return ValueError(f"{name} is {short_repr(value)}; expected {expected}")


def as_call(obj: object, **arguments: object) -> str:
    """Return the call that makes an object, without arguments that are None, for its ``repr``.

    Example:
        >>> as_call(range(3), n_items=3, seed=None)
        'range(n_items=3)'
    """
    call = ", ".join(
        f"{name}={short_repr(value)}" for name, value in arguments.items() if value is not None
    )
    return f"{type(obj).__name__}({call})"


# ------------------------------------------------------------ words


def unknown_message(noun: str, name: object, names: Iterable[str]) -> str:
    """Return the message for an unknown name, with `suggestions`."""
    return f"unknown {noun} {short_repr(name)}{suggestions(name, names)}"


def suggestions(name: object, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: a suggestion, if a similar name exists,
    and the available names. Of more than five names, only the five most similar are listed.
    """
    by_letters = {choice.casefold(): choice for choice in names}
    word = str(name).casefold()
    nearest = [by_letters[k] for k in difflib.get_close_matches(word, by_letters, 5, cutoff=0.0)]
    alike = difflib.get_close_matches(word, by_letters, 1, cutoff=0.5)
    suggestion = f"; did you mean {by_letters[alike[0]]!r}?" if alike else ""
    others = f" and {len(by_letters) - 5} more" if len(by_letters) > 5 else ""
    listed = nearest if others else by_letters.values()
    return f"{suggestion} (available: {', '.join(listed)}{others})"


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Check that an argument is one of ``choices``; the ValueError lists the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(unknown_message(name, value, choices))
    return value


def as_list(name: str, values: Any, expected: str) -> list[Any]:
    """Return an ordered iterable as a list; the ValueError names the argument."""
    if isinstance(values, str | bytes | Mapping | Set) or not np.iterable(values):
        raise value_error(name, values, expected)
    return list(values)


def check_labels(name: str, values: Any) -> tuple[str, ...]:
    """Return distinct strings as a tuple; the ValueError names the argument."""
    labels = tuple(as_list(name, values, "a sequence of strings"))
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
        raise value_error(name, values, "distinct strings")
    return labels


def check_kind(name: str, value: Any, kinds: Any, expected: str) -> None:
    """Check that an object is an instance of ``kinds``; the TypeError names the argument."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {short_repr(value)}; expected {expected}")


def check_path(name: str, value: Any) -> Path:
    """Return an argument as a path; the TypeError or ValueError names the argument."""
    check_kind(name, value, (str, os.PathLike), "a path")
    if not os.fspath(value):
        raise value_error(name, value, "a path")
    return Path(value)


def check_flag(name: str, value: Any) -> bool:
    """Check that a value is exactly True or False; the ValueError names the argument."""
    if not isinstance(value, bool | np.bool_):
        raise value_error(name, value, "True or False")
    return bool(value)


# ------------------------------------------------------------ numbers


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; booleans are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Check that a value is an integer from ``least`` to ``most``; the ValueError names the
    argument.
    """
    if is_integer(value) and least <= value and (most is None or value <= most):
        return int(value)
    if most is not None:
        raise value_error(name, value, f"an integer from {least} to {most}")
    raise value_error(
        name, value, "a positive integer" if least == 1 else f"an integer of at least {least}"
    )


def check_horizon(horizon: Any, least: int = 1, name: str = "horizon") -> int:
    """Return a horizon as an int. The horizon must be an integer, or a float without a fraction
    such as ``1e6``, and at least ``least``.
    """
    is_whole_float = isinstance(horizon, float | np.floating) and horizon.is_integer()
    is_whole = is_integer(horizon) or is_whole_float
    if not is_whole or not least <= horizon <= MOST_SESSIONS:
        raise value_error(name, horizon, f"an integer from {least} to {MOST_SESSIONS:,}")
    return int(horizon)


def check_positions(n_positions: Any, n_items: int, available: int | None = None) -> int:
    """Check that there are no more positions than items, and no more than the parameters cover."""
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
    """Check that a seed is a non-negative integer."""
    return check_count("seed", seed, 0)


def generator(seed: Any) -> np.random.Generator:
    """Return the random generator for a seed. A seed is a non-negative integer, None for a random
    seed, or anything else that ``np.random.default_rng`` accepts.
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
    """Return a finite number, at most `LARGEST`, as a float; the ValueError names the argument.

    Args:
        name, value: the argument.
        least, most: bounds that the number may reach.
        above, below: bounds that the number must not reach.
    """
    is_number = isinstance(value, float | np.floating) or is_integer(value)
    number = float(value) if is_number else math.nan
    if least <= number <= most and above < number < below and abs(number) <= LARGEST:
        return number
    lower = f">= {least:g}" if least > above else f"> {above:g}"
    upper = f" and <= {most:g}" if most < below else f" and < {below:g}"
    bounds = lower + upper * (min(most, below) < math.inf)
    is_share = (least, most) == (0, 1)
    raise value_error(name, value, "a probability" if is_share else f"a finite number {bounds}")


# ------------------------------------------------------------ arrays


def is_sequence(values: Any) -> bool:
    """Whether a value has a length: a sequence other than text, or an array with a dimension."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray)


def as_array(name: str, values: Any, numbers: str = "") -> NDArray[Any]:
    """Return ``values`` as an array; the ValueError names the argument.

    If the entries must be numbers, ``numbers`` is the word for them in messages. Masked entries
    raise an error, because NumPy would use the values that the mask hides.
    """
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        raise ValueError(f"{name} has masked entries; expected an array without missing entries")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise value_error(name, values, f"an array ({error})") from None
    if numbers and array.dtype.kind not in "iuf":
        raise value_error(name, values, f"an array of {numbers}")
    return array


def _check_shape(name: str, array: NDArray[Any], shape: Shape, allow_empty: bool) -> None:
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
    """Return ``values`` as an array of integers; nothing is rounded, truncated or converted from
    another type.

    Args:
        name: the argument's name, for messages.
        values: integers, in an array of any integer type or in sequences.
        shape: the expected shape.
        least, below: the range, without ``below``; by default, up to what ``dtype`` can hold.
        dtype: the result's dtype; ``values`` itself is returned if it has this dtype.
        allow_empty: whether the first dimension may be 0.
        allow_floats: whether floats without a fraction, such as 1e6, are accepted.

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
    above: float = -math.inf,
    expected: str = "a finite number",
    allow_empty: bool = False,
    copy: bool = True,
    allow_float32: bool = False,
) -> NDArray[Any]:
    """Return ``values`` as a float64 array of finite numbers; errors are those of `as_integers`.

    Args:
        name, values, shape, allow_empty: as in `as_integers`.
        least, most: the range.
        above: a bound that entries must exceed.
        expected: what an entry must be, for messages.
        copy: whether the result is always a copy.
        allow_float32: whether float32 stays float32.
    """
    array = as_array(name, values, "numbers")
    dtype = np.float32 if allow_float32 and array.dtype == np.float32 else np.float64
    array = array.astype(dtype, order="C", copy=copy)
    _check_shape(name, array, shape, allow_empty)
    low, high = array.min(initial=most), array.max(initial=-math.inf)  # nan if an entry is nan
    if array.size and not (above < low and least <= low and high <= most and np.isfinite(high)):
        is_valid = (array > above) & (array >= least) & (array <= most) & np.isfinite(array)
        _raise_for_first(name, array, is_valid, expected)
    return array


def probabilities(
    name: str, values: Any, shape: Shape, *, least: float = 0.0
) -> NDArray[np.float64]:
    """Return ``values`` as a read-only float array of probabilities.

    Args:
        name: the argument's name, for messages.
        values: numbers in ``[0, 1]``.
        shape: as in `as_integers`.
        least: the smallest probability that is accepted.

    Raises:
        ValueError: an entry is invalid; the message names the argument, the first invalid entry
            and what was expected.
    """
    range_ = f"(0, 1], at least {least:g}" if least else "[0, 1]"
    array = as_numbers(name, values, shape, least, 1.0, expected=f"a probability in {range_}")
    array.flags.writeable = False
    return array


def browsing_probabilities(examination: ArrayLike, size: int | None = None) -> NDArray[np.float64]:
    """Return the `probabilities` of examination by position and last click, ``(K, K)``. Entries
    above the diagonal are not used and become 0.
    """
    array = as_array("examination", examination, "numbers").astype(np.float64)
    if array.ndim == 2:
        array[np.triu_indices(len(array), 1, array.shape[1])] = 0.0
    size = len(array) if size is None and array.ndim else size
    return probabilities("examination", array, (size, size))
