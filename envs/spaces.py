"""Ranked lists: their checks, and the action space of lists of K items out of L, as one action or
as a batch.

An item can be on a list only once. A policy that chooses each position separately may repeat items;
`without_repeats` then makes the list that is shown.

Shapes: L items (``n_items``), K positions (``n_positions``), n lists in a batch (``n_lists``).
Items and positions count from 0, also in error messages.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, as_call, check_count, check_positions
from ..core.kernels import entry, kernel

_INT64 = np.dtype(np.int64)
SORTED = 400
"""Up to this number of items, a list is drawn faster by sorting random numbers."""


def argsort_descending(values: ArrayLike) -> NDArray[np.int64]:
    """Return item ids by decreasing value. Values are compared in twelve significant digits,
    because values that are mathematically equal may differ in their last bits; among equal values
    the smaller id comes first.

    Args:
        values: ``(L,)`` numbers.

    Returns:
        ``(L,)`` int64.

    Example:
        >>> argsort_descending([0.3, 0.1 + 0.2, 0.5])
        array([2, 0, 1])
    """
    numbers = np.asarray(values, np.float64).tolist()
    rounded = np.array([float(f"{value:.11e}") for value in numbers])
    return np.argsort(-rounded, kind="stable")


def check_ranking(ranking: ArrayLike, n_items: int, n_positions: int) -> NDArray[np.int64]:
    """Check that ``ranking`` is a list of K distinct items.

    Args:
        ranking: (K,) integers, array-like; booleans and floats are not accepted.
        n_items: L.
        n_positions: K.

    Returns:
        The (K,) int64 array; ``ranking`` itself, not a copy, if it already is one.

    Raises:
        TypeError: the elements are not integers.
        ValueError: the shape is wrong, an item is out of range or shown twice; the message names
            the position.

    Example:
        >>> check_ranking([2, 0, 1], n_items=4, n_positions=3)
        array([2, 0, 1])
        >>> check_ranking([2, 4], n_items=4, n_positions=3)
        Traceback (most recent call last):
            ...
        ValueError: a ranking has shape (3,), one item for each position; got shape (2,)
    """
    # For few elements Python's lists and sets are several times faster than NumPy.
    if type(ranking) is np.ndarray and ranking.dtype == _INT64 and ranking.shape == (n_positions,):
        items = ranking.tolist()
        if len(set(items)) == n_positions and min(items) >= 0 and max(items) < n_items:
            return ranking
    array = check_items(ranking, n_items, n_positions)
    items = array.tolist()
    for position, item in enumerate(items):
        if item in items[:position]:
            raise ValueError(f"bad ranking {items}: position {position} shows item {item} again")
    return array


def check_items(action: ArrayLike, n_items: int, n_positions: int) -> NDArray[np.int64]:
    """Check that an action holds K items, which may be repeated, and return a copy. Arguments and
    other errors are those of `check_ranking`.
    """
    array = as_array("ranking", action)
    if array.shape != (n_positions,):
        raise ValueError(
            f"a ranking has shape ({n_positions},), one item for each position; "
            f"got shape {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(f"a ranking holds integers, the item ids; got {array.dtype}")
    if array.min() < 0 or array.max() >= n_items:
        raise ValueError(f"bad ranking {array.tolist()}: items are 0 to {n_items - 1}")
    return array.astype(np.int64)


def without_repeats(lists: NDArray[np.int64], n_items: int) -> NDArray[np.int64]:
    """Return lists that show each item once: a repeated item stays at its first place, and the free
    places get the items that are not listed, in order of their numbers.

    Args:
        lists: ``(..., K)`` items from 0 to L - 1.
        n_items: L, at least K.

    Returns:
        A new array of the same shape; lists without repeated items are equal to the given ones.

    Example:
        >>> without_repeats(np.array([[3, 7, 3, 0, 7], [4, 2, 0, 1, 3]]), n_items=10)
        array([[3, 7, 1, 0, 2],
               [4, 2, 0, 1, 3]])
    """
    rankings = np.array(lists, np.int64)
    rows = rankings.reshape(-1, rankings.shape[-1])
    entry(replace_repeats)(rows, np.empty(n_items, np.bool_))
    return rankings


@kernel
def replace_repeats(lists, is_listed):
    """Change ``(n, K)`` lists as `without_repeats` says; ``is_listed``, ``(L,)``, is working
    memory.
    """
    for b in range(len(lists)):
        ranking = lists[b]
        is_listed[:] = False
        for k in range(len(ranking)):
            item = ranking[k]
            ranking[k] = -1 if is_listed[item] else item
            is_listed[item] = True
        other = 0
        for k in range(len(ranking)):
            if ranking[k] < 0:
                while is_listed[other]:
                    other += 1
                ranking[k] = other
                other += 1


def named_ranking(
    name: str, ranking: ArrayLike, n_items: int, n_positions: int
) -> NDArray[np.int64]:
    """Return a ranking as `check_ranking` does; errors name the argument."""
    try:
        return check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


class RankedList(MultiDiscrete):
    """The action space of one session: lists of K items out of L.

    This is a `MultiDiscrete` with L values at each of K positions. Therefore all code that supports
    `MultiDiscrete` (flattening, spaces of Gymnasium, stable-baselines3) also supports this space.
    Samples of this space are lists of distinct items. The space also contains lists that repeat
    items, because environments accept such lists, and show what `without_repeats` makes of them.

    Args:
        n_items: L, at least 1.
        n_positions: K, from 1 to L.
        seed: seeds `sample`.
        n_lists: n, for batches of n lists, the actions of a vector environment; by default, single
            lists.

    Raises:
        ValueError: K is not in 1..L.

    Example:
        >>> space = RankedList(n_items=10, n_positions=3, seed=0)
        >>> space
        RankedList(n_items=10, n_positions=3)
        >>> [4, 0, 9] in space, [4, 0, 4] in space, [4, 0, 10] in space
        (True, True, False)
        >>> len(set(space.sample().tolist()))
        3
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        seed: int | np.random.Generator | None = None,
        n_lists: int | None = None,
    ) -> None:
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self.n_lists = None if n_lists is None else check_count("n_lists", n_lists)
        streams = () if self.n_lists is None else (self.n_lists,)
        super().__init__(np.full((*streams, self.n_positions), self.n_items), np.int64, seed)

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Draw a list of distinct items, or n of them. Every such list is equally likely.

        Args:
            mask, probability: must be None; arguments of Gymnasium's spaces.

        Returns:
            ``(K,)`` or ``(n, K)`` int64.

        Raises:
            ValueError: a mask or a probability is given.
        """
        if mask is not None or probability is not None:
            raise ValueError(
                "sample takes no mask and no probability: every list is equally likely"
            )
        rng, (*streams, n_positions) = self.np_random, self.shape
        if not streams and self.n_items > SORTED:
            return rng.choice(self.n_items, n_positions, replace=False)
        return rng.random((*streams, self.n_items)).argsort(axis=-1)[..., :n_positions]

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is an array-like of integers from 0 to L - 1 with the shape of a
        sample.
        """
        try:
            array = as_array("x", x)
        except ValueError:
            return False
        if array.shape != self.shape or array.dtype.kind not in "iu":
            return False
        return bool(array.min() >= 0 and array.max() < self.n_items)

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, **sizes, n_lists=self.n_lists)


@batch_space.register(RankedList)
def _batch_of_lists(space: RankedList, n: int = 1) -> RankedList:
    """Return the space of a vector environment. Gymnasium's default would be a box, whose samples
    repeat items.
    """
    return RankedList(space.n_items, space.n_positions, deepcopy(space.np_random), n)


# Within a Tuple space, `iterate` dispatches on the exact class, not on a base class.
iterate.register(RankedList, iterate.dispatch(MultiDiscrete))
