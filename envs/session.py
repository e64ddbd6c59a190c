"""Sessions in compiled code: one user sees one list, on one stream or on many."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import kernel
from ..core.state import Flags, Floats, Ints, first_arrays

Bytes = NDArray[np.int8]


class Shown(NamedTuple):
    """The last session of one stream."""

    uniforms: Annotated[Floats, "U"]
    clicks: Annotated[Bytes, "K"]
    examined: Annotated[Bytes, "K"]
    listed: Annotated[Ints, "L", -1]  # the number of the last list with each item, also if refused
    n_lists: Annotated[Ints, "1"]
    n_sessions: Annotated[Ints, "1"]  # the number of the last list that has its clicks
    draws: Annotated[Flags, "1"]  # in the compiled loop: whether users draw what follows


class Batch(NamedTuple):
    """The sessions of B streams."""

    uniforms: Annotated[Floats, "B U"]
    clicks: Annotated[Bytes, "B K"]
    examined: Annotated[Bytes, "B K"]
    realised: Annotated[Floats, "B"]
    expectation: Annotated[Floats, "B"]
    optimum: Annotated[Floats, "B"]
    begins: Annotated[Flags, "B"]  # whether the next call draws a new user instead of a session
    listed: Annotated[Ints, "L"]  # the last stream whose list has each item


def nothing_shown(model: Any, n_streams: int | None = None) -> Any:
    """Return a `Shown` before the first session, or a `Batch` of some streams."""
    sizes = {"L": model.n_items, "K": model.n_positions, "U": model.n_uniforms}
    if n_streams is None:
        return Shown(**first_arrays(Shown, sizes))
    return Batch(**first_arrays(Batch, {**sizes, "B": n_streams}))


@kernel
def is_ranked_list(ranking, listed, mark):
    """Whether a list holds distinct items. Each gets the mark in ``listed``, ``(L,)``, where none
    may have it before.
    """
    for k in range(len(ranking)):
        item = ranking[k]
        if item < 0 or item >= len(listed) or listed[item] == mark:
            return False
        listed[item] = mark
    return True


@cache
def play_session(session: Callable[..., Any]) -> Callable[..., tuple[bool, float, float, int]]:
    """Return the kernel of a session of the first stream: it checks the list, draws the uniform
    numbers, and simulates.

    It returns whether the list is valid (if not, nothing is drawn), the realised and the expected
    reward, and the position at which the user left satisfied, or -1.
    """

    @kernel
    def play_session(users, state, rng, shown, ranking):
        shown.n_lists[0] += 1
        if not is_ranked_list(ranking, shown.listed, shown.n_lists[0]):
            return False, 0.0, 0.0, -1
        for k in range(len(shown.uniforms)):
            shown.uniforms[k] = rng.random()
        first = np.int64(0)  # a constant has a type of its own, for which numba compiles again
        realised, expectation, satisfied = session(
            users, state, first, ranking, shown.uniforms, shown.clicks, shown.examined
        )
        shown.n_sessions[0] = shown.n_lists[0]
        return True, realised, expectation, satisfied

    return play_session


@cache
def single_step(
    session: Callable[..., Any], begin: Callable[..., Any], advance: Callable[..., bool]
) -> Callable[..., tuple[float, float, float, int, bool]]:
    """Return the kernel of `ClickEnv.step`, which plays a session by the uniform numbers in
    ``shown``, and draws what follows.

    It returns the realised, the expected and the optimal reward, the position at which the user
    left satisfied, and whether the user has left for good.
    """

    @kernel
    def single_step(users, state, rng, shown, ranking):
        first, optimum = np.int64(0), state.optimum[0]
        realised, expectation, satisfied = session(
            users, state, first, ranking, shown.uniforms, shown.clicks, shown.examined
        )
        return realised, expectation, optimum, satisfied, advance(users, state, first, rng)

    return single_step


@kernel
def are_ranked_lists(rankings, listed, begins):
    """Whether all lists hold distinct items, but for those of streams that begin."""
    listed[:] = -1
    for b in range(len(rankings)):
        if not begins[b] and not is_ranked_list(rankings[b], listed, b):
            return False
    return True


@cache
def batch_step(
    session: Callable[..., Any], begin: Callable[..., Any], advance: Callable[..., bool]
) -> Callable[..., bool]:
    """Return the kernel of `ClickVectorEnv.step`, which plays a session on each stream by the
    uniform numbers in ``batch``, and draws what follows. A stream that ``batch.begins`` gets a new
    user instead, and 0 everywhere.

    It returns whether any user has left for good.
    """

    @kernel
    def batch_step(users, state, rng, batch, rankings):
        begins, has_left = batch.begins, False
        for b in range(len(rankings)):
            clicks, examined = batch.clicks[b], batch.examined[b]
            if begins[b]:
                clicks[:], examined[:] = 0, 0
                batch.realised[b], batch.expectation[b], batch.optimum[b] = 0.0, 0.0, 0.0
                begins[b] = False
                begin(users, state, b, rng)
            else:
                batch.optimum[b] = state.optimum[b]
                batch.realised[b], batch.expectation[b], _ = session(
                    users, state, b, rankings[b], batch.uniforms[b], clicks, examined
                )
                if advance(users, state, b, rng):
                    begins[b], has_left = True, True
        return has_left

    return batch_step


@cache
def begin_streams(begin: Callable[..., Any]) -> Callable[..., None]:
    """Return the kernel that draws the first session of a new user on the streams ``which``,
    ``(B,)`` booleans.
    """

    @kernel
    def begin_streams(users, state, rng, which):
        for b in range(len(which)):
            if which[b]:
                begin(users, state, b, rng)

    return begin_streams
