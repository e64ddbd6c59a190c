"""Parse agent and environment specs (`"Name:key=value"`, class, partial, object), and derive the label used in seeds, files
and tables.

A spec is written as ``[LABEL=]NAME[:KEY=VALUE,...]``. A NAME may contain colons (``module:Class``) but no ``=``. So the text
before an ``=`` that is left of all colons is a LABEL. Without it, the label is the whole spec.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import itertools
import json
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS, Agent, Learner, Range
from ..core.checks import short
from ..core.files import parse_json
from ..core.formats import HIDDEN
from ..envs import Users

Spec = str | tuple[str, Mapping[str, Any]]
"""A name with arguments: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB", {"feedback": "first_click"})``."""
AgentLike = Spec | Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]]
"""What a sweep makes an agent of: a name, a class, a `functools.partial` of one, or a function with the same arguments."""
EnvLike = Spec | EnvSpec | Callable[..., gym.Env] | Users | tuple[Any, Mapping[str, Any]]
"""What a sweep makes an environment of: an id, an ``EnvSpec``, a function that returns one, or the users it is to have."""

Thing = TypeVar("Thing")


class UnsuitedError(ValueError):
    """An agent cannot play an environment, for example because it needs knowledge that this environment does not have."""


RL_LIBRARIES = ("stable_baselines3", "sb3_contrib", "sbx")
"""stable-baselines3 and its relatives, whose algorithms are named as their documentation calls them: ``sb3_contrib:TRPO``."""
PUBLISHED: dict[str, type[Agent | Learner]] = {**AGENTS, **CONTEXTUAL_AGENTS, **STATE_AGENTS, **LEARNERS}


def parse_spec(spec: Spec) -> tuple[str, dict[str, Any]]:
    """Split a spec into the name and its arguments.

    Args:
        spec: ``"Name"``, ``"Name:key=value,key=value"`` with values in JSON or plain words, or ``(name, arguments)``. The name
            may itself be ``module:Class``.

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
    for key, text in texts.items():
        if _inside(text) is not None:
            raise ValueError(f"{short(spec)}: {key} has several values, which lists of agents take; expected one here")
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
        if mark[0] in "[{" and (depth or text[start : mark.start()].rstrip()[-1:] in ("", "=")):  # elsewhere part of a word
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


def _inside(text: str) -> str | None:
    """What stands in the braces of a set of values or a range; None if the text is neither, but a value."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        parse_json(text)
    except json.JSONDecodeError:
        return text[1:-1].strip()
    except ValueError:  # an object all the same, whose fault `_value` tells
        pass
    return None


def _members(spec: str, key: str, text: str) -> list[str] | Range:
    """The values in braces, as they are written, or the range; of a value without braces itself."""
    inner = _inside(text)
    if inner is None:
        return [text]
    bounds = re.fullmatch(r"(\S+?)\.\.(\S+)(\s+log)?", inner)
    if bounds is not None and "/" not in inner:
        return _range(spec, key, *bounds.groups())
    members = [member.strip() for member in _pieces(spec, inner)]
    if not all(members) or re.match(r'"[^"]*"\s*:', inner):
        raise ValueError(
            f"{short(spec)}: {key} is {text}; expected values, {{1,2}}, a range, {{0.1..9}} or {{0.1..9 log}}, or a JSON object"
        )
    return members


def _range(spec: str, key: str, low: str, high: str, log: str | None) -> Range:
    try:
        return Range(_value(spec, key, low), _value(spec, key, high), log=log is not None)
    except ValueError as error:
        raise ValueError(f"{short(spec)}: {key}: {error}") from None


def expand(spec: str) -> list[str]:
    """Expand a spec with sets of values into a list of specs: one for each value or combination of values.

    Raises:
        ValueError: braces that are no set of values, or a range, of which there is no list.

    Example:
        >>> expand("EpsilonGreedy:epsilon={0.01,0.1}")
        ['EpsilonGreedy:epsilon=0.01', 'EpsilonGreedy:epsilon=0.1']
        >>> expand("CascadeKLUCB:c={0,3},feedback={first_click,last_click}")[1:3]
        ['CascadeKLUCB:c=0,feedback=last_click', 'CascadeKLUCB:c=3,feedback=first_click']
        >>> expand("TopRank")
        ['TopRank']
    """
    name, texts = _texts(spec)
    if not any(_inside(text) is not None for text in texts.values()):
        return [spec]
    sets: dict[str, list[str]] = {}
    for key, text in texts.items():
        values = _members(spec, key, text)
        if isinstance(values, Range):
            raise ValueError(f"{short(spec)}: {key} has a range, which only tune searches; expected values, as {{0.1,0.5}}")
        sets[key] = values
    combinations = itertools.product(*sets.values())
    return [f"{name}:{','.join(map('='.join, zip(sets, values, strict=True)))}" for values in combinations]


def parse_search(spec: str) -> tuple[str, dict[str, Any], dict[str, Range | list[Any]]]:
    """Split a spec into the name, its arguments, and the ranges and sets to be searched.

    Args:
        spec: as for `parse_spec`; besides, ``key={value,value}`` is a set, ``key={low..high}`` a range, and ``key={low..high
            log}`` one on a logarithmic scale.

    Returns:
        The name, the arguments, and the ranges and sets.

    Raises:
        ValueError: as `parse_spec` does; on a bad range.

    Example:
        >>> parse_search("CascadeKLUCB:c={0.0..3.0},feedback=first_click")
        ('CascadeKLUCB', {'feedback': 'first_click'}, {'c': Range(0.0, 3.0)})
    """
    name, texts = _texts(spec)
    arguments: dict[str, Any] = {}
    space: dict[str, Range | list[Any]] = {}
    for key, text in texts.items():
        if _inside(text) is None:
            arguments[key] = _value(spec, key, text)
        else:
            members = _members(spec, key, text)
            space[key] = members if isinstance(members, Range) else [_value(spec, key, member) for member in members]
    return name, arguments, space


def grid(agent: AgentLike, /, **values: Iterable[Any]) -> list[AgentLike]:
    """Make one agent for each value of a hyper-parameter, or for each combination of several.

    On the command line and in experiment files the same is ``"EpsilonGreedy:epsilon={0.01,0.1}"``.

    Args:
        agent: an agent as `sweep` takes it: a name, also with other arguments, a class, a `functools.partial`.
        **values: a list of values for each hyper-parameter.

    Returns:
        The agents, for the list of a sweep; each has the label, and so the seeds, of the agent with that value alone.

    Raises:
        ValueError: no hyper-parameter, or no list of values, was given.

    Example:
        >>> import clickgym
        >>> clickgym.grid("EpsilonGreedy", epsilon=[0.01, 0.1])
        ['EpsilonGreedy:epsilon=0.01', 'EpsilonGreedy:epsilon=0.1']
        >>> agents = [*clickgym.grid("CascadeKLUCB", c=[0, 3], feedback=["first_click", "last_click"]), "TopRank"]
        >>> len(agents)
        5
    """
    if not values:
        raise ValueError(f"a grid of {short(agent)} needs the values of a hyper-parameter: grid(agent, alpha=[0.1, 0.5])")
    lists = {key: _list_of(key, entries) for key, entries in values.items()}
    combinations: list[Any] = [
        (agent, dict(zip(lists, entries, strict=True))) for entries in itertools.product(*lists.values())
    ]
    return [own_label(each) or each for each in combinations] if isinstance(agent, str) else combinations


def _list_of(key: str, values: Any) -> list[Any]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise ValueError(f"{key} is {short(values)}; expected a list of its values")
    entries = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not entries:
        raise ValueError(f"{key} is {short(values)}; expected a value at least")
    return entries


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
        ValueError: a `functools.partial` holds arguments without a name; or a name has a label, where none is of use.

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
    """The label that follows from an object itself, in the form that `parse_spec` reads; None if there is none.

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
    except (TypeError, ValueError):  # an argument that is no JSON, or that cannot stand among others
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


def in_braces(values: Range | Iterable[Any]) -> str:
    """A range or a set of values in the form that `parse_search` reads.

    Example:
        >>> in_braces(Range(0.1, 10.0, log=True)), in_braces(["first_click", 3])
        ('{0.1..10.0 log}', '{first_click,3}')
    """
    if isinstance(values, Range):
        return f"{{{values.low}..{values.high}{' log' * values.log}}}"
    return f"{{{','.join(map(written, values))}}}"


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
    """The id of a spec, and its arguments beside those of the id; None if it is not what the id makes."""
    registered = gym.registry.get(spec.id)
    if registered is None or any(key not in spec.kwargs for key in registered.kwargs):
        return None, {}
    beside = {
        key: value
        for key, value in spec.kwargs.items()
        if key not in registered.kwargs or _text(value) != _text(registered.kwargs[key])
    }
    return (spec.id if dataclasses.replace(spec, kwargs=registered.kwargs) == registered else None), beside


# --------------------------------------------------------------------------------------------------------- several of them


def by_label(what: str, things: Iterable[Thing] | Mapping[str, Thing]) -> dict[str, Thing]:
    """Agents or environments by label: their own label, or the one that a mapping gives them.

    Args:
        what: ``"agent"`` or ``"environment"``.
        things: a list, in which names may have labels, as they are typed, and a spec with sets of values stands for several
            things, as in `expand`; or a mapping from labels.

    Raises:
        TypeError: it is neither.
        ValueError: nothing was named, or something twice; something has no name that stays the same, or has been given that
            of something else; a label that was typed is empty, or cannot be the name of a file.

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
        for label, thing in itertools.chain.from_iterable(_with_labels(what, thing) for thing in things):
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


def _with_labels(what: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """What one entry of a list stands for, each after its label."""
    label, specs = None, [thing]
    if isinstance(thing, str):
        label, text = split_label(thing)
        specs = expand(text)
    if label is None:
        for each in specs:
            own = own_label(each)
            if own is None:
                raise ValueError(
                    f"{what} {short(each)} has no stable name, which seeds and results need; name it in a "
                    f'mapping {{"my {what}": ...}} instead of the list'
                )
            yield own, each
        return
    if not label or label != file_name(label):
        raise ValueError(
            f"{what} {short(thing)}: its label is {label!r}; expected what can name a file: no blank or dot around it, and "
            f'none of < > : " / \\ | ? *'
        )
    if len(specs) > 1:
        raise ValueError(f"{what} {short(thing)}: one label cannot stand for {len(specs)} of them; leave it out")
    _check_label(what, label, specs[0])
    yield label, specs[0]


def _check_label(what: str, label: Any, thing: Any) -> None:
    if not isinstance(label, str) or not label.strip() or not label.isprintable():
        raise ValueError(f"{what} {short(thing)}: its label is {label!r}; expected some words on one line")
    if label != own_label(thing) and (":" in label or label in PUBLISHED or label in gym.registry):
        raise ValueError(f"{what} {short(thing)}: the label {label!r} is the name of something else; choose another")


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
    """A hash of the file in which the class or function of a user stands; of the lines, in a notebook; empty without any."""
    with contextlib.suppress(OSError, TypeError):
        return hashlib.sha256(Path(inspect.getfile(maker)).read_bytes()).hexdigest()[:16]
    with contextlib.suppress(OSError, TypeError):
        return hashlib.sha256(inspect.getsource(maker).encode()).hexdigest()[:16]
    return ""


def _text(value: Any) -> str:
    return json.dumps(value, default=lambda other: _name_of(other) or repr(other), sort_keys=True)
