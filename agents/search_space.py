"""Search spaces for tuning: the ranges and sets of values of hyper-parameters in an agent's
attribute ``search_space``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.checks import LARGEST, check_at_least, check_flag, is_integer, is_sequence, short


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``, both included.

    Args:
        low, high: two integers for an integer hyper-parameter; otherwise two numbers, at least one
            of them a float.
        log: whether to search on a logarithmic scale, as for learning rates; ``low`` must be above
            0.

    Raises:
        ValueError: a bound is not a finite number, the range is empty, or ``low`` ≤ 0 with ``log``.

    Example:
        >>> Range(0.01, 10.0, log=True)
        Range(0.01, 10.0, log=True)
        >>> 0.1 in Range(0.01, 10.0, log=True), 3 in Range(1, 5), 2.5 in Range(1, 5)
        (True, True, False)
        >>> Range(0, 1.0, log=True)
        Traceback (most recent call last):
            ...
        ValueError: low is 0.0; expected a finite number > 0
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        kind = int if is_integer(self.low) and is_integer(self.high) else float
        low = check_at_least("low", self.low, -LARGEST)
        high = check_at_least("high", self.high, low, strictly=True)
        if check_flag("log", self.log):
            check_at_least("low", low, 0, strictly=True)
        object.__setattr__(self, "low", kind(low))
        object.__setattr__(self, "high", kind(high))

    @property
    def whole(self) -> bool:
        """Whether the range has only integers."""
        return isinstance(self.low, int)

    def __contains__(self, value: object) -> bool:
        fits = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
        )
        return fits and (not self.whole or isinstance(value, int))

    def __repr__(self) -> str:
        return f"Range({self.low!r}, {self.high!r}{', log=True' * self.log})"


SearchSpace = Mapping[str, Range | Sequence[Any]]
"""A mapping from the name of each hyper-parameter to a `Range` or a list of values."""


def check_search_space(what: str, space: Any) -> dict[str, Range | tuple[Any, ...]]:
    """Check a search space, and return it with its sets of values as tuples.

    Args:
        what: the name of the agent, for messages.
        space: a `SearchSpace`.

    Raises:
        ValueError: not a `SearchSpace`; the message names the hyper-parameter, its value, and what
            was expected.

    Example:
        >>> check_search_space("Mine", {"alpha": Range(0.0, 1.0), "c": [1, 2]})
        {'alpha': Range(0.0, 1.0), 'c': (1, 2)}
        >>> check_search_space("Mine", {"alpha": 0.5})
        Traceback (most recent call last):
            ...
        ValueError: the search space of Mine has 0.5 for alpha; expected a Range or a list of values
    """
    if not isinstance(space, Mapping):
        raise ValueError(
            f"the search space of {what} is {short(space)}; "
            "expected a mapping from hyper-parameters to ranges"
        )
    checked: dict[str, Range | tuple[Any, ...]] = {}
    for name, values in space.items():
        if not isinstance(name, str):
            raise ValueError(
                f"the search space of {what} has the key {short(name)}; "
                "expected the name of a hyper-parameter"
            )
        if isinstance(values, Range):
            checked[name] = values
        elif is_sequence(values) and len(values):
            checked[name] = tuple(
                value.item() if isinstance(value, np.generic) else value for value in values
            )
        else:
            raise ValueError(
                f"the search space of {what} has {short(values)} for {name}; "
                "expected a Range or a list of values"
            )
    return checked
