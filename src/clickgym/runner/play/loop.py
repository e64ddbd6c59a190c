"""What each loop plays: a run, whose environment was reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym

from ...core.checks import short_repr
from ...core.errors import FAILURES, Fault
from ...envs.meter import Meter
from .metrics import Metrics
from .run_errors import environment_error

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
