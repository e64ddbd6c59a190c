"""Tests of what is shipped: one wheel, the cost of importing it, one version, pinned
dependencies.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.programs import output

ROOT = Path(__file__).resolve().parents[1]
FILE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = FILE["project"]


SESSION = """
import gymnasium as gym, clickgym
env = gym.make("PBMRank-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
print(clickgym.agents.__file__)
"""

STRICT_PROGRAM = """
import gymnasium as gym
import numpy as np
import clickgym
from clickgym import agents, envs

class Mine(agents.Agent):
    def __init__(self, n_items: int, n_positions: int) -> None:
        self.order = np.arange(n_items)[:n_positions]

    def rank(self, observation: object) -> np.ndarray:
        return self.order

    def update(self, *session: object) -> None: ...

recorded = clickgym.RecordRegret(gym.make("PBMRank-v0"))
result: clickgym.Result = clickgym.run(Mine, recorded, 100, seed=0)
results: clickgym.Results = clickgym.sweep(["PBMRank-v0"], ["CascadeTS"], horizon=100, runs=1)
learners: list[agents.Learner] = [agents.PPO(10, 5), agents.SAC(10, 5)]
compiled: list[agents.CompiledAgent] = [agents.CascadeTS(10, 5), agents.TopRank(10, 5, horizon=9)]
model: type[envs.ClickModel] = envs.CLICK_MODELS["PBM"]
print(results.table, recorded.result("mine"), envs.load_instance("yandex-9"), agents.FrozenPolicy)
"""
"""A program of a user who checks types strictly; it uses each kind of public name."""


@pytest.mark.slow
def test_wheel_in_a_clean_environment(tmp_path):
    """The sdist holds the repository without its links, and the wheel, made from the sdist, the
    package and its data; it plays, and has types. Both are made from a zip of the repository, in
    which the links ``envs`` and ``agents`` become text files, as in a clone on Windows.

    The dependencies are those of the present environment: a ``.pth`` file adds its folders, and the
    ``.pth`` files in them, such as that of an editable clickgym, are not read.
    """
    source, nobody = tmp_path / "source", ("-c", "user.name=nobody", "-c", "user.email=nobody")
    edits = output("git", *nobody, "stash", "create", cwd=ROOT).strip()  # a commit, and no stash
    output("git", "archive", f"--output={source}.zip", edits or "HEAD", cwd=ROOT)
    zipfile.ZipFile(f"{source}.zip").extractall(source)
    output(sys.executable, "-m", "build", "--no-isolation", source)
    tracked = {*filter(None, output("git", "ls-files", "-z", cwd=ROOT).split("\0"))}
    (sdist,) = (source / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked - names == {"envs", "agents"}
    (wheel,) = (source / "dist").glob("*.whl")
    names = {f"src/{name}" for name in zipfile.ZipFile(wheel).namelist()}
    packaged = {file for file in tracked if file.startswith("src/")}
    assert {name for name in names if ".dist-info/" not in name} == packaged

    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = output(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    borrowed = [folder for folder in sys.path if folder.endswith("site-packages")]
    Path(site, "borrowed.pth").write_text("\n".join(borrowed), encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--python", python)
    output(*pip, "install", "--no-deps", "--no-index", wheel)
    assert output(python, "-c", SESSION, cwd=tmp_path).startswith(site)
    assert "PBMRank-v0" in output(tmp_path / "venv" / "bin" / "clickgym", "list", cwd=tmp_path)
    program = tmp_path / "program.py"
    program.write_text(STRICT_PROGRAM, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")  # slow
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", python)
    output(*mypy, "--cache-dir", tmp_path / "mypy", program, cwd=tmp_path)


def test_import_loads_nothing_heavy():
    """Making a learner loads nothing heavy either."""
    pytest.importorskip("stable_baselines3")
    heavy = "{'torch', 'matplotlib', 'scipy.stats', 'stable_baselines3', 'PIL', 'jinja2'}"
    code = f"import sys, clickgym; clickgym.agents.PPO(10, 5); print(*{heavy} & set(sys.modules))"
    assert output(sys.executable, "-c", code).split() == []


def requirements():
    """What users install: the package alone and with extras."""
    extras = PROJECT["optional-dependencies"].values()
    yield from map(Requirement, sum(extras, start=PROJECT["dependencies"]))


def pins(file):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def test_every_dependency_is_pinned():
    exact = pins("constraints.txt")
    assert not re.search("[*+]", " ".join(exact.values())), "exact versions, no local label"
    versions = {canonicalize_name(name): version for name, version in exact.items()}
    groups = chain.from_iterable(FILE["dependency-groups"].values())
    for requirement in (*requirements(), *map(Requirement, groups)):
        version = versions[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, requirement


def test_lowest_versions():
    """lowest.txt contains the lower bounds for Python 3.11, which continuous integration tests."""
    assert pins("lowest.txt") == {
        requirement.name: bound.version
        for requirement in requirements()
        for bound in requirement.specifier
        if bound.operator == ">="
        and (not requirement.marker or requirement.marker.evaluate({"python_version": "3.11"}))
    }


def test_one_version():
    """Between two releases, CITATION.cff has the version of the last one."""
    version, _, is_unreleased = PROJECT["version"].partition(".dev")
    for file in ["CHANGELOG.md"] if is_unreleased else ["CHANGELOG.md", "CITATION.cff"]:
        text = (ROOT / file).read_text(encoding="utf-8")
        pattern = rf"^(## |version: ){version.removesuffix('.0')}\b"
        assert re.search(pattern, text, re.MULTILINE), file
