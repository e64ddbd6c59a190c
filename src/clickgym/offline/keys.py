"""Numbers of many keys by a compiled hash table: of labels that are numbers, and of pairs of query and item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import kernel

Long = NDArray[np.int64]
Ints = NDArray[np.int32]
PART = 1 << 14
"""Rows that are numbered at a time: the table has room for as many new keys, and is small where few are new."""


class Keys:
    """The keys that there were, each of two integers, numbered in the order in which they came.

    Attributes:
        n: how many.
        slots: the hash table of numbers, -1 where it is empty; never more than half full, or it would be searched for ever.
    """

    def __init__(self) -> None:
        self.n, self.slots, self._keys = 0, np.full(2, -1, np.int32), np.empty((0, 2), np.int64)

    def numbers(self, first: Long, second: Long) -> tuple[Ints, Ints]:
        """The number of each key, and the rows in which there are new keys, in the order of their numbers."""
        (numbers, new), n_new = np.empty((2, len(first)), np.int32), 0
        for start in range(0, len(first), PART):
            part = slice(start, start + PART)
            self._make_room(len(first[part]))
            more = number_keys(first[part], second[part], self.slots, self._keys, self.n, numbers[part], new[n_new:])
            new[n_new : n_new + more] += start
            n_new, self.n = n_new + more, self.n + more
        return numbers, new[:n_new]

    def _make_room(self, n_more: int) -> None:
        most = self.n + n_more
        if 2 * most > len(self.slots):
            self.slots = np.full(1 << int(2 * most).bit_length(), -1, np.int32)
            number_keys(*self._keys[: self.n].T.copy(), self.slots, self._keys, 0, *np.empty((2, self.n), np.int32))
        if most > len(self._keys):
            self._keys = np.concatenate([self._keys[: self.n], np.empty((most, 2), np.int64)])


@kernel
def number_keys(first, second, slots, keys, n_keys, numbers, new):  # type: ignore[no-untyped-def]
    """Set the number of each row's key; keys that were not there get the next ones. ``new`` is set to the rows of these, and
    their number is returned. ``slots``, a power of two, is a hash table of numbers, -1 where it is empty.
    """
    mask, n_new = len(slots) - 1, 0
    for row in range(len(first)):
        mixed = first[row] * np.int64(-7046029254386353131)
        slot = (mixed ^ (mixed >> 32)) & mask
        while True:
            key = slots[slot]
            if key < 0:
                key = n_keys + n_new
                slots[slot], keys[key, 0], keys[key, 1], new[n_new] = key, first[row], second[row], row
                n_new += 1
                break
            if keys[key, 0] == first[row] and keys[key, 1] == second[row]:
                break
            slot = (slot + 1) & mask
        numbers[row] = key
    return n_new
