"""Who plays where: an agent in an environment, whether it can play there, and by which engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from ..agents import Agent, CompiledAgent, Learner
from ..core.checks import check_choice
from ..envs import ClickEnv, ContextualModel
from ..envs.registration import is_limit_of_id
from .labels import UnsuitedError
from .make import Place, kind_of

Engine = Literal["auto", "compiled", "python"]
ENGINES: Sequence[str] = ("auto", "compiled", "python")


@dataclass(frozen=True, eq=False)
class Pair:
    """An agent in an environment, which fit together.

    Attributes:
        agent: made for the place, or passed by the user.
        place: where it plays.
        kind: the interface of the agent, as `kind_of`.
        engine: which plays them: ``"compiled"``, ``"python"``, or the library of a `Learner`.
    """

    agent: Any
    place: Place
    kind: type[Agent | Learner]
    engine: str

    @property
    def name(self) -> str:
        """What messages and results call the agent."""
        return type(self.agent).__name__


def pair_of(
    agent: Agent | Learner,
    place: Place,
    engine: str = "auto",
    name: str | None = None,
    both: str = "this pair",
) -> Pair:
    """Let an agent play in a place, if it can.

    Args:
        agent, place: who and where.
        engine: as in `clickgym.run`.
        name, both: what messages call the agent, None: by its class; and the pair.

    Raises:
        ValueError: on an unknown engine, or one that cannot serve the pair; an agent that was built
            for other sizes.
        UnsuitedError: the agent cannot play the environment.
    """
    check_choice("engine", engine, ENGINES)
    pair = Pair(agent, place, kind_of(type(agent)), "python")
    if isinstance(agent, Learner):
        _check_learner(agent, place)
        if engine != "auto":
            raise ValueError(
                f"engine={engine!r} cannot serve {name or pair.name}: "
                f"{agent.engine} has its own loop"
            )
        engine = agent.engine
    else:
        obstacle = _why_not_compiled(pair)
        if engine == "compiled" and obstacle:
            raise ValueError(f"engine='compiled' cannot serve {both}: {obstacle}")
        engine = "python" if engine == "python" or obstacle else "compiled"
    for size, expected in place.sizes._asdict().items():
        value = getattr(agent, size, expected)
        if value != expected:
            raise ValueError(
                f"the agent was built with {size} = {value}, but the environment has {expected}"
            )
    return Pair(agent, place, pair.kind, engine)


# ---------------------------------------------------------------------------------- compiled or not


def _why_not_compiled(pair: Pair) -> str:
    """The reason why a pair cannot run in the compiled loop; empty if it can."""
    agent, kind, env = type(pair.agent), pair.kind, pair.place.env
    if not issubclass(kind, CompiledAgent):
        return f"{agent.__name__} is a plain Python agent"
    if agent.rank is not kind.rank or agent.update is not kind.update:
        return f"{agent.__name__} overrides rank or update in Python"
    layer: Any = _within_harmless(env)
    if isinstance(layer, gym.Wrapper):
        return f"the wrapper {type(layer).__name__} must see every step"
    if pair.place.is_guest:
        return f"{type(layer).__name__} is no ClickEnv: only its own step knows its users"
    if type(layer).step is not ClickEnv.step:
        return f"{type(layer).__name__} has a step of its own"
    return ""


def _within_harmless(env: gym.Env) -> gym.Env:
    """The environment, or the outermost wrapper that is not one that every id brings, without which
    nothing is lost.
    """
    while type(env) in (OrderEnforcing, PassiveEnvChecker) or is_limit_of_id(env):
        env = env.env  # type: ignore[attr-defined]
    return env


# --------------------------------------------------------------------------- who cannot play at all


def _check_learner(agent: Learner, place: Place) -> None:
    """Refuse a learner that cannot play its own streams of an environment instead, naming what
    stands in the way.
    """
    layer, name = _within_harmless(place.env), type(agent).__name__
    if not isinstance(layer, ClickEnv) or type(layer).step is not ClickEnv.step:
        raise UnsuitedError(
            f"{name} learns on streams of its own, which would bypass {type(layer).__name__}"
        )
    if not isinstance(layer.model, ContextualModel) and layer.task.model is not layer.model:
        raise UnsuitedError(
            f"{name} learns on streams with clocks of their own, and a "
            f"{type(layer.model).__name__} changes at given steps"
        )
