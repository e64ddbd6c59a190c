"""Play a tenth of every shipped result again, and renew the digests of what comes out equal.

python benchmarks/shipped/reseal.py [NAME ...] [--plan] [--stale] [--instances FOLDER] [--jobs N]

One run of each agent in each environment is played, with the seeds of the sweep that made the result and with the full horizon
as argument. Of a study (``lab/results``) and of a sweep (``docs/sweeps``) the first tenth of the sessions is played, in all
instances, for the curves of a study are means over them. Of the scorecard a run is played to its end, in one instance of each
block of tasks; ``scorecard-CascadeTS`` are the results of an agent.
All figures at the checkpoints are compared exactly, in the precision in which they ship.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import polars
from polars import col
from scorecard import digests_of

from clickgym import make_agent, run
from clickgym.agents import Learner
from clickgym.core.files import write_whole
from clickgym.envs import list_instances
from clickgym.runner import AgentLike, Trial, make_env, place_of, player_of
from clickgym.runner.results import read_results
from clickgym_lab.bench.equipment import equipped
from clickgym_lab.bench.play import blocks
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.shipped import KEYS, Shipped, fingerprints, of_files, portable, read_shipped, stale, write_shipped
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.setting import Plan

SCORECARD = "scorecard-"
"""Before the names of agents, whose results these are."""
Pair = tuple[str, str]
"""An environment and an agent."""


class Game(NamedTuple):
    """A run: an environment, what its instance is made from, and an agent."""

    env: str
    instance: str
    agent: str


@dataclass(frozen=True)
class Replay:
    """What is played again of one result.

    Attributes:
        games: the runs.
        horizon: T, as the agents know it.
        steps: the checkpoints that are compared; the last is the end of the replay.
        seed, metrics: of the sweep that made the result.
    """

    games: tuple[Game, ...]
    horizon: int
    steps: tuple[int, ...]
    seed: int
    metrics: tuple[str, ...] = ()

    @property
    def sessions(self) -> int:
        """How many sessions are played."""
        return len(self.games) * self.steps[-1]


@dataclass(frozen=True)
class Original:
    """A result that ships, or a part of one.

    Attributes:
        name: what reports call it.
        figures: the rows of its first run that a replay must give again, with `KEYS`.
        replay: None if its users are not there.
        lack: what is not there.
        shipped: what has the digests; None for sweeps, which have none.
        sources: its instances, where all of them are played.
    """

    name: str
    figures: polars.DataFrame
    replay: Replay | None
    lack: str = ""
    shipped: Shipped | None = None
    sources: tuple[str, ...] = ()


# ---------------------------------------------------------------------------------------------------------- what is played


def _of_study(shipped: Shipped, name: str, folder: Path | None, files: Path) -> Original:
    """A part of a study; instances that are files are written into ``files``, queries of one's own are in ``folder``."""
    origin = shipped.made
    (part,) = (part for part in STUDIES[name].parts if part.name == shipped.part)
    label = f"{name}: {shipped.part}, {shipped.setting}"
    figures = _first_tenth(shipped.table.drop(part.facts, strict=False), origin["horizon"])
    if of_files(origin["instances"]):
        try:
            queries = tuple(_query(name, folder) for name in origin["queries"])
        except ValueError as error:
            return Original(label, figures, None, f"{error}; --instances names a folder", shipped)
        sources = tuple(Plan(part, queries, origin["horizon"], 1).instances(files / shipped.setting))
    else:
        sources = tuple(origin["instances"])
    steps = tuple(figures["step"].unique().sort())
    games = tuple(Game(*names) for names in product(origin["envs"], sources, origin["agents"]))
    replay = Replay(games, origin["horizon"], steps, origin["seed"], part.metrics)
    return Original(label, figures, replay, shipped=shipped, sources=sources)


def _query(name: str, folder: Path | None) -> str:
    """A query of that name, of the package or in a folder.

    Raises:
        ValueError: there is none.
    """
    if folder is not None and (folder / f"{name}.json").exists():
        return str(folder / f"{name}.json")
    if name.partition(":")[0] not in list_instances():
        raise ValueError(f"the instance {name} is not there")
    return name


def _of_line(shipped: Shipped) -> Original:
    """A block of tasks: the first run of the line in the first that it has played, at the steps that ship as they are."""
    played = set(shipped.table["env"])
    task = next(task for task in blocks(CURRENT.by_name.values())[shipped.part] if task.name in played)
    task = task._replace(horizon=shipped.made["horizon"])
    [agent], steps = shipped.made["agents"], tuple(CURRENT.stages(task))
    rows = shipped.table.filter(col("env") == task.name, col("run") == 0, col("step").is_in(steps))
    metrics = () if task.measure == "regret" else (task.measure,)
    figures = rows.select(*KEYS, "regret", *metrics).with_columns(polars.lit(agent).alias("agent"))
    replay = Replay((Game(task.name, task.instance, agent),), task.horizon, steps, shipped.made["seed"], metrics)
    return Original(f"{SCORECARD}{agent}: {shipped.part}", figures, replay, shipped=shipped)


def _of_sweep(folder: Path) -> Iterator[Original]:
    """The parts of a folder that ``clickgym run`` wrote."""
    table, _, config = read_results(folder)
    for part in config.get("parts", [config]):
        of_part = [col(key).is_in(part[f"{key}s"]) for key in ("env", "instance", "agent")]
        figures = _first_tenth(table.filter(*of_part), part["horizon"])
        rows = figures.select("env", "instance", "agent").unique(maintain_order=True).iter_rows()
        steps = tuple(figures["step"].unique().sort())
        games = tuple(Game(*row) for row in rows)
        try:
            for game in games:
                make_env(game.env, None if "instance=" in game.env else game.instance)
        except (ValueError, FileNotFoundError) as error:
            yield Original(folder.name, figures, None, str(error))
            continue
        yield Original(folder.name, figures, Replay(games, part["horizon"], steps, part["seed"], tuple(part["metrics"])))


def _first_tenth(table: polars.DataFrame, horizon: int) -> polars.DataFrame:
    """The rows of the first run in the first tenth of the sessions."""
    return table.filter(col("run") == 0, col("step") <= horizon // 10)


# ----------------------------------------------------------------------------------------------------------------- playing


def play_again(replay: Replay, n_jobs: int = -1) -> polars.DataFrame:
    """The table of a replay, in the order of its games.

    Args:
        replay: what is played; compiled agents in threads, generic RL in processes.
        n_jobs: as in `sweep`.
    """
    frames: dict[Game, polars.DataFrame] = {}
    for prefer, learns in (("threads", False), ("processes", True)):
        games = [game for game in replay.games if _learns(game.agent) == learns]
        parallel = joblib.Parallel(n_jobs=n_jobs, prefer=prefer)
        frames |= zip(games, parallel(joblib.delayed(_play)(replay, game) for game in games), strict=True)
    return polars.concat(frames[game] for game in replay.games)


def _learns(agent: str) -> bool:
    return player_of(agent).kind is Learner


def _play(replay: Replay, game: Game) -> polars.DataFrame:
    task = CURRENT.by_name.get(game.env)
    player: AgentLike
    if task is None:
        env = make_env(game.env, None if "instance=" in game.env else game.instance)
        trial, player = Trial(game.env, place_of(env).instance, game.agent, 0), game.agent
    else:
        env, trial, player = task.make(), CURRENT.trial(task, 0), equipped(game.agent, task)
    env_seed, agent_seed = trial.seeds(replay.seed)
    agent = make_agent(player, env, horizon=replay.horizon, seed=agent_seed)
    if isinstance(agent, Learner):
        setattr(agent, "learn", partial(_learn, agent.learn, replay.horizon))  # noqa: B010 (for type checkers it is a method)
    result = run(agent, env, replay.steps[-1], seed=env_seed, checkpoints=replay.steps, metrics=replay.metrics)
    names = {"env": game.env, "instance": place_of(env).instance, "agent": game.agent}
    return result.to_frame().with_columns(polars.lit(portable(name)).alias(key) for key, name in names.items())


def _learn(learn: Any, horizon: int, envs: Any, sessions: int, *others: Any) -> None:
    """Let a learner plan for the full horizon, by which it explores, though it is stopped before."""
    learn(envs, horizon, *others)


def differences(figures: polars.DataFrame, table: polars.DataFrame) -> dict[Pair, int]:
    """Where a replay differs from what ships.

    Args:
        figures: what ships; rows without an instance are means over the instances.
        table: of the replay, in all instances.

    Returns:
        The first step at which any figure differs, for each pair of an environment and an agent that differs.

    Example:
        >>> rows = [("E", i, "A", 0, step, step / 3) for i in "xy" for step in (1, 2)]
        >>> table = polars.DataFrame(rows, [*KEYS, "regret"], orient="row")
        >>> figures = table.with_columns(col("regret").cast(polars.Float32))
        >>> differences(figures, table), differences(figures, table.with_columns(regret=col("regret") + (col("step") == 2)))
        ({}, {('E', 'A'): 2})
    """
    columns = [name for name in figures.columns if name in table.columns and name not in KEYS]
    means = table.group_by("env", "agent", "run", "step", maintain_order=True).agg(col(*columns).mean())
    both = polars.concat([means, table.select(*KEYS, *columns)], how="diagonal_relaxed")
    beside = figures.join(both, on=KEYS, how="left", nulls_equal=True, suffix=" again")
    # Columns that only the ends of instances have are null here.
    equal = [col(name).is_null() | col(name).eq_missing(col(f"{name} again").cast(figures.schema[name])) for name in columns]
    rows = beside.filter(~polars.all_horizontal(equal)).group_by("env", "agent", maintain_order=True).agg(col("step").min())
    return {(env, agent): step for env, agent, step in rows.iter_rows()}


# --------------------------------------------------------------------------------------------------------------- resealing


def renewed(original: Original, different: Mapping[Pair, int]) -> Shipped:
    """A result with the digests of this version for all that came out equal.

    Digests of an agent or of an environment are renewed if all its pairs are equal, those of the parameters of users if also
    all instances were played.
    """
    assert original.shipped is not None
    origin = original.shipped.made
    now = _digests_now(original.shipped, original.sources)
    unequal = {name for pair in different for name in pair}
    digests = {key: origin[key] | {name: value for name, value in now[key].items() if name not in unequal} for key in now}
    return replace(original.shipped, made={**origin, **digests})


def _digests_now(shipped: Shipped, sources: Sequence[str]) -> dict[str, Any]:
    """What a result depends on in this version: of the scorecard, whose environments are tasks, by these."""
    origin = shipped.made
    if not origin["envs"]:
        return digests_of(origin["agents"][0], blocks(CURRENT.by_name.values())[shipped.part])
    now = fingerprints(origin["envs"], origin["agents"], sources or origin["instances"])
    return now if sources else now | {"models": {}}


def _of_changed(original: Original, replay: Replay) -> Original:
    """Without the games of agents whose kernels are as they were, unless something else has changed: users or tasks."""
    assert original.shipped is not None
    then, now = original.shipped.made, _digests_now(original.shipped, original.sources)
    agents = {name for name in then["agents"] if now["kernels"][name] != then["kernels"][name]}
    others = [
        now[key].get(name, digest) != digest for key in now for name, digest in then[key].items() if name not in then["agents"]
    ]
    if any(others):
        return original
    games = tuple(game for game in replay.games if game.agent in agents)
    figures = original.figures.filter(col("agent").is_in([portable(name) for name in agents]))
    return replace(original, figures=figures, replay=replace(replay, games=games))


@dataclass
class _Player:
    """Plays originals again, each replay once though several studies share it, and reports on each."""

    n_jobs: int
    plan: bool
    tables: dict[Replay, polars.DataFrame] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)

    def check(self, original: Original) -> dict[Pair, int] | None:
        """What `differences` returns; None if nothing was played."""
        replay = original.replay
        if replay is None:
            print(f"{original.name}: cannot be played: {original.lack}", flush=True)
            return None
        size = f"{len(replay.games)} runs of {replay.steps[-1]:,} sessions"
        if self.plan:
            self.tables[replay] = polars.DataFrame()
            print(f"{original.name}: {size}", flush=True)
            return None
        start = time.perf_counter()
        if replay not in self.tables:
            self.tables[replay] = play_again(replay, self.n_jobs)
        different = differences(original.figures, self.tables[replay])
        words = "; ".join(f"{agent} in {env} differs from session {step:,} on" for (env, agent), step in different.items())
        print(f"{original.name}: {size}, {time.perf_counter() - start:.1f} s: {words or 'equal'}", flush=True)
        if different:
            self.differing.append(original.name)
        return different

    def reseal(self, name: str, path: Path, only_stale: bool, folder: Path | None) -> None:
        """Check the parts of a file, and renew its digests."""
        results = read_shipped(path)
        with tempfile.TemporaryDirectory() as files:
            for place, shipped in enumerate(results):
                if only_stale and not stale([shipped]):
                    continue
                is_line = name.startswith(SCORECARD)
                original = _of_line(shipped) if is_line else _of_study(shipped, name, folder, Path(files))
                if only_stale and original.replay is not None:
                    original = _of_changed(original, original.replay)
                different = self.check(original)
                if different is not None:
                    results[place] = renewed(original, different)
        _write(path, results)


def reseal(
    names: Sequence[str] = (),
    root: Path = Path(),
    *,
    only_stale: bool = False,
    folder: Path | None = None,
    n_jobs: int = -1,
    plan: bool = False,
) -> list[str]:
    """Play shipped results again, report on each part, and renew the digests of what is equal.

    Args:
        names: of studies, of folders in ``docs/sweeps``, or of agents after ``scorecard-``; none takes all.
        root: of the checkout, where ``lab/results`` and ``docs/sweeps`` lie.
        only_stale: play only parts with a digest that is not that of this version, and of them, if only agents have changed,
            these; sweeps have none.
        folder: of instance files, named as their instances, for results on queries that do not ship.
        n_jobs: as in `sweep`.
        plan: play nothing, say what would be played.

    Returns:
        The names of the parts that differ, whose digests are left alone.

    Raises:
        ValueError: an unknown name.
    """
    player, start = _Player(n_jobs, plan), time.perf_counter()
    for name, path in _chosen(root, names).items():
        if path.suffix == ".parquet":
            player.reseal(name, path, only_stale, folder)
        elif not only_stale:
            for original in _of_sweep(path):
                player.check(original)
    sessions = sum(replay.sessions for replay in player.tables)
    words = "would be played" if plan else f"played in {time.perf_counter() - start:,.0f} s"
    print(f"{sessions:,} sessions {words}; {len(player.differing)} parts differ, whose digests are left alone", flush=True)
    return player.differing


def _chosen(root: Path, names: Sequence[str]) -> dict[str, Path]:
    """The files of studies and of the scorecard, and the folders of sweeps, by name: those that are named, or all."""
    results, sweeps = sorted((root / "lab" / "results").glob("*.parquet")), sorted((root / "docs" / "sweeps").iterdir())
    paths = {path.stem: path for path in results} | {path.name: path for path in sweeps}
    paths |= {f"{SCORECARD}{path.stem}": path for path in sorted(CURRENT.data.glob("*.parquet"))}
    for name in names:
        if name not in paths:
            raise ValueError(f"{name} is no shipped result; there is {', '.join(paths)}")
    return {name: paths[name] for name in names or paths}


def _write(path: Path, results: Sequence[Shipped]) -> None:
    """Write results whose digests have changed; the card beside those of the scorecard has their checksum."""
    if [each.made for each in results] == [each.made for each in read_shipped(path)]:
        return
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    write_shipped(path, results)
    print(f"{path}: digests renewed", flush=True)
    card = path.parent / "README.md"
    if card.exists():
        after = hashlib.sha256(path.read_bytes()).hexdigest()
        write_whole(card, card.read_text(encoding="utf-8").replace(before, after))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="studies, sweeps or scorecard-AGENT; all if none is named")
    parser.add_argument("--plan", action="store_true", help="say what would be played, and play nothing")
    parser.add_argument("--stale", action="store_true", help="play only results with a digest that has changed")
    parser.add_argument("--instances", type=Path, metavar="FOLDER", help="instance files of queries that do not ship")
    parser.add_argument("--jobs", type=int, default=-1, help="workers; -1 for one per processor")
    options = parser.parse_args(arguments)
    differing = reseal(
        options.names, only_stale=options.stale, folder=options.instances, n_jobs=options.jobs, plan=options.plan
    )
    return int(bool(differing))


if __name__ == "__main__":
    raise SystemExit(main())
