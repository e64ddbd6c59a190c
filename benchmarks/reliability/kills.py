"""Kill a process that serves, and take its power, at random moments; what it has acknowledged must be in the store.

    python benchmarks/reliability/kills.py --times 200

A store is served by one process after another, each killed (SIGKILL) in mid-call. After each the store is opened: all that
was acknowledged must be there, clicks once, and each agent must be, bit for bit, what a replay of all events makes of it.
Loss of power is simulated for stores with ``durable="power"``: the process is stopped, its files are copied as they are, and
what a disk may have written of the next commit comes behind. POSIX only.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import typer
from service_kills import faults, kill, stop_and_copy

EACH = 50
"""Kills of processes on one store; then another one begins."""


def main(times: int = 200, power: int = 20, seed: int = 0) -> None:
    """Kill a process so many times, and take its power; the seed is that of the moments and the users."""
    rng, begin, n_faults, acknowledged = random.Random(seed), time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        said: list[list[str]] = []
        for time_of in range(times):
            if time_of % EACH == 0:
                store, said = Path(folder, f"served-{time_of}.db"), []
            lately = kill(store, rng.randrange(2**32), rng.uniform(0.0, 0.5))
            acknowledged += sum(kind != "c" for kind, *_ in lately)
            said += lately
            for fault in faults(store, said):
                n_faults += 1
                print(f"after kill {time_of + 1}: {fault}", flush=True)
        print(f"{times} kills, {acknowledged:,} calls acknowledged, {n_faults} faults")
        for time_of in range(power):
            store, copy = (Path(folder, f"{name}-{time_of}.db") for name in ("power", "copy"))
            found = faults(copy, stop_and_copy(store, copy, rng.randrange(2**32), rng.uniform(0.2, 1.0)))
            n_faults += len(found)
            print(*(f"after loss of power {time_of + 1}: {fault}" for fault in found), sep="\n", end="\n" * bool(found))
    print(f"{power} losses of power; {n_faults} faults in all, {time.monotonic() - begin:.0f} s")
    raise SystemExit(n_faults > 0)


if __name__ == "__main__":
    typer.run(main)
