"""A click log as UBI beside the same log as a tidy table: time and memory to read it.

    python benchmarks/ubi.py --sessions 300000

Each is read in a process of its own; time is of the processors, and memory the peak of the process with its imports.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from report import publish, table

from clickgym.offline import ClickLog, write_tidy, write_ubi

PROGRAM = """
import resource, sys, time
from clickgym.offline import read_log
start = time.process_time()
read_log(sys.argv[1])
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=300_000)
    arguments, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    n, rng = arguments.sessions, np.random.default_rng(0)
    queries = rng.integers(1000, size=n)
    items = queries[:, None] * 20 + rng.random((n, 20)).argsort(axis=1)[:, :10]
    labels = tuple(f"sku-{item}" for item in range(20_000)), tuple(f"query {query}" for query in range(1000))
    log = ClickLog(items, rng.random(items.shape) < 0.1, queries, *labels, times=np.arange(n) + 1.7e9)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write_tidy(log, Path(name, "log.csv"))
        write_ubi(log, Path(name, "ubi"))
        for path in (Path(name, "log.csv"), Path(name, "ubi")):
            done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=True, capture_output=True, text=True)
            seconds, memory = map(float, done.stdout.split())
            size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path])) / 1e6
            n_rows = 10 * n + (n + int(log.clicks.sum()) if path.is_dir() else 0)
            each = f"{1e6 * seconds / n_rows:.2f} µs"
            rows.append([path.name, f"{size:,.0f} MB", f"{n_rows:,}", f"{seconds:.1f} s", each, f"{memory:.2f} GB"])
    publish(table(["log", "size", "rows or records", "time", "each", "memory"], rows))


if __name__ == "__main__":
    main()
