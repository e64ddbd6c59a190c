"""`clickgym.run`: check that an agent can play in an environment, and play one run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict
from numpy.typing import ArrayLike, NDArray

from ...agents import CompiledAgent, FrozenPolicy, Random
from ...agents.agent import BaseAgent, EnvTraits, UnsuitedError
from ...core.checks import check_choice, check_horizon, check_seed
from ...core.errors import SessionError
from ...core.kernels import compilation_note
from ...envs import ClickEnv
from ...envs.any_env import click_env_of, label_of, query_of, sizes_of, user_model_of
from ...envs.base_env import name_of
from ...envs.meter import CLICKS, REGRET, REWARD, Meter, checkpoint_steps
from ...envs.registration import without_own_wrappers
from ...envs.result import Result
from ..make import AgentLike, EnvLike, make_agent, make_env
from .compiled_loop import play_compiled
from .loop import OnChunk, Run, first_observation
from .metrics import Metrics
from .python_loop import play_learner, play_python

Engine = Literal["auto", "compiled", "python"]
ENGINES: Sequence[str] = ("auto", "compiled", "python")


def run(
    agent: BaseAgent | AgentLike,
    env: gym.Env | EnvLike,
    horizon: int,
    *,
    seed: int | None = None,
    checkpoints: ArrayLike | None = None,
    metrics: Sequence[str] = (),
    engine: Engine = "auto",
) -> Result:
    """Run an agent in an environment for ``horizon`` sessions, and measure its regret, reward and
    clicks.

    Args:
        agent: a name or class as in `make_agent`, such as ``"TopRank"``, from which `run` creates
            an agent with ``seed``; or an agent object. An agent object continues from its present
            state and keeps what it learns; in the result of its second run, it is called
            ``"TopRank, continued"``.
        env: an environment as in `sweep`, such as ``"PBMRank-v0"`` or a click model; or an
            environment object, which `run` resets first. The object may come from another package
            if its actions are ranked lists (`RankedList` or ``MultiDiscrete([L] * K)``) and its
            observation is the clicks, or a mapping with ``clicks``. Its regret is known if ``info``
            contains ``regret``, or both ``expected_reward`` and ``optimal_reward``.
        horizon: T, the number of sessions; ``1e6`` is accepted.
        seed: the seed of the users (an agent object keeps its own random generator). By default,
            the environment continues with its present generator. To repeat a run from a sweep, pass
            the ``seed`` from that run's rows.
        checkpoints: the sessions, in ``1..T``, after which totals are recorded; by default about
            150, densest at the start. The last checkpoint is always T.
        engine: ``"compiled"``, ``"python"`` (one ``env.step`` at a time), or ``"auto"``, the
            compiled engine if possible. Both engines give the same lists, clicks and regret, bit
            for bit. A `Learner` takes only ``"auto"``.
        metrics: names of further metrics, from `clickgym.runner.METRICS`. A metric that requires a
            single best list or production list raises an error if candidates or users' states
            change.

    Returns:
        The measurements of the run. Their attribute ``engine`` names the engine that was used.

    Raises:
        ValueError: the horizon, a checkpoint or the engine is invalid; ``engine="compiled"`` cannot
            run this agent in this environment; a query ends before the horizon; or
            `clickgym.make_agent` raised the error.
        AgentError: the agent proposed a bad list, or failed; the message names the step and the
            cause.
        SessionError: the environment failed, or the agent's lists were better than the
            environment's best list; the message names the environment, the step and the cause.

    Warns:
        UserWarning: regret is unknown; the message gives the reason.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = gym.make("PBMRank-v0")
        >>> agent = clickgym.agents.TopRank(10, 5, horizon=1000, seed=0)
        >>> result = clickgym.run(agent, env, 1000, seed=0)
        >>> int(result.steps[-1]), result.engine
        (1000, 'compiled')
        >>> named = clickgym.run("TopRank", "PBMRank-v0", 1000, seed=0)
        >>> bool(named.regret[-1] == result.regret[-1])
        True
    """
    horizon, seed = check_horizon(horizon), None if seed is None else check_seed(seed)
    steps, run_metrics = checkpoint_steps(horizon, checkpoints), Metrics(metrics)
    with compilation_note():
        env = env if isinstance(env, gym.Env) else make_env(env)
        if not isinstance(agent, BaseAgent):
            agent = make_agent(agent, env, horizon=horizon, seed=seed)
        engine_name = engine_of(agent, env, engine)
        check_episode(env, horizon)
        warn_of_features(agent, env)
        result = play_run(agent, env, engine_name, steps, run_metrics, seed)
    if np.isnan(result.regret[-1]):
        reason = (
            'info has neither "regret" nor both "expected_reward" and "optimal_reward"; let step '
            "return one of the two in info"
        )
        if click_env_of(env) is not None:
            reason = (
                "a wrapper changes the reward and does not put its own regret into info; let it "
                'set info["regret"]'
            )
        warnings.warn(f"the regret in {name_of(env)} is unknown (nan): {reason}", stacklevel=2)
    return result


def engine_of(agent: BaseAgent, env: gym.Env, engine: str = "auto") -> str:
    """The engine that runs an agent in an environment, as `Result.engine` names it. If no error is
    raised, the agent can play in the environment.

    Args:
        agent, env: the agent and the environment.
        engine: as in `clickgym.run`.

    Raises:
        ValueError: the engine is unknown, or cannot run this agent in this environment; or the
            agent was built for other sizes.
        UnsuitedError: the agent cannot play the environment.
    """
    check_choice("engine", engine, ENGINES)
    traits, name = traits_of(env), type(agent).__name__
    if missing := [key for key in agent.observes if key not in traits.observation_keys]:
        reason = f"observes {', '.join(missing)}, which {traits.name} does not show"
        raise UnsuitedError(name, reason)
    engine_name = agent.engine_in(traits, engine)
    for size, expected in traits.sizes.items():
        value = getattr(agent, size, expected)
        if value != expected:
            raise ValueError(
                f"the agent was built with {size} = {value}, but the environment has "
                f"{expected}; build the agent with clickgym.make_agent(..., env)"
            )
    return engine_name


def check_episode(env: gym.Env, horizon: int, name: str = "") -> None:
    """Check that a run ends no later than its query, if the environment has several queries, and
    that users who change do so within the run.

    Args:
        env: the environment.
        horizon: T.
        name: the environment's name in messages; by default, its own name.

    Raises:
        ValueError: the query ends before the run, so the agent would go on with another query.

    Warns:
        UserWarning: the users first change after the horizon.
    """
    model, name = user_model_of(env), name or name_of(env)
    if model is None:
        return
    if model.n_queries > 1 and model.n_sessions is not None and horizon > model.n_sessions:
        raise ValueError(
            f"horizon is {horizon:,}, but a run plays only one query of {name}, which has "
            f"{model.n_sessions:,} sessions; choose a horizon of at most "
            f"{model.n_sessions:,}, or an instance with a larger n_sessions"
        )
    if model.starts[1:] and model.starts[1] >= horizon:
        warnings.warn(
            f"the users of {name} first change after session {model.starts[1]:,}, but a run "
            f"has only {horizon:,} sessions; use a longer horizon to include the change",
            stacklevel=3,
        )


def warn_of_features(agent: BaseAgent, env: gym.Env) -> None:
    """Warn if an agent does not use the features that an environment shows. Only compiled agents
    declare what they use, so there is no warning about other agents, nor about `Random`, which
    needs no features.
    """
    is_known = isinstance(agent, CompiledAgent) and not isinstance(agent, Random)
    if is_known and "features" not in agent.observes and sizes_of(env).n_features:
        message = f"{type(agent).__name__} ignores the features that {name_of(env)} shows"
        warnings.warn(message, stacklevel=3)


def traits_of(env: gym.Env) -> EnvTraits:
    """The traits of an environment that decide which engine can run agents in it."""
    sizes = sizes_of(env)._asdict()
    layer: Any = without_own_wrappers(env)
    name, obstacle, changing_users = type(layer).__name__, "", ""
    if isinstance(layer, gym.Wrapper):
        obstacle = f"the wrapper {name} must see every step"
    elif not isinstance(layer, ClickEnv):
        obstacle = f"{name} is not a ClickEnv, so only its own method step can simulate its users"
    elif type(layer).step is not ClickEnv.step:
        obstacle = f"{name} overrides the method step"
    elif len(layer.model.starts) > 1:
        changing_users = type(layer.model).__name__
    space = env.observation_space
    observation_keys = tuple(space) if isinstance(space, Dict) else ()
    if not obstacle:
        observation_keys += tuple(layer.task.fields)
    model = user_model_of(env)
    n_queries = 1 if model is None else model.n_queries
    return EnvTraits(
        name_of(env), name, obstacle, changing_users, observation_keys, sizes, n_queries, space
    )


LOOPS: dict[str, Callable[[Run], float]] = {
    "compiled": play_compiled,
    "python": play_python,
    FrozenPolicy.engine: play_python,
}
"""The loop of each engine. Any other engine is the library of an RL algorithm, whose loop is
`play_learner`.
"""
ROUNDING = 1e-9
"""The largest decrease of regret per session, in expected clicks, that rounding may explain."""


def play_run(
    agent: Any,
    env: gym.Env,
    engine: str,
    steps: NDArray[np.int64],
    metrics: Metrics | None = None,
    seed: int | None = None,
    on_chunk: OnChunk | None = None,
) -> Result:
    """Let an agent play in an environment, and measure the run. The arguments were checked before.

    Args:
        agent, env: the agent, and the environment in which it plays.
        engine: the engine, as `engine_of` returns it.
        steps: the checkpoints, the last of which is the horizon.
        metrics: further metrics; the object must not be used for another run.
        seed: the seed for ``env.reset``.
        on_chunk: as in `Run`.

    Raises:
        AgentError, SessionError: the loop raised the error, lists were better than the best list,
            or a wrapper does not pass the seed on.
    """
    metrics = metrics or Metrics()
    base_env: Any = env.unwrapped
    metrics.check_env(base_env)  # raises its errors before any random number is drawn
    metrics.check_agent(agent)
    meter = Meter(steps, len(metrics.summed))
    click_env = click_env_of(env)
    n_simulated_before = click_env.n_simulated if click_env else 0
    observation = first_observation(agent, env, seed)
    if click_env and seed is not None and click_env.np_random_seed != seed:
        raise SessionError(
            f"{name_of(env)} did not receive the run's seed, {seed}; in your wrapper's method "
            "reset, pass the seed on: self.env.reset(seed=seed)"
        )
    run = Run(agent, env, observation, meter, metrics, on_chunk)
    name = type(agent).__name__
    label = f"{name}, continued" if agent.has_played else name
    query = query_of(env)
    agent.has_played = engine != FrozenPolicy.engine
    seconds = LOOPS.get(engine, play_learner)(run)
    # Including the sessions of wrappers.
    n_simulated = click_env.n_simulated - n_simulated_before if click_env else 0
    if click_env is without_own_wrappers(env):
        _check_best_list(agent, env, steps, meter.regret)
    return Result(
        env=label_of(env),
        instance=getattr(base_env, "instance", "custom"),
        agent=label,
        seed=seed,
        steps=steps,
        regret=meter.at_checkpoints[:, REGRET],
        reward=meter.at_checkpoints[:, REWARD],
        clicks=meter.at_checkpoints[:, CLICKS].astype(np.int64),
        metrics=metrics.columns(meter) if metrics.names else {},
        seconds=seconds,
        engine=engine,
        query=query,
        unrecorded=max(n_simulated - meter.step, 0),
    )


def _check_best_list(
    agent: Any, env: gym.Env, steps: NDArray[np.int64], regret: NDArray[np.float64]
) -> None:
    """Check, for users without memory, that regret does not fall from checkpoint to checkpoint.
    Regret that is measured against a given list is not checked, because it may fall.

    Raises:
        SessionError: regret falls.
    """
    base_env: Any = env.unwrapped
    if not base_env.model.iid_sessions or base_env.reference is not None:
        return
    decreases = (np.append(0.0, regret[:-1]) - regret) / (steps - np.append(0, steps[:-1]))
    if np.any(decreases > ROUNDING):
        step = steps[np.argmax(decreases > ROUNDING)]
        raise SessionError(
            f"{name_of(env)}, by step {step}: {type(agent).__name__} showed better lists than "
            "the users' best list, so regret is negative; to find the fault, call "
            "clickgym.check_click_model with your click model"
        )
