"""Sessions in compiled code: one user sees one list, in one environment or on many streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..core.kernels import entry, kernel


@kernel
def is_ranked_list(ranking, seen, mark):
    """Whether a list holds distinct items; ``seen`` is ``(L,)``, and nowhere ``mark`` at entry."""
    for k in range(len(ranking)):
        item = ranking[k]
        if item < 0 or item >= len(seen) or seen[item] == mark:
            return False
        seen[item] = mark
    return True


@entry
def first_bad_list(rankings, seen):
    """The row of the first list that is not of distinct items, or -1. ``seen`` is ``(L,)`` and
    negative at entry.
    """
    for b in range(rankings.shape[0]):
        if not is_ranked_list(rankings[b], seen, b):
            return b
    return -1


def session(model: Any) -> Callable[..., tuple[float, float, int]]:
    """The kernel of one session of a model's class; environments and the runner call it."""
    return model.session_kernel or _click_session(model.sample_kernel, model.expected_kernel)


@cache
def _click_session(
    sample: Callable[..., int], expected: Callable[..., float]
) -> Callable[..., tuple[float, float, int]]:
    @kernel
    def session(parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch):
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
def play_list(play: Callable[..., Any], advance: Callable[..., None]) -> Any:
    """The compiled function of `ClickEnv.step`: it checks a list, plays a session, and draws what
    the next one brings.

    Args:
        play: the kernel of a session.
        advance: as in `Task`.

    Returns:
        The entry ``play_list(parameters, reward, cutoff, pool, drawn, rng, scratch, ranking, seen,
        mark, uniforms, clicks, examined)``, with the fields of the task and the arguments of
        `is_ranked_list`. It returns whether it is a list (if not, nothing is played), the realised,
        the expected and the optimal reward, and where the user left satisfied.
    """

    @kernel
    def play_list(
        parameters,
        reward,
        cutoff,
        pool,
        drawn,
        rng,
        scratch,
        ranking,
        seen,
        mark,
        uniforms,
        clicks,
        examined,
    ):
        optimum = drawn.optimum[0]
        if not is_ranked_list(ranking, seen, mark):
            return False, 0.0, 0.0, optimum, -1
        realised, expectation, satisfied = play(
            parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch
        )
        advance(parameters, reward, pool, drawn, rng, scratch)
        return True, realised, expectation, optimum, satisfied

    return entry(play_list)


@cache
def play_streams(
    play: Callable[..., Any],
    load: Callable[..., None],
    advance: Callable[..., None],
    store: Callable[..., None],
) -> Any:
    """The compiled function of `ClickVectorEnv.step`: as `play_list` without the check, for B
    streams.

    Returns:
        The entry ``play_streams(parameters, reward, cutoff, pool, drawn, rng, scratch, streams,
        rankings, uniforms, clicks, examined, realised, expectation, satisfied)``: ``streams`` holds
        the rounds of the streams. Of ``drawn``, the task's own, there is one: each round is loaded
        into it and stored again.
    """

    @kernel
    def play_streams(
        parameters,
        reward,
        cutoff,
        pool,
        drawn,
        rng,
        scratch,
        streams,
        rankings,
        uniforms,
        clicks,
        examined,
        realised,
        expectation,
        satisfied,
    ):
        for b in range(len(rankings)):
            load(streams, b, drawn)
            realised[b], expectation[b], satisfied[b] = play(
                parameters,
                rankings[b],
                uniforms[b],
                clicks[b],
                examined[b],
                reward,
                cutoff,
                scratch,
            )
            advance(parameters, reward, pool, drawn, rng, scratch)
            store(streams, b, drawn)

    return entry(play_streams)


@cache
def draw_streams(
    load: Callable[..., None], advance: Callable[..., None], store: Callable[..., None]
) -> Any:
    """The compiled function that draws the next rounds of some streams, without a session.

    Returns:
        The entry ``draw_streams(parameters, reward, pool, drawn, rng, scratch, streams, which)``,
        ``which`` ``(B,)`` booleans.
    """

    @kernel
    def draw_streams(parameters, reward, pool, drawn, rng, scratch, streams, which):
        for b in range(len(which)):
            if which[b]:
                load(streams, b, drawn)
                advance(parameters, reward, pool, drawn, rng, scratch)
                store(streams, b, drawn)

    return entry(draw_streams)
