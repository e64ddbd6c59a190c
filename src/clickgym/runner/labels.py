"""Parse agent and environment specs (`"Name:key=value"`, class, partial, object), and derive the
label used in seeds, files and tables.

A spec is written as ``[LABEL=]NAME[:KEY=VALUE,...]``. A NAME may contain colons (``module:Class``)
but no ``=``. So the text before an ``=`` that is left of all colons is a LABEL. Without it, the
label is the whole spec.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import json
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ..agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS, Agent, Learner
from ..core.checks import short
from ..core.files import parse_json
from ..core.formats import HIDDEN
from ..envs import Users

Spec = str | tuple[str, Mapping[str, Any]]
"""A name with arguments: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB", {"feedback":
"first_click"})``.
"""
AgentLike = Spec | Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]]
"""What a sweep makes an agent of: a name, a class, a `functools.partial` of one, or a function with
the same arguments.
"""
EnvLike = Spec | EnvSpec | Callable[..., gym.Env] | Users | tuple[Any, Mapping[str, Any]]
"""What a sweep makes an environment of: an id, an ``EnvSpec``, a function that returns one, or the
users it is to have.
"""

Thing = TypeVar("Thing")


class UnsuitedError(ValueError):
    """An agent cannot play an environment, for example because it needs knowledge that this
    environment does not have.
    """


RL_LIBRARIES = ("stable_baselines3", "sb3_contrib", "sbx")
"""stable-baselines3 and its relatives, whose algorithms are named as their documentation calls
them: ``sb3_contrib:TRPO``.
"""
PUBLISHED: dict[str, type[Agent | Learner]] = {
    **AGENTS,
    **CONTEXTUAL_AGENTS,
    **STATE_AGENTS,
    **LEARNERS,
}


def parse_spec(spec: Spec) -> tuple[str, dict[str, Any]]:
    """Split a spec into the name and its arguments.

    Args:
        spec: ``"Name"``, ``"Name:key=value,key=value"`` with values in JSON or plain words, or
            ``(name, arguments)``. The name may itself be ``module:Class``.

    Returns:
        The name and the arguments.

    Raises:
        ValueError: what follows the name is not ``key=value``, or has a key twice.

    Example:
        >>> parse_spec("CascadeKLUCB:feedback=first_click")
        ('CascadeKLUCB', {'feedback': 'first_click'})
        >>> parse_spec("BubbleRank:initial=[2,0,1],delta=0.1")
        ('BubbleRank', {'initial': [2, 0, 1], 'delta': 0.1})
        >>> parse_spec('PPO:policy_kwargs={"net_arch":[32,32],"ortho_init":false},n_steps=8')
        ('PPO', {'policy_kwargs': {'net_arch': [32, 32], 'ortho_init': False}, 'n_steps': 8})
        >>> parse_spec("my_module:MyAgent:alpha=0.5")
        ('my_module:MyAgent', {'alpha': 0.5})
        >>> parse_spec("PBMRank-v0:instance=uniform:seed=3")
        ('PBMRank-v0', {'instance': 'uniform:seed=3'})
    """
    if not isinstance(spec, str):
        name, arguments = spec
        return name, dict(arguments)
    name, texts = _texts(spec)
    return name, {key: _value(spec, key, text) for key, text in texts.items()}


def _texts(spec: str) -> tuple[str, dict[str, str]]:
    """The name in a spec, and what is written of each argument."""
    # At the first colon before a key: what follows may have colons of its own.
    parts = re.fullmatch(r"([^=]*?):([^:=]*=.*)", spec)
    if parts is None:
        return spec, {}
    name, tail = parts.groups()
    texts: dict[str, str] = {}
    for pair in _pieces(spec, tail):
        key, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise ValueError(f"{spec!r}: expected key=value after the name, got {pair!r}")
        if key in texts:
            raise ValueError(f"{spec!r}: {key} is given twice")
        texts[key] = text
    return name, texts


def _pieces(spec: str, text: str) -> Iterator[str]:
    """What stands between commas, but not between those of a list, an object or a set."""
    depth, start = 0, 0
    for mark in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', text):
        if mark[0] in "[{" and (
            depth or text[start : mark.start()].rstrip()[-1:] in ("", "=")
        ):  # elsewhere part of a word
            depth += 1
        elif mark[0] in "]}" and depth:
            depth -= 1
        elif mark[0] == "," and not depth:
            yield text[start : mark.start()]
            start = mark.end()
    if depth:
        raise ValueError(
            f"{short(spec)}: a bracket is not closed; put quotes around the whole, because shells split braces and spaces"
        )
    yield text[start:]


def _value(spec: str, key: str, text: str) -> Any:
    """A value in JSON or plain words."""
    try:
        return parse_json(text)
    except json.JSONDecodeError:
        return text
    except ValueError as error:
        raise ValueError(f"{short(spec)}: {key}: {error}") from None


def split_label(text: str) -> tuple[str | None, str]:
    """Split a spec into its label and the rest.

    Args:
        text: as it is typed.

    Returns:
        The label, None if there is none; and the rest.

    Example:
        >>> split_label("mine=my_module:MyAgent:alpha=0.1"), split_label("TopRank:delta=0.1")
        (('mine', 'my_module:MyAgent:alpha=0.1'), (None, 'TopRank:delta=0.1'))
    """
    label, equals, spec = text.partition("=")
    return (label, spec) if equals and ":" not in label else (None, text)


def file_name(label: str) -> str:
    """A label as a file name: characters that some system does not allow are replaced.

    Example:
        >>> file_name("my_module:MyAgent:alpha=0.1"), file_name("mine, at last")
        ('my_module_MyAgent_alpha=0.1', 'mine, at last')
    """
    return re.sub(rf'([<>:"/\\|?*]|{HIDDEN.pattern})+|^[ .]+|[ .]+$', "_", label)


def split(thing: Any) -> tuple[Any, dict[str, Any]]:
    """Split an agent or environment into what makes it (an object or its name) and its arguments.

    Raises:
        ValueError: a `functools.partial` holds arguments without a name; or a name has a label,
            where none is of use.

    Example:
        >>> from clickgym.agents import TopRank
        >>> split("TopRank:delta=0.1"), split(functools.partial(TopRank, delta=0.1)) == (TopRank, {"delta": 0.1})
        (('TopRank', {'delta': 0.1}), True)
    """
    if isinstance(thing, str):
        label, spec = split_label(thing)
        if label is not None:
            raise ValueError(
                f"{short(thing)}: labels are only for the agents and environments of a sweep; expected {short(spec)} without "
                f"{short(label)}"
            )
        return parse_spec(thing)
    if isinstance(thing, tuple) and len(thing) == 2 and isinstance(thing[1], Mapping):
        maker, arguments = split(thing[0])
        return maker, arguments | dict(thing[1])
    if isinstance(thing, functools.partial):
        if thing.args:
            raise ValueError(f"{short(thing)}: give the arguments of a partial by keyword")
        maker, arguments = split(thing.func)
        return maker, arguments | thing.keywords
    return thing, {}


def own_label(thing: Any) -> str | None:
    """The label that follows from an object itself, in the form that `parse_spec` reads; None if
    there is none.

    Args:
        thing: an `AgentLike` or an `EnvLike`.

    Example:
        >>> from clickgym.agents import CascadeKLUCB
        >>> own_label(functools.partial(CascadeKLUCB, feedback="first_click"))
        'CascadeKLUCB:feedback=first_click'
        >>> own_label(gym.make("PBMRank-v0", reward="any_click").spec)
        'PBMRank-v0:reward=any_click'
        >>> own_label(lambda: gym.make("PBMRank-v0"))
    """
    maker, arguments = split(thing)
    if isinstance(maker, EnvSpec):
        maker, beside = _name_of_spec(maker)
        arguments = beside | arguments
    name = maker if isinstance(maker, str) else _name_of(maker)
    if name is None:
        return None
    if not arguments:
        return name
    try:
        label = f"{name}:{','.join(f'{key}={written(value)}' for key, value in arguments.items())}"
        readable = json.dumps(parse_spec(label)) == json.dumps((name, arguments))
    except (
        TypeError,
        ValueError,
    ):  # an argument that is no JSON, or that cannot stand among others
        return None
    return label if readable else None


def written(value: Any) -> str:
    """An argument in the form that `parse_spec` reads."""
    if isinstance(value, str):
        try:
            parse_json(value)
        except json.JSONDecodeError:
            return value
    return json.dumps(value, separators=(",", ":"))


def _name_of(maker: Any) -> str | None:
    """The name by which a class or a function can be imported."""
    maker = getattr(maker, "adopted", maker)  # a learner made of a library's class goes by that
    name, module = getattr(maker, "__qualname__", None), getattr(maker, "__module__", None)
    if name is None or module is None:
        return None
    if PUBLISHED.get(name) is maker:
        return str(name)
    library = module.partition(".")[0]
    if library in RL_LIBRARIES and getattr(sys.modules[library], name, None) is maker:
        return f"{library}:{name}"  # as its documentation calls it
    try:
        namesake = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None
    return f"{module}:{name}" if namesake is maker else None


def _name_of_spec(spec: EnvSpec) -> tuple[str | None, dict[str, Any]]:
    """The id of a spec, and its arguments beside those of the id; None if it is not what the id
    makes.
    """
    registered = gym.registry.get(spec.id)
    if registered is None or any(key not in spec.kwargs for key in registered.kwargs):
        return None, {}
    beside = {
        key: value
        for key, value in spec.kwargs.items()
        if key not in registered.kwargs or _text(value) != _text(registered.kwargs[key])
    }
    return (
        spec.id if dataclasses.replace(spec, kwargs=registered.kwargs) == registered else None
    ), beside


# --------------------------------------------------------------------------------------------------------- several of them


def by_label(what: str, things: Iterable[Thing] | Mapping[str, Thing]) -> dict[str, Thing]:
    """Agents or environments by label: their own label, or the one that a mapping gives them.

    Args:
        what: ``"agent"`` or ``"environment"``.
        things: a list, in which names may have labels, as they are typed; or a mapping from labels.

    Raises:
        TypeError: it is neither.
        ValueError: nothing was named, or something twice; something has no name that stays the
            same, or has been given that of something else; a label that was typed is empty, or
            cannot be the name of a file.

    Example:
        >>> from clickgym.agents import TopRank
        >>> list(by_label("agent", [TopRank, "Random"])), list(by_label("agent", {"mine": lambda **sizes: TopRank(**sizes)}))
        (['TopRank', 'Random'], ['mine'])
        >>> by_label("agent", ["mine=my_module:MyAgent:alpha=0.1", "Random"])
        {'mine': 'my_module:MyAgent:alpha=0.1', 'Random': 'Random'}
    """
    _check_several(what, things)
    if isinstance(things, Mapping):
        labelled = dict(things)
        for label, thing in labelled.items():
            _check_label(what, label, thing)
    else:
        labelled = {}
        for label, thing in (_with_label(what, thing) for thing in things):
            if label in labelled:
                raise ValueError(f"{what} {label!r} is named twice")
            labelled[label] = thing
    if not labelled:
        raise ValueError(f"no {what} was named")
    return labelled


def _check_several(what: str, things: Any) -> None:
    if isinstance(things, str):
        raise TypeError(f"expected a list of {what}s, got the string {things!r}")
    if not isinstance(things, Iterable) or getattr(things, "ndim", 1) == 0:
        raise TypeError(f"expected a list of {what}s, got {short(things)}")


def _with_label(what: str, thing: Any) -> tuple[str, Any]:
    """What one entry of a list stands for, after its label."""
    label, spec = split_label(thing) if isinstance(thing, str) else (None, thing)
    if label is None:
        own = own_label(spec)
        if own is None:
            raise ValueError(
                f"{what} {short(spec)} has no stable name, which seeds and results need; name it in a "
                f'mapping {{"my {what}": ...}} instead of the list'
            )
        return own, spec
    if not label or label != file_name(label):
        raise ValueError(
            f"{what} {short(thing)}: its label is {label!r}; expected what can name a file: no blank or dot around it, and "
            f'none of < > : " / \\ | ? *'
        )
    _check_label(what, label, spec)
    return label, spec


def _check_label(what: str, label: Any, thing: Any) -> None:
    if not isinstance(label, str) or not label.strip() or not label.isprintable():
        raise ValueError(
            f"{what} {short(thing)}: its label is {label!r}; expected some words on one line"
        )
    if label != own_label(thing) and (":" in label or label in PUBLISHED or label in gym.registry):
        raise ValueError(
            f"{what} {short(thing)}: the label {label!r} is the name of something else; choose another"
        )


def typed(label: str, spec: str) -> str:
    """The text to type for an agent or environment: its name, or label and name.

    Example:
        >>> typed("TopRank", "TopRank"), typed("mine", "TopRank:delta=0.1")
        ('TopRank', 'mine=TopRank:delta=0.1')
    """
    return spec if label == spec else f"{label}={spec}"


def typed_specs(labelled: Mapping[str, Any]) -> dict[str, str]:
    """The own names of the objects that have another label, if they can be typed.

    Args:
        labelled: as `by_label` returns it.

    Example:
        >>> typed_specs(by_label("agent", {"mine": "TopRank:delta=0.1", "1/2": "TopRank:delta=0.5", "Random": "Random"}))
        {'mine': 'TopRank:delta=0.1'}
    """
    own = {label: own_label(thing) for label, thing in labelled.items()}
    return {
        label: spec
        for label, spec in own.items()
        if spec not in (None, label)
        and label == file_name(label)
        and split_label(typed(label, spec)) == (label, spec)
        and _text(split(spec)) == _text(split(labelled[label]))
    }


# --------------------------------------------------------------------------------------------- which version of it is meant


def source_hash(maker: Any) -> str:
    """A hash of the file in which the class or function of a user stands; of the lines, in a
    notebook; empty without any.
    """
    with contextlib.suppress(OSError, TypeError):
        return hashlib.sha256(Path(inspect.getfile(maker)).read_bytes()).hexdigest()[:16]
    with contextlib.suppress(OSError, TypeError):
        return hashlib.sha256(inspect.getsource(maker).encode()).hexdigest()[:16]
    return ""


def _text(value: Any) -> str:
    return json.dumps(value, default=lambda other: _name_of(other) or repr(other), sort_keys=True)
