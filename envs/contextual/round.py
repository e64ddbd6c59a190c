"""One round of a contextual environment, in compiled code: a user, the candidates, and their best
list.

Click models stay as they are: the attractions of the candidates are written into the array that
their kernels read. Letters as in `clickgym.envs.contextual.model`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import entry, kernel
from ...core.state import Flags, Floats, Ints, first_arrays
from ..click_model import ClickModel
from ..scan import scan
from ..session import sessions_of_own_items
from ..task import Batch, Sessions, per_stream

Observation = dict[str, NDArray[Any]]


class Pool(NamedTuple):
    """What the candidates of a session are drawn from: all items for every user, or those that a
    user's entries name.
    """

    users: NDArray[np.float64]  # (M, d_u)
    items: NDArray[np.float64]  # (N, d_v)
    user_attraction: NDArray[np.float64]  # (M,) the users' part of the attraction
    item_attraction: NDArray[np.float64]  # (N,) the items' part
    item_others: NDArray[
        np.float64
    ]  # (P, N) the further parameters that belong to items (satisfaction)
    starts: NDArray[np.int64]  # (M + 1,) where the entries of each user begin and end
    entries: NDArray[np.int64]  # (E,) the item of each entry; none: every user may meet every item
    entry_attraction: NDArray[np.float64]  # (E,) the attraction of each entry
    entry_others: NDArray[np.float64]  # (P, E)
    pairs: NDArray[
        np.int64
    ]  # (Q, 2) the features whose products, divided by the first, are further features


class Round(NamedTuple):
    """The candidates of one session and their best list; and the working memory to draw them. A
    user may meet D items, and m positions count.
    """

    user: Annotated[Ints, "1"]  # who meets them
    items: Annotated[Ints, "L"]  # their numbers in the pool
    features: NDArray[np.float64]  # (L, d)
    attraction: NDArray[np.float64]  # (L,)
    others: NDArray[np.float64]  # (P, L) the further parameters that belong to items
    best: Annotated[Ints, "K", range]  # the best list
    optimum: Annotated[Floats, "1"]  # its expected reward
    deck: Annotated[
        Ints, "D", range
    ]  # the numbers of all that a user may meet; dealt from and put back in every draw
    swaps: Annotated[Ints, "L"]
    candidates: Annotated[Ints, "L"]  # the candidates by decreasing attraction
    places: Annotated[
        Ints, "m", -1
    ]  # which of them stands at each counted position of the best list; -1: to be searched for
    bounds: Annotated[
        Floats, "m m"
    ]  # of the search: bounds on the examination of the positions k.., decreasing
    gain: Annotated[Floats, "L"]  # of a scan, like the four that follow
    continuation: Annotated[Floats, "L"]
    ratio: Annotated[Floats, "L"]
    order: Annotated[Ints, "L"]
    values: Annotated[Floats, "L+1 m+1"]
    head: Annotated[Ints, "m"]  # working memory of the search ...
    found: Annotated[Ints, "m"]
    choice: Annotated[Ints, "m", -1]
    used: Annotated[Flags, "L"]


@kernel
def insert(order, place, weights, item):  # type: ignore[no-untyped-def]
    """Insert an item into an order by decreasing weight that ends before a place; behind its
    equals.
    """
    while place > 0 and weights[order[place - 1]] < weights[item]:
        order[place] = order[place - 1]
        place -= 1
    order[place] = item


@kernel
def deal(pool, drawn, rng):  # type: ignore[no-untyped-def]
    """A user and L distinct candidates at random: their features, attractions and order."""
    n_items, n_user_features = len(drawn.attraction), pool.users.shape[1]
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
            attraction = pool.entry_attraction[entry]
            for p in range(len(drawn.others)):
                drawn.others[p, a] = pool.entry_others[p, entry]
        else:
            attraction = min(max(pool.user_attraction[user] + pool.item_attraction[item], 0.0), 1.0)
            for p in range(len(drawn.others)):
                drawn.others[p, a] = pool.item_others[p, item]
        drawn.items[a] = item
        drawn.attraction[a] = attraction
        for j in range(n_user_features):
            drawn.features[a, j] = pool.users[user, j]
        for j in range(pool.items.shape[1]):
            drawn.features[a, n_user_features + j] = pool.items[item, j]
        for q in range(len(pool.pairs)):
            product = drawn.features[a, pool.pairs[q, 0]] * drawn.features[a, pool.pairs[q, 1]]
            drawn.features[a, n_user_features + pool.items.shape[1] + q] = (
                product / drawn.features[a, 0]
            )
        insert(drawn.candidates, a, drawn.attraction, a)
    for a in range(n_items - 1, -1, -1):  # so that a draw depends on nothing but the generator
        deck[a], deck[drawn.swaps[a]] = deck[drawn.swaps[a]], deck[a]


@kernel
def match_places(drawn, parameters, reward, scratch):  # type: ignore[no-untyped-def]
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
    def find(drawn, parameters, reward, scratch):  # type: ignore[no-untyped-def]
        weigh(parameters, reward, drawn.gain, drawn.continuation)
        scan(
            drawn.gain, drawn.continuation, 0.0, drawn.ratio, drawn.order, drawn.values, drawn.found
        )
        show_found(drawn)

    return find


@cache
def search_candidates(search: Callable[..., Any]) -> Callable[..., None]:
    """Kernel of the best list by a search."""

    @kernel
    def find(drawn, parameters, reward, scratch):  # type: ignore[no-untyped-def]
        """The best list by a search."""
        search(
            parameters,
            drawn.attraction,
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
def show_found(drawn):  # type: ignore[no-untyped-def]
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
def next_round(find_best: Callable[..., Any], expected: Callable[..., Any]) -> Callable[..., None]:
    """Kernel that draws a round, with its best list and what this is worth."""

    @kernel
    def draw_round(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
        deal(pool, drawn, rng)
        find_best(drawn, parameters, reward, scratch)
        drawn.optimum[0] = expected(parameters, drawn.best, reward, len(drawn.places), scratch)

    return draw_round


@cache
def draw_rounds(next_round: Callable[..., Any]) -> Callable[..., None]:
    """Kernel that draws the next round of each stream."""

    @kernel
    def draw_rounds(  # type: ignore[no-untyped-def]
        pool, drawn, parameters, rng, reward, scratch, features, items, best, optimum
    ):
        """The next round of each stream."""
        for b in range(len(optimum)):
            next_round(pool, drawn, parameters, rng, reward, scratch)
            for a in range(len(drawn.attraction)):
                items[b, 0, a] = drawn.attraction[a]
                for p in range(len(drawn.others)):
                    items[b, 1 + p, a] = drawn.others[p, a]
                for j in range(drawn.features.shape[1]):
                    features[b, a, j] = drawn.features[a, j]
            for k in range(len(drawn.best)):
                best[b, k] = drawn.best[k]
            optimum[b] = drawn.optimum[0]

    return draw_rounds


class RoundTask:
    """What is asked of the lists of a contextual environment, and the present round; an `AnyTask`,
    and the `Course` of its users, for it never changes: only its round is drawn anew for every
    session.

    Args:
        base: the click model of the users, whose kernels read what belongs to the items of the
            present round.
        pool: what candidates are drawn from.
        kind: the name of these users.
        reward, cutoff: as in `ClickEnv`.

    Attributes:
        items: ``(1 + P, L)`` attraction and further parameters of the candidates, where the kernels
            read them.

    Raises:
        ValueError: the best list is known only by a search that would be too large.
    """

    def __init__(
        self, base: ClickModel, pool: Pool, kind: str, reward: str, cutoff: int | None
    ) -> None:
        self.model, self.pool = base, pool
        self.code, self.cutoff = base.check_reward(reward, cutoff)
        n_items, m = base.n_items, self.cutoff
        # Candidates by decreasing attraction: where the best list follows from their order, it is the same for all rounds.
        places, weigh = base._places(self.code, m), base.scan_kernel
        bounds = np.zeros((m, m))
        if places is None and weigh is None:
            _check_search(base, m, f"reward={reward!r} in a {kind}")
            bounds = base._bounds_of_search(m)
        n_features = pool.users.shape[1] + pool.items.shape[1] + len(pool.pairs)
        self.items = np.zeros((1 + len(pool.item_others), n_items))
        most = int(np.diff(pool.starts).max()) if len(pool.entries) else len(pool.items)
        sizes = {"L": n_items, "K": base.n_positions, "m": m, "D": most}
        arrays = (
            first_arrays(Round, sizes)
            | {"bounds": bounds}
            | ({} if places is None else {"places": places})
        )
        arrays["features"] = np.zeros((n_items, n_features))
        self.round = Round(attraction=self.items[0], others=self.items[1:], **arrays)
        self.parameters = base.parameters._replace(
            **dict(zip(base.item_parameters(), self.items, strict=True))
        )
        self.observation_space = Dict(
            clicks=MultiBinary(base.n_positions),
            features=Box(-1.0, 1.0, (n_items, n_features), np.float64),
        )

    @property
    def next_round(self) -> Callable[..., None]:
        """The kernel that draws a round."""
        if self.round.places[0] >= 0:  # a theorem says what stands where
            find = match_places
        elif self.model.scan_kernel is not None:
            find = scan_candidates(self.model.scan_kernel)
        else:
            find = search_candidates(self.model._search_kernel())
        return next_round(find, self.model.expected_kernel)

    def at(self, step: int) -> tuple[RoundTask, int]:
        """The task of every step."""
        return self, sys.maxsize

    def batch(self, size: int) -> _Streams:
        """A round for each stream."""
        return _Streams(self, size)


def _check_search(base: ClickModel, m: int, what: str) -> None:
    lists = math.perm(base.n_items, m)
    if lists > base.max_search:
        raise ValueError(
            f"the best list for {what} is known only by exact search in each session, and "
            f"{lists:.3g} lists of {m} out of {base.n_items} candidates are more than the limit of {base.max_search:.0e}; "
            f"choose another reward kind or a smaller cutoff"
        )


class _Streams(Batch):
    """The rounds of B streams, which share the working memory of one task."""

    def __init__(self, task: RoundTask, size: int) -> None:
        drawn = task.round
        self._task, self._scratch = task, np.empty(task.model.n_positions + 1)
        self._features, self._items = per_stream(drawn.features, size), per_stream(task.items, size)
        self.optimal_ranking, self.optimal_reward = (
            per_stream(drawn.best, size),
            per_stream(drawn.optimum, size)[:, 0],
        )

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        task = self._task
        entry(draw_rounds(task.next_round))(
            task.pool,
            task.round,
            task.parameters,
            rng,
            task.code,
            self._scratch,
            self._features,
            self._items,
            self.optimal_ranking,
            self.optimal_reward,
        )

    def play(self, sessions: Sessions) -> None:
        task = self._task
        play = sessions_of_own_items(task.model)
        play(
            task.parameters,
            task.code,
            task.cutoff,
            self._scratch,
            task.items,
            self._items,
            *sessions,
        )

    def observe(self, clicks: NDArray[np.int8]) -> Observation:
        return {"clicks": clicks, "features": self._features.copy()}
