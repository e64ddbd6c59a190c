"""Ranked lists of K items out of L: functions that check lists, and the action space `RankedList`.

An item can be on a list only once. A policy that chooses each position separately may repeat items;
`without_repeats` turns such an action into the list that is shown.

Shapes: L items (``n_items``), K positions (``n_positions``), n lists in a batch (``n_lists``).
Items and positions are counted from 0, also in error messages.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, check_count, check_positions
from ..core.kernels import entry, kernel
from ..core.messages import as_call

INT64 = np.dtype(np.int64)
MAX_SORTED = 400
"""The largest number of items for which sorting random numbers is the faster way to draw a list."""


def argsort_descending(values: ArrayLike) -> NDArray[np.int64]:
    """Return item ids in order of decreasing value.

    Values are rounded to twelve significant digits before the comparison, because values that are
    mathematically equal may differ in their last bits. Among equal values, the smaller id comes
    first.

    Args:
        values: ``(L,)`` the value of each item.

    Returns:
        ``(L,)`` int64 item ids.

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
        ranking: ``(K,)`` item ids, array-like; booleans and floats are not accepted.
        n_items: L, the number of items.
        n_positions: K, the length of a list.

    Returns:
        The list as an int64 array ``(K,)``; if ``ranking`` already is such an array, the same
        object and not a copy.

    Raises:
        TypeError: the elements are not integers.
        ValueError: the shape is wrong, or an item is out of range or repeated.

    Example:
        >>> check_ranking([2, 0, 1], n_items=4, n_positions=3)
        array([2, 0, 1])
        >>> check_ranking([2, 4], n_items=4, n_positions=3)
        Traceback (most recent call last):
            ...
        ValueError: a ranking has shape (3,), one item for each position; got shape (2,)
    """
    # For few elements, Python's lists and sets are several times faster than NumPy.
    if type(ranking) is np.ndarray and ranking.dtype == INT64 and ranking.shape == (n_positions,):
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
    """Check that an action consists of K items, which may be repeated, and return an int64 copy.

    Arguments and errors are the same as for `check_ranking`, except that repeated items are
    allowed.
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
    """Return the lists in which each repeated item is replaced. A repeated item stays at its first
    position; the other positions get the items that are not listed, in order of their ids.

    Args:
        lists: ``(..., K)`` item ids from 0 to L - 1.
        n_items: L, the number of items, at least K.

    Returns:
        ``(..., K)`` int64, a new array; lists without repeated items are unchanged.

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
    """Replace repeated items in ``lists``, ``(n, K)``, by the rule of `without_repeats`;
    ``is_listed``, ``(L,)``, is working memory.
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
    """Check a list with `check_ranking`, and return it; errors call the argument ``name``."""
    try:
        return check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


class RankedList(MultiDiscrete):
    """Action space of one session: ranked lists of K items out of L.

    The space is a `MultiDiscrete` with L values at each of K positions, so all code that supports
    `MultiDiscrete` (Gymnasium's flattening and other spaces, stable-baselines3) also supports this
    space. Samples are lists of distinct items. The space also contains lists with repeated items,
    because environments accept such lists and show the result of `without_repeats`.

    Args:
        n_items: L, the number of items, at least 1.
        n_positions: K, the length of a list, from 1 to L.
        seed: the seed of `sample`; by default, a random seed.
        n_lists: n, the number of lists in an action of a vector environment; by default, an action
            is a single list.

    Raises:
        ValueError: a size is not a positive integer, or K is greater than L.

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
        """Draw a list of distinct items, or n such lists; all lists are equally likely.

        Args:
            mask, probability: None; accepted only because Gymnasium's spaces have these arguments.

        Returns:
            ``(K,)`` or ``(n, K)`` int64 item ids.

        Raises:
            ValueError: a mask or a probability is given.
        """
        if mask is not None or probability is not None:
            raise ValueError(
                "sample got a mask or a probability; expected None, as all lists are equally likely"
            )
        rng, (*streams, n_positions) = self.np_random, self.shape
        if not streams and self.n_items > MAX_SORTED:
            return rng.choice(self.n_items, n_positions, replace=False)
        return rng.random((*streams, self.n_items)).argsort(axis=-1)[..., :n_positions]

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is an array-like of item ids from 0 to L - 1 that has the shape of a
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
    """Return the action space of a vector environment with ``n`` streams. Gymnasium's default would
    be a `Box`, whose samples repeat items.
    """
    return RankedList(space.n_items, space.n_positions, deepcopy(space.np_random), n)


# Within a Tuple space, `iterate` dispatches on the exact class, not on a base class.
iterate.register(RankedList, iterate.dispatch(MultiDiscrete))


def list_sizes(space: Any) -> tuple[int, int] | None:
    """Return the numbers of items and positions, L and K, of an action space of ranked lists: a
    `RankedList`, or the ``MultiDiscrete([L] * K)`` of an environment of another package. Return
    None if the actions of the space are not lists.
    """
    if not isinstance(space, MultiDiscrete) or space.nvec.ndim != 1 or np.ptp(space.nvec):
        return None
    return int(space.nvec[0]), len(space.nvec)
