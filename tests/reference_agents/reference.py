"""What every reference is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

CLOSE = 1e-9  # what rounding may make of equal numbers, relative to them


def is_close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= CLOSE * max(1.0, min(abs(a), abs(b)))


def is_in_order(items: Iterable[int], scores: Any, slack: float) -> bool:
    """Whether each item has the largest score of those not before it, up to a slack."""
    left = set(range(len(scores)))
    for item in items:
        if scores[item] < max(scores[other] for other in left) - slack:
            return False
        left.remove(item)
    return True


def examined_positions(clicks: Sequence[int], feedback: str) -> range:
    """The positions down to the first or last click, all without a click."""
    clicked = [k for k, click in enumerate(clicks) if click]
    if not clicked:
        return range(len(clicks))
    return range((clicked[0] if feedback == "first_click" else clicked[-1]) + 1)


class Reference:
    """An algorithm that draws nothing: it is asked whether it allows a list, and told the clicks on
    it.

    What an agent drew beside the list (its choices, its challenger, its samples of a posterior) is
    read from the agent's state, ``drawn``, after it has ranked. Base of the references, which by
    itself allows every list.
    """

    def __init__(self, n_items: int, n_positions: int) -> None:
        self.n_items, self.n_positions, self.t = n_items, n_positions, 1
        self.available: Collection[int] = range(n_items)
        """The items that can be shown."""

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        """Whether the algorithm may show the list, in its present state and after these draws."""
        return len(set(ranking)) == self.n_positions and set(ranking) <= set(self.available)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        """The clicks on the list that `allows` was asked about last."""
        self.t += 1

    def holds(self) -> dict[str, Any]:
        """What the agent's state must hold now, by the names of its fields."""
        return {}

    def agrees(self, state: Any) -> bool:
        """Whether an agent's state is that of the algorithm; whole numbers to the digit, others up
        to rounding.
        """
        for name, want in self.holds().items():
            have, want = np.asarray(getattr(state, name)), np.asarray(want)
            # as np.allclose, which takes five times as long, is asked most of all
            same = have == want
            if have.dtype.kind not in "iub" and not same.all():
                with np.errstate(invalid="ignore"):  # of infinities, which are the same or not
                    same |= (
                        np.abs(have - want)
                        <= CLOSE * np.minimum(np.abs(have), np.abs(want)) + 1e-300
                    )
            if not same.all():
                return False
        return True


class Clicks(NamedTuple):
    """What arrives of a display."""

    ranking: Sequence[int]
    clicks: Sequence[int]  # -1 where the list was cut off
    void: Sequence[bool]

    def samples(self) -> dict[int, int]:
        """The click on each item that tells something."""
        entries = zip(self.ranking, self.clicks, self.void, strict=True)
        return {item: click for item, click, void in entries if click >= 0 and not void}

    @property
    def is_cut(self) -> bool:
        return self.clicks[-1] < 0


class Remembering(Reference):
    """Base of the references that remember what they need of a display, whose clicks may come late.

    `show` and `arrive` are the algorithm; `allows` and `learn` are the same where clicks come at
    once.
    """

    def __init__(self, n_items: int, n_positions: int) -> None:
        super().__init__(n_items, n_positions)
        self.age = [0] * n_items
        self.memory: Any = None

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        """What is remembered of a list, None if it is not allowed; `state` is that of the agent,
        which holds what was drawn.
        """
        raise NotImplementedError

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        raise NotImplementedError

    def replace(self, item: int) -> None:
        raise NotImplementedError

    def comparisons(
        self, parts: Iterable[Iterable[int]], age: Sequence[int], arrived: Clicks
    ) -> Iterator[tuple[int, int, int]]:
        """The ordered pairs (i, j) of items in one part of a display of which the clicks tell
        something, with c_i - c_j.

        What the list left out, unless it was cut off, is not clicked; ``age`` is that of the
        display.
        """
        samples = arrived.samples()
        for i, j in (pair for part in parts for pair in permutations(part, 2)):
            hidden = [item for item in (i, j) if item not in samples]
            if not any(
                arrived.is_cut or item in arrived.ranking or age[item] != self.age[item]
                for item in hidden
            ):
                yield i, j, samples.get(i, 0) - samples.get(j, 0)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.memory = (
            self.show(list(ranking), drawn, set(self.available))
            if super().allows(ranking)
            else None
        )
        return self.memory is not None

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.arrive(self.memory, Clicks(ranking, clicks, [False] * self.n_positions))


class Numbered(Reference):
    """Base of the references of agents that learn from any list at any time, of which they remember
    the number of the display.

    Of somebody else's session that is the number of a display made when it comes.
    """

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
        self.count(
            number,
            arrived.ranking,
            clicks,
            [k for k in self.examined(clicks) if not arrived.void[k]],
        )

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.arrive(None, Clicks(ranking, clicks, [False] * self.n_positions))
        self.t = self.n_displays + 1

    def examined(self, clicks: Sequence[int]) -> range:
        return range(len(clicks))

    def count(
        self, number: int, ranking: Sequence[int], clicks: Sequence[int], positions: Sequence[int]
    ) -> None:
        """The clicks of a display on what stood at the positions that tell something."""
        raise NotImplementedError

    def replace(self, item: int) -> None:
        raise NotImplementedError


class Told(Reference):
    """Fixed and Oracle: the front of the list that they are told."""

    def __init__(self, n_items: int, n_positions: int, ranking: Sequence[int]) -> None:
        super().__init__(n_items, n_positions)
        self.ranking = list(ranking)[:n_positions]

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        return list(ranking) == self.ranking
