"""Kernels that simulate sessions, on one stream or on many streams; in each session, one user sees
one list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.kernels import kernel
from ...core.state import Flags, Floats, Ints, first_arrays

Bytes = NDArray[np.int8]


class SessionBuffers(NamedTuple):
    """Buffers for the last session of one stream."""

    uniforms: Annotated[Floats, "U"]
    clicks: Annotated[Bytes, "K"]
    examined: Annotated[Bytes, "K"]
    last_list_of: Annotated[
        Ints, "L", -1
    ]  # the number of the last list that contained each item, valid or not
    n_lists: Annotated[Ints, "1"]
    n_sessions: Annotated[Ints, "1"]  # the number of the last list that was shown
    ranking: Annotated[Ints, "K"]  # the list that `ClickEnv.step` shows
    draws: Annotated[Flags, "1"]  # compiled loop: True while an error is the users' fault


class Batch(NamedTuple):
    """Buffers for one session on each of B streams."""

    uniforms: Annotated[Floats, "B U"]
    clicks: Annotated[Bytes, "B K"]
    examined: Annotated[Bytes, "B K"]
    realised: Annotated[Floats, "B"]
    expectation: Annotated[Floats, "B"]
    optimum: Annotated[Floats, "B"]
    rankings: Annotated[Ints, "B K"]
    begins: Annotated[Flags, "B"]  # True: the next step only draws a new user
    last_list_of: Annotated[Ints, "L"]  # the last stream whose list contains each item


def empty_buffers(model: Any, n_streams: int | None = None) -> Any:
    """Return empty buffers: `SessionBuffers` for one stream, or a `Batch` if ``n_streams`` is
    given.
    """
    sizes = {"L": model.n_items, "K": model.n_positions, "U": model.n_uniforms}
    if n_streams is None:
        return SessionBuffers(**first_arrays(SessionBuffers, sizes))
    return Batch(**first_arrays(Batch, {**sizes, "B": n_streams}))


@kernel
def mark_ranked_list(ranking, last_list_of, number):
    """Return whether a list consists of distinct items from 0 to L - 1.

    The function writes ``number`` into ``last_list_of``, ``(L,)``, at each item of the list. At the
    call, no entry of ``last_list_of`` may be equal to ``number``.
    """
    for k in range(len(ranking)):
        item = ranking[k]
        if item < 0 or item >= len(last_list_of) or last_list_of[item] == number:
            return False
        last_list_of[item] = number
    return True


@cache
def make_session_kernel(
    session: Callable[..., Any],
) -> Callable[..., tuple[bool, float, float, int]]:
    """Return a kernel that checks a list, draws the uniform numbers, and simulates a session on the
    first stream.

    The kernel returns whether the list is valid (if it is not, nothing is drawn), the realised
    reward, the expected reward, and the position at which the user left satisfied, or -1.
    """

    @kernel
    def play_session(constants, state, rng, shown, ranking):
        shown.n_lists[0] += 1
        if not mark_ranked_list(ranking, shown.last_list_of, shown.n_lists[0]):
            return False, 0.0, 0.0, -1
        for k in range(len(shown.uniforms)):
            shown.uniforms[k] = rng.random()
        first = np.int64(0)  # a literal 0 has another type, for which numba would compile again
        realised, expectation, satisfied = session(
            constants, state, first, ranking, shown.uniforms, shown.clicks, shown.examined
        )
        shown.n_sessions[0] = shown.n_lists[0]
        return True, realised, expectation, satisfied

    return play_session


@cache
def make_step_kernel(
    session: Callable[..., Any], begin: Callable[..., Any], advance: Callable[..., bool]
) -> Callable[..., tuple[bool, float, float, float, int, bool]]:
    """Return the kernel of `ClickEnv.step`, which simulates a session with the list in
    ``shown.ranking`` and then draws the next session.

    The kernel returns whether the list is valid (if it is not, nothing is drawn), the realised, the
    expected and the optimal reward, the position at which the user left satisfied (or -1), and
    whether the user has left for good.
    """
    play_one = make_session_kernel(session)

    @kernel
    def single_step(constants, state, rng, shown):
        optimum = state.optimum[0]
        is_valid, realised, expectation, satisfied = play_one(
            constants, state, rng, shown, shown.ranking
        )
        has_left = advance(constants, state, np.int64(0), rng) if is_valid else False
        return is_valid, realised, expectation, optimum, satisfied, has_left

    return single_step


@cache
def make_batch_step_kernel(
    session: Callable[..., Any], begin: Callable[..., Any], advance: Callable[..., bool]
) -> Callable[..., bool]:
    """Return the kernel of `ClickVectorEnv.step`, which simulates a session on each stream and then
    draws the next session.

    On a stream b where ``batch.begins[b]`` is True, the kernel draws a new user instead, and sets
    clicks and rewards to 0. The kernel returns whether all lists are valid; if a list is invalid,
    nothing is drawn.
    """

    @kernel
    def batch_step(constants, state, rng, batch):
        begins, rankings = batch.begins, batch.rankings
        batch.last_list_of[:] = -1
        for b in range(len(rankings)):
            if not begins[b] and not mark_ranked_list(rankings[b], batch.last_list_of, b):
                return False
        for b in range(len(rankings)):
            for k in range(batch.uniforms.shape[1]):
                batch.uniforms[b, k] = rng.random()
        for b in range(len(rankings)):
            clicks, examined = batch.clicks[b], batch.examined[b]
            if begins[b]:
                clicks[:], examined[:] = 0, 0
                batch.realised[b], batch.expectation[b], batch.optimum[b] = 0.0, 0.0, 0.0
                begins[b] = False
                begin(constants, state, b, rng)
            else:
                batch.optimum[b] = state.optimum[b]
                batch.realised[b], batch.expectation[b], _ = session(
                    constants, state, b, rankings[b], batch.uniforms[b], clicks, examined
                )
                begins[b] = advance(constants, state, b, rng)
        return True

    return batch_step


@cache
def make_begin_kernel(begin: Callable[..., Any]) -> Callable[..., None]:
    """Return a kernel that draws a new user's first session on each stream selected by the mask
    ``streams``, ``(B,)``.
    """

    @kernel
    def begin_streams(constants, state, rng, streams):
        for b in range(len(streams)):
            if streams[b]:
                begin(constants, state, b, rng)

    return begin_streams
