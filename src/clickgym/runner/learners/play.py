"""Learners of stable-baselines3 in the native vector environments, measured like any agent.

Import this module only where stable-baselines3 is wanted: it comes with ``pip install
"clickgym[rl]"`` and brings torch.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from ...agents.stable_baselines import Actions, Learner
from ...agents.vec_env import StableBaselinesVecEnv
from ...envs import (
    REWARDS,
    CascadeMDP,
    ClickEnv,
    ClickVectorEnv,
    ContextualModel,
    RecordVectorRegret,
)
from ...envs.wrappers.actions import LehmerVectorAction, ScoresVectorAction
from ...envs.wrappers.item_choices import ItemChoices
from ...envs.wrappers.regret import Meter
from ..loop import OnChunk
from ..metrics import Metrics
from ..pairs import Pair
from .in_turn import InTurn
from .observed_state import ObservedState

WRAPPERS: dict[Actions, Callable[..., VectorEnv]] = {
    "rankings": lambda envs, items: envs,  # their actions are lists of ids
    "codes": LehmerVectorAction,
    "scores": ScoresVectorAction,
    "items": ItemChoices,
}


def play_learner(
    pair: Pair, meter: Meter, metrics: Metrics, on_chunk: OnChunk | None = None
) -> None:
    """Let a learner play up to the meter's horizon; the environment must have been reset.

    It plays streams of its own: a `ClickVectorEnv` of the environment's click model, seeded from
    the environment's generator. If candidates change, it plays the sessions of the environment
    itself in turn (`InTurn`). Sessions are counted step by step, and within a step stream by
    stream. The last step may play up to ``n_envs - 1`` sessions beyond the horizon, which do not
    count.

    Args:
        pair: the learner, which goes on from what it has learned, and its environment.
        meter: receives the totals.
        metrics: what is measured besides.
        on_chunk: called after each step with the number of its sessions; what it raises ends the
            run.

    Raises:
        RuntimeError: the learner ended before the horizon.
    """
    agent: Learner = pair.agent
    click_env: ClickEnv = pair.place.core
    if not isinstance(click_env.model, ContextualModel):
        envs = _streams(agent, _recorded(agent, click_env, agent.n_envs, meter, metrics))
        envs.seed(int(click_env.np_random.integers(2**31)))
    else:
        envs = _streams(
            agent,
            InTurn(click_env, agent.n_envs, meter, metrics, apart=agent.actions == "rankings"),
        )
    reported = 0

    def on_step() -> bool:
        nonlocal reported
        if on_chunk is not None and meter.step > reported:
            on_chunk(meter.step - reported)
        reported = meter.step
        return meter.step < meter.horizon

    agent.learn(envs, meter.horizon, on_step)
    if meter.step < meter.horizon:  # its regret would pass for that of the whole horizon
        raise RuntimeError(f"{pair.name} ended after {meter.step} of {meter.horizon} sessions")


def _recorded(
    agent: Learner, click_env: ClickEnv, n_envs: int, meter: Meter, metrics: Metrics
) -> RecordVectorRegret:
    """Streams of an environment's users, each with generators of its own, and the meter that counts
    them.
    """
    task = click_env.task
    remembers = isinstance(task.model, CascadeMDP)
    if remembers:
        agent.discount = task.model.discount
    recorded = RecordVectorRegret(
        ClickVectorEnv(
            task.model,
            n_envs,
            REWARDS[task.code],
            task.cutoff,
            reference=None if remembers else task.optimal_ranking,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    )
    recorded.meter = meter
    contexts = metrics.contexts(click_env)

    def on_session(
        ranking: NDArray[np.int64], clicks: NDArray[np.int8], expectation: float
    ) -> None:
        metrics.measure(contexts, ranking, clicks, expectation, meter.totals, 3)

    recorded.on_session = on_session if metrics.summed else None
    return recorded


def _streams(agent: Learner, envs: VectorEnv) -> StableBaselinesVecEnv:
    """What the library plays on, with actions of the learner's kind."""
    if agent.discount is None:
        return StableBaselinesVecEnv(WRAPPERS[agent.actions](envs, agent.items))
    options = {"across_lists": True} if agent.actions == "items" else {}
    return StableBaselinesVecEnv(
        WRAPPERS[agent.actions](ObservedState(envs), agent.items, **options)
    )


LONGEST = 10.0
"""Seconds of a trial that waits for the first gradient step."""


def expected_seconds(pair: Pair, horizon: int, seconds: float = 1.5) -> float:
    """Estimate the time of a run of a learner on this machine, by a short trial; do not use the
    learner afterwards.

    Args:
        pair: as for `play_learner`; the environment is reset.
        horizon: T, the sessions of a run.
        seconds: how long to play, apart from the first step. The rate is of the second half: an
            algorithm may gather sessions before it learns from them. One that first gathers a whole
            rollout plays on until it has learned from it.
    """
    agent: Learner = pair.agent
    pair.place.env.reset(seed=0)
    meter = Meter([horizon])
    per_step, steps = _seconds_per_step(
        agent, lambda on_chunk: play_learner(pair, meter, Metrics(), on_chunk), seconds
    )
    return per_step * steps / max(meter.step, 1) * horizon


def _seconds_per_step(
    agent: Learner, play: Callable[[OnChunk], None], seconds: float
) -> tuple[float, int]:
    """Seconds of a step, in whole rollouts of the second half of a trial, and how many steps there
    were.
    """
    times: list[float] = []

    def on_chunk(_: int) -> None:
        times.append(time.perf_counter())
        spent = times[-1] - times[0]
        if spent > LONGEST or (spent > seconds and len(times) > _rollout(agent)):
            raise TimeoutError

    with contextlib.suppress(TimeoutError):
        play(on_chunk)
    steps = len(times) - 1
    half = steps - steps // 2
    whole = math.ceil(half / _rollout(agent)) * _rollout(agent)
    span = whole if 0 < whole <= steps else half
    return (times[-1] - times[-1 - span]) / max(span, 1), len(times)


def _rollout(agent: Learner) -> int:
    """How many steps of the streams an algorithm gathers before it learns from them."""
    return math.ceil(getattr(agent.model, "n_steps", 1) / agent.choices)
