"""Means over runs with confidence intervals: what the table prints and the figure draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars
from scipy.special import stdtrit

__all__ = ["average", "summary"]

CONFIDENCE = 0.95


def average(table: polars.DataFrame, by: Sequence[str]) -> polars.DataFrame:
    """Regret and reward averaged over runs, with a confidence interval.

    Where a group covers several instances, each run is first averaged over them: the interval says how surely that average is
    known for these very instances, not how others would differ.

    Args:
        table: rows of a sweep.
        by: the columns that tell groups apart; those of ``env``, ``instance`` and ``agent`` that matter, and ``step``.

    Returns:
        One row per group in the order of the table: the columns of ``by``; ``instances`` and ``runs``, their numbers;
        ``regret``, cumulative, and ``regret_ci95``, half the width of the 95 % interval of its mean (Student's t; null for a
        single run); ``reward``, cumulative.
    """
    of_runs = table.group_by([*by, "run"], maintain_order=True).agg(
        polars.len().alias("instances"), polars.col("regret", "reward").mean()
    )
    n_runs = of_runs["run"].n_unique()
    # Half an interval per standard deviation over runs.
    factor = float(stdtrit(n_runs - 1, (1 + CONFIDENCE) / 2)) / math.sqrt(n_runs) if n_runs > 1 else math.nan
    return of_runs.group_by(by, maintain_order=True).agg(
        polars.col("instances").first(),
        polars.len().alias("runs"),
        polars.col("regret").mean(),
        (polars.col("regret").std() * factor).alias("regret_ci95"),
        polars.col("reward").mean(),
    )


def summary(table: polars.DataFrame, timings: polars.DataFrame, by: Sequence[str] = ("env", "agent")) -> polars.DataFrame:
    """What every agent ended with.

    Args:
        table, timings: of one sweep.
        by: the columns that tell rows apart: with ``"instance"`` each instance has its own.

    Returns:
        `average` at the last step, with ``reward`` per session, ``ns_per_session``, the median over runs of the wall time, and
        ``engine``.

    Example:
        >>> rows = [("PBMRank-v0", "Random", 0, 10, 3.0, 10.0), ("PBMRank-v0", "Random", 1, 10, 5.0, 30.0)]
        >>> table = polars.DataFrame(rows, ["env", "agent", "run", "step", "regret", "reward"], orient="row")
        >>> timings = table.select("env", "agent", "run", seconds=0.5, engine=polars.lit("compiled"))
        >>> summary(table, timings).select("regret", "reward", "runs").row(0)
        (4.0, 2.0, 2)
    """
    horizon = table["step"].max()
    speeds = timings.group_by(by, maintain_order=True).agg(
        (polars.col("seconds").median() / horizon * 1e9).alias("ns_per_session"), polars.col("engine").first()
    )
    return (
        average(table.filter(polars.col("step") == horizon), by)
        .with_columns(polars.col("reward") / horizon)
        .join(speeds, on=list(by), how="left", maintain_order="left")
    )
