"""The structure of the library: imports point one way, and public names have docstrings."""

from __future__ import annotations

import ast
import inspect
import os
import tomllib
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]
ROOMS = ("core", "envs", "agents", "runner", "")
"""A room imports from those to its left; the last is the package itself."""
SHARED_ENVS = ("codecs", "scan", "spaces", "wrappers")
"""What agents know of environments."""


def modules():
    """The modules of the library by name, and their files."""
    source = ROOT / SETUPTOOLS["package-dir"][""]
    for folder, _, names in os.walk(source / "clickgym", followlinks=True):
        for file in (Path(folder, name) for name in names if name.endswith(".py")):
            path = file.relative_to(source).with_suffix("")
            yield ".".join(path.parts).removesuffix(".__init__"), file


FILES = dict(modules())


def imported(module, file):
    """The modules that a module imports, inside functions too, but for annotations alone."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    guards = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    for_annotations = {id(node) for guard in guards for node in ast.walk(guard)}
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in for_annotations:
            stem = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                target = f"{stem}.{alias.name}"
                yield target if target in FILES else stem


def room_of(module):
    room = module.split(".")[1] if "." in module else ""
    return room if room in ROOMS else ""


def test_imports_point_one_way():
    """Rooms import from those to their left, and there is no circle of files."""
    graph = {module: {*imported(module, file)} for module, file in FILES.items()}
    for module, targets in graph.items():
        for target in targets:
            right, left = room_of(module), room_of(target)
            assert ROOMS.index(left) <= ROOMS.index(right), f"{module} imports {target}"
            if (right, left) == ("agents", "envs"):
                assert target.split(".")[2] in SHARED_ENVS, f"{module} imports {target}"
    TopologicalSorter(graph).prepare()


def test_library_names_no_other_distribution():
    """Commands of others plug in by entry points."""
    texts = [file.read_text(encoding="utf-8") for file in FILES.values()]
    assert not [text for text in texts if "clickgym_logs" in text or "clickgym_lab" in text]


def test_every_package_is_listed():
    packages = {name for name, file in FILES.items() if file.name == "__init__.py"}
    assert packages == set(SETUPTOOLS["packages"])


@pytest.mark.parametrize("package", ["clickgym", "clickgym.envs", "clickgym.agents"])
def test_public_names_have_docstrings(package):
    """A class has its own, not that of its base or one that `dataclass` makes up."""
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            text = vars(value).get("__doc__") or f"{name}("
            assert not text.startswith(f"{name}("), name
        elif inspect.isroutine(value):
            assert inspect.getdoc(value), name
