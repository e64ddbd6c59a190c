"""Reference results of the scorecard, which every agent is compared with: reading them, and making them.

python -m clickgym.lab.bench.reference results/reference
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars
from llvmlite import binding
from polars import col
from rich.console import Console

from ...agents import LEARNERS
from ...core.files import write_whole
from ...core.templates import templates
from ...runner.labels import PUBLISHED
from ...runner.progress import Progress
from ...runner.results import read_results
from ..shipped import Shipped, fingerprints, read_shipped, write_shipped
from .play import COLUMNS, blocks, columns_of, play, suited
from .score import ANCHORS, DATA, LISTED, interquartile_mean, scored
from .tasks import ANCHOR_SEED, QUICK_RUNS, RUNS, SEED, VERSION, Task, candidates, fingerprint

__all__ = ["RESULTS", "machine", "main", "processor", "reference"]

RESULTS = DATA / f"version{VERSION}.parquet"
CARD = DATA / "README.md"
TOO_DEAR = ("SAC", "TD3", "PairRank")
"""Generic RL and a fit to all pairs in every session: each would cost as much as all others together."""
PLAYERS = [name for name, agent in PUBLISHED.items() if name not in TOO_DEAR and not getattr(agent, "same_candidates", False)]
"""All other agents but those for the same candidates in every session, which no task has."""
COMMAND = "python -m clickgym.lab.bench.reference results/reference"


@cache
def reference() -> polars.DataFrame:
    """The scores of the agents of the package, as `scored` returns them.

    Example:
        >>> "TopRank" in reference()["agent"].to_list()
        True
    """
    return scored(_played(read_shipped(RESULTS)).sort("agent", maintain_order=True))


def _played(results: Iterable[Shipped]) -> polars.DataFrame:
    """The losses of results that ship."""
    frames = []
    for each in results:
        columns = columns_of(each.part.partition("-")[0])
        frames.append(each.table.with_columns(*columns, col("loss", "seconds").cast(polars.Float64)).select(COLUMNS))
    return polars.concat(frames)


def processor() -> str:
    """What compiled arithmetic depends on: the kind of processor."""
    return str(binding.get_host_cpu_name())


def machine() -> str:
    """The kind of processor, and the operating system, whose mathematical functions are called."""
    return f"{processor()} {platform.system()}"


# ------------------------------------------------------------------------------------------------------------------ making


def main(arguments: Sequence[str] | None = None) -> None:
    """Play the agents of the package whose results do not ship, as far as they were not played before, and write what ships.

    The anchors of a version are made once: where they are written already, they stay. So do the results of an agent; if its
    kernels have changed, a test says so, and `reseal` tells whether its losses have.
    """
    options = _options(arguments)
    console = Console(stderr=True)
    before = read_shipped(RESULTS) if RESULTS.exists() else []
    tables = [_play_all_tasks(console, name, options) for name in _due(options.agents or PLAYERS, before)]
    if options.agents:
        return
    table = polars.concat([_played(before), *tables] if before else tables)
    table = table.sort(col("agent").cast(polars.Enum(PLAYERS)), maintain_order=True)
    if not ANCHORS.exists():
        _write_anchors(console, table, options.out / "anchors", options.jobs)
    results = list(_shipped(table, options.out, {(each.setting, each.part): each.made for each in before}))
    write_shipped(RESULTS, results)
    write_whole(CARD, _card(table, results))


def _due(agents: Iterable[str], before: Iterable[Shipped]) -> list[str]:
    kept = {agent for each in before for agent in each.made["agents"]}
    return [name for name in agents if name not in kept]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the reference results of the scorecard.")
    parser.add_argument("out", type=Path, help="folder of the results; gone on with if begun")
    parser.add_argument("--agents", nargs="*", help="play only these, and write nothing that ships")
    parser.add_argument("--jobs", type=int, default=-1, help="workers; -1 for one per processor")
    return parser.parse_args(arguments)


def _play_all_tasks(console: Console, name: str, options: argparse.Namespace) -> polars.DataFrame:
    learner = name in LEARNERS  # whose sessions cost a thousand times those of a compiled agent
    tasks = suited(name, [task for task in candidates() if task.quick or not learner])
    return _play(console, name, tasks, QUICK_RUNS if learner else RUNS, options.out / name, SEED, options.jobs)


def _play(console: Console, name: str, tasks: Sequence[Task], runs: int, out: Path, seed: int, jobs: int) -> polars.DataFrame:
    with Progress(console, lines=False) as progress:
        table = play(name, name, tasks, runs, out, seed=seed, n_jobs=jobs, callback=progress)
    console.print(f"{name}: {len(tasks)} tasks, {table['seconds'].sum():,.0f} s of one processor", highlight=False)
    return table


def _write_anchors(console: Console, table: polars.DataFrame, out: Path, jobs: int) -> None:
    """Find the best agent of each task, and let it and `Random` play again, on seeds of their own."""
    compared = table.filter(
        (col("agent") != "Oracle")
        & (~col("agent").is_in(LISTED) | (col("ability") == "safety"))
        & ~col("agent").is_in(LEARNERS)
    )
    means = compared.group_by("task", "agent", maintain_order=True).agg(
        col("loss").map_batches(lambda losses: float(interquartile_mean(losses.to_numpy())), returns_scalar=True)
    )
    best = dict(means.sort("loss", maintain_order=True).unique("task", keep="first").select("task", "agent").iter_rows())
    losses = {}
    for agent in ["Random", *dict.fromkeys(best.values())]:
        tasks = [task for task in candidates() if agent in ("Random", best[task.name])]
        played = _play(console, agent, tasks, RUNS, out / agent, ANCHOR_SEED, jobs)
        for (task,), rows in played.group_by(["task"]):
            losses[task, agent] = float(interquartile_mean(rows["loss"].to_numpy()))
    anchors = {
        task.name: [float(f"{losses[task.name, agent]:.6g}") for agent in ("Random", best[task.name])] + [best[task.name]]
        for task in candidates()
    }
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(anchor)}" for name, anchor in anchors.items())
    write_whole(ANCHORS, f"{{\n{lines}\n}}\n")


def _shipped(table: polars.DataFrame, out: Path, before: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterable[Shipped]:
    """The table by blocks of tasks, with what made each, or had made it before; generic RL, which plays fewer, apart."""
    learns = col("agent").is_in(LEARNERS)
    for setting, rows in (("agents", table.filter(~learns)), ("generic RL", table.filter(learns))):
        for part, block in blocks(candidates()).items():
            own = rows.filter(col("task").is_in([task.name for task in block]))
            if own.is_empty():
                continue
            agents = own["agent"].unique(maintain_order=True).to_list()
            envs, instances = ([*dict.fromkeys(own[name])] for name in ("env", "instance"))
            config = before.get((setting, part)) or read_results(out / agents[0] / part)[2]
            origin = {"command": COMMAND, "made": config["made"], "clickgym": version("clickgym")}
            processors = sorted({processor(), *config.get("processors", ())})  # a kept agent's, and those of now
            origin |= {"versions": config["versions"], "processors": processors, "seed": SEED, "horizon": block[0].horizon}
            origin |= {"runs": own["run"].n_unique(), "queries": instances}
            origin |= {"envs": envs, "instances": instances, "agents": agents, **fingerprints(envs, agents, instances)}
            columns = [
                "env",
                "instance",
                "agent",
                "run",
                col("horizon").alias("step"),
                col("loss", "seconds").cast(polars.Float32),
            ]
            yield Shipped(setting, part, own.select(columns), origin)


def _card(table: polars.DataFrame, results: Sequence[Shipped]) -> str:
    """What stands beside the data: what it is, how it was made, and under which terms it may be used."""
    page = templates(Path(__file__).parent).get_template("reference.md")
    text = page.render(
        table=table,
        made=results[0].made,
        command=COMMAND,
        results=RESULTS.name,
        anchors=ANCHORS.name,
        sums={file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (ANCHORS, RESULTS)},
        runs=RUNS,
        quick_runs=QUICK_RUNS,
        seed=SEED,
        anchor_seed=ANCHOR_SEED,
        protocol=VERSION,
        fingerprint=fingerprint(),
        processors=sorted({kind for each in results for kind in each.made["processors"]}),
    )
    return text + "\n"


if __name__ == "__main__":
    main()
