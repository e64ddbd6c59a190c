"""Which modules a file may name: those of the package, those that the caller names, and all if the caller trusts the file.

To import a module is to run it. What the caller names, ``--agents my_module:MyAgent``, is imported; a name that stands in a
file (an instance, a configuration, an experiment, a saved agent, a results folder) is data of whoever wrote the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from .checks import check_flag, check_module

RL_LIBRARIES = ("stable_baselines3", "sb3_contrib", "sbx")
"""stable-baselines3 and its relatives, whose algorithms are named as their documentation calls them: ``sb3_contrib:TRPO``."""
LIBRARIES = ("clickgym", *RL_LIBRARIES)
"""Packages whose classes a file may name: they are installed, so that nothing runs that came with the file."""

TRUSTED = object()
_SOURCE: ContextVar[object] = ContextVar("source", default=None)
"""Where names come from: a file, `TRUSTED`, or None for the caller."""
_NAMED: set[str] = set()


class UntrustedError(ValueError):
    """A file names a module that the caller neither names nor trusts."""


@contextmanager
def from_file(where: object, trust: bool = False) -> Iterator[None]:
    """Within, names of modules stand in a file.

    Args:
        where: the file, for messages; None for a description of which nobody knows the file.
        trust: whether its names are as good as the caller's own.
    """
    before, trust = _SOURCE.get(), check_flag("trust", trust)
    with _source(TRUSTED if trust or before is TRUSTED else where or before or "the description"):
        yield


@contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """Context in which all files are trusted if ``trust`` is true."""
    with _source(TRUSTED if trust else _SOURCE.get()):
        yield


@contextmanager
def _source(source: object) -> Iterator[None]:
    token = _SOURCE.set(source)
    try:
        yield
    finally:
        _SOURCE.reset(token)


def reads_file() -> bool:
    """Whether names come from a file that is not trusted."""
    return _SOURCE.get() not in (None, TRUSTED)


def check_trust(what: str, name: str) -> str:
    """The module of ``"module:Name"``, which may be imported now.

    Raises:
        UntrustedError: it stands in a file, and the caller neither names the module nor trusts the file.
        ValueError: it is no name of a module.
    """
    module = check_module(what, name)
    if is_library(module):
        return module
    if not reads_file():
        _NAMED.add(module)
    elif module not in _NAMED:
        raise UntrustedError(
            f"{_SOURCE.get()} names the {what} {name!r}; a module that a file names is imported only where the command names "
            f"it, too (as --agents {module}:MyAgent does), or with --trust (in Python trust=True)"
        )
    return module


def is_library(module: str) -> bool:
    """Whether a module belongs to one of `LIBRARIES`."""
    return module.partition(".")[0] in LIBRARIES


@contextmanager
def looking_in(folder: str | Path) -> Iterator[None]:
    """Look for modules in a folder, too, if the caller has named any: else a file there could stand for one of a library."""
    if not _NAMED and _SOURCE.get() is not TRUSTED:
        yield
        return
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def allowed() -> tuple[str, ...]:
    """The modules that the caller has named, for other processes."""
    return tuple(sorted(_NAMED))


def allow(modules: Iterable[str]) -> None:
    """Let files name these modules."""
    _NAMED.update(modules)
