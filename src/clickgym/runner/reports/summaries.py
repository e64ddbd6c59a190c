"""Statistics of results: units of observation, means with confidence intervals, and differences.

Printed tables, LaTeX tables, figures and ``summary.csv`` are computed in the same steps:
`with_units` determines what counts as one observation (a *unit*), `unit_means` averages within each
unit, `differences` subtracts the unit means of one agent from those of the other agents, and
`intervals` averages over the units.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import polars
from polars import col

from ...agents import FrozenPolicy
from ...core.statistics import half_width, holm, p_value
from ...core.text import counted
from ...envs.instances.instance import FAMILIES
from ...measure.metrics import is_sum
from ...measure.result import HOW_PLAYED, MIN_USERS, OWN_LOOP, RUN_COLUMNS, TOTALS
from ..play.run import ENGINES

FIXED_COLUMNS = (*RUN_COLUMNS, *TOTALS, *HOW_PLAYED)
"""The columns of all results. Additional metrics are inserted before `HOW_PLAYED`."""
UNIT = ("over", "unit")
"""The columns that `with_units` adds to the rows of results: the kind of unit, and the unit."""
OVER_INSTANCES = col("over").is_in(["instances", "families"])
"""A Polars expression: whether the unit of a row is an instance."""
RUN = ("env", "instance", "agent", "sweep_seed", "run")
"""The columns that together identify a run."""
IS_FROZEN = col("engine") == FrozenPolicy.engine
"""A Polars expression: whether the agent of a run is a policy that does not learn."""
IS_OWN = col("engine") == OWN_LOOP
"""A Polars expression: whether a run comes from your own loop. Such runs are never paired."""
IS_LEARNER = ~IS_OWN & ~col("engine").is_in([*ENGINES, FrozenPolicy.engine])
"""A Polars expression: whether an RL library ran the loop, on its own streams of users."""
HAS_OTHER_USERS = IS_LEARNER | (~IS_OWN & col("seed").is_null())
"""A Polars expression: whether a run cannot be paired with runs of other agents, because its agent
trained on its own streams of users, or because its seed is unknown. False for runs from your own
loop.
"""

OWN_USERS = "custom"
"""The name of the instance of your own click model or environment. Titles leave out this name."""
ROUNDING = 1e-12
"""The largest difference per session that counts as a rounding error. The regret of a session is a
difference of two sums of at most a few dozen probabilities, each exact to 1e-16.
"""


def metrics_of(rows: polars.DataFrame) -> list[str]:
    """Return the names of the additional metrics in the rows of results."""
    return [name for name in rows.columns if name not in (*FIXED_COLUMNS, *UNIT)]


def with_units(rows: polars.DataFrame) -> polars.DataFrame:
    """Add the columns ``unit`` and ``over`` to the rows of a table or of a figure's panel.

    ``over`` is the kind of observation to which a row belongs, and ``unit`` is a struct of the
    columns that tell these observations apart; the other columns of the struct are null:

    - ``"instances"``, if an environment has several instances, because more runs say nothing about
      other instances;
    - ``"families"``, if these instances come from different families, which are no sample of one
      kind of users, so that means over them have neither intervals nor p-values;
    - ``"queries"``, if every run of an agent plays one of several queries, because more runs of a
      query say nothing about other queries;
    - ``"runs"`` in all other cases. Runs of two agents with the same ``seed`` have the same users,
      so these runs are one unit. If any run of an agent has different users, none of the agent's
      runs shares a unit with other agents, because a comparison of only some runs could be biased;
      units are then told apart by ``agent``, ``sweep_seed`` and ``run``.

    Runs from your own loop never share a unit with other agents, so ``agent`` is a part of each of
    their units.

    If the regret of any run in an environment is unknown, regret becomes null in all rows of this
    environment.
    """
    agent_columns = ["env", "agent"]
    regret = polars.when(col("regret").null_count().over("env") == 0).then("regret")
    has_queries = col("query").is_not_null().all().over(agent_columns)
    family = col("instance").str.split(":").list.first()
    has_families = family.is_in([*FAMILIES]).any() & (family.n_unique() > 1)
    over = (
        polars.when(has_families.over("env"))
        .then(polars.lit("families"))
        .when(col("instance").n_unique().over("env") > 1)
        .then(polars.lit("instances"))
        .when(has_queries)
        .then(polars.lit("queries"))
        .otherwise(polars.lit("runs"))
    )
    is_own, has_other_users = (kind.any().over(agent_columns) for kind in (IS_OWN, HAS_OTHER_USERS))
    is_run = col("over") == "runs"
    is_alone = is_run & (is_own | has_other_users)
    tells_apart = {
        "instance": OVER_INSTANCES,
        "query": col("over") == "queries",
        "seed": is_run & ~is_alone,
        "sweep_seed": is_alone,
        "run": is_alone,
        "agent": is_alone | is_own,
    }
    unit = polars.struct(polars.when(tells).then(name) for name, tells in tells_apart.items())
    return rows.with_columns(over=over, regret=regret).with_columns(unit=unit)


def split_instances(rows: polars.DataFrame) -> polars.DataFrame:
    """Return the rows of results in which each instance of an environment counts as an environment
    of its own, with the label ``"ENV, INSTANCE"``.
    """
    return rows.with_columns(env=polars.format("{}, {}", "env", "instance"))


def share_no_instance(rows: polars.DataFrame) -> bool:
    """Return whether two agents in any environment have no instance in common, so that a row or a
    curve over the instances of each agent would compare different users.
    """
    played = rows.group_by("env", "agent").agg(col("instance").unique())
    pairs = played.join(played, on="env", suffix=" of other")
    common = col("instance").list.set_intersection("instance of other")
    return bool(pairs.select((common.list.len() == 0).any()).item())


def _means(measures: Sequence[str]) -> list[polars.Expr]:
    """Return Polars expressions for the means of columns. A mean is null if any value is null."""
    return [
        polars.when(col(name).null_count() == 0).then(col(name).mean()).alias(name)
        for name in measures
    ]


def unit_means(
    rows: polars.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> polars.DataFrame:
    """Average measures within each unit of each group, and return one row per unit.

    Args:
        rows: rows that `with_units` returned.
        by: the names of the columns that identify a group, such as env, agent and step.
        measures: the names of the columns to average. A mean is null if any value in the unit is
            null.
    """
    return rows.group_by(*by, *UNIT, maintain_order=True).agg(_means(measures))


def _runs_in_common(rows: polars.DataFrame, keys: Sequence[str]) -> polars.DataFrame:
    """Keep, of the rows of two agents, only runs with the same users in each unit that has such
    runs, so that a difference is not due to users whom only one of the agents met.

    Args:
        rows: rows that `with_units` returned.
        keys: the columns that identify a group, without agent.
    """
    has_known_users = ~(IS_OWN | HAS_OTHER_USERS).any().over("env", "agent")
    users = [*keys, "unit", "query", "seed"]
    is_common = (col("agent").n_unique() == 2).over(users) & has_known_users.all().over(users)
    rows = rows.with_columns(is_common=is_common)
    return rows.filter(col("is_common") | ~col("is_common").any().over(*keys, "unit"))


def differences(
    rows: polars.DataFrame,
    reference: str,
    by: Sequence[str],
    measures: Sequence[str],
    n_sessions: int | polars.Expr,
) -> polars.DataFrame:
    """Subtract the unit means of the reference agent from the unit means of every other agent. If
    both agents have runs with the same users in a unit, the means are over these runs.

    Differences that are rounding errors become 0, so that lists that are equally good give no
    p-value.

    Args:
        rows: rows that `with_units` returned.
        reference: the name of the reference agent.
        by: the names of the columns that identify a group; ``agent`` must be one of them.
        measures: the names of the columns to subtract.
        n_sessions: how many sessions are added up in each value.

    Returns:
        Rows like those that `unit_means` returns, one for each unit that an agent shares with the
        reference.
    """
    keys = [name for name in by if name != "agent"]
    frames = []
    for agent in rows["agent"].unique(maintain_order=True):
        pair = _runs_in_common(rows.filter(col("agent").is_in([agent, reference])), keys)
        units = unit_means(pair, by, measures)
        of_reference = units.filter(agent=reference).select(*keys, "unit", *measures)
        frames.append(
            units.filter(agent=agent).join(
                of_reference,
                on=[*keys, "unit"],
                suffix=" of reference",
                maintain_order="left",
            )
        )
    pairs = polars.concat(frames).filter(col("agent") != reference)
    gaps = pairs.with_columns(col(name) - col(f"{name} of reference") for name in measures)
    least = ROUNDING * n_sessions
    gaps = gaps.with_columns(
        polars.when(col(name).abs() <= least).then(0.0).otherwise(name).alias(name)
        for name in measures
    )
    return gaps.select(*by, *UNIT, *measures)


def intervals(
    units: polars.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> polars.DataFrame:
    """Compute means over units, with 95 % confidence intervals (Student's t).

    Args:
        units: rows that `unit_means` or `differences` returned.
        by: the names of the columns that identify a group.
        measures: the names of the columns to average.

    Returns:
        One row per group, in the order of the units. The columns are those in ``by``; ``units``,
        the number of units; each measure; and ``<measure>_ci95``, the half-width of the measure's
        interval (null for a single unit, and for units of different families). A measure is null if
        its value is null in any unit of the group.
    """
    is_sample = (col("over") != "families").all()
    spreads = (
        polars.when(is_sample & (col(name).null_count() == 0))
        .then(col(name).std())
        .alias(f"{name}_ci95")
        for name in measures
    )
    groups = units.group_by(by, maintain_order=True).agg(
        polars.len().alias("units"), *_means(measures), *spreads
    )
    halves = {n: half_width(n) for n in groups["units"].unique()}
    half = col("units").replace_strict(halves, return_dtype=polars.Float64)
    return groups.with_columns(col(f"{name}_ci95") * half for name in measures)


def intervals_of_instances(
    last: polars.DataFrame, by: Sequence[str], measure: str
) -> polars.DataFrame:
    """Compute intervals that cover more runs on these instances, but not other instances.

    Each run (or each query, if runs play queries) is first averaged over the instances; the
    intervals are computed over these averages.

    Args:
        last: rows that `with_units` returned, all from the same step.
        by: the names of the columns that identify a group.
        measure: the name of the column to average.

    Returns:
        One row per group, with ``ci95_runs``, the half-width of the interval. A group has no row if
        its units are not instances, or if an instance lacks a run.
    """
    of_run = (polars.when(col("query").is_null()).then(name) for name in ("sweep_seed", "run"))
    means = last.filter(over="instances").with_columns(unit=polars.struct("query", *of_run))
    means = unit_means(means, [*by, "instance"], [measure])
    n_runs, n_instances = (col(name).n_unique().over(by) for name in ("unit", "instance"))
    means = means.filter(polars.len().over(by) == n_runs * n_instances)
    halves = intervals(unit_means(means, by, [measure]), by, [measure])
    return halves.select(*by, ci95_runs=f"{measure}_ci95")


def p_values(gaps: polars.DataFrame, by: Sequence[str], measure: str) -> polars.DataFrame:
    """Compute the p-values of paired t tests between each agent and the reference.

    The p-values are adjusted by Holm's procedure for the number of agents in an environment.

    Args:
        gaps: rows that `differences` returned.
        by: the names of the columns that identify a group: env and agent.
        measure: the name of the column to test.

    Returns:
        One row per group, with ``p``. A group has no row if it has two units or fewer, if its
        units are of different families, if a difference is null, or if all differences are 0.
    """
    is_known = col(measure).null_count().over(by) == 0
    gaps = gaps.filter(col("over") != "families", is_known)
    tests = gaps.group_by(by, maintain_order=True).agg(
        n=polars.len(), mean=col(measure).mean(), spread=col(measure).std()
    )
    tests = tests.filter(col("n") > 2, (col("mean") != 0) | (col("spread") != 0)).sort("env")
    numbers = tests.select("env", "n", "mean", "spread").iter_rows()
    raw = [(env, p_value(mean, spread / n**0.5, n - 1)) for env, n, mean, spread in numbers]
    adjusted = [
        p for _, group in groupby(raw, key=itemgetter(0)) for p in holm([p for _, p in group])
    ]
    return tests.select(*by, p=polars.Series(adjusted, dtype=polars.Float64))


def count_runs(last: polars.DataFrame, by: Sequence[str]) -> polars.DataFrame:
    """Count the runs and the units over which the means of each group are taken.

    Args:
        last: rows that `with_units` returned, all from the same step.
        by: the names of the columns that identify a group.

    Returns:
        One row per group. ``units`` is the number of units, and ``over`` is the kind of unit.
        ``runs`` and ``most_runs`` are the smallest and the largest number of runs per instance; if
        units are not instances, both are the number of runs in the group.
    """
    runs = last.select(*by, *UNIT, "instance", "sweep_seed", "run").unique(maintain_order=True)
    instance = polars.when(OVER_INSTANCES).then("instance")
    runs = runs.with_columns(n=polars.len().over(*by, instance))
    return runs.group_by(by, maintain_order=True).agg(
        runs=col("n").min(),
        most_runs=col("n").max(),
        units=col("unit").n_unique(),
        over=col("over").first(),
    )


def describe_units(counts: polars.DataFrame) -> str:
    """Describe in words the units and runs over which the means of a table or figure are taken.

    Args:
        counts: rows with the columns that `count_runs` returns.

    Example:
        >>> columns = ["runs", "most_runs", "units", "over"]
        >>> describe_units(polars.DataFrame([(5, 5, 16, "instances")], columns, orient="row"))
        '16 instances with 5 runs each'
        >>> describe_units(polars.DataFrame([(32, 32, 16, "queries")], columns, orient="row"))
        '16 queries in 32 runs'
        >>> describe_units(polars.DataFrame([(1, 1, 1, "runs")], columns, orient="row"))
        'one run'
    """
    words = []
    for over, one, several, form in (
        ("instances", "instance", "instances", "{units} with {runs} each"),
        ("families", "instance", "instances of different families", "{units} with {runs} each"),
        ("queries", "query", "queries", "{units} in {runs}"),
        ("runs", "run", "runs", "{runs}"),
    ):
        part = counts.filter(over=over)
        if len(part):
            units = range_text(part["units"])
            runs = range_text(part["runs"].append(part["most_runs"]))
            words.append(
                form.format(
                    units=f"one {one}" if units == "1" else f"{units} {several}",
                    runs="one run" if runs == "1" else f"{runs} runs",
                )
            )
    return ", or ".join(words)


def range_text(counts: polars.Series) -> str:
    """Return the range of some numbers as text, or a single number if all numbers are equal.

    Example:
        >>> range_text(polars.Series([5000, 3, 5])), range_text(polars.Series([5, 5]))
        ('3 to 5,000', '5')
    """
    return " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))


def notes_by_agent(rows: polars.DataFrame) -> dict[str, list[str]]:
    """Return notes on the runs of each agent, by the agent's name.

    Agents without notes are left out. A note says that the agent did not learn in these runs,
    that it learned (or may have learned) before these runs, that some of its sessions were not
    recorded, that a seed was used again, so that the same users came back, or that too many users
    were new.
    """
    result: dict[str, list[str]] = {}
    columns = ["agent", "trained", "unrecorded", "reseeded", "users_per_stream", "engine"]
    runs = rows.select(columns).unique(maintain_order=True)
    for (agent,), part in runs.group_by("agent", maintain_order=True):
        trained, unrecorded = part["trained"], part["unrecorded"]
        n_unknown = part.filter(IS_OWN)["trained"].null_count()
        texts = []
        if trained.max():
            suffix = ", as far as known" if trained.null_count() else ""
            sessions = counted(range_text(trained.drop_nulls()), "session")
            texts.append(f"after {sessions} of training{suffix}")
        elif n_unknown:
            texts.append("may have learned before these runs, because trained= was not given")
        if part.select(IS_FROZEN.any()).item():
            texts.append("did not learn in these runs; clicks lost in training are not counted")
        if unrecorded.max():
            texts.append(f"{counted(range_text(unrecorded.drop_nulls()), 'session')} not recorded")
        if part["reseeded"].max():
            times = counted(range_text(part["reseeded"]), "time")
            texts.append(f"a seed was used again {times}, so the same users came back")
        few = part.filter(col("users_per_stream") < MIN_USERS)["users_per_stream"].to_numpy()
        if len(few):
            texts.append(
                f"only about {few.min():.1f} users on each parallel stream, so too many of them "
                "were new"
            )
        if texts:
            result[str(agent)] = texts
    return result


def per_session(rows: polars.DataFrame) -> polars.DataFrame:
    """Divide the additional metrics in each row by the number of sessions so far. Metrics that are
    not sums stay unchanged.
    """
    sums = [name for name in metrics_of(rows) if is_sum(name)]
    return rows.with_columns(col(name) / col("step") for name in sums)


WINDOWS = 50
"""The largest number of windows into which figures of additional metrics divide a run."""


def by_window(rows: polars.DataFrame) -> polars.DataFrame:
    """Compute the additional metrics within windows of about equal length.

    Only the rows at the ends of the windows are returned. In these rows, metrics become means per
    session within the window, except that metrics of held-out queries keep their values.

    Example:
        >>> columns = {"env": "E", "instance": "i", "agent": "A", "sweep_seed": 0, "run": 0}
        >>> rows = polars.DataFrame({"step": [10, 20, 40], "ndcg": [1.0, 6.0, 22.0], **columns})
        >>> by_window(rows)["ndcg"].to_list()
        [0.1, 0.5, 0.8]
    """
    window = (col("step") * WINDOWS / col("step").max()).ceil()
    ends = rows.filter(col("step") == col("step").max().over("env", "agent", window))

    def in_window(name: str) -> polars.Expr:
        return col(name) - col(name).shift(1, fill_value=0).over(RUN)

    sums = [name for name in metrics_of(rows) if is_sum(name)]
    return ends.with_columns(in_window(name) / in_window("step") for name in sums)


def total_of(table: polars.DataFrame) -> str:
    """Return what a table shows of whole runs, in words: "regret", "total reward" if the regret is
    unknown, or both if the regret is known in some environments only.
    """
    n_known, n_rows = table["regret"].count(), len(table)
    return " or ".join(["regret"] * (n_known > 0) + ["total reward"] * (n_known < n_rows))


def final_table(
    rows: polars.DataFrame,
    reference: str | None = None,
    measure: str = "regret",
    is_loss: bool = True,
) -> polars.DataFrame:
    """Compute the final results of every agent, which `Results.table` returns.

    Args:
        rows: the rows of a `Results` object.
        reference: the agent with which the other agents are compared; by default, the first agent
            that shares units with others, or the first agent if none does.
        measure: the column by which the agents are ranked and compared.
        is_loss: whether less of this measure is better.

    Example:
        >>> import clickgym
        >>> rows = clickgym.sweep(["PBMRank-v0"], ["Random", "TopRank"], 1000, 2).rows
        >>> final_table(rows)["agent"].to_list()
        ['TopRank', 'Random']
    """
    by, metrics = ["env", "agent"], metrics_of(rows)
    last = with_units(per_session(rows.filter(col("step") == col("step").max())))
    if reference is None:
        is_alone = col("unit").struct.field("agent").is_not_null()
        reference = last.sort(is_alone, maintain_order=True)["agent"][0]
    horizon = last["step"][0]
    last = last.with_columns(value=col(measure) / (horizon if measure == "reward" else 1))
    measures = ["regret", "reward", *metrics, "value"]
    units = unit_means(last, by, measures)
    gap, loss, n_sessions = col("value"), col("value") if is_loss else -col("value"), 1
    if measure == "regret":  # known for all agents in an environment or for none
        gap, loss = polars.coalesce("regret", "reward"), polars.coalesce("regret", -col("reward"))
        n_sessions = horizon
    gaps = differences(last.with_columns(gap=gap), reference, by, ["gap"], n_sessions)
    run_columns = last.group_by(by).agg(
        (col("seconds").median() / col("step").first() * 1e9).alias("ns_per_session"),
        col("engine", "step").first(),
        polars.when(col("trained").null_count() == 0).then(col("trained").max()).alias("trained"),
        col("unrecorded", "reseeded").max(),
        median=col("value").median(),
        worst=col("value").max() if is_loss else col("value").min(),
    )
    table = intervals(units, by, measures).drop("units")
    for columns in (
        count_runs(last, by),
        intervals_of_instances(last, by, "value"),
        intervals(gaps, by, ["gap"]).select(*by, difference="gap", difference_ci95="gap_ci95"),
        p_values(gaps, by, "gap"),
        run_columns,
    ):
        table = table.join(columns, on=by, how="left", maintain_order="left")
    environments = polars.Enum(rows["env"].unique(maintain_order=True))
    order = [col("env").cast(environments), loss]
    return table.sort(order, nulls_last=True, maintain_order=True).select(
        *by,
        *("regret", "regret_ci95", col("ci95_runs").alias(f"{measure}_ci95_runs")),
        *("median", "worst"),
        polars.lit(reference).alias("reference"),
        *("difference", "difference_ci95", "p"),
        col("reward", "reward_ci95") / col("step"),
        *("runs", "units", "over", "trained", "unrecorded", "reseeded"),
        *(column for name in metrics for column in (name, f"{name}_ci95")),
        *("ns_per_session", "engine"),
    )
