"""What a run is known by, so that it is not played again.

A run is known by its setting and by its agent, environment and instance: name, arguments
(`joblib.hash`) and, for a class of your own, the text of the file that it stands in. What clickgym
cannot see, such as another file that your agent reads, needs ``--again`` or another folder.

A file that an argument names counts by its content. A class of a script or a notebook has the text
of the class. What has no name in a module (a lambda, a class made within a function), no text or no
content (an open file) is played, but not resumed.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any

import joblib
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..core.checks import short
from ..envs import Instance, Users, load_instance
from ..envs.instances.instance import FAMILIES
from ..envs.users import users_class
from .names import RL_LIBRARIES, name_of_maker

UNKNOWN = "unknown"
"""How the identity of a thing begins that has none."""
OF_LEARNERS = ("torch", "stable_baselines3", "sb3_contrib")
"""Packages whose versions count for learners, beside those of the setting."""


class NoIdentityError(ValueError):
    """Something cannot be compared; the message says why."""


def identity(thing: Any) -> str:
    """A hash of what a label stands for.

    Args:
        thing: an agent or an environment as a pair (maker, arguments), or an instance.

    Raises:
        NoIdentityError: it cannot be compared.

    Example:
        >>> from clickgym.agents import TopRank
        >>> identity((TopRank, {"delta": 0.1})) == identity((TopRank, {"delta": 0.1}))
        True
        >>> identity((TopRank, {"delta": 0.1})) == identity((TopRank, {"delta": 0.2}))
        False
    """
    try:
        if not isinstance(thing, tuple):
            return str(joblib.hash(_instance(thing)))
        maker, passed = thing
        arguments = {key: _argument(key, value) for key, value in passed.items()}
        return str(joblib.hash([_code(maker), arguments]))
    except NoIdentityError:
        raise
    except Exception as error:  # pickle and objects of any package raise many
        line = str(error).partition("\n")[0]
        raise NoIdentityError(f"it has no content to compare ({line})") from None


def identities(column: str, things: Mapping[str, Any], *, warns: bool = True) -> dict[str, str]:
    """The identities of what labels stand for; what has none gets another one each time.

    Args:
        column: ``"env"``, ``"instance"`` or ``"agent"``.
        things: what `identity` takes, by label.
        warns: of things without identity.
    """
    known = {}
    for label, thing in things.items():
        try:
            known[label] = identity(thing)
        except NoIdentityError as error:
            known[label] = f"{UNKNOWN} {token_hex()}"
            if warns:
                text = f"{column} {label} is run, but not resumed, because {error}"
                warnings.warn(text, stacklevel=4)
    return known


def _code(maker: Any) -> Any:
    """What makes agents or environments: its name and, of your own, its text."""
    if isinstance(maker, Users):
        return _users(maker)
    if isinstance(maker, EnvSpec):
        return _registered(maker)
    if isinstance(maker, partial):
        return _code(maker.func), maker.args, maker.keywords
    maker = getattr(maker, "adopted", maker)
    name, module = name_of_maker(maker), str(getattr(maker, "__module__", ""))
    if name is None:
        raise NoIdentityError(f"{short(maker)} has no name in a module")
    if module.startswith("clickgym.agents.rl") or module.partition(".")[0] in RL_LIBRARIES:
        return name, [version(it) for it in OF_LEARNERS if find_spec(it)]
    if is_ours(maker):
        return name
    with suppress(OSError, TypeError):  # a notebook, or a module of no file
        if module == "__main__":
            return name, inspect.getsource(maker)
        return name, Path(inspect.getfile(sys.modules[module])).read_bytes()
    raise NoIdentityError(f"the text of {name} is not known")


def is_ours(thing: Any) -> bool:
    """Whether a class or a function is of this package."""
    return str(thing.__module__).startswith("clickgym.")


def _registered(spec: EnvSpec) -> Any:
    """What a registered id is, whatever it is called."""
    entry, arguments = spec.entry_point, dict(spec.kwargs)
    if str(entry).startswith("clickgym."):
        arguments["model"] = _code(users_class(arguments["model"], imports=True))
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    layers = [(it.entry_point, it.kwargs) for it in spec.additional_wrappers]
    return _code(creator), arguments, layers, spec.max_episode_steps


def _argument(key: str, value: Any) -> Any:
    """An argument, or what it names."""
    if key == "instance":
        return _instance(loaded(value))
    if isinstance(value, Users):
        return _users(value)
    if isinstance(value, str | os.PathLike):
        # stable-baselines3 adds .zip to the names of its files
        files = [Path(name) for name in (value, f"{value}.zip") if os.path.isfile(name)]
        return [file.read_bytes() for file in files] or value
    return value


def loaded(instance: Any) -> Any:
    """The instance of a name or a file, or what an environment of another package takes as one."""
    with suppress(ValueError, TypeError):
        return load_instance(instance)
    return instance


def _instance(instance: Any) -> Any:
    """What an instance is, whatever it is called."""
    if not isinstance(instance, Instance):
        return instance
    users = list(instance.models.values())
    if instance.name.partition(":")[0] in FAMILIES:  # it holds all that this process knows
        users = [it for it in users if is_ours(type(it))] or users
    return instance.n_positions, instance.initial_ranking, [_users(it) for it in users]


def _users(users: Users) -> Any:
    """What users are: their parameters, and the code of their classes."""
    described = users.to_dict()
    return described, [_code(users_class(name)) for name in _kinds(described)]


def _kinds(described: Any) -> Iterator[str]:
    """Yield the names of the click models in a description of users."""
    if isinstance(described, dict):
        yield from [described["model"]] if "model" in described else []
        described = list(described.values())
    if isinstance(described, list):
        for entry in described:
            yield from _kinds(entry)
