"""The run that a loop plays, and the reset of its environment."""

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
    """One run, as a loop receives it.

    A loop is a function ``(Run) -> seconds`` that plays the run up to the meter's horizon. The
    environment has already been reset, and the agent continues from its present state.

    Attributes:
        agent: the agent that plays.
        env: the environment in which the agent plays.
        observation: the observation that ``env.reset`` returned.
        meter: the meter, which receives the totals.
        metrics: the metrics besides regret, reward and clicks.
        on_chunk: called from time to time with the number of sessions since its last call. It can
            end the run by raising an InterruptedError.
    """

    agent: Any
    env: gym.Env[Any, Any]
    observation: Any
    meter: Meter
    metrics: Metrics
    on_chunk: OnChunk | None


def first_observation(agent: Any, env: gym.Env, seed: int | None = None) -> Any:
    """Reset an environment for an agent, and return the first observation.

    Raises:
        SessionError: the environment failed.
    """
    try:
        result = env.reset(seed=seed)
        if not isinstance(result, tuple) or len(result) != 2:
            raise Fault(f"it returned {short_repr(result)}; expected (observation, info)")
    except FAILURES as error:
        raise environment_error(agent, env, "reset", error) from error
    return result[0]
