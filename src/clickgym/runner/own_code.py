"""Your own code behind an agent or an environment: its texts, and what of it a new Python would not
import.

Worker processes import your modules anew, and so does whoever reads a results folder later. In the
meantime this Python may have got other code: an attribute was set, a file was edited, a module was
reloaded. So what is here is compared with what a new Python imports.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import json
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import joblib
import numpy as np

from ..core.modules import STARTED

INSTALLED = {"site-packages", "dist-packages"}
"""The folders of installed packages."""
NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)
PLAIN = (*NUMBERS, str, bytes, type(None), frozenset, set, Path)
WRAPPED = ("__wrapped__", "fget", "func", "py_func")
"""Where decorators and descriptors have the function that they wrap."""
DEEPEST = 10
"""Levels of containers and objects within each other that are compared."""

Hashes = dict[str, dict[str, str]]
"""Of functions, classes, their attributes, and variables: by module, and by the name in it."""


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


def code_in(thing: Any) -> list[Any]:
    """The classes and functions in something, as far as it can be pickled."""
    finder = _Finder()
    with suppress(Exception):  # pickle and objects of any package raise many
        finder.dump(thing)
    return finder.found


def hashes_behind(thing: Any) -> Hashes:
    """The hashes of the own code behind something: of its classes and functions, and of what these
    refer to, other functions, attributes and variables. Of variables plain values count, and
    objects of own classes.
    """
    hashes: Hashes = {}
    left: list[tuple[Any, str, Any]] = [
        (code.__module__, code.__qualname__, code) for code in code_in(thing)
    ]
    seen = set[tuple[Any, str, int]]()
    for module, name, value in left:  # which grows
        if (module, name, id(value)) not in seen and is_own(module):
            seen.add((module, name, id(value)))
            left += _referred(module, name, value)
            if module != "__main__" and "<" not in name:  # else a worker gets it, not its name
                hashes.setdefault(module, {})[name] = _hash(value)
    return hashes


def _referred(module: str, name: str, value: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the module, the name and the value of what something refers to."""
    if isinstance(value, type):
        for key in {key for base in value.__mro__ if is_own(base.__module__) for key in vars(base)}:
            attribute = inspect.getattr_static(value, key)
            if not key.startswith("__") or isinstance(attribute, FunctionType):
                yield module, f"{name}.{key}", attribute
    elif isinstance(value, FunctionType):
        words = _words(value.__code__)
        for word in words:
            used = value.__globals__.get(word, sys.modules.get(word))  # it imports others late
            if isinstance(used, ModuleType) and is_own(used.__name__):
                yield from ((used.__name__, key, vars(used)[key]) for key in words & {*vars(used)})
            elif word in value.__globals__:
                yield value.__globals__.get("__name__"), word, used
        yield from ((module, f"{name}.<closure>", inner) for inner in _closure(value))
    elif (inner := _wrapped(value)) is not None:
        yield module, f"{name}.<wrapped>", inner
    elif not isinstance(value, PLAIN):
        yield from ((code.__module__, code.__qualname__, code) for code in code_in(value))


def _wrapped(value: Any) -> Any:
    """The function that a decorator or a descriptor wraps; None if it wraps none."""
    found = (inspect.getattr_static(value, key, None) and getattr(value, key) for key in WRAPPED)
    return next((one for one in found if callable(one)), None)


def _closure(function: FunctionType) -> list[Any]:
    """What a function has of those around it."""
    with suppress(ValueError):  # a cell is empty
        return [cell.cell_contents for cell in function.__closure__ or ()]
    return []


def _words(code: CodeType) -> set[str]:
    """The names in the code of a function and of the functions in it."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return {*code.co_names}.union(*map(_words, inner))


def _content(value: Any, depth: int = 0) -> Any:
    """What is compared of a value, the same in every process; of other objects their type."""
    if isinstance(value, CodeType):
        return (
            value.co_code,
            value.co_names,
            value.co_varnames,
            [_content(one) for one in value.co_consts],
        )
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, type):
        return [f"{base.__module__}.{base.__qualname__}" for base in value.__mro__]
    if depth == DEEPEST:
        return type(value).__qualname__
    inner = _wrapped(value)
    if isinstance(value, FunctionType):
        parts = [value.__code__, value.__defaults__, value.__kwdefaults__, _closure(value)]
    elif isinstance(value, Mapping):
        parts = [*value, *value.values()]
    elif isinstance(value, tuple | list):
        parts = [*value]
    elif inner is None and is_own(type(value).__module__):
        parts = [getattr(value, "__dict__", None)]
    else:
        parts = [inner]
    return [type(value).__qualname__, *(_content(part, depth + 1) for part in parts)]


# --------------------------------------------------------------------------- what a new Python has


def changed(codes: Iterable[Hashes]) -> list[str]:
    """What of the own code behind some things a new Python would not import, by its names.

    Args:
        codes: what `hashes_behind` returned for each of them.
    """
    here: Hashes = {}
    for code in codes:
        for module, hashes in code.items():
            here[module] = here.get(module, {}) | hashes
    if not here:
        return []
    names = {module: sorted(hashes) for module, hashes in sorted(here.items())}
    files = filter(None, map(file_of, names))
    new = _imported(json.dumps([sys.path, names]), tuple(file.read_bytes() for file in files))
    return [
        f"{module}.{name}"
        for module, its_names in names.items()
        for name in its_names
        if new.get(module, {}).get(name) != here[module][name]
    ]


@lru_cache(maxsize=64)
def _imported(request: str, texts: tuple[bytes, ...]) -> Hashes:
    """The hashes that a new Python finds; ``texts`` of the modules, for which the answer holds."""
    command = [sys.executable, "-c", "from clickgym.runner import own_code; own_code.answer()"]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=False)
    found: Hashes = json.loads(done.stdout.rpartition("\n")[2]) if not done.returncode else {}
    return found


def answer() -> None:
    """Print the hashes that are asked for on standard input."""
    sys.path[:], names = json.loads(sys.stdin.read())
    found: Hashes = {}
    for module, its_names in names.items():
        with suppress(Exception, SystemExit):  # then all of it is missing
            content = importlib.import_module(module)
            found[module] = {name: _hash(_named(content, name)) for name in its_names}
    print("\n" + json.dumps(found), end="")


def _named(module: ModuleType, name: str) -> Any:
    """What has a name such as ``"Mine.rank"`` in a module; the module where nothing has."""
    thing: Any = module
    for part in name.split("."):
        thing = inspect.getattr_static(thing, part, module)
    return thing


def _hash(value: Any) -> str:
    return str(joblib.hash(_content(value)))


# ------------------------------------------------------------------------------ the texts of files


class NoTextError(ValueError):
    """The text of a module is not known, or may not be what is played; the message says why."""


def texts_behind(module: str) -> dict[str, bytes]:
    """The texts of an own module and of the own modules that it imports, directly or through each
    other, by their names.

    Raises:
        NoTextError: it has no file, or one of them was edited after this Python started.
    """
    if file_of(module) is None:
        raise NoTextError(f"{module} has no file: put it into a module")
    texts: dict[str, bytes] = {}
    left = [module]
    while left:
        name = left.pop()
        package = name.rpartition(".")[0]
        file = file_of(name) if name not in texts and is_own(name) else None
        if file is not None:
            if file.stat().st_mtime > STARTED:
                raise NoTextError(f"{file} was edited after this Python started: restart it")
            texts[name] = file.read_bytes()
            package_of = name if file.stem == "__init__" else package
            left += [package, *_imports(texts[name], package_of)]
    return texts


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
