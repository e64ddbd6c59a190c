"""Repeat a sample of the runs behind the shipped scorecard, and check that all digits agree.

python tools/replay.py [AGENT ...] [--record]

For each agent, by default for all, the program repeats the first run of three tasks, and the first
run of their anchors. It skips agents that use a network, because their digits change with the build
of torch. If an agent is your own class, its module must be in the working folder.

With ``--record``, the program writes to ``data/replayed.json`` with which version of clickgym the
sample of each agent was last found equal. ``make pages`` puts these versions on the board.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from play_scorecard import NETWORKS

from clickgym.bench.board import DATA, line_file
from clickgym.bench.play_tasks import ANCHOR_SEED, play_tasks
from clickgym.bench.result_files import read_results
from clickgym.bench.tasks import all_tasks
from clickgym.core.files import write_whole

REPLAYED = Path(__file__).parent / "data" / "replayed.json"
"""A file that maps each agent to the version of clickgym that last gave its shipped results again.
"""


def replay(path: Path, n_tasks: int = 3) -> list[str]:
    """Repeat a sample of an agent's runs and of its anchor runs, and return all differences.

    Args:
        path: the file with the agent's shipped results.
        n_tasks: the number of tasks in the sample; the agent's name decides which tasks.
    """
    agent = unquote(path.stem)
    table, _ = read_results(path)
    tasks = [task for task in all_tasks() if task.name in set(table["task"])]
    rng = np.random.default_rng([0, *agent.encode()])
    indices = rng.choice(len(tasks), min(n_tasks, len(tasks)), replace=False)
    sample, lines = [tasks[i] for i in sorted(indices)], []
    anchors = line_file(path.parent / "anchor_runs", agent)
    for file, run_seed in ((path, 0), (anchors, ANCHOR_SEED)):
        if not file.exists():
            continue
        shipped, _ = read_results(file)
        with tempfile.TemporaryDirectory() as out:
            replayed = play_tasks(agent, sample, 1, Path(out), seed=run_seed, n_jobs=1)
        both = replayed.join(shipped, on=["task", "run"], suffix="_shipped")
        for task, loss, shipped_loss in both.select("task", "loss", "loss_shipped").iter_rows():
            if loss != shipped_loss:
                lines.append(f"{task} ({file.parent.name}): {shipped_loss:g} then {loss:g}")
    return lines


def replayed_with() -> dict[str, str]:
    """Return the version of clickgym that last gave the results of each agent again."""
    versions: dict[str, str] = json.loads(REPLAYED.read_text(encoding="utf-8"))
    return versions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return 1 if any result differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("agents", nargs="*", help="by default, all agents")
    parser.add_argument("--record", action="store_true", help=f"write {REPLAYED.name}")
    options = parser.parse_args(arguments)
    versions = replayed_with()
    names = options.agents or [unquote(path.stem) for path in sorted(DATA.glob("*.parquet"))]
    n_different = 0
    for name in names:
        if name == "anchors" or name.partition(":")[0] in NETWORKS:
            continue
        start = time.perf_counter()
        different = replay(line_file(DATA, name))
        n_different += len(different)
        if options.record and not different:
            versions[name] = version("clickgym")
            write_whole(REPLAYED, f"{json.dumps(versions, indent=2, sort_keys=True)}\n")
        words = "; ".join(different) or "equal"
        print(f"{name} ({time.perf_counter() - start:.0f} s): {words}", flush=True)
    return int(n_different > 0)


if __name__ == "__main__":
    sys.path.append("")  # the working folder
    sys.exit(main())
