"""The argument of each of the three loops: the pair that plays, and its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym

from ...envs.meter import Meter
from .metrics import Metrics

CHUNK, FIRST_CHUNK = 0.05, 1000
"""Seconds between two reports of progress, and the sessions before the first one."""


OnChunk = Callable[[int], object]


class Run(NamedTuple):
    """One run. A loop plays it up to the meter's horizon: it continues from the agent's present
    state, and the environment has been reset.
    """

    agent: Any
    env: gym.Env[Any, Any]
    observation: Any  # what reset returned
    meter: Meter  # receives the totals
    metrics: Metrics  # what is measured besides
    on_chunk: OnChunk | None
    """Called from time to time with the number of sessions since its last call; what it raises ends
    the run.
    """
