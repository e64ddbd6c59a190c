"""Whether an agent can play in an environment, and by which engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gymnasium as gym
from gymnasium.spaces import Dict

from ..agents.agent import BaseAgent, EnvTraits, UnsuitedError
from ..core.checks import check_choice
from ..envs import ClickEnv
from ..envs.any_env import Sizes, sizes_of
from ..envs.click_env import name_of
from ..envs.registration import without_own_wrappers

Engine = Literal["auto", "compiled", "python"]
ENGINES: Sequence[str] = ("auto", "compiled", "python")


def engine_of(agent: BaseAgent, env: gym.Env, engine: str = "auto") -> str:
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
    return engine_facing(agent, traits_of(env), sizes_of(env), engine)


def engine_facing(agent: BaseAgent, traits: EnvTraits, sizes: Sizes, engine: str) -> str:
    """As `engine_of`, where an environment is known by its traits and sizes."""
    check_choice("engine", engine, ENGINES)
    if hidden := [key for key in agent.observes if key not in traits.shown]:
        reason = f"observes {', '.join(hidden)}, which {traits.name} does not show"
        raise UnsuitedError(type(agent).__name__, reason)
    engine = agent.engine_in(traits, engine)
    for size, expected in sizes._asdict().items():
        value = getattr(agent, size, expected)
        if value != expected:
            raise ValueError(
                f"the agent was built with {size} = {value}, but the environment has {expected}"
            )
    return engine


def traits_of(env: gym.Env) -> EnvTraits:
    """What decides which engine can run agents in an environment."""
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
    return EnvTraits(name_of(env), name, obstacle, changing, shown)
