"""The public API of the installed clickgym, as data: what a user's program can name, and how.

``python tests/helpers/public_api.py > tests/data/api_10.json`` writes the data of version 10.0.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from typer.main import get_command

from clickgym.agents import AGENTS
from clickgym.cli import COMMANDS, app
from clickgym.envs import ENVIRONMENTS, list_instances
from clickgym.envs.instances.instance import FAMILIES
from clickgym.runner import METRICS

PACKAGES = ("clickgym", "clickgym.envs", "clickgym.agents", "clickgym.runner", "clickgym.logs")
"""The packages whose ``__all__`` is public."""
ON_PAGES = {
    "clickgym.agents.shared_kernels": ["kl", "kl_upper", "rank_by_draw", "rank_by_index", "show"],
    "clickgym.core.checks": ["check_number", "check_positions", "probabilities"],
    "clickgym.core.kernels": ["cache_folder", "uncompiled"],
    "clickgym.core.state": ["Floats", "Ints"],
}
"""What the pages import from other modules."""


def public_api() -> dict[str, list[str]]:
    """Return what users can write. The first word of an entry is its kind: ``"function"``, ``"class
    clickgym.agents.CompiledAgent"`` (its nearest public base), ``"property"``, ``"attribute"`` (its
    type is not known from the class) or, for a class attribute, the name of its type. Parameters
    follow as in a definition: ``"seed=0"``.
    """
    modules = {package: import_module(package) for package in (*PACKAGES, *ON_PAGES)}
    public = {
        f"{package}.{name}": getattr(module, name)
        for package, module in modules.items()
        for name in ON_PAGES.get(package) or module.__all__
    }
    classes = {thing: name for name, thing in public.items() if inspect.isclass(thing)}
    api = {name: described(thing, classes) for name, thing in public.items()}
    for thing, name in classes.items():
        members = members_of(thing, classes).items()
        api |= {f"{name}.{member}": words for member, words in members}
    api |= {f"clickgym {command}": ["command", *options_of(command)] for command in COMMANDS}
    api |= {f"instance {name}": ["instance"] for name in list_instances()}
    api |= {f"instance {name}": ["family", *parameters_of(it)] for name, it in FAMILIES.items()}
    for kind, known in (("agent", AGENTS), ("environment", ENVIRONMENTS), ("metric", METRICS)):
        api |= {f"{kind} {name}": [kind] for name in known}
    return api


def described(thing: Any, classes: dict[type, str]) -> list[str]:
    """Return the kind of an object, and its parameters."""
    if inspect.isclass(thing):
        base = next((classes[base] for base in thing.__mro__[1:] if base in classes), "")
        parameters = parameters_of(thing) if thing in classes else []
        return [f"class {base}".strip(), *parameters]
    if callable(thing):
        return ["function", *parameters_of(thing)]
    return ["attribute" if thing is None else type(thing).__name__]


def members_of(thing: type, classes: dict[type, str]) -> dict[str, list[str]]:
    """Return the public members of a class that clickgym defines, also those that it inherits."""
    bases = [base for base in thing.__mro__ if is_ours(base)]
    names = {name for base in bases for name in (*vars(base), *inspect.get_annotations(base))}
    return {
        name: ["property"]
        if isinstance(inspect.getattr_static(thing, name, None), property)
        else described(getattr(thing, name, None), classes)
        for name in sorted(names)
        if not name.startswith("_")
    }


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Return the parameters of a function or class of clickgym, but not those of errors."""
    if not is_ours(function) or (inspect.isclass(function) and issubclass(function, Exception)):
        return []
    words = list[str]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        default = parameter.default
        text = getattr(default, "__qualname__", repr(default))
        bare = parameter.replace(annotation=parameter.empty, default=parameter.empty)
        words.append(f"{bare}" if default is parameter.empty else f"{bare}={text}")
    return words


def options_of(command: str) -> list[str]:
    """Return the arguments of a command, and its options with their defaults."""
    group = get_command(app)
    context = group.make_context("clickgym", [command], resilient_parsing=True)
    _, found, _ = group.resolve_command(context, [command])
    defaults = {word: it.default for it in found.params for word in it.opts + it.secondary_opts}
    options = [f"{word}={value!r}" for word, value in defaults.items() if word[0] == "-"]
    return [*(word for word in defaults if word[0] != "-"), "*", *options]


def is_ours(thing: object) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] == "clickgym"


if __name__ == "__main__":
    api = sorted(public_api().items())
    print("{", ",\n".join(f"{json.dumps(name)}: {json.dumps(words)}" for name, words in api), "}")
