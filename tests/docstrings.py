"""The examples in docstrings, module by module."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

EXTRAS = {"import stable_baselines3": "stable_baselines3", "NeuralGreedy(": "torch"}
"""What only examples of an extra have in their code, and a package of this extra."""
PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def module_names() -> list[str]:
    """Every module of the library."""
    names: dict[str, None] = {}
    settings = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["setuptools"]
    for package in settings["packages"]:
        names[package] = None
        path = importlib.import_module(package).__path__
        names |= {module.name: None for module in pkgutil.walk_packages(path, f"{package}.")}
    return list(names)


def check_examples(module_name: str) -> None:
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        if find_spec("stable_baselines3") is None:
            pytest.skip("the extra rl is not installed")
        raise
    lacking = [text for text, package in EXTRAS.items() if find_spec(package) is None]
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module):
        # each run asks for the times of all sources that were read, also where it has nothing to
        # try
        sources = [example.source for example in test.examples]
        if sources and not any(text in source for text in lacking for source in sources):
            runner.run(test)
    assert runner.summarize().failed == 0
