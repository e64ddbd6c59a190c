"""Import of modules that the caller names as ``module:Name``; names in files are never imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType


@contextmanager
def looking_in(folder: str | Path) -> Iterator[None]:
    """Context in which modules are also imported from a folder."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def module_of(what: str, name: str) -> ModuleType:
    """Import the module of ``"module:Name"``, also from the working folder; errors begin with
    ``what``.
    """
    module, here = name.partition(":")[0], Path.cwd()
    if not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(
            f"{what} {name!r}: {module!r} is not the name of a module; "
            "expected module:Name, such as my_module:MyName"
        )
    with looking_in(here):
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
                raise  # the user's module exists, but one of its own imports is missing
            raise ValueError(
                f"{what} {name!r}: there is no module {module!r} (looked in {here}, too)"
            ) from None
