"""Scores between two anchors, their interquartile mean over tasks, and its bootstrap interval.

The statistics are those of rliable (Agarwal et al. 2021). The package itself is not used: it brings
a deep-learning framework and a plotting library for what are twenty lines here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars
from numpy.typing import ArrayLike, NDArray

from .tasks import ScoredTask

LEAST_RATIO = 3.0
"""A task is scored if random lists lose at least this many times what the best anchor loses."""
ALLOWANCE = 1e-3
"""The share of the sessions that is added to the violations of every agent before they are
compared.
"""
REPLICATES = 1000

Values = NDArray[np.float64]
Scores = Mapping[str, Values]
"""The scores of the runs of each task."""


class Anchor(NamedTuple):
    """The two losses between which a task is scored.

    Attributes:
        random: of random lists.
        best: of the published agent with the least mean loss.
        agent: who that is.
    """

    random: float
    best: float
    agent: str


def score(losses: ArrayLike, anchor: Anchor, task: ScoredTask) -> Values:
    """Scores of losses: 0 is the loss of random lists, 1 that of the best anchor, on a logarithmic
    scale. No loss counts as less than that of one session of random lists.

    Example:
        >>> task = ScoredTask("standard-1", "standard", "CMRank-v0", "yandex-9", 1000)
        >>> score([1000.0, 100.0, 10.0, 1.0, 0.0], Anchor(1000.0, 10.0, "TopRank"), task)
        array([0. , 0.5, 1. , 1.5, 1.5])
    """
    more = 0.0 if task.measure == "regret" else ALLOWANCE * task.horizon
    least = anchor.random / task.horizon
    reached = np.maximum(np.asarray(losses, float), least) + more
    unit = math.log((anchor.random + more) / (max(anchor.best, least) + more))
    return np.log((anchor.random + more) / reached) / unit


def is_scored(anchor: Anchor | None, task: ScoredTask) -> bool:
    """Whether a task has anchors that differ enough to tell agents apart."""
    if anchor is None:
        return False
    more = 0.0 if task.measure == "regret" else ALLOWANCE * task.horizon
    return anchor.random > 0 and anchor.random + more >= LEAST_RATIO * (anchor.best + more)


def anchors_of(losses: Mapping[str, Mapping[str, float]]) -> dict[str, Anchor]:
    """The anchors of each task.

    Args:
        losses: of each task the mean losses of agents, ``Random`` among them.
    """
    anchors = {}
    for task, by_agent in losses.items():
        agent = min(by_agent, key=lambda name: by_agent[name])
        anchors[task] = Anchor(by_agent["Random"], by_agent[agent], agent)
    return anchors


def scores_of(
    table: polars.DataFrame, anchors: Mapping[str, Anchor], tasks: Sequence[ScoredTask]
) -> dict[str, Values]:
    """The scores of an agent's runs in the tasks that are scored.

    Args:
        table: with ``task``, ``run`` and ``loss``.
        anchors: of the tasks.
        tasks: those that count.
    """
    losses = dict(table.sort("run").group_by("task").agg("loss").iter_rows())
    played = [task for task in tasks if task.name in losses]
    return {
        task.name: score(losses[task.name], anchors[task.name], task)
        for task in played
        if is_scored(anchors.get(task.name), task)
    }


class Summary(NamedTuple):
    """The interquartile mean of scores over tasks.

    Attributes:
        value: of the means over runs.
        low, high: its 95 % interval; nan with a single run.
        worst_run: of the worst run of each task.
    """

    value: float
    low: float
    high: float
    worst_run: float

    @property
    def interval(self) -> str:
        """The interval as text.

        Example:
            >>> Summary(0.914, 0.9, 0.93, 0.8).interval
            '0.90 to 0.93'
        """
        return "" if math.isnan(self.low) else f"{self.low:z.2f} to {self.high:z.2f}"


def iqm(values: Values) -> float:
    """The interquartile mean: without the lowest and the highest quarter.

    Example:
        >>> iqm(np.array([0.0, 1.0, 3.0, 100.0]))
        2.0
    """
    quarter = len(values) // 4
    return float(np.sort(values)[quarter : len(values) - quarter].mean())


def summarize(scores: Scores, tasks: Sequence[ScoredTask], intervals: bool = True) -> Summary:
    """Return the interquartile mean over tasks; a task that was not played counts 0.

    In every replicate of the bootstrap the users are drawn anew, with all tasks in which they
    return, and the runs of every task.

    Args:
        scores: of the runs of tasks.
        tasks: all that count.
        intervals: whether to compute the interval.
    """
    n_runs = max((len(values) for values in scores.values()), default=1)
    absent = np.zeros(n_runs)
    table = np.array([np.resize(scores.get(task.name, absent), n_runs) for task in tasks])
    value, worst_run = iqm(table.mean(axis=1)), iqm(table.min(axis=1))
    if n_runs == 1 or not intervals:
        return Summary(value, math.nan, math.nan, worst_run)
    users = [task.users for task in tasks]
    rows = [np.flatnonzero([of == name for of in users]) for name in dict.fromkeys(users)]
    rng, replicates = np.random.default_rng(0), []
    for _ in range(REPLICATES):
        drawn = np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))])
        runs = rng.integers(n_runs, size=(len(drawn), n_runs))
        replicates.append(iqm(table[drawn[:, None], runs].mean(axis=1)))
    low, high = np.quantile(replicates, [0.025, 0.975])
    return Summary(value, float(low), float(high), worst_run)
