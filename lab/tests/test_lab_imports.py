"""What clickgym-lab takes of the library: public names, as everybody may. Its examples, and the
help of the commands that do not come with the library.
"""

import ast
import re
from pathlib import Path

import pytest
from docstrings import check_examples, module_names

import clickgym_lab
from clickgym.command_line import LAB, LOGS


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


@pytest.mark.parametrize("command", [*LOGS, *LAB])
def test_help_of_a_command(command, printed):
    """It fits 80 columns without a broken word, and an example stands before the first rule."""
    unlimited, out = (printed([command, "--help"], width) for width in (300, 80))
    assert max(map(len, out.splitlines())) <= 80
    assert out.split() == unlimited.split()
    usage, summary, introduction, example, *_ = re.split(r"\n\s*\n", unlimited)
    assert usage.startswith(f"Usage: clickgym {command} ")
    assert summary.endswith(".")
    assert introduction.endswith(":")
    assert example.startswith(f"  clickgym {command} ")
