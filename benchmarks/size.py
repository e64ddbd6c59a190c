"""Lines of code by room, without docstrings, comments and blank lines."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from report import publish, table

ROOT = Path(__file__).resolve().parents[1]


def lines_of_code(file: Path) -> int:
    """The lines of a file that hold code."""
    text = file.read_text(encoding="utf-8")
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def main() -> None:
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]
    rooms = {package: sum(map(lines_of_code, (ROOT / folder).rglob("*.py"))) for package, folder in folders.items()}
    rows = [[f"`{package}`", f"{lines:,}"] for package, lines in sorted(rooms.items(), key=lambda room: -room[1])]
    publish(table(["room", "lines of code"], [*rows, ["all", f"{sum(rooms.values()):,}"]]))


if __name__ == "__main__":
    main()
