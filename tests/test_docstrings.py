"""The examples in the docstrings of the library are true."""

from __future__ import annotations

import pytest
from docstrings import check_examples, module_names

COMPILED = ("clickgym.core.kernels", "clickgym.envs.click_env")
"""Modules whose examples print numbers that only compiled kernels return as Python's own."""


@pytest.mark.parametrize(
    "module_name",
    [
        pytest.param(name, marks=[pytest.mark.uncompiled] * (name not in COMPILED))
        for name in module_names()
    ],
)
def test_examples_in_docstrings_are_true(module_name):
    check_examples(module_name)
