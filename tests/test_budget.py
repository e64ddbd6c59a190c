"""How large each room may be, in lines of code without docstrings, comments and blank lines.

Whoever raises a number says in the commit which promise it buys.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "src" / "clickgym"
BUDGET = {
    "src/clickgym/core": 1573,
    "envs": 6032,
    "agents": 8317,
    "src/clickgym/runner": 6529,
    "src/clickgym": 346,
    "lab/src": 6725,
    "docs": 1713,
    "benchmarks": 3668,
    "tests": 37_495,
    "lab/tests": 6100,
}
"""Lines of each room; that of the library itself is of the files beside its rooms."""


def code_lines(text: str) -> int:
    """The lines of a file that are neither blank nor a comment nor part of a docstring or another bare string."""
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


def files(room: str) -> list[Path]:
    folder = ROOT / room
    return sorted(folder.glob("*.py") if folder == LIBRARY else folder.rglob("*.py"))


@pytest.mark.parametrize("room", BUDGET)
def test_a_room_is_no_larger_than_its_budget(room):
    assert sum(code_lines(file.read_text(encoding="utf-8")) for file in files(room)) <= BUDGET[room]


def test_every_file_of_the_library_and_of_the_lab_has_a_room():
    shipped = {file for folder in (ROOT / "src", ROOT / "envs", ROOT / "agents", ROOT / "lab") for file in folder.rglob("*.py")}
    submitted = set((ROOT / "lab" / "submissions").rglob("*.py"))
    assert shipped - submitted <= {file for room in BUDGET for file in files(room)}


def test_docstrings_comments_and_blank_lines_do_not_count():
    assert (
        code_lines(
            '"""Words."""\n\n# why\nX = 1\n"""What it is,\nin two lines."""\n\ndef f():\n    """Says."""\n    return X\n'
        )
        == 3
    )
