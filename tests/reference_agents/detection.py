"""Reference of GLR-CascadeKLUCB, the cascade agent that restarts when a test finds a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import rel_entr

from .indices import CascadeReference
from .reference import Reference, is_close


def glr_statistics(observations: Sequence[int]) -> np.ndarray:
    """Return s KL(m_{1:s}, m_{1:n}) + (n - s) KL(m_{s+1:n}, m_{1:n}) for s = 1 .. n - 1."""
    n, sums = len(observations), np.cumsum(observations)
    s, mean = np.arange(1, n), sums[-1] / n
    before, after = sums[:-1] / s, (sums[-1] - sums[:-1]) / (n - s)
    return s * _kl(before, mean) + (n - s) * _kl(after, mean)


def _kl(p: np.ndarray, q: float) -> np.ndarray:
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


class GLRReference(CascadeReference):
    """Reference of GLR-CascadeKLUCB, with an index from all sessions since the last restart, forced
    exploration, and a full scan of all splits.

    The agent once draws the order in which it forces items to the top. The reference infers this
    order from the lists, and requires it to stay the same. With an exploration of 0, no item is
    forced. All observations are remembered, so ``n_vertices`` is not used.
    """

    edges = {"n_segments": (9,)}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        horizon: int,
        n_segments: int = 1,
        delta: float | None = None,
        exploration: float | None = None,
        feedback: str = "last_click",
        n_vertices: int = 0,
    ) -> None:
        super().__init__(n_items, n_positions, feedback)
        self.log_delta = -math.log(horizon) if delta is None else math.log(delta)
        self.p = (
            min(1.0, math.sqrt(n_segments * n_items * math.log(horizon) / horizon))
            if exploration is None
            else exploration
        )
        self.observations: list[list[int]] = [[] for _ in range(n_items)]
        self.u = self.finished = 0
        self.restarts: list[int] = []
        """The number of finished sessions at each restart."""
        self.explored: dict[int, int] = {}
        """The items of the random order that the lists have revealed so far."""

    def slot(self) -> int | None:
        """Return the place, in the random order, of the item that this session must show on top."""
        if self.p == 0:
            return None
        slot = math.fmod(self.u, float(np.floor(self.n_items / self.p)))
        return int(slot) if slot < self.n_items else None

    def index(self, item: int) -> float:
        self.t = self.u + 1
        return super().index(item)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        slot = self.slot()
        if slot is None:
            return super().allows(ranking)
        top, index = ranking[0], self.indices()
        if self.explored.get(slot, None if top in self.explored.values() else top) != top:
            return False
        self.explored[slot] = top
        best = sorted(index, reverse=True)
        best.remove(index[top])
        return Reference.allows(self, ranking) and all(
            is_close(index[item], x)
            for item, x in zip(ranking[1:], best[: self.n_positions - 1], strict=True)
        )

    def has_changed(self, item: int) -> bool:
        """Return whether the largest statistic is at least log(3 n^{3/2} / δ)."""
        n = len(self.observations[item])
        if n < 2:
            return False
        threshold = math.log(3) + 1.5 * math.log(n) - self.log_delta
        return bool(glr_statistics(self.observations[item]).max() >= threshold)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.finished += 1
        self.u += 1
        examined = self.examined(clicks)
        for k in examined:
            self.observations[ranking[k]].append(clicks[k])
        if any(self.has_changed(ranking[k]) for k in examined):
            self.observations = [[] for _ in range(self.n_items)]
            self.restarts.append(self.finished)
            self.u = 0
        self.clicks = [sum(seen) for seen in self.observations]
        self.seen = [len(seen) for seen in self.observations]

    def holds(self) -> dict[str, Any]:
        return super().holds() | {"t": [self.u], "n_restarts": [len(self.restarts)]}
