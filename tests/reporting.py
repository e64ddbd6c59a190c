"""`clickgym.run` with what sweeps have besides: reports of progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clickgym
from clickgym.runner import Metrics, engine_of
from clickgym.runner.run import checkpoint_steps, play


def run_reporting(
    agent: Any,
    env: Any,
    horizon: int,
    *,
    on_chunk: Callable[[int], object],
    seed: int | None = None,
    checkpoints: Any = None,
    engine: Any = "auto",
) -> clickgym.Result:
    """Run an agent, and report after each chunk how many sessions it had."""
    played_by = engine_of(agent, env, engine)
    return play(
        agent, env, played_by, checkpoint_steps(horizon, checkpoints), Metrics(), seed, on_chunk
    )
