"""Summaries of a sweep: means with confidence intervals, and comparisons of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars
from polars import col

from ..agents import FrozenPolicy
from ..core.statistics import half_width, holm, t_level
from ..envs.result import FACTS, TIMED, TOTALS
from .play.metrics import is_sum
from .play.pair import ENGINES

FIXED = (*FACTS, *TOTALS, *TIMED)
"""The columns that all rows have; further metrics stand before `TIMED`."""
QUERY = "query"
IS_FROZEN = col("engine") == FrozenPolicy.engine
"""Whether a run is of a policy that does not learn in it."""
OWN_USERS = ~col("engine").is_in([*ENGINES, "own loop"]) & ~IS_FROZEN | col("seed").is_null()
"""Whether a run met other users than the runs of the same number of other agents: it trained on
streams of its own, or its seed is unknown.
"""


def metrics_of(frame: polars.DataFrame) -> list[str]:
    """The further metrics in the rows of a sweep."""
    return [name for name in frame.columns if name not in FIXED]


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


def several_instances(frame: polars.DataFrame) -> list[str]:
    """The environments with several instances, over which intervals are there; elsewhere they are
    over runs.
    """
    counts = frame.group_by("env", maintain_order=True).agg(col("instance").n_unique())
    return counts.filter(col("instance") > 1)["env"].to_list()


def by_query(frame: polars.DataFrame) -> polars.DataFrame:
    """The rows with the query in place of the run, where runs have one: all runs of a query are one
    value, because other runs say nothing about other queries.
    """
    return frame.with_columns(run=polars.coalesce(QUERY, "run"))


def comparable(rows: polars.DataFrame) -> polars.DataFrame:
    """The rows of one environment that can be compared with those of other agents over the same
    instances, queries or runs. Over runs, those of agents with users of their own cannot, not even
    their other runs, which are a choice among them.
    """
    if several_instances(rows):
        return rows
    return rows.filter(~(OWN_USERS & col(QUERY).is_null()).any().over("agent"))


WINDOWS = 50
"""The most windows in which the further metrics are drawn."""


def by_window(frame: polars.DataFrame) -> polars.DataFrame:
    """The rows at the ends of about equal windows, with further metrics as means per session of the
    window that ends there; those of held-out queries as they are there.

    Example:
        >>> columns = {"env": "E", "instance": "i", "agent": "A", "run": 0, "regret": 0.0}
        >>> frame = polars.DataFrame({"step": [10, 20, 40], "ndcg": [1.0, 6.0, 22.0], **columns})
        >>> by_window(frame)["ndcg"].to_list()
        [0.1, 0.5, 0.8]
    """
    steps = frame["step"].unique().sort()
    place = (steps * WINDOWS / steps[-1]).ceil()
    ends = (
        polars.DataFrame({"step": steps, "window": place}).group_by("window").agg(col("step").max())
    )
    rows = frame.join(ends, on="step", how="semi", maintain_order="left")
    pair = ["env", "instance", "agent", "run"]

    def since(name: str) -> polars.Expr:
        return col(name) - col(name).shift(1, fill_value=0).over(pair)

    sums = [name for name in metrics_of(frame) if is_sum(name)]
    return rows.with_columns(since(name) / since("step") for name in sums)


def span(counts: polars.Series) -> str:
    """The least and the largest number, or the only one.

    Example:
        >>> span(polars.Series([5, 3, 5])), span(polars.Series([5, 5]))
        ('3 to 5', '5')
    """
    return " to ".join(map(str, sorted({min(counts), max(counts)})))


def complete_runs(frame: polars.DataFrame, by: Sequence[str]) -> polars.DataFrame:
    """The rows of runs that have all the instances of their group.

    Args:
        frame: rows of a sweep.
        by: as in `average`.
    """
    counted = frame.with_columns(instances=polars.len().over([*by, "run"]))
    return counted.filter(col("instances") == col("instances").max().over(by)).drop("instances")


def average(
    frame: polars.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> polars.DataFrame:
    """Measures averaged over instances and runs, each with a confidence interval.

    In an environment with several instances the interval is over the instances, each averaged over
    its runs: it is about other instances of the kind. A second interval, over the runs, each
    averaged over the instances, is about these very instances. With one instance the interval is
    over the runs, or over the queries, each averaged over its runs, where a run plays one query.
    Runs that lack some of the instances are left out.

    Args:
        frame: rows of a sweep.
        by: the columns that tell groups apart: ``env``, and those of ``agent`` and ``step`` that
            matter.
        measures: names of columns.

    Returns:
        One row per group in the order of the frame: the columns of ``by``; ``instances``, ``runs``
        and, if there are any, ``queries``, their numbers; each measure, as ``<measure>_ci95`` half
        the width of the 95 % interval of its mean (Student's t; null for a single value), and as
        ``<measure>_ci95_runs`` that over the runs, null unless there are several instances and
        several runs. A measure is null where any value of the group is.
    """
    several = col("env").is_in(several_instances(frame))
    labels = [name for name in by if frame.schema[name] == polars.String]
    enums = [col(name).cast(polars.Enum(frame[name].unique())) for name in (*labels, "instance")]
    queries = [QUERY] if frame[QUERY].count() else []
    frame = frame.select(*by, "instance", "run", QUERY, *measures)
    frame = complete_runs(frame.with_columns(enums), by)  # of little memory
    numbers = frame.group_by(by).agg(
        col("run").n_unique().alias("runs"),
        *(col(name).drop_nulls().n_unique().alias("queries") for name in queries),
    )
    frame = by_query(frame)
    known = {name: col(name).null_count() == 0 for name in measures}
    means = [polars.when(known[name]).then(col(name).mean()).alias(name) for name in measures]

    def over(unit: str) -> polars.DataFrame:
        """Means over units and their intervals, ``<measure> <unit>``."""
        spreads = [
            polars.when(known[name]).then(col(name).std()).alias(f"{name} {unit}")
            for name in measures
        ]
        units = frame.group_by([*by, unit], maintain_order=True).agg(means)
        groups = units.group_by(by, maintain_order=True).agg(
            polars.len().alias(f"{unit}s"), *means, *spreads
        )
        halves = {n: half_width(n) for n in groups[f"{unit}s"].unique()}
        half = col(f"{unit}s").replace_strict(halves, return_dtype=polars.Float64)
        return groups.with_columns(col(f"{name} {unit}") * half for name in measures)

    instances = over("instance").drop(measures)
    groups = over("run").drop("runs")
    for more in (instances, numbers):
        groups = groups.join(more, on=by, how="left", maintain_order="left")
    groups = groups.with_columns(col(labels).cast(polars.String))
    return groups.select(
        *by,
        *("instances", "runs"),
        *("queries" for _ in queries),
        *measures,
        *(
            polars.when(several)
            .then(f"{name} instance")
            .otherwise(f"{name} run")
            .alias(f"{name}_ci95")
            for name in measures
        ),
        *(polars.when(several).then(f"{name} run").alias(f"{name}_ci95_runs") for name in measures),
    )


def comparisons(last: polars.DataFrame, reference: str) -> polars.DataFrame:
    """Each agent compared with one, unit by unit: the units are those of the intervals, which met
    the same users.

    Args:
        last: rows of one step.
        reference: the agent.

    Returns:
        A row for each environment and other agent: ``difference`` of its regret to that of the
        reference (of its total reward, where regret is unknown), ``difference_ci95`` half the width
        of its 95 % interval, and ``p`` of the paired t test, adjusted by Holm's procedure for the
        agents of the environment; null with two units or fewer. Agents that met users of their
        own have no row where units are runs.
    """
    unknown, several, found = without_regret(last), several_instances(last), []
    for (env,), rows in last.group_by("env", maintain_order=True):
        unit = "instance" if env in several else "seed"
        measure = "reward" if env in unknown else "regret"
        means = (
            comparable(complete_runs(rows, ["agent"]))
            .with_columns(seed=polars.coalesce(QUERY, "seed"))
            .group_by(unit, "agent")
            .agg(col(measure).mean())
        )
        values = means.pivot("agent", index=unit, values=measure)
        of_env: list[dict[str, Any]] = []
        for agent in rows["agent"].unique(maintain_order=True):
            if agent != reference and {agent, reference} <= {*values.columns}:
                gaps = (values[agent] - values[reference]).drop_nulls().to_numpy()
                if len(gaps):
                    of_env.append({"env": env, "agent": agent, **_of_gaps(gaps)})
        tested = [row for row in of_env if row["p"] is not None]
        for row, p in zip(tested, holm([row["p"] for row in tested]), strict=True):
            row["p"] = p
        found += of_env
    numbers = dict.fromkeys(("difference", "difference_ci95", "p"), polars.Float64)
    return polars.DataFrame(found, {"env": polars.String, "agent": polars.String, **numbers})


def _of_gaps(gaps: Any) -> dict[str, float | None]:
    """The mean of the differences of n units, its interval, and p if n > 2 and there are any."""
    n, mean = len(gaps), float(gaps.mean())
    spread = float(gaps.std(ddof=1)) if n > 1 else None
    half = None if spread is None else spread * half_width(n)
    p = t_level(mean, spread / n**0.5, n - 1) if n > 2 and (spread or mean) else None
    return {"difference": mean, "difference_ci95": half, "p": p}


def final_table(rows: polars.DataFrame, reference: str | None = None) -> polars.DataFrame:
    """The final results of every agent, lowest regret first, as `Results.table` says.

    Args:
        rows: of `Results`.
        reference: the agent with which the others are compared; None takes the first.

    Example:
        >>> columns = {"env": "E", "instance": "i", "query": None, "agent": "A", "step": 10}
        >>> columns |= {"run": [0, 1], "seed": [7, 8], "regret": [3.0, 5.0]}
        >>> columns |= {"reward": [10.0, 30.0], "engine": "python", "seconds": 1e-6}
        >>> table = final_table(polars.DataFrame(columns))
        >>> table.select("agent", "regret", "worst", "reward", "runs").row(0)
        ('A', 4.0, 5.0, 2.0, 2)
    """
    last = rows.filter(col("step") == rows["step"].max())
    reference = rows["agent"][0] if reference is None else reference
    metrics, group = metrics_of(rows), ["env", "agent"]
    known = ~col("env").is_in(without_regret(last))
    rows_of_known = with_loss(per_session(last)).with_columns(polars.when(known).then("regret"))
    table = average(rows_of_known, group, ["loss", "regret", "reward", *metrics])
    of_runs = (
        complete_runs(last, group)
        .group_by(group)
        .agg(
            (col("seconds").median() / col("step").first() * 1e9).alias("ns_per_session"),
            col("engine", "step").first(),
            polars.when(known.first()).then(col("regret").median()).alias("median"),
            polars.when(known.first()).then(col("regret").max()).alias("worst"),
        )
    )
    for more in (of_runs, comparisons(last, reference)):
        table = table.join(more, on=group, how="left", maintain_order="left")
    environments = polars.Enum(rows["env"].unique(maintain_order=True))
    table = table.sort(col("env").cast(environments), "loss", maintain_order=True)
    several = col("env").is_in(several_instances(last))
    queries = ["queries"] if "queries" in table.columns else []
    asked = col("queries") > 0 if queries else polars.lit(False)
    return table.select(
        *group,
        *("regret", "regret_ci95", "regret_ci95_runs", "median", "worst"),
        polars.lit(reference).alias("reference"),
        *("difference", "difference_ci95", "p"),
        col("reward", "reward_ci95") / col("step"),
        "runs",
        *(column for name in metrics for column in (name, f"{name}_ci95")),
        "instances",
        *queries,
        polars.when(several)
        .then(polars.lit("instances"))
        .when(asked)
        .then(polars.lit("queries"))
        .otherwise(polars.lit("runs"))
        .alias("over"),
        *("ns_per_session", "engine"),
    )
