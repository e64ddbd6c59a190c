"""The results that everybody is compared with: how they are read, and how they are made.

python -m clickgym.lab.bench.reference results/reference
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import polars
from llvmlite import binding
from polars import col
from rich.console import Console

from ...agents import LEARNERS
from ...core.files import write_whole
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
COSTLY = ("SAC", "TD3")
"""Generic RL that is left out, for it would cost as much as all else together."""
COMMAND = "python -m clickgym.lab.bench.reference results/reference"


@cache
def reference() -> polars.DataFrame:
    """The scores of the agents of the package, as `scored` returns them.

    Example:
        >>> "TopRank" in reference()["agent"].to_list()
        True
    """
    frames = []
    for each in read_shipped(RESULTS):
        told = columns_of(each.part.partition("-")[0])
        frames.append(each.table.with_columns(*told, col("loss", "seconds").cast(polars.Float64)).select(COLUMNS))
    return scored(polars.concat(frames).sort("agent", maintain_order=True))


def processor() -> str:
    """What compiled arithmetic depends on: the kind of processor."""
    return str(binding.get_host_cpu_name())


def machine() -> str:
    """The kind of processor, and the operating system, whose mathematical functions are called."""
    return f"{processor()} {platform.system()}"


# ------------------------------------------------------------------------------------------------------------------ making


def main(arguments: Sequence[str] | None = None) -> None:
    """Play all agents of the package, as far as they were not played before, and write what ships.

    The anchors of a version are made once: where they are written already, they stay.
    """
    parser = argparse.ArgumentParser(description="Make the reference results of the scorecard.")
    parser.add_argument("out", type=Path, help="folder of the results; gone on with if begun")
    parser.add_argument("--agents", nargs="*", help="play only these, and write nothing that ships")
    parser.add_argument("--jobs", type=int, default=-1, help="workers; -1 for one per processor")
    given = parser.parse_args(arguments)
    console = Console(stderr=True)
    tables = {}
    for name in given.agents or [name for name in PUBLISHED if name not in COSTLY]:
        learner = name in LEARNERS  # whose sessions cost a thousand times those of a compiled agent
        tasks = suited(name, [task for task in candidates() if task.quick or not learner])
        runs = QUICK_RUNS if learner else RUNS
        tables[name] = _play(console, name, tasks, runs, given.out / name, SEED, given.jobs)
    if given.agents:
        return
    table = polars.concat(tables.values())
    if not ANCHORS.exists():
        _write_anchors(console, table, given.out / "anchors", given.jobs)
    results = list(_shipped(table, given.out))
    write_shipped(RESULTS, results)
    write_whole(CARD, _card(table, results))


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
    found = {
        task.name: [float(f"{losses[task.name, agent]:.6g}") for agent in ("Random", best[task.name])] + [best[task.name]]
        for task in candidates()
    }
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(anchor)}" for name, anchor in found.items())
    write_whole(ANCHORS, f"{{\n{lines}\n}}\n")


def _shipped(table: polars.DataFrame, out: Path) -> Iterable[Shipped]:
    """The table by blocks of tasks, with what made each; generic RL, which plays fewer, apart."""
    learns = col("agent").is_in(LEARNERS)
    for setting, rows in (("agents", table.filter(~learns)), ("generic RL", table.filter(learns))):
        for part, block in blocks(candidates()).items():
            own = rows.filter(col("task").is_in([task.name for task in block]))
            if own.is_empty():
                continue
            agents = own["agent"].unique(maintain_order=True).to_list()
            envs, instances = ([*dict.fromkeys(own[name])] for name in ("env", "instance"))
            config = read_results(out / agents[0] / part)[2]
            made = {"command": COMMAND, "made": config["made"], "clickgym": version("clickgym"), "versions": config["versions"]}
            made |= {"seed": SEED, "horizon": block[0].horizon, "runs": own["run"].n_unique(), "queries": instances}
            made |= {"envs": envs, "instances": instances, "agents": agents, **fingerprints(envs, agents, instances)}
            columns = [
                "env",
                "instance",
                "agent",
                "run",
                col("horizon").alias("step"),
                col("loss", "seconds").cast(polars.Float32),
            ]
            yield Shipped(setting, part, own.select(columns), made)


def _card(table: polars.DataFrame, results: Sequence[Shipped]) -> str:
    """What stands beside the data: what it is, how it was made, and under which terms it may be used."""
    made = results[0].made
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (ANCHORS, RESULTS)}
    versions = ", ".join(f"{package} {number}" for package, number in made["versions"].items())
    files = (
        f"`{RESULTS.name}`: loss and processor time of each run; `{ANCHORS.name}`: loss of random lists and of the best agent"
    )
    rows = (
        f"{table.height:,}: {table['agent'].n_unique()} agents, {table['task'].n_unique()} tasks, {RUNS} runs "
        f"({QUICK_RUNS} of generic RL, which plays the tasks of `--quick`)"
    )
    return f"""# Reference results of the scorecard, version {VERSION}

What the agents of clickgym lost in the tasks of `clickgym bench`, and the anchors of their scores.

| | |
|---|---|
| files | {files} |
| rows | {rows} |
| protocol | version {VERSION}, fingerprint {fingerprint()} |
| command | `{COMMAND}` |
| seeds | {SEED}; of the anchors {ANCHOR_SEED} |
| made | {made["made"]}, by clickgym {made["clickgym"]}, {versions}, on one machine with a processor of the kind {processor()} |
| users | simulated; parameters of the shipped queries are estimates from public click logs (see `clickgym show yandex-9982`) |
| licence | that of clickgym, MIT; no data of persons |

SHA-256:

{chr(10).join(f"- `{name}` {digest}" for name, digest in sums.items())}

What changed since, if anything, `tests/lab/test_bench.py` names; the same command, in an empty folder, makes them anew.
Anchors are made once for a version of the protocol, and stay when the results are made again.
"""


if __name__ == "__main__":
    main()
