"""The task of users with new candidates: kernels that draw a user and candidates for every session,
and compute the best list of these candidates.

The state contains the item parameters of the candidates on all streams. Before a session is
simulated, its stream's parameters are copied into the arrays that the click model's kernels read.
The letters are the same as in `clickgym.envs.users.contextual`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from numpy.typing import NDArray

from ...core.kernels import kernel
from ...core.state import Flags, Floats, Ints, first_arrays
from ..click_models.click_model import ClickModel, make_search_kernel
from ..simulation.scan import scan
from ..simulation.task import Kernels, Task, make_click_session_kernel


class Pool(NamedTuple):
    """The users and items from which sessions are drawn.

    An *entry* is a pair of a user and a possible candidate. The entries of the second user follow
    the entries of the first user, and so on; or all users share the same entries.
    """

    users: NDArray[np.float64]  # (M, d_u)
    items: NDArray[np.float64]  # (N, d_v), in some cases float32
    starts: NDArray[np.int64]  # (M,) the first entry of each user
    sizes: NDArray[np.int64]  # (M,) the number of entries of each user
    entries: NDArray[np.int64]  # (E,) the item of each entry
    user_attraction: NDArray[np.float64]  # (M,) is added to the attraction of the user's entries
    values: NDArray[np.float64]  # (p, E) item parameters of the entries, attraction first
    pairs: NDArray[np.int64]  # (Q, 2) features with products that are features, too


class CandidateState(NamedTuple):
    """The user, the candidates and the best list of the next session, on each stream. The letter p
    is the number of item parameters of the click model.
    """

    optimum: Annotated[Floats, "B"]  # the expected reward of the best list
    best: Annotated[Ints, "B K", range]  # the best list
    user: Annotated[Ints, "B"]  # the number of the user
    items: Annotated[Ints, "B L"]  # the candidates' item numbers in the pool
    features: Annotated[Floats, "B L d"]
    values: Annotated[Floats, "B p L"]  # item parameters, attraction first


class WorkingMemory(NamedTuple):
    """Working memory for drawing a session. D is the largest number of possible candidates of a
    user, and m is the number of positions that count.
    """

    deck: Annotated[Ints, "D", range]  # indices of possible candidates; restored after each draw
    swaps: Annotated[Ints, "L"]
    order: Annotated[Ints, "L"]  # the candidates by decreasing attraction
    ranks: Annotated[Ints, "m"]  # the best list as indices in order, if a theorem gives them
    best: Annotated[Ints, "m"]  # the best list at the positions that count
    is_listed: Annotated[Flags, "L"]
    gain: Annotated[Floats, "L"]  # for a scan, like the next four arrays
    continuation: Annotated[Floats, "L"]
    ratio: Annotated[Floats, "L"]
    scan_order: Annotated[Ints, "L"]
    scan_values: Annotated[Floats, "L+1 m+1"]
    bounds: Annotated[Floats, "m m"]  # for an exact search, like the next three arrays
    head: Annotated[Ints, "m"]
    value: Annotated[Floats, "m"]
    choice: Annotated[Ints, "m", -1]


class CandidateConstants(NamedTuple):
    """The constants of a `CandidateTask`."""

    parameters: Any  # the parameters of the click model
    values: tuple[NDArray[np.float64], ...]  # p arrays (L,): working memory, in ``parameters``
    reward: int
    cutoff: int
    scratch: NDArray[np.float64]
    pool: Pool
    work: WorkingMemory


@kernel
def insert(order, end, weights, item):
    """Insert an item into ``order[:end]``, which is sorted by decreasing weight. Among equal
    weights, the new item comes last.
    """
    while end > 0 and weights[order[end - 1]] < weights[item]:
        order[end] = order[end - 1]
        end -= 1
    order[end] = item


@kernel
def use_candidates(constants, state, b):
    """Copy the item parameters of stream b's candidates into the arrays that the click model's
    kernels read.
    """
    for p in range(len(constants.values)):
        values, drawn_values = constants.values[p], state.values[b, p]
        for a in range(len(values)):
            values[a] = drawn_values[a]


@kernel
def draw_candidates(constants, state, b, rng):
    """Draw a user and L distinct candidates; write the candidates' features, item parameters and
    order by attraction.
    """
    pool, deck, swaps = constants.pool, constants.work.deck, constants.work.swaps
    attraction, n_items = constants.values[0], len(swaps)
    items, values, features = state.items[b], state.values[b], state.features[b]
    n_user, n_item = pool.users.shape[1], pool.items.shape[1]
    user = int(rng.random() * len(pool.users))
    first, size = pool.starts[user], pool.sizes[user]
    state.user[b] = user
    for a in range(n_items):
        swap = a + int(rng.random() * (size - a))
        swaps[a] = swap
        deck[a], deck[swap] = deck[swap], deck[a]
        entry = first + deck[a]
        item = pool.entries[entry]
        items[a] = item
        for p in range(len(constants.values)):
            constants.values[p][a] = pool.values[p, entry]
        attraction[a] = min(max(pool.user_attraction[user] + attraction[a], 0.0), 1.0)
        for p in range(len(constants.values)):
            values[p, a] = constants.values[p][a]
        for j in range(n_user):
            features[a, j] = pool.users[user, j]
        for j in range(n_item):
            features[a, n_user + j] = pool.items[item, j]
        for q in range(len(pool.pairs)):
            product = features[a, pool.pairs[q, 0]] * features[a, pool.pairs[q, 1]]
            features[a, n_user + n_item + q] = product / features[a, 0]
        insert(constants.work.order, a, attraction, a)
    for a in range(n_items - 1, -1, -1):  # undo the swaps, so that a draw depends only on rng
        deck[a], deck[swaps[a]] = deck[swaps[a]], deck[a]


@kernel
def fill_by_ranks(constants, best):
    """Write the best list, for click models whose best list follows from the order of the
    candidates by attraction.
    """
    work = constants.work
    for k in range(len(best)):
        best[k] = work.order[work.ranks[k] if k < len(work.ranks) else k]


@cache
def make_candidate_scan_kernel(weigh: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that computes the best list of the candidates with `scan`, for a click
    model with the scan kernel ``weigh``.
    """

    @kernel
    def find(constants, best):
        work = constants.work
        gain, continuation, ratio = work.gain, work.continuation, work.ratio
        weigh(constants.parameters, constants.reward, gain, continuation)
        scan(gain, continuation, 0.0, ratio, work.scan_order, work.scan_values, work.best)
        complete_list(work, best)

    return find


@cache
def make_candidate_search_kernel(search: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that computes the best list of the candidates with the exact search
    ``search``.
    """

    @kernel
    def find(constants, best):
        work = constants.work
        search(
            constants.parameters,
            constants.values[0],
            work.order,
            constants.reward,
            constants.scratch,
            work,
        )
        complete_list(work, best)

    return find


@kernel
def complete_list(work, best):
    """Write a whole list: ``work.best`` at the positions that count, and below them the other
    candidates by decreasing attraction.
    """
    n = len(work.best)
    for k in range(n):
        best[k] = work.best[k]
        work.is_listed[work.best[k]] = True
    rank = 0
    for k in range(n, len(best)):
        while work.is_listed[work.order[rank]]:
            rank += 1
        best[k] = work.order[rank]
        rank += 1
    for k in range(n):
        work.is_listed[work.best[k]] = False


@cache
def make_candidate_draw_kernel(
    find_best: Callable[..., None], expected: Callable[..., float]
) -> Callable[..., bool]:
    """Return the kernel that draws a session's user and candidates, and computes the best list and
    its expected reward.
    """

    @kernel
    def begin(constants, state, b, rng):
        draw_candidates(constants, state, b, rng)
        best = state.best[b]
        find_best(constants, best)
        state.optimum[b] = expected(
            constants.parameters, best, constants.reward, constants.cutoff, constants.scratch
        )
        return False

    return begin


@cache
def make_candidate_session_kernel(
    simulate: Callable[..., Any],
) -> Callable[..., tuple[float, float, int]]:
    """Return the ``session`` kernel that simulates a session with the candidates of its stream, by
    calling the click model's session kernel ``simulate``.
    """

    @kernel
    def session(constants, state, b, ranking, uniforms, clicks, examined):
        use_candidates(constants, state, b)
        return simulate(constants, state, b, ranking, uniforms, clicks, examined)

    return session


class CandidateTask(Task):
    """Task of users who see new candidates in every session.

    Args:
        base: the click model of the users; its item parameters are replaced in every session.
        pool: the users and items from which sessions are drawn.
        reward: the name of the reward.
        cutoff: the number of positions, from the top, that count; None for all positions.
        gain: ``(N,)`` the gain of each item in the metric ``ndcg@k``; by default, its attraction.

    Raises:
        ValueError: the search for the best list would be too large.
    """

    state_type = CandidateState
    fields = {"items": "items"}  # lets agents read the item numbers of the candidates

    def __init__(
        self,
        base: ClickModel,
        pool: Pool,
        reward: str,
        cutoff: int | None,
        gain: NDArray[np.float64] | None = None,
    ) -> None:
        self.base, self.gain = base, gain
        code, n_counted = base.check_reward(reward, cutoff)
        names = base.item_parameters()
        self.sizes = {
            "L": base.n_items,
            "K": base.n_positions,
            "m": n_counted,
            "D": int(pool.sizes.max()),
            "d": pool.users.shape[1] + pool.items.shape[1] + len(pool.pairs),
            "p": len(names),
        }
        work = WorkingMemory(**first_arrays(WorkingMemory, self.sizes))
        ranks = base._places(code, n_counted)
        if ranks is not None:
            work.ranks[:] = ranks
        elif base.scan_kernel is None:
            base.check_search(reward, n_counted)
            work.bounds[:] = base.search_bounds(n_counted)
            if work.bounds[0].min() == 1:  # no bound shortens the search
                self.n_searched = math.perm(base.n_items, n_counted)
        # A metric that reads the parameters of items here becomes nan instead of a wrong number.
        self.model = copy(base)
        unknown = dict.fromkeys(names, np.full(base.n_items, np.nan))
        self.model.parameters = base.parameters._replace(**unknown)
        values = tuple(np.zeros(base.n_items) for _ in names)
        self.constants = CandidateConstants(
            base.parameters._replace(**dict(zip(names, values, strict=True))),
            values,
            code,
            n_counted,
            np.empty(base.n_positions + 1),
            pool,
            work,
        )
        self.observation_space = Dict(
            clicks=MultiBinary(base.n_positions),
            features=Box(-1.0, 1.0, (self.sizes["L"], self.sizes["d"]), np.float64),
        )

    @property
    def kernels(self) -> Kernels:  # type: ignore[override]
        base = self.base
        if base._places(self.constants.reward, self.constants.cutoff) is not None:
            find = fill_by_ranks
        elif base.scan_kernel is not None:
            find = make_candidate_scan_kernel(base.scan_kernel)
        else:
            find = make_candidate_search_kernel(make_search_kernel(base.expected_kernel))
        draw = make_candidate_draw_kernel(find, base.expected_kernel)
        simulate = make_click_session_kernel(base.sample_kernel, base.expected_kernel)
        return Kernels(make_candidate_session_kernel(simulate), draw, draw)

    def best(self, state: Any) -> NDArray[np.int64]:
        return state.best.copy()

    def observe(
        self, state: Any, b: int | slice, clicks: NDArray[np.int8]
    ) -> dict[str, NDArray[Any]]:
        return {"clicks": clicks, "features": state.features[b].copy()}

    def gains(self, state: Any, b: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
        if self.gain is None:
            return state.values[b, 0], np.arange(self.model.n_items)
        return self.gain, state.items[b]

    def info(self, state: Any, b: int | slice) -> dict[str, Any]:
        user = state.user.item(b) if isinstance(b, int) else state.user[b].copy()
        return {"next_user": user, "next_candidates": state.items[b].copy()}
