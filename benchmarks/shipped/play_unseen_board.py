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

from clickgym.core.files import make_folder
from clickgym_lab.bench.unseen import DATA, REQUIRED, file_of, play, play_told
from clickgym_lab.results import write_results


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder of the runs")
    parser.add_argument("--agents", nargs="+", choices=REQUIRED, default=list(REQUIRED))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    make_folder(DATA)
    for name in options.agents:
        agent = REQUIRED[name]
        folder = options.out / name.replace(", ", "-")
        table = play_told() if agent is None else play(agent, folder, options.jobs)
        made = {"agent": name, "clickgym": version("clickgym"), "commit": commit}
        write_results(file_of(DATA, name), table, made)
        print(name, flush=True)


if __name__ == "__main__":
    main()
