"""Cascade agents that start again when a test finds a change: GLR-CascadeUCB and GLR-CascadeKLUCB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import rel_entr

from .indices import CascadeReference
from .reference import Reference, is_close


def glr_statistics(observations: Sequence[int]) -> np.ndarray:
    """s KL(m_{1:s}, m_{1:n}) + (n - s) KL(m_{s+1:n}, m_{1:n}) at all splits s = 1 .. n - 1."""
    n, sums = len(observations), np.cumsum(observations)
    s, mean = np.arange(1, n), sums[-1] / n
    before, after = sums[:-1] / s, (sums[-1] - sums[:-1]) / (n - s)
    return s * _kl(before, mean) + (n - s) * _kl(after, mean)


def _kl(p: np.ndarray, q: float) -> np.ndarray:
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


class GLRReference(CascadeReference):
    """The cascade agent's index by the sessions since the last restart, forced exploration, and a full scan of all splits.

    The order of the items to explore is drawn once and not told: it is seen from the lists that show them, and must stay.
    An exploration of 0 is none. An item that cannot be shown loses its turn. The keyword arguments after ``*`` are readings
    that it is not.

    Args:
        kind: ``"UCB1"`` or ``"KL"``.
        restart_all: a change of one item restarts all.
        since_restart: the logarithm is of the sessions since the restart, not of all.
        since_one: that number has the present session in it, as the t of the cascade agents.
        count_from: u of the first session after a restart.
        test_every, split_every: how often an item is tested, and at which splits.
        own_length: n in the threshold is the item's number of observations, not that of sessions.
        session_first: the test comes after all observations of a session.
        rest_by_index: the items under a forced one stand by index; it does not change places with the best one.
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
        *,
        restart_all: bool = True,
        since_restart: bool = True,
        since_one: bool = True,
        count_from: int = 0,
        test_every: int = 1,
        split_every: int = 1,
        own_length: bool = True,
        session_first: bool = True,
        rest_by_index: bool = True,
    ) -> None:
        super().__init__(n_items, n_positions, kind, feedback)
        self.log_delta = -math.log(horizon) if delta is None else math.log(delta)
        self.p = min(1.0, math.sqrt(n_segments * n_items * math.log(horizon) / horizon)) if exploration is None else exploration
        self.restart_all, self.since_restart, self.since_one, self.count_from = (
            restart_all,
            since_restart,
            since_one,
            count_from,
        )
        self.test_every, self.split_every = test_every, split_every
        self.own_length, self.session_first, self.rest_by_index = own_length, session_first, rest_by_index
        self.observations: list[list[int]] = [[] for _ in range(n_items)]
        self.u, self.finished = count_from, 0
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
        sessions = self.u if self.since_restart else self.finished
        self.t = sessions + 1 if self.since_one else max(sessions, 1)
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
        if self.rest_by_index:
            best.remove(index[top])
        else:  # the forced item changes places with the best one
            best[best.index(index[top])] = best[0]
            del best[0]
        return Reference.allows(self, ranking) and all(
            is_close(index[item], x) for item, x in zip(ranking[1:], best[: self.n_positions - 1], strict=True)
        )

    def threshold(self, n: int) -> float:
        """log(3 n^{3/2} / δ)"""
        return math.log(3) + 1.5 * math.log(n) - self.log_delta

    def has_changed(self, item: int) -> bool:
        n = len(self.observations[item])
        if n < 2 or n % self.test_every:
            return False
        splits = glr_statistics(self.observations[item])[self.split_every - 1 :: self.split_every]
        return bool(len(splits) and splits.max() >= self.threshold(n if self.own_length else self.u - self.count_from))

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.finished += 1
        self.u += 1
        self.observe([(ranking[k], int(clicks[k])) for k in self.examined(clicks)])

    def observe(self, examined: Sequence[tuple[int, int]]) -> None:
        """The items of a session that were examined, each with its click."""
        restarted = False
        for item, click in examined:
            self.observations[item].append(click)
            if not self.session_first and self.has_changed(item):
                restarted = True
                self._restart(item)
        changed = [item for item, _ in examined if self.has_changed(item)]
        for item in changed[:1] if self.restart_all else changed:
            restarted = True
            self._restart(item)
        self.clicks = [sum(seen) for seen in self.observations]
        self.seen = [len(seen) for seen in self.observations]
        if restarted:
            self.restarts.append(self.finished)
            self.u = self.count_from

    def _restart(self, item: int) -> None:
        for other in range(self.n_items) if self.restart_all else [item]:
            self.observations[other] = []

    def holds(self) -> dict[str, Any]:
        return super().holds() | {"t": [self.u - self.count_from], "n_restarts": [len(self.restarts)]}


GLR_READINGS = {
    "the changed item restarts alone": {"restart_all": False},
    "the logarithm of all sessions": {"since_restart": False},
    "the logarithm of finished sessions": {"since_one": False},
    "u from 1": {"count_from": 1},
    "a test at every 10th observation": {"test_every": 10},
    "every 10th split": {"split_every": 10},
    "n of the threshold counts sessions": {"own_length": False},
    "a test after every observation": {"session_first": False},
    "the forced item changes places": {"rest_by_index": False},
}
"""Arguments of the readings that it is not, by name."""
