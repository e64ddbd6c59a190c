"""The run that a loop plays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym

from ...envs.meter import Meter
from .measuring import Metrics

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
        on_chunk: called from time to time with the number of sessions since its last call; what it
            raises ends the run.
    """

    agent: Any
    env: gym.Env[Any, Any]
    observation: Any
    meter: Meter
    metrics: Metrics
    on_chunk: OnChunk | None
