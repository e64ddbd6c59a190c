"""What clickgym-lab takes of the library: public names, as everybody may. And its
examples.
"""

import ast
from importlib import import_module
from pathlib import Path

import pytest
from docstrings import check_examples, module_names

import clickgym_lab

TOOLS = (
    "clickgym.core.",
    "clickgym.agents.kernels",
    "clickgym.command_line",
    *(
        f"clickgym.runner.{room}"
        for room in ("colours", "console", "progress", "reports.figures", "terminal", "workers")
    ),
)
"""Modules that are public as a whole."""


def test_imports_are_public():
    """Of packages the names in their ``__all__``."""
    for file in Path(clickgym_lab.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = getattr(node, "module", None) or ""
            if module.partition(".")[0] == "clickgym" and not module.startswith(TOOLS):
                names = {alias.name for alias in node.names}
                assert names <= set(import_module(module).__all__), f"{file.name}: {module}"


@pytest.mark.uncompiled
@pytest.mark.parametrize("module_name", module_names("clickgym_lab"))
def test_examples_in_docstrings_are_true(module_name):
    check_examples(module_name)
