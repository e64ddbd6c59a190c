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

# What the modules of each package may import from the other packages.
ALLOWED = {
    "clickgym.envs": (),
    "clickgym.agents": ("clickgym.envs.kernels", "clickgym.envs.checks", "clickgym.envs.spaces"),
    "clickgym.offline": ("clickgym.envs",),
    "clickgym.runner": ("clickgym.envs", "clickgym.agents", "clickgym.offline"),
    "clickgym": ("clickgym.envs", "clickgym.agents", "clickgym.offline", "clickgym.runner"),
}

FILES = [(package, file) for package, folder in FOLDERS.items() for file in sorted((ROOT / folder).glob("*.py"))]
by_file = pytest.mark.parametrize(("package", "file"), FILES, ids=[file.relative_to(ROOT).as_posix() for _, file in FILES])


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


def test_every_package_has_its_rule():
    assert FOLDERS.keys() == ALLOWED.keys()


@by_file
def test_imports_point_one_way_and_are_relative(package, file):
    names_of_packages = {folder.rpartition(".")[2] for folder in FOLDERS}
    for level, module, names in imports(file):
        if level == 0:
            top = module.partition(".")[0]
            assert top not in names_of_packages, f"{file.name} imports {module}; expected a relative import"
            continue
        base = ".".join(package.split(".")[: len(package.split(".")) - level + 1])
        assert base, f"{file.name} imports from above the package"
        targets = [f"{base}.{module}"] if module else [f"{base}.{name}" for name in names]
        for target in targets:
            owner = max((folder for folder in FOLDERS if within(target, [folder])), key=len)
            assert owner == package or within(target, ALLOWED[package]), f"{file.name} of {package} imports {target}"


@by_file
def test_what_is_public_exists_and_is_documented(package, file):
    name = package if file.stem == "__init__" else f"{package}.{file.stem}"
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("torch", "stable_baselines3", "sb3_contrib"):
            pytest.skip(f"{error.name} is not installed")
        raise
    assert inspect.getdoc(module), f"{name} has no docstring"
    for public in getattr(module, "__all__", []):
        value = getattr(module, public)
        value = getattr(value, "py_func", value)  # a kernel: the function that was compiled
        if inspect.isclass(value):
            # A subclass has no docstring of its own unless it is written; dataclasses and named tuples make one up.
            text = vars(value).get("__doc__") or ""
            assert text.strip(), f"{name}.{public} has no docstring"
            assert not text.startswith(f"{public}("), f"{name}.{public} has only a generated docstring"
        elif inspect.isroutine(value):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"
