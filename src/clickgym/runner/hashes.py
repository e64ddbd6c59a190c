"""What a run is known by, so that it is not played again: the name and the arguments of its agent,
environment and instance, and the code behind them.

Your own code counts by its files: that of a class or a function, and those of your own modules that
it imports, directly or through each other. Your own modules are those in no installed package and
not in the standard library. An installed package counts by its version. A file that an argument
names counts by its content.

What has no name in a module (a lambda, a class made within a function), no file (a notebook) or no
content (an open file) is played, but not resumed. Nor is code that was edited after its import,
because Python may play the old code, or a mixture. Attributes of classes and constants that a
program sets count by their values (`values_in`).
"""

from __future__ import annotations

import ast
import importlib
import io
import os
import pickle
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import EnumType
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from secrets import token_hex
from types import FunctionType, ModuleType
from typing import Any

import joblib
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..core.modules import IMPORTED, STARTED
from ..envs import Instance, Users, load_instance
from ..envs.instances.instance import FAMILIES
from ..envs.users import users_class
from .make import RL_LIBRARIES

INSTALLED = {"site-packages", "dist-packages"}
"""The folders of installed packages."""

Files = Mapping[str, Path]
"""Of own modules, by their names."""
Values = dict[str, dict[str, Any]]
"""Of attributes of classes and of variables: by module, and by the name in it."""


def is_own(module: object) -> bool:
    """Whether a module is in no installed package and not in the standard library."""
    name = str(module)
    top = name.partition(".")[0]
    if not top or top == "clickgym" or top in sys.stdlib_module_names:
        return False
    file = file_of(top) or file_of(name)
    return file is None or not INSTALLED & {*file.parts}


def file_of(module: str) -> Path | None:
    """The file of a module, imported or not; None without one."""
    file = getattr(sys.modules.get(module), "__file__", None)
    with suppress(Exception):  # of a package that is imported around it
        spec = None if file or module == "__main__" else find_spec(module)
        file = spec.origin if spec else file
    return Path(file).resolve() if file and Path(file).is_file() else None


class _Finder(pickle.Pickler):
    """Pickles something, to collect the classes and functions in it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: list[Any] = []

    def reducer_override(self, thing: Any) -> Any:
        is_code = isinstance(thing, type | FunctionType)
        self.found.append(thing if is_code else type(thing))
        # In place of code, which may have no name by which it could be pickled.
        return (int, ()) if is_code and thing is not int else NotImplemented


def modules_in(thing: Any) -> set[str]:
    """The modules of the classes and functions in something, as far as it can be pickled."""
    finder = _Finder()
    with suppress(Exception):  # pickle and objects of any package raise many
        finder.dump(thing)
    return {str(code.__module__) for code in finder.found}


def files_behind(modules: Iterable[str]) -> dict[str, Path]:
    """The files of own modules, and of the own modules that these import, directly or through each
    other, by the names of the modules.
    """
    files: dict[str, Path] = {}
    left = list(modules)
    while left:
        name = left.pop()
        file = file_of(name) if name not in files and is_own(name) else None
        if file is not None:
            files[name] = file
            package = name.rpartition(".")[0]
            package_of = name if file.stem == "__init__" else package
            left += [package, *_imports(file.read_bytes(), package_of)]
    return files


def _imports(text: bytes, package: str) -> Iterator[str]:
    """Yield the names of the modules that the text of a module of a package imports, and of what it
    takes from them.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # a relative import of a script
                base = resolve_name("." * node.level + (node.module or ""), package)
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)


def edited(files: Files) -> Path | None:
    """The first of some files that was edited after its module was imported, also if it was
    imported again since, because others may have what they took from it.
    """
    times = {file: IMPORTED.get(name, STARTED) for name, file in files.items()}
    return next((file for file, time in times.items() if file.stat().st_mtime > time), None)


# --------------------------------------------------------------------------- what programs have set


def values_in(files: Files) -> Values:
    """What a program may have set in some modules, if they are imported: the attributes of their
    classes, also methods that are functions of the program, and their constants.

    Args:
        files: of the modules.
    """
    values: Values = {}
    for module in sorted(files.keys() & sys.modules.keys()):
        variables = vars(sys.modules[module])
        names = _constants(files[module].read_bytes()) if module != "__main__" else set()
        found = {name: variables[name] for name in names & variables.keys()}
        for name, own in variables.items():
            if isinstance(own, type) and own.__module__ == module and type(own) is not EnumType:
                found |= {f"{name}.{key}": value for key, value in vars(own).items()}
        kept = sorted(name for name, value in found.items() if _is_value(name, value))
        values[module] = {name: found[name] for name in kept}
    return values


def _constants(text: bytes) -> set[str]:
    """The variables to which the text of a module gives a value without a call; without those that
    are empty at first, or that a function assigns, as caches are.
    """
    tree = ast.parse(text)
    names = set[str]()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            parts = [*ast.walk(node.value)]
            is_empty = isinstance(node.value, ast.List | ast.Dict) and len(parts) < 3
            if not is_empty and not any(isinstance(part, ast.Call) for part in parts):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
    for part in ast.walk(tree):
        if isinstance(part, ast.Global):
            names -= {*part.names}
    return names


def _is_value(name: str, value: Any) -> bool:
    """Whether something is no method, no class and nothing of Python itself, and can be sent."""
    if isinstance(value, FunctionType) and value.__module__ == "__main__":
        return True
    is_pythons = name.rpartition(".")[2].startswith("__")
    if is_pythons or isinstance(value, type | ModuleType) or hasattr(type(value), "__get__"):
        return False
    with suppress(Exception):  # pickle and objects of any package raise many
        return bool(joblib.hash(value))
    return False


def set_values(values: Values) -> None:
    """Set what `values_in` found in another process, from which classes of a script come whole."""
    for module, found in values.items():
        for name, value in found.items() if module != "__main__" else ():
            owner, _, attribute = name.rpartition(".")
            content: Any = importlib.import_module(module)
            setattr(getattr(content, owner) if owner else content, attribute, value)


UNKNOWN = "unknown"
"""How the hash of a thing begins that has none."""
OF_LEARNERS = ("torch", "stable_baselines3", "sb3_contrib")
"""Packages whose versions count for learners."""


class NoHashError(ValueError):
    """Something cannot be compared; the message says why."""


def hash_of(thing: Any) -> str:
    """A hash of what a label stands for.

    Args:
        thing: an agent or an environment, as `make` resolves it, or an instance.

    Raises:
        NoHashError: it cannot be compared.

    Example:
        >>> from clickgym.agents import TopRank
        >>> hash_of((TopRank, {"delta": 0.1})) == hash_of((TopRank, {"delta": 0.1}))
        True
        >>> hash_of((TopRank, {"delta": 0.1})) == hash_of((TopRank, {"delta": 0.2}))
        False
    """
    try:
        described = _described(thing)
        content = [described, values_in(files_behind(modules_in(described)))]
        modules = modules_in(content)
        files = files_behind(modules)
        for module in filter(is_own, sorted(modules - files.keys())):
            raise NoHashError(f"{module} has no file: put it into a module")
        if file := edited(files):
            raise NoHashError(f"{file} was edited after its import: restart Python")
        texts = {module: files[module].read_bytes() for module in sorted(files)}
        versions = {package: _version(package) for package in sorted(_packages(modules))}
        return str(joblib.hash([*content, texts, versions]))
    except NoHashError:
        raise
    except Exception as error:  # pickle and objects of any package raise many
        line = str(error.args[0] if error.args else error).partition("\n")[0]
        raise NoHashError(f"it has no content to compare ({line})") from None


def files_of(thing: Any) -> dict[str, Path]:
    """The files of own modules behind what `hash_of` takes, by the names of the modules."""
    with suppress(Exception):  # whatever is wrong with it, whoever makes it will see
        return files_behind(modules_in(_described(thing)))
    return {}


def hashes_of(column: str, things: Mapping[str, Any], *, is_kept: bool) -> dict[str, str]:
    """The hashes of what labels stand for; what has none gets another one each time.

    Args:
        column: ``"env"``, ``"instance"`` or ``"agent"``.
        things: what `hash_of` takes, by label.
        is_kept: whether anything is kept, so that a warning names what has none.

    Warns:
        UserWarning: a thing has none.
    """
    known = {}
    for label, thing in things.items():
        try:
            known[label] = hash_of(thing)
        except NoHashError as error:
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
    """What can be hashed in place of an agent, users or an instance, whatever it is called."""
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
        maker = thing.entry_point
        if str(maker).startswith("clickgym."):
            maker = users_class(thing.kwargs["model"], imports=True)
        elif isinstance(maker, str):
            maker = load_env_creator(maker)
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
