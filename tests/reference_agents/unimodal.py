"""References of GRAB and UniRank, the agents that explore around a leader.

Besides the list, the references read the agent's leader from its state (``leader``, or ``part`` and
``shown_part``). They check whether this leader is allowed, so their counts of leaders are exact,
however the agent broke ties. Leaders, neighbours, indices and partitions have their own methods, so
that tests can compare them with the compiled parts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, pairwise, permutations, product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .bounds import upper_bound
from .reference import CLOSE, Remembering, comparisons, is_close

_upper_bound = lru_cache(100_000)(upper_bound)

Ranking = tuple[int, ...]
Partition = tuple[frozenset[int], ...]


def level(horizon: int | None, s: int) -> float:
    """Return the confidence level: log T, or log s + 3 log log s without a horizon. For s < 3, the
    level allows everything.
    """
    if horizon is not None:
        return math.log(horizon)
    return math.log(s) + 3 * math.log(math.log(s)) if s >= 3 else math.inf


def index(mean: float, n: int, level: float) -> float:
    """Return the index kl_upper(mean, level / n). The index is 1 for n = 0 or if the level allows
    everything, and equals the mean if the level allows nothing.
    """
    if n == 0 or level == math.inf:
        return 1.0
    return _upper_bound(mean, level / n) if level > 0 else mean


# --------------------------------------------------------------------------------------------- GRAB


class GRABReference(Remembering):
    """Reference of GRAB: Gauthier et al. 2021 (ICML)."""

    edges = {"gamma": (2,)}

    def __init__(
        self, n_items: int, n_positions: int, horizon: int | None = None, gamma: int | None = None
    ) -> None:
        super().__init__(n_items, n_positions)
        self.horizon = horizon
        self.clicks = np.zeros((n_items, n_positions), int)
        self.shown = np.zeros((n_items, n_positions), int)
        self.led: Counter[Ranking] = Counter()
        self.gamma = max(n_items - 1, 1) if gamma is None else gamma

    def means(self) -> np.ndarray:
        """Return the mean clicks ``(L, K)`` of each item at each position."""
        return np.where(self.shown > 0, self.clicks / np.maximum(self.shown, 1), 0.0)

    def may_lead(self, ranking: Sequence[int]) -> bool:
        """Return whether no list has a larger sum of means than the given list."""
        means = self.means()
        value = means[list(ranking), range(self.n_positions)].sum()
        return is_close(value, means[linear_sum_assignment(means, maximize=True)].sum())

    def orders(self, leader: Sequence[int]) -> Iterator[Ranking]:
        """Yield the order π of the positions; if means are equal, yield every possible order."""
        means = self.means()[list(leader), range(self.n_positions)]
        positions = sorted(range(self.n_positions), key=lambda k: -means[k])
        groups = [list(group) for _, group in groupby(positions, key=lambda k: means[k])]
        for parts in product(*(permutations(group) for group in groups)):
            yield tuple(chain.from_iterable(parts))

    def neighbours(self, leader: Sequence[int], order: Sequence[int]) -> list[Ranking]:
        """Return the neighbours of a leader whose positions have the order π."""
        last = order[-1]
        swaps = [_swapped(leader, a, b) for a, b in pairwise(order)]
        return swaps + [
            _replaced(leader, last, item) for item in range(self.n_items) if item not in leader
        ]

    def is_leaders_turn(self, leader: Ranking) -> bool:
        return self.led[leader] % self.gamma == 0

    def index(self, item: int, position: int, s: int) -> float:
        clicks, n = self.clicks[item, position], self.shown[item, position]
        return index(clicks / n if n else 0.0, n, level(self.horizon, s))

    def choices(self, leader: Ranking) -> set[Ranking]:
        """Return the lists that the agent may show under a given leader."""
        if self.is_leaders_turn(leader):
            return {leader}
        return set(chain(*(self.best_lists(leader, order) for order in self.orders(leader))))

    def best_lists(self, leader: Ranking, order: Sequence[int]) -> list[Ranking]:
        """Return the lists with the largest sum of indices, among the leader and its neighbours
        under an order of the positions.
        """
        s = self.led[leader] + 1  # including the current session

        @lru_cache(None)
        def total(ranking: Ranking) -> float:
            return math.fsum(self.index(item, position, s) for position, item in enumerate(ranking))

        candidates = [leader, *self.neighbours(leader, order)]
        largest = max(map(total, candidates))
        return [ranking for ranking in candidates if is_close(total(ranking), largest)]

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> Any:
        """Draw lists in a state with a single possible leader. Tied positions and tied lists are
        equally likely.
        """
        items, positions = linear_sum_assignment(self.means(), maximize=True)
        leader = tuple(items[np.argsort(positions)].tolist())
        if self.is_leaders_turn(leader):
            return [leader] * n
        best = [self.best_lists(leader, order) for order in self.orders(leader)]
        among = [best[which] for which in rng.integers(len(best), size=n)]
        return [lists[rng.integers(len(lists))] for lists in among]

    def show(self, ranking: list[int], state: Any) -> Any:
        leader = tuple(state.leader.tolist())
        is_list = len(set(leader)) == self.n_positions and set(leader) <= set(range(self.n_items))
        if not (is_list and self.may_lead(leader) and tuple(ranking) in self.choices(leader)):
            return None
        return leader

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.led[self.memory] += 1
        self.shown[ranking, range(self.n_positions)] += 1
        self.clicks[ranking, range(self.n_positions)] += clicks

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicks, "shown": self.shown}


def _swapped(ranking: Sequence[int], a: int, b: int) -> Ranking:
    return tuple(ranking[{a: b, b: a}.get(k, k)] for k in range(len(ranking)))


def _replaced(ranking: Sequence[int], position: int, item: int) -> Ranking:
    return tuple(item if k == position else other for k, other in enumerate(ranking))


# ------------------------------------------------------------------------------------------ UniRank


class UniRankReference(Remembering):
    """Reference of UniRank: Gauthier et al. 2022 (ICML). Clicks compare only the pairs within one
    displayed part.
    """

    def __init__(self, n_items: int, n_positions: int, horizon: int | None = None) -> None:
        super().__init__(n_items, n_positions)
        self.horizon = horizon
        self.difference = np.zeros((n_items, n_items), int)  # Σ c_i - c_j
        self.compared = np.zeros((n_items, n_items), int)  # n_ij
        self.led: Counter[Partition] = Counter()
        self.partition: Partition = ()

    # ----------------------------------------------------------------------------- leader partition

    def may_be_as_good(self, i: int, j: int) -> bool:
        """Return whether τ_ij + sqrt(log log(t + 3) / n_ij) ≥ 0 after t finished sessions."""
        n = self.compared[i, j]
        return bool(
            n == 0
            or self.difference[i, j] / n + math.sqrt(math.log(math.log(self.t - 1 + 3)) / n) >= 0
        )

    def leader(self) -> Partition:
        left, parts = set(range(self.n_items)), []
        while left:
            part = frozenset(i for i in left if all(self.may_be_as_good(i, j) for j in left - {i}))
            parts.append(part or frozenset(left))
            left -= parts[-1]
        return tuple(parts)

    # ---------------------------------------------------------------------------------- exploration

    def index(self, below: int, above: int, s: int) -> float:
        """Return the index kl_upper((1 + τ_ji) / 2, f(s) / n_ji), where j is below i."""
        n = self.compared[below, above]
        return index(
            (1 + self.difference[below, above] / n) / 2 if n else 0.0, n, level(self.horizon, s)
        )

    def best_index(self, below: Iterable[int], above: Iterable[int], s: int) -> float:
        return max((self.index(j, i, s) for j, i in product(below, above)), default=0.0)

    def explorations(self) -> set[Partition]:
        """Return the partitions that the agent may display under the leader, down to position K. If
        an index equals 1/2 up to rounding, both decisions are allowed.
        """
        partition = self.partition
        s = self.led[partition] + 1

        def below(first: int, start: int) -> Iterator[Partition]:
            if start >= self.n_positions:
                yield ()
                return
            yield from grown(partition[first], first + 1, start, merged=False)

        def grown(
            part: frozenset[int], following: int, start: int, merged: bool
        ) -> Iterator[Partition]:
            end = start + len(part)
            if end < self.n_positions and not merged:
                for merge in _beyond_half(self.best_index(partition[following], part, s)):
                    if merge:
                        yield from grown(
                            part | partition[following], following + 1, start, merged=True
                        )
                    else:
                        yield from ((part, *rest) for rest in below(following, end))
            elif end < self.n_positions:
                yield from ((part, *rest) for rest in below(following, end))
            elif merged:
                yield (part,)
            else:
                yield from (
                    (part | further,) for further in self.further(part, partition[following:], s)
                )

        return set(below(0, 0))

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> Any:
        self.partition = self.leader()
        displayed = sorted([sorted(part) for part in parts] for parts in self.explorations())
        chosen = rng.integers(len(displayed), size=n)
        return [
            list(chain(*map(rng.permutation, displayed[which])))[: self.n_positions]
            for which in chosen
        ]

    def further(self, part: frozenset[int], parts: Partition, s: int) -> Iterator[frozenset[int]]:
        """Yield the additional items that a part may get, as sets: a single item, or none."""
        for source in parts:
            indices = {item: self.best_index([item], part, s) for item in source}
            largest = max(indices.values(), default=0.0)
            decision = _beyond_half(largest)
            if True in decision:
                yield from (
                    frozenset([item]) for item in source if is_close(indices[item], largest)
                )
            if False not in decision:
                return
        yield frozenset()

    # ------------------------------------------------------------------------------------ following

    def show(self, ranking: list[int], state: Any) -> Any:
        self.partition = self.leader()
        displayed = self.cut(parts_of(state.shown_part.tolist()))
        start = 0
        for part in displayed:
            if not set(ranking[start : start + len(part)]) <= part:
                return None
            start += len(part)
        is_leader = parts_of(state.part.tolist()) == self.partition
        return displayed if is_leader and displayed in self.explorations() else None

    def cut(self, parts: Partition) -> Partition:
        """Return the parts whose first place is at most K."""
        starts = [sum(map(len, parts[:p])) for p in range(len(parts))]
        return tuple(
            part for part, start in zip(parts, starts, strict=True) if start < self.n_positions
        )

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        super().learn(ranking, clicks)
        self.led[self.partition] += 1
        for i, j, difference in comparisons(self.memory, ranking, clicks):
            self.difference[i, j] += difference
            self.compared[i, j] += abs(difference)

    def holds(self) -> dict[str, Any]:
        return {"difference": self.difference, "compared": self.compared}


def parts_of(labels: Sequence[int]) -> Partition:
    """Return the parts in order, given the number of each item's part. Items with a negative number
    are in no part.
    """
    return tuple(
        frozenset(item for item, label in enumerate(labels) if label == part)
        for part in sorted(set(labels))
        if part >= 0
    )


def _beyond_half(index: float) -> tuple[bool, ...]:
    """Return the possible answers to whether an index is above 1/2: both answers if rounding
    decides (for example, with n = 1, no click and T = 2), otherwise one.
    """
    return (True, False) if abs(index - 0.5) <= CLOSE else (index > 0.5,)
