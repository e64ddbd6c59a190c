"""The action space of ranked lists: K distinct items out of L, as one action or as a batch of them.

Shapes: L items (``n_items``), K positions (``n_positions``), n lists in a batch. Items and
positions count from 0, in error messages too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, check_count, check_positions, check_seed, is_sequence, short

_INT64 = np.dtype(np.int64)

# The table of `_draw_weighted` has 2**m columns for m positions with weights of their own.
_MOST_WEIGHTED_POSITIONS = 12


def check_order(name: str, order: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """Check that ``order`` has each of the L item ids once; the ValueError names it."""
    try:
        return check_ranking(order, n_items, n_items)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} is {short(order)}; expected each item id from 0 to {n_items - 1} exactly once"
        ) from None


def check_ranking(ranking: ArrayLike, n_items: int, n_positions: int) -> NDArray[np.int64]:
    """Check that ``ranking`` is a list of K distinct items.

    Args:
        ranking: (K,) integers, an array or anything NumPy makes one of; booleans and floats are
            refused.
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
    # For so few elements a list and a set are several times faster than NumPy.
    if type(ranking) is np.ndarray and ranking.dtype == _INT64 and ranking.shape == (n_positions,):
        items = ranking.tolist()
        if len(set(items)) == n_positions and min(items) >= 0 and max(items) < n_items:
            return ranking
    array = as_array("ranking", ranking)
    if array.shape != (n_positions,):
        raise ValueError(
            f"a ranking has shape ({n_positions},), one item for each position; "
            f"got shape {array.shape}"
        )
    items = array.tolist()
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"a ranking holds integers, the numbers of the items; got {array.dtype} in {items!r}"
        )
    position_of: dict[int, int] = {}
    for position, item in enumerate(items):
        if not 0 <= item < n_items:
            _refuse(
                items, f"position {position} shows item {item}, but items are 0 to {n_items - 1}"
            )
        if item in position_of:
            _refuse(
                items,
                f"position {position} shows item {item} again, already at position "
                f"{position_of[item]}",
            )
        position_of[item] = position
    return array.astype(np.int64)


def named_ranking(
    name: str, ranking: ArrayLike, n_items: int, n_positions: int
) -> NDArray[np.int64]:
    """Check a ranking as `check_ranking` does; errors name the argument."""
    try:
        return check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _refuse(items: list[int], fault: str) -> NoReturn:
    raise ValueError(f"bad ranking {items}: {fault} (positions count from 0)")


def decode_lehmer(codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Turn Lehmer codes into ranked lists: code k picks the codes[k]-th smallest of the items not
    yet shown.

    With codes[k] in 0..L-1-k this is one-to-one onto the lists of K distinct items out of L, so
    uniform codes give uniform lists.

    Args:
        codes: (..., K) integers.

    Returns:
        (..., K) int64 lists, a fresh array.

    Example:
        >>> decode_lehmer(np.array([[2, 0, 0], [0, 0, 0], [3, 2, 1]]))
        array([[2, 0, 1],
               [0, 1, 2],
               [3, 2, 1]])
    """
    ranking = np.array(codes, dtype=np.int64)
    # From the right: once position k is inserted, later items that are not below it move up by one.
    for k in range(ranking.shape[-1] - 2, -1, -1):
        ranking[..., k + 1 :] += ranking[..., k + 1 :] >= ranking[..., k : k + 1]
    return ranking


class RankedList(MultiDiscrete):
    """The action space of one session: lists of K distinct items out of L.

    This is a `MultiDiscrete` with L values at each of K positions, whose elements must be distinct.
    Therefore all code that supports `MultiDiscrete` (flattening, spaces of Gymnasium,
    stable-baselines3) also supports this space. ``x in space`` is true exactly if `check_ranking`
    accepts x.

    Args:
        n_items: L, at least 1.
        n_positions: K, from 1 to L.
        seed: seeds `sample`.

    Raises:
        ValueError: K is not in 1..L.

    Example:
        >>> space = RankedList(n_items=10, n_positions=3, seed=0)
        >>> space
        RankedList(n_items=10, n_positions=3)
        >>> [4, 0, 9] in space, [4, 0, 4] in space
        (True, False)
        >>> space.sample() in space
        True
    """

    def __init__(
        self, n_items: int, n_positions: int, seed: int | np.random.Generator | None = None
    ) -> None:
        self.n_items, self.n_positions = _checked_sizes(n_items, n_positions)
        super().__init__(np.full(self.n_positions, self.n_items), np.int64, _checked_seed(seed))

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Draw a list.

        Without arguments every list is equally likely. With a ``mask`` every list that it allows is
        equally likely. With a ``probability`` the positions are drawn independently from it, given
        that their items are distinct: a list has probability proportional to the product of its
        entries. All three laws are exact.

        Args:
            mask: K arrays (L,) of 0 and 1, which items each position allows, or one array (L,) for
                all positions.
            probability: K arrays (L,), the probability of each item at each position, or one array
                (L,) for all; each sums to 1. At most one of ``mask`` and ``probability`` may be
                given.

        Returns:
            (K,) int64 distinct items.

        Raises:
            ValueError: a malformed mask or probability; no list satisfies it (unlike
                `MultiDiscrete`, which then shows the first item); or more than 12 positions have a
                mask of their own (positions that allow every item that any position allows do not
                count).
        """
        if mask is None and probability is None:
            return decode_lehmer(
                self.np_random.integers(self.n_items - np.arange(self.n_positions))
            )
        return _draw_weighted(
            _weights(mask, probability, self.n_items, self.n_positions), self.np_random
        )

    def contains(self, x: Any) -> bool:
        """Whether `check_ranking` accepts ``x``."""
        try:
            check_ranking(x, self.n_items, self.n_positions)
        except (TypeError, ValueError):
            return False
        return True

    def __repr__(self) -> str:
        return f"RankedList(n_items={self.n_items}, n_positions={self.n_positions})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RankedList)
            and self.n_items == other.n_items
            and self.n_positions == other.n_positions
        )


class BatchedRankedList(MultiDiscrete):
    """The action space of a vector environment: batches of n lists of a `RankedList`.

    ``gymnasium.vector.utils.batch_space`` makes it. (Gymnasium's default would be a box, whose
    samples contain duplicates.)

    Args:
        n: the number of lists, at least 1.
        n_items: L.
        n_positions: K, from 1 to L.
        seed: seeds `sample`.

    Raises:
        ValueError: n is below 1 or K is not in 1..L.

    Example:
        >>> batch_space(RankedList(n_items=10, n_positions=3), 2)
        BatchedRankedList(n=2, n_items=10, n_positions=3)
    """

    def __init__(
        self, n: int, n_items: int, n_positions: int, seed: int | np.random.Generator | None = None
    ) -> None:
        self.n = check_count("n", n)
        self.n_items, self.n_positions = _checked_sizes(n_items, n_positions)
        super().__init__(
            np.full((self.n, self.n_positions), self.n_items), np.int64, _checked_seed(seed)
        )

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """Draw n independent lists.

        Args:
            mask: n masks as in `RankedList.sample`.
            probability: n probabilities as in `RankedList.sample`.

        Returns:
            (n, K) int64, distinct items in each row.

        Raises:
            ValueError: as in `RankedList.sample`, or not n of them.
        """
        if mask is None and probability is None:
            bounds = self.n_items - np.arange(self.n_positions)
            return decode_lehmer(self.np_random.integers(bounds, size=self.shape))
        laws = zip(self._for_each(mask), self._for_each(probability), strict=True)
        return np.stack(
            [
                _draw_weighted(_weights(*law, self.n_items, self.n_positions), self.np_random)
                for law in laws
            ]
        )

    def _for_each(self, laws: Any) -> Sequence[Any]:
        """A mask, or a probability, for each list."""
        if laws is None:
            return [None] * self.n
        if not is_sequence(laws) or len(laws) != self.n:
            count = len(laws) if is_sequence(laws) else short(laws)
            raise ValueError(
                f"expected one mask or probability for each of {self.n} lists, got {count}"
            )
        return laws

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is an (n, K) array-like of integers in 0..L-1, distinct in each row."""
        try:
            array = as_array("x", x)
        except ValueError:
            return False
        if array.shape != self.shape or not np.issubdtype(array.dtype, np.integer):
            return False
        ordered = np.sort(array, axis=1)
        distinct = np.all(ordered[:, 1:] != ordered[:, :-1])
        return bool(distinct and ordered[:, 0].min() >= 0 and ordered[:, -1].max() < self.n_items)

    def __repr__(self) -> str:
        return (
            f"BatchedRankedList(n={self.n}, n_items={self.n_items}, n_positions={self.n_positions})"
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BatchedRankedList)
            and self.shape == other.shape  # (n, K)
            and self.n_items == other.n_items
        )


@batch_space.register(RankedList)
def _batch_ranked_list(space: RankedList, n: int = 1) -> BatchedRankedList:
    return BatchedRankedList(n, space.n_items, space.n_positions, seed=deepcopy(space.np_random))


# Inside a Tuple space, `iterate` looks for the exact class, not for a base class.
iterate.register(BatchedRankedList, iterate.dispatch(MultiDiscrete))


def _checked_sizes(n_items: int, n_positions: int) -> tuple[int, int]:
    n_items = check_count("n_items", n_items)
    return n_items, check_positions(n_positions, n_items)


def _checked_seed(seed: int | np.random.Generator | None) -> int | np.random.Generator | None:
    return seed if seed is None or isinstance(seed, np.random.Generator) else check_seed(seed)


_LAWS: dict[str, tuple[Callable[[NDArray[np.float64]], bool], str]] = {
    "mask": (lambda row: bool(np.isin(row, (0, 1)).all()), "hold only 0 and 1"),
    "probability": (
        lambda row: bool((row >= 0).all() and np.isclose(row.sum(), 1)),
        "be at least 0 and sum to 1",
    ),
}
"""What a row of weights must be, by the argument that gives it."""


def _weights(mask: Any, probability: Any, n_items: int, n_positions: int) -> NDArray[np.float64]:
    """The (K, L) weights that a mask or a probability gives to each item at each position,
    checked.
    """
    if mask is not None and probability is not None:
        raise ValueError("only one of mask and probability can be given")
    name, entries = ("mask", mask) if probability is None else ("probability", probability)
    try:
        weights = np.array(entries, dtype=np.float64)
        weights = np.broadcast_to(
            weights, (n_positions, n_items) if weights.ndim == 1 else weights.shape
        )
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (n_positions, n_items):
        raise ValueError(
            f"{name} must be {n_positions} arrays of length {n_items}, one for each position, "
            "or one such array for all"
        )
    is_law, expected = _LAWS[name]
    for position, row in enumerate(weights):
        if not is_law(row):
            raise ValueError(f"{name} of position {position} must {expected}, got {row}")
    return weights


def _totals(
    weights: NDArray[np.float64], usable: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The table of `_draw_weighted`, ``(len(usable) + 1, 2 ** len(places))``.

    Raises:
        ValueError: no list has a positive product.
    """
    sets = np.arange(1 << len(places))
    total = np.zeros((len(usable) + 1, len(sets)))
    total[0, 0] = 1.0
    for i, item in enumerate(usable):
        total[i + 1] = total[i]
        for bit, position in enumerate(places):
            with_position = sets[sets >> bit & 1 == 1]
            total[i + 1, with_position] += (
                weights[position, item] * total[i, with_position ^ (1 << bit)]
            )
    if total[-1, -1] == 0:
        unfillable = min(
            np.flatnonzero(total[-1] == 0), key=lambda positions: int(positions).bit_count()
        )
        crowded = [int(position) for bit, position in enumerate(places) if unfillable >> bit & 1]
        allowed = np.flatnonzero(weights[crowded].any(axis=0)).tolist()
        raise ValueError(
            f"no ranking satisfies this: positions {crowded} allow only items {allowed} "
            "between them"
        )
    return total


def _draw_weighted(weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a list with probability proportional to the product of ``weights[k, ranking[k]]`` over
    the positions k.

    Dynamic programming over the items: ``total[i, s]`` is the sum of those products over all ways
    to fill the set of positions s (a bit mask) with distinct ones of the first i items. Walking
    back from all items and all positions
    draws exactly. Positions that weigh all usable items alike stay out of the table: whatever the
    others took, each completion is equally likely.

    Args:
        weights: (K, L), at least 0.
        rng: the generator to draw from.

    Returns:
        (K,) int64 distinct items.

    Raises:
        ValueError: no list has a positive product, or more than 12 positions need the table.
    """
    n_positions = len(weights)
    usable = np.flatnonzero(weights.any(axis=0))
    if len(usable) < n_positions:
        raise ValueError(
            f"no ranking satisfies this: {n_positions} positions, "
            f"but only items {usable.tolist()} allowed"
        )
    first = weights[:, usable[:1]]
    places = np.flatnonzero((weights[:, usable] != first).any(axis=1) | (first[:, 0] == 0))
    if len(places) > _MOST_WEIGHTED_POSITIONS:
        raise ValueError(
            f"{len(places)} positions have a mask or probability of their own; exact sampling "
            f"takes at most {_MOST_WEIGHTED_POSITIONS} (those that allow all usable items "
            "do not count)"
        )
    total = _totals(weights, usable, places)
    ranking = np.full(n_positions, -1)
    missing = (1 << len(places)) - 1  # the set of positions still to fill
    for i in range(len(usable) - 1, -1, -1):
        if not missing:
            break
        bits = [bit for bit in range(len(places)) if missing >> bit & 1]
        # Item usable[i] goes to one of the missing positions, or (last) to none of them.
        ways = [
            weights[places[bit], usable[i]] * total[i, missing ^ (1 << bit)] for bit in bits
        ] + [total[i, missing]]
        choice = rng.choice(len(ways), p=np.divide(ways, total[i + 1, missing]))
        if choice < len(bits):
            ranking[places[bits[choice]]] = usable[i]
            missing ^= 1 << bits[choice]
    free = ranking < 0
    ranking[free] = rng.choice(np.setdiff1d(usable, ranking), size=int(free.sum()), replace=False)
    return ranking
