"""Agents that learn from any list at any time, whose late clicks fade, leave a window, or are of an earlier segment.

The references of `indices`, `detection` and `posterior` with ``show``, ``arrive`` and ``replace``, as in `late_displays`. What
they remember of a display is its number: of somebody else's session it is that of a display made when it comes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clickgym.agents.pbmhb import step_within

from .detection import GLRReference
from .indices import DiscountedReference, IndexReference, PBMPIEReference, WindowReference
from .posterior import PBMHBReference
from .reference import CLOSE, Clicks, Reference, examined_positions, is_close


class LateCounts(Reference):
    """What all have."""

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.n_displays = 0

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        self.available = available
        self.t = self.n_displays + 1
        is_allowed = self.allows(ranking, state)
        number = self.make_display()
        return number if is_allowed else None

    def make_display(self) -> int:
        """The number of a display that is made; or of a session of somebody else."""
        self.n_displays += 1
        return self.n_displays

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        number = self.make_display() if memory is None else memory
        clicks = [click for click in arrived.clicks if click >= 0]
        self.count(number, arrived.ranking, clicks, [k for k in self.looked_at(clicks) if not arrived.void[k]])

    def looked_at(self, clicks: list[int]) -> range:
        return range(len(clicks))

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        """The clicks of a display on what stood at the positions that tell something."""
        raise NotImplementedError

    def replace(self, item: int) -> None:
        raise NotImplementedError


class LateCascade(LateCounts, IndexReference):
    """Of the list that was shown, down to the last click (or the first) with void ones, the entries that are not void."""

    feedback: str

    def looked_at(self, clicks: list[int]) -> range:
        return examined_positions(clicks, self.feedback)

    def replace(self, item: int) -> None:
        self.clicks[item] = self.seen[item] = 0


class LateWithIndices(LateCascade):
    """The agent's indices are compared, too: they tell more than the lists."""

    def allows(self, ranking: Any, drawn: Any = None, features: Any = None) -> bool:
        index = self.indices()
        return super().allows(ranking, drawn) and all(is_close(drawn.indices[item], index[item]) for item in self.available)


class LateDUCB(LateWithIndices, DiscountedReference):
    """Clicks have faded since their display."""

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.gammas: list[float] = []  # of the displays

    def make_display(self) -> int:
        number = super().make_display()
        self.gammas.append(self.gamma(number))
        self.clicks = [self.gammas[-1] * x for x in self.clicks]
        self.seen = [self.gammas[-1] * n for n in self.seen]
        return number

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        weight = math.prod(self.gammas[number:])
        for k in positions:
            self.seen[ranking[k]] += weight
            self.clicks[ranking[k]] += weight * clicks[k]


class LateSWUCB(LateWithIndices, WindowReference):
    """The window is of the last τ displays."""

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.samples_of: list[tuple[int, int, int]] = []  # number, item, click

    def make_display(self) -> int:
        number = super().make_display()
        self.leave(number)
        return number

    def leave(self, now: int) -> None:
        """Sums anew from what is not older than the window, and never was."""
        self.forgotten = max(self.forgotten, now - self.tau(now))
        self.samples_of = [sample for sample in self.samples_of if sample[0] > self.forgotten]
        self.clicks, self.seen = [0] * self.n_items, [0] * self.n_items
        for _, item, click in self.samples_of:
            self.clicks[item] += click
            self.seen[item] += 1

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        self.samples_of += [(number, ranking[k], clicks[k]) for k in positions]
        self.leave(self.n_displays)

    def replace(self, item: int) -> None:
        super().replace(item)
        self.samples_of = [sample for sample in self.samples_of if sample[1] != item]


class LateGLR(LateCascade, GLRReference):
    """Clicks of displays made since the last restart, in the order in which they come; u counts the displays since then."""

    def make_display(self) -> int:
        self.finished += 1
        self.u += 1
        return super().make_display()

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        if not self.restarts or number > self.restarts[-1]:
            self.observe([(ranking[k], clicks[k]) for k in positions])

    def replace(self, item: int) -> None:
        super().replace(item)
        self.observations[item] = []


class LatePBMPIE(LateCounts, PBMPIEReference):
    """The start is of the first L displays; what was never seen is never a leader while there are others."""

    def indices(self) -> list[float]:
        return [index if seen else -math.inf for index, seen in zip(super().indices(), self.seen, strict=True)]

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        for k in positions:
            self.seen[ranking[k]] += 1
            self.clicks[ranking[k]] += clicks[k]
            self.shown[ranking[k]][k] += 1
            self.clicked[ranking[k]][k] += clicks[k]

    def replace(self, item: int) -> None:
        self.clicks[item] = self.seen[item] = 0
        self.shown[item], self.clicked[item] = [0] * self.n_positions, [0] * self.n_positions


class LatePBMHB(LateCounts, PBMHBReference):
    """One step of the chain a display, by what has come; its random numbers are those of an agent of the same seed."""

    def __init__(self, *arguments: Any, seed: int, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.rng = np.random.default_rng(seed)
        self.point = self.rng.random(self.n_items + self.n_positions)
        if self.fix_first:
            self.point[self.n_items] = 1.0

    def allows(self, ranking: Any, drawn: Any = None, features: Any = None) -> bool:
        """With the steps of the agent; a number is drawn to accept one only where the ratio leaves a choice."""
        self.point = self.point.copy()
        for coordinate in self.coordinates() * self.n_sweeps:
            new = step_within(self.rng, self.point[coordinate], self.sigma())
            ratio = self.log_ratio(self.point, coordinate, new, self.sigma())
            if ratio >= 0 or self.rng.random() < math.exp(ratio):
                self.point[coordinate] = new
        return self.is_at(drawn) and super().allows(ranking, drawn)

    def is_at(self, state: Any) -> bool:
        """Whether the agent's sample is this one, whose digits are then taken over: rounding does not add up."""
        sample = np.concatenate([state.theta, state.kappa])
        is_same = np.allclose(sample, self.point, rtol=CLOSE)
        self.point = sample if is_same else self.point
        return is_same

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        for k in positions:
            self.shown[ranking[k], k] += 1
            self.clicks[ranking[k], k] += clicks[k]

    def replace(self, item: int) -> None:
        self.shown[item] = self.clicks[item] = 0
        self.point[item] = self.rng.random()

    def agrees(self, state: Any) -> bool:
        return super().agrees(state) and self.is_at(state)


__all__ = [name for name in dir() if name.startswith("Late")]
