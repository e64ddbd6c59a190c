"""A click log as UBI beside a tidy table of as many rows: time and memory to read it.

    python benchmarks/ubi.py --sessions 300000

Each is written and read in a process of its own; time is of the processors, and memory the peak of the process with its
imports.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer
from report import printed, publish, table

WRITE = """
import sys
import numpy as np
from clickgym.offline import ClickLog, write_tidy, write_ubi
folder, n = sys.argv[1], int(sys.argv[2])
def log_of(n):
    rng = np.random.default_rng(0)
    queries = rng.integers(1000, size=n)
    items = queries[:, None] * 20 + rng.random((n, 20)).argsort(axis=1)[:, :10]
    labels = tuple(f"sku-{item}" for item in range(20_000)), tuple(f"query {query}" for query in range(1000))
    return ClickLog(items, rng.random(items.shape) < 0.1, queries, *labels, times=np.arange(n) + 1.7e9)
log = log_of(n)
write_ubi(log, folder + "/ubi")
n_records = n + log.items.size + int(log.clicks.sum())
write_tidy(log_of(n_records // 10), folder + "/log.csv")
print(n_records)
"""
READ = """
import resource, sys, time
from clickgym.offline import read_log
start = time.process_time()
read_log(sys.argv[1])
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def main(sessions: int = 300_000, write: bool = False) -> None:
    """Write and read a log of so many sessions; with --write into README.md."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        n_rows = int(_run(WRITE, name, sessions)[0])
        for path in (Path(name, "log.csv"), Path(name, "ubi")):
            seconds, memory = _run(READ, path)  # of a small parent: a process begins with the peak of that
            size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path])) / 1e6
            each = f"{1e6 * seconds / n_rows:.2f} µs"
            rows.append([path.name, f"{size:,.0f} MB", f"{n_rows:,}", f"{seconds:.1f} s", each, f"{memory:.2f} GB"])
    publish(table(["log", "size", "rows or records", "time", "each", "memory"], rows))


def _run(program: str, *arguments: object) -> list[float]:
    """What a program prints."""
    return [float(word) for word in printed(program, *arguments).split()]


if __name__ == "__main__":
    typer.run(main)
