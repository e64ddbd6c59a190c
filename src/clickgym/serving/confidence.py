"""Confidence interval of the difference in clicks between the agent's lists and those of production, valid at all times.

Each impression is shown by the agent with probability 1 - p, else by production. Its term

    ψ = (r - m) / (1 - p) where the agent chose the list, -(r - m) / p where production did,

has the difference of their mean rewards as expectation, whatever was shown before. Here m is the mean reward of earlier
impressions; subtracting it reduces the variance of ψ. The interval is for the mean of these differences over the impressions so
far. It holds at all times at once: you may look at it every minute and stop when you like.

Source: Howard, Ramdas, McAuliffe, Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*, The Annals of
Statistics 49, 2021: theorem 4 (empirical Bernstein), theorem 1 (the stitched boundary, with η = 2, s = 1.4), section 4.2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ETA, S, ZETA = 2.0, 1.4, 3.105547277977581
"""Of the boundary: the ratio of its epochs, the exponent by which they share the probability, and Riemann's ζ(s)."""
FACTOR, SCALE = (ETA**0.25 + ETA**-0.25) / math.sqrt(2.0), (math.sqrt(ETA) + 1.0) / 2.0


def stitched_boundary(variance: float, probability: float, scale: float, least: float) -> float:
    """The boundary that a sum of deviations ever exceeds with at most the given probability.

    Args:
        variance: the sum of the squared deviations so far.
        probability: of exceeding the boundary at any time, on one side.
        scale: how far a term may lie from its prediction, on this side.
        least: the variance from which on the boundary is tight.

    Example:
        >>> round(stitched_boundary(100.0, 0.05, 3.0, 10.0), 3)  # the value of the authors' own tests
        64.488
    """
    v = max(variance, least)
    weight = S * math.log(math.log(ETA * v / least) / math.log(ETA)) + math.log(ZETA / probability)
    return math.sqrt(FACTOR**2 * v * weight + (SCALE * scale * weight) ** 2) + SCALE * scale * weight


class Interval(NamedTuple):
    """A mean difference with its confidence interval, which is valid at all times.

    Attributes:
        n: the number of impressions.
        mean: the estimate; nan without impressions.
        low, high: the ends of the interval; infinite without impressions.
    """

    n: int
    mean: float
    low: float
    high: float


class PairedDifference:
    """The difference between agent and production over the impressions so far, in the order in which they were shown.

    Args:
        most: the largest reward of an impression; the least is 0. It may grow before an impression is shown that can earn more.
        confidence: of the interval.

    Example:
        >>> difference = PairedDifference(1.0, 0.95)
        >>> for i in range(4000):
        ...     difference.add(1.0 if i % 2 else 0.5, by_agent=bool(i % 2), share=0.5)
        >>> interval = difference.interval()
        >>> round(interval.mean, 2), interval.low > 0.4
        (0.5, True)
    """

    def __init__(self, most: float, confidence: float) -> None:
        self.most, self.confidence = most, confidence
        self.n, self.rewards, self.sum, self.variance = 0, 0.0, 0.0, 0.0
        self.upward = self.downward = 0.0  # how far a term may lie above, and below, what was predicted of it

    def add(self, reward: float, *, by_agent: bool, share: float) -> None:
        """Add an impression.

        Args:
            reward: from 0 to ``most``.
            by_agent: whether the agent chose the list.
            share: the probability with which production would have.
        """
        usual = min(self.rewards / self.n if self.n else 0.0, self.most * share / (1.0 - share))
        term = (reward - usual) / (1.0 - share) if by_agent else (usual - reward) / share
        predicted = min(max(self.sum / self.n if self.n else 0.0, -self.most), self.most)
        self.upward = max(self.upward, self.most / (1.0 - share) + self.most)
        self.downward = max(self.downward, self.most * max(1.0 / share, 1.0 / (1.0 - share)) + self.most)
        self.n += 1
        self.rewards += reward
        self.sum += term
        self.variance += (term - predicted) ** 2

    def add_all(
        self,
        groups: NDArray[Any],
        rewards: NDArray[np.float64],
        by_agent: NDArray[np.bool_],
        shares: NDArray[np.float64],
        earlier: dict[int, list[float]],
    ) -> None:
        """Add many impressions at once, the usual reward of each being that of its group.

        Args:
            groups: ``(n,)`` to which agent each belongs, in the order in which they were shown.
            rewards, by_agent, shares: ``(n,)`` as of `add`.
            earlier: how many impressions of each group came before, and their rewards; is brought up to date.
        """
        n, most = len(rewards), self.most
        if not n:
            return
        order = np.argsort(groups, kind="stable")
        first = np.flatnonzero(np.diff(groups[order], prepend=groups[order][0] - 1))
        names, sizes = groups[order][first].tolist(), np.diff(first, append=n)
        numbers, sums = np.array([earlier.get(name, (0, 0.0)) for name in names]).T
        before = np.cumsum(rewards[order]) - rewards[order]
        before += np.repeat(sums - before[first], sizes)
        usual = np.empty(n)
        usual[order] = before / np.maximum(np.arange(n) + np.repeat(numbers - first, sizes), 1)
        usual = np.minimum(usual, most * shares / (1.0 - shares))
        terms = np.where(by_agent, (rewards - usual) / (1.0 - shares), (usual - rewards) / shares)
        totals = np.cumsum([self.sum, *terms])
        predicted = np.clip(totals[:-1] / np.maximum(self.n + np.arange(n), 1), -most, most)
        up, down = 1.0 / (1.0 - shares), 1.0 / shares
        self.upward = max(self.upward, most * up.max() + most)
        self.downward = max(self.downward, most * np.maximum(up, down).max() + most)
        self.n, self.rewards, self.sum = self.n + n, self.rewards + float(rewards.sum()), float(totals[-1])
        self.variance += float(((terms - predicted) ** 2).sum())
        of_group = np.add.reduceat(rewards[order], first)
        for name, *more in zip(names, (numbers + sizes).tolist(), (sums + of_group).tolist(), strict=True):
            earlier[name] = more

    def interval(self) -> Interval:
        """The interval after the impressions so far."""
        if not self.n or not self.most:
            return Interval(self.n, self.sum / self.n if self.n else math.nan, -math.inf, math.inf)
        side = (1.0 - self.confidence) / 2.0
        least = self.most * self.most  # tight from about one impression on that was as far off as can be
        low = (self.sum - stitched_boundary(self.variance, side, self.downward, least)) / self.n
        high = (self.sum + stitched_boundary(self.variance, side, self.upward, least)) / self.n
        return Interval(self.n, self.sum / self.n, low, high)

    def to_list(self) -> list[float]:
        """The state, as a list of numbers for `restore`."""
        return [self.n, self.rewards, self.sum, self.variance, self.upward, self.downward, self.most]

    def restore(self, values: list[float]) -> None:
        """Continue from a state that `to_list` returned."""
        self.n, self.rewards, self.sum, self.variance, self.upward, self.downward = int(values[0]), *values[1:6]
        self.most = values[6] if len(values) > 6 else self.most  # of version 2.0
