"""A test whether the lists of a log changed with time, as those of a learning agent do."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtrc, ndtr

from ..distinct import distinct, sorted_distinct
from ..log import ClickLog
from .intervals import Users
from .policies import Integers

FOLLOWS, BLOCKS = 0.001, 20
"""The p-value below which lists changed with time, and the number of blocks of time."""
FEW = 100
"""Sessions, below which a list is no kind of its own, and an order tells nothing."""


def lists_follow_time(log: ClickLog) -> bool:
    """Whether the lists of a query changed with time, if the sessions stand in its order: slowly,
    by a chi-squared test of lists and twentieths of the log, or quickly, by a runs test. Lists of
    fewer than 100 sessions are taken together by their first items.

    A user counts once for each list and twentieth, and in the runs test with the first session.
    """
    _, index, counts = sorted_distinct(log.items)
    rare = counts[index] < FEW
    kinds = np.unique(np.where(rare, -1 - log.items[:, 0], index), return_inverse=True)[1]
    first = np.arange(len(log))
    if log.users is not None:
        first = np.sort(np.unique(log.users, return_index=True)[1])
    level = FOLLOWS / 2
    return _drift_level(kinds, log.users) < level or _runs_level(kinds[first]) < level


def _drift_level(kinds: Integers, users: Users) -> float:
    """The p-value of kinds of lists, ``(n,)`` from 0, and blocks of time, if they do not drift."""
    cells = kinds * BLOCKS + np.arange(len(kinds)) * BLOCKS // len(kinds)
    if users is not None:
        cells = cells[distinct(np.stack([users, cells], axis=1))[0]]
    table = np.bincount(cells, minlength=BLOCKS * (kinds.max() + 1)).reshape(-1, BLOCKS)
    table = table[table.sum(axis=1) >= FEW]
    if len(table) < 2:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    expected = np.maximum(expected, np.finfo(float).tiny)
    statistic = float(((table - expected) ** 2 / expected).sum())
    return float(chdtrc((len(table) - 1) * (BLOCKS - 1), statistic))


def _runs_level(kinds: Integers) -> float:
    """The p-value of so few runs of equal kinds, ``(n,)`` in the order of time, if the order is
    random (Mood, *The distribution theory of runs*, 1940; normal approximation).
    """
    n, counts = len(kinds), np.bincount(kinds).astype(float)
    if n < FEW:
        return 1.0
    squares, cubes = (counts**2).sum(), (counts**3).sum()
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1.0))
    if variance <= 0:
        return 1.0
    runs, expected = 1 + np.count_nonzero(np.diff(kinds)), (n * (n + 1) - squares) / n
    return float(ndtr((runs - expected) / math.sqrt(variance)))
