"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def loader(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package for names that are loaded when they are first used.

    Args:
        package: its ``__name__``.
        modules: for each name its module, relative to the package; the name of a module loads the
            module itself.
    """

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name], package)
        value = module if modules[name] == f".{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)  # Python finds it there the next time
        return value

    return load
