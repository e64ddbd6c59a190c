"""Specs and labels of agents, environments and instances; for the label of an environment object,
see `label_of` in `clickgym.envs.env_properties`.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import gymnasium as gym

from ...agents import AGENTS
from ...agents.rl.learner import RL_LIBRARIES
from ...core.checks import is_sequence
from ...core.messages import short_repr
from ...core.specs import format_spec, parse_spec
from ...envs.instances.instance import load_instance, shipped_instances

Spec = str | tuple[str, Mapping[str, Any]]
"""A name, with arguments if needed: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB",
{"feedback": "first_click"})``.
"""
Arguments = dict[str, Any]
Object = TypeVar("Object")


def split_label(text: str) -> tuple[str | None, str]:
    """Split an argument from the command line into its label (None if it has none) and its spec.

    Example:
        >>> split_label("mine=my_module:MyAgent:alpha=0.1"), split_label("TopRank:delta=0.1")
        (('mine', 'my_module:MyAgent:alpha=0.1'), (None, 'TopRank:delta=0.1'))
    """
    label, equals, spec = text.partition("=")
    return (label, spec) if equals and ":" not in label else (None, text)


def split_spec(obj: Any) -> tuple[Any, dict[str, Any]]:
    """Separate the name or class (or function, or click model) of an agent or environment from its
    arguments.

    Example:
        >>> from clickgym.agents import TopRank
        >>> split_spec("TopRank:delta=0.1"), split_spec((TopRank, {}))[1]
        (('TopRank', {'delta': 0.1}), {})
    """
    if isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[1], Mapping):
        maker, arguments = split_spec(obj[0])
        return maker, {**arguments, **obj[1]}
    return parse_spec(obj) if isinstance(obj, str) else (obj, {})


def spec_of(obj: Any) -> str | None:
    """Return the spec of an agent or environment as text, in the form that `parse_spec` reads, or
    None if it has no spec, as for a lambda.

    Example:
        >>> from clickgym.agents import CascadeKLUCB
        >>> spec_of((CascadeKLUCB, {"feedback": "first_click"}))
        'CascadeKLUCB:feedback=first_click'
        >>> spec_of(lambda: gym.make("PBMRank-v0"))
    """
    maker, arguments = split_spec(obj)
    name = maker if isinstance(maker, str) else import_name(maker)
    return None if name is None else format_spec(name, arguments)


def import_name(maker: Any) -> str | None:
    """Return the name under which a class or function can be imported; None if there is none."""
    maker = getattr(maker, "adopted", maker)  # the original class of an adopted RL algorithm
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


def check_no_env_object(obj: Any) -> None:
    """Raise a TypeError for an environment object, which a sweep cannot create again."""
    if isinstance(obj, gym.Env):
        raise TypeError(
            f"{short_repr(obj)} is an environment object, but a sweep creates a new environment "
            "for each run; pass an id, a click model or a function that returns a new environment, "
            "such as lambda: MyWrapper(gym.make(id))"
        )


def label_objects(noun: str, objects: Iterable[Object] | Mapping[str, Object]) -> dict[str, Object]:
    """Return a dictionary of agents or environments by label.

    The label is the spec, unless a mapping or the prefix ``LABEL=`` sets another label.

    Args:
        noun: the word for an object in messages, ``"agent"`` or ``"environment"``.
        objects: a list of agents or environments, in which text may begin with ``LABEL=``; or a
            mapping from labels to agents or environments.

    Raises:
        TypeError: ``objects`` is neither a list nor a mapping.
        ValueError: ``objects`` is empty, two objects have the same label, an object has neither a
            spec nor a label, or a label is not printable text on one line.

    Example:
        >>> from clickgym.agents import TopRank
        >>> list(label_objects("agent", [TopRank, "Random"]))
        ['TopRank', 'Random']
        >>> label_objects("agent", ["mine=my_module:MyAgent:alpha=0.1", "Random"])
        {'mine': 'my_module:MyAgent:alpha=0.1', 'Random': 'Random'}
    """
    if isinstance(objects, str) or not isinstance(objects, Iterable):
        raise TypeError(f"expected a list of {noun}s, got {short_repr(objects)}")
    if isinstance(objects, Mapping):
        pairs = [*objects.items()]
    else:
        entries = [split_label(obj) if isinstance(obj, str) else (None, obj) for obj in objects]
        pairs = [(spec_of(spec) if label is None else label, spec) for label, spec in entries]
    result: dict[str, Object] = {}
    for label, obj in pairs:
        if label is None:
            check_no_env_object(obj)
            cure = f'pass a dict that names it: {{"my {noun}": ...}}'
            raise ValueError(f"{noun} {short_repr(obj)} has no name; {cure}")
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            raise ValueError(
                f"the label of {noun} {short_repr(obj)} is {label!r}; expected printable "
                "text on one line"
            )
        if label in result:
            raise ValueError(
                f"two {noun}s have the label {label!r}; remove one of them, or give it another "
                f"label: LABEL={noun.upper()}"
            )
        result[label] = obj
    if not result:
        raise ValueError(f"the list of {noun}s is empty; pass at least one {noun}")
    return result


SHIPPED: Literal["shipped"] = "shipped"
"""The word in ``instances`` that stands for all instances in the package."""


def expand_instances(instances: Any) -> Sequence[Any]:
    """Return a sweep's instances as a list, with ``"shipped"`` replaced by all shipped instances.

    If ``instances`` is None, the list contains only None, which stands for the default instance of
    each environment. In ``LABEL=FILE``, the label is the instance's name.
    """
    if instances is None:
        return [None]
    entries = [SHIPPED] if isinstance(instances, str) and instances == SHIPPED else instances
    if not (is_sequence(entries) and len(entries)):
        raise TypeError(
            f"instances is {short_repr(instances)}; expected a list of instances, such as "
            f'["LABEL=users.json"], or "{SHIPPED}"'
        )
    result: list[Any] = []
    for instance in entries:
        if not isinstance(instance, str) or os.path.exists(instance):
            result.append(instance)
        elif instance == SHIPPED:
            result += shipped_instances()
        else:
            label, spec = split_label(instance)
            result.append(replace(load_instance(spec), name=label) if label else spec)
    return result
