"""What clickgym-logs takes of the library: public names. And its examples."""

import ast
from importlib import import_module
from pathlib import Path

import pytest
from docstrings import check_examples, module_names

import clickgym_logs

PUBLIC = ("clickgym", "clickgym.agents", "clickgym.envs", "clickgym.runner")
TOOLS = ("clickgym.core.", "clickgym.runner.console", "clickgym.runner.terminal")
"""Modules that are public as a whole."""


def test_imports_are_public():
    """Of packages the names in their ``__all__``."""
    for file in Path(clickgym_logs.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = getattr(node, "module", None) or ""
            if module.startswith("clickgym") and not module.startswith(TOOLS):
                assert module in PUBLIC, f"{file.name}: {module}"
                names = {alias.name for alias in node.names}
                assert names <= set(import_module(module).__all__), f"{file.name}: {names}"


def test_number_of_public_names():
    assert len(clickgym_logs.__all__) <= 33


@pytest.mark.uncompiled
@pytest.mark.parametrize("module_name", module_names("clickgym_logs"))
def test_examples_in_docstrings_are_true(module_name):
    check_examples(module_name)
