"""What stands behind a label: a digest of what was passed, and one of each file behind it.

The files are those of your own classes and functions, of your own modules that these import, and
those that an argument names. Your own modules are in no installed package, and are not Python's.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType
from typing import Any

import joblib
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..envs import Instance, Users
from ..envs.users import users_class
from .make import import_name

INSTALLED = {"site-packages", "dist-packages"}
"""The folders of installed packages."""


class Source:
    """What stands behind one label.

    Args:
        thing: an agent or an environment, as `make` resolves it, or an instance as it was passed.

    Attributes:
        digest: of classes, arguments and numbers; None if they cannot be compared with those of
            another process, as those of a lambda cannot.
        modules: the files of own modules, by the names of the modules; None for a class without a
            file, as in a notebook.
        files: those that arguments name, by these names.

    Example:
        >>> from clickgym.agents import TopRank
        >>> one, same, other = (Source((TopRank, {"delta": delta})) for delta in (0.1, 0.1, 0.2))
        >>> one.digest == same.digest, one.digest == other.digest
        (True, False)
    """

    def __init__(self, thing: Any) -> None:
        self.modules: dict[str, Path | None] = {}
        self.files: dict[str, Path] = {}
        self.digest: str | None = None
        with suppress(Exception):  # pickle and objects of any package raise many
            self.digest = str(joblib.hash(self._described(thing)))

    def digests(self) -> dict[str, str | None]:
        """The digest of each file, by its name or that of its module."""
        found: dict[str, str | None] = {}
        for name, file in [*self.modules.items(), *self.files.items()]:
            found[name] = None if file is None else sha256(file.read_bytes()).hexdigest()
        return found

    def _described(self, thing: Any) -> Any:
        """What can be hashed in place of something."""
        thing = getattr(thing, "adopted", thing)  # a learner made of a library's class goes by that
        if isinstance(thing, type | FunctionType):
            self._add_modules([thing.__module__])
            name = import_name(thing)
            if name is None:
                raise ValueError("it has no name in a module")
            return name
        if isinstance(thing, str | os.PathLike):
            # stable-baselines3 adds .zip to the names of its files
            files = [Path(name) for name in (thing, f"{thing}.zip") if os.path.isfile(name)]
            self.files |= {str(thing): file for file in files}
            return str(thing)
        if isinstance(thing, Mapping):
            return {key: self._described(value) for key, value in thing.items()}
        if isinstance(thing, list | tuple):
            return [self._described(part) for part in thing]
        if isinstance(thing, partial):
            return self._described([thing.func, thing.args, thing.keywords])
        if isinstance(thing, Users):
            self._add_modules(users.__module__ for users in _classes_of(thing))
            return thing.to_dict()
        if isinstance(thing, Instance):
            users = [*thing.models.values()]
            return self._described([thing.n_positions, thing.initial_ranking, users])
        if isinstance(thing, EnvSpec):
            made_by = [thing.entry_point, *(one.entry_point for one in thing.additional_wrappers)]
            makers: list[Any] = [
                load_env_creator(one) if isinstance(one, str) else one for one in made_by
            ]
            if "model" in thing.kwargs and str(thing.entry_point).startswith("clickgym."):
                makers.append(users_class(thing.kwargs["model"], imports=True))
            kwargs = [thing.kwargs, *(one.kwargs for one in thing.additional_wrappers)]
            return self._described([thing.id, makers, kwargs, thing.max_episode_steps])
        self._add_modules([type(thing).__module__])
        return thing

    def _add_modules(self, names: Iterable[str]) -> None:
        """Note the files of own modules, and of the own modules that these import, directly or
        through each other.
        """
        left = [*names]
        without_file = {name for name in left if not is_installed(name) and file_of(name) is None}
        self.modules |= dict.fromkeys(without_file)
        while left:
            name = left.pop()
            file = None if name in self.modules or is_installed(name) else file_of(name)
            if file is not None:
                self.modules[name] = file
                package = name.rpartition(".")[0]
                package_of = name if file.stem == "__init__" else package
                left += [package, *_imports(file.read_bytes(), package_of)]


def is_installed(module: str) -> bool:
    """Whether a module is of this package, of Python, or of another installed package."""
    top = module.partition(".")[0]
    if not top or top == "clickgym" or top in sys.stdlib_module_names:
        return True
    file = file_of(top) or file_of(module)
    return file is not None and bool(INSTALLED & {*file.parts})


def file_of(module: str) -> Path | None:
    """The file of a module, imported or not; None without one."""
    file = getattr(sys.modules.get(module), "__file__", None)
    with suppress(Exception):  # of a package that is imported around it
        spec = None if file or module == "__main__" else find_spec(module)
        file = spec.origin if spec else file
    return Path(file).resolve() if file and Path(file).is_file() else None


def _classes_of(users: Users) -> Iterator[type]:
    """Yield the class of users, and those of the users of whom they are made."""
    yield type(users)
    for value in vars(users).values():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Users):
                yield from _classes_of(part)


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
