"""`PreparedRun`, the argument of every loop, and `first_observation`, which resets the
environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym

from ...core.errors import FAILURES, Fault
from ...core.messages import short_repr
from ...measure.meter import CheckpointMeter
from ..errors import environment_error
from .additional_metrics import AdditionalMetrics

CHUNK = 0.05
"""Seconds between two progress reports."""

OnChunk = Callable[[int], object]


class PreparedRun(NamedTuple):
    """Everything that a loop needs to play one run.

    A loop is a function ``(PreparedRun) -> seconds`` that plays sessions until the meter reaches
    its horizon. Before the loop starts, the environment has already been reset. The agent continues
    from its current state.

    Attributes:
        agent: the agent that plays.
        env: the environment in which the agent plays.
        observation: the observation that ``env.reset`` returned.
        meter: the meter, which adds up regret, reward, clicks and metrics.
        metrics: the metrics in addition to regret, reward and clicks.
        on_chunk: a function that the loop calls from time to time with the number of sessions since
            the last call; None if nobody needs the number. The function can end the run by raising
            an InterruptedError.
    """

    agent: Any
    env: gym.Env[Any, Any]
    observation: Any
    meter: CheckpointMeter
    metrics: AdditionalMetrics
    on_chunk: OnChunk | None


def first_observation(agent: Any, env: gym.Env, seed: int | None = None) -> Any:
    """Reset an environment, and return the first observation.

    Raises:
        SessionError: the environment failed; the message names the agent, too.
    """
    try:
        result = env.reset(seed=seed)
        if not isinstance(result, tuple) or len(result) != 2:
            raise Fault(f"the result is {short_repr(result)}; expected (observation, info)")
    except FAILURES as error:
        raise environment_error(agent, env, "reset", error) from error
    return result[0]
