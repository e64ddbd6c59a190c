"""What the exams of verdicts share: rows that are played once and kept as lines of JSON, and shares
with their intervals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from clickgym import envs

Row = dict[str, Any]


def examined(
    play: Callable[..., Row],
    wanted: Sequence[tuple[Any, ...]],
    names: Sequence[str],
    out: Path,
    processes: int,
) -> list[Row]:
    """The rows of a file for some arguments of a function, which is called for those that the file
    lacks.

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


class Laws(NamedTuple):
    """The ranges from which the parameters of click models are drawn, but attraction and
    examination.

    Attributes:
        browsing: the least factor of examination below a click.
        termination: of a DCM.
        satisfaction, perseverance: of a DBN.
        goes_on: the least and the most of the three of a CCM.
    """

    browsing: float
    termination: tuple[float, float]
    satisfaction: tuple[float, float]
    perseverance: tuple[float, float]
    goes_on: tuple[Sequence[float], Sequence[float]]


def users(
    kind: str,
    attraction: NDArray[np.float64],
    examination: NDArray[np.float64],
    rng: np.random.Generator,
    laws: Laws,
) -> envs.ClickModel:
    """Users of a kind, whose further parameters are drawn."""
    n_items, n_positions = len(attraction), len(examination)
    if kind == "CM":
        return envs.CascadeModel(attraction, n_positions)
    if kind in ("PBM", "TPBM"):
        return (envs.PositionBasedModel if kind == "PBM" else envs.TrustBiasModel)(
            attraction, examination
        )
    if kind == "DCM":
        return envs.DependentClickModel(
            attraction, np.sort(rng.uniform(*laws.termination, n_positions))[::-1]
        )
    if (
        kind == "UBM"
    ):  # as far below the last click as a position is below the top, times a factor up to 1
        rows = np.zeros((n_positions, n_positions))
        for k, last in zip(*np.tril_indices(n_positions), strict=True):
            rows[k, last] = examination[k - last] * (
                rng.uniform(laws.browsing, 1.0) if last else 1.0
            )
        return envs.UserBrowsingModel(attraction, rows)
    if kind == "DBN":
        after = rng.uniform(*laws.satisfaction, n_items), rng.uniform(*laws.perseverance)
        return envs.DynamicBayesianModel(attraction, *after, n_positions=n_positions)
    return envs.ClickChainModel(attraction, *rng.uniform(*laws.goes_on), n_positions)


def interval_text(count: int, n: int) -> str:
    """The 95 % interval of a share after Clopper and Pearson."""
    interval = binomtest(count, n).proportion_ci(0.95, "exact")
    return f"({interval.low:.1%} to {interval.high:.1%})"
