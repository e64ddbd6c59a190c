"""Play the agents of the board *unseen queries*, and write what ships.

nice -n 19 python benchmarks/shipped/play_unseen_board.py OUT [--agents NAME ...]

The folder OUT keeps finished runs, so a stopped program goes on. With one processor it takes about
ten minutes.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from hand import Greedy, Sampling, play_told

from clickgym.bench.results import write_results
from clickgym.bench.unseen import DATA, file_of, play
from clickgym.core.files import make_folder

AGENTS = {
    "told": None,
    "hand, greedy": Greedy,
    "hand, sampling": Sampling,
    "MixTS": "MixTS",
    "BCMPTS": "BCMPTS",
    "CascadeKLUCB": "CascadeKLUCB",
    "Random": "Random",
}
"""The agents of every board by their names on it; `play_told` plays the first."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder of the runs")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    make_folder(DATA)
    for name in options.agents:
        agent = AGENTS[name]
        folder = options.out / name.replace(", ", "-")
        table = play_told() if agent is None else play(agent, folder, options.jobs)
        made = {"agent": name, "clickgym": version("clickgym"), "commit": commit}
        write_results(file_of(DATA, name), table, made)
        print(name, flush=True)


if __name__ == "__main__":
    main()
