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
from .late_displays import Clicks
from .posterior import PBMHBReference
from .reference import CLOSE, Reference, examined_positions, is_close


class LateCounts(Reference):
    """What all have; the keyword arguments are readings that they are not.

    Args:
        t_of_arrivals: t counts the displays whose clicks have come, and the present one.
        void_counts: a replaced item's click counts.
        void_is_no_click: a replaced item's click is taken for none before the last click is looked for.
        replaced_stays: an item that is replaced keeps what is known of it.
    """

    def __init__(
        self,
        *arguments: Any,
        t_of_arrivals: bool = False,
        void_counts: bool = False,
        void_is_no_click: bool = False,
        replaced_stays: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(*arguments, **others)
        self.t_of_arrivals, self.void_counts, self.void_is_no_click = t_of_arrivals, void_counts, void_is_no_click
        self.replaced_stays = replaced_stays
        self.n_displays = self.n_arrived = 0

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        self.available = available
        self.t = self.coming()
        is_allowed = self.allows(ranking, state)
        number = self.make_display()
        return number if is_allowed else None

    def coming(self) -> int:
        """t of the list that comes."""
        return (self.n_arrived if self.t_of_arrivals else self.n_displays) + 1

    def make_display(self) -> int:
        """The number of a display that is made; or of a session of somebody else."""
        self.n_displays += 1
        return self.n_displays

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        number = self.make_display() if memory is None else memory
        self.n_arrived += 1
        clicks = [click for click in arrived.clicks if click >= 0]
        if self.void_is_no_click:
            clicks = [0 if void else click for click, void in zip(clicks, arrived.void, strict=False)]
        self.count(number, arrived.ranking, clicks, self.samples(clicks, arrived.void))

    def samples(self, clicks: list[int], void: list[bool]) -> list[int]:
        """The positions that tell something, of those that were shown."""
        return [k for k in self.looked_at(clicks) if self.void_counts or not void[k]]

    def looked_at(self, clicks: list[int]) -> range:
        return range(len(clicks))

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        """The clicks of a display on what stood at the positions."""
        raise NotImplementedError

    def replace(self, item: int) -> None:
        if not self.replaced_stays:
            self.forget(item)

    def forget(self, item: int) -> None:
        raise NotImplementedError


class LateCascade(LateCounts, IndexReference):
    """Of the list that was shown, down to the last click (or the first) with void ones, the entries that are not void."""

    feedback: str

    def looked_at(self, clicks: list[int]) -> range:
        return examined_positions(clicks, self.feedback)

    def forget(self, item: int) -> None:
        self.clicks[item] = self.seen[item] = 0


class LateWithIndices(LateCascade):
    """The agent's indices are compared, too: they tell more than the lists."""

    def allows(self, ranking: Any, drawn: Any = None, features: Any = None) -> bool:
        index = self.indices()
        return super().allows(ranking, drawn) and all(is_close(drawn.indices[item], index[item]) for item in self.available)


class LateDUCB(LateWithIndices, DiscountedReference):
    """Clicks have faded since their display; ``undiminished`` counts them as if it had just been made."""

    def __init__(self, *arguments: Any, undiminished: bool = False, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.undiminished = undiminished
        self.gammas: list[float] = []  # of the displays

    def make_display(self) -> int:
        number = super().make_display()
        self.gammas.append(self.gamma(number))
        self.clicks = [self.gammas[-1] * x for x in self.clicks]
        self.seen = [self.gammas[-1] * n for n in self.seen]
        return number

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        weight = 1.0 if self.undiminished else math.prod(self.gammas[number:])
        for k in positions:
            self.seen[ranking[k]] += weight
            self.clicks[ranking[k]] += weight * clicks[k]


class LateSWUCB(LateWithIndices, WindowReference):
    """The window is of the last τ displays; ``by_arrivals`` is one of the last τ whose clicks have come.

    With ``from_arrival`` clicks stay in the window for τ displays after they came.
    """

    def __init__(self, *arguments: Any, by_arrivals: bool = False, from_arrival: bool = False, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.by_arrivals, self.from_arrival = by_arrivals, from_arrival
        self.samples_of: list[tuple[int, int, int]] = []  # number, item, click

    def make_display(self) -> int:
        number = super().make_display()
        if not self.by_arrivals:
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
        now = self.n_arrived if self.by_arrivals else self.n_displays
        number = now if self.by_arrivals or self.from_arrival else number
        self.samples_of += [(number, ranking[k], clicks[k]) for k in positions]
        self.leave(now)

    def forget(self, item: int) -> None:
        super().forget(item)
        self.samples_of = [sample for sample in self.samples_of if sample[1] != item]


class LateGLR(LateCascade, GLRReference):
    """Clicks of displays made since the last restart, in the order in which they come.

    u counts the displays since then, or those that come with ``t_of_arrivals``; ``earlier_segments`` counts clicks of displays
    made before it, too; ``replaced_restarts`` restarts when an item is replaced.
    """

    def __init__(self, *arguments: Any, earlier_segments: bool = False, replaced_restarts: bool = False, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.earlier_segments, self.replaced_restarts = earlier_segments, replaced_restarts

    def make_display(self) -> int:
        self.finished += 1
        self.u += not self.t_of_arrivals
        return super().make_display()

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        if self.earlier_segments or not self.restarts or number > self.restarts[-1]:
            self.u += self.t_of_arrivals
            self.observe([(ranking[k], clicks[k]) for k in positions])

    def forget(self, item: int) -> None:
        super().forget(item)
        self.observations[item] = []
        if self.replaced_restarts:
            self.observations, self.u = [[] for _ in range(self.n_items)], 0


class LatePBMPIE(LateCounts, PBMPIEReference):
    """The start is of the first L displays; what was never seen is never a leader while there are others.

    ``unseen_first`` and ``start_again``, after an item is replaced, are other readings.
    """

    def __init__(self, *arguments: Any, unseen_first: bool = False, start_again: bool = False, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.unseen_first, self.start_again, self.started = unseen_first, start_again, 0

    def indices(self) -> list[float]:
        unseen = math.inf if self.unseen_first else -math.inf
        return [index if seen else unseen for index, seen in zip(super().indices(), self.seen, strict=True)]

    def coming(self) -> int:
        return super().coming() - self.started

    def count(self, number: int, ranking: list[int], clicks: list[int], positions: list[int]) -> None:
        for k in positions:
            self.seen[ranking[k]] += 1
            self.clicks[ranking[k]] += clicks[k]
            self.shown[ranking[k]][k] += 1
            self.clicked[ranking[k]][k] += clicks[k]

    def replace(self, item: int) -> None:
        super().replace(item)
        if self.start_again:
            self.started = self.n_displays

    def forget(self, item: int) -> None:
        self.clicks[item] = self.seen[item] = 0
        self.shown[item], self.clicked[item] = [0] * self.n_positions, [0] * self.n_positions


class LatePBMHB(LateCounts, PBMHBReference):
    """One step of the chain a display, by what has come; its random numbers are those of an agent of the same seed.

    ``steps_on_arrival`` goes on when clicks come, not at displays; ``chain_stays`` leaves the θ of an item that is replaced.
    """

    def __init__(
        self, *arguments: Any, seed: int, steps_on_arrival: bool = False, chain_stays: bool = False, **others: Any
    ) -> None:
        super().__init__(*arguments, **others)
        self.steps_on_arrival, self.chain_stays = steps_on_arrival, chain_stays
        self.rng = np.random.default_rng(seed)
        self.point = self.start(self.rng)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        point = rng.random(self.n_items + self.n_positions)
        if self.fix_first:
            point[self.n_items] = 1.0
        return point

    def sample(self, point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """With the steps of the agent; a number is drawn to accept one only where the ratio leaves a choice."""
        for coordinate in self.coordinates() * self.n_sweeps:
            new = step_within(rng, point[coordinate], self.sigma())
            ratio = self.log_ratio(point, coordinate, new, self.sigma())
            if ratio >= 0 or rng.random() < math.exp(ratio):
                point[coordinate] = new
        return point.copy()

    def allows(self, ranking: Any, drawn: Any = None, features: Any = None) -> bool:
        if not self.steps_on_arrival or self.n_displays == 0:
            self.point = self.sample(self.point, self.rng)
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
        if self.steps_on_arrival:
            self.point = self.sample(self.point, self.rng)

    def forget(self, item: int) -> None:
        self.shown[item] = self.clicks[item] = 0
        if not self.chain_stays:
            self.point[item] = self.rng.random()

    def agrees(self, state: Any) -> bool:
        return super().agrees(state) and self.is_at(state)


__all__ = [name for name in dir() if name.startswith("Late")]
