"""One run, played by one of three loops and measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ...agents import FrozenPolicy
from ...core.faults import SessionError
from ...envs.any_env import own_step_of, query_of
from ...envs.base_env import label_of, name_of, otherwise
from ...envs.meter import CLICKS, REGRET, REWARD, Meter
from ...envs.registration import without_own_wrappers
from ...envs.result import Result
from .compiled import play_compiled
from .faults import first_observation
from .learner import play_learner
from .loop import OnChunk, Run
from .measuring import Metrics
from .python import play_python

LOOPS: dict[str, Callable[[Run], float]] = {
    "compiled": play_compiled,
    "python": play_python,
    FrozenPolicy.engine: play_python,
}
"""The loop of each engine; any other engine is the library of a learner."""
ROUNDING = 1e-9
"""Expected clicks per session by which regret may fall."""


def play(
    agent: Any,
    env: gym.Env,
    engine: str,
    steps: NDArray[np.int64],
    metrics: Metrics | None = None,
    seed: int | None = None,
    on_chunk: OnChunk | None = None,
) -> Result:
    """Let an agent play in an environment, and measure it; all was checked before.

    Args:
        agent, env: who plays where.
        engine: as `pair.engine_of` returns it.
        steps: the checkpoints, the last of which is the horizon.
        metrics: what is measured besides; of this run alone.
        seed: of ``env.reset``.
        on_chunk: as in `Run`.

    Raises:
        AgentError, SessionError: as the loops; and if lists were better than the best list.
    """
    metrics = metrics or Metrics()
    core: Any = env.unwrapped
    metrics.check_env(core)  # refused before anything is drawn
    metrics.check_agent(agent)
    meter = Meter(steps, len(metrics.summed))
    own = own_step_of(env)
    has_wrappers = own is not without_own_wrappers(env)
    simulated_before = own.n_simulated if own else 0
    observation = first_observation(agent, env, seed)
    seed_given, n_seeds, cuts = seed, 0, Counter[int]()
    if own:
        seed_given, n_seeds, cuts = own.reset_seed, own.n_seeds, Counter(own.cuts)
    run = Run(agent, env, observation, meter, metrics, on_chunk)
    name = type(agent).__name__
    label = f"{name}, continued" if agent.has_played else name
    trained = None if agent.has_played or engine == FrozenPolicy.engine else 0
    query = query_of(env)
    agent.has_played = engine != FrozenPolicy.engine
    seconds = LOOPS.get(engine, play_learner)(run)
    label_of_env, unrecorded = label_of(env), 0
    if own and has_wrappers:  # which may do more than the loop asks for
        unrecorded, again = own.n_simulated - simulated_before - meter.step, own.n_seeds != n_seeds
        label_of_env += otherwise(env, unrecorded, cuts, is_seeded_again=again)
        seed_given = None if again else seed_given
    elif own:
        _check_best_list(agent, env, steps, meter.regret)
    return Result(
        env=label_of_env,
        instance=getattr(core, "instance", "custom"),
        agent=label,
        seed=seed_given,
        steps=steps,
        regret=meter.at_checkpoints[:, REGRET],
        reward=meter.at_checkpoints[:, REWARD],
        clicks=meter.at_checkpoints[:, CLICKS].astype(np.int64),
        metrics=metrics.columns(meter) if metrics.names else {},
        seconds=seconds,
        engine=engine,
        query=query,
        trained=trained,
        unrecorded=max(unrecorded, 0),
    )


def _check_best_list(
    agent: Any, env: gym.Env, steps: NDArray[np.int64], regret: NDArray[np.float64]
) -> None:
    """Check that the regret of users without a memory does not fall from checkpoint to checkpoint,
    unless a list was given against which it is measured.

    Raises:
        SessionError: it falls.
    """
    core: Any = env.unwrapped
    gains = -np.diff(regret, prepend=0.0) / np.diff(steps, prepend=0)
    if core.model.are_alike and core.reference is None and np.any(gains > ROUNDING):
        step = steps[np.argmax(gains > ROUNDING)]
        raise SessionError(
            f"{name_of(env)}, by step {step}: {type(agent).__name__} showed better lists than the "
            "best list of the users, so that regret is negative; clickgym.check_click_model of "
            "your click model names the fault"
        )
