"""Rows of several sweeps and single runs in one frame, and the checks that they fit together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import polars
from polars import col

from ..core.specs import format_spec, parse_spec
from ..measure.result import HOW_PLAYED, RESET_IS_NO_SESSION, same_users_message
from .reports.summaries import IS_OWN, metrics_of
from .results_folder import Config


def names_in_single_runs(frames: Sequence[polars.DataFrame]) -> dict[str, str]:
    """Return the name that single runs have for each environment that a sweep names with a module
    or an instance, as in ``my_module:News-v0`` or ``PBMRank-v0:instance=uniform``, by the sweep's
    label. Labels are left out if an agent has both single runs and runs of a sweep there.

    Args:
        frames: the rows of all parts.
    """
    columns, is_single = ["env", "instance", "agent"], col("sweep_seed").is_null()
    runs = {run for rows in frames for run in rows[columns].unique().rows()}
    singles = {run for rows in frames for run in rows.filter(is_single)[columns].unique().rows()}
    played = {(env, instance) for env, instance, _ in singles}
    names = {label: _without_module_and_instance(label) for label, *_ in runs}
    mixed = {label for label, instance, agent in runs if (names[label], instance, agent) in singles}
    return {
        label: names[label]
        for label, instance, _ in runs
        if (names[label], instance) in played and label not in mixed
    }


def _without_module_and_instance(label: str) -> str:
    try:
        name, arguments = parse_spec(label)
    except ValueError:  # a label that the user chose
        return label
    arguments.pop("instance", None)
    return format_spec(name.rpartition(":")[2], arguments) or label


def check_same_sweep(sources: Sequence[tuple[str, Config]]) -> None:
    """Check that all sweeps have the same settings, and that no label stands for two things.

    Args:
        sources: the configuration of each sweep, with the name of its source for messages.

    Raises:
        ValueError: two sweeps cannot be shown in one table.
    """
    # Among identical sweeps, compare only one with the others. A sweep that cannot be compared,
    # such as a sweep with a lambda, differs even from itself, so all such sweeps are kept.
    distinct = {
        number if config.difference(config) else repr(replace(config, seed=0)): (source, config)
        for number, (source, config) in enumerate(sources)
    }
    for (name, config), (other_name, other) in combinations(distinct.values(), 2):
        if fault := config.difference(other):
            raise ValueError(f"{other_name} cannot be shown in one table with {name}: {fault}")


def concatenate(frames: Sequence[polars.DataFrame]) -> polars.DataFrame:
    """Combine several frames of rows into one. If a sweep's run is in several frames, keep it once,
    with the metrics of all frames; number single runs in the order of the frames.
    """
    run_id = polars.struct("env", "instance", "agent", "run")
    frames = [rows.with_columns(begins=run_id.rle_id().diff().fill_null(1) > 0) for rows in frames]
    rows = polars.concat(frames, how="diagonal").select(polars.exclude(HOW_PLAYED), *HOW_PLAYED)
    is_single = col("sweep_seed").is_null()
    metrics = metrics_of(rows.drop("begins"))
    same = polars.struct(polars.exclude("run", "sweep_seed", "begins", *metrics, *HOW_PLAYED))
    measured = {name: col(name).max().over(same) for name in metrics}  # by any of the frames
    rows = rows.with_columns(
        polars.when(is_single).then(name).otherwise(value).alias(name)
        for name, value in measured.items()
    )
    rows = rows.filter(is_single | same.is_first_distinct())
    number = col("begins").cum_sum().over("env", "instance", "agent").cast(polars.Int64) - 1
    return rows.with_columns(run=polars.when(is_single).then(number).otherwise("run")).drop(
        "begins"
    )


def check_runs(last: polars.DataFrame) -> None:
    """Check that runs can be shown in one table.

    Args:
        last: the last row of each run.

    Raises:
        ValueError: two runs of an agent have the same seed, an agent's name stands for runs from
            different sources, or the runs have different numbers of sessions or different rewards.
    """
    columns = ["env", "instance", "agent", "seed"]
    seed, unknown = col("seed"), col("regret").is_null()
    repeated = last.filter(seed.is_not_null() & (polars.len().over(columns) > 1))
    for env, _, agent, number in repeated[columns].rows():
        raise ValueError(
            f"{agent} in {env} has two runs with the seed {number}, so with the same users; give "
            "each run its own seed, such as 0, 1000 and 2000. Only if the runs are from two "
            "agents, rename one agent: dataclasses.replace(result, agent=...)"
        )
    last_seed = polars.coalesce("last_seed", "seed")
    ordered = last.filter(seed.is_not_null()).sort("seed")
    next_seed = seed.shift(-1).over("env", "instance", "agent")
    overlapping = ordered.with_columns(next=next_seed).filter(last_seed >= col("next"))
    for env, agent, first, end, second in overlapping[
        ["env", "agent", "seed", "last_seed", "next"]
    ].rows():
        message = same_users_message(first, second, end - first + 1)
        raise ValueError(f"{agent} in {env}: {message}")
    source = polars.struct(IS_OWN, col("sweep_seed").is_null())
    mixed = last.filter(source.n_unique().over("env", "agent") > 1)
    for env, agent in mixed["env", "agent"].rows():
        raise ValueError(
            f"in {env}, {agent} is the name of runs from different sources (a sweep, "
            "clickgym.run or your own loop); rename the agent in the runs from one source: "
            "dataclasses.replace(result, agent=...)"
        )
    if last["step"].n_unique() > 1:
        ends = last.select("agent", "step").unique(maintain_order=True)
        lengths = ", ".join(f"{agent} {step:,}" for agent, step in ends.iter_rows())
        own, least, most = last.filter(IS_OWN)["step"], min(ends["step"]), max(ends["step"])
        cure = f"play the longer runs again, with horizon={least}"
        if last.filter(col("step") > least).select(IS_OWN.all()).item():
            cure = (
                "show your own loop in a table of its own, or use only its first sessions: "
                f"env.result(name, {least})"
            )
        elif least in own:
            cure = (
                f"continue your own loop until env.meter.step is {most}, or {cure}. A loop may "
                f"have fewer sessions than steps: {RESET_IS_NO_SESSION}"
            )
        raise ValueError(
            "runs have different numbers of sessions, so they cannot be compared: "
            f"{lengths}; {cure}"
        )
    incomplete = last.filter(unknown, unknown.n_unique().over("env") > 1)
    for env, agent in incomplete["env", "agent"].rows():
        raise ValueError(
            f"in {env}, regret is unknown for {agent} but known for other agents, so their rewards "
            "differ; apply RecordRegret before the wrapper that changes the reward, or let that "
            "wrapper set info['regret']"
        )
