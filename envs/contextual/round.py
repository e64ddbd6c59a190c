"""One round of a contextual environment, in compiled code: a user, the candidates, and their best
list.

The item parameters of the candidates are written into the arrays that the kernels of the click
model read. Letters as in `clickgym.envs.contextual.model`.
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
from ..order import order_ties
from ..scan import scan_by_digits
from ..task import Task


class Pool(NamedTuple):
    """The items from which the candidates of a session are drawn: all items for every user, or the
    entries of a user.
    """

    users: NDArray[np.float64]  # (M, d_u)
    items: NDArray[np.float64]  # (N, d_v)
    user_attraction: NDArray[np.float64]  # (M,) the users' part of the attraction
    item_attraction: NDArray[np.float64]  # (N,) the items' part
    # (P, N) other item parameters (satisfaction)
    item_others: NDArray[np.float64]
    starts: NDArray[np.int64]  # (M + 1,) bounds of the entries of each user
    entries: NDArray[np.int64]  # (E,) the item of each entry; empty: all items for all users
    entry_attraction: NDArray[np.float64]  # (E,) the attraction of each entry
    entry_others: NDArray[np.float64]  # (P, E)
    pairs: NDArray[np.int64]  # (Q, 2) features whose products over the first are features, too
    has_ties: bool  # whether some attractions of a user may differ in their last digits alone


class Round(NamedTuple):
    """The candidates of one session and their best list, with working memory. A user has at most D
    possible candidates, and m positions count.
    """

    user: Annotated[Ints, "1"]  # the user of the session
    items: Annotated[Ints, "L"]  # their numbers in the pool
    observed: Annotated[Floats, "L d"]  # features
    values: tuple[NDArray[np.float64], ...]  # 1 + P times (L,): attraction, further item parameters
    best: Annotated[Ints, "K", range]  # the best list
    optimum: Annotated[Floats, "1"]  # its expected reward
    deck: Annotated[Ints, "D", range]  # places of a user's possible candidates; restored after use
    swaps: Annotated[Ints, "L"]
    candidates: Annotated[Ints, "L"]  # by decreasing attraction
    places: Annotated[Ints, "m", -1]  # the candidate at each position of the best list; -1: unknown
    bounds: Annotated[Floats, "m m"]  # row k: of the examination from position k on, decreasing
    gain: Annotated[Floats, "L"]  # of a scan, like the four that follow
    continuation: Annotated[Floats, "L"]
    ratio: Annotated[Floats, "L"]
    order: Annotated[Ints, "L"]
    scan_values: Annotated[Floats, "L+1 m+1"]
    head: Annotated[Ints, "m"]  # of a search, like the three that follow
    chosen: Annotated[Ints, "m"]
    choice: Annotated[Ints, "m", -1]
    used: Annotated[Flags, "L"]


class Rounds(NamedTuple):
    """The parts of the rounds of B streams that a session reads."""

    observed: NDArray[np.float64]  # (B, L, d) features
    values: NDArray[np.float64]  # (B, 1 + P, L)
    best: NDArray[np.int64]  # (B, K)
    optimum: NDArray[np.float64]  # (B,)


@kernel
def insert(order, place, weights, item):
    """Insert an item into an order by decreasing weight that ends before ``place``; ties go behind
    equal weights.
    """
    while place > 0 and weights[order[place - 1]] < weights[item]:
        order[place] = order[place - 1]
        place -= 1
    order[place] = item


@kernel
def draw_candidates(pool, current, rng):
    """Draw a user and L distinct candidates; write their features, item parameters and order."""
    n_items, n_user_features = len(current.items), pool.users.shape[1]
    attraction, n_others = current.values[0], len(current.values) - 1
    named = len(pool.entries) > 0
    user = int(rng.random() * len(pool.users))
    first, size = 0, len(pool.items)
    if named:
        first = pool.starts[user]
        size = pool.starts[user + 1] - first
    current.user[0] = user
    deck = current.deck
    for a in range(n_items):
        swap = a + int(rng.random() * (size - a))
        current.swaps[a] = swap
        deck[a], deck[swap] = deck[swap], deck[a]
        item = deck[a]
        if named:
            entry = first + deck[a]
            item = pool.entries[entry]
            attraction[a] = pool.entry_attraction[entry]
            for p in range(n_others):
                current.values[1 + p][a] = pool.entry_others[p, entry]
        else:
            linear = pool.user_attraction[user] + pool.item_attraction[item]
            attraction[a] = min(max(linear, 0.0), 1.0)
            for p in range(n_others):
                current.values[1 + p][a] = pool.item_others[p, item]
        current.items[a] = item
        for j in range(n_user_features):
            current.observed[a, j] = pool.users[user, j]
        for j in range(pool.items.shape[1]):
            current.observed[a, n_user_features + j] = pool.items[item, j]
        for q in range(len(pool.pairs)):
            product = current.observed[a, pool.pairs[q, 0]] * current.observed[a, pool.pairs[q, 1]]
            current.observed[a, n_user_features + pool.items.shape[1] + q] = (
                product / current.observed[a, 0]
            )
        insert(current.candidates, a, attraction, a)
    for a in range(n_items - 1, -1, -1):  # undo: a draw must depend only on the generator
        deck[a], deck[current.swaps[a]] = deck[current.swaps[a]], deck[a]


@kernel
def draw_near_ties(pool, current, rng):
    """As `draw_candidates`, where attractions may differ in their last digits alone: those are in
    the order of the candidates. A kernel of its own, because it is rare and would slow the other.
    """
    draw_candidates(pool, current, rng)
    for a in range(len(current.candidates)):
        current.ratio[a] = current.values[0][current.candidates[a]]
    order_ties(current.ratio, current.candidates)


@kernel
def match_places(current, parameters, reward, scratch):
    """Write the best list if it follows from the order of the candidates."""
    n = len(current.places)
    for k in range(n):
        current.best[k] = current.candidates[current.places[k]]
    for k in range(n, len(current.best)):
        current.best[k] = current.candidates[k]


@cache
def scan_candidates(weigh: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that finds the best list by a scan."""

    @kernel
    def find(current, parameters, reward, scratch):
        weigh(parameters, reward, current.gain, current.continuation)
        gain, continuation, chosen = current.gain, current.continuation, current.chosen
        ratio, order, values = current.ratio, current.order, current.scan_values
        scan_by_digits(gain, continuation, 0.0, ratio, order, values, chosen)
        complete_list(current)

    return find


@cache
def search_candidates(search: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that finds the best list by a search."""

    @kernel
    def find(current, parameters, reward, scratch):
        search(
            parameters,
            current.values[0],
            current.candidates,
            current.bounds,
            reward,
            scratch,
            current.head,
            current.choice,
            current.used,
            current.chosen,
        )
        complete_list(current)

    return find


@kernel
def complete_list(current):
    """Write the best list of the counted positions, then the remaining items by attraction."""
    n = len(current.chosen)
    for k in range(n):
        current.best[k] = current.chosen[k]
        current.used[current.chosen[k]] = True
    place = 0
    for k in range(n, len(current.best)):
        while current.used[current.candidates[place]]:
            place += 1
        current.best[k] = current.candidates[place]
        place += 1
    for k in range(n):
        current.used[current.chosen[k]] = False


@cache
def draw_round(
    draw: Callable[..., Any], find_best: Callable[..., Any], expected: Callable[..., Any]
) -> Callable[..., None]:
    """Return the kernel that draws a round, with its best list and the expected reward of it."""

    @kernel
    def draw_round(parameters, reward, pool, current, rng, scratch):
        draw(pool, current, rng)
        find_best(current, parameters, reward, scratch)
        current.optimum[0] = expected(
            parameters, current.best, reward, len(current.places), scratch
        )

    return draw_round


@kernel
def load_round(streams, b, current):
    """Copy the parts that a session reads from a stream into the task."""
    for p in range(len(current.values)):
        for a in range(len(current.items)):
            current.values[p][a] = streams.values[b, p, a]


@kernel
def store_round(streams, b, current):
    """Copy the round of the task to its stream."""
    for p in range(len(current.values)):
        for a in range(len(current.items)):
            streams.values[b, p, a] = current.values[p][a]
    for a in range(current.observed.shape[0]):
        for j in range(current.observed.shape[1]):
            streams.observed[b, a, j] = current.observed[a, j]
    for k in range(len(current.best)):
        streams.best[b, k] = current.best[k]
    streams.optimum[b] = current.optimum[0]


class RoundTask(Task):
    """The task of a contextual environment, whose round is drawn anew for every session.

    The item parameters of the round, ``round.values``, are the same arrays that the kernels of the
    click model read.

    Args:
        base: the click model of the users; its item parameters are those of the current round.
        pool: the items from which candidates are drawn.
        kind: the name of these users.
        reward, cutoff: as in `ClickEnv`.

    Raises:
        ValueError: the best list requires a search that would be too large.
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
        # If the best list follows from the order of the candidates, its places are constant.
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
        if self.round.places[0] >= 0:  # a theorem gives the best list
            find = match_places
        elif self.model.scan_kernel is not None:
            find = scan_candidates(self.model.scan_kernel)
        else:
            find = search_candidates(self.model._search_kernel())
        draw = draw_near_ties if self.pool.has_ties else draw_candidates
        return draw_round(draw, find, self.model.expected_kernel)

    next_round = advance

    def rounds(self, size: int) -> Rounds:
        current = self.round
        return Rounds(
            np.zeros((size, *current.observed.shape)),
            np.zeros((size, len(current.values), len(current.items))),
            np.zeros((size, len(current.best)), np.int64),
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
            f"the best list for {what} requires an exact search in each session, and "
            f"{lists:.3g} lists of {m} out of {base.n_items} candidates are more than the limit of "
            f"{base.max_search:.0e}; choose another reward or a smaller cutoff"
        )
