"""Curves of a sweep, estimates with intervals, tests of claims, and Holm's procedure.

Intervals are 95 % intervals of a mean by Student's t. Where agents are compared at the end of the
horizon, or the growth of regret is judged, and the values of several instances are kept, they are
over the instances, each averaged over its runs: these hold for other instances of the kind as
well. All others are over runs, each averaged over its instances: they say how surely the mean over
these very instances is known. A statement is supported if the interval lies on the side that it
says, contradicted if it lies on the other, and undecided otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import polars
from numpy.typing import ArrayLike, NDArray

from clickgym.core.statistics import CONFIDENCE, holm, t_level, t_quantile

Verdict = Literal["yes", "no", "cannot tell"]
Values = NDArray[np.float64]

LEVEL = 1 - CONFIDENCE
END = (0.99, 1.0)
"""The last hundredth of the horizon."""
SLACK = 1e-9
"""Regret below it is rounding error."""
LINEAR = 0.8
"""The share of the rate of the second fifth of the horizon that the last fifth keeps, from which
on regret counts as linear. Regret that grows as √n keeps 0.57, as log n 0.32.
"""
LINEAR_RULE = f"regret per session in the last fifth is above {LINEAR} of that in the second fifth"
LEARNS_RULE = LINEAR_RULE.replace("above", "below")


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
        """T, the last step."""
        return int(self.steps[-1])

    @property
    def n_runs(self) -> int:
        """The number of runs of each pair in each instance."""
        return self.table["run"].n_unique()

    @cached_property
    def windows(self) -> NDArray[np.intp]:
        """Where in ``steps`` the ends of a hundred equal windows are."""
        return np.unique(np.searchsorted(self.steps, np.linspace(0, self.horizon, 101)[1:].round()))

    @property
    def over(self) -> str:
        """What the values of `at_end` are of, in words."""
        return f"over {len(self.instances)} queries" if len(self.instances) > 1 else "over runs"

    def by_run(
        self, env: str, agent: str, column: str = "regret", instance: str | None = None
    ) -> Values:
        """``(runs, steps)`` cumulative values, averaged over the instances or of a single one."""
        rows = self._pairs[env, agent]
        if instance is not None:
            rows = rows.filter(instance=instance)
        elif rows["instance"].null_count():
            rows = rows.filter(polars.col("instance").is_null())
        else:
            rows = rows.group_by("run", "step").agg(polars.col(column).mean())
        values = rows.sort("run", "step")[column].to_numpy().astype(float)
        return values.reshape(-1, len(self.steps))

    def by_instance(
        self, env: str, agent: str, column: str = "regret", fraction: float = 1.0
    ) -> Values:
        """``(instances, runs)`` cumulative values at the end, or at another fraction of the horizon
        at which the values of the instances are kept.
        """
        rows = self._of_instances(env, agent).filter(step=self._step(fraction))
        in_order = polars.col("instance").cast(polars.Enum(self.instances))
        values = rows.sort(in_order, "run")[column].to_numpy().astype(float)
        return values.reshape(len(self.instances), -1)

    def at_end(self, env: str, agent: str, column: str = "regret") -> Values:
        """``(n,)`` values at the end: of the instances, each averaged over its runs, where there
        are several, else of the runs.
        """
        values = self.by_instance(env, agent, column)
        return values.mean(axis=1) if len(values) > 1 else values[0]

    def rates(
        self, env: str, agent: str, *spans: tuple[float, float], column: str = "regret"
    ) -> tuple[list[Values], str]:
        """Means per session in spans of the horizon, each ``(n,)``: of the instances where the
        values of several are kept at the ends of the spans, perhaps of some runs only, else of the
        runs.

        Returns:
            The means of each span, and what the n values are of, in words.
        """
        fractions = {fraction for span in spans for fraction in span}
        kept = set(self._of_instances(env, agent)["step"])
        if len(self.instances) > 1 and set(map(self._step, fractions)) <= kept:
            ends = {f: self.by_instance(env, agent, column, f) for f in fractions}
            n_runs = min(values.shape[1] for values in ends.values())
            at = {f: values[:, :n_runs].mean(axis=1) for f, values in ends.items()}
            some = f", {n_runs} of {self.n_runs} runs each" if n_runs < self.n_runs else ""
            over = f"{self.over}{some}"
        else:
            values, over = self.by_run(env, agent, column), "over runs"
            at = {f: self.at(values, round(f * self.horizon)) for f in fractions}
        lengths = [round(b * self.horizon) - round(a * self.horizon) for a, b in spans]
        return [(at[b] - at[a]) / n for (a, b), n in zip(spans, lengths, strict=True)], over

    def at(self, values: Values, step: float) -> Values:
        """Cumulative values at a step, or the first checkpoint after it; 0 at step 0."""
        if step < 1:
            return np.zeros(values.shape[:-1])
        return values[..., np.searchsorted(self.steps, round(step))]

    def rate(self, values: Values, start: float, stop: float) -> Values:
        """Mean per session from the fraction ``start`` of the horizon to ``stop``."""
        first, last = round(start * self.horizon), round(stop * self.horizon)
        return (self.at(values, last) - self.at(values, first)) / (last - first)

    def window_rates(self, values: Values, ends: NDArray[np.intp] | None = None) -> Values:
        """``(..., windows)`` the mean per session in each of the hundred windows, or of others
        that end at some places among the steps.
        """
        ends = self.windows if ends is None else ends
        lengths = np.diff(self.steps[ends], prepend=0)
        return np.diff(values[..., ends], prepend=0.0, axis=-1) / lengths

    def _step(self, fraction: float) -> int:
        return int(self.steps[np.searchsorted(self.steps, round(fraction * self.horizon))])

    def _of_instances(self, env: str, agent: str) -> polars.DataFrame:
        return self._pairs[env, agent].drop_nulls("instance")


def _names(column: polars.Series) -> list[str]:
    return column.unique(maintain_order=True).to_list()


Results = Mapping[str, Curves]
"""What a study measured, by the name of the part."""


# ----------------------------------------------------------------------------------------- findings


class Test(NamedTuple):
    """Is the mean of some independent values between two bounds?

    Attributes:
        estimate: the mean and its standard error.
        low, high: the bounds, both excluded.
    """

    estimate: Estimate
    low: float = -math.inf
    high: float = math.inf

    @property
    def supports(self) -> float:
        """The level of significance at which the mean lies between the bounds; 1 if not."""
        return max(_level(gap, self.estimate) for gap in self._gaps)

    @property
    def contradicts(self) -> float:
        """The level of significance at which the mean lies outside of the bounds."""
        return min(_level(-gap, self.estimate, or_equal=True) for gap in self._gaps)

    @property
    def _gaps(self) -> tuple[float, float]:
        return self.estimate.mean - self.low, self.high - self.estimate.mean


def _level(gap: float, estimate: Estimate, or_equal: bool = False) -> float:
    """The level at which a mean is surely on the side of a bound where the gap is positive."""
    if not math.isfinite(estimate.error):
        return 1.0
    on_this_side = gap >= 0 if or_equal else gap > 0
    if not estimate.error:
        return float(not on_this_side)
    return t_level(gap, estimate.error, estimate.freedom) if on_this_side else 1.0


class Finding(NamedTuple):
    """What was measured, in words, and the tests that must all hold.

    Attributes:
        measured: with 95 % intervals.
        tests: at least one.
    """

    measured: str
    tests: tuple[Test, ...]

    @property
    def supports(self) -> float:
        """The level of significance at which all tests hold; 1 if they do not."""
        return max(test.supports for test in self.tests)

    @property
    def contradicts(self) -> float:
        """The level of significance at which some test does not hold."""
        return min(test.contradicts for test in self.tests)

    @property
    def verdict(self) -> Verdict:
        """What it says by itself, at 5 %."""
        if self.contradicts <= LEVEL:
            return "no"
        return "yes" if self.supports <= LEVEL else "cannot tell"


def certain(measured: str, holds: bool | None) -> Finding:
    """A finding without chance: True supports, False contradicts, None does neither."""
    error = math.inf if holds is None else 0.0
    return Finding(measured, (Test(Estimate(float(bool(holds)), error, 0), low=0.5),))


def all_of(measured: str, findings: Iterable[Finding]) -> Finding:
    """Whether the tests of all hold: contradicted if a single one is."""
    return Finding(measured, tuple(test for finding in findings for test in finding.tests))


def several(findings: Mapping[str, Finding]) -> Finding:
    """One finding of several by name, all of which must hold; a single name may be ``""``."""
    parts = (f"{name}: {finding.measured}" for name, finding in findings.items())
    return all_of("; ".join(part.removeprefix(": ") for part in parts), findings.values())


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
        """Whether the mean lies above a bound; words are shown in place of the estimate."""
        return Finding(words or str(self), (Test(self, low=bound),))

    def below(self, bound: float, words: str = "") -> Finding:
        """Whether the mean lies below a bound; words are shown in place of the estimate."""
        return Finding(words or str(self), (Test(self, high=bound),))

    def within(self, low: float, high: float, unit: str = "", words: str = "") -> Finding:
        """Whether the mean lies between two bounds; the unit follows the estimate, and words are
        shown in place of both.
        """
        return Finding(words or f"{self}{unit}", (Test(self, low, high),))


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


# -------------------------------------------------------------------------------- shared statements


def short(env: str) -> str:
    """The click model of an environment.

    Example:
        >>> short("CMRank-v0:cutoff=5"), short("NonStationaryCMRank-v0")
        ('CM', 'CM')
    """
    return env.partition("Rank")[0].removeprefix("NonStationary")


def growth(early: Values, late: Values, over: str = "") -> tuple[str, Estimate]:
    """The late rate of regret in words, and how far it is above that of linear regret."""
    share = late.mean() / early.mean() if early.mean() > SLACK else 0.0
    words = f"{estimate(late)} per session{over}, {share:.2f} times the earlier rate"
    return words, estimate(late - LINEAR * early)


def linear(curves: Curves, env: str, agent: str, column: str = "regret") -> Finding:
    """Whether the column keeps growing as fast as before."""
    words, gap = _growth(curves, env, agent, column)
    return gap.above(SLACK, words)


def sublinear(curves: Curves, env: str, agent: str) -> Finding:
    """The contrary of `linear`; an agent without regret has learned."""
    words, gap = _growth(curves, env, agent)
    return gap.below(SLACK, words)


def _growth(curves: Curves, env: str, agent: str, column: str = "regret") -> tuple[str, Estimate]:
    (early, late), over = curves.rates(env, agent, (0.2, 0.4), (0.8, 1.0), column=column)
    return growth(early, late, f" {over}")


def versus(low: Values, high: Values, where: str = "", over: str = "") -> Finding:
    """Whether the values of one agent are below those of another, by the gap within units.

    Args:
        low, high: ``(n,)`` the values of each.
        where: words about them.
        over: what the units are, in words.
    """
    gap = estimate(high - low)
    words = f"{number(low.mean())} against {number(high.mean())}{where}, a gap of {gap}"
    return gap.above(0.0, f"{words} {over}".rstrip())


def less_regret(curves: Curves, env: str, better: str, worse: str, step: int = 0) -> Finding:
    """Whether one agent has less cumulative regret than another, at the end or after a step."""
    if not step:
        low, high = (curves.at_end(env, agent) for agent in (better, worse))
        return versus(low, high, over=curves.over)
    low, high = (curves.at(curves.by_run(env, agent), step) for agent in (better, worse))
    return versus(low, high)


def less_in_the_end(curves: Curves, env: str, better: str, worse: str, where: str = "") -> Finding:
    """Whether one agent has less regret per session than another in the last hundredth of the
    horizon.
    """
    (low,), over = curves.rates(env, better, END)
    (high,), _ = curves.rates(env, worse, END)
    return versus(low, high, where, over)


def times(curves: Curves, env: str, agent: str, other: str, low: float, high: float) -> Finding:
    """Whether regret at the end, as a multiple of another agent's, lies between two bounds."""
    share = ratio(curves.at_end(env, agent), curves.at_end(env, other))
    return share.within(low, high, f" times {curves.over}")


# ------------------------------------------------------------------------------- several statements


class Claim(NamedTuple):
    """A statement of a paper, or of ours, about what was measured.

    Attributes:
        text: the statement.
        rule: when it is supported, beyond the general rules of the module.
        finding: what was measured.
        paper: what the paper reports, where it gives a figure.
        late: whether it is about what is reached by the end of the paper's horizon. A shorter run
            can support such a statement, but not contradict it.
    """

    text: str
    rule: str
    finding: Finding
    paper: str = ""
    late: bool = False


class Judged(NamedTuple):
    """A statement with its verdict.

    Attributes:
        claim: the claim.
        measured: what was measured, in words.
        verdict: holds beside the verdicts of the study's other statements.
        alone: the verdict if there were no other statements.
    """

    claim: Claim
    measured: str
    verdict: Verdict
    alone: Verdict

    @property
    def words(self) -> str:
        """The verdict, with that of the statement alone where it is another."""
        same = self.verdict == self.alone
        return self.verdict if same else f"{self.verdict} (by itself {self.alone})"


def judge(claims: Sequence[Claim], full: bool) -> list[Judged]:
    """Judge the claims of a study together.

    By Holm's procedure the probability that any decided verdict is wrong is at most 5 %. A
    statement that is decided only by itself is undecided.

    Args:
        claims: all of the study.
        full: whether all of its parts have the horizon of the paper.
    """
    findings = [_at_this_horizon(claim, full) for claim in claims]
    levels = holm([min(finding.supports, finding.contradicts) for finding in findings])
    judged = []
    for claim, finding, level in zip(claims, findings, levels, strict=True):
        alone = finding.verdict
        verdict = alone if level <= LEVEL else "cannot tell"
        judged.append(Judged(claim, finding.measured, verdict, alone))
    return judged


def _at_this_horizon(claim: Claim, full: bool) -> Finding:
    finding = claim.finding
    if claim.late and not full and finding.verdict == "no":
        return certain(f"{finding.measured} (not by this horizon)", None)
    return finding
