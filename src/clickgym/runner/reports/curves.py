"""The curves of a figure: a panel for each environment or instance, with the means of each measure
and their 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars
from polars import col

from ..play.metrics import is_sum
from ..summaries import average, by_window, comparable, without_regret

ZOOM = 1000
"""On logarithmic axes the first thousandth of the sessions, where all agents still explore, is left
out; of normalised regret, which is mostly chance at first, the first hundredth.
"""


class Manner(NamedTuple):
    """How a figure is drawn, as `Results.plot` says."""

    log: bool
    by_instance: bool
    reference: str | None
    emphasis: str | None
    names: Mapping[str, str]
    width: float | None
    normalise: bool
    measures: Sequence[str]

    def text(self, name: str) -> str:
        """A name as the figure shows it; matplotlib would read a formula between two dollars."""
        return self.names.get(name, name).replace("$", r"\$")

    def label(self, measure: str) -> str:
        """The label of the axis of a measure."""
        if measure not in ("regret", "reward"):
            text = self.text(measure) + " per session" * is_sum(measure)
        elif self.normalise:
            text = "score (0: random, 1: optimum)"
        else:
            text = f"cumulative {self.text(measure)}"
        return text if self.reference is None else f"{text}\nminus {self.text(self.reference)}"


class Panel(NamedTuple):
    """The curves of an environment, or of one of its instances.

    Attributes:
        title: what they are of.
        curves: of each measure the rows of all agents, as `average` returns them: ``agent``,
            ``step``, the measure, and half of its interval. The rows of regret also have reward.
    """

    title: str
    curves: dict[str, polars.DataFrame]


def panels_of(rows: polars.DataFrame, manner: Manner) -> list[Panel]:
    """The panels of a figure.

    Raises:
        ValueError: there is nothing by which to normalise.
    """
    if manner.normalise:
        rows = _normalised(rows)
    by = ["env", "instance"] if manner.by_instance else ["env"]
    places = rows.select(by).unique(maintain_order=True)
    # One by one, because they take much memory.
    return [_panel(rows.filter(**place), manner) for place in places.iter_rows(named=True)]


def _panel(rows: polars.DataFrame, manner: Manner) -> Panel:
    """The panel of the rows of an environment or of an instance."""
    curves = {}
    if "regret" in manner.measures:
        curves["regret"] = _means(_after_the_start(rows, manner), ["regret", "reward"], manner)
    metrics = [measure for measure in manner.measures if measure != "regret"]
    if metrics:
        curves |= dict.fromkeys(metrics, _means(by_window(rows), metrics, manner))
    instances = rows["instance"].unique()
    where = instances[0] if len(instances) == 1 else f"mean over {len(instances)} instances"
    return Panel(f"{manner.text(rows['env'][0])}\n{manner.text(where)}", curves)


def _after_the_start(rows: polars.DataFrame, manner: Manner) -> polars.DataFrame:
    """The rows of cumulative regret that are drawn: those after the start, as `ZOOM` says."""
    if not manner.log and not manner.normalise:
        return rows
    part = ZOOM if manner.log else 100
    return rows.filter(col("step") * part >= col("step").max())


def _means(rows: polars.DataFrame, measures: Sequence[str], manner: Manner) -> polars.DataFrame:
    """The means of measures at each step, or those of the differences to the reference."""
    if manner.reference is not None:
        rows = _minus(rows, manner.reference, measures)
    return average(rows, ("env", "agent", "step"), measures)


def _minus(rows: polars.DataFrame, reference: str, measures: Sequence[str]) -> polars.DataFrame:
    """The rows of the other agents, with the differences to the reference in the same runs."""
    same, rows = ["env", "instance", "run", "step"], comparable(rows)
    of_reference = rows.filter(agent=reference).select(*same, *measures)
    both = rows.filter(col("agent") != reference).join(
        of_reference, on=same, suffix=" of reference", maintain_order="left"
    )
    return both.with_columns(col(name) - col(f"{name} of reference") for name in measures)


def _normalised(rows: polars.DataFrame) -> polars.DataFrame:
    """The rows with 1 minus the regret as a share of that of random lists, in its place."""
    random = rows.filter(agent="Random")
    if random.is_empty() or without_regret(rows):
        raise ValueError("normalise needs the agent Random, and the regret of all environments")
    same = ["env", "instance", "step"]
    means = random.group_by(same).agg(col("regret").mean().alias("of random"))
    both = rows.join(means, on=same, how="left", maintain_order="left")
    return both.with_columns(regret=1 - col("regret") / col("of random")).drop("of random")
