"""Who plays where: an agent in an environment, whether it can play there, and by which engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from ..agents import ITS_DISPLAYS, LAST_DISPLAY, Agent, CompiledAgent, Learner
from ..agents.learner import OF_ITEMS
from ..core.checks import check_choice
from ..envs import CascadeMDP, ClickEnv, ContextualModel, EnumeratedAction
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
    agent: Agent | Learner, place: Place, engine: str = "auto", name: str | None = None, both: str = "this pair"
) -> Pair:
    """Let an agent play in a place, if it can.

    Args:
        agent, place: who and where.
        engine: as in `clickgym.run`.
        name, both: what messages call the agent, None: by its class; and the pair.

    Raises:
        ValueError: on an unknown engine, or one that cannot serve the pair; an agent that was built for other sizes.
        UnsuitedError: the agent cannot play the environment.
    """
    check_choice("engine", engine, ENGINES)
    pair = Pair(agent, place, kind_of(type(agent)), "python")
    if isinstance(agent, Learner):
        _check_learner(agent, place)
        if engine != "auto":
            raise ValueError(f"engine={engine!r} cannot serve {name or pair.name}: {agent.engine} has its own loop")
        engine = agent.engine
    else:
        _check_axes(agent, place)
        obstacle = _why_not_compiled(pair)
        if engine == "compiled" and obstacle:
            raise ValueError(f"engine='compiled' cannot serve {both}: {obstacle}")
        engine = "python" if engine == "python" or obstacle else "compiled"
    _check_built_for(agent, place)
    users = getattr(place.core, "model", None)
    if getattr(agent, "observes_values", False) and getattr(users, "item_values", None) is None:
        raise UnsuitedError(f"{type(agent).__name__} ranks by the values of candidates, and the environment has no item_values")
    return Pair(agent, place, pair.kind, engine)


def why_not(agent: Agent | Learner, place: Place) -> str:
    """The reason why an agent cannot play in a place; empty if it can.

    Example:
        >>> from clickgym.agents import RankedExp3
        >>> from clickgym.runner.make import place_of
        >>> why_not(RankedExp3(10, 5, horizon=100), place_of("PBMRank-v0:available=7"))
        'RankedExp3 cannot choose from a subset of the items (available=7)'
    """
    try:
        pair_of(agent, place)
    except ValueError as error:
        return str(error)
    return ""


# ------------------------------------------------------------------------------------------------------ compiled or not


def _why_not_compiled(pair: Pair) -> str:
    """The reason why a pair cannot run in the compiled loop; empty if it can."""
    agent, kind, env = type(pair.agent), pair.kind, pair.place.env
    if not issubclass(kind, CompiledAgent):
        return f"{agent.__name__} is a plain Python agent"
    if agent.rank is not kind.rank or agent.update is not kind.update:
        return f"{agent.__name__} overrides rank or update in Python"
    if env.render_mode == "human":
        return "render_mode='human' shows every session"
    layer: Any = _within_harmless(env)
    if isinstance(layer, gym.Wrapper):
        return f"the wrapper {type(layer).__name__} must see every step"
    if pair.place.is_guest:
        return f"{type(layer).__name__} is no ClickEnv: what its users do is known to its own step only"
    if type(layer).step is not ClickEnv.step:
        return f"{type(layer).__name__} has a step of its own"
    if getattr(layer.axes, "changes_items", False) and getattr(layer.task, "find_kernel", None) is None:
        return f"the best list of some of the items of a {type(layer.model).__name__} is found in Python"
    return ""


def _within_harmless(env: gym.Env) -> gym.Env:
    """The environment, or the outermost wrapper that is not one that every id brings, without which nothing is lost."""
    while type(env) in (OrderEnforcing, PassiveEnvChecker) or is_limit_of_id(env):
        env = env.env  # type: ignore[attr-defined]
    return env


# --------------------------------------------------------------------------------------------- who cannot play at all


def _check_built_for(agent: Agent | Learner, place: Place) -> None:
    for size, want in place.sizes._asdict().items():
        have = getattr(agent, size, None)
        if have is not None and have != want:
            raise ValueError(f"the agent was built with {size} = {have}, but the environment has {want}")


def _check_axes(agent: Agent, place: Place) -> None:
    """Refuse an agent that cannot play the axes of an environment, naming the axis and what it would need."""
    axes, name = None if place.is_guest else place.core.axes, type(agent).__name__
    if axes is None:
        return
    if axes.arrival is not None and agent.learns_from == LAST_DISPLAY:
        raise UnsuitedError(
            f"{name} learns from {LAST_DISPLAY}, and cannot be run with late clicks (arrival={axes.arrival.text!r}); an "
            f"agent that can says learns_from = {ITS_DISPLAYS!r}, and its update takes display="
        )
    if axes.available is not None and not agent.takes_candidates():
        raise UnsuitedError(f"{name} cannot choose from a subset of the items (available={axes.available})")
    if axes.churn and not agent.can_replace():
        raise UnsuitedError(f"{name} cannot replace an item (churn={axes.churn:g})")


def _check_learner(agent: Learner, place: Place) -> None:
    """Refuse a learner that cannot play its own streams of an environment instead, naming what stands in the way."""
    layer, name = _within_harmless(place.env), type(agent).__name__
    if not isinstance(layer, ClickEnv) or type(layer).step is not ClickEnv.step:
        raise UnsuitedError(f"{name} learns on streams of its own, which would bypass {type(layer).__name__}")
    meta, contextual = agent.training is not None, isinstance(layer.model, ContextualModel)
    history = "protocol='meta' reads the history of items, and where every session has other candidates an item has none"
    earned = "protocol='meta' trains on users whose clicks earn 1 each, and cannot be run with item_values"
    clocks = (
        f"{name} learns on parallel streams, each with a clock of its own, so that it cannot be run with users who change at"
    )
    memory = "protocol='meta' trains on users without a memory, and cannot be run with others"
    _refuse(
        (meta and contextual, history),
        (meta and not contextual and layer.model.item_values is not None, earned),
        (not contextual and layer.task.model is not layer.model, f"{clocks} given steps ({type(layer.model).__name__})"),
        (meta and isinstance(layer.model, CascadeMDP), memory),
    )
    if layer.axes is not None:
        _check_axes_of_learner(agent, layer)
    if agent.actions == "lists":
        EnumeratedAction(layer)  # raises if there are too many


def _check_axes_of_learner(agent: Learner, env: ClickEnv) -> None:
    """Refuse a learner that cannot play the axes of an environment."""
    axes: Any = env.axes
    name, meta = type(agent).__name__, agent.training is not None
    given = ", ".join(f"{name}={value!r}" for name, value in env.axes_arguments.items())
    way = next((way for way in getattr(agent, "representations", OF_ITEMS) if way in OF_ITEMS), OF_ITEMS[0])
    order = f"{name} learns from sequences of sessions in their order, and cannot be run with late clicks ({given}); PPO can"
    first = f"{name} learns on parallel streams of users with a memory, of which no sessions are the first ({given})"
    subset = (
        f"{name} with actions={agent.actions!r} cannot choose from a subset of the items ({given}), because its actions would"
    )
    stays = f"protocol='meta' reads clicks that come at once, on items that stay, and cannot be run with {given}"
    _refuse(
        (axes.arrival is not None and agent.learns_from == LAST_DISPLAY, order),
        (isinstance(env.model, CascadeMDP) and axes.bots.first, f"{first}; bots of a share= can be there"),
        (
            axes.available is not None and not agent.takes_candidates(),
            f"{subset} mean other items in every session; with actions={way!r} they do not",
        ),
        (meta and (axes.arrival is not None or axes.changes_items), stays),
    )


def _refuse(*rules: tuple[bool, str]) -> None:
    """Raise the reason of the first rule that holds."""
    for holds, reason in rules:
        if holds:
            raise UnsuitedError(reason)
