"""Codecs: which ranked lists the actions of plain spaces represent."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, short
from ..core.sums import weighted_sums
from .spaces import RankedList, check_order


def order_of_items(items: ArrayLike | None, n_items: int) -> NDArray[np.int64]:
    """Check the order in which action numbers represent items.

    Args:
        items: ``(L,)`` all items; None is ``0..L-1``.
        n_items: L.

    Raises:
        ValueError: ``items`` is not a permutation.
    """
    return np.arange(n_items) if items is None else check_order("items", items, n_items).copy()


def ranked_lists(space: gym.Space, noun: str) -> RankedList:
    """Return a space of lists; the TypeError names the actions that would represent them."""
    if not isinstance(space, RankedList):
        raise TypeError(f"{noun} represent ranked lists; the action space is {space}")
    return space


def _at(index: NDArray[np.int64], streams: tuple[int, ...]) -> str:
    """Return the stream of an entry of a batch, for messages."""
    return f"environment {index[0]}: " if streams else ""


class ScoresCodec:
    """An action gives each item a score; the list shows the items with the largest scores.

    Args:
        lists: the space of lists.
        items: as in `order_of_items`.
        streams: ``()``, or ``(B,)`` for a vector environment.
    """

    def __init__(
        self, lists: gym.Space, items: ArrayLike | None, streams: tuple[int, ...] = ()
    ) -> None:
        lists = ranked_lists(lists, "Scores")
        self.n_positions, self.streams = lists.n_positions, streams
        self.items = order_of_items(items, lists.n_items)
        self.space = Box(-1.0, 1.0, (lists.n_items,), np.float32)

    def decode(self, actions: Any) -> NDArray[np.int64]:
        """Return the ``(*streams, K)`` lists that scores ``(*streams, L)`` represent."""
        scores, shape = as_array("actions", actions), (*self.streams, *self.space.shape)
        if scores.shape != shape or scores.dtype.kind not in "iuf":
            raise ValueError(
                f"scores are an array of numbers of shape {shape}; got {scores.dtype} of shape "
                f"{scores.shape}"
            )
        bad = np.argwhere(np.isnan(scores))
        if len(bad):
            raise ValueError(f"{_at(bad[0], self.streams)}score {bad[0][-1]} is nan")
        order = np.argsort(-scores.astype(np.float64), axis=-1, kind="stable")
        return self.items[order[..., : self.n_positions]]


class WeightsCodec:
    """An action weighs the features; the list shows the candidates with the largest weighted sums.

    Args:
        lists, streams: as in `ScoresCodec`.
        n_features: d.
    """

    def __init__(self, lists: gym.Space, n_features: int, streams: tuple[int, ...] = ()) -> None:
        self.n_positions = ranked_lists(lists, "Weights").n_positions
        self.streams, self.space = streams, Box(-1.0, 1.0, (n_features,), np.float32)

    def decode(self, actions: Any, features: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the ``(*streams, K)`` lists that weights ``(*streams, d)`` choose among candidates
        with features ``(*streams, L, d)``.
        """
        weights, shape = as_array("weights", actions), (*self.streams, *self.space.shape)
        expected = f"expected {shape[-1]} finite numbers"
        if weights.shape != shape or weights.dtype.kind not in "iuf":
            each = f" for each of {shape[0]} environments" if self.streams else ""
            raise ValueError(f"weights are {short(actions)}; {expected}{each}")
        weights = weights.astype(np.float64)
        bad = np.argwhere(~np.isfinite(weights))
        if len(bad):
            one = weights[tuple(bad[0][:-1])]
            raise ValueError(f"{_at(bad[0], self.streams)}weights are {short(one)}; {expected}")
        # a power of two changes no order, and sums of the largest and smallest numbers stay exact
        _, exponents = np.frexp(np.abs(weights).max(axis=-1, keepdims=True))
        weights = np.ldexp(weights, -exponents)
        sums = weighted_sums(features, weights[..., None, :])
        return np.argsort(-sums, axis=-1, kind="stable")[..., : self.n_positions]


class Draft:
    """Unfinished lists, one for each stream, all of the same length; arguments as in `ScoresCodec`.

    Attributes:
        placed: ``(*streams, K, L)`` int8, 1 if a position holds the item of a number.
        position: the next position.
    """

    def __init__(
        self, lists: gym.Space, items: ArrayLike | None, streams: tuple[int, ...] = ()
    ) -> None:
        lists = ranked_lists(lists, "Items chosen one by one")
        self.n_items, self.n_positions, self.streams = lists.n_items, lists.n_positions, streams
        self.items = order_of_items(items, self.n_items)
        self.clear()

    def clear(self) -> None:
        """Start new lists."""
        self.placed = np.zeros((*self.streams, self.n_positions, self.n_items), np.int8)
        self.position = 0

    def place(self, choices: Any) -> None:
        """Put the items of the chosen numbers, of shape ``streams``, at the next position; a number
        that is already on the list stands for the next one that is not.
        """
        choices = as_array("choices", choices)
        if choices.shape != self.streams or choices.dtype.kind not in "iu":
            raise ValueError(
                f"a choice is an integer array of shape {self.streams}; got {choices.dtype} of "
                f"shape {choices.shape}"
            )
        bad = np.argwhere((choices < 0) | (choices >= self.n_items))
        if len(bad):
            where = _at(bad[0], self.streams)
            raise ValueError(
                f"{where}the choice is {choices[tuple(bad[0])]}; expected 0 to {self.n_items - 1}"
            )
        following = (choices[..., None] + np.arange(self.n_items)) % self.n_items
        first = np.take_along_axis(self.left, following, axis=-1).argmax(axis=-1, keepdims=True)
        chosen = np.take_along_axis(following, first, axis=-1)
        np.put_along_axis(self.placed[..., self.position, :], chosen, 1, axis=-1)
        self.position += 1

    @property
    def complete(self) -> bool:
        """Whether all positions are filled."""
        return self.position == self.n_positions

    @property
    def left(self) -> NDArray[np.bool_]:
        """``(*streams, L)`` booleans: the numbers that are not yet placed."""
        return np.logical_not(self.placed.any(axis=-2))

    @property
    def rankings(self) -> NDArray[np.int64]:
        """Return the complete lists, ``(*streams, K)``."""
        return self.items[self.placed.argmax(axis=-1)]


def flat_draft(placed: NDArray[np.int8], last: NDArray[Any]) -> NDArray[np.float32]:
    """Return unfinished lists, ``placed`` of a `Draft`, and the last observations as arrays: the
    items on the list, the next position, and the last observation.
    """
    return np.concatenate(
        [placed.any(axis=-2), placed.any(axis=-1), last], axis=-1, dtype=np.float32
    )
