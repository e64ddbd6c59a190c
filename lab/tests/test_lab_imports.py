"""What clickgym-lab takes of the library: public names, as everybody may. And its
examples.
"""

import ast
from pathlib import Path

import pytest
from docstrings import check_examples, module_names

import clickgym_lab


def test_imports_are_public():
    """No module and no name that begins with an underscore."""
    for file in Path(clickgym_lab.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = getattr(node, "module", None) or ""
            if module.partition(".")[0] == "clickgym":
                names = [*module.split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if name.startswith("_")], (
                    f"{file.name}: {module}"
                )


@pytest.mark.uncompiled
@pytest.mark.parametrize("module_name", module_names("clickgym_lab"))
def test_examples_in_docstrings_are_true(module_name):
    check_examples(module_name)
