"""What the exams of verdicts share: rows that are played once and kept as lines of JSON, and shares with their intervals."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

Row = dict[str, Any]


def parser_of(about: str, out: str) -> argparse.ArgumentParser:
    """The arguments that every exam has."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="what is drawn has the seeds 1000 * seed, 1000 * seed + 1, ...")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(out))
    return parser


def examined(
    play: Callable[..., Row], wanted: Sequence[tuple[Any, ...]], names: Sequence[str], out: Path, processes: int
) -> list[Row]:
    """The rows of a file for some arguments of a function, which is called for those that the file lacks.

    Args:
        play: makes a row, in which its arguments stand.
        wanted: its arguments.
        names: under which a row has them.
        out: the file, one line of JSON per row.
        processes: in which it is called.
    """
    done = {_key(row, names) for row in _rows(out)}
    tasks = (joblib.delayed(play)(*each) for each in wanted if each not in done)
    with out.open("a") as file:
        for row in joblib.Parallel(processes, return_as="generator_unordered")(tasks):
            print(json.dumps(row), file=file, flush=True)
    return [row for row in _rows(out) if _key(row, names) in wanted]


def _rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def by_last_click(examination: NDArray[np.float64], rng: np.random.Generator, least: float) -> NDArray[np.float64]:
    """Examination probabilities of a UBM: as far below the last click as a position is below the top, times ``least`` to 1."""
    rows = np.zeros((len(examination), len(examination)))
    for k, last in zip(*np.tril_indices(len(rows)), strict=True):
        rows[k, last] = examination[k - last] * (rng.uniform(least, 1.0) if last else 1.0)
    return rows


def interval_text(count: int, n: int) -> str:
    """The 95 % interval of a share after Clopper and Pearson."""
    interval = binomtest(count, n).proportion_ci(0.95, "exact")
    return f"({interval.low:.1%} to {interval.high:.1%})"
