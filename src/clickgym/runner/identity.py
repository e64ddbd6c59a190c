"""What a run is known by, so that it is not played again.

A run is known by its setting and by its agent, environment and instance: name, arguments
(`joblib.hash`) and, for a class of your own, its `own_code`. What clickgym cannot see, such as a
file that your agent opens by itself, needs ``--again`` or another folder.

Classes, functions and objects of your own count in arguments, too, and a file that an argument
names counts by its content. What has no name in a module (a lambda, a class made within a
function), no text or no content (an open file) is played, but not resumed.
"""

from __future__ import annotations

import io
import os
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from types import FunctionType
from typing import Any

import joblib
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..core.checks import short
from ..envs import Instance, Users, load_instance
from ..envs.instances.instance import FAMILIES
from ..envs.users import users_class
from .make import creator_of
from .names import RL_LIBRARIES, import_name
from .own_code import NoIdentityError, file_of, is_own, own_code

UNKNOWN = "unknown"
"""How the identity of a thing begins that has none."""
OF_LEARNERS = ("torch", "stable_baselines3", "sb3_contrib")
"""Packages whose versions count for learners, beside those of the setting."""


def identity(thing: Any) -> str:
    """A hash of what a label stands for.

    Args:
        thing: the recipe of an agent or an environment, or an instance.

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
        found = _OwnCode()
        found.dump([passed, *_given_before(maker)])
        arguments = {key: _argument(key, value) for key, value in passed.items()}
        return str(joblib.hash([_code(maker), arguments, [_code(own) for own in found.own]]))
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


def own_files(things: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> dict[str, Path | None]:
    """Of the agents or environments that have one, the file of your own class or function; None if
    it stands in a notebook.

    Args:
        things: recipes by label.
    """
    files = {}
    for label, (maker, passed) in things.items():
        if isinstance(maker, EnvSpec):
            maker = _users_or_creator(maker)
        found = _OwnCode()
        with suppress(Exception):  # the rest of what cannot be pickled
            found.dump([getattr(maker, "adopted", maker), passed])
        if found.own:
            files[label] = file_of(found.own[0].__module__)
    return files


def _code(maker: Any) -> Any:
    """What makes agents or environments: its name and, of your own, its text."""
    if isinstance(maker, Users):
        return _users(maker)
    if isinstance(maker, EnvSpec):
        return _of_id(maker)
    if isinstance(maker, partial):
        return _code(maker.func), maker.args, maker.keywords
    maker = getattr(maker, "adopted", maker)
    name, module = import_name(maker), str(getattr(maker, "__module__", ""))
    if name is None:
        raise NoIdentityError(f"{short(maker)} has no name in a module")
    if module.startswith("clickgym.agents.rl") or module.partition(".")[0] in RL_LIBRARIES:
        return name, [version(package) for package in OF_LEARNERS if find_spec(package)]
    return name if is_built_in(maker) else (name, own_code(maker))


def _given_before(maker: Any) -> list[Any]:
    """The arguments that a maker has already."""
    if isinstance(maker, partial):
        return [maker.args, maker.keywords]
    if isinstance(maker, EnvSpec):
        return [maker.kwargs, *(layer.kwargs for layer in maker.additional_wrappers)]
    return []


def is_built_in(thing: Any) -> bool:
    """Whether a class or a function is of this package."""
    return str(thing.__module__).startswith("clickgym.")


def _of_id(spec: EnvSpec) -> Any:
    """What a registered id is, whatever it is called."""
    arguments = {key: value for key, value in spec.kwargs.items() if key != "model"}
    layers = [
        (_code(load_env_creator(layer.entry_point)), layer.kwargs)
        for layer in spec.additional_wrappers
    ]
    return _code(_users_or_creator(spec)), arguments, layers, spec.max_episode_steps


def _users_or_creator(spec: EnvSpec) -> Any:
    """The class of the users of an id of this package, or what makes another environment."""
    if str(spec.entry_point).startswith("clickgym."):
        return users_class(spec.kwargs["model"], imports=True)
    return creator_of(spec)


class _OwnCode(pickle.Pickler):
    """Pickles things, to collect the own classes and functions in them, and the own classes of
    objects there.
    """

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.own: list[Any] = []

    def reducer_override(self, thing: Any) -> Any:
        code = thing if isinstance(thing, type | FunctionType) else type(thing)
        if is_own(code) and code not in self.own:
            self.own.append(code)
        return NotImplemented


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
        users = [one for one in users if is_built_in(type(one))] or users
    return instance.n_positions, instance.initial_ranking, [_users(one) for one in users]


def _users(users: Users) -> Any:
    """What users are: their parameters, and the code of their classes."""
    described = users.to_dict()
    return described, [_code(users_class(name)) for name in _click_models(described)]


def _click_models(described: Any) -> Iterator[str]:
    """Yield the names of the click models in a description of users."""
    if isinstance(described, dict):
        yield from [described["model"]] if "model" in described else []
        described = list(described.values())
    if isinstance(described, list):
        for entry in described:
            yield from _click_models(entry)
