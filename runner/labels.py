"""Parse agent and environment specs (`"Name:key=value"`, class, partial, object), and derive the label used in seeds, files
and tables."""

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
from types import CodeType, FunctionType
from typing import Any, TypeVar

import cloudpickle
import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ..agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS, Agent, Learner
from ..core.checks import short
from ..core.files import parse_json
from ..core.trust import RL_LIBRARIES
from ..envs import Users
from ..envs.users import users_class

__all__ = [
    "PUBLISHED",
    "AgentLike",
    "EnvLike",
    "Spec",
    "UnsuitedError",
    "by_label",
    "digest",
    "fingerprint",
    "model_digest",
    "own_label",
    "parse_spec",
    "source_digest",
    "split",
]

Spec = str | tuple[str, Mapping[str, Any]]
"""A name with arguments: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB", {"feedback": "first_click"})``."""
AgentLike = Spec | Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]]
"""What a sweep makes an agent of: a name, a class, a `functools.partial` of one, or a function with the same arguments."""
EnvLike = Spec | EnvSpec | Callable[..., gym.Env] | Users | tuple[Any, Mapping[str, Any]]
"""What a sweep makes an environment of: an id, an ``EnvSpec``, a function that returns one, or the users it is to have."""

Thing = TypeVar("Thing")


class UnsuitedError(ValueError):
    """An agent is not made for an environment: it must be told or shown what that does not know, or cannot play it at all."""


PUBLISHED: dict[str, type[Agent | Learner]] = {**AGENTS, **CONTEXTUAL_AGENTS, **STATE_AGENTS, **LEARNERS}


def parse_spec(spec: Spec) -> tuple[str, dict[str, Any]]:
    """Split a name from its arguments.

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
    # At the first colon before a key: what follows may have colons of its own.
    parts = re.fullmatch(r"([^=]*?):([^:=]*=.*)", spec)
    if parts is None:
        return spec, {}
    name, tail = parts.groups()
    arguments = {}
    for pair in re.split(r",(?![^\[]*\]|[^{]*\})", tail):  # not at the commas of a list or an object
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise ValueError(f"{spec!r}: expected key=value after the name, got {pair!r}")
        if key in arguments:
            raise ValueError(f"{spec!r}: {key} is given twice")
        try:
            arguments[key] = parse_json(value)
        except json.JSONDecodeError:
            arguments[key] = value
        except ValueError as error:
            raise ValueError(f"{short(spec)}: {key}: {error}") from None
    return name, arguments


def split(thing: Any) -> tuple[Any, dict[str, Any]]:
    """What makes a thing, an object or its name, and the arguments that go with it.

    Raises:
        ValueError: a `functools.partial` holds arguments without a name.

    Example:
        >>> from clickgym.agents import TopRank
        >>> split("TopRank:delta=0.1"), split(functools.partial(TopRank, delta=0.1)) == (TopRank, {"delta": 0.1})
        (('TopRank', {'delta': 0.1}), True)
    """
    if isinstance(thing, str):
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
    """What a thing is called: the form that `parse_spec` reads, and by which it could be passed; None if it has no such name.

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
        label = f"{name}:{','.join(f'{key}={_written(value)}' for key, value in arguments.items())}"
        readable = json.dumps(parse_spec(label)) == json.dumps((name, arguments))
    except (TypeError, ValueError):  # an argument that is no JSON, or that cannot stand among others
        return None
    return label if readable else None


def _written(value: Any) -> str:
    """An argument as `parse_spec` reads it: a word as it is, unless it would be read as something else."""
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
    """Things by label: their own, or the one that a mapping gives them.

    Args:
        what: ``"agent"`` or ``"environment"``.
        things: a list, or a mapping from labels.

    Raises:
        TypeError: it is neither.
        ValueError: nothing was named, or something twice; something has no name that stays the same, or has been given that
            of something else.

    Example:
        >>> from clickgym.agents import TopRank
        >>> list(by_label("agent", [TopRank, "Random"])), list(by_label("agent", {"mine": lambda **sizes: TopRank(**sizes)}))
        (['TopRank', 'Random'], ['mine'])
    """
    if isinstance(things, str) or not isinstance(things, Iterable) or getattr(things, "ndim", 1) == 0:
        got = f"the string {things!r}" if isinstance(things, str) else short(things)
        raise TypeError(f"expected a list of {what}s, got {got}")
    if isinstance(things, Mapping):
        labelled = dict(things)
        for label, thing in labelled.items():
            _check_label(what, label, thing)
    else:
        labelled = {}
        for thing in things:
            own = own_label(thing)
            if own is None:
                raise ValueError(
                    f"{what} {short(thing)} has no name that stays the same, which seeds and results need: give it one, in a "
                    f'mapping {{"my {what}": ...}} instead of the list'
                )
            if own in labelled:
                raise ValueError(f"{what} {own!r} is named twice")
            labelled[own] = thing
    if not labelled:
        raise ValueError(f"no {what} was named")
    return labelled


def _check_label(what: str, label: Any, thing: Any) -> None:
    if not isinstance(label, str) or not label.strip() or not label.isprintable():
        raise ValueError(f"{what} {short(thing)}: its label is {label!r}; expected some words on one line")
    if label != own_label(thing) and (":" in label or label in PUBLISHED or label in gym.registry):
        raise ValueError(f"{what} {short(thing)}: the label {label!r} is the name of something else; choose another")


# --------------------------------------------------------------------------------------------- which version of it is meant


def digest(content: bytes) -> str:
    """A few letters that identify some bytes."""
    return hashlib.sha256(content).hexdigest()[:16]


def model_digest(model: Users) -> str:
    """Identifies the users of an environment, with all their parameters; as in version 0.1, which knew models by class."""

    def as_classes(value: Any) -> Any:
        if isinstance(value, list):
            return [as_classes(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        names = {key: as_classes(entry) for key, entry in value.items()}
        return names | ({"model": users_class(names["model"]).__name__} if "model" in names else {})

    return digest(json.dumps(as_classes(model.to_dict()), sort_keys=True).encode())


def source_digest(maker: Any) -> str:
    """Identifies the source of a user's class or function; for one in a module the whole file."""
    return digest(_source(maker))


def fingerprint(thing: Any) -> str:
    """Identifies what stands behind a label that does not say it, arguments and all, in every process alike.

    Args:
        thing: an `AgentLike` or an `EnvLike`.
    """
    return digest(_text(split(thing)).encode())


def _source(maker: Any) -> bytes:
    """A module's file; of what stands in a script or a notebook, the lines; and where there are none, or no name, the code."""
    has_name = "<" not in maker.__qualname__
    with contextlib.suppress(OSError, TypeError):
        if has_name and maker.__module__ != "__main__":
            return Path(inspect.getfile(maker)).read_bytes()
        if has_name:
            return "".join(map(inspect.getsource, _bases_there(maker))).encode()
    if isinstance(maker, type):
        return b"".join(part for base in _bases_there(maker) for value in vars(base).items() for part in _member(*value))
    closure = [cell.cell_contents for cell in maker.__closure__ or ()]  # what a nested function has taken from around it
    return b"".join(_bytecode(maker.__code__)) + _text([maker.__defaults__, maker.__kwdefaults__, closure]).encode()


def _bases_there(maker: Any) -> list[Any]:
    """A class and those of its bases that stand beside it, in the same script."""
    return [base for base in maker.__mro__ if base.__module__ == maker.__module__] if isinstance(maker, type) else [maker]


def _member(name: str, value: Any) -> Iterator[bytes]:
    """A name of a class with the code or the constant that it stands for."""
    for wrapped in ("__func__", "fget", "py_func"):  # of a static method, of a property, of a kernel
        value = getattr(value, wrapped, value)
    if isinstance(value, FunctionType):
        yield name.encode()
        yield from _bytecode(value.__code__)
    elif isinstance(value, bool | int | float | str | tuple) and name not in ("__firstlineno__", "__doc__"):
        yield f"{name}={value!r}".encode()


def _bytecode(code: CodeType) -> Iterator[bytes]:
    yield code.co_code + repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _bytecode(constant)
        else:  # the order of a set's strings is another in every process
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant).encode()


def _text(value: Any) -> str:
    return json.dumps(value, default=_plain, sort_keys=True)


def _plain(value: Any) -> Any:
    """An argument that is no JSON, as something that is, and that is the same in every process."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, EnvSpec):
        return [value.id, value.entry_point, value.kwargs, [str(wrapper) for wrapper in value.additional_wrappers]]
    if isinstance(value, type | FunctionType):
        name = _name_of(value)
        return name if name in PUBLISHED else [name, source_digest(value)]
    return digest(cloudpickle.dumps(value))
