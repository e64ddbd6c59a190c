"""A click log of 10⁷ sessions (1 GB) in the format of Yandex's Relevance Prediction Challenge, and what a fit to it needs.

    python benchmarks/large_log.py --folder logs --write

makes the log, and the same sessions as a tidy table, where the folder lacks them (without ``--folder`` in a temporary one).

The sessions are those of a position-based model: 20,000 queries by Zipf's law, each with 20 items of its own, ten of them on a
page in random order. The same seed makes the same file. Time is by the clock and of the processors, and memory the peak of the
process, all with imports; the steps are told by the command itself.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from report import publish, table

SESSIONS, QUERIES, ITEMS, POSITIONS, BLOCK = 10_000_000, 20_000, 20, 10, 200_000


def sessions(n: int, seed: int):  # type: ignore[no-untyped-def]
    """Blocks of queries, lists and clicks."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, QUERIES + 1)
    attraction = rng.beta(1, 2, QUERIES * ITEMS)
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        queries = rng.choice(QUERIES, size, p=popularity / popularity.sum())
        items = queries[:, None] * ITEMS + rng.random((size, ITEMS)).argsort(axis=1)[:, :POSITIONS]
        yield first, queries, items, rng.random(items.shape) < attraction[items] * 0.9 ** np.arange(POSITIONS)


def write_yandex(path: Path, n: int, seed: int) -> None:
    with path.open("wb") as file:
        for first, queries, items, clicks in sessions(n, seed):
            size = len(queries)
            row, position = np.nonzero(clicks)
            pages = pl.select(
                row=pl.int_range(size),
                at=pl.lit(-1, pl.Int64),
                line=pl.concat_str(
                    pl.int_range(first, first + size), pl.lit("\t0\tQ\t"), pl.Series(queries), pl.lit("\t0\t"),
                    pl.concat_str([pl.Series(column) for column in items.T], separator="\t"),
                ),
            )  # fmt: skip
            clicked = pl.select(
                row=pl.Series(row),
                at=pl.Series(position),
                line=pl.concat_str(
                    pl.Series(row + first), pl.lit("\t"), pl.Series(position + 1), pl.lit("\tC\t"),
                    pl.Series(items[row, position]),
                ),
            )  # fmt: skip
            lines = pl.concat([pages, clicked]).sort("row", "at")["line"]
            file.write("\n".join(lines.to_list()).encode() + b"\n")


def frames(n: int, seed: int) -> Iterator[pl.DataFrame]:
    """Blocks of the sessions as tidy tables."""
    for first, queries, items, clicks in sessions(n, seed):
        size = len(queries)
        columns = {
            "session": np.repeat(np.arange(first, first + size), POSITIONS),
            "query": np.repeat(queries, POSITIONS),
            "position": np.tile(np.arange(1, POSITIONS + 1), size),
            "item": items.ravel(),
            "clicked": clicks.ravel().astype(np.int8),
        }
        yield pl.DataFrame(columns)


def write_tidy(path: Path, n: int, seed: int) -> None:
    with path.open("wb") as file:
        for number, frame in enumerate(frames(n, seed)):
            frame.write_csv(file, include_header=number == 0)


def measured(log: Path, models: list[str]) -> tuple[list[str], str]:
    """A row of the table, and what the command said of its steps."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["fit", str(log), "--model", *models, "--out", str(Path(folder, "query.json"))]
        program = (
            "import resource, sys; from clickgym.command_line import main; code = main(sys.argv[1:]); "
            "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
        )
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True, text=True)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int(re.findall(r"^peak (\d+)$", done.stderr, re.MULTILINE)[0]) / 1e6
    steps = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("peak"))
    return [log.name, " ".join(models), f"{seconds:.1f} s", f"{user:.1f} s", f"{peak:.2f} GB"], steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--seed", type=int, default=0)
    arguments, _ = parser.parse_known_args()
    rows, told = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for name, write in (("log.tsv", write_yandex), ("log.csv", write_tidy)):
            path = (arguments.folder or Path(temporary)) / name
            if not path.exists():
                write(path, arguments.sessions, arguments.seed)
            row, steps = measured(path, ["PBM"])
            rows.append(row)
            told.append(f"Output of the command for `{name}`:\n\n```\n{steps}\n```")
    publish("\n\n".join([table(["log", "model", "clock", "processors", "peak memory"], rows), *told]))


if __name__ == "__main__":
    main()
