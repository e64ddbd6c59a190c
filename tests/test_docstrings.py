"""Tests that the examples in the library's docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from importlib.util import find_spec

import pytest

import clickgym

EXTRAS = {"import stable_baselines3": "stable_baselines3", "NeuralGreedy(": "torch"}
"""Texts that only occur in examples of an extra, and the package that the extra installs."""
COMPILED = ("clickgym.core.kernels", "clickgym.envs.click_env")
"""Modules whose examples print numbers that are Python numbers only if kernels are compiled."""
MODULES = ["clickgym", *(it.name for it in pkgutil.walk_packages(clickgym.__path__, "clickgym."))]


@pytest.mark.parametrize(
    "module_name",
    [
        pytest.param(name, marks=[pytest.mark.uncompiled] * (name not in COMPILED))
        for name in MODULES
    ],
)
def test_examples_in_docstrings_are_true(module_name):
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        if find_spec("stable_baselines3") is None:
            pytest.skip("the extra rl is not installed")
        raise
    lacking = [text for text, package in EXTRAS.items() if find_spec(package) is None]
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module):
        # each run reads the modification times of all sources so far, so skip it if there is
        # nothing to test
        sources = [example.source for example in test.examples]
        if sources and not any(text in source for text in lacking for source in sources):
            runner.run(test)
    assert runner.summarize().failed == 0
