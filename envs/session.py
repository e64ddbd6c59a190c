"""One session in compiled code: a user sees a list; and checks of lists for compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.kernels import inner, kernel, specialise

# Left open in the templates below; `specialise` binds them to a model's kernels.
sample: Callable[..., int]
expected: Callable[..., float]
play_session: Callable[..., tuple[float, float, int]]


def _session(parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    """One user meets one list: writes clicks and examined, returns the realised and the expected reward, and where the
    user left satisfied (-1: nowhere)."""
    satisfied = sample(parameters, ranking, uniforms, clicks, examined)
    n_clicks = 0
    for k in range(cutoff):
        n_clicks += clicks[k]
    if reward == 0:  # clicks
        realised = n_clicks
    elif reward == 1:  # any_click
        realised = min(n_clicks, 1)
    else:  # satisfaction: leaving below the cutoff does not count
        realised = 1 if 0 <= satisfied < cutoff else 0
    return float(realised), expected(parameters, ranking, reward, cutoff, scratch), satisfied


def _sessions(  # type: ignore[no-untyped-def]
    parameters, reward, cutoff, scratch, rankings, uniforms, clicks, examined, realised, expectation, satisfied
):
    """A batch of sessions."""
    for b in range(rankings.shape[0]):
        realised[b], expectation[b], satisfied[b] = play_session(
            parameters, rankings[b], uniforms[b], clicks[b], examined[b], reward, cutoff, scratch
        )


@inner
def bring(shared, items):  # type: ignore[no-untyped-def]
    """Let a model's kernels read the parameters of the items of one stream, ``(P, L)``."""
    for p in range(shared.shape[0]):
        for item in range(shared.shape[1]):
            shared[p, item] = items[p, item]


def _sessions_of_own_items(  # type: ignore[no-untyped-def]
    parameters, reward, cutoff, scratch, shared, items,
    rankings, uniforms, clicks, examined, realised, expectation, satisfied,
):  # fmt: skip
    """A session of each stream, each with items of its own."""
    for b in range(len(rankings)):
        bring(shared, items[b])
        realised[b], expectation[b], satisfied[b] = play_session(
            parameters, rankings[b], uniforms[b], clicks[b], examined[b], reward, cutoff, scratch
        )


@inner
def is_ranked_list(ranking, seen, mark):  # type: ignore[no-untyped-def]
    """Whether a list holds distinct items; ``seen`` is ``(L,)``, and nowhere ``mark`` at entry."""
    for k in range(len(ranking)):
        item = ranking[k]
        if item < 0 or item >= len(seen) or seen[item] == mark:
            return False
        seen[item] = mark
    return True


@kernel
def first_bad_list(rankings, seen):  # type: ignore[no-untyped-def]
    """The row of the first list that is not of distinct items, or -1. ``seen`` is ``(L,)`` and negative at entry."""
    for b in range(rankings.shape[0]):
        if not is_ranked_list(rankings[b], seen, b):
            return b
    return -1


def session(model: Any) -> Callable[..., tuple[float, float, int]]:
    """The compiled session of a model's class; environments and the runner call it."""
    if model.session_kernel is not None:
        return model.session_kernel
    return specialise(_session, sample=model.sample_kernel, expected=model.expected_kernel)


def sessions(model: Any) -> Callable[..., None]:
    """The compiled function that plays a batch of sessions, one for each given list.

    Args:
        model: the users.

    Returns:
        ``play(parameters, reward, cutoff, scratch, rankings, uniforms, *sessions)``: with the users' ``parameters``, the number
        of the reward in `REWARDS`, ``(K + 1,)`` numbers of ``scratch``, ``(n, K)`` lists and as many uniform draws; it writes
        into the arrays of `Sessions`.
    """
    return specialise(_sessions, play_session=session(model))


def sessions_of_own_items(model: Any) -> Callable[..., None]:
    """As `sessions` where each stream has items of its own.

    Returns:
        ``play(parameters, reward, cutoff, scratch, shared, items, rankings, uniforms, *sessions)``, with the parameters of
        items where the kernels read them, ``(P, L)``, and of each stream, ``(n, P, L)``.
    """
    return specialise(_sessions_of_own_items, play_session=session(model))
