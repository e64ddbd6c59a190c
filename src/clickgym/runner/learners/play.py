"""Learners of stable-baselines3 in the native vector environments, measured like any agent.

Import this module only where stable-baselines3 is wanted: it comes with ``pip install
"clickgym[rl]"`` and brings torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from ...agents.rl.learner import Actions, Learner
from ...agents.rl.vec_env import StableBaselinesVecEnv
from ...core.kernels import clock
from ...envs import (
    ClickEnv,
    ClickVectorEnv,
    RecordVectorRegret,
)
from ...envs.meter import Meter
from ...envs.wrappers.actions import LehmerVectorAction, ScoresVectorAction
from ...envs.wrappers.feature_weights import FeatureWeightsVectorAction
from ...envs.wrappers.item_by_item_array import ItemByItemArray
from ..loop import AgentError, OnChunk, session_error
from ..metrics import Metrics
from .flat_observations import FlatFeatures, ObservedState
from .sequential_vec_env import SequentialVectorEnv

WRAPPERS: dict[Actions, Callable[..., VectorEnv]] = {
    "rankings": lambda envs, items: envs,  # their actions are lists of ids
    "codes": LehmerVectorAction,
    "scores": ScoresVectorAction,
    "weights": lambda envs, items: FlatFeatures(FeatureWeightsVectorAction(envs)),
    "items": ItemByItemArray,
}


def play_learner(
    agent: Learner,
    env: ClickEnv,
    meter: Meter,
    metrics: Metrics,
    on_chunk: OnChunk | None = None,
) -> float:
    """Let a learner play up to the meter's horizon; the environment must have been reset.

    It plays streams of its own: a `ClickVectorEnv` of the environment's click model, seeded from
    the environment's generator. If candidates change, it plays the sessions of the environment
    itself in turn (`SequentialVectorEnv`). Sessions are counted step by step, and within a step
    stream by stream. The last step may play up to ``n_envs - 1`` sessions beyond the horizon, which
    do not count.

    Args:
        agent: goes on from what it has learned.
        env: whose users it plays.
        meter: receives the totals.
        metrics: what is measured besides.
        on_chunk: called after each step with the number of its sessions; what it raises ends the
            run.

    Returns:
        The seconds of the sessions.

    Raises:
        AgentError: the learner failed, or ended before the horizon.
    """
    before = clock()
    users: Any = env.task.model
    discount = users.discount if env.model.may_leave else None
    with_features = "features" in env.model.observes
    agent.set_actions(with_features)
    if with_features:
        in_turn: VectorEnv = SequentialVectorEnv(env, agent.n_envs, meter, metrics)
        if agent.actions not in ("rankings", "weights"):  # which read the features of each row
            in_turn = FlatFeatures(in_turn)
        envs = _streams(agent, in_turn, discount)
    else:
        envs = _streams(agent, _recorded(agent, env, meter, metrics), discount)
        envs.seed(int(env.np_random.integers(2**31)))
    reported, ended_by = 0, None

    def on_step() -> bool:
        nonlocal reported, ended_by
        if on_chunk is not None and meter.step > reported:
            try:
                on_chunk(meter.step - reported)
            except Exception as error:  # the caller's, and no fault of the learner
                ended_by = error
                raise
        reported = meter.step
        return meter.step < meter.horizon

    try:
        agent.learn(envs, meter.horizon, on_step, discount)
    except Exception as error:
        if error is ended_by:
            raise
        raise session_error(agent, env, f"step {meter.step + 1}", error) from error
    if meter.step < meter.horizon:  # its regret would pass for that of the whole horizon
        name = type(agent).__name__
        raise AgentError(f"{name} ended after {meter.step} of {meter.horizon} sessions")
    return clock() - before


def _recorded(agent: Learner, env: ClickEnv, meter: Meter, metrics: Metrics) -> RecordVectorRegret:
    """Streams of an environment's users, each with generators of its own, and the meter that counts
    them.
    """
    task = env.task
    recorded = RecordVectorRegret(
        ClickVectorEnv(
            task.model,
            agent.n_envs,
            env.reward,
            env.cutoff,
            reference=None if env.model.may_leave else task.optimal_ranking,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    )
    recorded.meter = meter
    contexts = metrics.contexts(env)

    def on_session(
        ranking: NDArray[np.int64], clicks: NDArray[np.int8], expectation: float
    ) -> None:
        metrics.measure(contexts, ranking, clicks, expectation, meter.totals)

    recorded.on_session = on_session if metrics.summed else None
    return recorded


def _streams(agent: Learner, envs: VectorEnv, discount: float | None) -> StableBaselinesVecEnv:
    """What the library plays on, with actions of the learner's kind."""
    if discount is None:
        return StableBaselinesVecEnv(WRAPPERS[agent.actions](envs, agent.items))
    return StableBaselinesVecEnv(WRAPPERS[agent.actions](ObservedState(envs), agent.items))
