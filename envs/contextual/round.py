"""One round of a contextual environment, in compiled code: a user, the candidates, and their best
list.

Click models stay as they are: what belongs to the candidates is written into the arrays that their
kernels read. Letters as in `clickgym.envs.contextual.model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import kernel
from ...core.state import Flags, Floats, Ints, first_arrays
from ..click_model import ClickModel
from ..scan import scan
from ..task import Task


class Pool(NamedTuple):
    """What the candidates of a session are drawn from: all items for every user, or those that a
    user's entries name.
    """

    users: NDArray[np.float64]  # (M, d_u)
    items: NDArray[np.float64]  # (N, d_v)
    user_attraction: NDArray[np.float64]  # (M,) the users' part of the attraction
    item_attraction: NDArray[np.float64]  # (N,) the items' part
    # (P, N) further parameters that belong to items (satisfaction)
    item_others: NDArray[np.float64]
    starts: NDArray[np.int64]  # (M + 1,) where the entries of each user begin and end
    entries: NDArray[np.int64]  # (E,) the item of each entry; none: all users may meet all items
    entry_attraction: NDArray[np.float64]  # (E,) the attraction of each entry
    entry_others: NDArray[np.float64]  # (P, E)
    pairs: NDArray[np.int64]  # (Q, 2) features whose products over the first are features, too


class Round(NamedTuple):
    """The candidates of one session and their best list; and the working memory to draw them. A
    user may meet D items, and m positions count.
    """

    user: Annotated[Ints, "1"]  # who meets them
    items: Annotated[Ints, "L"]  # their numbers in the pool
    observed: Annotated[Floats, "L d"]  # features
    values: tuple[NDArray[np.float64], ...]  # 1 + P times (L,): attraction, further item parameters
    best: Annotated[Ints, "K", range]  # the best list
    optimum: Annotated[Floats, "1"]  # its expected reward
    deck: Annotated[Ints, "D", range]  # numbers of all that a user may meet; the same in every draw
    swaps: Annotated[Ints, "L"]
    candidates: Annotated[Ints, "L"]  # by decreasing attraction
    places: Annotated[Ints, "m", -1]  # which candidate stands where in the best list; -1: unknown
    bounds: Annotated[Floats, "m m"]  # on the examination of the positions k.., decreasing
    gain: Annotated[Floats, "L"]  # of a scan, like the four that follow
    continuation: Annotated[Floats, "L"]
    ratio: Annotated[Floats, "L"]
    order: Annotated[Ints, "L"]
    scan_values: Annotated[Floats, "L+1 m+1"]
    head: Annotated[Ints, "m"]  # of a search, like the three that follow
    found: Annotated[Ints, "m"]
    choice: Annotated[Ints, "m", -1]
    used: Annotated[Flags, "L"]


class Rounds(NamedTuple):
    """What a session needs of the rounds of B streams."""

    observed: NDArray[np.float64]  # (B, L, d) features
    values: NDArray[np.float64]  # (B, 1 + P, L)
    best: NDArray[np.int64]  # (B, K)
    optimum: NDArray[np.float64]  # (B,)


@kernel
def insert(order, place, weights, item):
    """Insert an item into an order by decreasing weight that ends before a place; behind its
    equals.
    """
    while place > 0 and weights[order[place - 1]] < weights[item]:
        order[place] = order[place - 1]
        place -= 1
    order[place] = item


@kernel
def draw_candidates(pool, drawn, rng):
    """A user and L distinct candidates at random: their features, item parameters and order."""
    n_items, n_user_features = len(drawn.items), pool.users.shape[1]
    attraction, n_others = drawn.values[0], len(drawn.values) - 1
    named = len(pool.entries) > 0
    user = int(rng.random() * len(pool.users))
    first, size = 0, len(pool.items)
    if named:
        first = pool.starts[user]
        size = pool.starts[user + 1] - first
    drawn.user[0] = user
    deck = drawn.deck
    for a in range(n_items):
        swap = a + int(rng.random() * (size - a))
        drawn.swaps[a] = swap
        deck[a], deck[swap] = deck[swap], deck[a]
        item = deck[a]
        if named:
            entry = first + deck[a]
            item = pool.entries[entry]
            attraction[a] = pool.entry_attraction[entry]
            for p in range(n_others):
                drawn.values[1 + p][a] = pool.entry_others[p, entry]
        else:
            linear = pool.user_attraction[user] + pool.item_attraction[item]
            attraction[a] = min(max(linear, 0.0), 1.0)
            for p in range(n_others):
                drawn.values[1 + p][a] = pool.item_others[p, item]
        drawn.items[a] = item
        for j in range(n_user_features):
            drawn.observed[a, j] = pool.users[user, j]
        for j in range(pool.items.shape[1]):
            drawn.observed[a, n_user_features + j] = pool.items[item, j]
        for q in range(len(pool.pairs)):
            product = drawn.observed[a, pool.pairs[q, 0]] * drawn.observed[a, pool.pairs[q, 1]]
            drawn.observed[a, n_user_features + pool.items.shape[1] + q] = (
                product / drawn.observed[a, 0]
            )
        insert(drawn.candidates, a, attraction, a)
    for a in range(n_items - 1, -1, -1):  # so that a draw depends on nothing but the generator
        deck[a], deck[drawn.swaps[a]] = deck[drawn.swaps[a]], deck[a]


@kernel
def match_places(drawn, parameters, reward, scratch):
    """The best list where it follows from the order of the candidates."""
    n = len(drawn.places)
    for k in range(n):
        drawn.best[k] = drawn.candidates[drawn.places[k]]
    for k in range(n, len(drawn.best)):
        drawn.best[k] = drawn.candidates[k]


@cache
def scan_candidates(weigh: Callable[..., Any]) -> Callable[..., None]:
    """Kernel of the best list where the model has a kernel for the scan."""

    @kernel
    def find(drawn, parameters, reward, scratch):
        weigh(parameters, reward, drawn.gain, drawn.continuation)
        ratio, order, values = drawn.ratio, drawn.order, drawn.scan_values
        scan(drawn.gain, drawn.continuation, 0.0, ratio, order, values, drawn.found)
        show_found(drawn)

    return find


@cache
def search_candidates(search: Callable[..., Any]) -> Callable[..., None]:
    """Kernel of the best list by a search."""

    @kernel
    def find(drawn, parameters, reward, scratch):
        search(
            parameters,
            drawn.values[0],
            drawn.candidates,
            drawn.bounds,
            reward,
            scratch,
            drawn.head,
            drawn.choice,
            drawn.used,
            drawn.found,
        )
        show_found(drawn)

    return find


@kernel
def show_found(drawn):
    """The list that was found for the counted positions, then the others by attraction."""
    n = len(drawn.found)
    for k in range(n):
        drawn.best[k] = drawn.found[k]
        drawn.used[drawn.found[k]] = True
    place = 0
    for k in range(n, len(drawn.best)):
        while drawn.used[drawn.candidates[place]]:
            place += 1
        drawn.best[k] = drawn.candidates[place]
        place += 1
    for k in range(n):
        drawn.used[drawn.found[k]] = False


@cache
def draw_round(find_best: Callable[..., Any], expected: Callable[..., Any]) -> Callable[..., None]:
    """Kernel that draws a round, with its best list and what this is worth."""

    @kernel
    def draw_round(parameters, reward, pool, drawn, rng, scratch):
        draw_candidates(pool, drawn, rng)
        find_best(drawn, parameters, reward, scratch)
        drawn.optimum[0] = expected(parameters, drawn.best, reward, len(drawn.places), scratch)

    return draw_round


@kernel
def load_round(streams, b, drawn):
    """Move what a session reads into the task."""
    for p in range(len(drawn.values)):
        for a in range(len(drawn.items)):
            drawn.values[p][a] = streams.values[b, p, a]


@kernel
def store_round(streams, b, drawn):
    """Move a round that was drawn to its stream."""
    for p in range(len(drawn.values)):
        for a in range(len(drawn.items)):
            streams.values[b, p, a] = drawn.values[p][a]
    for a in range(drawn.observed.shape[0]):
        for j in range(drawn.observed.shape[1]):
            streams.observed[b, a, j] = drawn.observed[a, j]
    for k in range(len(drawn.best)):
        streams.best[b, k] = drawn.best[k]
    streams.optimum[b] = drawn.optimum[0]


class RoundTask(Task):
    """The task of a contextual environment, whose round is drawn anew for every session.

    The item parameters of the round, ``round.values``, are the very arrays that the kernels of the
    click model read.

    Args:
        base: the click model of the users, whose item parameters are those of the present round.
        pool: what candidates are drawn from.
        kind: the name of these users.
        reward, cutoff: as in `ClickEnv`.

    Raises:
        ValueError: the best list is known only by a search that would be too large.
    """

    load, store = staticmethod(load_round), staticmethod(store_round)

    def __init__(
        self, base: ClickModel, pool: Pool, kind: str, reward: str, cutoff: int | None
    ) -> None:
        self.model, self.pool = base, pool
        self.code, self.cutoff = base.check_reward(reward, cutoff)
        sizes = {
            "L": base.n_items,
            "K": base.n_positions,
            "m": self.cutoff,
            "D": int(np.diff(pool.starts).max()) if len(pool.entries) else len(pool.items),
            "d": pool.users.shape[1] + pool.items.shape[1] + len(pool.pairs),
        }
        arrays = first_arrays(Round, sizes)
        # Where the best list follows from the order of the candidates, it is the same every time.
        places = base._places(self.code, self.cutoff)
        if places is not None:
            arrays["places"] = places
        elif base.scan_kernel is None:
            _check_search(base, self.cutoff, f"reward={reward!r} in a {kind}")
            arrays["bounds"] = base._bounds_of_search(self.cutoff)
        names = base.item_parameters()
        values = tuple(np.zeros(base.n_items) for _ in names)
        self.parameters = base.parameters._replace(**dict(zip(names, values, strict=True)))
        self.round = Round(values=values, **arrays)
        self.observation_space = Dict(
            clicks=MultiBinary(base.n_positions),
            features=Box(-1.0, 1.0, (sizes["L"], sizes["d"]), np.float64),
        )

    @property
    def advance(self) -> Callable[..., None]:  # type: ignore[override]
        """The kernel that draws a round."""
        if self.round.places[0] >= 0:  # a theorem says what stands where
            find = match_places
        elif self.model.scan_kernel is not None:
            find = scan_candidates(self.model.scan_kernel)
        else:
            find = search_candidates(self.model._search_kernel())
        return draw_round(find, self.model.expected_kernel)

    next_round = advance

    def rounds(self, size: int) -> Rounds:
        drawn = self.round
        return Rounds(
            np.zeros((size, *drawn.observed.shape)),
            np.zeros((size, len(drawn.values), len(drawn.items))),
            np.zeros((size, len(drawn.best)), np.int64),
            np.zeros(size),
        )

    def best(self, rounds: Any) -> NDArray[np.int64]:
        return np.atleast_2d(rounds.best)

    def observe(self, rounds: Any, clicks: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
        return {"clicks": clicks, "features": rounds.observed.copy()}


def _check_search(base: ClickModel, m: int, what: str) -> None:
    lists = math.perm(base.n_items, m)
    if lists > base.max_search:
        raise ValueError(
            f"the best list for {what} is known only by exact search in each session, and "
            f"{lists:.3g} lists of {m} out of {base.n_items} candidates are more than the limit of "
            f"{base.max_search:.0e}; choose another reward kind or a smaller cutoff"
        )
