"""The meaning of a sweep's label: its spec, and your own code behind the spec. By these meanings,
clickgym recognises whether two sweeps can be compared.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..envs import Instance, UserModel
from ..envs.instances.instance import FAMILIES
from .make import spec_of, split

INSTALLED = (os.path.dirname(os.__file__), "site-packages", "dist-packages")
"""Parts of a path that mark a module of Python or of an installed package, which is not your own.
"""


@dataclass(frozen=True)
class Meaning:
    """What a label of a sweep stands for.

    Attributes:
        spec: the spec as you could type it; None if there is no spec, as for a lambda.
        files: digests, by name, of your own modules behind the label; of the label's class, if the
            script defines it; and of files that the spec's arguments name. The digest of a class
            in a notebook is None.
        values: the numbers, texts, lists and dictionaries among these modules' constants in
            capitals, ``"module:NAME"``, and among their classes' attributes,
            ``"module:Class.name"``.
    """

    spec: str | None
    files: dict[str, str | None] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def difference(self, other: Meaning) -> str | None:
        """Return, in words, why two meanings of a label differ; None if they are the same."""
        if self.spec is None or None in self.files.values():
            return (
                "its code cannot be compared: it has no name module:Class, or is defined in a "
                "notebook"
            )
        if self.spec != other.spec:
            return f"it stands for {self.spec} in one place and for {other.spec} in the other"
        first, second = self.files | self.values, other.files | other.values
        for name in sorted(first.keys() | second.keys()):
            if json.dumps(first.get(name)) != json.dumps(second.get(name)):
                return f"{name} has changed"
        return None


def meaning_of(obj: Any, resolved: Any) -> Meaning:
    """Return the present meaning of an agent, an environment or an instance.

    Args:
        obj: the agent, environment or instance as it was passed to a sweep.
        resolved: the same agent, environment or instance as the module `make` resolves it.

    Example:
        >>> from clickgym.agents import TopRank
        >>> meaning_of("TopRank:delta=0.1", (TopRank, {"delta": 0.1}))
        Meaning(spec='TopRank:delta=0.1', files={}, values={})
    """
    maker, arguments = split(obj)
    spec = spec_of((_as_json(maker), {key: _as_json(value) for key, value in arguments.items()}))
    meaning = Meaning(spec)
    maker, arguments = split(resolved)
    parts = [maker, *arguments.values()]
    for name in parts:
        # stable-baselines3 adds .zip to the names of its files
        for file in (name, f"{name}.zip") if isinstance(name, str | os.PathLike) else ():
            if os.path.isfile(file):
                meaning.files[str(name)] = _digest(Path(file).read_bytes())
    _add_code(meaning, [code for part in parts for code in _code_of(part)])
    return meaning


def _as_json(value: Any) -> Any:
    """Return a part of a spec in a form that JSON can hold, if there is such a form; users and
    instances become digests.
    """
    if isinstance(value, UserModel | Instance):
        return f"{type(value).__name__} {_digest(json.dumps(value.to_dict()).encode())}"
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value) if isinstance(value, os.PathLike) else value


def _code_of(part: Any) -> list[Any]:
    """Return the classes, functions and objects whose code decides what a part of a spec does."""
    if isinstance(part, str):  # module:name, a kind of users, or a family of instances
        module, _, name = part.partition(":")
        imported = getattr(sys.modules.get(module), name, None)
        return [imported, UserModel.classes.get(part), FAMILIES.get(module)]
    if isinstance(part, EnvSpec):
        return [
            code for value in (part.entry_point, *part.kwargs.values()) for code in _code_of(value)
        ]
    if isinstance(part, Instance):
        return [*part.models.values()]
    return [getattr(part, "adopted", part)]


def _add_code(meaning: Meaning, pending: list[Any]) -> None:
    """Add to a meaning the digests and values of the user's own code.

    This code is the module of each class, function or object in ``pending``, and the user's own
    modules that it imports. The script itself often changes in places on which no result depends.
    So instead of the whole script, only those of its classes and functions are added that the code
    added before mentions.
    """
    seen = set[int]()
    while pending:
        obj = pending.pop()
        name = str(getattr(obj, "__module__", ""))
        module = obj if inspect.ismodule(obj) else sys.modules.get(name)
        if module is None or not _is_own(module):
            continue
        is_script = module.__name__ == "__main__"
        if not is_script:
            obj = module
        elif not (inspect.isfunction(obj) or inspect.isclass(obj)):
            obj = getattr(obj, "__wrapped__", type(obj))  # numba wraps functions
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        scope = vars(module)
        if is_script:
            source = ""
            with suppress(OSError, TypeError):  # a notebook has no file
                source = inspect.getsource(obj)
            meaning.files[obj.__qualname__] = _digest(source.encode()) if source else None
            words = {*re.findall(r"\w+", source)}
            scope = {word: value for word, value in scope.items() if word in words}
        else:
            meaning.files[module.__name__] = _digest(Path(str(module.__file__)).read_bytes())
        meaning.values.update(_plain_values(module, scope))
        pending += scope.values()


def _plain_values(module: ModuleType, scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a module's constants in capitals and of its classes'
    attributes, unless JSON cannot hold the value.
    """
    constants = {name: value for name, value in scope.items() if name.isupper()}
    for name, value in scope.items():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            constants |= {
                f"{name}.{key}": attribute
                for key, attribute in vars(value).items()
                if key[:2] != "__"
            }
    for name, value in constants.items():
        with suppress(TypeError, ValueError, RecursionError):
            json.dumps(value)
            yield f"{module.__name__}:{name}", value


def _is_own(module: ModuleType) -> bool:
    """Whether a module is the script, or belongs neither to Python nor to an installed package."""
    file = str(getattr(module, "__file__", None) or os.__file__)
    is_ours = module.__name__.partition(".")[0] == "clickgym"
    return module.__name__ == "__main__" or not (
        is_ours or any(folder in file for folder in INSTALLED)
    )


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
