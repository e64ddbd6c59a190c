"""Curves of a sweep, estimates with intervals, statements of papers, and their verdicts.

Intervals are 95 % intervals of a mean by Student's t, over the queries, each averaged over its
runs; where there is only one query, over its runs. A statement is reproduced if the interval lies
on the side that its rule says, not reproduced on these queries if it lies on the other, and
undecided otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import polars
from numpy.typing import ArrayLike, NDArray

from clickgym.core.statistics import CONFIDENCE, holm, t_level, t_quantile

Verdict = Literal["reproduced", "not reproduced on these queries", "undecided", "not tested"]
Values = NDArray[np.float64]

LEVEL = 1 - CONFIDENCE
END = (0.99, 1.0)
"""The last hundredth of the horizon."""
SLACK = 1e-9
"""Regret below it is rounding error."""
LINEAR = 0.8
"""The share of the mean rate that regret which counts as linear keeps in the end. Regret that grows
as √n keeps 0.5 of it, as log n 1 / log n.
"""


class NotTestedError(Exception):
    """The results do not have what a statement or a number is about, or leave no room for it."""


class Curves:
    """The table of one sweep as arrays.

    Args:
        table: columns ``env``, ``agent``, ``instance``, ``run``, ``step`` and cumulative values.
            Rows without an instance hold the means over the instances; without such rows they are
            computed.
        full: whether the horizon is the paper's.

    Attributes:
        steps: ``(n,)`` the checkpoints.
        instances: the names, in the order of the table.
        agents: the names, in the order of the table.
    """

    def __init__(self, table: polars.DataFrame, full: bool = True) -> None:
        self.table, self.full = table, full
        self.steps: NDArray[np.int64] = table["step"].unique().sort().to_numpy()
        self.instances: list[str] = _names(table["instance"].drop_nulls())
        self.agents = _names(table["agent"])
        self._pairs = table.partition_by("env", "agent", as_dict=True)

    @property
    def horizon(self) -> int:
        """The last step."""
        return int(self.steps[-1])

    @property
    def n_runs(self) -> int:
        """The number of runs of each pair in each instance."""
        return self.table["run"].n_unique()

    @property
    def over(self) -> str:
        """The units of `values`, in words."""
        n = len(self.instances)
        return f"{n} queries" if n > 1 else f"{self.n_runs} runs of one query"

    @cached_property
    def windows(self) -> NDArray[np.intp]:
        """Where in ``steps`` the ends of a hundred equal windows are."""
        return np.unique(np.searchsorted(self.steps, np.linspace(0, self.horizon, 101)[1:].round()))

    def values(self, env: str, agent: str, column: str = "regret", fraction: float = 1.0) -> Values:
        """``(n,)`` cumulative values at a fraction of the horizon, of the units of a test: of the
        queries, each averaged over its runs, or of the runs of a single one.

        Raises:
            NotTestedError: the values of the queries are not kept there.
        """
        values = self.by_instance(env, agent, column, fraction)
        return values.mean(axis=1) if len(values) > 1 else values[0]

    def rate(
        self, env: str, agent: str, start: float, stop: float, column: str = "regret"
    ) -> Values:
        """``(n,)`` means per session between two fractions of the horizon, of the same units."""
        length = round(stop * self.horizon) - round(start * self.horizon)
        first, last = (self.values(env, agent, column, fraction) for fraction in (start, stop))
        return (last - first) / length

    def by_instance(
        self, env: str, agent: str, column: str = "regret", fraction: float = 1.0
    ) -> Values:
        """``(instances, runs)`` cumulative values at a fraction of the horizon."""
        if fraction == 0:
            return np.zeros((len(self.instances), self.n_runs))
        step = int(self.steps[np.searchsorted(self.steps, round(fraction * self.horizon))])
        rows = self._pairs[env, agent].drop_nulls("instance").filter(step=step)
        if not len(rows):
            if len(self.instances) == 1:
                return self.at(self.by_run(env, agent, column), step)[None]
            raise NotTestedError(
                f"the results have no values of single queries at session {step:,}"
            )
        in_order = polars.col("instance").cast(polars.Enum(self.instances))
        values = rows.sort(in_order, "run")[column].to_numpy().astype(float)
        return values.reshape(len(self.instances), -1)

    def by_run(
        self, env: str, agent: str, column: str = "regret", instance: str | None = None
    ) -> Values:
        """``(runs, steps)`` cumulative values, averaged over the instances or of a single one, as
        figures draw them.
        """
        rows = self._pairs[env, agent]
        if instance is not None:
            rows = rows.filter(instance=instance)
        elif rows["instance"].null_count():
            rows = rows.filter(polars.col("instance").is_null())
        else:
            rows = rows.group_by("run", "step").agg(polars.col(column).mean())
        values = rows.sort("run", "step")[column].to_numpy().astype(float)
        return values.reshape(-1, len(self.steps))

    def at(self, values: Values, step: float) -> Values:
        """Cumulative values at a step, or the first checkpoint after it."""
        return values[..., np.searchsorted(self.steps, round(step))]

    def window_rates(self, values: Values, ends: NDArray[np.intp] | None = None) -> Values:
        """``(..., windows)`` the mean per session in each of the hundred windows, or of others
        that end at some places among the steps.
        """
        ends = self.windows if ends is None else ends
        lengths = np.diff(self.steps[ends], prepend=0)
        return np.diff(values[..., ends], prepend=0.0, axis=-1) / lengths


def _names(column: polars.Series) -> list[str]:
    return column.unique(maintain_order=True).to_list()


class Results(dict[str, Curves]):
    """The curves that a study measured, by the name of the part."""

    def __missing__(self, part: str) -> Curves:
        raise NotTestedError(f"{part} was not played on these queries")


# ---------------------------------------------------------------------------------------- estimates


class Estimate(NamedTuple):
    """A mean, its standard error, and the degrees of freedom of Student's t; from a single value
    the error is infinite.
    """

    mean: float
    error: float
    freedom: int

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval."""
        return t_quantile(self.freedom) * self.error if math.isfinite(self.error) else math.inf

    def __str__(self) -> str:
        half = number(self.half, 2) if math.isfinite(self.half) else "?"
        return f"{number(self.mean)} ± {half}"

    def above(self, bound: float, words: str = "") -> Finding:
        """Whether the mean lies above a bound; words are shown before the estimate."""
        return self.within(bound, math.inf, words)

    def below(self, bound: float, words: str = "") -> Finding:
        """Whether the mean lies below a bound; words are shown before the estimate."""
        return self.within(-math.inf, bound, words)

    def within(self, low: float, high: float, words: str = "") -> Finding:
        """Whether the mean lies between two bounds, both excluded; words are shown before the
        estimate.
        """
        gaps = self.mean - low, high - self.mean
        supports = max(_level(gap, self) for gap in gaps)
        contradicts = min(_level(-gap, self, or_equal=True) for gap in gaps)
        measured = f"{words}, a gap of {self}" if words else str(self)
        return Finding(measured, supports, contradicts)


def number(value: float, digits: int = 3) -> str:
    """A number with three digits, or those before the point if there are more.

    Example:
        >>> number(0.012345), number(3742.3)
        ('0.0123', '3,742')
    """
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def estimate(values: ArrayLike) -> Estimate:
    """The mean of independent values.

    Example:
        >>> print(estimate([1.0, 2.0, 3.0]))
        2 ± 2.5
    """
    array = np.asarray(values, float)
    n = len(array)
    error = float(array.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Estimate(float(array.mean()), error, n - 1)


def ratio(above: Values, below: Values) -> Estimate:
    """The mean of some values as a multiple of that of others of the same units, with the interval
    of the linearised ratio.

    Example:
        >>> print(ratio(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0])))
        2 ± 0
    """
    share = float(above.mean() / below.mean())
    return estimate((above - share * below) / below.mean())._replace(mean=share)


def percent(share: Estimate) -> str:
    """A share with its sign, in per cent.

    Example:
        >>> percent(Estimate(0.0123, 0.002, 1000))
        '+1.23 ± 0.39 %'
    """
    return f"{100 * share.mean:+.2f} ± {number(100 * share.half, 2)} %"


# ----------------------------------------------------------------------------------------- findings


class Finding(NamedTuple):
    """A measurement, and how surely a statement holds or does not.

    Attributes:
        measured: in words, with 95 % intervals.
        supports: the level of significance at which the statement holds; 1 if it does not.
        contradicts: the level of significance at which it does not hold.
    """

    measured: str
    supports: float
    contradicts: float

    @property
    def verdict(self) -> Verdict:
        """The verdict of this finding alone, at 5 %."""
        if self.contradicts <= LEVEL:
            return "not reproduced on these queries"
        return "reproduced" if self.supports <= LEVEL else "undecided"


def _level(gap: float, estimate: Estimate, or_equal: bool = False) -> float:
    """The level at which a mean is surely on the side of a bound where the gap is positive."""
    if not math.isfinite(estimate.error):
        return 1.0
    on_this_side = gap >= 0 if or_equal else gap > 0
    if not estimate.error:
        return float(not on_this_side)
    return t_level(gap, estimate.error, estimate.freedom) if on_this_side else 1.0


def certain(measured: str, holds: bool) -> Finding:
    """A finding without chance."""
    return Finding(measured, float(not holds), float(holds))


def all_of(measured: str, findings: Iterable[Finding]) -> Finding:
    """Whether all hold: contradicted if a single one is, corrected for their number."""
    found = list(findings)
    contradicts = min(1.0, len(found) * min(one.contradicts for one in found))
    return Finding(measured, max(one.supports for one in found), contradicts)


def any_of(measured: str, findings: Iterable[Finding]) -> Finding:
    """Whether one holds, corrected for their number: what is not seen here can be elsewhere, so
    that nothing contradicts it.
    """
    found = list(findings)
    return Finding(measured, min(1.0, len(found) * min(one.supports for one in found)), 1.0)


def several(findings: Mapping[str, Finding]) -> Finding:
    """One finding of several by name, all of which must hold."""
    parts = (f"{name}: {finding.measured}" for name, finding in findings.items())
    return all_of("; ".join(parts), findings.values())


def in_readings(test: Callable[[str], Finding], agent: str = "CascadeKLUCB") -> Finding:
    """One finding of both readings of several clicks, of which a paper does not say which it has:
    it holds if it does in both, and it does not hold if it does in neither.

    Args:
        test: of an agent's name.
        agent: a cascade algorithm.
    """
    found = {"last_click": test(agent), "first_click": test(f"{agent}:feedback=first_click")}
    words = (f"{name} (alone {one.verdict}): {one.measured}" for name, one in found.items())
    supports, contradicts = (
        max(levels)
        for levels in zip(*((one.supports, one.contradicts) for one in found.values()), strict=True)
    )
    return Finding("; ".join(words), supports, contradicts)


def above_share(happens: ArrayLike, bound: float) -> Finding:
    """Whether something happens in more than a share of the units, by the exact binomial test,
    which also holds for what is rare.

    Example:
        >>> above_share([False] * 60, 0.01).measured
        '0 of 60 queries (0.0 to 6.0 %)'
    """
    from scipy.stats import binomtest  # slow to load

    n, count = np.size(happens), int(np.sum(happens))
    supports, contradicts = (
        min(1.0, 2 * float(binomtest(count, n, bound, side).pvalue)) for side in ("greater", "less")
    )
    low, high = (100 * end for end in binomtest(count, n).proportion_ci(CONFIDENCE))
    words = f"{count} of {n} queries ({low:.1f} to {high:.1f} %)"
    return Finding(words, supports, contradicts)


def short(env: str) -> str:
    """The click model of an environment.

    Example:
        >>> short("CMRank-v0:cutoff=5"), short("NonStationaryCMRank-v0")
        ('CM', 'CM')
    """
    return env.partition("Rank")[0].removeprefix("NonStationary")


def linear(curves: Curves, env: str, agent: str) -> Finding:
    """Whether regret grows as fast in the end as in the mean: the gap is that to `LINEAR`
    times the mean.
    """
    late, mean = (curves.rate(env, agent, *span) for span in (END, (0.0, 1.0)))
    share = late.mean() / mean.mean() if mean.mean() > SLACK else 0.0
    words = f"{estimate(late)} per session in the end, {share:.2f} times the mean"
    return estimate(late - LINEAR * mean).above(SLACK, words)


def less(low: Values, high: Values) -> Finding:
    """Whether the values of one agent are below those of another, by the gap within units."""
    gap = estimate(high - low)
    return gap.above(0.0, f"{number(low.mean())} against {number(high.mean())}")


# -------------------------------------------------------------------------- statements and verdicts


class Number(NamedTuple):
    """A number that a paper prints.

    Attributes:
        what: is counted, with the unit.
        paper: the number.
        measure: ours, ``(n,)`` values of the units of `Curves.values`, whose mean is compared.
        error: the standard error that the paper prints, or 0.
        is_comparable: whether the users could be the paper's; if not, the difference has no
            interval.
    """

    what: str
    paper: float
    measure: Callable[[Results], Values]
    error: float = 0.0
    is_comparable: bool = True

    @property
    def printed(self) -> str:
        """As the paper has it."""
        return f"{self.paper:,g}" + (f" ± {self.error:g}" if self.error else "")

    def ours(self, results: Results) -> Estimate | None:
        """Our number, or None if the results do not have it."""
        try:
            return estimate(self.measure(results))
        except NotTestedError:
            return None

    def difference(self, ours: Estimate) -> str:
        """Ours less the paper's, with a 95 % interval if they are comparable."""
        half = math.hypot(ours.half, t_quantile(10**6) * self.error)
        gap = ours.mean - self.paper
        words = f"{'-' if gap < 0 else '+'}{number(abs(gap))}"
        return f"{words} ± {number(half, 2)}" if self.is_comparable else words


class Statement(NamedTuple):
    """A sentence of a paper about its experiment.

    Attributes:
        quote: its own words.
        place: where the paper says so.
        rule: what we measure, and when the statement counts as reproduced.
        test: measures it; None if it cannot be tested here, and the rule says why.
        late: whether it is about what is reached by the end of the paper's horizon. A shorter run
            can support such a statement, but not contradict it.
        is_other_version: whether it is about an algorithm of which the paper may have played
            another version than ours, which can support it, but not contradict it.
    """

    quote: str
    place: str
    rule: str
    test: Callable[[Results], Finding] | None = None
    late: bool = False
    is_other_version: bool = False


class Judged(NamedTuple):
    """A statement with what was measured, in words, and its verdict."""

    statement: Statement
    measured: str
    verdict: Verdict


def judge(statements: Sequence[Statement], results: Results, full: bool) -> list[Judged]:
    """Judge the statements of a study together.

    By Holm's procedure the probability that any decided verdict is wrong is at most 5 %.

    Args:
        statements: all of the study.
        results: the curves of its sweeps.
        full: whether all of its parts have the horizon of the paper.
    """
    judged: list[Judged] = []
    findings: dict[int, Finding] = {}
    for place, statement in enumerate(statements):
        measured = ""
        if statement.test is not None:
            try:
                finding = statement.test(results)
                if statement.is_other_version or (statement.late and not full):
                    finding = finding._replace(contradicts=1.0)
                findings[place] = finding
            except NotTestedError as error:
                measured = str(error)
        judged.append(Judged(statement, measured, "not tested"))
    levels = holm([min(found.supports, found.contradicts) for found in findings.values()])
    for (place, finding), level in zip(findings.items(), levels, strict=True):
        verdict, measured = finding.verdict, finding.measured
        if level > LEVEL and verdict != "undecided":
            measured += f"; {verdict} before the correction for the number of statements"
            verdict = "undecided"
        judged[place] = Judged(statements[place], measured, verdict)
    return judged
