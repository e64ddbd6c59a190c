"""Compilation: what is kept on disk, when it is used again, and that it is never stale."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import pytest

from clickgym.envs import CascadeModel, PositionBasedModel, kernels
from clickgym.envs.click_env import session
from clickgym.envs.kernels import cache_folder, kernel, specialise

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]

STEP = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from clickgym.envs import ClickEnv, PositionBasedModel
    from clickgym.envs.click_env import session
    from clickgym.envs.kernels import cache_folder
    env = ClickEnv(PositionBasedModel([0.5, 0.25], [1.0, 1.0]))
    env.reset(seed=0)
    info = env.step([0, 1])[-1]
stats = session(env.model).stats
print(json.dumps({
    "file": __import__("clickgym").envs.__file__,
    "value": info["expected_reward"],
    "folder": str(cache_folder()),
    "loaded": sum(stats.cache_hits.values()),
    "compiled": sum(stats.cache_misses.values()),
    "warnings": [str(warning.message) for warning in caught],
}))
"""


def step_in_a_new_process(package_parent, cache):
    """The expected reward of a list, from a caller (the session) and its callee (the model's kernel) in two files."""
    environment = {**os.environ, "PYTHONPATH": str(package_parent), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", STEP], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert Path(result["file"]).is_relative_to(package_parent)
    return result


@pytest.fixture
def package(tmp_path):
    """A copy of the package whose sources a test may change."""
    parent = tmp_path / "copy"
    for name, folder in sorted(FOLDERS.items()):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / folder, parent / Path(*name.split(".")), ignore=ignored)
    return parent / "clickgym"


def test_a_second_process_compiles_nothing_and_a_changed_callee_is_never_stale(package, tmp_path):
    cache = tmp_path / "cache"
    first = step_in_a_new_process(package.parent, cache)
    assert first["value"] == 0.75
    assert (first["loaded"], first["compiled"], first["warnings"]) == (0, 1, [])
    assert Path(first["folder"]).is_relative_to(cache)

    again = step_in_a_new_process(package.parent, cache)
    assert (again["loaded"], again["compiled"]) == (1, 0)
    assert (again["value"], again["folder"]) == (0.75, first["folder"])

    callee = package / "envs" / "position_based.py"
    source = callee.read_text(encoding="utf-8")
    assert source.count("n_clicks += click\n") == 1
    callee.write_text(source.replace("n_clicks += click\n", "n_clicks += 2.0 * click\n"), encoding="utf-8")
    changed = step_in_a_new_process(package.parent, cache)
    assert changed["value"] == 1.5
    assert changed["folder"] != first["folder"]

    callee.write_text(source, encoding="utf-8")
    restored = step_in_a_new_process(package.parent, cache)
    assert (restored["value"], restored["folder"]) == (0.75, first["folder"])


def test_without_a_writable_folder_everything_works_and_one_warning_says_so(package, tmp_path):
    file = tmp_path / "file"
    file.touch()
    result = step_in_a_new_process(package.parent, file / "below")  # not even root can write below a file
    assert result["value"] == 0.75
    (message,) = result["warnings"]
    assert message.startswith(f"compiled kernels are not kept on disk: cannot write to {file}")


@kernel
def foreign(parameters, ranking, reward, cutoff, scratch):
    return 42.0


def test_kernels_from_outside_the_package_are_not_kept_on_disk():
    assert foreign(None, None, 0, 1, None) == 42.0
    assert foreign.stats.cache_path is None
    bound = specialise(_caller, expected=foreign)
    assert bound(None) == 42.0
    assert bound.stats.cache_path is None


def _caller(parameters):
    return expected(parameters, None, 0, 1, None)  # noqa: F821  an open name


def test_a_package_template_bound_to_a_foreign_kernel_is_not_kept_on_disk():
    class Answer(PositionBasedModel):
        expected_kernel = foreign

    model = Answer([0.5], [1.0])
    assert session(model).stats.cache_path is None
    own = session(PositionBasedModel([0.5], [1.0])).stats.cache_path
    assert own is None or Path(own).is_relative_to(cache_folder())  # None: this machine's folder is not writable


def test_specialising_gives_one_function_for_the_same_kernels():
    pbm = PositionBasedModel([0.5], [1.0])
    assert session(pbm) is session(PositionBasedModel([0.1, 0.2], [0.3]))
    assert session(pbm) is not session(CascadeModel([0.5], 1))
    assert session(pbm).py_func.__qualname__ != session(CascadeModel([0.5], 1)).py_func.__qualname__


def test_threads_do_not_change_the_cache_folder_under_each_other(monkeypatch):
    seen = []

    def slow_njit(**options):
        def compiled(function):
            before = numba.config.CACHE_DIR
            time.sleep(0.005)
            seen.append((before, numba.config.CACHE_DIR))
            return function

        return compiled

    monkeypatch.setattr(kernels, "njit", slow_njit)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda function: kernels._compiled(function, foreign=False), [len] * 16))
    assert set(seen) == {(str(cache_folder()), str(cache_folder()))}


def test_kernels_in_subfolders_count_and_are_told_apart_by_their_folders():
    sources = {file.relative_to(kernels._root()) for file in kernels._package_sources()}
    expected = {
        path.relative_to(ROOT) for name in ("envs", "agents", "runner", "offline") for path in (ROOT / name).rglob("*.py")
    }
    assert sources == expected
