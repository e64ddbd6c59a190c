"""How one agent of the scorecard compares with another, on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clickgym.bench.score import Scores, draw_resamples, iqm, score_array
from clickgym.bench.tasks import ScoredTask


class Difference(NamedTuple):
    """How an agent compares with another agent on the same tasks.

    Attributes:
        value: the agent's score minus the other agent's score.
        low, high: the bounds of the 95 % interval of ``value``.
        improvement: the probability of improvement: the probability, averaged over tasks, that a
            run of the agent scores more than a run of the other agent. Equal scores count half.
    """

    value: float
    low: float
    high: float
    improvement: float

    @property
    def is_undecided(self) -> bool:
        """Whether the interval contains 0."""
        return self.low <= 0 <= self.high


def difference(scores: Scores, others: Scores, tasks: Sequence[ScoredTask]) -> Difference:
    """Compare two agents that played the same number of runs.

    The bootstrap is the one of `summarize`, with the same users and runs for both agents in each
    replicate. The interval is therefore narrower than the intervals of the two scores suggest: what
    makes a task hard for both agents cancels.

    Args:
        scores: the scores of the agent's runs, keyed by task name.
        others: the scores of the other agent's runs.
        tasks: all tasks that count.

    Source: Agarwal, Schwarzer, Castro, Courville, Bellemare, *Deep reinforcement learning at the
    edge of the statistical precipice*, NeurIPS 2021.

    Example:
        >>> tasks = [ScoredTask(f"ties-{i}", "ties", "CMRank-v0", f"users {i}", 10) for i in (1, 2)]
        >>> better = {task.name: np.array([0.9, 0.7]) for task in tasks}
        >>> worse = {task.name: np.array([0.8, 0.6]) for task in tasks}
        >>> round(difference(better, worse, tasks).value, 2)
        0.1
        >>> difference(better, worse, tasks).improvement
        0.75
    """
    tables = [score_array(each, tasks) for each in (scores, others)]
    n_runs = tables[0].shape[1]
    value, other_value = (iqm(table.mean(axis=1)) for table in tables)
    replicates = [
        iqm(tables[0].take(index).mean(axis=0)) - iqm(tables[1].take(index).mean(axis=0))
        for index in draw_resamples(tuple(task.users for task in tasks), n_runs)
    ]
    low, high = np.quantile(replicates, [0.025, 0.975])
    gaps = tables[0][:, :, None] - tables[1][:, None, :]
    improvement = float(((gaps > 0) + 0.5 * (gaps == 0)).mean())
    return Difference(value - other_value, float(low), float(high), improvement)
