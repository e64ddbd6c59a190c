"""Summaries of a sweep: means over runs with confidence intervals, and tests of which agents
differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars
from polars import col

from ..core.statistics import half_width

LEVEL = 0.05
"""The most that the chance may be of calling any two agents of a table different whose regrets have
the same mean.
"""
DECIMALS = 6
"""Digits of a regret that count in a test: those below are rounding errors of a long sum, and no
spread.
"""
MEASURED = ("env", "instance", "agent", "run", "step", "regret", "reward", "clicks")
TIMED = ("engine", "seconds")
NOT_SUMMED = ("window_regret",)
"""Metrics that hold a value of the checkpoint itself, not a sum over all sessions before it."""


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
    sums = [name for name in metrics_of(frame) if name not in NOT_SUMMED]
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
    known = {name: col(name).null_count() == 0 for name in measures}
    means = [polars.when(known[name]).then(col(name).mean()).alias(name) for name in measures]
    spreads = [
        polars.when(known[name]).then(col(name).std()).alias(f"{name}_ci95") for name in measures
    ]
    groups = (
        _complete_runs(frame, by, *means)
        .group_by(by, maintain_order=True)
        .agg(col("instances").first(), polars.len().alias("runs"), *means, *spreads)
    )
    halves = {n: half_width(n) for n in groups["runs"].unique()}
    half = col("runs").replace_strict(halves, return_dtype=polars.Float64)
    return groups.with_columns(col(f"{name}_ci95") * half for name in measures)


def _complete_runs(
    frame: polars.DataFrame, by: Sequence[str], *means: polars.Expr
) -> polars.DataFrame:
    """Each run averaged over the instances of its group, if it has them all."""
    runs = frame.group_by([*by, "run"], maintain_order=True).agg(
        polars.len().alias("instances"), *means
    )
    return runs.filter(col("instances") == col("instances").max().over(by))


def final_table(rows: polars.DataFrame, by: Sequence[str] = ("env",)) -> polars.DataFrame:
    """The final results of every agent, lowest regret first.

    Args:
        rows: of `Results`.
        by: the columns that tell groups apart: ``env``, or ``env`` and ``instance``.

    Returns:
        The columns of `Results.table`, after those of ``by``.

    Example:
        >>> columns = ["env", "instance", "agent", "run", "step", "regret", "reward"]
        >>> rows = [("E", "i", "A", 0, 10, 3.0, 10.0), ("E", "i", "A", 1, 10, 5.0, 30.0)]
        >>> frame = polars.DataFrame(rows, columns, orient="row")
        >>> table = final_table(frame.with_columns(engine=polars.lit("python"), seconds=1e-6))
        >>> table.select("agent", "regret", "reward", "runs").row(0)
        ('A', 4.0, 2.0, 2)
    """
    last = rows.filter(col("step") == rows["step"].max())
    metrics, group = metrics_of(rows), [*by, "agent"]
    table = average(with_loss(per_session(last)), group, ["loss", "regret", "reward", *metrics])
    nanoseconds = (col("seconds").median() / col("step").first() * 1e9).alias("ns_per_session")
    speeds = last.group_by(group).agg(nanoseconds, col("engine", "step").first())
    table = table.join(speeds, on=group, how="left", maintain_order="left")
    environments = polars.Enum(rows["env"].unique(maintain_order=True))
    table = table.sort(col("env").cast(environments), *by[1:], "loss", maintain_order=True)
    return table.select(
        *group,
        *("regret", "regret_ci95"),
        col("reward", "reward_ci95") / col("step"),
        "runs",
        *(column for name in metrics for column in (name, f"{name}_ci95")),
        *("instances", "ns_per_session", "engine"),
    )


def pairwise(frame: polars.DataFrame) -> polars.DataFrame:
    """Test for each pair of agents whether their final regrets differ; where regret is unknown,
    their rewards.

    For each pair of agents the null hypothesis is that their regrets at the last step have the same
    mean. The test is Welch's two-sided t-test over runs, which are independent because each has its
    own seeds; each run is first averaged over its instances. Agents of different instances, or with
    a single run, are not compared. Holm's correction is over the pairs of an environment. If
    regrets are normally distributed, the probability of any false difference within an environment
    is at most `LEVEL`.

    Args:
        frame: rows of a sweep.

    Returns:
        One row per pair, in each environment from the lowest regrets up: ``env``; ``better`` and
        ``worse``, the agents; ``difference``, of their mean regrets; ``p``, corrected; ``differ``,
        whether it is below `LEVEL`. Where they are not compared, both are null. Where neither
        regret varies between runs there is nothing to test: ``p`` is null, and they differ or not
        as they stand.

    Example:
        >>> regrets = {"TopRank": [3, 5, 4], "BatchRank": [90, 80, 85], "Random": [84, 99, 95]}
        >>> runs = [(agent, run) for agent in regrets for run in range(3)]
        >>> rows = [("E", "i", agent, run, 10, regrets[agent][run], 1) for agent, run in runs]
        >>> columns = ["env", "instance", "agent", "run", "step", "regret", "reward"]
        >>> pairs = pairwise(polars.DataFrame(rows, columns, orient="row"))
        >>> for row in pairs.iter_rows(named=True):
        ...     print(row["better"], row["worse"], round(row["p"], 4), row["differ"])
        TopRank BatchRank 0.0026 True
        TopRank Random 0.0044 True
        BatchRank Random 0.2355 False
    """
    from scipy.stats import ttest_ind_from_stats  # slow to load

    last = with_loss(frame.filter(col("step") == frame["step"].max()))
    instances = col("instance").sort().str.join("\n").alias("places")
    losses = _complete_runs(last, ["env", "agent"], col("loss").mean().round(DECIMALS), instances)
    agents = (
        losses.group_by("env", "agent", maintain_order=True)
        .agg(
            col("loss").mean().alias("mean"),
            col("loss").std().alias("spread"),
            polars.len().alias("n"),
            col("places").first(),
        )
        .sort("mean", maintain_order=True)
        .with_columns(rank=polars.int_range(polars.len()).over("env"))
    )
    pairs = agents.join(agents, on="env", suffix="_worse", maintain_order="left_right")
    pairs = pairs.filter(col("rank") < col("rank_worse"))
    samples = [
        pairs[f"{name}{which}"].to_numpy()
        for which in ("", "_worse")
        for name in ("mean", "spread", "n")
    ]
    with np.errstate(invalid="ignore", divide="ignore"):  # where nothing varies
        test = ttest_ind_from_stats(*samples, equal_var=False)
    alike = (col("n") > 1) & (col("n_worse") > 1) & (col("places") == col("places_worse"))
    varies = alike & (col("spread") + col("spread_worse") > 0)
    differs = col("mean") < col("mean_worse")
    holm = (col("p").count() - col("p").rank("ordinal") + 1) * col("p")
    corrected = holm.cum_max().clip(upper_bound=1).over("env", order_by="p")
    return (
        pairs.with_columns(p=polars.when(varies).then(polars.Series(test.pvalue)))
        .with_columns(p=corrected)
        .select(
            "env",
            col("agent").alias("better"),
            col("agent_worse").alias("worse"),
            (col("mean_worse") - col("mean")).alias("difference"),
            "p",
            polars.when(varies).then(col("p") < LEVEL).when(alike).then(differs).alias("differ"),
        )
    )
