"""Hypotheses: statements whose sign and size were predicted before the run, of which the studies of
contradictions are made.

Each names a cause, and the range that what is measured lies in if the cause is the right one. It is
supported if the whole interval lies in the range, contradicted if it lies outside, and undecided
otherwise. A rule that was changed after a run says so in its text. The last statements of each
study say what the causes leave unexplained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from .study import Evidence, Finding, Statement, Values, estimate, several

Range = tuple[float, float]
Measured = Callable[[Evidence], Mapping[str, Values]]
"""Independent values of each quantity of a hypothesis, by name; a single one may be called
``""``.
"""


def words(limits: Range, unit: str) -> str:
    """A range in words, of which one end may be open."""
    low, high = limits
    if math.isinf(high):
        return f"above {low:g}{unit}"
    return f"below {high:g}{unit}" if math.isinf(low) else f"{low:g} to {high:g}{unit}"


def hypothesis(
    text: str, what: str, ranges: Range | Mapping[str, Range], measured: Measured, unit: str = ""
) -> Statement:
    """A statement that predicts ranges.

    Args:
        text: the cause and what follows from it.
        what: is measured, as the rule calls it.
        ranges: for each quantity by its name, or one for all.
        measured: the values.
        unit: after numbers.
    """

    def predicted(name: str) -> Range:
        return ranges[name] if isinstance(ranges, Mapping) else ranges

    def judge(evidence: Evidence) -> Finding:
        return several(
            {
                n: estimate(values).finding(unit, *predicted(n))
                for n, values in measured(evidence).items()
            }
        )

    each = ranges if isinstance(ranges, Mapping) else {"": ranges}
    in_short = "; ".join(
        f"{name}: {words(limits, unit)}".removeprefix(": ") for name, limits in each.items()
    )
    return Statement(text, f"the interval of {what} lies within {in_short}", judge, paper=in_short)
