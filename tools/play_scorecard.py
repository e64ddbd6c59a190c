"""Play the published agents and the anchors of the scorecard, and write the shipped results.

nice -n 19 python tools/play_scorecard.py OUT [--agents NAME ...] [--jobs 2] [--anchors]

Each agent plays five runs of every task that it can play; learners play only three runs, of two
tasks for each ability. The board shows times, so use an idle machine and ``--jobs 1``. When an
agent has played all its tasks, the program writes its results to the package. It skips agents that
already have results, unless you name them.

With ``--anchors``, the program also makes the anchors, which come from two runs of every published
agent with a separate seed. Do this only for a new major version, because it changes all scores.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

import polars

from clickgym.agents import AGENTS, CompiledAgent, Learner
from clickgym.bench.board import DATA, OURS, line_file, requirements_text, save_line, scored_tasks
from clickgym.bench.play_tasks import ANCHOR_SEED, play_tasks, playable_tasks
from clickgym.bench.result_files import read_results, write_results
from clickgym.bench.score import Anchor
from clickgym.bench.tasks import ScoredTask, all_tasks, quick_tasks
from clickgym.core.files import make_folder

RUNS, ANCHOR_RUNS, LEARNER_RUNS = 5, 2, 3
OF_ANCHORS = Path(__file__).parent / "data" / "anchor_runs"
LEARNERS = [name for name, agent in AGENTS.items() if issubclass(agent, Learner)]
NETWORKS = [name for name, agent in AGENTS.items() if not issubclass(agent, CompiledAgent)]
"""Agents that use torch. They have no anchors, because they are slow, and because their results
change with the build of torch.
"""
GIVEN_A_LIST = ("Oracle", "Fixed")
"""Agents that do not play: Oracle is given the best list, and Fixed the production list, which few
tasks have.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder for the runs")
    parser.add_argument("--agents", nargs="+", help="by default, all bandits without results")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--anchors", action="store_true", help="also play and write the anchors")
    options = parser.parse_args(arguments)
    bandits = [name for name in AGENTS if name not in (*NETWORKS, *GIVEN_A_LIST, *OURS)]
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    provenance = {"clickgym": version("clickgym"), "commit": commit}
    make_folder(OF_ANCHORS)
    missing = [name for name in bandits if not line_file(DATA, name).exists()]
    for name in options.agents or missing:
        learner = name in LEARNERS
        tasks = playable_tasks(name, learner_tasks() if learner else all_tasks())
        out = options.out / name
        if options.anchors and name in bandits:
            folder = out / "anchors"
            table = play_tasks(
                name, tasks, ANCHOR_RUNS, folder, seed=ANCHOR_SEED, n_jobs=options.jobs
            )
            write_results(line_file(OF_ANCHORS, name), table, provenance)
        runs = LEARNER_RUNS if learner else RUNS
        table = play_tasks(name, tasks, runs, out / "board", n_jobs=options.jobs)
        line_provenance = {"command": f"clickgym bench {name}", **provenance}
        save_line(DATA, name, requirements_text(name), table, line_provenance)
        print(name, len(tasks), "tasks", flush=True)
    if options.anchors and all(line_file(DATA, name).exists() for name in bandits):
        write_results(DATA / "anchors.parquet", anchor_table(bandits), provenance)


def learner_tasks() -> list[ScoredTask]:
    """Return the tasks for learners, which are slow: for each ability, the task of ``--quick`` and,
    if any task of the ability has a score, the last such task.
    """
    last = {task.ability: task for task in scored_tasks()}
    names = {
        task.name for quick in quick_tasks() for task in (quick, last.get(quick.ability, quick))
    }
    return [task for task in all_tasks() if task.name in names]


def anchor_table(bandits: Sequence[str]) -> polars.DataFrame:
    """Return the anchors of all tasks, from the anchor runs that these agents already have."""
    losses: dict[str, dict[str, float]] = defaultdict(dict)
    for path in [line_file(OF_ANCHORS, name) for name in bandits]:
        if not path.exists():
            continue
        table, _ = read_results(path)
        for task, loss in table.group_by("task").agg(polars.col("loss").mean()).iter_rows():
            losses[task][unquote(path.stem)] = loss
    rows = [(task, *anchor) for task, anchor in sorted(anchors_of(losses).items())]
    return polars.DataFrame(rows, ["task", "random", "best", "agent"], orient="row")


def anchors_of(losses: Mapping[str, Mapping[str, float]]) -> dict[str, Anchor]:
    """Return the anchors of each task, computed from the mean losses of all agents. If several
    agents lose least, the first of them in alphabetical order is named.

    Args:
        losses: for each task, the mean loss of each agent. The agents must include ``Random``.
    """
    anchors = {}
    for task, by_agent in losses.items():
        agent = min(sorted(by_agent), key=lambda name: by_agent[name])
        anchors[task] = Anchor(by_agent["Random"], by_agent[agent], agent)
    return anchors


if __name__ == "__main__":
    main()
