"""The examples in docstrings, module by module."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def module_names(*packages: str) -> Iterator[str]:
    """Every module of some packages; of those of the library, if none is named."""
    for package in (
        packages
        or tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    ):
        yield package
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if not module.ispkg:
                yield f"{package}.{module.name}"


def check_examples(module_name: str) -> None:
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("torch", "stable_baselines3", "sb3_contrib"):
            pytest.skip(f"{error.name} is not installed")
        raise
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module):
        # each run asks for the times of all sources that were read, also where it has nothing to
        # try
        if test.examples:
            runner.run(test)
    assert runner.summarize().failed == 0
