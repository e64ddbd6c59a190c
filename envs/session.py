"""One session in compiled code: a user sees a list; and checks of lists for compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..core.kernels import entry, kernel


def session(model: Any) -> Callable[..., tuple[float, float, int]]:
    """The kernel of one session of a model's class; environments and the runner call it."""
    return model.session_kernel or _session(model.sample_kernel, model.expected_kernel)


def sessions(model: Any) -> Callable[..., None]:
    """The compiled function that plays a batch of sessions, one for each given list.

    Args:
        model: the users.

    Returns:
        ``play(parameters, reward, cutoff, scratch, rankings, uniforms, *sessions)``: with the
        users' ``parameters``, the number of the reward in `REWARDS`, ``(K + 1,)`` numbers of
        ``scratch``, ``(n, K)`` lists and as many uniform draws; it writes into the arrays of
        `Sessions`.
    """
    return entry(_sessions(session(model)))


def sessions_of_own_items(model: Any) -> Callable[..., None]:
    """As `sessions` where each stream has items of its own.

    Returns:
        ``play(parameters, reward, cutoff, scratch, shared, items, rankings, uniforms, *sessions)``,
        with the parameters of items where the kernels read them, ``(P, L)``, and of each stream,
        ``(n, P, L)``.
    """
    return entry(_sessions_of_own_items(session(model)))


@cache
def _session(
    sample: Callable[..., int], expected: Callable[..., float]
) -> Callable[..., tuple[float, float, int]]:
    @kernel
    def session(parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
        """One user sees one list: writes clicks and examined, returns the realised and the expected
        reward, and where the user left satisfied (-1: nowhere).
        """
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

    return session


@cache
def _sessions(play_session: Callable[..., tuple[float, float, int]]) -> Callable[..., None]:
    @kernel
    def sessions(  # type: ignore[no-untyped-def]
        parameters,
        reward,
        cutoff,
        scratch,
        rankings,
        uniforms,
        clicks,
        examined,
        realised,
        expectation,
        satisfied,
    ):
        for b in range(rankings.shape[0]):
            realised[b], expectation[b], satisfied[b] = play_session(
                parameters,
                rankings[b],
                uniforms[b],
                clicks[b],
                examined[b],
                reward,
                cutoff,
                scratch,
            )

    return sessions


@cache
def _sessions_of_own_items(
    play_session: Callable[..., tuple[float, float, int]],
) -> Callable[..., None]:
    @kernel
    def sessions_of_own_items(  # type: ignore[no-untyped-def]
        parameters,
        reward,
        cutoff,
        scratch,
        shared,
        items,
        rankings,
        uniforms,
        clicks,
        examined,
        realised,
        expectation,
        satisfied,
    ):
        for b in range(len(rankings)):
            for p in range(shared.shape[0]):
                for item in range(shared.shape[1]):
                    shared[p, item] = items[b, p, item]
            realised[b], expectation[b], satisfied[b] = play_session(
                parameters,
                rankings[b],
                uniforms[b],
                clicks[b],
                examined[b],
                reward,
                cutoff,
                scratch,
            )

    return sessions_of_own_items


@kernel
def is_ranked_list(ranking, seen, mark):  # type: ignore[no-untyped-def]
    """Whether a list holds distinct items; ``seen`` is ``(L,)``, and nowhere ``mark`` at entry."""
    for k in range(len(ranking)):
        item = ranking[k]
        if item < 0 or item >= len(seen) or seen[item] == mark:
            return False
        seen[item] = mark
    return True


@entry
def first_bad_list(rankings, seen):  # type: ignore[no-untyped-def]
    """The row of the first list that is not of distinct items, or -1. ``seen`` is ``(L,)`` and
    negative at entry.
    """
    for b in range(rankings.shape[0]):
        if not is_ranked_list(rankings[b], seen, b):
            return b
    return -1
