"""Scores relative to two anchors, the interquartile mean of scores over tasks, and the bootstrap
interval of this mean.

The statistics follow rliable (Agarwal et al. 2021). clickgym does not depend on the rliable
package, which would install a deep-learning framework and a plotting library to replace twenty
lines of code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars
from numpy.typing import ArrayLike, NDArray

from .tasks import ScoredTask

MIN_RATIO = 3.0
"""A task is scored only if random lists lose at least this many times as much as the best anchor
loses.
"""
ALLOWANCE = 1e-3
"""The number of violations per session that is added for every agent before agents are compared."""
REPLICATES = 1000

Values = NDArray[np.float64]
Scores = Mapping[str, Values]
"""The scores of an agent's runs, keyed by task name."""


class Anchor(NamedTuple):
    """The two losses that define the scores 0 and 1 of a task.

    Attributes:
        random: the mean loss of random lists.
        best: the mean loss of the best published agent.
        agent: the name of the best published agent.
    """

    random: float
    best: float
    agent: str


def score(losses: ArrayLike, anchor: Anchor, task: ScoredTask) -> Values:
    """Convert losses to scores on a logarithmic scale, on which random lists score 0 and the best
    published agent scores 1. Losses below the loss of random lists in a single session are raised
    to that loss.

    Example:
        >>> task = ScoredTask("standard-1", "standard", "CMRank-v0", "yandex-9", 1000)
        >>> score([1000.0, 100.0, 10.0, 1.0, 0.0], Anchor(1000.0, 10.0, "TopRank"), task)
        array([0. , 0.5, 1. , 1.5, 1.5])
    """
    allowance = 0.0 if task.measure == "regret" else ALLOWANCE * task.horizon
    least = anchor.random / task.horizon
    loss = np.maximum(np.asarray(losses, float), least) + allowance
    unit = math.log((anchor.random + allowance) / (max(anchor.best, least) + allowance))
    return np.log((anchor.random + allowance) / loss) / unit


def is_scored(anchor: Anchor | None, task: ScoredTask) -> bool:
    """Return whether the anchors of a task are far enough apart for agents to be compared."""
    if anchor is None:
        return False
    allowance = 0.0 if task.measure == "regret" else ALLOWANCE * task.horizon
    return anchor.random > 0 and anchor.random + allowance >= MIN_RATIO * (anchor.best + allowance)


def scores_of(
    table: polars.DataFrame, anchors: Mapping[str, Anchor], tasks: Sequence[ScoredTask]
) -> dict[str, Values]:
    """Return the scores of an agent's runs in every scored task that the agent played.

    Args:
        table: a frame with the columns ``task``, ``run`` and ``loss``.
        anchors: the anchors of each task, keyed by task name.
        tasks: the tasks for which scores are computed.
    """
    losses = dict(table.sort("run").group_by("task").agg("loss").iter_rows())
    played = [task for task in tasks if task.name in losses]
    return {
        task.name: score(losses[task.name], anchors[task.name], task)
        for task in played
        if is_scored(anchors.get(task.name), task)
    }


class Summary(NamedTuple):
    """An agent's score over several tasks, with its interval.

    Attributes:
        value: the interquartile mean, over tasks, of the agent's mean score in a task.
        low, high: the bounds of the 95 % interval of ``value``; nan if there is only one run per
            task, or if no interval was requested.
        worst_run: the interquartile mean, over tasks, of the worst score of a run.
    """

    value: float
    low: float
    high: float
    worst_run: float

    @property
    def interval_text(self) -> str:
        """The 95 % interval as text; empty if there is no interval.

        Example:
            >>> Summary(0.914, 0.9, 0.93, 0.8).interval_text
            '0.90 to 0.93'
        """
        return "" if math.isnan(self.low) else f"{self.low:z.2f} to {self.high:z.2f}"


def iqm(values: Values) -> float:
    """Return the interquartile mean: the mean of the values without the lowest and the highest
    quarter.

    Example:
        >>> iqm(np.array([0.0, 1.0, 3.0, 100.0]))
        2.0
    """
    quarter = len(values) // 4
    return float(np.sort(values)[quarter : len(values) - quarter].mean())


def summarize(scores: Scores, tasks: Sequence[ScoredTask], intervals: bool = True) -> Summary:
    """Summarize an agent's scores over tasks by their interquartile mean. A task that the agent did
    not play scores 0.

    Each bootstrap replicate resamples the users, keeping all tasks with the same users together,
    and then resamples the runs of every task.

    Args:
        scores: the scores of the agent's runs, keyed by task name.
        tasks: all tasks that count, including tasks that the agent did not play.
        intervals: whether the 95 % interval is computed.
    """
    table = score_array(scores, tasks)
    n_runs = table.shape[1]
    value, worst_run = iqm(table.mean(axis=1)), iqm(table.min(axis=1))
    if n_runs == 1 or not intervals:
        return Summary(value, math.nan, math.nan, worst_run)
    indices = draw_resamples(tuple(task.users for task in tasks), n_runs)
    replicates = [iqm(table.take(index).mean(axis=0)) for index in indices]
    low, high = np.quantile(replicates, [0.025, 0.975])
    return Summary(value, float(low), float(high), worst_run)


def score_array(scores: Scores, tasks: Sequence[ScoredTask]) -> Values:
    """Return the scores of an agent as an array ``(n_tasks, n_runs)``. A task that the agent did
    not play scores 0.
    """
    n_runs = max((len(values) for values in scores.values()), default=1)
    absent = np.zeros(n_runs)
    return np.array([np.resize(scores.get(task.name, absent), n_runs) for task in tasks])


@lru_cache(maxsize=4)
def draw_resamples(users: tuple[str, ...], n_runs: int) -> list[NDArray[np.int64]]:
    """Return the bootstrap replicates of the runs, which are the same for all agents: for each
    replicate, ``(n_runs, n)`` indices into a flat table whose rows are tasks and whose columns are
    runs.

    Args:
        users: the users of each task.
        n_runs: the number of runs of each task.
    """
    rows = [np.flatnonzero([other == name for other in users]) for name in dict.fromkeys(users)]
    rng, indices = np.random.default_rng(0), []
    for _ in range(REPLICATES):
        resample = np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))])
        runs = rng.integers(n_runs, size=(len(resample), n_runs))
        indices.append((n_runs * resample[:, None] + runs).T)
    return indices
