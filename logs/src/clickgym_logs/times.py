"""Times of sessions: any numbers that can be sorted, or dates and times in ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.core.checks import as_array, integers, numbers, short


def as_seconds(text: str) -> float | None:
    """The seconds since 1970 of a date or a date and time in ISO 8601, without an offset taken for
    UTC; None if it is none.

    Example:
        >>> as_seconds("1970-01-02"), as_seconds("1970-01-01T02:00:00.5+01:00"), as_seconds("soon")
        (86400.0, 3600.5, None)
    """
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def check_times(
    name: str, values: Any, shape: tuple[int, ...]
) -> NDArray[np.float64] | NDArray[np.int64]:
    """``values`` as an array of numbers: texts, and dates of NumPy, become seconds since 1970; the
    ValueError names the array and the first entry that is wrong.
    """
    array = as_array(name, values)
    if array.ndim and array.dtype.kind == "M":
        array = array.astype("datetime64[us]").astype(str)
    if array.dtype.kind in "UO" and any(isinstance(value, str) for value in array.flat):
        # NumPy would make texts of numbers among texts.
        entries = array.tolist() if isinstance(values, np.ndarray) else [*values]
        values = [*map(as_seconds, entries)]
        if None in values:
            place = values.index(None)
            expected = "expected a date and time in ISO 8601, as 2026-01-31T12:30+00:00, or numbers"
            raise ValueError(f"{name}[{place}] is {short(entries[place])}; {expected}")
    elif array.dtype.kind in "iu":
        return integers(name, array, shape, -(2**63), empty=True)
    return numbers(name, values, shape, empty=True, copy=False)
