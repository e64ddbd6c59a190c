"""Whether an agent can play in an environment, and by which engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from ..agents import Agent, CompiledAgent, Learner, StateAgent
from ..core.checks import check_choice
from ..envs import ClickEnv
from ..envs.any_env import sizes_of
from ..envs.click_env import name_of
from ..envs.registration import is_limit_of_id
from .labels import UnsuitedError

Engine = Literal["auto", "compiled", "python"]
ENGINES: Sequence[str] = ("auto", "compiled", "python")


def engine_of(agent: Agent | Learner, env: gym.Env, engine: str = "auto") -> str:
    """The engine that plays an agent in an environment: ``"compiled"``, ``"python"``, or the
    library of a `Learner`.

    Args:
        agent, env: who and where.
        engine: as in `clickgym.run`.

    Raises:
        ValueError: on an unknown engine, or one that cannot serve the pair; an agent that was built
            for other sizes.
        UnsuitedError: the agent cannot play the environment.
    """
    check_choice("engine", engine, ENGINES)
    layer: Any = env  # without the wrappers that every id brings, which change nothing
    while type(layer) in (OrderEnforcing, PassiveEnvChecker) or is_limit_of_id(layer):
        layer = layer.env
    if isinstance(agent, Learner):
        _check_learner(agent, layer)
        if engine != "auto":
            name = type(agent).__name__
            raise ValueError(f"engine={engine!r}: {name} has a loop of its own, {agent.engine}")
        engine = agent.engine
    else:
        obstacle = _why_not_compiled(type(agent), layer)
        if engine == "compiled" and obstacle:
            raise ValueError(f"engine='compiled' cannot play {name_of(env)}: {obstacle}")
        engine = "python" if engine == "python" or obstacle else "compiled"
    for size, expected in sizes_of(env)._asdict().items():
        value = getattr(agent, size, expected)
        if value != expected:
            raise ValueError(
                f"the agent was built with {size} = {value}, but the environment has {expected}"
            )
    return engine


def _why_not_compiled(agent: type[Agent], layer: gym.Env) -> str:
    """The reason why the compiled loop cannot play a class of agents in an environment; empty if
    it can.
    """
    if not issubclass(agent, CompiledAgent):
        return f"{agent.__name__} is a plain Python agent"
    updates = CompiledAgent.update, StateAgent.update
    if agent.rank is not CompiledAgent.rank or agent.update not in updates:
        return f"{agent.__name__} overrides rank or update in Python"
    if isinstance(layer, gym.Wrapper):
        return f"the wrapper {type(layer).__name__} must see every step"
    if not isinstance(layer, ClickEnv):
        return f"{type(layer).__name__} is no ClickEnv: only its own step knows its users"
    if type(layer).step is not ClickEnv.step:
        return f"{type(layer).__name__} has a step of its own"
    return ""


def _check_learner(agent: Learner, layer: gym.Env) -> None:
    """Refuse a learner that cannot play its own streams of an environment instead, naming what
    stands in the way.
    """
    name = type(agent).__name__
    if not isinstance(layer, ClickEnv) or type(layer).step is not ClickEnv.step:
        raise UnsuitedError(
            f"{name} learns on streams of its own, which would bypass {type(layer).__name__}"
        )
    if len(layer.model.starts) > 1:
        raise UnsuitedError(
            f"{name} learns on streams with clocks of their own, and a "
            f"{type(layer.model).__name__} changes at given steps"
        )
