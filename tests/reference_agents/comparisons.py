"""References of the agents that compare items with one another: BatchRank, TopRank, BubbleRank."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .bounds import lower_bound, upper_bound
from .reference import Remembering, comparisons

# ---------------------------------------------------------------------------------------- BatchRank


class BatchRankReference(Remembering):
    """Reference of BatchRank: Zoghi et al. 2017, Algorithms 1-4. Line 16 is read as `if s = 0`."""

    def __init__(self, n_items: int, n_positions: int, horizon: int) -> None:
        super().__init__(n_items, n_positions)
        self.log_horizon = math.log(horizon)
        self.delta = self.log_horizon + 3 * math.log(self.log_horizon)
        self.active = [1]
        self.b_max = 1
        self.positions = {1: (1, n_positions)}  # I_b
        self.stage = {1: 0}
        self.remaining = {(1, 0): set(range(n_items))}  # B_{b,l}
        self.count: Counter[tuple[int, int, int]] = Counter()  # n_{b,l}(d)
        self.clicked: Counter[tuple[int, int, int]] = Counter()  # c_{b,l}(d)

    def length(self, stage: int) -> int:
        return math.ceil(16 * (2.0**-stage) ** -2 * self.log_horizon)

    def batches(self) -> list[tuple[int, int, int, frozenset[int]]]:
        """Return the first position (counted from 0), the number of positions, the stage and the
        items of each active batch, from top to bottom.
        """
        found = []
        for b in self.active:
            (top, bottom), stage = self.positions[b], self.stage[b]
            found.append((top - 1, bottom - top + 1, stage, frozenset(self.remaining[b, stage])))
        return sorted(found)

    def _items(self, b: int) -> tuple[int, set[int], dict[int, int], int]:
        stage = self.stage[b]
        items = self.remaining[b, stage]
        counts = {d: self.count[b, stage, d] for d in items}
        return stage, items, counts, min(counts.values())

    def show(self, ranking: list[int], state: Any) -> Any:
        """Return the positions whose clicks count, which hold no filler, with their batches."""
        counted = []
        for b in self.active:
            top, bottom = self.positions[b]
            _, items, counts, n_min = self._items(b)
            shown = ranking[top - 1 : bottom]
            if (
                not set(shown) <= items
                or sorted(counts[d] for d in shown) != sorted(counts.values())[: len(shown)]
            ):
                return None
            counted += [(k, b) for k, d in enumerate(shown, top - 1) if counts[d] == n_min]
        return counted

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> Any:
        return [self.draw(rng) for _ in range(n)]

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Return the items of each batch with the fewest displays, in random order; ties are broken
        at random.
        """
        ranking = [0] * self.n_positions
        for b in self.active:
            top, bottom = self.positions[b]
            _, items, counts, _ = self._items(b)
            in_turn = sorted(rng.permutation(sorted(items)).tolist(), key=counts.__getitem__)
            ranking[top - 1 : bottom] = rng.permutation(in_turn[: bottom - top + 1]).tolist()
        return ranking

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        for k, b in self.memory:
            of_item = b, self.stage[b], ranking[k]
            if self.count[of_item] < self.length(self.stage[b]):
                self.count[of_item] += 1
                self.clicked[of_item] += clicks[k]
        for b in list(self.active):
            self._update_batch(b)

    def _update_batch(self, b: int) -> None:
        stage, items, _, n_min = self._items(b)
        top, bottom = self.positions[b]
        length, n = bottom - top + 1, self.length(stage)
        if n_min != n or len(items) == 1:
            return
        upper, lower = {}, {}
        for d in items:
            estimate = self.clicked[b, stage, d] / n
            upper[d] = upper_bound(estimate, self.delta / n)
            lower[d] = lower_bound(estimate, self.delta / n)
        d_ = sorted(items, key=lambda d: -lower[d])
        s = 0
        for k in range(1, length):
            if lower[d_[k - 1]] > max(upper[d] for d in d_[k:]):
                s = k
        if s == 0:
            self.remaining[b, stage + 1] = {d for d in items if upper[d] >= lower[d_[length - 1]]}
            self.stage[b] = stage + 1
        else:
            self.active.remove(b)
            for part, where in ((d_[:s], (top, top + s - 1)), (d_[s:], (top + s, bottom))):
                self.b_max += 1
                self.active.append(self.b_max)
                self.positions[self.b_max], self.stage[self.b_max] = where, 0
                self.remaining[self.b_max, 0] = set(part)

    def agrees(self, state: Any) -> bool:
        """Return whether the agent has the same batches, and the same displays and clicks within
        each batch.
        """
        batches = [
            (
                int(state.first[b]),
                int(state.first[b + 1] - state.first[b]),
                int(state.stage[b]),
                frozenset(state.items[state.first[b] : state.first[b] + state.size[b]].tolist()),
            )
            for b in range(state.n_batches[0])
        ]
        if batches != self.batches():
            return False
        for b in self.active:
            stage, items, counts, _ = self._items(b)
            if len(items) > 1 and any(
                state.observed[d] != counts[d] or state.clicks[d] != self.clicked[b, stage, d]
                for d in items
            ):
                return False
        return True


# ------------------------------------------------------------------------------------------ TopRank


class TopRankReference(Remembering):
    """Reference of TopRank: Lattimore et al. 2018, Algorithm 1, for the pairs of items in one
    block.
    """

    def __init__(
        self, n_items: int, n_positions: int, horizon: int | None, delta: float | None
    ) -> None:
        super().__init__(n_items, n_positions)
        self.items, self.delta = range(n_items), delta or 1 / horizon
        self.c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
        self.s = np.zeros((n_items, n_items), int)
        self.n = np.zeros((n_items, n_items), int)
        self.better: set[tuple[int, int]] = set()  # (i, j): i beats j

    def blocks(self) -> list[set[int]]:
        left, found = set(self.items), []
        while left:
            beaten = {j for i, j in self.better if i in left and j in left}
            found.append(left - beaten or set(left))
            left -= found[-1]
        return found

    def show(self, ranking: list[int], state: Any) -> Any:
        blocks, start = self.blocks(), 0
        for block in blocks:
            if not set(ranking[start : start + len(block)]) <= block:
                return None
            start += len(block)
        return blocks

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        blocks = [np.tile(sorted(block), (n, 1)) for block in self.blocks()]
        shuffled = [rng.permuted(block, axis=1) for block in blocks]
        return np.hstack(shuffled)[:, : self.n_positions]

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        for i, j, difference in comparisons(self.memory, ranking, clicks):
            self.s[i, j] += difference
            self.n[i, j] += abs(difference)
            n = self.n[i, j]
            if n > 0 and self.s[i, j] >= math.sqrt(
                2 * n * math.log(self.c * math.sqrt(n) / self.delta)
            ):
                self.better.add((i, j))

    def agrees(self, state: Any) -> bool:
        """Return whether the agent has the same relation, the same blocks, and the same S and N."""
        relation = {(int(i), int(j)) for i, j in np.argwhere(state.beats)}
        blocks = [
            set(state.order[state.start[b] : state.start[b + 1]].tolist())
            for b in range(state.n_blocks[0])
        ]
        return (
            relation == self.better
            and blocks == self.blocks()
            and np.array_equal(state.wins - state.wins.T, self.s)
            and np.array_equal(state.wins + state.wins.T, self.n)
        )


# --------------------------------------------------------------------------------------- BubbleRank


class BubbleRankReference(Remembering):
    """Reference of BubbleRank: Li et al. 2019, Algorithm 1, with the random challenger of section
    4.3.
    """

    edges = {"horizon": (2,)}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        initial: Sequence[int],
        delta: float | None,
        horizon: int | None,
        base: Sequence[int],
    ) -> None:
        super().__init__(n_items, n_positions)
        self.initial, self.base = list(base), list(base)  # `initial` may leave out items
        self.log_delta = 4 * math.log(horizon or 2) if delta is None else -math.log(delta)
        self.doubling, self.estimate = delta is None and horizon is None, 2
        self.s: Counter[tuple[int, int]] = Counter()
        self.n: Counter[tuple[int, int]] = Counter()
        self.n_exchanges = 0

    def better(self, i: int, j: int) -> bool:
        return self.s[i, j] > 2 * math.sqrt(self.n[i, j] * self.log_delta)

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of neighbouring positions whose items this session may exchange."""
        pairs = [(k, k + 1) for k in range(1 - self.t % 2, self.n_positions - 1, 2)]
        return [(k, below) for k, below in pairs if not self.better(self.base[k], self.base[below])]

    def is_challenged(self) -> bool:
        """Return whether the last position is in no pair of this session, and some item may
        challenge the item there.
        """
        in_pair = {
            k
            for first in range(1 - self.t % 2, self.n_positions - 1, 2)
            for k in (first, first + 1)
        }
        return self.n_positions - 1 not in in_pair and len(self.eligible()) > 0

    def eligible(self) -> list[int]:
        last = self.base[self.n_positions - 1]
        return [item for item in self.base[self.n_positions :] if not self.better(last, item)]

    def show(self, ranking: list[int], state: Any) -> Any:
        if self.doubling and self.t - 1 == self.estimate:  # at time n + 1
            self.estimate *= 2
            self.log_delta = 4 * math.log(self.estimate)
            self.base = self.initial.copy()
        challenger = None if state.rivals[1] < 0 else int(state.rivals[1])
        if (challenger is not None) != self.is_challenged() or (
            challenger is not None and challenger not in self.eligible()
        ):
            return None
        expected = self.base[: self.n_positions]
        for k, below in self.pairs():
            if ranking[k] == expected[below]:
                expected[k], expected[below] = expected[below], expected[k]
        if challenger is not None and ranking[-1] == challenger:
            expected[-1] = challenger
        if ranking != expected:
            return None
        pairs = [(self.base[k], self.base[below]) for k, below in self.pairs()]
        if challenger is not None:
            pairs.append((self.base[self.n_positions - 1], challenger))
        return pairs, challenger

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        """Draw lists: a fair coin decides about each pair and about the challenger, which is a
        random eligible item.
        """
        found = np.tile(self.base[: self.n_positions], (n, 1))
        for pair in self.pairs():
            exchanged = rng.random(n) < 0.5
            found[np.ix_(exchanged, pair)] = found[np.ix_(exchanged, pair[::-1])]
        if self.is_challenged():
            challenged = rng.random(n) < 0.5
            found[challenged, -1] = rng.choice(self.eligible(), challenged.sum())
        return found

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        super().learn(ranking, clicks)
        pairs, challenger = self.memory
        for i, j, difference in comparisons(pairs, ranking, clicks):
            self.s[i, j] += difference
            self.n[i, j] += abs(difference)
        base, last = self.base, self.n_positions - 1
        for k in range(last):
            if self.better(base[k + 1], base[k]):
                base[k], base[k + 1] = base[k + 1], base[k]
                self.n_exchanges += 1
        for item in (challenger, pairs[-1][0]) if challenger is not None else ():
            place = base.index(item)
            if place > last and self.better(item, base[last]):
                base[last], base[place] = base[place], base[last]
                self.n_exchanges += 1

    def holds(self) -> dict[str, Any]:
        items = range(self.n_items)
        tables = {
            name: [[plain[i, j] for j in items] for i in items]
            for name, plain in (("s", self.s), ("n", self.n))
        }
        return tables | {"base": self.base, "t": [self.t - 1]}
