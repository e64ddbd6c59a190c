"""Checks of arguments, and the words in which a bad one is refused; used by the whole package."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "browsing_probabilities",
    "check_at_least",
    "check_between",
    "check_count",
    "check_finite",
    "check_horizon",
    "check_positions",
    "check_seed",
    "probabilities",
    "probability",
    "unknown",
]


MOST_SESSIONS = 10**15
"""Of all that is played at once: at 10 ns a session, four months of a processor."""

NUMBER = (int, float, np.integer, np.floating)

MOST = 1e100
"""How large a number that scales others may be, so that their products stay within the range of floats."""


def check_count(name: str, value: Any) -> int:
    """A positive integer; the message of the ValueError names the parameter."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} is {value!r}; expected a positive integer")
    return int(value)


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """The message for a name that does not exist: what was meant, if it can be guessed, and what there is."""
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"unknown {what} {name!r}{hint} (there is: {', '.join(known)})"


def probabilities(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """``values`` as a read-only float array of probabilities.

    Args:
        name: the parameter's name, for messages.
        values: numbers in ``[0, 1]``.
        shape: the expected shape; None where any positive length will do.

    Raises:
        ValueError: naming the parameter, the first bad entry and what was expected.
    """
    given = np.array(values, dtype=object)
    if not all(isinstance(value, NUMBER) and not isinstance(value, bool) for value in given.flat):
        raise ValueError(f"{name} must be an array of numbers, got {values!r}")
    array = given.astype(np.float64)
    wanted = "(" + ", ".join("n" if size is None else str(size) for size in shape) + ("," if len(shape) == 1 else "") + ")"
    if array.ndim != len(shape) or any(
        have == 0 or (size is not None and have != size) for have, size in zip(array.shape, shape, strict=True)
    ):
        raise ValueError(f"{name} has shape {array.shape}; expected {wanted}")
    bad = np.argwhere(~((array >= 0) & (array <= 1)))
    if len(bad):
        where = ", ".join(map(str, bad[0]))
        raise ValueError(f"{name}[{where}] is {array[tuple(bad[0])]}; expected a probability in [0, 1]")
    array.flags.writeable = False
    return array


def browsing_probabilities(name: str, values: ArrayLike, size: int | None = None) -> NDArray[np.float64]:
    """`probabilities` by position and last click, ``(K, K)``: what lies above the triangle that is used is stored as 0."""
    used = np.array(values, dtype=object)
    if used.ndim == 2:
        used[np.triu_indices(used.shape[0], 1, used.shape[1])] = 0.0
    size = len(used) if size is None and used.ndim else size
    return probabilities(name, used.tolist(), (size, size))


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Refuse infinities and nan; the message of the ValueError names the array and the first bad entry."""
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name}{bad[0].tolist()} is {array[tuple(bad[0])]}; expected a finite number")


def probability(name: str, value: Any) -> float:
    """``value`` as a probability; the message of the ValueError names the parameter."""
    if isinstance(value, bool) or not isinstance(value, NUMBER) or not 0 <= value <= 1:
        raise ValueError(f"{name} is {value!r}; expected a probability in [0, 1]")
    return float(value)


def check_positions(n_positions: Any, n_items: int, available: int | None = None) -> int:
    """Check a number of positions against the items there are, and against the positions that parameters cover."""
    n_positions = check_count("n_positions", n_positions)
    if n_positions > n_items:
        raise ValueError(f"n_positions is {n_positions}, but there are only n_items = {n_items} items to show")
    if available is not None and n_positions > available:
        raise ValueError(f"n_positions is {n_positions}, but the parameters cover only {available} positions")
    return n_positions


def check_seed(seed: Any) -> int:
    """A seed: an integer from 0; the message of the ValueError says so."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed is {seed!r}; expected a non-negative integer")
    return int(seed)


def check_horizon(horizon: Any, least: int = 1) -> int:
    """A horizon as an int: an integer, or a float without a fraction such as ``1e6``, of at least ``least``."""
    whole = isinstance(horizon, (int, np.integer)) or (isinstance(horizon, float) and horizon.is_integer())
    if isinstance(horizon, bool) or not whole or horizon < least:
        raise ValueError(f"horizon is {horizon!r}; expected an integer of at least {least}")
    if horizon > MOST_SESSIONS:
        raise ValueError(f"horizon is {horizon!r}; expected at most {MOST_SESSIONS:,} sessions")
    return int(horizon)


def check_at_least(name: str, value: Any, least: float, *, strictly: bool = False) -> float:
    """A finite number not below ``least`` as a float, nor above `MOST`; the message of the ValueError names the parameter."""
    good = isinstance(value, NUMBER) and not isinstance(value, bool) and np.isfinite(value)
    if not good or value < least or (strictly and value == least) or value > MOST:
        most = f", at most {MOST:g}" if good and value > MOST else ""
        raise ValueError(f"{name} is {value!r}; expected a finite number {'>' if strictly else '>='} {least:g}{most}")
    return float(value)


def check_between(name: str, value: Any, above: float, below: float, *, closed: bool = False) -> float:
    """A number between two others, of which ``closed`` allows the upper, as a float; the ValueError names the parameter."""
    good = isinstance(value, NUMBER) and not isinstance(value, bool)
    if not good or not (above < value < below or (closed and value == below)):
        raise ValueError(f"{name} is {value!r}; expected a number in ({above:g}, {below:g}{']' if closed else ')'}")
    return float(value)


def recorded(values: ArrayLike | None) -> list[Any] | None:
    """An argument as the spec of a wrapped environment can hold it: specs are compared, and written as JSON."""
    return None if values is None else np.asarray(values).tolist()
