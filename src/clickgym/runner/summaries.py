"""Summaries of a sweep: means over runs with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence

import polars
from polars import col

from ..core.statistics import half_width
from .metrics import is_sum

MEASURED = ("env", "instance", "agent", "run", "seed", "step", "regret", "reward", "clicks")
TIMED = ("engine", "seconds")


def metrics_of(frame: polars.DataFrame) -> list[str]:
    """The further metrics in the rows of a sweep."""
    return [name for name in frame.columns if name not in (*MEASURED, *TIMED)]


def without_regret(frame: polars.DataFrame) -> list[str]:
    """The environments in which some regret is unknown; there, agents are compared by reward."""
    return frame.filter(col("regret").is_null())["env"].unique(maintain_order=True).to_list()


def with_loss(frame: polars.DataFrame) -> polars.DataFrame:
    """The rows with ``loss``, of which less is better: regret, or minus the reward in environments
    in which some regret is unknown.
    """
    unknown = col("env").is_in(without_regret(frame))
    return frame.with_columns(loss=polars.when(unknown).then(-col("reward")).otherwise("regret"))


def per_session(frame: polars.DataFrame) -> polars.DataFrame:
    """The rows with further metrics divided by the sessions so far, as far as they are sums."""
    sums = [name for name in metrics_of(frame) if is_sum(name)]
    return frame.with_columns(col(name) / col("step") for name in sums)


def average(
    frame: polars.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> polars.DataFrame:
    """Measures averaged over runs, each with a confidence interval.

    If a group covers several instances, each run is first averaged over them: the interval is about
    the mean over these very instances, not about others. Runs that lack some of these instances are
    left out.

    Args:
        frame: rows of a sweep.
        by: the columns that tell groups apart: those of ``env``, ``instance`` and ``agent`` that
            matter, and ``step``.
        measures: names of columns.

    Returns:
        One row per group in the order of the frame: the columns of ``by``; ``instances`` and
        ``runs``, their numbers; each measure, and as ``<measure>_ci95`` half the width of the 95 %
        interval of its mean (Student's t; null for a single run). A measure is null where any value
        of the group is.
    """
    labels = [name for name in by if frame.schema[name] == polars.String]
    enums = [col(name).cast(polars.Enum(frame[name].unique())) for name in labels]
    frame = frame.select(*by, "run", *measures).with_columns(enums)  # texts take much memory
    known = {name: col(name).null_count() == 0 for name in measures}
    means = [polars.when(known[name]).then(col(name).mean()).alias(name) for name in measures]
    spreads = [
        polars.when(known[name]).then(col(name).std()).alias(f"{name}_ci95") for name in measures
    ]
    runs = frame.group_by([*by, "run"], maintain_order=True).agg(
        polars.len().alias("instances"), *means
    )
    complete = runs.filter(col("instances") == col("instances").max().over(by))
    groups = complete.group_by(by, maintain_order=True).agg(
        col("instances").first(), polars.len().alias("runs"), *means, *spreads
    )
    halves = {n: half_width(n) for n in groups["runs"].unique()}
    half = col("runs").replace_strict(halves, return_dtype=polars.Float64)
    halved = groups.with_columns(col(f"{name}_ci95") * half for name in measures)
    return halved.with_columns(col(labels).cast(polars.String))


def final_table(rows: polars.DataFrame) -> polars.DataFrame:
    """The final results of every agent, lowest regret first, as `Results.table` says.

    Args:
        rows: of `Results`.

    Example:
        >>> columns = ["env", "instance", "agent", "run", "step", "regret", "reward"]
        >>> rows = [("E", "i", "A", 0, 10, 3.0, 10.0), ("E", "i", "A", 1, 10, 5.0, 30.0)]
        >>> frame = polars.DataFrame(rows, columns, orient="row")
        >>> table = final_table(frame.with_columns(engine=polars.lit("python"), seconds=1e-6))
        >>> table.select("agent", "regret", "reward", "runs").row(0)
        ('A', 4.0, 2.0, 2)
    """
    last = rows.filter(col("step") == rows["step"].max())
    metrics, group = metrics_of(rows), ["env", "agent"]
    table = average(with_loss(per_session(last)), group, ["loss", "regret", "reward", *metrics])
    nanoseconds = (col("seconds").median() / col("step").first() * 1e9).alias("ns_per_session")
    speeds = last.group_by(group).agg(nanoseconds, col("engine", "step").first())
    table = table.join(speeds, on=group, how="left", maintain_order="left")
    environments = polars.Enum(rows["env"].unique(maintain_order=True))
    table = table.sort(col("env").cast(environments), "loss", maintain_order=True)
    return table.select(
        *group,
        *("regret", "regret_ci95"),
        col("reward", "reward_ci95") / col("step"),
        "runs",
        *(column for name in metrics for column in (name, f"{name}_ci95")),
        *("instances", "ns_per_session", "engine"),
    )
