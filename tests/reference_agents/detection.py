"""Cascade agents that start again when a test finds a change: GLR-CascadeUCB and
GLR-CascadeKLUCB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import rel_entr

from .indices import LateCascade
from .reference import Reference, is_close


def glr_statistics(observations: Sequence[int]) -> np.ndarray:
    """s KL(m_{1:s}, m_{1:n}) + (n - s) KL(m_{s+1:n}, m_{1:n}) at all splits s = 1 .. n - 1."""
    n, sums = len(observations), np.cumsum(observations)
    s, mean = np.arange(1, n), sums[-1] / n
    before, after = sums[:-1] / s, (sums[-1] - sums[:-1]) / (n - s)
    return s * _kl(before, mean) + (n - s) * _kl(after, mean)


def _kl(p: np.ndarray, q: float) -> np.ndarray:
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


class GLRReference(LateCascade):
    """The cascade agent's index by the sessions since the last restart, forced exploration, and a
    full scan of all splits.

    The order of the items to explore is drawn once and not told: it is seen from the lists that
    show them, and must stay. An exploration of 0 is none. An item that cannot be shown loses its
    turn. Clicks are observed as they come.

    Args:
        kind: ``"UCB1"`` or ``"KL"``.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        kind: str,
        horizon: int,
        n_segments: int = 1,
        delta: float | None = None,
        exploration: float | None = None,
        feedback: str = "last_click",
    ) -> None:
        super().__init__(n_items, n_positions, kind, feedback)
        self.log_delta = -math.log(horizon) if delta is None else math.log(delta)
        self.p = (
            min(1.0, math.sqrt(n_segments * n_items * math.log(horizon) / horizon))
            if exploration is None
            else exploration
        )
        self.observations: list[list[int]] = [[] for _ in range(n_items)]
        self.u = self.finished = 0
        self.restarts: list[int] = []
        """How many sessions were finished at each restart."""
        self.explored: dict[int, int] = {}
        """The items of the random order, as far as they were seen."""

    def slot(self) -> int | None:
        """The place in the random order of the item that this session must show on top."""
        if self.p == 0:
            return None
        slot = math.fmod(self.u, float(np.floor(self.n_items / self.p)))
        return int(slot) if slot < self.n_items else None

    def index(self, item: int) -> float:
        self.t = self.u + 1
        return super().index(item)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        slot = self.slot()
        is_absent = slot in self.explored and self.explored[slot] not in self.available
        might_be_absent = slot not in self.explored and len(self.available) < self.n_items
        if slot is None or is_absent or (might_be_absent and super().allows(ranking)):
            return super().allows(ranking)
        top, index = ranking[0], self.indices()
        if self.explored.get(slot, None if top in self.explored.values() else top) != top:
            return False
        self.explored[slot] = top
        best = sorted((index[item] for item in self.available), reverse=True)
        best.remove(index[top])
        return Reference.allows(self, ranking) and all(
            is_close(index[item], x)
            for item, x in zip(ranking[1:], best[: self.n_positions - 1], strict=True)
        )

    def threshold(self, n: int) -> float:
        """log(3 n^{3/2} / δ)"""
        return math.log(3) + 1.5 * math.log(n) - self.log_delta

    def has_changed(self, item: int) -> bool:
        n = len(self.observations[item])
        return n > 1 and bool(glr_statistics(self.observations[item]).max() >= self.threshold(n))

    def make_display(self) -> int:
        self.finished += 1
        self.u += 1
        return super().make_display()

    def count(
        self, number: int, ranking: Sequence[int], clicks: Sequence[int], positions: Sequence[int]
    ) -> None:
        if not self.restarts or number > self.restarts[-1]:  # else its display was made before
            self.observe([(ranking[k], clicks[k]) for k in positions])

    def replace(self, item: int) -> None:
        super().replace(item)
        self.observations[item] = []

    def observe(self, examined: Sequence[tuple[int, int]]) -> None:
        """The items of a session that were examined, each with its click."""
        for item, click in examined:
            self.observations[item].append(click)
        restarted = any(self.has_changed(item) for item, _ in examined)
        if restarted:
            self.observations = [[] for _ in range(self.n_items)]
            self.restarts.append(self.finished)
            self.u = 0
        self.clicks = [sum(seen) for seen in self.observations]
        self.seen = [len(seen) for seen in self.observations]

    def holds(self) -> dict[str, Any]:
        return super().holds() | {"t": [self.u], "n_restarts": [len(self.restarts)]}
