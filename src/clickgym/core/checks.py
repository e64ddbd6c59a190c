"""Checks of arguments with clear error messages, for the whole package."""

from __future__ import annotations

import difflib
import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_NAMES = 5
"""Names that the message about an unknown one lists."""
MOST_SESSIONS = 10**15
"""Of all that is played at once: at 10 ns a session, four months of a processor."""

INTEGER, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
NO_NUMBER = (bool, np.timedelta64)
"""What Python or NumPy calls an integer, and is none here."""
SEEDS = (np.random.SeedSequence, np.random.BitGenerator, np.random.Generator)
"""Of which NumPy makes generators."""
MOST = 2**53
"""The largest count: up to here an integer and the float of the same value tell the same."""

LARGEST = 1e100
"""How large a number that scales others may be, so that their products stay within the range of
floats.
"""


AN_ENV = "an environment, as gym.make returns it"
A_VECTOR_ENV = "a vector environment, as gym.make_vec returns it"


def short(thing: object) -> str:
    """A value for a message: on one line, and not too long."""
    try:
        text = " ".join(repr(thing).split())
    except ValueError:  # an integer of more digits than Python writes
        text = "an integer of too many digits"
    return text if len(text) <= 80 else text[:77] + "..."


def as_call(thing: object, **arguments: object) -> str:
    """The ``repr`` of an object: the call that makes it, without arguments that are None.

    Example:
        >>> as_call(range(3), n_items=3, seed=None)
        'range(n_items=3)'
    """
    call = ", ".join(
        f"{name}={short(value)}" for name, value in arguments.items() if value is not None
    )
    return f"{type(thing).__name__}({call})"


# --------------------------------------------------------------------------------------------------------- single values


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; booleans are none."""
    return isinstance(value, INTEGER) and not isinstance(value, NO_NUMBER)


def _is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold; nan and infinities are."""
    return _is_numeric(type(value)) and (not isinstance(value, int) or abs(value) < 2**1023)


def _is_numeric(kind: type) -> bool:
    return issubclass(kind, NUMBER) and not issubclass(kind, NO_NUMBER)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Check an integer of at least ``least`` (default 1); the ValueError names the parameter."""
    if not is_integer(value) or not least <= value <= MOST:
        expected = "a positive integer" if least == 1 else f"an integer of at least {least}"
        limit = f", at most {MOST}" if is_integer(value) and value > MOST else ""
        raise ValueError(f"{name} is {short(value)}; expected {expected}{limit}")
    return int(value)


def check_within(name: str, value: Any, least: int, most: int, bound: str = "") -> int:
    """Check an integer from ``least`` to ``most``, which messages explain by ``bound``; the
    ValueError names the parameter.
    """
    if not is_integer(value) or not least <= value <= most:
        raise ValueError(
            f"{name} is {short(value)}; expected an integer from {least} to {bound}{most}"
        )
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Check that a value is exactly True or False; the ValueError names the parameter."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} is {short(value)}; expected True or False")
    return bool(value)


def check_labels(name: str, values: Any) -> tuple[str, ...]:
    """Distinct strings as a tuple; the message of the ValueError names the argument and the first
    that is not.
    """
    unordered = isinstance(values, str | bytes | Mapping | Set) or (
        isinstance(values, np.ndarray) and not values.ndim
    )
    if unordered or not isinstance(values, Iterable):
        raise ValueError(f"{name} is {short(values)}; expected a sequence of strings")
    labels = tuple(values)
    for place, label in enumerate(labels):
        if not isinstance(label, str):
            raise ValueError(f"{name}[{place}] is {short(label)}; expected a string")
    if len(set(labels)) < len(labels):
        first: dict[str, int] = {}
        place = next(
            place for place, label in enumerate(labels) if first.setdefault(label, place) != place
        )
        raise ValueError(
            f"{name}[{place}] is {short(labels[place])}, as {name}[{first[labels[place]]}]; expected each once"
        )
    return labels


def unknown(what: str, name: object, names: Iterable[str]) -> str:
    """The message for an unknown name: a suggestion if there is a similar name, and the existing
    names, of many the nearest.
    """
    names = list(names)
    nearest = (
        names
        if len(names) <= MOST_NAMES
        else difflib.get_close_matches(str(name), names, n=MOST_NAMES, cutoff=0.0)
    )
    others = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return (
        f"unknown {what} {short(name)}{hint(name, names)} (there is: {', '.join(nearest)}{others})"
    )


def hint(name: object, names: Iterable[str]) -> str:
    """A suggestion of a similar name, for the message about an unknown name; empty if there is
    none.
    """
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


class Choices(tuple[str, ...]):
    """The words that an argument may be; whatever else is asked for is not among them, arrays
    too.
    """

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and tuple.__contains__(self, value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Check that an argument is one of some words; the ValueError names the argument and the
    words.
    """
    if value not in Choices(choices):
        raise ValueError(unknown(name, value, choices))
    return str(value)


def check_path(name: str, value: Any) -> Path:
    """A path; the message of the TypeError or ValueError names the argument."""
    check_kind(name, value, (str, os.PathLike), "a path")
    try:
        if b"\0" in os.fsencode(value):
            raise ValueError
    except ValueError:  # also characters that no system can write
        raise ValueError(f"{name} is {short(value)}, which is no path") from None
    return Path(value)


def check_text(name: str, value: Any) -> str:
    """A string; the message of the TypeError names the argument."""
    check_kind(name, value, str, "text")
    return str(value)


def check_callable(name: str, value: Any) -> None:
    """Check that an argument can be called; the TypeError names the argument."""
    if not callable(value):
        raise TypeError(f"{name} is {short(value)}; expected a function")


def check_kind(
    name: str, value: Any, kinds: type | tuple[type, ...] | UnionType, expected: str
) -> None:
    """Check that an object is an instance of some classes; the TypeError names the argument."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {short(value)}; expected {expected}")


# ---------------------------------------------------------------------------------------------------------------- arrays


def is_sequence(values: Any) -> bool:
    """Whether there is a number of entries: a sequence that is no text, or an array with a
    dimension.
    """
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray)


def as_array(name: str, values: Any) -> NDArray[Any]:
    """``values`` as an array of whatever type; the message of the ValueError or TypeError names the
    argument.
    """
    if type(values) is np.ndarray:  # at once: every step of a vector environment comes through here
        return values
    if isinstance(values, bytearray) or (
        isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
    ):
        raise ValueError(f"{name} is {short(values)}; expected an array without gaps")
    try:
        array = np.asarray(values)
    except (
        ValueError,
        TypeError,
        RuntimeError,
    ) as error:  # rows of different lengths, or nested too deep
        raise ValueError(f"{name} is {short(values)}; expected an array ({error})") from None
    if isinstance(values, list | tuple) and array.dtype.kind in "iuf" and _has_flags(values):
        raise TypeError(f"{name} is {short(values)}; expected numbers, not booleans among them")
    return array


def _has_flags(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether there are booleans in nested sequences; NumPy would read them as 1 and 0."""
    kinds = set(map(type, values))
    if not kinds.isdisjoint((list, tuple)):
        return any(_has_flags(value) for value in values if isinstance(value, list | tuple))
    return not kinds.isdisjoint((bool, np.bool_))


def _entries(name: str, values: Any, what: str) -> NDArray[Any]:
    """An array of integers or floats, or one of Python's numbers where lists were given: NumPy
    alone would read True as 1 and 0.5 as 0.
    """
    if not isinstance(values, list | tuple):
        array = as_array(name, values)
        if array.dtype.kind in "iuf":
            return array
    message = f"{name} must be an array of {what}"
    try:
        array = np.array(values, dtype=object)
        wrong = set(itertools.filterfalse(_is_numeric, set(map(type, array.flat))))
    except (ValueError, RuntimeError):  # arrays of different lengths, or nested too deep
        raise ValueError(f"{message}, got {short(values)}") from None
    if wrong:
        place, entry = next(
            (place, entry) for place, entry in np.ndenumerate(array) if type(entry) in wrong
        )
        nested = not place or isinstance(entry, list | tuple | np.ndarray)
        raise ValueError(
            f"{message}, got {short(values)}"
            if nested
            else f"{_entry(name, place, entry)}; {message}"
        )
    return array


def _entry(name: str, place: Iterable[int], value: Any) -> str:
    return f"{name}[{', '.join(map(str, place))}] is {short(value)}"


def _check_shape(
    name: str, array: NDArray[Any], shape: tuple[int | str | None, ...], empty: bool
) -> None:
    fits = array.ndim == len(shape) and all(
        have == size if isinstance(size, int) else have > 0 or (empty and not place)
        for place, (have, size) in enumerate(zip(array.shape, shape, strict=True))
    )
    if not fits:
        sizes = ", ".join("n" if size is None else str(size) for size in shape) + (
            "," if len(shape) == 1 else ""
        )
        raise ValueError(f"{name} has shape {array.shape}; expected ({sizes})")


def _refuse(name: str, array: NDArray[Any], place: NDArray[Any], expected: str) -> None:
    entry = array[tuple(place)]
    raise ValueError(
        f"{_entry(name, place, entry.item() if isinstance(entry, np.generic) else entry)}; expected {expected}"
    )


def _are_integers(array: NDArray[Any], whole: bool) -> NDArray[np.bool_] | np.bool_:
    """Which numbers are integers; with ``whole`` also floats without a fraction."""
    if array.dtype.kind == "f":
        return (array == np.floor(array)) & np.isfinite(array) & whole
    if array.dtype.kind == "O":
        return np.vectorize(
            lambda value: is_integer(value) or (whole and float(value).is_integer()), otypes=[bool]
        )(array)
    return np.True_


def integers(
    name: str,
    values: Any,
    shape: tuple[int | str | None, ...],
    least: int = 0,
    below: int | None = None,
    *,
    dtype: type[np.integer[Any]] = np.int64,
    empty: bool = False,
    whole: bool = False,
) -> NDArray[Any]:
    """``values`` as an array of integers; nothing is rounded, cut off or read as a number that is
    none.

    Args:
        name: the argument's name, for messages.
        values: integers, in an array of any integer type or in sequences.
        shape: the expected shape; a name (or None) where any positive length will do.
        least, below: the range; None for what ``dtype`` can hold.
        dtype: of the result, which is ``values`` itself if they have it.
        empty: whether the first dimension may be 0.
        whole: whether floats without a fraction, as 1e6, will do.

    Raises:
        ValueError: naming the argument, the first bad entry and what was expected.
    """
    array = _entries(name, values, "integers")
    good = _are_integers(array, whole)
    if not good.all():
        _refuse(name, array, np.argwhere(~good)[0], "an integer")
    _check_shape(name, array, shape, empty)
    most = (
        min(int(np.iinfo(dtype).max), MOST if whole else math.inf) if below is None else below - 1
    )
    if array.size and not least <= array.min() <= array.max() <= most:
        expected = f"an integer from {least}" + (
            "" if below is None and array.max() <= most else f" to {most}"
        )
        _refuse(name, array, np.argwhere((array < least) | (array > most))[0], expected)
    return array.astype(dtype, copy=False)


def numbers(
    name: str,
    values: Any,
    shape: tuple[int | str | None, ...],
    least: float = -math.inf,
    most: float = math.inf,
    *,
    above: float = -math.inf,
    expected: str = "a finite number",
    empty: bool = False,
    dtype: type[np.float64] | None = np.float64,
    copy: bool = True,
) -> NDArray[Any]:
    """``values`` as an array of finite floats; as `integers`.

    Args:
        name, values, shape, empty: as in `integers`.
        least, most, above: the range, without ``above``.
        expected: what its entries are, for messages.
        dtype: of the result; None keeps that of an array of numbers.
        copy: whether the result is an array of its own, whatever ``values`` is.
    """
    array = _entries(name, values, "numbers")
    try:
        result_dtype = array.dtype if dtype is None and array.dtype.kind != "O" else np.float64
        array = array.astype(result_dtype, order="C", copy=copy)
    except OverflowError:  # an integer that no float can hold
        _refuse(
            name, array, np.argwhere(~np.vectorize(_is_number, otypes=[bool])(array))[0], expected
        )
    _check_shape(name, array, shape, empty)
    low, high = (array.min(), array.max()) if array.size else (most, most)  # nan, if there is one
    if array.size and not (above < low and least <= low and high <= most and np.isfinite(high)):
        good = (array > above) & (array >= least) & (array <= most) & np.isfinite(array)
        _refuse(name, array, np.argwhere(~good)[0], expected)
    return array


def probabilities(
    name: str, values: Any, shape: tuple[int | str | None, ...], *, least: float = 0.0
) -> NDArray[np.float64]:
    """``values`` as a read-only float array of probabilities.

    Args:
        name: the parameter's name, for messages.
        values: numbers in ``[0, 1]``.
        shape: as in `integers`.
        least: the smallest that will do.

    Raises:
        ValueError: naming the parameter, the first bad entry and what was expected.
    """
    expected = (
        f"a probability in (0, 1], at least {least:g}" if least else "a probability in [0, 1]"
    )
    array = numbers(name, values, shape, least, 1.0, expected=expected)
    array.flags.writeable = False
    return array


def browsing_probabilities(
    name: str, values: ArrayLike, size: int | None = None
) -> NDArray[np.float64]:
    """`probabilities` by position and last click, ``(K, K)``: what lies above the triangle that is
    used is stored as 0.
    """
    try:
        used = np.array(values, dtype=object)
    except ValueError:  # arrays of different lengths
        used = np.array(None)
    if used.ndim == 2:
        used[np.triu_indices(used.shape[0], 1, used.shape[1])] = 0.0
    size = len(used) if size is None and used.ndim else size
    return probabilities(name, used.tolist(), (size, size))


def probability(name: str, value: Any) -> float:
    """``value`` as a probability; the message of the ValueError names the parameter."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{name} is {short(value)}; expected a probability in [0, 1]")
    return float(value)


def check_positions(n_positions: Any, n_items: int, available: int | None = None) -> int:
    """Check a number of positions against the items there are, and against the positions that
    parameters cover.
    """
    n_items, n_positions = check_count("n_items", n_items), check_count("n_positions", n_positions)
    if n_positions > n_items:
        raise ValueError(
            f"n_positions is {n_positions}, but there are only n_items = {n_items} items to show"
        )
    if available is not None and n_positions > available:
        raise ValueError(
            f"n_positions is {n_positions}, but the parameters cover only {available} positions"
        )
    return n_positions


def check_seed(seed: Any) -> int:
    """A seed: an integer from 0; the message of the ValueError says so."""
    if not is_integer(seed) or seed < 0:
        raise ValueError(f"seed is {short(seed)}; expected a non-negative integer")
    return int(seed)


def generator(seed: Any) -> np.random.Generator:
    """The generator of a seed: an integer from 0, None for a random one, or what NumPy makes
    generators of.
    """
    if seed is not None and not isinstance(seed, SEEDS):
        seed = check_seed(seed)
    return np.random.default_rng(seed)


def check_horizon(horizon: Any, least: int = 1, name: str = "horizon") -> int:
    """A horizon as an int: an integer, or a float without a fraction such as ``1e6``, of at least
    ``least``.
    """
    whole = is_integer(horizon) or (
        isinstance(horizon, float | np.floating) and horizon.is_integer()
    )
    if not whole or not least <= horizon <= MOST_SESSIONS:
        limit = f", at most {MOST_SESSIONS:,}" if whole and horizon > MOST_SESSIONS else ""
        raise ValueError(
            f"{name} is {short(horizon)}; expected an integer of at least {least}{limit}"
        )
    return int(horizon)


def check_at_least(name: str, value: Any, least: float, *, strictly: bool = False) -> float:
    """A finite number not below ``least`` as a float, nor above `LARGEST`; the ValueError names the
    parameter.
    """
    number = float(value) if _is_number(value) else math.nan
    if not least <= number <= LARGEST or (strictly and number == least):
        most = f", at most {LARGEST:g}" if LARGEST < number < math.inf else ""
        raise ValueError(
            f"{name} is {short(value)}; expected a finite number {'>' if strictly else '>='} {least:g}{most}"
        )
    return number


def check_between(
    name: str, value: Any, above: float, below: float, *, closed: bool = False
) -> float:
    """A number between two others, of which ``closed`` allows the upper, as a float; the ValueError
    names the parameter.
    """
    if not _is_number(value) or not (above < value < below or (closed and value == below)):
        raise ValueError(
            f"{name} is {short(value)}; expected a number in ({above:g}, {below:g}{']' if closed else ')'}"
        )
    return float(value)


def check_share(name: str, value: Any) -> float:
    """A number from 0 to below 1 as a float; the message of the ValueError names the parameter."""
    if not _is_number(value) or not 0 <= value < 1:
        raise ValueError(f"{name} is {short(value)}; expected a number from 0 to below 1")
    return float(value)
