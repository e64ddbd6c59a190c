"""What a run is known by, so that it is not played again: the name and the arguments of its agent,
environment and instance, and the code behind them.

Your own code counts by its files: that of a class or a function, and those of your own modules that
it imports, directly or through each other. Your own modules are those in no installed package and
not in the standard library. An installed package counts by its version. A file that an argument
names counts by its content.

What has no name in a module (a lambda, a class made within a function), no file (a notebook) or no
content (an open file) is played, but not resumed. Nor is code that was edited after its import,
because Python may play the old code, or a mixture. Attributes of classes and constants that a
program sets count by their values (`own_code`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import Any

import joblib
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..envs import Instance, Users, load_instance
from ..envs.instances.instance import FAMILIES
from ..envs.users import users_class
from .make import creator_of
from .names import RL_LIBRARIES
from .own_code import edited, files_behind, is_own, modules_in, values_in

UNKNOWN = "unknown"
"""How the identity of a thing begins that has none."""
OF_LEARNERS = ("torch", "stable_baselines3", "sb3_contrib")
"""Packages whose versions count for learners."""


class NoIdentityError(ValueError):
    """Something cannot be compared; the message says why."""


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
        described = _described(thing)
        content = [described, values_in(files_behind(modules_in(described)))]
        modules = modules_in(content)
        files = files_behind(modules)
        for module in filter(is_own, sorted(modules - files.keys())):
            raise NoIdentityError(f"{module} has no file: put it into a module")
        if file := edited(files):
            raise NoIdentityError(f"{file} was edited after its import: restart Python")
        texts = {module: files[module].read_bytes() for module in sorted(files)}
        versions = {package: _version(package) for package in sorted(_packages(modules))}
        return str(joblib.hash([*content, texts, versions]))
    except NoIdentityError:
        raise
    except Exception as error:  # pickle and objects of any package raise many
        line = str(error.args[0] if error.args else error).partition("\n")[0]
        raise NoIdentityError(f"it has no content to compare ({line})") from None


def files_of(thing: Any) -> dict[str, Path]:
    """The files of own modules behind what `identity` takes, by the names of the modules."""
    with suppress(Exception):  # whatever is wrong with it, whoever makes it will see
        return files_behind(modules_in(_described(thing)))
    return {}


def identities(column: str, things: Mapping[str, Any], *, is_kept: bool) -> dict[str, str]:
    """The identities of what labels stand for; what has none gets another one each time.

    Args:
        column: ``"env"``, ``"instance"`` or ``"agent"``.
        things: what `identity` takes, by label.
        is_kept: whether anything is kept, so that a warning names what has none.

    Warns:
        UserWarning: a thing has none.
    """
    known = {}
    for label, thing in things.items():
        try:
            known[label] = identity(thing)
        except NoIdentityError as error:
            known[label] = f"{UNKNOWN} {token_hex()}"
            if is_kept:
                text = f"{column} {label} is run, but not resumed, because {error}"
                warnings.warn(text, stacklevel=4)
    return known


def _packages(modules: set[str]) -> set[str]:
    """The packages whose versions count beside those that count for all runs."""
    packages = {name.partition(".")[0] for name in modules if not is_own(name)} - {"clickgym"}
    are_learners = any(name.startswith("clickgym.agents.rl") for name in modules)
    return packages | {*OF_LEARNERS} if are_learners or packages & {*RL_LIBRARIES} else packages


def _version(package: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(package)
    return None


# ------------------------------------------------------------------------------------ descriptions


def _described(thing: Any) -> Any:
    """What can be hashed in place of a recipe, users or an instance, whatever it is called."""
    if isinstance(thing, tuple):
        maker, passed = thing
        return _described(maker), {key: _argument(key, value) for key, value in passed.items()}
    if isinstance(thing, Users):
        described = thing.to_dict()
        return described, [users_class(name) for name in _click_models(described)]
    if isinstance(thing, Instance):
        users = list(thing.models.values())
        if thing.name.partition(":")[0] in FAMILIES:  # it holds all that this process knows
            users = [one for one in users if is_built_in(type(one))] or users
        return thing.n_positions, thing.initial_ranking, [_described(one) for one in users]
    if isinstance(thing, EnvSpec):
        arguments = {key: value for key, value in thing.kwargs.items() if key != "model"}
        is_ours = str(thing.entry_point).startswith("clickgym.")
        maker = users_class(thing.kwargs["model"], imports=True) if is_ours else creator_of(thing)
        layers = [
            (load_env_creator(layer.entry_point), layer.kwargs)
            for layer in thing.additional_wrappers
        ]
        return maker, arguments, layers, thing.max_episode_steps
    return getattr(thing, "adopted", thing)  # a learner made of a library's class goes by that


def _argument(key: str, value: Any) -> Any:
    """An argument, or what it names."""
    if key == "instance":
        return _described(loaded(value))
    if isinstance(value, Users):
        return _described(value)
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


def _click_models(described: Any) -> Iterator[str]:
    """Yield the names of the click models in a description of users."""
    if isinstance(described, dict):
        yield from [described["model"]] if "model" in described else []
        described = list(described.values())
    if isinstance(described, list):
        for entry in described:
            yield from _click_models(entry)


def is_built_in(thing: Any) -> bool:
    """Whether a class or a function is of this package."""
    return str(thing.__module__).startswith("clickgym.")
