"""`clickgym.run`, which checks that an agent can play in an environment and plays one run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import DelayObservation
from numpy.typing import ArrayLike, NDArray

from ...agents import CompiledAgent, FrozenPolicy, Learner, Random
from ...agents.agent import BaseAgent, UnsuitedError
from ...core.checks import check_choice, check_horizon, check_seed
from ...core.errors import SessionError
from ...envs.base_env import name_of
from ...envs.env_properties import (
    click_env_of,
    label_of,
    query_of,
    sizes_of,
    traits_of,
    user_model_of,
)
from ...envs.registration import without_own_wrappers
from ...measure.meter import CLICKS, REGRET, REWARD, CheckpointMeter, checkpoint_steps
from ...measure.result import Result, users_per_stream, warn_of_negative_regret
from ..make.agents import AgentLike, make_agent, parameters_of
from ..make.environments import EnvLike, make_env
from .additional_metrics import AdditionalMetrics
from .compiled_loop import play_compiled
from .learner_loop import discount_of, play_learner
from .prepared_run import OnChunk, PreparedRun, first_observation
from .python_loop import play_python

Engine = Literal["auto", "compiled", "python"]
ENGINES: Sequence[str] = ("auto", "compiled", "python")


def run(
    agent: BaseAgent | AgentLike,
    env: gym.Env | EnvLike,
    horizon: int,
    *,
    seed: int | None = None,
    checkpoints: ArrayLike | None = None,
    metrics: Sequence[str] | Mapping[str, str] = (),
    engine: Engine = "auto",
) -> Result:
    """Run an agent in an environment for ``horizon`` sessions, and measure its regret, reward and
    clicks.

    Args:
        agent: an agent's name, such as ``"TopRank"``, or class, in any form that
            `clickgym.make_agent` accepts; `run` creates the agent with ``seed``. You can also pass
            an agent object, which continues from its current state and keeps what it learns; in the
            result of its second run, the agent is called ``"TopRank, continued"``.
        env: an environment in any form that `sweep` accepts, such as ``"PBMRank-v0"`` or a click
            model; or an environment object, which `run` resets first. If the object comes from
            another package, its actions must be ranked lists (`RankedList` or ``MultiDiscrete([L] *
            K)``), and its observations must be the clicks, or mappings that contain ``"clicks"``.
            Its regret is known if ``info`` contains ``regret``, or both ``expected_reward`` and
            ``optimal_reward``.
        horizon: T, the number of sessions; floats such as ``1e6`` are accepted.
        seed: the seed of the users, and of the agent if `run` creates it (an agent object keeps its
            own random generator). By default, the environment's random generator continues from its
            current state. To repeat a run from a sweep, pass the ``seed`` in that run's rows.
        checkpoints: the numbers of sessions, from 1 to T, after which totals are recorded; by
            default, about 150 numbers, densest at the start. T is always a checkpoint.
        engine: ``"compiled"``; ``"python"``, which calls ``env.step`` for each session; or
            ``"auto"``, which uses the compiled engine if possible. Both engines give exactly the
            same lists, clicks and regret. A `Learner` accepts only ``"auto"``.
        metrics: the names of additional metrics: of `clickgym.runner.METRICS`, or
            ``"my_module:my_metric"`` for your own `clickgym.runner.Metric`, or
            ``"LABEL=my_module:my_metric"`` to choose the name of its column; or a mapping from
            labels to names. By default, none. A metric that requires a single best list or
            production list raises an error if the candidates or the users' states change.

    Returns:
        The measurements of the run. The attribute ``engine`` names the engine that was used.

    Raises:
        ValueError: the horizon, a checkpoint or the engine is invalid; ``engine="compiled"`` cannot
            run this agent in this environment; a query ends before the horizon; or
            `clickgym.make_agent` cannot create the agent.
        AgentError: the agent failed or proposed an invalid list; the message names the step and the
            cause.
        SessionError: the environment failed, or the agent's lists were better than the
            environment's best list; the message names the environment, the step and the cause.

    Warns:
        UserWarning: the regret is unknown, and the message gives the reason; or an environment from
            another package reported a negative total regret.

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
    steps, run_metrics = checkpoint_steps(horizon, checkpoints), AdditionalMetrics(metrics)
    env = env if isinstance(env, gym.Env) else make_env(env)
    if not isinstance(agent, BaseAgent):
        agent = make_agent(agent, env, horizon=horizon, seed=seed)
    engine_name = engine_of(agent, env, engine)
    check_wrappers(env)
    check_episode(env, horizon)
    for hint in [*hints(agent, env, horizon), *run_metrics.hints(env.unwrapped)]:
        warnings.warn(hint, stacklevel=2)
    result = play_run(agent, env, engine_name, steps, run_metrics, seed)
    if np.isnan(result.regret[-1]):
        reason = (
            'the info of at least one session has neither "regret" nor both "expected_reward" and '
            '"optimal_reward"; let step return "regret" in every info'
        )
        if click_env_of(env) is not None:
            reason = (
                "a wrapper changes the reward and does not put its own regret into info; let the "
                'wrapper set info["regret"]'
            )
        warnings.warn(f"the regret in {name_of(env)} is unknown (nan): {reason}", stacklevel=2)
    if user_model_of(env) is None:
        warn_of_negative_regret(name_of(env), result.regret[-1])
    return result


def engine_of(agent: BaseAgent, env: gym.Env, engine: str = "auto") -> str:
    """Return the name of the engine that runs an agent in an environment.

    If no error is raised, the agent can play in the environment.

    Args:
        agent: the agent that is to play.
        env: the environment in which the agent is to play.
        engine: the requested engine: ``"compiled"``, ``"python"``, or ``"auto"`` to choose the
            compiled engine if possible.

    Raises:
        ValueError: the engine is unknown, or cannot run this agent in this environment; or the
            agent was built for other numbers of items, positions, features or states.
        UnsuitedError: the agent cannot play in the environment with any engine.
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


def check_wrappers(env: gym.Env, name: str = "") -> None:
    """Check that no wrapper of an environment delays clicks.

    Args:
        env: the environment.
        name: the environment's name in messages; by default, its own name.

    Raises:
        ValueError: one of the wrappers is Gymnasium's ``DelayObservation``.
    """
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, DelayObservation):
            raise ValueError(
                f"{name or name_of(env)} has the wrapper {type(layer).__name__}, which shows the "
                "clicks of an earlier list, so agents would credit them to the wrong items; remove "
                "this wrapper"
            )
        layer = layer.env


def check_episode(env: gym.Env, horizon: int, name: str = "") -> None:
    """Check that a run's query lasts until the horizon.

    Args:
        env: the environment. Environments with a single query need no check.
        horizon: T, the number of sessions in the run.
        name: the environment's name in messages; by default, its own name.

    Raises:
        ValueError: the query ends before the run, so the agent would continue with another query.
    """
    model = user_model_of(env)
    if model is None or model.n_queries == 1 or model.n_sessions is None:
        return
    if horizon > model.n_sessions:
        raise ValueError(
            f"horizon is {horizon:,}, but a run plays only one query of {name or name_of(env)}, "
            f"which has {model.n_sessions:,} sessions; choose a horizon of at most "
            f"{model.n_sessions:,}, or an instance with a larger n_sessions"
        )


SLOW_SEARCH = 100_000
"""The largest number of lists that a session may search without a warning: one or two
milliseconds.
"""


def hints(agent: BaseAgent, env: gym.Env, horizon: int, name: str = "") -> list[str]:
    """Return warnings for users whose run can be played, but may not show what they expect.

    Only compiled agents declare what they observe, so no other agent is said to ignore features,
    and neither is `Random`, which needs none.

    Args:
        agent: the agent, which has not played yet.
        env: the environment.
        horizon: T, the number of sessions in the run.
        name: the environment's name in messages; by default, its own name.
    """
    model, name, found = user_model_of(env), name or name_of(env), list[str]()
    if model is not None and model.starts[1:] and model.starts[1] >= horizon:
        found.append(
            f"the users of {name} first change after session {model.starts[1]:,}, but a run "
            f"has only {horizon:,} sessions; use a longer horizon to include the change"
        )
    click_env = click_env_of(env)
    if click_env is not None and click_env.task.n_searched > SLOW_SEARCH:
        found.append(
            f"each session of {name} searches {click_env.task.n_searched:,} lists for the best "
            "one; define best_ranks in the click model, or use fewer items or positions"
        )
    given = getattr(agent, "hyperparameters", {}).get("horizon", horizon)
    if given is None and "horizon" not in parameters_of(type(agent)):  # type: ignore[arg-type]
        found.append(
            f"{type(agent).__name__} has no horizon, because its constructor does not name this "
            "argument; add horizon=None there, and pass it on to the parent class"
        )
    is_known = isinstance(agent, CompiledAgent) and not isinstance(agent, Random)
    if is_known and "features" not in agent.observes and sizes_of(env).n_features:
        hence = ", and cannot learn, because each session has its own candidates" if model else ""
        found.append(f"{type(agent).__name__} ignores the features that {name} shows{hence}")
    if isinstance(agent, Learner):
        found += agent.hints(horizon, discount_of(model))
    return found


ROUNDING = 1e-9
"""The largest decrease of regret per session, in clicks, that counts as a rounding error."""


def play_run(
    agent: Any,
    env: gym.Env,
    engine: str,
    steps: NDArray[np.int64],
    metrics: AdditionalMetrics | None = None,
    seed: int | None = None,
    on_chunk: OnChunk | None = None,
) -> Result:
    """Let an agent play one run in an environment, and measure the run.

    The caller must have checked the arguments, for example with `engine_of`.

    Args:
        agent: the agent that plays.
        env: the environment in which the agent plays.
        engine: the name of the engine, as returned by `engine_of`.
        steps: the checkpoints, the last of which is the horizon.
        metrics: additional metrics, in an object that is not used for another run; by default,
            none.
        seed: the seed for ``env.reset``; by default, the environment's generator continues.
        on_chunk: a function that the loop calls with the number of sessions since its last call;
            by default, none.

    Raises:
        AgentError: the agent failed or proposed an invalid list.
        SessionError: the environment failed, the agent's lists were better than the best list, or a
            wrapper does not pass the seed on.
    """
    metrics = metrics or AdditionalMetrics()
    base_env: Any = env.unwrapped
    metrics.check_env(base_env)  # before any random number is drawn, so that errors change nothing
    metrics.check_agent(agent)
    meter = CheckpointMeter(steps, len(metrics.summed))
    click_env = click_env_of(env)
    n_simulated_before = click_env.n_simulated if click_env else 0
    observation = first_observation(agent, env, seed)
    if click_env and seed is not None and click_env.np_random_seed != seed:
        raise SessionError(
            f"{name_of(env)} did not receive the run's seed, {seed}; in your wrapper's method "
            "reset, pass the seed on: self.env.reset(seed=seed)"
        )
    run = PreparedRun(agent, env, observation, meter, metrics, on_chunk)
    name = type(agent).__name__
    label = f"{name}, continued" if agent.has_played else name
    query = query_of(env)
    agent.has_played = not isinstance(agent, FrozenPolicy)
    if engine == "compiled":
        seconds = play_compiled(run)
    elif isinstance(agent, Learner):  # the engine is the library whose training loop runs
        seconds = play_learner(run)
    else:
        seconds = play_python(run)
    # This number includes sessions that a wrapper played without reporting them.
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
        trained=agent.trained if isinstance(agent, FrozenPolicy) else None,
        unrecorded=max(n_simulated - meter.step, 0),
        users_per_stream=users_per_stream(
            user_model_of(env), int(steps[-1]), agent.n_envs if isinstance(agent, Learner) else 1
        ),
    )


def _check_best_list(
    agent: Any, env: gym.Env, steps: NDArray[np.int64], regret: NDArray[np.float64]
) -> None:
    """Check that regret never falls from one checkpoint to the next, if users have no memory.

    Regret that is measured against a given list instead of the best list is not checked, because
    such regret may fall.

    Raises:
        SessionError: regret falls, so the agent's lists were better than the best list.
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
