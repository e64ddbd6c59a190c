"""The structure of the code: imports point one way, between rooms and inside them, and what is
public is documented.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]["package-dir"]

ROOMS = ("core", "envs", "agents", "runner", "")
"""From left to right: a room imports from those to its left; the last is the package itself, with
the command line.
"""
OF_ENVS = ("envs.codecs", "envs.scan", "envs.spaces")
"""What agents may know of environments."""
INSIDE = {
    "envs": ("envs.wrappers", "envs.instances", "envs.memory", "envs.contextual"),
    "runner": ("runner.commands", "runner.reports", "runner.learners"),
}
"""The folders of a room from right to left: none imports from one before it, and the files beside
them import from none but those of `MAY`.
"""
MAY = {
    "envs": ("envs.instances", "envs.contextual", "envs.memory", "envs.wrappers"),
    "runner": (),
}
LATER = {
    ("agents.stable_baselines", "agents.plackett_luce"): "loads torch, which is optional",
    ("runner.run", "runner.learners.play"): "loads torch, which is optional",
    ("runner.sweep", "runner.learners.play"): "loads torch, which is optional",
    ("runner.run", "runner.reports.figures"): "loads matplotlib, for those who draw a result",
    (
        "runner.sweep_results",
        "runner.reports.figures",
    ): "loads matplotlib, for those who draw results",
    ("runner.reports.report", "runner.reports.page"): "loads jinja2 and plotly, which are optional",
}
"""The imports inside functions, each with its reason; `clickgym/__init__.py` has a table of its
own.
"""
OPTIONAL = {
    "IPython",
    "PIL",
    "dask",
    "matplotlib",
    "numba",  # what is inside it, another version may lack
    "optuna",
    "pandas",
    "plotly",
    "polars",
    "rich",
    "sb3_contrib",
    "scipy",
    "stable_baselines3",
    "torch",
    "fcntl",  # of some systems
    "msvcrt",
}
"""Packages that functions may import: they are optional, or slow to load."""


def modules(root):
    """The modules below a checkout by name, without ``clickgym.``, and their files."""
    for package, folder in FOLDERS.items():
        for file in sorted((root / folder).rglob("*.py")):
            parts = [
                *package.split(".")[1:],
                *file.relative_to(root / folder).with_suffix("").parts,
            ]
            yield ".".join(parts), file


FILES = dict(modules(ROOT))
by_file = pytest.mark.parametrize(
    "module", FILES, ids=[file.relative_to(ROOT).as_posix() for file in FILES.values()]
)


class Import:
    """An import of a module: the name of what is imported, and where the statement stands."""

    def __init__(self, target, later, typing):
        self.target, self.later, self.typing = target, later, typing


def imports(module, file, known):
    """The imports of a file from the package, and the names of other packages that its functions
    import.
    """
    return imports_of(module, file.read_text(encoding="utf-8"), frozenset(known))


@cache
def imports_of(module, text, known):
    tree = ast.parse(text)
    package = ["clickgym", *module.split(".")[:-1]]
    top = set(map(id, tree.body))
    guarded = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    typing = {id(node) for guard in guarded for node in ast.walk(guard)}
    own, others = [], set()
    for node in ast.walk(tree):
        later = id(node) not in top and id(node) not in typing
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".")[0] for alias in node.names]
            assert "clickgym" not in names, f"{module} imports clickgym; expected a relative import"
            others |= set(names) if later else set()
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert node.module.partition(".")[0] not in ("clickgym", *ROOMS), (
                f"{module}: expected a relative import"
            )
            others |= {node.module.partition(".")[0]} if later else set()
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            assert base, f"{module} imports from above the package"
            stem = (
                ".".join([*base, *(node.module or "").split(".")])
                .removeprefix("clickgym")
                .strip(".")
            )
            for alias in node.names:
                full = f"{stem}.{alias.name}".strip(".")
                target = full if {full, f"{full}.__init__"} & known else stem
                target = (
                    f"{target}.__init__".strip(".")
                    if f"{target}.__init__".strip(".") in known
                    else target
                )
                own.append(Import(target, later, id(node) in typing))
    return own, others


def within(module, folder):
    return module == folder or module.startswith(f"{folder}.")


def room(module):
    first = module.partition(".")[0]
    return first if first in ROOMS else ""


def folder_of(module):
    """The folder of a room in which a module lies, or the room."""
    return next(
        (folder for folder in INSIDE.get(room(module), ()) if within(module, folder)), room(module)
    )


def faults(root):
    """What is wrong with the imports of a checkout: a line each."""
    files = dict(modules(root))
    graph = {}
    for module, file in files.items():
        own, others = imports(module, file, files)
        graph[module] = {each.target for each in own if not each.typing and each.target != module}
        yield from (
            f"{module} imports {name} inside a function" for name in sorted(others - OPTIONAL)
        )
        for each in own:
            where = f"{module} imports {each.target}"
            left, right = room(each.target), room(module)
            if ROOMS.index(left) > ROOMS.index(right):
                yield f"{where}: {left or 'the package'} lies to the right of {right}"
            elif right == "agents" and left == "envs" and each.target not in OF_ENVS:
                yield f"{where}: agents know of envs only {', '.join(OF_ENVS)}"
            elif right and each.typing and folder_of(each.target) != folder_of(module):
                yield f"{where} for annotations, from another folder"
            if each.later and (module, each.target) not in LATER:
                yield f"{where} inside a function"
            if (
                each.target.endswith("__init__")
                and within(module, each.target.removesuffix(".__init__"))
                and not each.typing
            ):
                yield f"{where}, the __init__ of its own room"
            if right and left == right and not each.typing and not each.later:
                there, here = folder_of(each.target), folder_of(module)
                order = INSIDE.get(right, ())
                if (
                    there != here
                    and here == right
                    and module != f"{right}.__init__"
                    and there not in MAY[right]
                ):
                    yield f"{where}: the files of {right} do not import its folder {there}"
                elif there in order and here in order and order.index(there) < order.index(here):
                    yield f"{where}: {there} lies to the right of {here}"
    try:
        # An __init__ only collects names: who imports it imports what it collects.
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"circle: {' '.join(error.args[1])}"


def test_imports_point_one_way():
    assert list(faults(ROOT)) == []


@pytest.mark.parametrize(
    ("file", "line", "fault"),
    [
        (
            "envs/scan.py",
            "def f():\n    from ..runner.labels import by_label\n",
            "lies to the right",
        ),
        (
            "src/clickgym/runner/make.py",
            "def f():\n    from .run import run\n",
            "inside a function",
        ),
        ("src/clickgym/runner/labels.py", "from .run import run\n", "circle"),
        (
            "src/clickgym/runner/loop.py",
            "from .reports.page import to_html\n",
            "do not import its folder",
        ),
        ("agents/grab.py", "from ..envs.cascade import CascadeModel\n", "agents know of envs only"),
        ("agents/grab.py", "from . import CascadeTS\n", "the __init__ of its own room"),
        ("agents/grab.py", "def f():\n    import json\n", "inside a function"),
    ],
)
def test_a_planted_import_is_noticed(tmp_path, file, line, fault):
    for _, path in modules(ROOT):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    planted = tmp_path / file
    planted.write_text(planted.read_text(encoding="utf-8") + line, encoding="utf-8")
    assert any(fault in each for each in faults(tmp_path))


def test_every_import_that_may_be_late_is_there():
    late = {
        (module, each.target)
        for module, file in FILES.items()
        for each in imports(module, file, FILES)[0]
        if each.later
    }
    assert late == set(LATER)


def is_written_for_readers(value, module):
    """A class or a function of a module; not a kernel, nor the named tuple of a state or of
    parameters.
    """
    if getattr(value, "__module__", "") != module or (
        inspect.isclass(value) and issubclass(value, tuple)
    ):
        return False
    return inspect.isclass(value) or (inspect.isfunction(value) and bool(value.__annotations__))


@by_file
def test_what_is_public_exists_and_is_documented(module):
    name = f"clickgym.{module}".removesuffix(".__init__").rstrip(".")
    try:
        found = importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("torch", "stable_baselines3", "sb3_contrib"):
            pytest.skip(f"{error.name} is not installed")
        raise
    assert inspect.getdoc(found), f"{name} has no docstring"
    own = [
        public
        for public, value in vars(found).items()
        if public[0] != "_" and is_written_for_readers(value, name)
    ]
    for public in getattr(found, "__all__", own):
        value = getattr(found, public)
        value = getattr(value, "py_func", value)  # a kernel: the function that was compiled
        if inspect.isclass(value):
            # A subclass has no docstring of its own unless it is written; dataclasses and named tuples make one up.
            text = vars(value).get("__doc__") or ""
            assert text.strip(), f"{name}.{public} has no docstring"
            assert not text.startswith(f"{public}("), (
                f"{name}.{public} has only a generated docstring"
            )
        elif inspect.isroutine(value):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"


def test_the_library_names_no_other_distribution():
    """Not even in its words: others plug in by entry points."""
    texts = {path: path.read_text(encoding="utf-8") for _, path in modules(ROOT)}
    assert [
        path for path, text in texts.items() if "clickgym_logs" in text or "clickgym_lab" in text
    ] == []
