"""Specs of agents and environments (``"Name:key=value"``), and the labels by which tables know
them.

A spec is ``NAME[:KEY=VALUE,...]``; a NAME may be ``module:Class``. In a list of a sweep,
``LABEL=SPEC`` gives it another label than itself.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ..agents import AGENTS
from ..agents.agent import BaseAgent
from ..core.checks import short
from ..core.specs import parse_spec, written_spec
from ..envs import Users

Spec = str | tuple[str, Mapping[str, Any]]
"""A name with arguments: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB", {"feedback":
"first_click"})``.
"""
AgentLike = Spec | Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]]
"""What an agent is made of: a spec, a class, or a class with arguments."""
EnvLike = Spec | EnvSpec | Callable[..., gym.Env] | Users | tuple[Any, Mapping[str, Any]]
"""What an environment is made of: an id, an id with arguments, or the users it is to have."""

Thing = TypeVar("Thing")

RL_LIBRARIES = ("stable_baselines3", "sb3_contrib", "sbx")
"""stable-baselines3 and its relatives, whose algorithms are named as their documentation calls
them: ``sb3_contrib:TRPO``.
"""


# -------------------------------------------------------------------------------------------- specs


def split_label(text: str) -> tuple[str | None, str]:
    """Split what is typed into its label, None if there is none, and the spec.

    Example:
        >>> split_label("mine=my_module:MyAgent:alpha=0.1"), split_label("TopRank:delta=0.1")
        (('mine', 'my_module:MyAgent:alpha=0.1'), (None, 'TopRank:delta=0.1'))
    """
    label, equals, spec = text.partition("=")
    return (label, spec) if equals and ":" not in label else (None, text)


def split(thing: Any) -> tuple[Any, dict[str, Any]]:
    """Split an agent or environment into what makes it (an object or its name) and its arguments.

    Raises:
        ValueError: a name has a label, where none is of use.

    Example:
        >>> from clickgym.agents import TopRank
        >>> split("TopRank:delta=0.1"), split((TopRank, {}))[1]
        (('TopRank', {'delta': 0.1}), {})
    """
    if isinstance(thing, tuple) and len(thing) == 2 and isinstance(thing[1], Mapping):
        maker, arguments = split(thing[0])
        return maker, {**arguments, **thing[1]}
    if not isinstance(thing, str):
        return thing, {}
    label, spec = split_label(thing)
    if label is not None:
        raise ValueError(f"{short(thing)}: only a sweep takes labels; expected {short(spec)}")
    return parse_spec(thing)


# ------------------------------------------------------------------------------------------- labels


def spec_of(thing: Any) -> str | None:
    """The spec of an agent or environment, in the form that `parse_spec` reads; None if it has
    none.

    Example:
        >>> from clickgym.agents import CascadeKLUCB
        >>> spec_of((CascadeKLUCB, {"feedback": "first_click"}))
        'CascadeKLUCB:feedback=first_click'
        >>> spec_of(lambda: gym.make("PBMRank-v0"))
    """
    maker, arguments = split(thing)
    name = maker if isinstance(maker, str) else import_name(maker)
    return None if name is None else written_spec(name, arguments)


def import_name(maker: Any) -> str | None:
    """The name by which a class or a function can be imported."""
    maker = getattr(maker, "adopted", maker)  # a learner made of a library's class goes by that
    name, module = getattr(maker, "__qualname__", None), getattr(maker, "__module__", None)
    if name is None or module is None:
        return None
    if AGENTS.get(name) is maker:
        return str(name)
    library = module.partition(".")[0]
    if library in RL_LIBRARIES and getattr(sys.modules[library], name, None) is maker:
        return f"{library}:{name}"
    try:
        namesake = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None
    return f"{module}:{name}" if namesake is maker else None


def by_label(what: str, things: Iterable[Thing] | Mapping[str, Thing]) -> dict[str, Thing]:
    """Agents or environments by label: their spec, or the label that a mapping or ``LABEL=`` gives
    them.

    Args:
        what: ``"agent"`` or ``"environment"``.
        things: a list, in which names may have labels, as they are typed; or a mapping from labels.

    Raises:
        TypeError: it is neither.
        ValueError: nothing was named, or something twice; something has no spec and no label; a
            label is no text on one line, or the name of something else.

    Example:
        >>> from clickgym.agents import TopRank
        >>> list(by_label("agent", [TopRank, "Random"]))
        ['TopRank', 'Random']
        >>> by_label("agent", ["mine=my_module:MyAgent:alpha=0.1", "Random"])
        {'mine': 'my_module:MyAgent:alpha=0.1', 'Random': 'Random'}
    """
    if isinstance(things, str) or not isinstance(things, Iterable):
        raise TypeError(f"expected a list of {what}s, got {short(things)}")
    if isinstance(things, Mapping):
        pairs = [*things.items()]
    else:
        typed = [
            split_label(thing) if isinstance(thing, str) else (None, thing) for thing in things
        ]
        pairs = [(spec_of(spec) if label is None else label, spec) for label, spec in typed]
    labelled: dict[str, Thing] = {}
    for label, thing in pairs:
        if label is None:
            is_agent = isinstance(thing, BaseAgent)  # a sweep makes one for each run
            wanted = f"({type(thing).__name__}, {{...}})" if is_agent else "..."
            raise ValueError(
                f"{what} {short(thing)} has no name; give it one in a mapping "
                f'{{"my {what}": {wanted}}}'
            )
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            raise ValueError(
                f"the label of {what} {short(thing)} is {label!r}; expected some words"
            )
        is_name = ":" in label or label in AGENTS or label in gym.registry
        if is_name and label != spec_of(thing):
            raise ValueError(f"the label {label!r} is the name of something else; choose another")
        if label in labelled:
            raise ValueError(f"{what} {label!r} is named twice")
        labelled[label] = thing
    if not labelled:
        raise ValueError(f"no {what} was named")
    return labelled
