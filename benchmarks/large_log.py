"""A click log of 10⁷ sessions (1 GB) in the format of Yandex's Relevance Prediction Challenge, and what a fit to it needs.

    python benchmarks/large_log.py --folder logs --write

makes the log, and the same sessions as a tidy table, where the folder lacks them (without ``--folder`` in a temporary one).

The sessions are those of a position-based model: 20,000 queries by Zipf's law, each with 20 items of its own, ten of them on a
page in random order. The same seed makes the same file. Time is by the clock and of the processors, and memory the peak of the
process, all with imports; the steps are told by the command itself.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import typer
from report import publish, table, taken

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
            rows = zip(queries.tolist(), items.tolist(), clicks.tolist(), strict=True)
            for session, (query, shown, clicked) in enumerate(rows, first):
                lines = ["\t".join(map(str, (session, 0, "Q", query, 0, *shown)))]
                lines += [f"{session}\t{at}\tC\t{item}" for at, item in enumerate(shown, 1) if clicked[at - 1]]
                file.write("\n".join([*lines, ""]).encode())


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


def main(folder: Path | None = None, sessions: int = SESSIONS, seed: int = 0, write: bool = False) -> None:
    """Fit to the logs of a folder, which are made where it lacks them; with --write into README.md."""
    rows, told = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for name, make in (("log.tsv", write_yandex), ("log.csv", write_tidy)):
            path = (folder or Path(temporary)) / name
            if not path.exists():
                make(path, sessions, seed)
            words = ["-m", "clickgym", "fit", str(path), "--model", "PBM", "--out", f"{temporary}/{name}.json"]
            row, steps = taken(name, [sys.executable, *words])
            rows.append([row[0], "PBM", *row[1:]])
            told.append(f"Output of the command for `{name}`:\n\n```\n{steps}\n```")
    publish("\n\n".join([table(["log", "model", "clock", "processors", "peak memory"], rows), *told]))


if __name__ == "__main__":
    typer.run(main)
