"""Studies of papers' experiments as data, and the judging of measured curves that they share.

A study is data: environments, agents, queries, horizon, runs; statements, each a sentence of the
paper, a rule and the function that applies it; and the function that draws its figure. Those of a
paper are in a module of their own, which `lab.studies` lists; `lab.studies.play` runs them.

Intervals are 95 % intervals of a mean by Student's t. They are over the queries, each averaged over
its runs, where agents are compared at the end of the horizon, and where the growth of regret is
judged and the values of each query ship: these hold for other queries of the kind as well. All
others are over runs, each averaged over its queries: they say how surely the mean over these very
queries is known. A statement is supported if the interval lies on the side that it says,
contradicted if it lies on the other, and undecided otherwise. One about what is reached by the end
of the paper's horizon can be supported by a shorter run, but not contradicted.

The verdicts of a study hold together: by Holm's procedure the probability that any of those decided
is wrong is at most 5 %. A statement that is decided only by itself is undecided, and its own
verdict stands beside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickgym.core.files import make_folder
from clickgym.core.statistics import CONFIDENCE, half_width, t_quantile
from clickgym.envs import Instance

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

Verdict = Literal["yes", "no", "cannot tell"]
Values = NDArray[np.float64]

SLACK = 1e-9
"""Regret below it is rounding error."""


# ------------------------------------------------------------------------------------------------------ what was measured


class Curves:
    """The table of one sweep as arrays.

    Args:
        table: as `sweep` returns it, or made smaller by `shipped.compact`, with the means over the
            instances in rows without an instance; facts of the instances may be further columns.
        horizon: of the paper, for statements about its end; None takes the last step.

    Attributes:
        steps: ``(n,)`` the checkpoints.
        instances: the names, in the order of the table.
        full: whether the horizon is the paper's.
    """

    def __init__(self, table: polars.DataFrame, horizon: int | None = None) -> None:
        self.table = table
        self.steps: NDArray[np.int64] = table["step"].unique().sort().to_numpy()
        self.instances: list[str] = (
            table["instance"].drop_nulls().unique(maintain_order=True).to_list()
        )
        self.full = horizon is None or self.horizon >= horizon
        self._values: dict[tuple[str, str, str, str | float | None], Values] = {}

    @property
    def horizon(self) -> int:
        """T, the last step."""
        return int(self.steps[-1])

    @property
    def agents(self) -> list[str]:
        """The agents, in the order of the table."""
        agents: list[str] = self.table["agent"].unique(maintain_order=True).to_list()
        return agents

    @property
    def n_runs(self) -> int:
        """The number of runs of each pair in each instance."""
        return self.table["run"].n_unique()

    @cached_property
    def windows(self) -> NDArray[np.intp]:
        """Where in ``steps`` the ends of a hundred equal windows are."""
        return np.unique(np.searchsorted(self.steps, np.linspace(0, self.horizon, 101)[1:].round()))

    def units(
        self, env: str, agent: str, column: str = "regret", instance: str | None = None
    ) -> Values:
        """``(runs, steps)`` what intervals are computed from: runs, averaged over the instances or
        of a single one.
        """
        import polars  # only who judges pays for its import, not who lists studies

        key = (env, agent, column, instance)
        if key not in self._values:
            rows = self._pairs[env, agent]
            if instance is not None:
                rows = rows.filter(polars.col("instance") == instance)
            elif rows["instance"].null_count():
                rows = rows.filter(polars.col("instance").is_null())
            else:
                rows = rows.group_by("run", "step", maintain_order=True).agg(
                    polars.col(column).mean()
                )
            values = rows.sort("run", "step")[column].to_numpy().astype(float)
            self._values[key] = values.reshape(-1, len(self.steps))
        return self._values[key]

    def ends(self, env: str, agent: str, column: str = "regret", fraction: float = 1.0) -> Values:
        """``(instances, runs)`` the values at the end, or at another fraction at which those of
        each instance are kept.
        """
        import polars

        key = (env, agent, column, fraction)
        if key not in self._values:
            rows = self._each(env, agent).filter(polars.col("step") == self._step(fraction))
            values = rows.sort(polars.col("instance").cast(polars.Enum(self.instances)), "run")[
                column
            ].to_numpy()
            self._values[key] = values.astype(float).reshape(len(self.instances), -1)
        return self._values[key]

    def end_units(
        self, env: str, agent: str, column: str = "regret", fraction: float = 1.0
    ) -> Values:
        """``(n,)`` what intervals about the end are computed from: queries where there are several,
        else runs.
        """
        return self._of_units(self.ends(env, agent, column, fraction))

    def final_units(self, env: str, agent: str, column: str = "regret") -> Values:
        """``(n,)`` the same of the mean per session in the last hundredth of the horizon."""
        return self._of_units(self.final(env, agent, column))

    def _of_units(self, ends: Values) -> Values:
        return ends.mean(axis=1) if len(ends) > 1 else ends[0]

    @property
    def units_of_ends(self) -> str:
        """What `end_units` are, in words."""
        return f"over {len(self.instances)} queries" if len(self.instances) > 1 else "over runs"

    def final(self, env: str, agent: str, column: str = "regret") -> Values:
        """``(instances, runs)`` the mean per session in the last hundredth of the horizon."""
        length = self.horizon - round(0.99 * self.horizon)
        return (self.ends(env, agent, column) - self.ends(env, agent, column, 0.99)) / length

    def rates(
        self, env: str, agent: str, *spans: tuple[float, float], column: str = "regret"
    ) -> tuple[list[Values], str]:
        """Means per session in spans of the horizon, each ``(n,)``: of queries where those of each
        are kept, else of runs.

        Returns:
            The means of each span, and what the n units are, in words.
        """
        fractions = set(itertools.chain.from_iterable(spans))
        if len(self.instances) == 1 or not set(map(self._step, fractions)) <= set(
            self._each(env, agent)["step"]
        ):
            values = self.units(env, agent, column)
            return [self.rate(values, *span) for span in spans], "over runs"
        ends = {fraction: self.ends(env, agent, column, fraction) for fraction in fractions}
        n_runs = min(
            values.shape[1] for values in ends.values()
        )  # of some results the values of each ship for few runs
        at = {fraction: values[:, :n_runs].mean(axis=1) for fraction, values in ends.items()}
        rates = [
            (at[stop] - at[start]) / (round(stop * self.horizon) - round(start * self.horizon))
            for start, stop in spans
        ]
        few = f", {n_runs} of {self.n_runs} runs each" if n_runs < self.n_runs else ""
        return rates, f"{self.units_of_ends}{few}"

    def _step(self, fraction: float) -> int:
        return int(self.steps[np.searchsorted(self.steps, round(fraction * self.horizon))])

    def _each(self, env: str, agent: str) -> polars.DataFrame:
        """The rows of single instances."""
        return self._pairs[env, agent].drop_nulls("instance")

    @cached_property
    def _pairs(self) -> dict[tuple[Any, ...], polars.DataFrame]:
        return self.table.partition_by("env", "agent", as_dict=True)

    def at(self, values: Values, step: float) -> Values:
        """Cumulative values at a step, or the first checkpoint after it; 0 at step 0."""
        return (
            values[..., np.searchsorted(self.steps, round(step))]
            if step >= 1
            else np.zeros(values.shape[:-1])
        )

    def rate(self, values: Values, start: float, stop: float) -> Values:
        """Mean per session from the fraction ``start`` of the horizon to ``stop``."""
        first, last = round(start * self.horizon), round(stop * self.horizon)
        return (self.at(values, last) - self.at(values, first)) / (last - first)

    def window_rates(self, values: Values, ends: NDArray[np.intp] | None = None) -> Values:
        """``(..., windows)`` the mean per session in each of the hundred windows, or of others that
        end at some places.
        """
        ends = self.windows if ends is None else ends
        return np.diff(values[..., ends], prepend=0.0, axis=-1) / np.diff(
            self.steps[ends], prepend=0
        )


Evidence = Mapping[str, Curves]
"""What a study measured, by the name of the part."""


_CONFIDENCE: ContextVar[float] = ContextVar("confidence", default=CONFIDENCE)


@contextmanager
def confidence(level: float) -> Iterator[None]:
    """Make intervals of another confidence."""
    before = _CONFIDENCE.set(level)
    try:
        yield
    finally:
        _CONFIDENCE.reset(before)


class Estimate(NamedTuple):
    """A mean, and half the width of its interval; infinite from a single value."""

    mean: float
    half: float

    def __str__(self) -> str:
        half = number(self.half, 2) if math.isfinite(self.half) else "?"
        return f"{number(self.mean)} ± {half}"

    def above(self, bound: float) -> Verdict:
        """Whether the interval lies above a bound."""
        return (
            "yes"
            if self.mean - self.half > bound
            else "no"
            if self.mean + self.half <= bound
            else "cannot tell"
        )

    def below(self, bound: float) -> Verdict:
        """Whether the interval lies below a bound."""
        return (
            "yes"
            if self.mean + self.half < bound
            else "no"
            if self.mean - self.half >= bound
            else "cannot tell"
        )

    def within(self, low: float, high: float) -> Verdict:
        """Whether the interval lies between two bounds."""
        return every([self.above(low), self.below(high)])

    def finding(self, unit: str = "", low: float = -math.inf, high: float = math.inf) -> Finding:
        """Whether the interval lies between two bounds; measured is the estimate, and what it is of
        (``unit``) behind it.
        """
        return Finding(f"{self}{unit}", self.within(low, high))


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
    half = (
        float(array.std(ddof=1)) * half_width(len(array), _CONFIDENCE.get())
        if len(array) > 1
        else math.inf
    )
    return Estimate(float(array.mean()), half)


def ratio(above: Values, below: Values) -> Estimate:
    """The mean of some values as a multiple of that of others of the same units, with the interval
    of the linearised ratio.

    Example:
        >>> print(ratio(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0])))
        2 ± 0
    """
    share = float(above.mean() / below.mean())
    return Estimate(share, estimate((above - share * below) / below.mean()).half)


def half_of_slope(error: float, freedom: int) -> float:
    """Half the width of the interval of an estimate with a standard error, by Student's t."""
    return t_quantile(freedom, _CONFIDENCE.get()) * error


def percent(share: Estimate) -> str:
    """A share with its sign, in per cent.

    Example:
        >>> percent(Estimate(0.0123, 0.004))
        '+1.23 ± 0.4 %'
    """
    return f"{100 * share.mean:+.2f} ± {number(100 * share.half, 2)} %"


def saved(instances: Iterable[Instance], folder: Path) -> list[str]:
    """Write instances under their own names into a folder, which is made if need be; returns the
    files.
    """
    make_folder(folder)
    files = []
    for instance in instances:
        files.append(str(folder / f"{instance.name}.json"))
        instance.save(files[-1])
    return files


def every(verdicts: Sequence[Verdict]) -> Verdict:
    """Whether all hold: no if one does not."""
    return "no" if "no" in verdicts else "cannot tell" if "cannot tell" in verdicts else "yes"


class Finding(NamedTuple):
    """What was measured, in words, and whether it supports the statement.

    Attributes:
        measured: with 95 % intervals.
        verdict: whether it does; `judged_together` makes it hold beside the other statements of the
        study.
        alone: the verdict if there were no other statements.
    """

    measured: str
    verdict: Verdict
    alone: Verdict | None = None

    @property
    def words(self) -> str:
        """The verdict, with that of the statement alone where it is another."""
        return (
            self.verdict
            if self.alone in (None, self.verdict)
            else f"{self.verdict} (by itself {self.alone})"
        )


# --------------------------------------------------------------------------------------------------------- studies as data


@dataclass(frozen=True)
class Statement:
    """What a paper says of its experiment, and how it is judged.

    Attributes:
        text: the statement.
        rule: when it is supported, beyond the general rules of the module.
        judge: applies the rule to what was measured.
        late: it is about what is reached by the end of the paper's horizon.
        paper: what the paper reports, where it gives a figure.
    """

    text: str
    rule: str
    judge: Callable[[Evidence], Finding]
    late: bool = False
    paper: str = ""

    def find(self, evidence: Evidence) -> Finding:
        """Judge the statement."""
        finding = self.judge(evidence)
        if (
            self.late
            and finding.verdict == "no"
            and not all(curves.full for curves in evidence.values())
        ):
            return Finding(f"{finding.measured} (not by this horizon)", "cannot tell")
        return finding


def judged_together(statements: Sequence[Statement], evidence: Evidence) -> list[Finding]:
    """The findings of a study's statements, whose verdicts hold against their number by Holm's
    procedure.

    A statement is decided if it is so at the level 5 % divided by the number of those that are not
    yet.
    """
    alone = [statement.find(evidence) for statement in statements]
    undecided = _undecided(statements, alone, evidence)
    return [
        finding._replace(
            verdict="cannot tell" if place in undecided else finding.verdict, alone=finding.verdict
        )
        for place, finding in enumerate(alone)
    ]


def _undecided(
    statements: Sequence[Statement], alone: Sequence[Finding], evidence: Evidence
) -> set[int]:
    """The places of the statements that Holm's procedure leaves open; ``alone`` are the findings of
    each by itself.
    """
    undecided = {place for place, finding in enumerate(alone) if finding.verdict != "cannot tell"}
    n_decided, news = 0, undecided
    while undecided and news:
        with confidence(1 - (1 - CONFIDENCE) / (len(statements) - n_decided)):
            news = {
                place
                for place in undecided
                if statements[place].find(evidence).verdict == alone[place].verdict
            }
        n_decided += len(news)
        undecided = undecided - news
    return undecided


@dataclass(frozen=True)
class Part:
    """One sweep of a study.

    Attributes:
        name: of its folder; studies with the same part share its results.
        envs, agents: specs as `sweep` takes them.
        horizon, runs: of the paper, or chosen where it does not say.
        queries: how many the paper has.
        instances: makes the names of the instances from the queries; None takes the queries.
        files: makes instances from these, which are written to files.
        metrics: further metrics.
        least_horizon, least_runs: below them the experiment shows nothing.
        windows: how many equal windows the checkpoints have.
        each: whether the curves of each instance are kept, not only their mean.
        fractions: of the horizon, at which the values of each instance are kept otherwise; those of
        `linear`, and the end.
        facts: of an environment, kept as columns.
    """

    name: str
    envs: tuple[str, ...]
    agents: tuple[str, ...]
    horizon: int
    runs: int
    queries: int
    instances: Callable[[Sequence[str]], list[str]] | None = None
    files: Callable[[Sequence[str]], Iterable[Instance]] | None = None
    metrics: tuple[str, ...] = ()
    least_horizon: int = 10_000
    least_runs: int = 4
    windows: int = 100
    each: bool = False
    fractions: tuple[float, ...] = (0.2, 0.4, 0.8, 0.99, 1.0)
    facts: Mapping[str, Callable[[Any], float]] = field(default_factory=dict)


PaperTable = tuple[str, Sequence[Sequence[str]]]
"""A title, and rows of which the first is the header."""


@dataclass(frozen=True)
class Study:
    """An experiment of a paper.

    Attributes:
        title: what it shows, in one line.
        paper: where it is from.
        parts: what is run.
        statements: what the paper says about it.
        notes: where it differs from the paper.
        figure: draws the paper's figure.
        table: makes the paper's table, where it has one.
        columns: the curves that are kept.
    """

    title: str
    paper: str
    parts: tuple[Part, ...]
    statements: tuple[Statement, ...]
    notes: str
    figure: Callable[[Evidence], Figure]
    table: Callable[[Evidence], PaperTable] | None = None
    columns: tuple[str, ...] = ("regret",)


# ---------------------------------------------------------------------------------------------------------- shared judging

CM, PBM = "CMRank-v0", "PBMRank-v0"
LAST, FIRST = "CascadeKLUCB", "CascadeKLUCB:feedback=first_click"
LINEAR = 0.8
"""
The share of the rate of the second fifth of the horizon that the last fifth keeps, from which on
regret counts as linear. Regret that grows as √n keeps 0.57, as log n 0.32.
"""
LINEAR_RULE = f"regret per session in the last fifth is above {LINEAR} of that in the second fifth"
LEARNS_RULE = LINEAR_RULE.replace("above", "below")


def short(env: str) -> str:
    """The click model of an environment: ``"CM"`` of ``"CMRank-v0:cutoff=5"``."""
    return env.partition("Rank")[0].removeprefix("NonStationary")


def growth(early: Values, late: Values, over: str = "") -> tuple[str, Estimate]:
    """The late rate of regret in words, and how far it is above that of linear regret."""
    share = late.mean() / early.mean() if early.mean() > SLACK else 0.0
    return f"{estimate(late)} per session{over}, {share:.2f} times the earlier rate", estimate(
        late - LINEAR * early
    )


def linear(curves: Curves, env: str, agent: str, column: str = "regret") -> Finding:
    """Whether the column keeps growing as fast as before."""
    (early, late), over = curves.rates(env, agent, (0.2, 0.4), (0.8, 1.0), column=column)
    words, gap = growth(early, late, f" {over}")
    return Finding(words, gap.above(SLACK))


def sublinear(curves: Curves, env: str, agent: str) -> Finding:
    """The contrary of `linear`; an agent without regret has learned."""
    finding = linear(curves, env, agent)
    contrary: dict[Verdict, Verdict] = {"yes": "no", "no": "yes", "cannot tell": "cannot tell"}
    return Finding(finding.measured, contrary[finding.verdict])


def several(findings: Mapping[str, Finding]) -> Finding:
    """One finding of several by name, all of which must hold; a single one may be called ``""``."""
    measured = "; ".join(
        f"{name}: {finding.measured}".removeprefix(": ") for name, finding in findings.items()
    )
    return Finding(measured, every([finding.verdict for finding in findings.values()]))


def versus(low: Values, high: Values, where: str = "", over: str = "") -> Finding:
    """Whether the values of one agent are below those of another, by the gap within the same units.

    Args:
        low, high: ``(n,)`` the values of each.
        where: words about them.
        over: what the units are, in words.
    """
    gap = estimate(high - low)
    measured = f"{number(low.mean())} against {number(high.mean())}{where}, a gap of {gap}{f' {over}' if over else ''}"
    return Finding(measured, gap.above(0.0))


def less_regret(
    curves: Curves, env: str, better: str, worse: str, fraction: float = 1.0
) -> Finding:
    """Whether one agent has less cumulative regret than another, at the end or at a fraction of the
    horizon.
    """
    if fraction == 1.0:
        return versus(
            curves.end_units(env, better), curves.end_units(env, worse), over=curves.units_of_ends
        )
    low, high = (
        curves.at(curves.units(env, agent), fraction * curves.horizon) for agent in (better, worse)
    )
    return versus(low, high)


def less_in_the_end(curves: Curves, env: str, better: str, worse: str, where: str = "") -> Finding:
    """Whether one agent has less regret per session than another in the last hundredth of the
    horizon.
    """
    return versus(
        curves.final_units(env, better), curves.final_units(env, worse), where, curves.units_of_ends
    )


RANDOM = "Random"


def times(curves: Curves, agent: str, env: str, low: float, high: float, other: str) -> Finding:
    """Regret at the end as a multiple of that of another agent."""
    share = ratio(curves.end_units(env, agent), curves.end_units(env, other))
    return share.finding(f" times {curves.units_of_ends}", low, high)
