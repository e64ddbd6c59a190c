"""Play one run of each agent over the first tenth of each shipped result again, and compare it with
the digits that ship.

python benchmarks/shipped/replay.py [NAME ...] [--instances FOLDER] [--jobs N]

The seeds are those of the sweep that made the result, and the full horizon is what agents are told.
Of a study the first tenth of the sessions is played in all instances, for its curves are means over
them. Of the scorecard a run is played to the last step of the first tenth that ships exactly, or to
its end, in one instance of each block of tasks; ``scorecard-CascadeTS`` are the results of an
agent. All figures are compared exactly, in the precision in which they ship. Results of generic
reinforcement learning are not played: they differ from one build of torch to another.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import joblib
import polars
from polars import col

from clickgym import make_agent, run
from clickgym.agents import LEARNERS
from clickgym.envs import list_instances
from clickgym.runner import Trial, make_env, place_of
from clickgym_lab.bench.equipment import equipped
from clickgym_lab.bench.play import blocks
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.shipped import KEYS, Shipped, of_files, portable, read_shipped
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.setting import Plan

RESULTS = Path(__file__).resolve().parents[2] / "lab" / "results"
SCORECARD = "scorecard-"
"""Before the names of agents, whose results these are."""


class Game(NamedTuple):
    """A run: an environment, or a task, what its instance is made from, and an agent."""

    env: str
    instance: str
    agent: str


class Replay(NamedTuple):
    """What is played again of one result.

    Attributes:
        name: what reports call it.
        figures: the rows of its first run that a replay must give again, with `KEYS`.
        games: the runs.
        horizon: T, as the agents know it.
        seed, metrics: of the sweep that made the result.
    """

    name: str
    figures: polars.DataFrame
    games: tuple[Game, ...]
    horizon: int
    seed: int
    metrics: tuple[str, ...] = ()

    @property
    def steps(self) -> list[int]:
        """The checkpoints that are compared; the last is the end of the replay."""
        return self.figures["step"].unique().sort().to_list()


def of_study(shipped: Shipped, name: str, folder: Path | None, files: Path) -> Replay:
    """The replay of a part of a study.

    Args:
        shipped: the part.
        name: of the study.
        folder: of instance files, for queries that do not ship.
        files: where instances that are files are written.

    Raises:
        ValueError: a query is not there.
    """
    origin = shipped.made
    (part,) = (part for part in STUDIES[name].parts if part.name == shipped.part)
    figures = shipped.table.drop(part.facts, strict=False)
    figures = figures.filter(
        col("run") == 0, col("step") <= origin["horizon"] // 10, ~col("agent").is_in(list(LEARNERS))
    )
    sources = origin["instances"]
    if of_files(sources):
        queries = tuple(_query(query, folder) for query in origin["queries"])
        sources = Plan(part, queries, origin["horizon"], 1).instances(files / shipped.setting)
    agents = figures["agent"].unique(maintain_order=True)
    games = tuple(Game(*names) for names in product(origin["envs"], sources, agents))
    label = f"{name}: {shipped.part}, {shipped.setting}"
    return Replay(label, figures, games, origin["horizon"], origin["seed"], part.metrics)


def _query(name: str, folder: Path | None) -> str:
    if folder is not None and (folder / f"{name}.json").exists():
        return str(folder / f"{name}.json")
    if name.partition(":")[0] not in list_instances():
        raise ValueError(f"the instance {name} is not there; --instances names a folder")
    return name


def of_line(shipped: Shipped) -> Replay:
    """The replay of a block of tasks of an agent: the first run in the first task that it has
    played.
    """
    played = set(shipped.table["env"])
    task = next(task for task in blocks(CURRENT.candidates)[shipped.part] if task.name in played)
    exact = CURRENT.stages(task)
    steps = [step for step in exact if step <= task.horizon // 10] or exact
    metrics = () if task.measure == "regret" else (task.measure,)
    rows = shipped.table.filter(col("env") == task.name, col("run") == 0, col("step").is_in(steps))
    [agent] = shipped.made["agents"]
    figures, games = (
        rows.select(*KEYS, "regret", *metrics),
        (Game(task.name, task.instance, agent),),
    )
    return Replay(
        f"{SCORECARD}{agent}: {shipped.part}", figures, games, task.horizon, CURRENT.seed, metrics
    )


def play(replay: Replay, n_jobs: int = -1) -> polars.DataFrame:
    """The table of a replay, in the order of its games.

    Args:
        replay: what is played.
        n_jobs: workers, which are threads.
    """
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads")
    return polars.concat(parallel(joblib.delayed(_play)(replay, game) for game in replay.games))


def _play(replay: Replay, game: Game) -> polars.DataFrame:
    task = CURRENT.by_name.get(game.env)
    if task is None:
        env = make_env(game.env, game.instance)
        trial, player = Trial(game.env, place_of(env).instance, game.agent, 0), game.agent
    else:
        env, trial, player = task.make(), CURRENT.trial(task, 0), equipped(game.agent, task)
    env_seed, agent_seed = trial.seeds(replay.seed)
    agent = make_agent(player, env, horizon=replay.horizon, seed=agent_seed)
    result = run(
        agent,
        env,
        replay.steps[-1],
        seed=env_seed,
        checkpoints=replay.steps,
        metrics=replay.metrics,
    )
    names = {"env": game.env, "instance": place_of(env).instance, "agent": game.agent}
    return result.to_frame().with_columns(
        polars.lit(portable(name)).alias(key) for key, name in names.items()
    )


def differences(figures: polars.DataFrame, table: polars.DataFrame) -> dict[tuple[str, str], int]:
    """Where a replay differs from what ships.

    Args:
        figures: what ships; rows without an instance are means over the instances.
        table: of the replay, in all instances.

    Returns:
        The first step at which any figure differs, for each pair of an environment and an agent
        that differs.

    Example:
        >>> rows = [("E", i, "A", 0, step, step / 3) for i in "xy" for step in (1, 2)]
        >>> table = polars.DataFrame(rows, [*KEYS, "regret"], orient="row")
        >>> figures = table.with_columns(col("regret").cast(polars.Float32))
        >>> differences(figures, table), differences(figures, table.with_columns(regret=col("regret") + (col("step") == 2)))
        ({}, {('E', 'A'): 2})
    """
    columns = [name for name in figures.columns if name in table.columns and name not in KEYS]
    means = table.group_by("env", "agent", "run", "step", maintain_order=True).agg(
        col(*columns).mean()
    )
    both = polars.concat([means, table.select(*KEYS, *columns)], how="diagonal_relaxed")
    beside = figures.join(both, on=KEYS, how="left", nulls_equal=True, suffix=" again")
    # Columns that only the ends of instances have are null here.
    equal = [
        col(name).is_null() | col(name).eq_missing(col(f"{name} again").cast(figures.schema[name]))
        for name in columns
    ]
    rows = (
        beside.filter(~polars.all_horizontal(equal))
        .group_by("env", "agent", maintain_order=True)
        .agg(col("step").min())
    )
    return {(env, agent): step for env, agent, step in rows.iter_rows()}


def replay_all(
    names: Sequence[str] = (), folder: Path | None = None, n_jobs: int = -1
) -> list[str]:
    """Play shipped results again, and report on each part.

    Args:
        names: of studies, or of agents after ``scorecard-``; none takes all.
        folder: of instance files, named as their instances, for results on queries that do not
        ship.
        n_jobs: workers.

    Returns:
        The names of the parts that differ.

    Raises:
        ValueError: an unknown name.
    """
    paths = {path.stem: path for path in sorted(RESULTS.glob("*.parquet"))}
    paths |= {
        f"{SCORECARD}{path.stem}": path
        for path in sorted(CURRENT.data.glob("*.parquet"))
        if path.stem not in LEARNERS
    }
    for name in names:
        if name not in paths:
            raise ValueError(f"{name} is no shipped result; there is {', '.join(paths)}")
    return [
        part for name in names or paths for part in _replay_file(name, paths[name], folder, n_jobs)
    ]


def _replay_file(name: str, path: Path, folder: Path | None, n_jobs: int) -> Iterator[str]:
    """The parts of a file that differ."""
    with tempfile.TemporaryDirectory() as files:
        for shipped in read_shipped(path):
            try:
                is_line = name.startswith(SCORECARD)
                replay = (
                    of_line(shipped) if is_line else of_study(shipped, name, folder, Path(files))
                )
            except ValueError as error:
                print(
                    f"{name}: {shipped.part}, {shipped.setting}: cannot be played: {error}",
                    flush=True,
                )
                continue
            if replay.figures.is_empty():
                continue
            start = time.perf_counter()
            different = differences(replay.figures, play(replay, n_jobs))
            words = "; ".join(
                f"{agent} in {env} differs from session {step:,} on"
                for (env, agent), step in different.items()
            )
            size = f"{len(replay.games)} runs of {replay.steps[-1]:,} sessions"
            print(
                f"{replay.name}: {size}, {time.perf_counter() - start:.1f} s: {words or 'equal'}",
                flush=True,
            )
            if different:
                yield replay.name


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument(
        "names", nargs="*", help="studies, or scorecard-AGENT; all if none is named"
    )
    parser.add_argument(
        "--instances",
        type=Path,
        metavar="FOLDER",
        help="instance files of queries that do not ship",
    )
    parser.add_argument("--jobs", type=int, default=-1, help="workers; -1 for one per processor")
    options = parser.parse_args(arguments)
    return int(bool(replay_all(options.names, options.instances, options.jobs)))


if __name__ == "__main__":
    raise SystemExit(main())
