"""Identity of what a label stands for: a hash of its content, equal in every process.

Code that can be imported is identified by its sources: the syntax tree of its module and of all
modules that its import statements reach, read from files, because `sys.modules` depends on what ran
before. Compiled modules are identified by their bytes, installed packages by their version, and
this package by names, because all of a results folder is of one version. Code of a notebook, of
standard input or of a closure is identified by its bytecode and by what it refers to.

Other objects are identified by their arrays and plain values: as `pickle` takes them to pieces, but
not by its bytes, which differ between two copies of one model.
"""

from __future__ import annotations

import ast
import dis
import inspect
import os
import sys
import sysconfig
import types
import warnings
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import resolve_name
from operator import attrgetter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..envs import Instance, Users, load_instance
from ..envs.instances.instance import FAMILIES
from ..envs.users import users_class

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
"""Types of which `repr` shows all."""
OF_THE_FOLDER = ("clickgym", "numpy", "numba")
"""Packages whose versions the configuration of a results folder has."""
OF_PYTHON = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))
INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
NO_CONTENT = (
    *("__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "_abc_impl"),
    *("__firstlineno__", "__static_attributes__", "__abstractmethods__"),
)
"""Attributes of classes that follow from the others, or say nothing of what a class does."""


WRAPPED = {"functools": "__wrapped__", "numba": "py_func", "clickgym": "kernel"}
"""The attribute of objects of some packages that holds the function that they call."""


class NoIdentityError(ValueError):
    """Something has no content that can be compared; the message says what."""


class StaleSourceError(ValueError):
    """A module was edited since it was imported, so that its source is not what is run."""


def identity(thing: Any) -> str:
    """Return a hash of what a label stands for: what it stands for is equal if the hash is.

    Args:
        thing: a pair (maker, arguments) of an agent or environment, or an instance.

    Raises:
        NoIdentityError: it holds something that has no content to compare, such as an open file.
        StaleSourceError: a module was edited since it was imported.

    Example:
        >>> from clickgym.agents import TopRank
        >>> identity((TopRank, {"delta": 0.1})) == identity((TopRank, {"delta": 0.1}))
        True
        >>> identity((TopRank, {"delta": 0.1})) == identity((TopRank, {"delta": 0.2}))
        False
    """
    try:
        if isinstance(thing, tuple):
            maker, arguments = thing
            passed = _files_by_default(maker) | dict(arguments)
            thing = maker, {key: _argument(key, value) for key, value in passed.items()}
        return _Digests().of(thing).hex()[:32]
    except RecursionError:
        raise NoIdentityError("it is nested too deep") from None


def identities(
    column: str, things: Mapping[str, Any], stacklevel: int = 3
) -> dict[str, str | None]:
    """Return the identities of what labels stand for, by the keys of a configuration; None, with a
    warning, if something has none.

    Args:
        column: ``"env"``, ``"instance"`` or ``"agent"``.
        things: what `identity` takes, by label.
        stacklevel: of the warning, as in `warnings.warn`.
    """
    known: dict[str, str | None] = {f"{column} {label}": None for label in things}
    for key, thing in zip(known, things.values(), strict=True):
        try:
            known[key] = identity(thing)
        except NoIdentityError as error:
            warnings.warn(f"{key} is run, but not resumed, because {error}", stacklevel=stacklevel)
    return known


def loaded(instance: Any) -> Any:
    """Return the instance of a name or a file, or what an environment of another package takes as
    one.
    """
    with suppress(ValueError, TypeError):
        return load_instance(instance)
    return instance


def _argument(key: str, value: Any) -> Any:
    """Return an argument, or the content of the instance or file that it names."""
    if key == "instance":
        value = loaded(value)
    if type(value) in (list, tuple):
        return type(value)(_argument("", entry) for entry in value)
    if not isinstance(value, str | os.PathLike):
        return value
    # stable-baselines3 adds .zip to the names of its files
    files = [name for name in (os.fspath(value), f"{value}.zip") if os.path.isfile(name)]
    return [sha256(Path(name).read_bytes()).hexdigest() for name in files] or value


def _files_by_default(maker: Any) -> dict[str, Any]:
    """Return the defaults of a maker's parameters that are names of files."""
    try:
        parameters = inspect.signature(maker).parameters.values() if callable(maker) else ()
    except (TypeError, ValueError):  # it has no signature
        return {}
    defaults = {each.name: each.default for each in parameters}
    return {
        name: value
        for name, value in defaults.items()
        if isinstance(value, str | os.PathLike) and os.path.isfile(value)
    }


def is_ours(thing: Any) -> bool:
    """Whether a class or a function is of this package."""
    return str(thing.__module__).startswith("clickgym.")


class _Digests:
    """Digests of objects by their content, in one call of `identity`."""

    def __init__(self) -> None:
        self._sources = _Sources()
        self._done: dict[int, tuple[Any, bytes]] = {}  # with the object, so that its id stays its
        self._open: dict[int, int] = {}

    def of(self, value: Any) -> bytes:
        """Return the digest of any object."""
        if type(value) in PLAIN:
            content = value if type(value) is bytes else repr(value).encode()
            return _hash(type(value).__name__, content)
        key = id(value)
        if key in self._done:
            return self._done[key][1]
        if key in self._open:  # it contains itself
            return _hash("cycle", str(len(self._open) - self._open[key]).encode())
        self._open[key] = len(self._open)
        try:
            word, *parts = self._described(value)
            digest = _hash(word, *map(self.of, parts))
        except (NoIdentityError, StaleSourceError, RecursionError):
            raise
        except Exception as error:  # of objects of any package
            raise NoIdentityError(f"{_name(type(value))} has no content to compare") from error
        finally:
            del self._open[key]
        self._done[key] = value, digest
        return digest

    def _described(self, value: Any) -> tuple[Any, ...]:
        """Return the kind of an object in a word, and the parts of its content."""
        kind = type(value)
        if kind in (list, tuple):
            types_inside = set(map(type, value))
            if types_inside == {float}:
                return kind.__name__, "floats", array("d", value).tobytes()
            if types_inside == {list}:  # the rows of an array
                entries = [entry for row in value for entry in row]
                if set(map(type, entries)) == {float}:
                    lengths = list(map(len, value))
                    return kind.__name__, "rows", lengths, array("d", entries).tobytes()
            is_plain = types_inside.issubset(PLAIN)
            return (kind.__name__, repr(value)) if is_plain else (kind.__name__, *value)
        if kind in (set, frozenset):
            return "set", *sorted(map(self.of, value))
        if kind in (dict, OrderedDict, types.MappingProxyType):
            return "dict", *sorted(self.of(key) + self.of(entry) for key, entry in value.items())
        if kind is np.ndarray:
            content = value.tolist() if value.dtype.hasobject else value.tobytes()
            return "array", repr(value.dtype.descr), value.shape, content
        if isinstance(value, np.generic):
            return "number", str(value.dtype), value.tobytes()
        if isinstance(value, Users):
            return _users(value)
        if isinstance(value, Instance):
            return "instance", value.n_positions, value.initial_ranking, _users_of(value)
        if isinstance(value, EnvSpec):
            return _environment(value)
        if isinstance(value, gym.Space):  # without its generator
            return "space", kind, {k: v for k, v in vars(value).items() if "_np_random" not in k}
        if isinstance(value, types.ModuleType):
            return "module", value.__name__, self._sources.reached(value.__name__)
        if isinstance(value, type | types.FunctionType):
            return self._code(value)
        if isinstance(value, types.CodeType):
            names = (value.co_names, value.co_varnames, value.co_freevars)
            counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount)
            return "bytecode", value.co_code, value.co_consts, names, counts, value.co_flags
        if isinstance(value, types.MethodType | staticmethod | classmethod):
            return "method", kind.__name__, value.__func__, getattr(value, "__self__", None)
        if isinstance(value, property):
            return "property", value.fget, value.fset
        if isinstance(value, types.CellType):
            return "cell", value.cell_contents
        if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
            return "slot", value.__name__
        function = getattr(value, WRAPPED.get(kind.__module__.partition(".")[0], ""), None)
        if isinstance(function, types.FunctionType):  # compiled, or its results are cached
            return "wrapped", kind, function
        return _trained(value) or self._taken_to_pieces(value)

    def _code(self, value: Any) -> tuple[Any, ...]:
        """What a class or a function is: its name and sources, or what it is made of."""
        if is_ours(value):
            return "ours", _name(value)
        members = vars(value) if isinstance(value, type) else {}
        own = {key: entry for key, entry in members.items() if key not in NO_CONTENT}
        if self._sources.has(value):
            # values that are set from outside, and bases that no import statement names
            plain = {key: entry for key, entry in own.items() if type(entry) in PLAIN}
            reached = self._sources.reached(value.__module__)
            return "code", _name(value), reached, getattr(value, "__bases__", ()), plain
        if isinstance(value, type):
            if not value.__flags__ & HEAP_TYPE:
                return "code", _name(value), self._sources.reached(value.__module__)
            return "class", value.__name__, type(value), value.__bases__, own
        steps, scope = list(_steps(value.__code__)), value.__globals__
        read = {name for step, name in steps if step in ("LOAD_GLOBAL", "LOAD_NAME")}
        used = {name: scope[name] for name in read if name in scope}
        modules = [it.__name__ for it in used.values() if isinstance(it, types.ModuleType)]
        modules += [name for step, name in steps if step == "IMPORT_NAME"]
        attributes = {name for step, name in steps if step in ATTRIBUTES}
        reached = self._sources.reached(*self._sources.with_submodules(modules, attributes))
        ids = [gym.registry.get(name) for step, name in steps if step == "LOAD_CONST"]
        defaults = (value.__defaults__, value.__kwdefaults__, value.__closure__)
        return "function", value.__code__, defaults, used, reached, ids

    def _taken_to_pieces(self, value: Any) -> tuple[Any, ...]:
        """What `pickle` would write of an object, each part by its content."""
        reduced = value.__reduce_ex__(4)
        if isinstance(reduced, str):  # a global variable
            return "global", reduced, value.__module__, self._sources.reached(value.__module__)
        maker, arguments, state, entries, items = [*reduced, None, None, None][:5]
        return "object", maker, arguments, state, list(entries or ()), list(items or ())


def _hash(word: str, *digests: bytes) -> bytes:
    return sha256(b"\0".join([word.encode(), *digests])).digest()


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


# ------------------------------------------------------------------------ users, models


def _kinds(description: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the click models in a description of users."""
    for key, value in description.items():
        if key == "model":
            yield value
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict):
                yield from _kinds(entry)


def _users(users: Users) -> tuple[Any, ...]:
    """What users are: their classes, and their parameters."""
    content = users.to_dict()
    return "users", [type(users), *map(users_class, _kinds(content))], content


def _users_of(instance: Instance) -> dict[str, Any]:
    """What the users of an instance are, by their kinds; of a family, which holds all click models
    that this process knows, only of those of this package, if there are any.
    """
    users = {kind: _users(instance.models[kind]) for kind in instance.models}
    if instance.name.partition(":")[0] not in FAMILIES:
        return users
    return {kind: it for kind, it in users.items() if all(map(is_ours, it[1]))} or users


def _environment(spec: EnvSpec) -> tuple[Any, ...]:
    """What a registered id stands for: its code with arguments, limits and wrappers."""
    arguments: dict[str, Any] = dict(spec.kwargs)
    if str(spec.entry_point).startswith("clickgym."):
        arguments["model"] = users_class(arguments["model"], imports=True)
    makers: list[tuple[Any, Any]] = [(spec.entry_point, arguments)]
    makers += [(layer.entry_point, layer.kwargs) for layer in spec.additional_wrappers]
    code = [
        (load_env_creator(maker) if isinstance(maker, str) else maker, given)
        for maker, given in makers
    ]
    return "environment", spec.max_episode_steps, spec.order_enforce, code


def _trained(value: Any) -> tuple[Any, ...] | None:
    """What is learnt: a tensor of torch, a model of stable-baselines3, or its normalisation; None
    of other objects. If these libraries are not imported, it is none of theirs.
    """
    torch, library = sys.modules.get("torch"), sys.modules.get("stable_baselines3")
    if torch is not None and isinstance(value, torch.Tensor):
        entries = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        return "tensor", str(value.dtype), tuple(value.shape), entries
    if library is None:
        return None
    scaling = library.common.vec_env.VecNormalize
    if isinstance(value, scaling):  # without its environment
        statistics = getattr(value, "obs_rms", None)
        return "normalisation", value.norm_obs, statistics, value.clip_obs, value.epsilon
    if not isinstance(value, library.common.base_class.BaseAlgorithm):
        return None
    state, policy, envs = value.policy.state_dict(), value.policy, [value.get_env()]
    if not state:
        raise NoIdentityError(f"{_name(type(value))} has no state_dict")
    while hasattr(envs[-1], "venv"):
        envs.append(envs[-1].venv)
    scalings = [layer for layer in envs if isinstance(layer, scaling)]
    spaces, layers = (value.observation_space, value.action_space), list(policy.modules())
    return "model", type(value), spaces, repr(policy), list(map(type, layers)), state, scalings


# ------------------------------------------------------------------------------- sources

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")
"""Operations whose argument may be the name of a module in a package."""
HEAP_TYPE = 1 << 9
"""The flag of classes that a class statement made; the others are written in C."""


class _Sources:
    """Modules and what they import, found as Python finds them, but not imported."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def has(self, value: Any) -> bool:
        """Whether the source of a class or function is that of its module."""
        module: Any = sys.modules.get(value.__module__)
        loaded, found = getattr(module, "__spec__", None), self._spec(str(value.__module__))
        if loaded is None or found is None or loaded.name != value.__module__:
            return False
        with suppress(AttributeError):
            is_there = attrgetter(value.__qualname__)(module) is value
            return is_there and loaded.origin == found.origin
        return False

    def reached(self, *names: str) -> list[tuple[str, str]]:
        """Return the modules that some modules import, directly or not, with themselves, sorted by
        name; each with a hash of its syntax tree or its bytes, or the version of its package.

        Modules of Python itself and those that cannot be found are left out.
        """
        found: dict[str, str | None] = {}
        due = list(names)
        while due:
            module = due.pop()
            top, _, _ = module.partition(".")
            if not module or module in found or top in OF_THE_FOLDER:
                continue
            found[module] = None
            parent = module.rpartition(".")[0]
            due.append(parent)  # a package is executed before what is in it
            spec = self._spec(module)
            if spec is None or not spec.has_location:
                continue
            file = str(spec.origin)
            if any(folder in file for folder in INSTALLED):
                found[module] = _version(top)
            if found[module] is None and not file.startswith(OF_PYTHON):
                status = os.stat(file)
                found[module], imports = _parsed(file, status.st_mtime_ns, status.st_size)
                _check_loaded(module, file, found[module])
                package = parent if spec.submodule_search_locations is None else module
                for name in imports:
                    with suppress(ImportError):  # beyond the package
                        due.append(resolve_name(name, package))
        return sorted((name, text) for name, text in found.items() if text is not None)

    def with_submodules(self, modules: Iterable[str], attributes: set[str]) -> list[str]:
        """Return some modules, and those in them that attributes name."""
        every = [name for name in modules if name.partition(".")[0] not in OF_THE_FOLDER]
        for module in every:  # it grows
            names = (f"{module}.{attribute}" for attribute in sorted(attributes))
            every += [name for name in names if self._spec(name) is not None]
        return every

    def _spec(self, name: str) -> ModuleSpec | None:
        if name not in self._specs:
            parent, folders = name.rpartition(".")[0], None
            if parent:
                package = self._spec(parent)
                folders = None if package is None else package.submodule_search_locations
            is_findable = not parent or folders is not None
            finders = [it for it in sys.meta_path if hasattr(it, "find_spec") and is_findable]
            specs = (finder.find_spec(name, folders) for finder in finders)
            self._specs[name] = next((spec for spec in specs if spec is not None), None)
        return self._specs[name]


_loaded: dict[int, tuple[Any, str | None]] = {}
"""By the import of a module the hash of its source, when it was first asked for."""


def _check_loaded(module: str, file: str, digest: str | None) -> None:
    """Refuse a module that was edited since it was imported, if this can be known."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    is_this = spec is not None and spec.origin == file
    if is_this and _loaded.setdefault(id(spec), (spec, digest))[1] != digest:
        raise StaleSourceError(
            f"the source of {module} has changed since it was imported: start Python anew"
        )


@cache
def _version(package: str) -> str | None:
    """Return the version of an installed package by the name of its module; None if none has it."""
    with suppress(PackageNotFoundError):
        return version(package)
    names = packages_distributions().get(package, ())
    return ", ".join(f"{name} {version(name)}" for name in sorted(names)) or None


@lru_cache(maxsize=1000)
def _parsed(file: str, _time: int, _size: int) -> tuple[str, tuple[str, ...]]:
    """Return a hash of a module, and the names of what it may import, relative ones with dots."""
    content = Path(file).read_bytes()
    try:
        if file.endswith((*EXTENSION_SUFFIXES, ".pyc")):
            raise ValueError
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return sha256(content).hexdigest(), ()
    tree.body = [statement for statement in tree.body if not _is_for_scripts(statement)]
    imports: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            dot = "." if node.module else ""
            imports += [start, *(f"{start}{dot}{alias.name}" for alias in node.names)]
    return sha256(repr(_tree(tree)).encode()).hexdigest(), tuple(imports)


def _is_for_scripts(statement: ast.stmt) -> bool:
    """Whether a statement is ``if __name__ == "__main__"``: not executed on import."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.unparse(statement.test) == "__name__ == '__main__'"


def _tree(node: Any) -> Any:
    """Return a syntax tree as nested lists, without empty fields, which depend on the version of
    Python.
    """
    if isinstance(node, list):
        return [_tree(entry) for entry in node]
    if not isinstance(node, ast.AST):
        return node
    fields = [
        (name, _tree(field)) for name, field in ast.iter_fields(node) if field not in (None, [])
    ]
    return type(node).__name__, fields


def _steps(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """Yield the operations of a function and of those within it, each with its argument."""
    for step in dis.get_instructions(code):
        yield step.opname, step.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _steps(constant)
