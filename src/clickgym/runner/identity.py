"""Identity of agents, environments and instances: a hash of what their runs depend on.

Two things of equal content have the same hash in every process and on every machine. This package
and installed packages count by their versions. A class or function of your own counts by the syntax
trees of its module and of the modules that it imports, which are found as Python finds them, but
not imported. Code of a notebook, a script or a closure counts by its bytecode and what it refers
to, other objects by the parts that `pickle` would store.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec, resolve_name
from operator import attrgetter
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator

from ..core.faults import WorkerError
from ..envs import Instance, Users, load_instance
from ..envs.instances.instance import FAMILIES
from ..envs.users import users_class

OF_THE_SETTING = ("clickgym", "numpy", "numba")
"""Packages whose versions all runs depend on."""
OF_LEARNERS = ("torch", "stable_baselines3", "sb3_contrib")
"""Packages whose versions count together."""
OF_PYTHON = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))
INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
UNKNOWN = "unknown"
"""How the identity of a thing begins that has none."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
SET_FROM_OUTSIDE = (*PLAIN, list, tuple, np.ndarray)
"""Types of class attributes that count beside the source; a dict may be a memory of past calls."""
FUNCTIONS = (types.FunctionType, staticmethod, classmethod, property)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
WITHOUT_EFFECT = ("if __name__ == ", "if TYPE_CHECKING:", "__version__ = ")
"""Beginnings of the statements of a module that do nothing for the classes in it."""


class NoIdentityError(ValueError):
    """Something has no content that can be compared; the message says what."""


def identity(thing: Any) -> str:
    """Return a hash of an agent, an environment or an instance.

    Args:
        thing: a pair (maker, arguments), or an instance.

    Raises:
        NoIdentityError: it holds something without content, such as an open file.

    Example:
        >>> from clickgym.agents import TopRank
        >>> identity((TopRank, {"delta": 0.1})) == identity((TopRank, {"delta": 0.1}))
        True
        >>> identity((TopRank, {"delta": 0.1})) == identity((TopRank, {"delta": 0.2}))
        False
    """
    try:
        if not isinstance(thing, tuple):
            return _hash(_content(thing))
        maker, passed = thing
        arguments = {**_defaults(maker), **passed}
        if "instance" in arguments:
            arguments["instance"] = loaded(arguments["instance"])
        return _hash([_content(maker), _content(arguments)])
    except RecursionError:
        raise NoIdentityError("it is nested too deep") from None
    except Exception as error:  # pickle and objects of any package raise many
        line = str(error).partition("\n")[0]
        raise NoIdentityError(f"it has no content to compare ({line})") from None


def identities(
    column: str, things: Mapping[str, Any], *, warns: bool = True, stacklevel: int = 3
) -> dict[str, str]:
    """Return the identities of what labels stand for. What has none gets another one each time.

    Args:
        column: ``"env"``, ``"instance"`` or ``"agent"``.
        things: what `identity` takes, by label.
        warns: of things without identity.
        stacklevel: of the warning, as in `warnings.warn`.
    """
    known = {}
    for label, thing in things.items():
        try:
            known[label] = identity(thing)
        except NoIdentityError as error:
            known[label] = f"{UNKNOWN} {token_hex()}"
            if warns:
                text = f"{column} {label} is run, but not resumed, because {error}"
                warnings.warn(text, stacklevel=stacklevel)
    return known


class OwnCode(NamedTuple):
    """The own code of a class that can be imported, which a worker process imports by itself.

    Attributes:
        parts: hashes of its modules, and of attributes that may be set from outside, by words for
            each; empty for other code.
        process: the id of the process that knows it so.
    """

    parts: dict[str, str]
    process: int

    @classmethod
    def of(cls, maker: Any) -> OwnCode:
        """The own code of what makes agents or environments."""
        things = [maker]
        if isinstance(maker, EnvSpec):
            _, _, code = _of_package(maker)
            things = [thing for made, given in code for thing in (made, given.get("model"))]
        parts: dict[str, str] = {}
        for kind in [base for thing in things for base in getattr(thing, "__mro__", (thing,))]:
            if hasattr(kind, "__qualname__") and not is_ours(kind) and _is_importable(kind):
                parts |= {f"the module {name}": text for name, text in _sources(kind.__module__)}
                for name, value in _attributes(kind).items():
                    with suppress(Exception):  # it has no content
                        parts[f"{kind.__qualname__}.{name}"] = _hash(_content(value))
        return cls(parts, os.getpid())

    def check(self, label: str, maker: Any) -> None:
        """Check that this process has the same code, once.

        Raises:
            WorkerError: it has another.
        """
        if os.getpid() == self.process or repr(self) in _checked:
            return
        here = OwnCode.of(maker).parts
        for part, text in self.parts.items():
            if here.get(part) != text:
                if part.startswith("the module"):
                    why = "was edited since: call it again"
                else:
                    why = "was set outside of its module: set it there, or choose one job (n_jobs)"
                raise WorkerError(f"{label} is another in a worker process: {part} {why}")
        _checked.add(repr(self))


_checked: set[str] = set()
"""The own code that this worker process has checked."""


def loaded(instance: Any) -> Any:
    """Return the instance of a name or a file, or what an environment of another package takes as
    one.
    """
    with suppress(ValueError, TypeError):
        return load_instance(instance)
    return instance


def is_ours(thing: Any) -> bool:
    """Whether a class or a function is of this package."""
    return str(thing.__module__).startswith("clickgym.")


def _hash(content: Any) -> str:
    return sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _defaults(maker: Any) -> dict[str, Any]:
    with suppress(TypeError, ValueError):  # it has no signature
        parameters = inspect.signature(maker).parameters.values()
        return {it.name: it.default for it in parameters if it.default is not it.empty}
    return {}


# ------------------------------------------------------------------------------- objects


def _content(value: Any, around: tuple[int, ...] = ()) -> Any:
    """Return what a value is as plain values in lists, of which `repr` shows all.

    Args:
        value: any object.
        around: the ids of the objects that it is in.
    """
    if isinstance(value, str | os.PathLike):
        return _named(os.fspath(value))
    if isinstance(value, PLAIN):
        value = value.item() if isinstance(value, np.generic) else value
        return float(value) if type(value) is int and abs(value) <= 2**53 else value
    if id(value) in around:
        return "again", len(around) - around.index(id(value))

    def inner(part: Any) -> Any:
        return _content(part, (*around, id(value)))

    if isinstance(value, list | tuple):
        return list(value if set(map(type, value)) == {float} else map(inner, value))
    if isinstance(value, Mapping):
        return "mapping", sorted((repr(inner(key)), inner(it)) for key, it in value.items())
    if isinstance(value, set | frozenset):
        return "set", sorted(repr(inner(it)) for it in value)
    if type(value) is np.ndarray and not value.dtype.hasobject:
        return str(value.dtype.descr), value.shape, sha256(value.tobytes()).hexdigest()
    if isinstance(value, gym.Space):  # without its generator and the text that printing it makes
        kept = {k: v for k, v in vars(value).items() if "np_random" not in k and "repr" not in k}
        return type(value).__name__, inner(kept)
    if isinstance(value, Users | Instance | EnvSpec):
        return inner(_of_package(value))
    if isinstance(value, types.ModuleType):
        return _sources(value.__name__)
    if isinstance(value, types.MethodType | staticmethod | classmethod | property):
        parts = ("__func__", "__self__", "fget", "fset")
        return inner([getattr(value, part, None) for part in parts])
    for wrapped in ("py_func", "kernel", "__wrapped__"):  # compiled, or its results are cached
        function = getattr(value, wrapped, None)
        if isinstance(function, types.FunctionType) and not isinstance(value, type):
            return inner(function)
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return _code(getattr(value, "adopted", value), inner)
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor of torch
        return inner(value.numpy(force=True))
    if hasattr(getattr(value, "policy", None), "state_dict"):  # a model of stable-baselines3
        scaling = getattr(value, "get_vec_normalize_env", lambda: None)()
        names = ("norm_obs", "clip_obs", "epsilon", "obs_rms")
        scales = [getattr(scaling, name, None) for name in names]
        return inner([type(value), value.policy, scales])
    if hasattr(value, "state_dict"):
        return inner([type(value), repr(value), value.state_dict()])
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):  # a global variable
        return reduced, _sources(value.__module__)
    maker, arguments, state, entries, items = [*reduced, None, None, None][:5]
    return inner([maker, arguments, state, list(entries or ()), list(items or ())])


def _named(text: str) -> Any:
    """Return hashes of the file or of the files in the folder that a text names; or the text."""
    path = os.path.expanduser(text)
    # stable-baselines3 adds .zip to the names of its files
    files = [Path(name) for name in (path, f"{path}.zip") if os.path.isfile(name)]
    if text and os.path.isdir(path):
        files = sorted(file for file in Path(path).rglob("*") if file.is_file())
    return [sha256(file.read_bytes()).hexdigest() for file in files] or text


def _of_package(value: Users | Instance | EnvSpec) -> Any:
    """Return what users, an instance or a registered id are, as other objects."""
    if isinstance(value, Users):
        described = value.to_dict()
        return type(value), [users_class(name) for name in _kinds(described)], described
    if isinstance(value, Instance):
        users = list(value.models.values())
        if value.name.partition(":")[0] in FAMILIES:  # it holds all that this process knows
            users = [it for it in users if is_ours(type(it))] or users
        return value.n_positions, value.initial_ranking, users
    arguments: dict[str, Any] = dict(value.kwargs)
    if str(value.entry_point).startswith("clickgym."):
        arguments["model"] = users_class(arguments["model"], imports=True)
    layers = [(it.entry_point, it.kwargs) for it in value.additional_wrappers]
    makers = [(value.entry_point, arguments), *layers]
    code = [(load_env_creator(it) if isinstance(it, str) else it, given) for it, given in makers]
    return value.max_episode_steps, value.order_enforce, code


def _kinds(described: Any) -> Iterator[str]:
    """Yield the names of the click models in a description of users."""
    if isinstance(described, dict):
        yield from [described["model"]] if "model" in described else []
        described = list(described.values())
    if isinstance(described, list):
        for entry in described:
            yield from _kinds(entry)


# ------------------------------------------------------------------------------- code


def _code(thing: Any, inner: Callable[[Any], Any]) -> Any:
    """Return what a class or a function is: its name and sources, or what it is made of."""
    name = f"{thing.__module__}:{thing.__qualname__}"
    if is_ours(thing):
        return name, _version("torch") if thing.__module__.startswith("clickgym.agents.rl") else ""
    if _is_importable(thing):
        bases, attributes = list(getattr(thing, "__bases__", ())), _attributes(thing)
        return name, _sources(thing.__module__), inner(bases), inner(attributes)
    if isinstance(thing, type):
        members = {
            key: value
            for key, value in vars(thing).items()
            if isinstance(value, FUNCTIONS) or not key.startswith(("__", "_abc_"))
            if not isinstance(value, types.MemberDescriptorType)
        }
        return thing.__name__, inner(list(thing.__bases__)), inner(members)
    if not isinstance(thing, types.FunctionType):
        return name  # it is written in C
    codes, scope = list(_codes(thing.__code__)), thing.__globals__
    steps = [(it.opname, it.argval) for code in codes for it in dis.get_instructions(code)]
    read = {word for step, word in steps if step in ("LOAD_GLOBAL", "LOAD_NAME")}
    used = {word: scope[word] for word in sorted(read) if word in scope}
    modules = [it.__name__ for it in used.values() if isinstance(it, types.ModuleType)]
    modules += [word for step, word in steps if step == "IMPORT_NAME"]
    words = sorted({word for code in codes for word in code.co_names})
    modules += [f"{module}.{word}" for module in modules for word in words]
    bytecode = [(it.co_code, it.co_names, it.co_varnames, it.co_flags) for it in codes]
    constants = [
        [entry for entry in code.co_consts if not _is_code(entry) and entry != thing.__doc__]
        for code in codes
    ]
    given = [
        thing.__defaults__,
        thing.__kwdefaults__,
        [it.cell_contents for it in thing.__closure__ or ()],
    ]
    return bytecode, inner(constants), inner(given), inner(used), _sources(*modules)


def _is_importable(thing: Any) -> bool:
    """Whether a class or function is what its module has under its name."""
    module: Any = sys.modules.get(thing.__module__)
    spec = getattr(module, "__spec__", None)
    if spec is None or spec.name != thing.__module__:  # a script, or a notebook
        return thing.__module__ == "builtins"
    with suppress(AttributeError):
        return spec.origin is not None and attrgetter(thing.__qualname__)(module) is thing
    return False


def _attributes(thing: Any) -> dict[str, Any]:
    """Return the attributes of a class whose values may be others than its source says: numbers,
    texts and arrays, and functions that were defined elsewhere.
    """
    if not isinstance(thing, type) or thing.__module__ == "builtins":
        return {}
    return {
        key: value
        for key, value in vars(thing).items()
        if (isinstance(value, SET_FROM_OUTSIDE) and not key.startswith("__"))
        or (
            isinstance(value, types.FunctionType)
            and value.__qualname__.rpartition(".")[0] != thing.__qualname__
        )
    }


def _is_code(value: Any) -> bool:
    return isinstance(value, types.CodeType)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of a function and of those within it."""
    yield code
    for constant in filter(_is_code, code.co_consts):
        yield from _codes(constant)


# ------------------------------------------------------------------------------- sources


def _sources(*names: str) -> list[tuple[str, str]]:
    """Return the modules that some modules import, directly or not, with themselves, sorted by
    name; each with a hash of its source, or the version of its package.

    Modules of Python and of this package, and those that cannot be found, are left out.
    """
    found: dict[str, str] = {}
    due = list(names)
    while due:
        module = due.pop()
        top, _, _ = module.partition(".")
        if not module or module in found or top in OF_THE_SETTING:
            continue
        found[module] = ""
        parent = module.rpartition(".")[0]
        due.append(parent)  # a package is executed before what is in it
        spec = _spec(module)
        file = str(spec.origin) if spec is not None and spec.has_location else ""
        if any(folder in file for folder in INSTALLED):
            found[module] = _version(top)
        if file and not found[module] and not file.startswith(OF_PYTHON):
            found[module], imports = _parsed(file, os.stat(file).st_mtime_ns, os.stat(file).st_size)
            package = parent if spec.submodule_search_locations is None else module
            for word in imports:
                with suppress(ImportError):  # beyond the package
                    due.append(resolve_name(word, package))
    return sorted((module, text) for module, text in found.items() if text)


def _spec(name: str) -> Any:
    """Find a module as Python does, but do not import it, nor the package that it is in."""
    parent, folders = name.rpartition(".")[0], None
    if parent:
        folders = getattr(_spec(parent), "submodule_search_locations", None)
        if folders is None:
            return None
    finders = (it for it in sys.meta_path if hasattr(it, "find_spec"))
    return next(filter(None, (it.find_spec(name, folders) for it in finders)), None)


@cache
def _version(package: str) -> str:
    """Return the version of an installed package by the name of its module; empty without one."""
    names = packages_distributions().get(package, ())
    if package in OF_LEARNERS:
        names = [name for name in OF_LEARNERS if find_spec(name)]
    return ", ".join(f"{name} {version(name)}" for name in sorted(names))


@cache
def _parsed(file: str, _time: int, _size: int) -> tuple[str, list[str]]:
    """Return a hash of a module, and the names of what it may import, relative ones with dots."""
    text = Path(file).read_bytes()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a compiled module
        return sha256(text).hexdigest()[:32], []
    imports: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start, dot = "." * node.level + (node.module or ""), "." if node.module else ""
            imports += [start, *(f"{start}{dot}{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, DOCUMENTED):
            is_documented = ast.get_docstring(node, clean=False) is not None
            node.body[:is_documented] = [ast.Pass()]
            node.returns = None  # type: ignore[union-attr]
    statements = [ast.unparse(statement) for statement in tree.body]
    statements = [it for it in statements if not it.startswith(WITHOUT_EFFECT)]
    statements.sort(key=lambda it: (0, it) if it.startswith(("import ", "from ")) else (1, ""))
    return _hash(statements), imports
