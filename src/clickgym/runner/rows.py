"""Rows of results: of the finished runs in folders, of other results, and of single runs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars
from polars import col

from ..envs.result import Result
from .config import LABELLED, Config, run_seed, shown_of
from .identity import UNKNOWN
from .store import RUNS, FinishedRun, files_of, read
from .summaries import MEASURED, QUERY, TIMED

ALWAYS = ("regret", "reward", "clicks")
"""What every run measures."""


def check_folder(folder: Path) -> None:
    """Check that a folder is one of results, or has no files.

    Raises:
        ValueError: it holds something else, or results of another version.
    """
    names = {file.name for file in folder.glob("[!.]*")}
    if names - {RUNS} and not files_of([folder]):
        raise ValueError(f"{_unreadable(folder)}; choose another (--out)")


def read_folders(folders: Sequence[Path]) -> tuple[polars.DataFrame, Config]:
    """The rows of the finished runs that the table of some folders shows, and what it is of.

    Raises:
        ValueError: a folder is not one of results, a label has another meaning in each of two
            folders, two instances are the same users, or no run is finished.

    Warns:
        UserWarning: nothing of a folder is shown, because another has another setting.
    """
    headers, finished = read(folders)
    configs = [(folder, Config.from_json(folder, header)) for folder, header in headers]
    if unreadable := set(folders) - {folder for folder, _ in configs}:
        raise ValueError("; ".join(map(_unreadable, sorted(unreadable))))
    setting = configs[-1][1].setting
    of_setting: dict[Path, list[Config]] = {}
    for folder, config in configs:
        if config.setting == setting:  # the folder of the last sweep moves to the end
            of_setting[folder] = [*of_setting.pop(folder, []), config]
    for folder in folders:
        if folder not in of_setting:
            warnings.warn(
                f"nothing of {folder} is shown: it has another horizon, seed or metrics, or other "
                "versions of packages",
                stacklevel=3,
            )
    by_folder = {folder: shown_of(same) for folder, same in of_setting.items()}
    check_meanings(by_folder)
    shown = shown_of([*by_folder.values()])
    frame = frame_of(finished, shown)
    if frame.is_empty():
        raise ValueError(f"{', '.join(map(str, folders))} holds no finished run yet")
    return frame, shown


def check_meanings(parts: Mapping[Any, Config], *, unknown_differ: bool = True) -> None:
    """Check that no label has another meaning in each of two parts of one table.

    Args:
        parts: what folders or results are of, by their names in messages.
        unknown_differ: whether what has no identity differs from all else.

    Raises:
        ValueError: a label has.
    """
    origins: dict[tuple[str, str], tuple[str, Any]] = {}
    for part, config in parts.items():
        for things in LABELLED:
            for label in getattr(config, things):
                meaning = config.identities[things][label]
                before, other = origins.setdefault((things, label), (meaning, part))
                is_known = unknown_differ or not meaning.startswith(UNKNOWN)
                if meaning != before and is_known:
                    raise ValueError(
                        f"{label} of {other} is not {label} of {part}, and one table cannot show "
                        "both; repeat one of the two sweeps with another name for it"
                    )


def _unreadable(folder: Path) -> str:
    """Why a folder that has no file of a sweep cannot be read, in words."""
    if any((folder / RUNS).glob("sweep-*.json")):
        return (
            f"{folder} has results of clickgym 6.0; install that version, or read "
            f"{folder / 'results.parquet'} with Polars"
        )
    if not folder.exists():
        return f"there is no folder {folder}"
    return f"{folder} is not a results folder: it has no runs of this version of clickgym"


def frame_of(finished: Mapping[str, FinishedRun], config: Config) -> polars.DataFrame:
    """The rows of the finished runs of a sweep, in the order of its table, as `Results.rows` has
    them; what is unknown is null.

    Args:
        finished: runs by their keys, also of other sweeps.
        config: of the sweep.
    """
    steps, metrics = config.setting.checkpoints, config.setting.metrics
    names = [*ALWAYS, *metrics]
    runs = [(trial, finished[key]) for trial, key in config.trials.items() if key in finished]
    counts = [config.queries.get(trial.instance, 1) for trial, _ in runs]
    labels: dict[str, Any] = dict.fromkeys(("env", "instance", "agent"), polars.String)
    labels |= {"run": polars.Int64, "seed": polars.Int64, QUERY: polars.Int64}
    labels |= {"engine": polars.String, "seconds": polars.Float64}
    identified = [
        (
            *trial,
            run_seed(config.setting.seed, trial.instance, trial.run, count),
            trial.run % count if count > 1 else None,
            run.engine,
            run.seconds,
        )
        for (trial, run), count in zip(runs, counts, strict=True)
    ]
    measured = np.frombuffer(b"".join(run.measured for _, run in runs), "<f8")
    columns = measured.reshape(len(runs), len(names), len(steps)).swapaxes(0, 1)
    frame = polars.DataFrame(identified, labels, orient="row")
    queries = [QUERY] if config.queries else []
    return (
        frame[np.repeat(np.arange(len(runs)), len(steps))]
        .with_columns(polars.Series("step", np.tile(steps, len(runs))))
        .with_columns(
            polars.Series(name, column.reshape(-1))
            for name, column in zip(names, columns, strict=True)
        )
        .with_columns(col("regret", *metrics).fill_nan(None), col("clicks").cast(polars.Int64))
        .select(*MEASURED[:5], *queries, *MEASURED[5:], *metrics, *TIMED)
    )


def rows_of(parts: Sequence[Result | polars.DataFrame]) -> polars.DataFrame:
    """The rows of single runs and of other results, as `Results.rows` has them. Runs with the same
    seed get the same number, because they met the same users; a run without a seed has its number
    for itself.

    Args:
        parts: single runs, and rows of sweeps.

    Raises:
        ValueError: runs have different numbers of sessions, or runs in one environment different
            rewards; an agent has a run or a seed twice, or results of two kinds have one name.
    """
    frames = [_frame_of_run(part) if isinstance(part, Result) else part for part in parts]
    _check_horizons(frames)
    _check_regret(frames)
    swept: dict[Any, int] = {}  # numbers of runs, by the users that they met
    seen, origins = set[Any](), dict[Any, Any]()
    for place, part in enumerate(parts):
        if not isinstance(part, Result):
            columns = part.select("env", "instance", "seed", "agent", "run")
            for env, instance, seed, agent, run in columns.unique(maintain_order=True).iter_rows():
                swept[env, instance, seed] = run
                seen.add((env, instance, seed, agent))
                _check_name((env, instance, agent), place, origins)
    runs = [part for part in parts if isinstance(part, Result)]
    for result in runs:
        _check_new(result, seen)
        origin = "own loop" if result.engine == "own loop" else "run"
        _check_name((result.env, result.instance, result.agent), origin, origins)
    numbers = iter(_numbers(runs, swept))
    for place, part in enumerate(parts):
        if isinstance(part, Result):
            number = polars.lit(next(numbers), polars.Int64)
            frames[place] = frames[place].with_columns(run=number)
    return polars.concat(frames, how="diagonal").select(polars.exclude(TIMED), *TIMED)


def _frame_of_run(run: Result) -> polars.DataFrame:
    """The rows of a single run."""
    return run.to_frame().with_columns(
        engine=polars.lit(run.engine), seconds=polars.lit(run.seconds)
    )


def _check_horizons(frames: Sequence[polars.DataFrame]) -> None:
    """Check that all runs have the same number of sessions."""
    ends = [frame.group_by("agent", maintain_order=True).agg(col("step").max()) for frame in frames]
    horizons = {f"{agent} {end:,}": end for agent, end in polars.concat(ends).iter_rows()}
    if len({*horizons.values()}) > 1:
        listed = ", ".join(horizons)
        raise ValueError(
            f"runs have different numbers of sessions, and are not comparable: {listed}; "
            "play as many in each, or take the first sessions of a longer loop: "
            f"env.result(name, {min(horizons.values())})"
        )


def _check_regret(frames: Sequence[polars.DataFrame]) -> None:
    """Check that regret is known of all runs of an environment, or of none: if it is unknown of
    one of them, a wrapper changes its reward, and the total rewards are of two kinds.
    """
    ends = [frame.filter(col("step") == col("step").max()) for frame in frames]
    for (env,), rows in polars.concat(ends, how="diagonal").group_by("env", maintain_order=True):
        unknown, known = rows.filter(col("regret").is_null()), rows.drop_nulls("regret")
        if len(unknown) and len(known):
            raise ValueError(
                f"in {env} the regret of {unknown['agent'][0]} is unknown, and that of "
                f"{known['agent'][0]} is known, so their rewards differ; put the wrapper that "
                "changes the reward outside of RecordRegret, or a regret of its own into info"
            )


def check_seeds(rows: polars.DataFrame) -> None:
    """Check that runs of sweeps with one number met the same users.

    Raises:
        ValueError: they did not.
    """
    users = ["env", "instance", "run"]
    seeds = rows.select(*users, "seed").drop_nulls("seed").unique()
    others = seeds.filter(seeds.select(users).is_duplicated())
    if len(others):
        raise ValueError(
            f"sweeps of {others['env'][0]} have different seeds, so that their runs met different "
            "users; play them with one seed, and give runs of your own one by one"
        )


def _check_new(run: Result, seen: set[Any]) -> None:
    """Check that a single run is not there already; note that it is."""
    key: Any = run.env, run.instance, run.seed, run.agent
    if run.seed is None:
        key = run.env, run.instance, run.regret.tobytes(), run.reward.tobytes()
        if key in seen:
            raise ValueError(
                f"the same run of {run.agent} in {run.env} is there twice; each run needs new "
                "environments, with another seed"
            )
    elif key in seen:
        raise ValueError(
            f"two runs of {run.agent} in {run.env} have the seed {run.seed}; if they are of two "
            "agents, name one of them: dataclasses.replace(result, agent=...)"
        )
    seen.add(key)


def _check_name(labels: tuple[str, str, str], origin: Any, origins: dict[Any, Any]) -> None:
    """Check that an agent in an environment and instance has its results from one origin: a sweep,
    `clickgym.run` or loops of one's own.
    """
    if origins.setdefault(labels, origin) != origin:
        raise ValueError(f"two results are called {labels[-1]}; give one another name")


def _numbers(runs: Sequence[Result], swept: Mapping[Any, int]) -> list[int]:
    """The numbers of single runs.

    Args:
        runs: single runs.
        swept: the numbers in sweeps, by environment, instance and seed.
    """
    first = max(swept.values(), default=-1) + 1
    seeds = sorted({run.seed for run in runs if run.seed is not None})
    agents = list(dict.fromkeys(run.agent for run in runs))
    unseeded = Counter[Any]()
    numbers = []
    for run in runs:
        if run.seed is not None:
            users = run.env, run.instance, run.seed
            numbers.append(swept.get(users, first + seeds.index(run.seed)))
        else:
            of_agent = run.env, run.instance, run.agent
            before = unseeded[of_agent] * len(agents) + agents.index(run.agent)
            numbers.append(first + len(seeds) + before)
            unseeded[of_agent] += 1
    return numbers
