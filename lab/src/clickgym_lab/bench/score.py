"""Scores of tasks and of abilities, with intervals, and the probability that one agent beats
another.

Intervals are 95 % intervals of a bootstrap. In every replicate the instances have random weights,
one each wherever it returns, and the runs of each task are drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import polars
from numpy.typing import NDArray
from polars import col
from scipy.stats import trim_mean

from .protocol import CURRENT, Protocol

REPLICATES = 1000

Scores = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number with its 95 % interval, nan where one run tells none."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """
        Example:
            >>> print(Estimate(0.914, 0.9, 0.93), Estimate(0.5, math.nan, math.nan))
            0.91 (0.90 to 0.93) 0.50
        """
        return f"{self.value:z.2f}" + (
            "" if math.isnan(self.low) else f" ({self.low:z.2f} to {self.high:z.2f})"
        )


def scored(table: polars.DataFrame, protocol: Protocol = CURRENT) -> polars.DataFrame:
    """The rows at the ends of tasks whose anchors are kept, with their ``score``.

    Args:
        table: with ``task`` and ``loss``, and ``step``, if there are rows of several; as `play`
        returns it.
        protocol: the tasks and their anchors.
    """
    frames = []
    for (name,), rows in table.group_by(["task"], maintain_order=True):
        anchor = protocol.anchors[str(name)]
        if anchor.kept:
            rows = rows.filter(col("step") == anchor.horizon) if "step" in table.columns else rows
            # As the results that ship are kept, so that equal runs tie.
            loss = rows["loss"].cast(polars.Float32).cast(polars.Float64).to_numpy()
            frames.append(rows.with_columns(score=anchor.score(loss)))
    return polars.concat(frames) if frames else table.clear().with_columns(score=polars.lit(0.0))


def ability_scores(
    table: polars.DataFrame, protocol: Protocol = CURRENT, quick: bool = False
) -> dict[str, Estimate]:
    """The score of each ability of which an agent plays a task; a task that it does not play counts
    0.

    Args:
        table: its rows of `scored`.
        protocol: the tasks.
        quick: only the tasks of ``--quick`` were to be played; their few runs tell no interval.
    """
    scores, due = _by_task(table), protocol.tasks(quick)
    result, rng = {}, np.random.default_rng(0)
    for ability in protocol.abilities:
        names = [
            task.name
            for task in protocol.candidates
            if task.ability == ability and task.name in scores
        ]
        if not names:
            continue
        absent = np.zeros(max(len(scores[name]) for name in names))
        names += [task.name for task in due if task.ability == ability and task.name not in scores]
        result[ability] = _estimate(
            [scores.get(name, absent) for name in names], names, protocol, rng, not quick
        )
    return result


def _by_task(table: polars.DataFrame) -> dict[str, Scores]:
    """The scores of each task, in the order of the runs."""
    table = table.sort("run", maintain_order=True)
    return {
        str(name): rows["score"].to_numpy()
        for (name,), rows in table.group_by(["task"], maintain_order=True)
    }


def _estimate(
    scores: list[Scores],
    tasks: list[str],
    protocol: Protocol,
    rng: np.random.Generator,
    intervals: bool,
) -> Estimate:
    """The mean over all runs of some tasks, with its interval."""
    value = float(trim_mean(np.concatenate(scores), 0.0))  # adds in another order than np.mean
    samples = np.concatenate([_redrawn(each, rng) for each in scores], axis=1)
    weights = np.repeat(_weights_of(tasks, protocol), list(map(len, scores)), axis=1)
    replicates = (samples * weights).sum(axis=-1) / weights.sum(axis=-1)
    return _with_interval(value, replicates, intervals and max(map(len, scores)) > 1)


def _with_interval(value: float, replicates: Scores, several: bool) -> Estimate:
    """A mean with the interval of its replicates, which a single run does not tell."""
    low, high = np.quantile(replicates, [0.025, 0.975]) if several else (math.nan, math.nan)
    return Estimate(value, float(low), float(high))


def improvement(
    one: polars.DataFrame, other: polars.DataFrame, protocol: Protocol = CURRENT
) -> tuple[Estimate, int] | None:
    """The probability that one agent beats another in a task that both play, and the number of such
    tasks; None without any.

    Args:
        one, other: their rows of `scored`.
        protocol: the tasks.
    """
    mine, theirs = _by_task(one), _by_task(other)
    shared = [name for name in mine if name in theirs]
    if not shared:
        return None
    rng = np.random.default_rng(0)
    value = np.mean([better(mine[name][None], theirs[name][None])[0] for name in shared])
    samples = np.stack(
        [better(_redrawn(mine[name], rng), _redrawn(theirs[name], rng)) for name in shared], axis=1
    )
    samples = np.average(samples, axis=1, weights=_weights_of(shared, protocol))
    several = max(len(scores[name]) for scores in (mine, theirs) for name in shared) > 1
    return _with_interval(float(value), samples, several), len(shared)


def better(one: Scores, other: Scores) -> Scores:
    """How often a run of one is better than a run of the other, ties counted half: ``(n, runs)``
    each.

    Example:
        >>> better(np.array([[1.0, 2.0]]), np.array([[1.0, 1.5, 3.0]]))
        array([0.41666667])
    """
    difference = np.sign(one[:, :, None] - other[:, None, :])
    return (1.0 + difference.mean(axis=(1, 2))) / 2.0


def _redrawn(scores: Scores, rng: np.random.Generator) -> Scores:
    """The runs of a task drawn anew, with replacement: ``(REPLICATES, runs)``."""
    return scores[rng.integers(len(scores), size=(REPLICATES, len(scores)))]


def _weights_of(tasks: Iterable[str], protocol: Protocol) -> Scores:
    """The weights of the instances of some tasks: ``(REPLICATES, tasks)``."""
    return np.stack([_weights(protocol)[protocol.by_name[task].query] for task in tasks], axis=1)


@cache
def _weights(protocol: Protocol) -> Mapping[str, Scores]:
    """The weights of each instance in all replicates, the same wherever it returns; ids do not make
    another one.
    """
    rng = np.random.default_rng(1)
    queries = dict.fromkeys(task.query for task in protocol.candidates)
    return {query: rng.exponential(size=REPLICATES) for query in queries}
