"""Import paths of version 1.0 that have moved; each still works in version 2, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "envs.checks": "core.checks",
    "envs.files": "core.files",
    "envs.kernels": "core.kernels",
    "envs.notebook": "core.notebook",
    "envs.pages": "lab.pages.environments",
    "runner.bench": "lab.bench",
    "runner.decision": "offline.decision",
    "runner.formats": "core.formats",
    "runner.record": "offline.record",
    "runner.replay": "offline.replay",
    "runner.reports.results": "runner.sweep_results",
    "runner.reports.templates": "core.templates",
    "runner.reports.terminal": "core.terminal",
    "runner.reports.words": "runner.words",
    "runner.shipped": "lab.shipped",
    "runner.statistics": "runner.summaries",
    "runner.studies": "lab.studies",
    "runner.studies.run": "lab.studies.play",
}
"""Modules and folders by their old names; what lies in a folder moves with it."""


def _new_name(name: str) -> str | None:
    """The name that a module has now; None if it has not moved."""
    package, _, old = name.partition(".")
    folder, rest = old, ""
    while folder:
        if folder in MOVED:
            return f"{package}.{MOVED[folder]}{rest}"
        folder, _, last = folder.rpartition(".")
        rest = f".{last}{rest}"
    return None


class _Finder(MetaPathFinder, Loader):
    """Finds a moved module under its old name."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        new = _new_name(fullname) if fullname.startswith(f"{__package__}.") else None
        if new is None:
            return None
        warnings.warn(f"{fullname} has moved; import {new} instead", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(_new_name(spec.name)))
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # the import system has replaced it by that of the old name


sys.meta_path.insert(0, _Finder())  # before the one that would find a file of a moved folder, and load it a second time
