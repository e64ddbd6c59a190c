"""Make the reference results of the scorecard: every agent as published and tuned, and the anchors.

python benchmarks/shipped/scorecard.py results/reference [--agents NAME ...] [--abilities NAME ...] [--jobs N]

The folder keeps what is played, to go on with: the same command plays only what is missing. An ability has anchors when all
lines have played it. For a cluster, call `make` within
``joblib.parallel_config(backend="dask")``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars
from polars import col
from rich.console import Console

from clickgym.agents import Learner
from clickgym.core.files import make_folder, read_json, write_whole
from clickgym.core.templates import templates
from clickgym.runner import PUBLISHED, AgentLike, Progress, player_of
from clickgym.runner.results import read_results
from clickgym_lab.bench import reference
from clickgym_lab.bench.leaderboard import sources_of
from clickgym_lab.bench.lines import compact, may_be_anchors, origin_of
from clickgym_lab.bench.play import blocks, n_sessions, play, suited
from clickgym_lab.bench.protocol import ADDED, ANCHORS, BESIDE, BY_FEATURES, CURRENT, DEVELOPMENT, Protocol
from clickgym_lab.bench.reference import Line, agent_of, curves_of, line_name, lines
from clickgym_lab.bench.task import Task
from clickgym_lab.bench.tuned import BUDGET, development_tasks, tune_line
from clickgym_lab.shipped import Shipped, fingerprints, read_shipped, write_shipped

TOO_DEAR = ("SAC", "TD3", "PairRank", "OLRankNet", "OLLambdaRank")
"""Two of generic RL, a fit to all pairs in every session and two of its rankers: each would cost as much as all others."""
NEURAL = ("NeuralLinearTS", "NeuralGreedy")
"""They play as published, for tuning them would cost as much as all else."""
PLAYERS = [name for name in PUBLISHED if name not in TOO_DEAR]
BY_RANKINGS = ("PPO", "A2C")
"""Generic RL that plays all tasks of the board *features* with ``actions=rankings``, in a line of its own."""
GUARDED = ("MixTS",)
"""Agents that have no tuned line, but one that is safe."""
FAST = 2e-6
"""Seconds of a session in ``standard``, below which a line plays a million."""
COMMAND = "python benchmarks/shipped/scorecard.py results/reference"


@dataclass(frozen=True)
class _Maker:
    """What all steps share."""

    protocol: Protocol
    development: Protocol
    out: Path
    jobs: int
    budget: int
    console: Console


def main(arguments: Sequence[str] | None = None) -> None:
    """Play all lines whose results do not ship, and write the files that ship."""
    parser = argparse.ArgumentParser(description="Make the reference results of the scorecard.")
    parser.add_argument("out", type=Path, help="folder of the runs; resumed if it exists")
    parser.add_argument("--agents", nargs="*", help="play only these, and make no anchors")
    parser.add_argument("--abilities", nargs="*", help="play only these, one after the other")
    parser.add_argument("--jobs", type=int, default=-1, help="workers; -1 for one per processor")
    options = parser.parse_args(arguments)
    make_them = partial(make, CURRENT, DEVELOPMENT, options.out, agents=options.agents, jobs=options.jobs)
    for abilities in [[ability] for ability in options.abilities] if options.abilities else [None]:
        make_them(abilities=abilities, anchors=options.agents is None)


def make(
    protocol: Protocol,
    development: Protocol,
    out: Path,
    *,
    agents: Sequence[str] | None = None,
    abilities: Sequence[str] | None = None,
    jobs: int = -1,
    budget: int = BUDGET,
    anchors: bool = True,
) -> None:
    """Play what is not in the folder of the protocol, and write it: agents, tasks that were added, then anchors.

    Args:
        protocol: the version, whose folder gets a file for each agent, ``anchors.json`` and ``README.md``.
        development: the tasks on which agents are tuned.
        out: the folder of what is played.
        agents: names; None takes all.
        abilities: of lines whose results ship; None takes all.
        jobs: workers, as in `sweep`.
        budget: sessions of each tuning.
        anchors: make them, if there are none, and the data card.
    """
    maker = _Maker(protocol, development, out, jobs, budget, Console(stderr=True))
    make_folder(protocol.data)
    names = PLAYERS if agents is None else agents
    for name in names:
        _make_agent(maker, name, abilities)
    if anchors:
        unplayed = _unplayed(protocol, names)
        played = [task for task in protocol.candidates if task.ability not in unplayed]
        for tasks, file in ((played, protocol.data / ANCHORS), (protocol.added, protocol.data / ADDED)):
            known = read_json(file) if file.exists() else {}
            if wanted := [task for task in tasks if task.name not in known]:
                _write_anchors(maker, wanted, file, known)
        _write_card(protocol)


# -------------------------------------------------------------------------------------------------------------------- lines


def _make_agent(maker: _Maker, name: str, abilities: Sequence[str] | None) -> None:
    """Play what the lines of an agent have not yet played, and write its file."""
    file = maker.protocol.data / f"{agent_of(name)}.parquet"
    before = read_shipped(file) if file.exists() else []
    wanted = _missing(maker.protocol, name, before, abilities) if before else _of_new(maker, name, abilities)
    results = [each for setting, line, tasks in wanted for each in _play_line(maker, setting, line, tasks)]
    if results:
        write_shipped(file, [*before, *results])


def _of_new(maker: _Maker, name: str, abilities: Sequence[str] | None) -> Iterator[tuple[str, Line, list[Task]]]:
    """The lines of an agent of which nothing ships, and the tasks that each is to play."""
    made = [(reference.PUBLISHED_LINE, Line(name, name, {}))]
    if name not in NEURAL and (tuned := _tuned(maker, name)) is not None:
        made.append((reference.TUNED_LINE, tuned))
    if name in GUARDED:
        safe = Line(line_name(name, reference.SAFE_LINE), f"{name}:safe=true", {"settings": "safe"})
        made.append((reference.SAFE_LINE, safe))
    for setting, line in made:
        yield setting, line, _due(maker.protocol, line, abilities)


def _missing(
    protocol: Protocol, name: str, before: Sequence[Shipped], abilities: Sequence[str] | None = None
) -> Iterator[tuple[str, Line, list[Task]]]:
    """The tasks that each line of an agent can play, and that are not among its results."""
    there = {(each.setting, each.part) for each in before}
    made = {each.setting: Line(each.table["agent"][0], each.made["agents"][0], each.made["tuning"]) for each in before}
    if (agent := agent_of(name)) in BY_RANKINGS:
        spec = f"{agent}:actions={reference.RANKINGS_LINE}"
        made[reference.RANKINGS_LINE] = Line(spec, spec, {})
    for setting, line in made.items():
        standard = [each for each in before if (each.setting, each.part) == (setting, "standard")]
        wanted = _due(protocol, line, abilities, standard)
        absent = [task for part, block in blocks(wanted).items() if (setting, part) not in there for task in block]
        if tasks := suited(line.agent, absent):
            yield setting, line, tasks


def _due(protocol: Protocol, line: Line, abilities: Sequence[str] | None, standard: Sequence[Shipped] = ()) -> list[Task]:
    """The tasks that a line is to play, if it can: of generic RL those of ``--quick``, or by rankings those with features; a
    million sessions if it is fast."""
    agent = agent_of(line.agent)
    fast = agent in GUARDED or any(_seconds_per_session(each) < FAST for each in standard)
    by_rankings = line.agent.endswith(f"actions={reference.RANKINGS_LINE}")
    tasks = [task for task in protocol.by_name.values() if task.quick or by_rankings or not line.learns]
    tasks = [task for task in tasks if task.ability in BY_FEATURES or not by_rankings]
    tasks = [task for task in tasks if fast or task.ability not in BESIDE]
    return [task for task in tasks if abilities is None or task.ability in abilities]


def _seconds_per_session(result: Shipped) -> float:
    seconds = result.table["seconds"].drop_nulls().cast(polars.Float64)
    return float(np.mean(seconds.to_numpy())) / int(result.made["horizon"])


def _unplayed(protocol: Protocol, names: Iterable[str]) -> set[str]:
    """The abilities that some line of these agents, but of generic RL, has still to play."""
    found: set[str] = set()
    for name in names:
        file = protocol.data / f"{agent_of(name)}.parquet"
        if file.exists():
            missing = _missing(protocol, name, read_shipped(file), [each for each in protocol.abilities if each not in found])
            found |= {task.ability for _, line, tasks in missing if not line.learns for task in tasks}
        elif player_of(name).kind is not Learner:
            found |= {task.ability for task in suited(name, protocol.candidates)}
    return found


def _tuned(maker: _Maker, name: str) -> Line | None:
    """The tuned line of an agent; None if it has nothing to tune, plays none of the tasks on which agents are tuned, or its
    defaults win. Generic RL has its own settings."""
    player = player_of(name)
    agent: Any = player.maker
    if player.kind is Learner:
        spec = f"{name}{',' if ':' in name else ':'}settings=tuned"
        return Line(line_name(name, reference.TUNED_LINE), spec, {"settings": "tuned"}) if agent.tuned else None
    tasks = {task.ability for task in suited(player, maker.development.candidates)}
    boards = maker.protocol.boards_of(sources_of(player), tasks)
    if not player.search_space or not boards or not suited(player, development_tasks(maker.development, boards[0])):
        return None
    with Progress(maker.console, lines=False) as progress:
        tune = partial(tune_line, budget=maker.budget, n_jobs=maker.jobs, callback=progress)
        line = tune(maker.development, boards[0], name, maker.out / "tuning" / name)
    tuning = line.tuning
    maker.console.print(f"{name}: {tuning.sessions:,} sessions of tuning: {line.agent}", highlight=False)
    about = {"score": tuning.score, "default_score": tuning.default_score, "trials": len(tuning.trials)}
    about["sessions"] = tuning.sessions
    return None if line.default_wins else Line(line_name(name, reference.TUNED_LINE), line.agent, about)


def _play_line(maker: _Maker, setting: str, line: Line, wanted: Sequence[Task]) -> Iterator[Shipped]:
    """The results of a line by blocks of those tasks that it can play, with what made each."""
    protocol = maker.protocol
    tasks = suited(line.agent, wanted)
    if not tasks:
        return
    runs = protocol.learners if line.learns else protocol.runs
    folder = maker.out / setting / line.agent.partition(":")[0]
    table = _play(maker, line.name, line.agent, tasks, runs, folder, protocol.seed)
    for part, block in blocks(tasks).items():
        rows = table.filter(col("task").is_in([task.name for task in block]))
        config = read_results(folder / part)[2]
        facts = {"command": COMMAND, "tuning": line.tuning, "made": config["made"], "versions": config["versions"]}
        origin = origin_of(protocol, line.agent, block, runs, **facts, **digests_of(line.agent, block))
        yield Shipped(setting, part, compact(rows, block), origin)


def _play(
    maker: _Maker, name: str, agent: AgentLike, tasks: Sequence[Task], runs: int, out: Path, seed: int
) -> polars.DataFrame:
    with Progress(maker.console, lines=False) as progress:
        progress.whole(name, n_sessions(tasks, runs))
        table = play(maker.protocol, name, agent, tasks, runs, out, seed=seed, n_jobs=maker.jobs, callback=progress)
    seconds = table.filter(col("step") == col("horizon"))["seconds"].sum()
    maker.console.print(f"{name}: {len(tasks)} tasks, {seconds:,.0f} s of one processor", highlight=False)
    return table


def digests_of(agent: str, block: Sequence[Task]) -> dict[str, Any]:
    """What the results of an agent in a block depend on: as `fingerprints` has it, without the parameters of the users.

    Args:
        agent: as it can be typed.
        block: the tasks.
    """
    first = {task.env: task for task in reversed(block)}
    digests = [fingerprints([env], [agent], [task.instance]) for env, task in first.items()]
    return {key: {name: value for each in digests for name, value in each[key].items()} for key in ("users", "kernels")}


# ------------------------------------------------------------------------------------------------------------------ anchors


def _write_anchors(maker: _Maker, wanted: Sequence[Task], file: Path, known: Mapping[str, Any]) -> None:
    """Find the best line of each task at each of its stages, and let it and `Random` play again, on seeds of their own."""
    protocol = maker.protocol
    best = _best(protocol, wanted)
    losses: dict[tuple[str, int, str], float] = {}
    for name in dict.fromkeys(["Random", *best.values()]):
        won = {task for (task, _), winner in best.items() if winner == name}
        tasks = [task for task in wanted if name == "Random" or task.name in won]
        folder = maker.out / "anchors" / name
        played = _play(maker, name, lines(protocol)[name].agent, tasks, protocol.runs, folder, protocol.anchor_seed)
        means = played.group_by("task", "step").agg(col("loss").mean())
        losses |= {(task, step, name): loss for task, step, loss in means.iter_rows()}
    rows = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in known.items()]
    for task in wanted:
        entry = {
            step: [float(f"{losses[task.name, step, name]:.6g}") for name in ("Random", best[task.name, step])]
            + [best[task.name, step]]
            for step in protocol.stages(task)
        }
        rows.append(f" {json.dumps(task.name)}: {json.dumps(entry)}")
    write_whole(file, "{\n" + ",\n".join(rows) + "\n}\n")


def _best(protocol: Protocol, tasks: Sequence[Task]) -> dict[tuple[str, int], str]:
    """The line with the lowest mean loss, by task and stage."""
    table = may_be_anchors(curves_of(protocol))
    stages = polars.DataFrame(
        [(task.name, step) for task in tasks for step in protocol.stages(task)], ["task", "step"], orient="row"
    )
    means = table.join(stages, on=["task", "step"]).group_by("task", "step", "agent").agg(col("loss").mean())
    best = means.sort("loss", "agent").unique(["task", "step"], keep="first", maintain_order=True)
    return {(task, step): name for task, step, name in best.select("task", "step", "agent").iter_rows()}


# --------------------------------------------------------------------------------------------------------------------- card


def _write_card(protocol: Protocol) -> None:
    """What stands beside the data: what it is, how it was made, and under which terms it may be used."""
    tables = sorted(protocol.data.glob("*.parquet"))
    files = [*(file for file in (protocol.data / ANCHORS, protocol.data / ADDED) if file.exists()), *tables]
    origins = [each.made for file in tables for each in read_shipped(file)]
    form = templates(Path(__file__).parent).get_template("scorecard.md")
    text = form.render(
        table=curves_of(protocol),
        made=min(origins, key=lambda made: str(made["made"])),
        last=max(str(made["made"]) for made in origins),
        command=COMMAND,
        sums={file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
        protocol=protocol,
        processors=sorted({kind for made in origins for kind in made["processors"]}),
    )
    write_whole(protocol.data / "README.md", text + "\n")


if __name__ == "__main__":
    main()
