"""Play the anchors and the published agents of the scorecard, and write what ships.

nice -n 19 python benchmarks/shipped/play_scorecard.py OUT [--agents NAME ...] [--jobs 2]

Interrupted runs resume. The anchors are two runs of every published agent with a seed of their own.
Each agent has five runs of every task that it can play; learners have three of the quick tasks.
Nothing is written to the package before all that was asked for is complete.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import polars

from clickgym.agents import LEARNERS
from clickgym.core.files import make_folder
from clickgym.runner import PUBLISHED
from clickgym_lab.bench.board import DATA, requirements, save_line
from clickgym_lab.bench.play import ANCHOR_SEED, play, playable
from clickgym_lab.bench.score import anchors_of
from clickgym_lab.bench.tasks import all_tasks, quick_tasks
from clickgym_lab.results import write_results

RUNS, LEARNER_RUNS, ANCHOR_RUNS = 5, 3, 2
GIVEN_A_LIST = ("Oracle", "Fixed")
"""Their list is what is looked for, or the production list, which few tasks have."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder of the runs")
    parser.add_argument("--agents", nargs="+", help="default: all but the learners")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    bandits = [name for name in PUBLISHED if name not in (*LEARNERS, *GIVEN_A_LIST)]
    names = options.agents or bandits
    losses: dict[str, dict[str, float]] = defaultdict(dict)
    tables = {}
    for name in names:
        learner = name in LEARNERS
        tasks = playable(name, quick_tasks() if learner else all_tasks())
        runs = LEARNER_RUNS if learner else RUNS
        out = options.out / name
        tables[name] = play(name, tasks, runs, out / "board", n_jobs=options.jobs)
        print(name, len(tasks), "tasks", flush=True)
        if not learner:
            seed, folder = ANCHOR_SEED, out / "anchors"
            table = play(name, tasks, ANCHOR_RUNS, folder, seed=seed, n_jobs=options.jobs)
            for task, loss in table.group_by("task").agg(polars.col("loss").mean()).iter_rows():
                losses[task][name] = loss
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    made = {"clickgym": version("clickgym"), "commit": commit}
    make_folder(DATA)
    if set(names) >= set(bandits):
        rows = [(task, *anchor) for task, anchor in sorted(anchors_of(losses).items())]
        table = polars.DataFrame(rows, ["task", "random", "best", "agent"], orient="row")
        write_results(DATA / "anchors.parquet", table, made)
    for name, table in tables.items():
        save_line(
            DATA, name, requirements(name), table, {"command": f"clickgym bench {name}", **made}
        )


if __name__ == "__main__":
    main()
