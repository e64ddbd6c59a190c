"""Items that are replaced: after a session, a new item may come under the id of an old one (the argument ``churn``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import kernel


class NewItems(NamedTuple):
    """The distribution from which the parameters of new items are drawn."""

    values: NDArray[np.float64]  # (P, n) the parameters of the original items, or quantiles of each parameter's law
    drawn_together: bool  # whether a new item has a column of them; else its parameters are independent, by their quantiles


class ChurnState(NamedTuple):
    """The replaced items on S streams, as the kernels read them."""

    rate: float  # the probability that a session is followed by a replacement
    uniforms: NDArray[np.float64]  # (S, 3) of the present session: whether, which, what
    replaced: NDArray[np.int64]  # (S,) the item that was replaced after the last session, or -1
    last: NDArray[np.int64]  # (S, L) after which session each item was last replaced; 0 if it never was


def churn_state(n_streams: int, n_items: int, rate: float) -> ChurnState:
    """The state at the start of S streams.

    Args:
        n_streams: S.
        n_items: L.
        rate: ρ, the probability that a session is followed by a replacement.
    """
    return ChurnState(rate, np.empty((n_streams, 3)), np.full(n_streams, -1), np.zeros((n_streams, n_items), np.int64))


@kernel
def replace(churn, stream, session, new_items, present):  # type: ignore[no-untyped-def]
    """Replace an item after session number ``session``, or none; return its id, or -1.

    ``churn.uniforms[stream]`` holds the session's three uniforms; ``present`` ``(P, L)`` are the parameters of the items.
    """
    churn.replaced[stream] = -1
    if churn.uniforms[stream, 0] < churn.rate:
        values = new_items.values
        n_parameters, n = values.shape
        item = int(churn.uniforms[stream, 1] * present.shape[1])
        what = churn.uniforms[stream, 2]
        if new_items.drawn_together:
            original = int(what * n)
            for p in range(n_parameters):
                present[p, item] = values[p, original]
        else:
            cells = 2.0 ** (52 // n_parameters)  # the digits of one uniform number make several independent ones
            for p in range(n_parameters):
                what *= cells
                place = (np.floor(what) + 0.5) / cells * (n - 1)
                what -= np.floor(what)
                below = int(place)
                present[p, item] = values[p, below] + (place - below) * (values[p, below + 1] - values[p, below])
        churn.replaced[stream] = item
        churn.last[stream, item] = session
    return churn.replaced[stream]
