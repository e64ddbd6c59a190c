"""Base classes and functions that all references share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

CLOSE = 1e-9  # the relative difference that rounding may cause between equal numbers


def is_close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= CLOSE * max(1.0, min(abs(a), abs(b)))


def is_in_order(items: Iterable[int], scores: Any, slack: float) -> bool:
    """Return whether each item's score is at least the score of every later item, up to a slack."""
    left = set(range(len(scores)))
    for item in items:
        if scores[item] < max(scores[other] for other in left) - slack:
            return False
        left.remove(item)
    return True


def examined_positions(clicks: Sequence[int], feedback: str) -> range:
    """Return the positions down to the first or last click, or all positions without a click or if
    the feedback is ``"all"``.
    """
    clicked = [k for k, click in enumerate(clicks) if click]
    if not clicked or feedback == "all":
        return range(len(clicks))
    return range((clicked[0] if feedback == "first_click" else clicked[-1]) + 1)


class Reference:
    """Base class of the references, which allows every list. A reference is an algorithm without
    random draws: a test asks the reference whether it allows a list, and passes it the clicks on
    the list.

    What an agent drew besides the list (its choices, its challenger, its posterior samples) is read
    from the agent's state, ``drawn``, after the agent has ranked. A subclass overrides the methods
    that differ.
    """

    def __init__(self, n_items: int, n_positions: int) -> None:
        self.n_items, self.n_positions, self.t = n_items, n_positions, 1

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        """Return whether the algorithm may show the list, in its current state and after the
        agent's draws.
        """
        return len(set(ranking)) == self.n_positions and set(ranking) <= set(range(self.n_items))

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        """Learn from the clicks on the list that was last passed to `allows`."""
        self.t += 1

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> Any:
        """Draw lists, for an algorithm whose random choices go beyond the order of ties.

        Args:
            rng: the generator from which the lists are drawn.
            n: the number of lists.
            agent: the agent in the same state, from which the reference reads what it cannot
                compute, such as the weights of a network or the last draw of a chain.
            features: ``(L, d)`` the features of the candidates, for agents that read features.

        Returns:
            ``(n, K)`` independent lists that the algorithm shows in its current state, drawn as the
            agent's docstring describes.
        """
        raise NotImplementedError

    def holds(self) -> dict[str, Any]:
        """Return the values that the agent's state must now have, in a mapping from field names."""
        return {}

    def agrees(self, state: Any) -> bool:
        """Return whether an agent's state equals the algorithm's state: integers exactly, other
        numbers up to rounding.
        """
        for name, want in self.holds().items():
            have, want = np.asarray(getattr(state, name)), np.asarray(want)
            # np.allclose would take five times as long, and no comparison is more frequent than
            # this one
            same = have == want
            if have.dtype.kind not in "iub" and not same.all():
                slack = CLOSE * np.minimum(np.abs(have), np.abs(want)) + 1e-300
                with np.errstate(invalid="ignore"):  # differences of infinities are nan
                    same |= np.abs(have - want) <= slack
            if not same.all():
                return False
        return True


class Remembering(Reference):
    """Base class of the references that learn from what they remember about the last list."""

    memory: Any = None

    def show(self, ranking: list[int], state: Any) -> Any:
        """Return what the reference must remember about a list, or None if it does not allow the
        list. `state` is the agent's state, which contains the agent's draws.
        """
        raise NotImplementedError

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.memory = self.show(list(ranking), drawn) if super().allows(ranking) else None
        return self.memory is not None


def comparisons(
    parts: Iterable[Iterable[int]], ranking: Sequence[int], clicks: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the ordered pairs (i, j) of items in one part, with c_i - c_j. Items that the list
    leaves out count as not clicked.
    """
    click = dict(zip(ranking, clicks, strict=True))
    for part in parts:
        for i, j in permutations(part, 2):
            yield i, j, click.get(i, 0) - click.get(j, 0)


def any_lists(rng: np.random.Generator, n: int, n_items: int, n_positions: int) -> np.ndarray:
    """Return ``(n, K)`` uniformly random lists."""
    return rng.permuted(np.tile(np.arange(n_items), (n, 1)), axis=1)[:, :n_positions]


def lists_by(scores: np.ndarray, places: Any) -> np.ndarray:
    """Return the lists ``(n, K)`` of the items with the largest scores, the k-th largest at
    ``places[k]``.

    Args:
        scores: ``(n, L)`` the scores of all items, for each list.
        places: ``(K,)`` positions for all lists, or ``(n, K)`` positions for each list; or the
            number K, for the positions from the top.
    """
    if isinstance(places, int):
        places = range(places)
    places = np.broadcast_to(places, (len(scores), np.shape(places)[-1]))
    lists = np.empty(places.shape, int)
    best = np.argsort(-scores, axis=1, kind="stable")[:, : places.shape[1]]
    np.put_along_axis(lists, places, best, axis=1)
    return lists


class AnyList(Reference):
    """Reference of Random: all lists are equally likely. Its arguments do not matter."""

    def __init__(self, n_items: int, n_positions: int, **arguments: Any) -> None:
        super().__init__(n_items, n_positions)

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        return any_lists(rng, n, self.n_items, self.n_positions)


class Told(Reference):
    """Reference of Fixed and Oracle: they show the first K items of the given list."""

    def __init__(self, n_items: int, n_positions: int, ranking: Sequence[int]) -> None:
        super().__init__(n_items, n_positions)
        self.ranking = list(ranking)[:n_positions]

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        return list(ranking) == self.ranking
