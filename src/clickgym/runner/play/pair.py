"""Pairs of an agent and an environment: whether they can play, and by which engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import gymnasium as gym
from gymnasium.spaces import Dict

from ...agents import CompiledAgent, Random
from ...agents.agent import BaseAgent, EnvTraits, UnsuitedError
from ...core.checks import check_choice
from ...envs import ClickEnv
from ...envs.any_env import sizes_of, users_of
from ...envs.base_env import name_of
from ...envs.registration import without_own_wrappers

Engine = Literal["auto", "compiled", "python"]
ENGINES: Sequence[str] = ("auto", "compiled", "python")


def engine_of(agent: BaseAgent, env: gym.Env, engine: str = "auto") -> str:
    """The engine that plays an agent in an environment, as `Result.engine` names it. A pair that
    passes here can play.

    Args:
        agent, env: who and where.
        engine: as in `clickgym.run`.

    Raises:
        ValueError: on an unknown engine, or one that cannot serve the pair; an agent that was built
            for other sizes.
        UnsuitedError: the agent cannot play the environment.
    """
    check_choice("engine", engine, ENGINES)
    traits, name = traits_of(env), type(agent).__name__
    if hidden := [key for key in agent.observes if key not in traits.shown]:
        reason = f"observes {', '.join(hidden)}, which {traits.name} does not show"
        raise UnsuitedError(name, reason)
    chosen = agent.engine_in(traits, engine)
    for size, expected in traits.sizes.items():
        value = getattr(agent, size, expected)
        if value != expected:
            raise ValueError(
                f"the agent was built with {size} = {value}, but the environment has {expected}"
            )
    return chosen


def check_episode(env: gym.Env, horizon: int, name: str = "") -> None:
    """Check that a run in an environment of many queries ends with its query.

    Args:
        env: the environment.
        horizon: T.
        name: what messages call the environment; empty: its own.

    Raises:
        ValueError: it does not; the agent would have learned from another query.
    """
    users = users_of(env)
    if users is None or users.n_queries == 1 or users.n_sessions is None:
        return
    if horizon > users.n_sessions:
        raise ValueError(
            f"horizon is {horizon:,}; a run plays one query of {name or name_of(env)}, which has "
            f"{users.n_sessions:,} sessions: expected at most these, or an instance with more "
            "n_sessions"
        )


def ignores_features(agent: BaseAgent, env: gym.Env) -> bool:
    """Whether an agent does not use the features that an environment shows. Only of compiled agents
    it is known; random lists need none.
    """
    is_known = isinstance(agent, CompiledAgent) and not isinstance(agent, Random)
    return is_known and "features" not in agent.observes and sizes_of(env).n_features > 0


def features_warning(agents: Collection[str], env: str) -> str:
    """The warning of agents that ignore the features of an environment; all by name."""
    do = "does" if len(agents) == 1 else "do"
    return f"{', '.join(agents)} {do} not use the features that {env} shows"


def traits_of(env: gym.Env) -> EnvTraits:
    """The traits of an environment that decide which engine can run agents in it."""
    sizes = sizes_of(env)._asdict()
    layer: Any = without_own_wrappers(env)
    name, obstacle, changing = type(layer).__name__, "", ""
    if isinstance(layer, gym.Wrapper):
        obstacle = f"the wrapper {name} must see every step"
    elif not isinstance(layer, ClickEnv):
        obstacle = f"{name} is no ClickEnv: only its own step knows its users"
    elif type(layer).step is not ClickEnv.step:
        obstacle = f"{name} has a step of its own"
    elif len(layer.model.starts) > 1:
        changing = type(layer.model).__name__
    space = env.observation_space
    shown = tuple(space) if isinstance(space, Dict) else ()
    if not obstacle:
        shown += tuple(layer.task.fields)
    users = users_of(env)
    n_queries = 1 if users is None else users.n_queries
    return EnvTraits(name_of(env), name, obstacle, changing, shown, sizes, n_queries)
