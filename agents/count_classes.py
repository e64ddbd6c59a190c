"""⚠ A second implementation of `CascadeUCB1`, `CascadeKLUCB` and `DCMKLUCB` for `LARGE` items or
more. The agents' own kernels compute an index for each item. For `LARGE` items this takes up to
four times as long as the kernels here, and for ten thousand items a hundred times as long.

If you change the index, the feedback or the initial counts of one of these agents, make the same
change here. A subclass with its own kernels or initial values, or with a hyper-parameter that
`READ` does not name, keeps an index for each item.

The index of an item depends only on its clicks c, its examinations N and the session. A large
catalogue has few different pairs (N, c), so all items with equal counts form one class and share
one index. The items stand in `order` class by class, by N and then by c, so that an item whose
counts have grown passes only the classes between its old and its new one. Lists have the same
distribution as with the agent's own kernels: the largest indices in decreasing order, ties
uniformly at random, also between classes. Only the individual draws differ.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..core.kernels import kernel
from ..core.state import Floats, Ints
from .compiled_agent import CompiledAgent
from .shared_kernels import choose_largest, examined_positions, exploration, kl_upper, sort_by_index

LARGE = 1000
"""The number of items from which classes are faster than an index for each item."""
READ = {"feedback", "c", "position_order"}
"""The hyper-parameters that the kernels here read."""


class ClassState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N
    order: Annotated[Ints, "L", range]  # items, class by class
    place: Annotated[Ints, "L", range]  # of each item in `order`
    start: Annotated[Ints, "L+2"]  # of each class in `order`, then L
    n_classes: Annotated[Ints, "1", 1]
    indices: Annotated[Floats, "L"]  # of each class
    top: Annotated[Ints, "L", range]  # working memory: the classes of largest index
    taken: Annotated[Ints, "L"]  # working memory: items chosen from each of `top`
    t: Annotated[Ints, "1"]  # sessions
    positions: Annotated[Ints, "K", range]  # the position of the k-th largest index
    feedback: int
    c: float  # of the exploration term; negative: the bound of UCB1


@kernel
def exchange(state, place, other):
    """Exchange the items at two places."""
    a, b = state.order[place], state.order[other]
    state.order[place], state.order[other] = b, a
    state.place[b], state.place[a] = place, other


@kernel
def compute_indices(state):
    log_t = math.log(state.t[0] + 1)
    bound = exploration(state.t[0] + 1, max(state.c, 0.0))
    for b in range(state.n_classes[0]):
        item = state.order[state.start[b]]
        n = state.examined[item]
        if n == 0:
            state.indices[b] = np.inf
        elif state.c < 0.0:
            width = 1.0 / math.sqrt(n)
            state.indices[b] = state.clicks[item] / n + math.sqrt(1.5 * log_t) * width
        else:
            state.indices[b] = kl_upper(state.clicks[item] / n, bound / n)


@kernel
def rank_classes(state, rng, ranking):
    compute_indices(state)
    index, top = state.indices[: state.n_classes[0]], state.top
    n = min(len(index), len(ranking))
    if choose_largest(index, top, n):  # a class that is left out may be drawn, too
        n = len(index)
        for b in range(n):
            top[b] = b
        sort_by_index(index, top[:n])
    shown, first = 0, 0
    while shown < len(ranking):
        stop, n_tied = first, 0
        while stop < n and index[top[stop]] == index[top[first]]:
            n_tied += state.start[top[stop] + 1] - state.start[top[stop]]
            state.taken[stop] = 0
            stop += 1
        while n_tied > 0 and shown < len(ranking):
            chosen, b = int(rng.random() * n_tied) if n_tied > 1 else 0, first
            while chosen >= state.start[top[b] + 1] - state.start[top[b]] - state.taken[b]:
                chosen -= state.start[top[b] + 1] - state.start[top[b]] - state.taken[b]
                b += 1
            place = state.start[top[b]] + state.taken[b]
            exchange(state, place, place + chosen)
            ranking[state.positions[shown]] = state.order[place]
            state.taken[b] += 1
            shown += 1
            n_tied -= 1
        first = stop


@kernel
def class_at(state, place):
    """Return the class that holds a place, by bisection."""
    low, high = 0, state.n_classes[0]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if state.start[middle] <= place else (low, middle)
    return low


@kernel
def order_of_counts(state, item, other):
    """Compare two items by their examinations, then by their clicks: return -1 if ``other`` has
    more, 0 if they are equal, 1 if ``item`` has more.
    """
    more = state.examined[item] - state.examined[other]
    return np.sign(more if more != 0 else state.clicks[item] - state.clicks[other])


@kernel
def move_up(state, item, click):
    """Count an examination of an item, and move it to the class of its new counts."""
    start, b = state.start, class_at(state, state.place[item])
    old = b
    state.examined[item] += 1
    state.clicks[item] += click
    # The item is the last of class b, as long as the next class has smaller counts than it.
    exchange(state, state.place[item], start[b + 1] - 1)
    while (
        b + 1 < state.n_classes[0] and order_of_counts(state, state.order[start[b + 1]], item) < 0
    ):
        start[b + 1] -= 1
        b += 1
        exchange(state, start[b], start[b + 1] - 1)
    if b + 1 < state.n_classes[0] and order_of_counts(state, state.order[start[b + 1]], item) == 0:
        start[b + 1] -= 1
    else:
        for later in range(state.n_classes[0], b, -1):
            start[later + 1] = start[later]
        start[b + 1] = state.place[item]
        state.n_classes[0] += 1
    if start[old] == start[old + 1]:
        for later in range(old, state.n_classes[0]):
            start[later] = start[later + 1]
        state.n_classes[0] -= 1


@kernel
def update_classes(state, ranking, clicks):
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        move_up(state, ranking[k], clicks[k])


class IndexAgent(CompiledAgent):
    """Base class of agents that keep classes of items when there are `LARGE` items or more. A
    subclass with other kernels, other initial values or further hyper-parameters keeps an index for
    each item.
    """

    def _has_classes(self) -> bool:
        published = next(kind for kind in type(self).__mro__ if IndexAgent in kind.__bases__)
        names = "state_type", "rank_kernel", "update_kernel", "first_values"
        is_published = all(getattr(type(self), name) is getattr(published, name) for name in names)
        return self.n_items >= LARGE and is_published and self.hyperparameters.keys() <= READ

    def _first_state(self) -> Any:
        if self._has_classes():
            kernels = {"rank_kernel": rank_classes, "update_kernel": update_classes}
            vars(self).update(kernels, state_type=ClassState)  # of the agent, not its class
        return super()._first_state()

    def first_values(self) -> dict[str, Any]:
        values = super().first_values()
        if self._has_classes():
            start = np.full(self.n_items + 2, self.n_items)
            start[0] = 0
            values |= {"start": start, "c": self.hyperparameters.get("c", -1.0)}
        return values
