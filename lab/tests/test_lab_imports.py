"""The structure of the lab: imports point one way, and lead to the library, never back."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[1] / "src" / "clickgym_lab"
FILES = {
    ".".join(file.relative_to(LAB).with_suffix("").parts).removesuffix(".__init__"): file
    for file in LAB.rglob("*.py")
}
FOLDERS = ("commands", "bench", "studies", "mix_ts")
"""From right to left: none imports from one before it."""
OTHERS = ("clickgym.agents.kernels", "clickgym.command_line")
"""What docs/own_agent.md makes an agent of, beside the interfaces; and the program."""


def imports(module, file):
    """The modules of the lab that a file imports, also for annotations alone."""
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            stem = [
                *package[: len(package) - node.level + 1],
                *(node.module.split(".") if node.module else []),
            ]
            for alias in node.names:
                full = ".".join([*stem, alias.name])
                yield full if full in FILES else ".".join(stem)


def test_imports_point_one_way():
    graph = {
        module: {each for each in imports(module, file) if each != module}
        for module, file in FILES.items()
    }
    for module, targets in graph.items():
        here = module.partition(".")[0]
        for target in targets:
            there = target.partition(".")[0]
            if here in FOLDERS and there in FOLDERS and here != there:
                assert FOLDERS.index(there) > FOLDERS.index(here), f"{module} imports {target}"
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", FILES)
def test_the_lab_imports_what_the_library_lists(module):
    """As everybody may: what the ``__all__`` of a package names, the tools in its ``core``, and
    what agents are made of.
    """
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [
                alias.name for alias in node.names if alias.name.partition(".")[0] == "clickgym"
            ]
            assert names in ([], ["clickgym"]), f"{module} imports {names[0]}"
        elif (
            isinstance(node, ast.ImportFrom)
            and not node.level
            and (node.module or "").partition(".")[0] == "clickgym"
        ):
            package = import_module(node.module or "")
            names = {alias.name for alias in node.names}
            tools = node.module.startswith("clickgym.core.") or node.module in OTHERS
            assert tools or names <= set(getattr(package, "__all__", ())), (
                f"{module} imports {names} from {node.module}"
            )
