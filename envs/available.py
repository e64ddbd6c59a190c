"""Items that can be shown: a random set in every session (the argument ``available``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import kernel


class AvailableState(NamedTuple):
    """The items that can be shown on S streams, as the kernels read them."""

    size: int  # M
    uniforms: NDArray[np.float64]  # (S, L) of the next session
    deck: NDArray[np.int64]  # (L,) working memory
    mask: NDArray[np.bool_]  # (S, L) which items the next list may show


def available_state(n_streams: int, n_items: int, size: int) -> AvailableState:
    """The state of S streams, before the first draw.

    Args:
        n_streams: S.
        n_items: L.
        size: M, how many items can be shown in each session.
    """
    mask = np.tile(np.arange(n_items) < size, (n_streams, 1))
    return AvailableState(size, np.empty((n_streams, n_items)), np.arange(n_items), mask)


@kernel
def draw_available(available, stream):  # type: ignore[no-untyped-def]
    """Draw the items of the next session by a partial shuffle; ``available.uniforms[stream]`` holds its L uniforms."""
    deck, mask = available.deck, available.mask[stream]
    n_items = len(deck)
    for item in range(n_items):
        deck[item] = item
        mask[item] = False
    for a in range(available.size):
        swap = a + int(available.uniforms[stream, a] * (n_items - a))
        deck[a], deck[swap] = deck[swap], deck[a]
        mask[deck[a]] = True


@kernel
def draw_all_available(available):  # type: ignore[no-untyped-def]
    """`draw_available` on every stream."""
    for stream in range(len(available.mask)):
        draw_available(available, stream)
