"""The shape of the code: which package may import which, and that what is public is documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]

KERNELS = (
    "clickgym.envs.kernels", "clickgym.envs.checks", "clickgym.envs.codecs", "clickgym.envs.files", "clickgym.envs.scan",
    "clickgym.envs.spaces",
)  # fmt: skip
SESSIONS = (  # one pair
    "clickgym.envs", "clickgym.agents", "clickgym.offline", "clickgym.runner.catalogue", "clickgym.runner.describe",
    "clickgym.runner.formats", "clickgym.runner.labels", "clickgym.runner.loop", "clickgym.runner.make",
    "clickgym.runner.metrics", "clickgym.runner.record", "clickgym.runner.replay", "clickgym.runner.run",
)  # fmt: skip
SWEEPS = (  # many pairs, and what is told of them
    *SESSIONS, "clickgym.runner.cast", "clickgym.runner.learners", "clickgym.runner.statistics",
    "clickgym.runner.experiment", "clickgym.runner.results", "clickgym.runner.sweep", "clickgym.runner.progress",
    "clickgym.runner.shipped",
)  # fmt: skip
# Imports inside a function, of what needs torch or matplotlib.
LATER = {"clickgym.runner.run": ("clickgym.runner.learners.play", "clickgym.runner.reports.figures")}

# What the modules of each package may import from others, by the longest name that fits. Each arrow points one way.
ALLOWED: dict[str, tuple[str, ...]] = {
    "clickgym.envs": (),
    "clickgym.agents": KERNELS,
    "clickgym.offline": ("clickgym.envs",),
    "clickgym.runner": SWEEPS,
    **{name: SESSIONS for name in SESSIONS if name.startswith("clickgym.runner")},
    "clickgym.runner.learners": SESSIONS,
    "clickgym.runner.theory": SESSIONS,
    "clickgym.runner.reports": (*SWEEPS, "clickgym.runner.theory"),
    "clickgym.runner.studies": (*SWEEPS, "clickgym.runner.reports", "clickgym.runner.theory"),
    "clickgym.runner.bench": (*SWEEPS, "clickgym.runner.reports"),
    "clickgym.runner.decision": (*SWEEPS, "clickgym.runner.reports"),
    "clickgym.runner.cli": (
        *SWEEPS,
        "clickgym.runner.bench",
        "clickgym.runner.decision",
        "clickgym.runner.reports",
        "clickgym.runner.studies",
        "clickgym.runner.theory",
    ),
    "clickgym": ("clickgym.envs", "clickgym.agents", "clickgym.offline", "clickgym.runner"),
}


def modules():
    """Every module of the package, with its file."""
    for package, folder in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *parts)), file


FILES = list(modules())
by_file = pytest.mark.parametrize(("module", "file"), FILES, ids=[file.relative_to(ROOT).as_posix() for _, file in FILES])


def imports(file):
    """The import statements of a file, wherever they stand: ``(level, module, names)``."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, []


def within(module, packages):
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def rule(module):
    """The longest name in `ALLOWED` that a module is within."""
    return max((name for name in ALLOWED if within(module, [name])), key=len)


@by_file
def test_imports_point_one_way_and_are_relative(module, file):
    tops = {folder.rpartition(".")[2] for folder in FOLDERS}
    own = rule(module)
    for level, imported, names in imports(file):
        if level == 0:
            top = imported.partition(".")[0]
            assert top not in tops, f"{file.name} imports {imported}; expected a relative import"
            continue
        base = ".".join(module.split(".")[:-level])
        assert base, f"{file.name} imports from above the package"
        for target in [f"{base}.{imported}"] if imported else [f"{base}.{name}" for name in names]:
            allowed = (*ALLOWED[own], *LATER.get(own, ()))
            assert rule(target) == own or within(target, allowed), f"{file.name} of {own} imports {target}"


def test_the_map_of_the_tree_names_every_folder():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for folder in {file.parent.relative_to(ROOT).as_posix() for _, file in FILES}:
        assert f"`{folder}/`" in page, f"CONTRIBUTING.md says nothing of {folder}/"


@by_file
def test_what_is_public_exists_and_is_documented(module, file):
    name = module.removesuffix(".__init__")
    try:
        found = importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("torch", "stable_baselines3", "sb3_contrib"):
            pytest.skip(f"{error.name} is not installed")
        raise
    assert inspect.getdoc(found), f"{name} has no docstring"
    for public in getattr(found, "__all__", []):
        value = getattr(found, public)
        value = getattr(value, "py_func", value)  # a kernel: the function that was compiled
        if inspect.isclass(value):
            # A subclass has no docstring of its own unless it is written; dataclasses and named tuples make one up.
            text = vars(value).get("__doc__") or ""
            assert text.strip(), f"{name}.{public} has no docstring"
            assert not text.startswith(f"{public}("), f"{name}.{public} has only a generated docstring"
        elif inspect.isroutine(value):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"
