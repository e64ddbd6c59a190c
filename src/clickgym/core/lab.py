"""The lab: studies and the scorecard, a package of its own (clickgym-lab) that the library offers where it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

PACKAGE = "clickgym_lab"
MISSING = "studies and the scorecard come with clickgym-lab, which is not installed; install it: pip install clickgym-lab"


def has_lab() -> bool:
    """Whether the lab is installed; nothing of it is loaded."""
    return find_spec(PACKAGE) is not None


def lab(module: str) -> ModuleType:
    """A module of the lab.

    Args:
        module: its name in the lab, such as ``"studies"``.

    Raises:
        ImportError: the lab is not installed.
    """
    if not has_lab():
        raise ImportError(MISSING)
    return import_module(f"{PACKAGE}.{module}")
