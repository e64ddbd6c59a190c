"""What a sandbox of the judge costs: seconds of processor for an empty one, and for a run at full speed with and without.

Run as ``python benchmarks/sandbox.py``; it needs bubblewrap. The time is that of the whole machine, so nothing else
should run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from clickgym_lab.bench import judge, seats
from clickgym_lab.bench.play import play_run
from clickgym_lab.bench.protocol import CURRENT

RUNS = 20
NAMES = ("standard-01", "standard-05", "standard-10", "late-01", "churn-01")
AGENT = "from clickgym.agents import CascadeKLUCB\n\n\nclass Mine(CascadeKLUCB):\n    pass\n"


def busy() -> float:
    """Seconds of all processors since the machine was started, without those in which they idled."""
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system) / 100


def main() -> None:
    """Print a line for an empty sandbox and for each task."""
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory() as folder:
        Path(folder, "agent.py").write_text(AGENT)
        sandbox = judge._sandbox(Path(folder), Path(temporary), confined=True)
        maker = seats.sit_down("agent:Mine", sandbox)
        tasks = [CURRENT.by_name[name] for name in NAMES]
        judge._suitable(Path(folder), maker, tasks)
        start = busy()
        for _ in range(RUNS):
            seats.sit_down("agent:Mine", sandbox)
        print(f"an empty sandbox: {(busy() - start) / RUNS:.3f} s")
        for task in tasks:
            play_run("CascadeKLUCB", task, 0, 0, [task.horizon])
            start = busy()
            for run in range(RUNS):
                seats.play_in_seat(maker, task, run, run, [task.horizon])
            within, start = busy() - start, busy()
            for run in range(RUNS):
                play_run("CascadeKLUCB", task, run, run, [task.horizon])
            print(f"{task.name}: {within / RUNS:.3f} s in a sandbox, {(busy() - start) / RUNS:.3f} s without")


if __name__ == "__main__":
    main()
