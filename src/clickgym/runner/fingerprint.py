"""The fingerprints of a sweep's labels: their specs, and your own code behind the specs.

By comparing these fingerprints, clickgym finds out whether two sweeps can be shown in one table.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..envs import Instance, UserModel
from ..envs.instances.instance import FAMILIES, load_instance
from .make.labels import spec_of, split_spec

PACKAGE_FOLDERS = (os.path.dirname(os.__file__), "site-packages", "dist-packages")
"""A module whose path contains one of these folders belongs to Python or to an installed package,
so it is not your own module.
"""
INSTANCE_START = f"{Instance.__name__} "
"""How the spec of an instance that was passed as an object begins; a digest follows."""


@dataclass(frozen=True)
class Fingerprint:
    """What a label in a sweep stands for: a spec, and your own code behind the spec.

    Attributes:
        spec: the spec as you could type it; None if there is no spec, as for a lambda.
        files: SHA-256 digests, keyed by name, of your own modules that the label uses, of classes
            and functions that the script defines, and of files that the spec's arguments name. The
            digest of a class that is defined in a notebook is None.
        values: the values, keyed by name, of the upper-case constants in these modules
            (``"module:NAME"``) and of the attributes of their classes (``"module:Class.name"``), if
            JSON can store the values.
        digests: digests of the same things as ``files``, but of code without comments and
            docstrings, and of users without their name and the notes on where they come from.
            clickgym 9.0 saved only ``files``.
    """

    spec: str | None
    files: dict[str, str | None] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, str | None] = field(default_factory=dict)

    def difference(self, other: Fingerprint) -> str | None:
        """Return why two fingerprints of a label differ, or None if they are the same."""
        if self.spec is None or None in self.files.values():
            return (
                "its code cannot be compared: it cannot be imported as module:Class, or is defined "
                "in a notebook"
            )
        is_other_spec = self.spec != other.spec
        if is_other_spec and self.spec_with_digests() != other.spec_with_digests():
            if self.spec.startswith(INSTANCE_START) and str(other.spec).startswith(INSTANCE_START):
                return "its users have changed"
            first_spec, other_spec = (
                "an Instance" if spec.startswith(INSTANCE_START) else spec
                for spec in (self.spec, str(other.spec))
            )
            return f"it stands for {first_spec} in one sweep and for {other_spec} in the other"
        if any(each.files and not each.digests for each in (self, other)):
            first, second = self.files | self.values, other.files | other.values
            names = first.keys() & second.keys()  # clickgym 9.0 also followed names in comments
        else:
            first, second = self.digests | self.values, other.digests | other.values
            names = first.keys() | second.keys()
        if is_other_spec or self.spec.startswith(INSTANCE_START):  # the users were compared above
            names = {name for name in names if not _is_of_users(name)}
        for name in sorted(names):
            if json.dumps(first.get(name)) != json.dumps(second.get(name)):
                hint = " (all click models in the file count)" if name.endswith(".json") else ""
                return f"{name} has changed{hint}"
        return None

    def spec_with_digests(self) -> str:
        """Return the spec with the digests of users in place of the names of their files."""
        text = str(self.spec)
        for name, digest in self.digests.items():
            if _is_of_users(name):
                text = text.replace(name, str(digest))
        return text


def fingerprint_of(obj: Any, resolved: Any) -> Fingerprint:
    """Return what an agent, environment or instance currently stands for.

    Args:
        obj: the agent, environment or instance as it was passed to a sweep.
        resolved: the same object after `resolve_agent` or `resolve_env`; for an instance, ``obj``.

    Example:
        >>> from clickgym.agents import TopRank
        >>> fingerprint_of("TopRank:delta=0.1", (TopRank, {"delta": 0.1}))
        Fingerprint(spec='TopRank:delta=0.1', files={}, values={}, digests={})
    """
    maker, arguments = split_spec(obj)
    spec = spec_of((_as_json(maker), {key: _as_json(value) for key, value in arguments.items()}))
    fingerprint = Fingerprint(spec)
    if isinstance(maker, Instance):  # clickgym 9.0 saved only the spec, which includes the notes
        fingerprint.digests[str(spec)] = _digest_of_users(maker)
    maker, arguments = split_spec(resolved)
    parts = [maker, *arguments.values()]
    for name in parts:
        # stable-baselines3 adds .zip to the name of a model's file
        for file in (name, f"{name}.zip") if isinstance(name, str | os.PathLike) else ():
            if os.path.isfile(file):
                digest = fingerprint.files[str(name)] = _digest(Path(file).read_bytes())
                with suppress(ValueError):  # not a file of users
                    digest = _digest_of_users(load_instance(Path(file)))
                fingerprint.digests[str(name)] = digest
    _add_code(fingerprint, [code for part in parts for code in _code_of(part)])
    return fingerprint


def warnings_of_same_users(instances: Mapping[str, Fingerprint]) -> list[str]:
    """Return a warning for each two instances, given by their labels, that have the same users."""
    contents = {
        label: fingerprint.spec_with_digests()
        for label, fingerprint in instances.items()
        if fingerprint.spec is not None
    }
    return [
        f"{label} and {other_label} have the same users, which count twice in every mean and "
        "interval; leave one of them out"
        for (label, first), (other_label, other) in combinations(contents.items(), 2)
        if first == other
    ]


def _digest_of_users(instance: Instance) -> str:
    """Return the digest of an instance without its name and the notes on where it comes from: the
    same users have the same digest under any name, in any file.
    """
    notes = ["name", "description", "origin"]
    if "clickgym" in instance.estimation:  # by clickgym fit: the log's files may have other names
        notes.append("estimation")
    users = {name: value for name, value in instance.to_dict().items() if name not in notes}
    return _digest(json.dumps(users).encode())


def _is_of_users(name: str) -> bool:
    """Return whether a digest has the name of a file of users, or of an instance."""
    return name.endswith(".json") or name.startswith(INSTANCE_START)


def _as_json(value: Any) -> Any:
    """Convert a part of a spec into a value that JSON can store.

    Users and instances become digests. A value that cannot be converted is returned unchanged.
    """
    if isinstance(value, UserModel | Instance):
        return f"{type(value).__name__} {_digest(json.dumps(value.to_dict()).encode())}"
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value) if isinstance(value, os.PathLike) else value


def _code_of(part: Any) -> list[Any]:
    """Return the classes, functions and objects that determine what a part of a spec does."""
    if isinstance(part, str):  # module:name, a class of users, or a family of instances
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


def _add_code(fingerprint: Fingerprint, pending: list[Any]) -> None:
    """Add the digests and values of the user's own code to a fingerprint.

    This code consists of the modules that define the objects in ``pending``, and of the user's own
    modules that these modules import. The script is not added as a whole, because it often changes
    in places that do not affect results. Instead, only the script's classes and functions that
    occur in ``pending``, or in code that was already added, are added.
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
        name, scope, content = obj.__name__, vars(module), _source_of(obj)
        code = _without_comments((content or b"").decode(errors="replace"))
        if is_script:
            name, words = obj.__qualname__, {*re.findall(r"\w+", code)}
            scope = {word: value for word, value in scope.items() if word in words}
        fingerprint.files[name] = None if content is None else _digest(content)
        fingerprint.digests[name] = None if content is None else _digest(code.encode())
        fingerprint.values.update(_plain_values(module, scope))
        pending += scope.values()


def _source_of(obj: Any) -> bytes | None:
    """Return the source code of a module, or of a class or function of the script; None for code in
    a notebook, which has no file.
    """
    if inspect.ismodule(obj):
        return Path(str(obj.__file__)).read_bytes()
    with suppress(OSError, TypeError):
        return inspect.getsource(obj).encode()
    return None


def _plain_values(module: ModuleType, scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a module's upper-case constants and of its classes' attributes.

    Values that JSON cannot store are left out.
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
    """Return whether a module is the user's script or another module that the user wrote."""
    file = str(getattr(module, "__file__", None) or os.__file__)
    is_ours = module.__name__.partition(".")[0] == "clickgym"
    return module.__name__ == "__main__" or not (
        is_ours or any(folder in file for folder in PACKAGE_FOLDERS)
    )


def _without_comments(source: str) -> str:
    """Return Python code without comments and docstrings, in a uniform layout, so that an edit of
    words leaves the text as it is; anything but Python code is returned unchanged.
    """
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError):  # such as a compiled extension
        return source
    return ast.unparse(_WithoutTexts().visit(tree))


class _WithoutTexts(ast.NodeTransformer):
    """Removes docstrings, and other statements that consist of a text, from code."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        value = node.value
        return None if isinstance(value, ast.Constant) and isinstance(value.value, str) else node


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
