"""Codecs: which ranked lists the actions of plain spaces represent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, short
from ..core.sums import weighted_sums
from .spaces import RankedList, check_order, decode_lehmer


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


class Codec(ABC):
    """Translation of the actions of a plain space into the lists of a `RankedList` space.

    Args:
        lists: the space.
        items: as in `order_of_items`.
        streams: ``()``, or ``(B,)`` for a vector environment.
    """

    noun: ClassVar[str]
    """The name of its actions, for messages."""
    expected: ClassVar[str]
    """The array of an action in words, for messages."""
    dtype_kinds: ClassVar[str]
    """The NumPy dtype kinds that such an array may have."""
    space: gym.Space

    def __init__(
        self, lists: gym.Space, items: ArrayLike | None, streams: tuple[int, ...] = ()
    ) -> None:
        lists = ranked_lists(lists, self.noun)
        self.n_items, self.n_positions, self.streams = lists.n_items, lists.n_positions, streams
        self.items = order_of_items(items, self.n_items)
        self.sizes = self.n_items - np.arange(self.n_positions)
        self.space = self._space()

    def decode(self, actions: Any) -> NDArray[np.int64]:
        """Return the ``(*streams, K)`` lists that actions represent."""
        actions = as_array("actions", actions)
        shape = (*self.streams, *(self.space.shape or ()))
        if actions.shape != shape or actions.dtype.kind not in self.dtype_kinds:
            raise ValueError(
                f"{self.expected} of shape {shape}; got {actions.dtype} of shape {actions.shape}"
            )
        return self.items[self._numbers(actions)]

    @abstractmethod
    def _space(self) -> gym.Space:
        """Return the space of one action."""

    @abstractmethod
    def _numbers(self, actions: NDArray[Any]) -> NDArray[np.int64]:
        """Return the lists as places in the order of ``items``."""


class LehmerCodec(Codec):
    """An action has K numbers; number k chooses one of the L - k items that are not yet on the
    list.
    """

    noun, expected, dtype_kinds = "Lehmer codes", "a code is an integer array", "iu"

    def _space(self) -> gym.Space:
        return MultiDiscrete(self.sizes)

    def _numbers(self, actions: NDArray[Any]) -> NDArray[np.int64]:
        bad = np.argwhere((actions < 0) | (actions >= self.sizes))
        if len(bad):
            k = bad[0][-1]
            where = _at(bad[0], self.streams)
            raise ValueError(
                f"{where}the code at position {k} is {actions[tuple(bad[0])]}; expected 0 to "
                f"{self.sizes[k] - 1}"
            )
        return decode_lehmer(actions)


class ScoresCodec(Codec):
    """An action gives each item a score; the list shows the items with the largest scores."""

    noun, expected, dtype_kinds = "Scores", "scores are an array of numbers", "iuf"

    def _space(self) -> gym.Space:
        return Box(-1.0, 1.0, (self.n_items,), np.float32)

    def _numbers(self, actions: NDArray[Any]) -> NDArray[np.int64]:
        bad = np.argwhere(np.isnan(actions))
        if len(bad):
            raise ValueError(f"{_at(bad[0], self.streams)}score {bad[0][-1]} is nan")
        return np.argsort(-actions.astype(np.float64), axis=-1, kind="stable")[
            ..., : self.n_positions
        ]


class WeightsCodec:
    """An action weighs the features; the list shows the candidates with the largest weighted sums.

    Args:
        lists, streams: as in `Codec`.
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


CODECS: dict[str, type[Codec]] = {
    "codes": LehmerCodec,
    "scores": ScoresCodec,
}
"""The codecs by the name of their actions; ``"items"``, chosen one by one, use a `Draft`, and
``"weights"``, which depend on features, a `WeightsCodec`.
"""


class Draft:
    """Unfinished lists, one for each stream, all of the same length; arguments as in `Codec`.

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
        """Put the items of the chosen numbers, of shape ``streams``, at the next position; the
        error for a forbidden choice names its item.
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
        chosen = choices[..., None]
        bad = np.argwhere(~np.take_along_axis(self.left, chosen, axis=-1)[..., 0])
        if len(bad):
            stream = tuple(bad[0])
            choice = choices[stream]
            holder = self.placed[stream][:, choice].argmax()
            where, item = _at(bad[0], self.streams), self.items[choice]
            raise ValueError(
                f"{where}choice {choice} (item {item}) is forbidden at position {self.position}: "
                f"position {holder} holds that item; action_masks() has the allowed choices"
            )
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


def next_left(choices: NDArray[np.integer], allowed: NDArray[np.bool_]) -> NDArray[np.integer]:
    """Replace forbidden choices by the next allowed item in order, for a policy without masks.

    Args:
        choices: ``(B,)`` integers in 0..L-1.
        allowed: ``(B, L)`` booleans.

    Example:
        >>> allowed = np.array([[True, True, False], [True, False, False]])
        >>> next_left(np.array([1, 2]), allowed).tolist()
        [1, 0]
    """
    cyclic = (choices[:, None] + np.arange(allowed.shape[1])) % allowed.shape[1]
    return cyclic[
        np.arange(len(allowed)), np.argmax(np.take_along_axis(allowed, cyclic, axis=1), axis=1)
    ]


def flat_draft(observation: dict[str, Any]) -> NDArray[np.float32]:
    """Return an observation of `ItemByItem`, of one stream or several, as one array: the items on
    the list, the next position, and the last observation of the environment.
    """
    placed, last = observation["placed"], observation["observation"]
    position = placed.any(axis=-1)
    return np.concatenate(
        [placed.any(axis=-2), position, last.reshape(*position.shape[:-1], -1)],
        axis=-1,
        dtype=np.float32,
    )
