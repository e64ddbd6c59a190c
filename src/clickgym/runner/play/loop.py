"""A run, which one of the loops plays, and the errors that say who failed in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from ...core.checks import short_repr
from ...core.errors import FAILURES, Fault, SessionError, cause
from ...core.kernels import KernelError
from ...envs import check_ranking
from ...envs.base_env import name_of
from ...envs.meter import Meter

if TYPE_CHECKING:
    from .metrics import Metrics

CHUNK = 0.05
"""Seconds between two reports of progress."""

OnChunk = Callable[[int], object]


class Run(NamedTuple):
    """One run. A loop, ``(Run) -> seconds``, plays it up to the meter's horizon: it continues from
    the agent's present state, and the environment has been reset.

    Attributes:
        agent, env: who plays where.
        observation: what ``env.reset`` returned.
        meter: receives the totals.
        metrics: what is measured besides.
        on_chunk: called from time to time with the number of sessions since its last call; an
            InterruptedError that it raises ends the run.
    """

    agent: Any
    env: gym.Env[Any, Any]
    observation: Any
    meter: Meter
    metrics: Metrics
    on_chunk: OnChunk | None


class AgentError(SessionError):
    """An agent failed during a run; the message names the agent, the step and the fault."""


def first_observation(agent: Any, env: gym.Env, seed: int | None = None) -> Any:
    """Reset an environment for an agent; return the observation.

    Raises:
        SessionError: the environment failed.
    """
    try:
        answer = env.reset(seed=seed)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Fault(f"it returned {short_repr(answer)}; expected (observation, info)")
    except FAILURES as error:
        raise environment_error(agent, env, "reset", error) from error
    return answer[0]


def check_list(
    agent: Any, ranking: Any, n_items: int, n_positions: int, what: str, number: int
) -> None:
    """Raise an `AgentError` for a bad list; ``what`` and ``number`` say when, such as ``"step",
    7``.
    """
    try:
        check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise AgentError(f"{type(agent).__name__}, {what} {number}: {error}") from None


def session_error(agent: Any, env: gym.Env, when: str, error: BaseException) -> BaseException:
    """Return the error to raise for a fault of an agent in an environment; ``when`` is a text such
    as ``"step 7"``.

    An error that already names its source is kept; a SessionError gets the agent's name.
    """
    if type(error) is SessionError:
        return SessionError(f"{error}, facing {type(agent).__name__}")
    if isinstance(error, AgentError | KernelError):
        return error
    return AgentError(f"{type(agent).__name__} in {name_of(env)}, {when}: {cause(error)}")


def environment_error(agent: Any, env: gym.Env, when: str, error: BaseException) -> BaseException:
    """Return the error to raise for a fault of an environment; arguments as in `session_error`."""
    if isinstance(error, KernelError):
        return error
    text = str(error) if isinstance(error, Fault | SessionError) else cause(error)
    if not isinstance(error, SessionError):  # else it names the environment
        text = f"{name_of(env)}, {when}: {text}"
    return SessionError(f"{text}, facing {type(agent).__name__}")
