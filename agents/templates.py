"""Kernels made of the piece that is an agent's own: how it scores the items of a session, and what
it learns of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.kernels import kernel
from .kernels import examined_positions, rank_by_index


@kernel
def put_in_order(state, order, ranking):
    """Write the first items of an order into the list, from the top."""
    for k in range(len(ranking)):
        ranking[k] = order[k]


@kernel
def put_by_position(state, order, ranking):
    """Write the first items of an order into the list, the k-th on the k-th of
    ``state.positions``.
    """
    for k in range(len(ranking)):
        ranking[state.positions[k]] = order[k]


def largest(
    score: Callable[..., Any],
    rank_by: Callable[..., None] = rank_by_index,
    put: Callable[..., None] = put_in_order,
) -> Callable[..., None]:
    """Return the `rank_kernel` of an agent that shows the items of largest score.

    Args:
        score: ``(state, rng)``; writes the index or the draw of each item, and returns these
            ``(L,)`` and the array ``(L,)`` that holds the order of the items.
        rank_by: `rank_by_index`, or for draws `rank_by_draw`.
        put: ``(state, order, ranking)``; writes the first items of the order into the list.
    """

    @kernel
    def rank(state, rng, ranking):
        index, order = score(state, rng)
        rank_by(index, order, rng, len(ranking))
        put(state, order, ranking)

    return rank


def from_examined(learn: Callable[..., None]) -> Callable[..., None]:
    """Return the `update_kernel` that calls ``learn(state, item, click)`` for each sample among the
    examined positions.
    """

    @kernel
    def update(state, ranking, clicks):
        for k in range(examined_positions(clicks, state.feedback)):
            learn(state, ranking[k], clicks[k])

    return update


def from_shown(learn: Callable[..., None]) -> Callable[..., None]:
    """Return the `update_kernel` that calls ``learn(state, item, k, click)`` for each sample,
    whatever its position k.
    """

    @kernel
    def update(state, ranking, clicks):
        for k in range(len(ranking)):
            if clicks[k] >= 0:
                learn(state, ranking[k], k, clicks[k])

    return update


def of_clicked(compare: Callable[..., bool]) -> Callable[..., bool]:
    """Return a kernel that compares each clicked item with the others of its part that were not
    clicked.

    Args:
        compare: ``(state, i, j, level)``; learns that i was clicked and j not, and returns whether
            this changes an order.
    """

    @kernel
    def compare_clicked(state, part, members, start, ranking, clicks, level):
        changed = False
        for k in range(len(ranking)):
            state.clicked[ranking[k]] = clicks[k]
        for k in range(len(ranking)):
            if clicks[k] == 1:
                i = ranking[k]
                for place in range(start[part[i]], start[part[i] + 1]):
                    j = members[place]
                    if not state.clicked[j]:  # nor i itself
                        changed = compare(state, i, j, level) or changed
        for k in range(len(ranking)):
            state.clicked[ranking[k]] = False
        return changed

    return compare_clicked
