"""The base classes of all references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

CLOSE = 1e-9  # the relative difference that rounding may cause between equal numbers


def is_close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= CLOSE * max(1.0, min(abs(a), abs(b)))


def is_in_order(items: Iterable[int], scores: Any, slack: float) -> bool:
    """Whether each item has the largest score among itself and the items after it, up to a
    slack.
    """
    left = set(range(len(scores)))
    for item in items:
        if scores[item] < max(scores[other] for other in left) - slack:
            return False
        left.remove(item)
    return True


def examined_positions(clicks: Sequence[int], feedback: str) -> range:
    """The positions down to the first or last click, or all positions without a click."""
    clicked = [k for k, click in enumerate(clicks) if click]
    if not clicked:
        return range(len(clicks))
    return range((clicked[0] if feedback == "first_click" else clicked[-1]) + 1)


class Reference:
    """An algorithm without random draws. A test asks whether the algorithm allows a list, and tells
    it the clicks on the list.

    What an agent drew besides the list (its choices, its challenger, its posterior samples) is read
    from the agent's state, ``drawn``, after the agent has ranked. This is the base class of the
    references; by itself it allows every list.
    """

    def __init__(self, n_items: int, n_positions: int) -> None:
        self.n_items, self.n_positions, self.t = n_items, n_positions, 1

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        """Whether the algorithm may show the list, in its current state and after these draws."""
        return len(set(ranking)) == self.n_positions and set(ranking) <= set(range(self.n_items))

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        """Learn from the clicks on the list that `allows` was last asked about."""
        self.t += 1

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> Any:
        """Draw lists, for an algorithm whose random choices go beyond the order of ties.

        Args:
            rng: the generator from which the lists are drawn.
            n: the number of lists.
            agent: a twin of the algorithm in the same state, for what the reference cannot know,
                such as the weights of a network or the last sample of a chain.
            features: ``(L, d)`` those of the candidates; only some agents have them.

        Returns:
            ``(n, K)`` independent lists that the algorithm shows in its present state, drawn as
            the docstring of the agent says.
        """
        raise NotImplementedError

    def holds(self) -> dict[str, Any]:
        """The values that the agent's state must hold now, by the names of its fields."""
        return {}

    def agrees(self, state: Any) -> bool:
        """Whether an agent's state equals the algorithm's state: whole numbers exactly, others up
        to rounding.
        """
        for name, want in self.holds().items():
            have, want = np.asarray(getattr(state, name)), np.asarray(want)
            # np.allclose takes five times as long, and this comparison is the most frequent
            same = have == want
            if have.dtype.kind not in "iub" and not same.all():
                with np.errstate(invalid="ignore"):  # differences of infinities are nan
                    same |= (
                        np.abs(have - want)
                        <= CLOSE * np.minimum(np.abs(have), np.abs(want)) + 1e-300
                    )
            if not same.all():
                return False
        return True


class Remembering(Reference):
    """Base of the references that learn from what they remember about the last list shown."""

    memory: Any = None

    def show(self, ranking: list[int], state: Any) -> Any:
        """Return what is to be remembered about a list, or None if the list is not allowed. `state`
        is the agent's state, which holds what was drawn.
        """
        raise NotImplementedError

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.memory = self.show(list(ranking), drawn) if super().allows(ranking) else None
        return self.memory is not None


def comparisons(
    parts: Iterable[Iterable[int]], ranking: Sequence[int], clicks: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """The ordered pairs (i, j) of items in one part, with c_i - c_j. Items that the list leaves out
    count as not clicked.
    """
    click = dict(zip(ranking, clicks, strict=True))
    for part in parts:
        for i, j in permutations(part, 2):
            yield i, j, click.get(i, 0) - click.get(j, 0)


def any_lists(rng: np.random.Generator, n: int, n_items: int, n_positions: int) -> np.ndarray:
    """``(n, K)`` uniformly random lists."""
    return rng.permuted(np.tile(np.arange(n_items), (n, 1)), axis=1)[:, :n_positions]


def lists_by(scores: np.ndarray, places: Any) -> np.ndarray:
    """Return the lists ``(n, K)`` of the largest scores, the k-th largest at ``places[k]``.

    Args:
        scores: ``(n, L)``.
        places: ``(K,)`` for all lists, or ``(n, K)``; or K, for the positions from the top.
    """
    if isinstance(places, int):
        places = range(places)
    places = np.broadcast_to(places, (len(scores), np.shape(places)[-1]))
    lists = np.empty(places.shape, int)
    best = np.argsort(-scores, axis=1, kind="stable")[:, : places.shape[1]]
    np.put_along_axis(lists, places, best, axis=1)
    return lists


class AnyList(Reference):
    """Random: all lists are equally likely."""

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        return any_lists(rng, n, self.n_items, self.n_positions)


class Told(Reference):
    """Fixed and Oracle: the first K items of the list that they are given."""

    def __init__(self, n_items: int, n_positions: int, ranking: Sequence[int]) -> None:
        super().__init__(n_items, n_positions)
        self.ranking = list(ranking)[:n_positions]

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        return list(ranking) == self.ranking
