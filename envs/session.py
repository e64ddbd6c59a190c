"""Sessions in compiled code: one user sees one list, in one environment or on many streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..core.kernels import entry, kernel


@kernel
def is_ranked_list(ranking, seen, mark):
    """Whether a list holds distinct items; no entry of ``seen``, ``(L,)``, may be ``mark``."""
    for k in range(len(ranking)):
        item = ranking[k]
        if item < 0 or item >= len(seen) or seen[item] == mark:
            return False
        seen[item] = mark
    return True


@entry
def first_bad_list(rankings, seen):
    """Return the row of the first list that does not hold distinct items, or -1. All entries of
    ``seen``, ``(L,)``, must be negative.
    """
    for b in range(rankings.shape[0]):
        if not is_ranked_list(rankings[b], seen, b):
            return b
    return -1


def session(model: Any) -> Callable[..., tuple[float, float, int]]:
    """Return the kernel of one session for a model's class; environments and the runner call it."""
    return model.session_kernel or _click_session(model.sample_kernel, model.expected_kernel)


@cache
def _click_session(
    sample: Callable[..., int], expected: Callable[..., float]
) -> Callable[..., tuple[float, float, int]]:
    @kernel
    def session(parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch):
        """Simulate one session: write clicks and examined; return the realised and the expected
        reward, and the position at which the user left satisfied, or -1.
        """
        satisfied = sample(parameters, ranking, uniforms, clicks, examined)
        n_clicks = 0
        for k in range(cutoff):
            n_clicks += clicks[k]
        if reward == 0:  # clicks
            realised = n_clicks
        elif reward == 1:  # any_click
            realised = min(n_clicks, 1)
        else:  # satisfaction: a user who leaves below the cutoff does not count
            realised = 1 if 0 <= satisfied < cutoff else 0
        return float(realised), expected(parameters, ranking, reward, cutoff, scratch), satisfied

    return session


@cache
def single_step(simulate: Callable[..., Any], advance: Callable[..., None]) -> Any:
    """Return the compiled function of `ClickEnv.step`: it checks a list, simulates a session, and
    draws the next round.

    Args:
        simulate: the kernel of a session.
        advance: as in `Task`.

    Returns:
        The entry ``single_step(parameters, reward, cutoff, pool, current, rng, scratch, ranking,
        seen, mark, uniforms, clicks, examined)``, with the fields of the task (``current`` is its
        round) and the arguments of `is_ranked_list`. It returns whether the list is valid (if not,
        no session is simulated), the realised, the expected and the optimal reward, and the
        position at which the user left satisfied.
    """

    @kernel
    def single_step(
        parameters,
        reward,
        cutoff,
        pool,
        current,
        rng,
        scratch,
        ranking,
        seen,
        mark,
        uniforms,
        clicks,
        examined,
    ):
        optimum = current.optimum[0]
        if not is_ranked_list(ranking, seen, mark):
            return False, 0.0, 0.0, optimum, -1
        realised, expectation, satisfied = simulate(
            parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch
        )
        advance(parameters, reward, pool, current, rng, scratch)
        return True, realised, expectation, optimum, satisfied

    return entry(single_step)


@cache
def batch_step(
    simulate: Callable[..., Any],
    load: Callable[..., None],
    advance: Callable[..., None],
    store: Callable[..., None],
) -> Any:
    """Return the compiled function of `ClickVectorEnv.step`: as `single_step` without the check,
    for B streams.

    Returns:
        The entry ``batch_step(parameters, reward, cutoff, pool, current, rng, scratch, streams,
        rankings, uniforms, clicks, examined, realised, expectation, satisfied)``. ``streams`` holds
        the rounds of all streams. Each is loaded into ``current``, the round of the task, and
        stored again.
    """

    @kernel
    def batch_step(
        parameters,
        reward,
        cutoff,
        pool,
        current,
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
            load(streams, b, current)
            realised[b], expectation[b], satisfied[b] = simulate(
                parameters,
                rankings[b],
                uniforms[b],
                clicks[b],
                examined[b],
                reward,
                cutoff,
                scratch,
            )
            advance(parameters, reward, pool, current, rng, scratch)
            store(streams, b, current)

    return entry(batch_step)


@cache
def draw_streams(
    load: Callable[..., None], advance: Callable[..., None], store: Callable[..., None]
) -> Any:
    """Return the compiled function that draws the next rounds of some streams, without a session.

    Returns:
        The entry ``draw_streams(parameters, reward, pool, current, rng, scratch, streams, which)``;
        ``which`` are ``(B,)`` booleans.
    """

    @kernel
    def draw_streams(parameters, reward, pool, current, rng, scratch, streams, which):
        for b in range(len(which)):
            if which[b]:
                load(streams, b, current)
                advance(parameters, reward, pool, current, rng, scratch)
                store(streams, b, current)

    return entry(draw_streams)
