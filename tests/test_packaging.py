"""What is shipped: wheels and sdists of the library and of the lab, what importing costs, pinned
versions, the changelog.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAB = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("src", "envs", "agents", "lab")
BESIDE = ("tests", "docs", "examples", "benchmarks", ".ci", ".github")
FILES = (
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "Makefile",
    "conftest.py",
    "constraints.txt",
    "paper.bib",
    "paper.md",
    ".gitignore",
    ".pre-commit-config.yaml",
)
PACKAGE_FOLDERS = PYPROJECT["tool"]["setuptools"]["package-dir"]


def run(*command, **options):
    """Run a command and return its output; if it fails, fail with what it printed."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=300, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist, and the wheel made from it, so that a file missing in the sdist is missed in the
    wheel too.

    Built from a copy of what the build reads: setuptools would take stale files from a build/
        folder in the checkout.
    """
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source")
    for file in FILES:
        shutil.copy(ROOT / file, source)
    for name in (*PACKAGES, *BESIDE):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source, cwd=folder)
    return folder


def files_in_package(suffix):
    """The files of the checkout that end with ``suffix``, by their paths in an installed
    package.
    """
    found = set()
    for package, folder in PACKAGE_FOLDERS.items():
        below = Path(*package.split("."))
        files = (ROOT / folder).rglob(f"*{suffix}")
        found |= {(below / file.relative_to(ROOT / folder)).as_posix() for file in files}
    return found


def test_every_package_is_listed():
    folders = {Path(file).parent for file in files_in_package(".py")}
    assert {".".join(folder.parts) for folder in folders} == set(
        PYPROJECT["tool"]["setuptools"]["packages"]
    )


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(distributions):
    (wheel,) = distributions.glob("*.whl")
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    suffixes = (
        ".bib",
        ".css",
        ".html",
        ".js",
        ".json",
        ".md",
        ".parquet",
        ".py",
        ".sql",
        ".tex",
        ".toml",
    )
    assert shipped == {"clickgym/py.typed"}.union(*map(files_in_package, suffixes))


@pytest.fixture(scope="module")
def sdist_names(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.mark.slow
def test_the_sdist_holds_what_the_tests_read(sdist_names):
    """All that is in the checkout, so that the tests pass in an unpacked sdist as well."""
    beside = {
        file.relative_to(ROOT)
        for name in BESIDE
        for file in (ROOT / name).rglob("*")
        if file.is_file()
    }
    wanted = {file.as_posix() for file in beside if "__pycache__" not in file.parts}
    assert wanted | set(FILES) <= sdist_names
    assert not [name for name in sdist_names if "__pycache__" in name]


@pytest.mark.slow
def test_the_sdist_holds_what_the_wheel_is_made_from(sdist_names):
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "src/clickgym/py.typed",
        "envs/__init__.py",
    } <= sdist_names
    assert {
        f"src/clickgym/{name}"
        for name in ("runner/reports/page.html", "core/page.css", "runner/reports/page.js")
    } <= sdist_names
    assert {
        f"envs/instances/{file.name}" for file in (ROOT / "envs" / "instances").glob("*.json")
    } <= sdist_names


@pytest.fixture(scope="module")
def clean_python(distributions, tmp_path_factory):
    """The interpreter of a new environment with the wheel installed.

    To stay fast and offline it borrows the dependencies of the environment that runs the tests,
    through a .pth file; such a file adds a folder but does not read the .pth files in it, so an
    editable clickgym stays invisible. Whether pip finds the dependencies by itself is therefore not
    tested here: `make` installs them in a fresh environment.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (wheel,) = distributions.glob("*.whl")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=folder,
    )
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(site, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


@pytest.mark.slow  # the quick tests look for each package in the list of those that are shipped
def test_the_wheel_works_in_a_clean_environment(clean_python):
    code = """
import json, gymnasium as gym, clickgym
env = gym.make("PBMRank-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
print(json.dumps([clickgym.__file__, clickgym.envs.__file__, env.unwrapped.model.n_items]))
"""
    folder = clean_python.parents[1]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    *files, n_items = json.loads(run(clean_python, "-c", code, cwd=folder, env=environment))
    assert all(Path(file).is_relative_to(folder) for file in files)
    assert n_items == 10
    assert "PBMRank-v0" in run(folder / "bin" / "clickgym", "list", cwd=folder, env=environment)


@pytest.mark.slow
def test_the_lab_adds_its_commands_to_the_library(clean_python, tmp_path):
    """Its wheel is made from its sdist and holds the package with its data."""
    folder = clean_python.parents[1]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [folder / "bin" / "clickgym", "study", "--list"]
    source = shutil.copytree(
        ROOT / "lab",
        tmp_path / "lab",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"),
    )
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, source, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    package = ROOT / "lab" / "src" / "clickgym_lab"
    files = {
        file.relative_to(package.parent).as_posix() for file in package.rglob("*") if file.is_file()
    }
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert shipped == {name for name in files if "__pycache__" not in name}
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        clean_python,
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=folder,
    )
    assert "zoghi-fig1" in run(*words, cwd=folder, env=environment)
    assert "--quick" in run(
        folder / "bin" / "clickgym", "bench", "--help", cwd=folder, env=environment
    )


def test_the_lab_is_pinned_to_the_library():
    version = PYPROJECT["project"]["version"]
    assert (LAB["project"]["version"], LAB["project"]["dependencies"]) == (
        version,
        [f"clickgym[report]=={version}"],
    )


def test_importing_is_light():
    heavy = {
        "torch",
        "matplotlib",
        "pandas",
        "scipy.stats",
        "stable_baselines3",
        "sb3_contrib",
        "PIL",
        "plotly",
        "jinja2",
    }
    code = f"import sys, clickgym; print(*sorted({heavy!r} & set(sys.modules)))"
    assert run(sys.executable, "-c", code).split() == []


def test_every_dependency_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"==[^*+]+", str(pin.specifier)) for pin in pins), (
        "exact versions, no local label"
    )
    project = PYPROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    pinned = {canonicalize_name(pin.name): pin for pin in pins}
    for requirement in map(Requirement, wanted):
        pin = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(str(pin.specifier).removeprefix("==")), (
            f"{pin} against {requirement}"
        )


@pytest.mark.parametrize("file", ["CHANGELOG.md", "CITATION.cff"])
def test_the_version_is_the_same_everywhere(file):
    version = re.escape(PYPROJECT["project"]["version"].removesuffix(".0"))
    assert re.search(
        rf"^(## |version: ){version}\b",
        (ROOT / file).read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )


TYPED = """
import gymnasium as gym
import clickgym
import clickgym_logs

table = clickgym.sweep(["PBMRank-v0"], ["Random"], 100, 1).frame
log: clickgym_logs.ClickLog = clickgym_logs.record(clickgym.agents.Random(10, 5, seed=0), gym.make("PBMRank-v0"), 5)
env = clickgym.envs.ClickEnv(clickgym.envs.PositionBasedModel([0.5], [1.0]))
clickgym_logs.replay(clickgym.agents.C2UCB(4, 2, n_features=5, seed=0), log)
clickgym.nonsense(3)
"""


@pytest.mark.slow
def test_a_type_checker_sees_the_public_names_and_no_others(tmp_path):
    (tmp_path / "clickgym").mkdir()
    folders = {
        name.rpartition(".")[2]: folder
        for name, folder in PACKAGE_FOLDERS.items()
        if name != "clickgym"
    }
    for name, target in folders.items() | {
        (file.name, file) for file in (ROOT / "src" / "clickgym").iterdir()
    }:
        (tmp_path / "clickgym" / name).symlink_to(ROOT / target)
    (tmp_path / "typed.py").write_text(TYPED, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--explicit-package-bases",
            "--follow-imports=silent",
            "typed.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[:-1] == [
        'typed.py:9: error: Module has no attribute "nonsense"  [attr-defined]'
    ], done.stdout
