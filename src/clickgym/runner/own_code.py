"""Your own code behind an agent or an environment: its modules, and what of them a new Python would
not have.

Worker processes import your modules from their files, and whoever reads a results folder later
imports those files, too. A program may have set attributes of classes and variables in the
meantime: their values are sent to workers, and a run is known by them. A file that was edited after
its import is another matter, because this Python may play the old code, or a mixture.
"""

from __future__ import annotations

import ast
import importlib
import io
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import EnumType
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import joblib

from ..core.modules import IMPORTED, STARTED

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


def values_in(files: Files, *, all_variables: bool = False) -> Values:
    """What a program may have set in some modules, if they are imported: the attributes of their
    classes, also methods that are functions of the program, and their constants.

    Args:
        files: of the modules.
        all_variables: whether other variables count as well.
    """
    values: Values = {}
    for module in sorted(files.keys() & sys.modules.keys()):
        variables = vars(sys.modules[module])
        names = {*variables}
        if not all_variables:
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
