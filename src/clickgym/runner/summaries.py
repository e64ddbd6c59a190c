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


def without_regret(table: polars.DataFrame) -> list[str]:
    """The environments in which some regret is unknown; there, agents are compared by reward.

    Args:
        table: rows of a sweep.
    """
    return table.filter(col("regret").is_null())["env"].unique(maintain_order=True).to_list()


def reward_for_regret(table: polars.DataFrame, sign: int = 1) -> polars.DataFrame:
    """The table with cumulative reward instead of regret, in environments in which some regret is
    unknown.

    Args:
        table: rows of a sweep.
        sign: -1 makes a loss of it, of which less is better, as of regret.
    """
    envs = without_regret(table)
    if not envs:
        return table
    return table.with_columns(
        regret=polars.when(col("env").is_in(envs))
        .then(sign * col("reward"))
        .otherwise(col("regret"))
    )


def average(table: polars.DataFrame, by: Sequence[str]) -> polars.DataFrame:
    """Regret and reward averaged over runs, with a confidence interval.

    Where a group covers several instances, each run is first averaged over them: the interval says
    how surely that average is known for these very instances, not how others would differ. Runs
    that some of these instances have not are left out.

    Args:
        table: rows of a sweep.
        by: the columns that tell groups apart; those of ``env``, ``instance`` and ``agent`` that
            matter, and ``step``.

    Returns:
        One row per group in the order of the table: the columns of ``by``; ``instances`` and
        ``runs``, their numbers; ``regret``, cumulative, and ``regret_ci95``, half the width of the
        95 % interval of its mean (Student's t; null for a single run); ``reward``, cumulative. The
        regret of a group is null where any of it is unknown.
    """
    regret = polars.when(col("regret").null_count() == 0).then(col("regret").mean())
    of_runs = _of_runs(table, by, polars.len().alias("instances"), regret, col("reward").mean())
    groups = of_runs.group_by(by, maintain_order=True).agg(
        col("instances").first(),
        polars.len().alias("runs"),
        regret,
        polars.when(col("regret").null_count() == 0).then(col("regret").std()).alias("regret_ci95"),
        col("reward").mean(),
    )
    halves = {n: half_width(n) for n in groups["runs"].unique()}
    return groups.with_columns(
        col("regret_ci95") * col("runs").replace_strict(halves, return_dtype=polars.Float64)
    )


def _of_runs(table: polars.DataFrame, by: Sequence[str], *means: polars.Expr) -> polars.DataFrame:
    """Each run averaged over the instances of its group, where it has them all."""
    runs = table.group_by([*by, "run"], maintain_order=True).agg(*means, rows=polars.len())
    return runs.filter(col("rows") == col("rows").max().over(by)).drop("rows")


def summary(
    table: polars.DataFrame, timings: polars.DataFrame, by: Sequence[str] = ("env", "agent")
) -> polars.DataFrame:
    """The final results of every agent.

    Args:
        table, timings: of one sweep.
        by: the columns that tell rows apart: with ``"instance"`` each instance has its own.

    Returns:
        `average` at the last step, with ``reward`` per session, ``ns_per_session``, the median over
        runs of the wall time, and ``engine``.

    Example:
        >>> rows = [("PBMRank-v0", "Random", 0, 10, 3.0, 10.0), ("PBMRank-v0", "Random", 1, 10, 5.0, 30.0)]
        >>> table = polars.DataFrame(rows, ["env", "agent", "run", "step", "regret", "reward"], orient="row")
        >>> timings = table.select("env", "agent", "run", seconds=0.5, engine=polars.lit("compiled"))
        >>> summary(table, timings).select("regret", "reward", "runs").row(0)
        (4.0, 2.0, 2)
    """
    horizon = table["step"].max()
    speeds = timings.group_by(by, maintain_order=True).agg(
        (polars.col("seconds").median() / horizon * 1e9).alias("ns_per_session"),
        polars.col("engine").first(),
    )
    return (
        average(table.filter(polars.col("step") == horizon), by)
        .with_columns(polars.col("reward") / horizon)
        .join(speeds, on=list(by), how="left", maintain_order="left")
    )


def pairwise(table: polars.DataFrame, by: Sequence[str] = ("env",)) -> polars.DataFrame:
    """Test for each pair of agents whether their final regrets differ; where regret is unknown,
    their rewards.

    For each pair of agents the null hypothesis is that their regrets at the last step have the same
    mean. The test is Welch's two-sided t-test over runs, which are independent because each has its
    own seeds. If a group covers several instances, each run is first averaged over them. Agents of
    different instances, or with a single run, are not compared. Holm's correction is over the pairs
    of a group. If regrets are normally distributed, the probability of any false difference within
    a group is at most `LEVEL`.

    Args:
        table: rows of a sweep.
        by: the columns that tell groups apart: ``env``, or ``env`` and ``instance``.

    Returns:
        One row per pair, in each group from the lowest regrets up: the columns of ``by``;
        ``better`` and ``worse``, the agents; ``difference``, of their mean regrets; ``p``,
        corrected; ``differ``, whether it is below `LEVEL`. Where they are not
        compared, both are null. Where neither regret varies between runs there is nothing to test:
        ``p`` is null, and they differ or not as they stand.

    Example:
        >>> regrets = {"TopRank": [3.0, 5.0, 4.0], "BatchRank": [90.0, 80.0, 85.0], "Random": [84.0, 99.0, 95.0]}
        >>> rows = [("PBMRank-v0", agent, run, 10, regrets[agent][run]) for agent in regrets for run in range(3)]
        >>> pairs = pairwise(polars.DataFrame(rows, ["env", "agent", "run", "step", "regret"], orient="row"))
        >>> [(row["better"], row["worse"], round(row["p"], 4), row["differ"]) for row in pairs.iter_rows(named=True)]
        [('TopRank', 'BatchRank', 0.0026, True), ('TopRank', 'Random', 0.0044, True), ('BatchRank', 'Random', 0.2355, False)]
    """
    from scipy.stats import ttest_ind_from_stats  # slow to load

    final = reward_for_regret(table.filter(col("step") == table["step"].max()), -1)
    places = (
        col("instance").sort().str.join("\n") if "instance" in table.columns else polars.lit("")
    )
    agents = (
        _of_runs(
            final, [*by, "agent"], col("regret").mean().round(DECIMALS), places.alias("places")
        )
        .group_by([*by, "agent"], maintain_order=True)
        .agg(
            col("regret").mean().alias("mean"),
            col("regret").std().alias("spread"),
            polars.len().alias("n"),
            col("places").first(),
        )
        .sort("mean", maintain_order=True)
        .with_columns(rank=polars.int_range(polars.len()).over(by))
    )
    pairs = agents.join(agents, on=list(by), suffix="_worse", maintain_order="left_right").filter(
        col("rank") < col("rank_worse")
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # where nothing varies; see below
        test = ttest_ind_from_stats(
            *(pairs[name].to_numpy() for name in ("mean", "spread", "n")),
            *(pairs[name].to_numpy() for name in ("mean_worse", "spread_worse", "n_worse")),
            equal_var=False,
        )
    alike = (col("n") > 1) & (col("n_worse") > 1) & (col("places") == col("places_worse"))
    varies, differs = (
        alike & (col("spread") + col("spread_worse") > 0),
        col("mean") < col("mean_worse"),
    )
    n_tests, place = col("p").count(), col("p").rank("ordinal")
    return (
        pairs.with_columns(p=polars.when(varies).then(polars.Series(test.pvalue)))
        .with_columns(
            ((n_tests - place + 1) * col("p"))
            .cum_max()
            .clip(upper_bound=1)
            .over(by, order_by="p")
            .alias("p")
        )
        .select(
            *by,
            col("agent").alias("better"),
            col("agent_worse").alias("worse"),
            (col("mean_worse") - col("mean")).alias("difference"),
            "p",
            polars.when(varies).then(col("p") < LEVEL).when(alike).then(differs).alias("differ"),
        )
    )


def ranked(
    table: polars.DataFrame, timings: polars.DataFrame, by: Sequence[str] = ("env",)
) -> polars.DataFrame:
    """The final results of every agent, lowest regret first, and which agents the tests cannot
    distinguish.

    Where the regret of an environment is unknown, agents stand from the highest reward down, and
    ``regret`` is the negative total reward.

    Args:
        table, timings: of one sweep.
        by: the columns that tell groups apart: ``env``, or ``env`` and ``instance``.

    Returns:
        The columns of `summary`; ``place``, from 1 in each group; ``alike``, the places of the
        agents that `pairwise` does not tell apart from this one: null if there is none, or if there
        is but one run.
    """
    places = polars.int_range(1, polars.len() + 1).over(by)
    rows = (
        summary(reward_for_regret(table, -1), timings, [*by, "agent"])
        .sort("regret", maintain_order=True)
        .with_columns(place=places)
    )
    close = pairwise(table, by).filter(~col("differ").fill_null(False))
    both_ways = polars.concat(
        [
            close.select(*by, agent=col(one), other=col(two))
            for one, two in (("better", "worse"), ("worse", "better"))
        ]
    )
    alike = both_ways.join(rows.select(*by, other="agent", alike="place"), on=[*by, "other"])
    alike = alike.group_by([*by, "agent"]).agg(col("alike").sort())
    rows = rows.join(alike, on=[*by, "agent"], how="left", maintain_order="left")
    return rows.with_columns(polars.when(col("runs") > 1).then(col("alike")))
