"""Compilation: what is kept on disk, when it is used again, and that it is never stale."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
import tomllib
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import clickgym
from clickgym.agents import CompiledAgent
from clickgym.agents.kernels import kl, x_log_x
from clickgym.core import kernels
from clickgym.core.kernels import cache_folder, kernel, specialise
from clickgym.envs import CascadeModel, ClickEnv, KernelError, PositionBasedModel
from clickgym.envs.click_env import session

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]

STEP = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from clickgym.envs import ClickEnv, PositionBasedModel
    from clickgym.envs.click_env import session
    from clickgym.core.kernels import cache_folder
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


# what is not ours ----------------------------------------------------------------------------------------------------------


class Outside(NamedTuple):
    attraction: np.ndarray


def test_a_signature_with_a_type_from_outside_is_not_kept():
    class Local(NamedTuple):
        attraction: np.ndarray

    arrays = np.zeros(2), np.zeros((2, 2), np.int8), 1.0
    own = PositionBasedModel([0.5], [1.0]).parameters
    types = [numba.typeof(value) for value in (*arrays, own, (own, arrays), np.random.default_rng(0))]
    assert kernels._is_own(tuple(types))
    for outside in (Outside(arrays[0]), Local(arrays[0]), (own, (Outside(arrays[0]),))):
        assert not kernels._is_own((*types, numba.typeof(outside)))


@pytest.mark.parametrize("file", ["<stdin>", "/tmp/ipykernel_7/1.py", "envs/position_based.py", __file__])
def test_a_kernel_that_came_by_value_is_foreign(file):
    """As worker processes get it: made anew from its code, not by `kernel`."""
    names = {"__name__": "__main__"}
    exec(compile("def expected(parameters, ranking, reward, cutoff, scratch): return 42.0", file, "exec"), names)
    sent = kernel(names["expected"])._reduce_states() | {"uuid": f"of another process, {file}"}

    class Answer(PositionBasedModel):
        expected_kernel = numba.core.registry.CPUDispatcher._rebuild(**sent)

    own = Path(file).resolve() in kernels._package_sources()  # only where the working folder is that of the sources
    assert (session(Answer([0.5], [1.0])).stats.cache_path is None) != own


# a damaged cache -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Compiles a kernel of the package anew, as another process would, in a folder of its own: hits, misses, warnings."""
    monkeypatch.setattr(kernels, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(kernels, "_cache_is_writable", lambda: True)

    def compiled(function=x_log_x, arguments=(0.5,), anew=True):
        if anew:
            kernels._warned.cache_clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = kernels._compiled(function.py_func, foreign=False)
            assert again(*arguments) == function(*arguments)
        told = [str(warning.message) for warning in caught]
        return sum(again.stats.cache_hits.values()), sum(again.stats.cache_misses.values()), told

    yield compiled
    kernels._warned.cache_clear()


def truncate(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scramble(file):
    file.write_bytes(np.random.default_rng(0).bytes(file.stat().st_size))


def change_machine_code(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(content)


def empty(file):
    file.write_bytes(b"")


def name_a_stranger(file):
    file.write_bytes(pickle.dumps(numba.__version__) + b"cno_such_module\nThing\n.")


@pytest.mark.parametrize(
    ("ending", "damage"),
    [*((ending, damage) for ending in ("nbi", "nbc") for damage in (truncate, scramble, empty)),
     ("nbc", change_machine_code), ("nbi", name_a_stranger)],
)  # fmt: skip
def test_a_damaged_file_costs_a_compilation_and_a_warning(kept, tmp_path, ending, damage):
    assert kept() == (0, 1, [])
    assert kept() == (1, 0, [])
    (file,) = tmp_path.rglob(f"*.{ending}")
    damage(file)
    hits, misses, told = kept()
    assert (hits, misses) == (0, 1)
    assert [text.partition(":")[0] for text in told] == ["compiled kernels are not kept on disk"]
    assert kept() == (1, 0, [])


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_an_unreadable_file_costs_a_compilation_each_time(kept, tmp_path, ending):
    kept()
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.unlink()
    file.mkdir()
    for _ in range(2):
        hits, misses, told = kept()
        assert (hits, misses, len(told)) == (0, 1, 1)


def test_the_code_of_another_signature_is_not_used(kept, tmp_path):
    """What a full disk leaves: the index is new, the file under its number is not."""
    kept()
    kept(arguments=(1,))
    one, other = sorted(tmp_path.rglob("*.nbc"))
    shutil.copy(other, one)
    hits, misses, told = kept()
    assert (hits, misses, len(told)) == (0, 1, 1)


@pytest.mark.parametrize("call", ["replace", "makedirs"])
def test_a_full_disk_costs_one_warning_in_all(kept, tmp_path, monkeypatch, call):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    hits, misses, (told,) = kept()
    assert (hits, misses) == (0, 1)
    assert told.startswith("compiled kernels are not kept on disk: cannot write to")
    assert kept(kl, (0.5, 0.25), anew=False) == (0, 1, []), "the second kernel says nothing"
    assert not list(tmp_path.rglob("*.nb?")), "nor does it write anywhere else"
    monkeypatch.undo()


def test_folders_of_other_sources_are_removed_by_age_only(tmp_path, monkeypatch):
    used = tmp_path / "kernels-0"
    ages = {"kernels-1": 91, "kernels-2": 89, "kernels-3": 0, "else": 1000}
    for name, days in ages.items():
        (tmp_path / name / "envs").mkdir(parents=True)
        os.utime(tmp_path / name, (time.time() - days * 86400,) * 2)
    monkeypatch.setattr(kernels, "cache_folder", lambda: used)
    assert kernels._cache_is_writable.__wrapped__()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["else", "kernels-0", "kernels-2", "kernels-3"]
    os.utime(used, (0, 0))
    os.utime(tmp_path / "kernels-2", (0, 0))
    assert kernels._cache_is_writable.__wrapped__()
    assert used.stat().st_mtime > time.time() - 60, "whoever uses it makes it young"
    assert (tmp_path / "kernels-2").exists(), "looked for only when a folder is made"


# what is wrong with a kernel -----------------------------------------------------------------------------------------------


@numba.njit
def order_of(values):
    return np.argsort(values)


@kernel
def sorts(parameters, ranking, uniforms, clicks, examined):
    return np.argsort(parameters.attraction)[0]


@kernel
def makes(parameters, ranking, uniforms, clicks, examined):
    value = 0.0
    return int(value + np.zeros(3)[0])


@kernel
def lists(parameters, ranking, uniforms, clicks, examined):
    found = [1, 2]
    return len(found)


@kernel
def calls(parameters, ranking, uniforms, clicks, examined):
    return order_of(parameters.attraction)[0]


@kernel
def misspells(parameters, ranking, uniforms, clicks, examined):
    return parameters.atraction[0] > 0.5


@kernel
def reaches(parameters, ranking, uniforms, clicks, examined):
    return len(ranking) + misspells(parameters, ranking, uniforms, clicks, examined)


ALLOCATES = "makes an array, list or string, but a kernel allocates nothing: its working memory is an argument"


@pytest.mark.parametrize(
    ("broken", "where", "code", "rule"),
    [
        (sorts, "sorts", "np.argsort", ALLOCATES),
        (makes, "makes", "np.zeros(3)", ALLOCATES),
        (lists, "lists", "[1, 2]", ALLOCATES),
        (calls, "calls", "order_of", ALLOCATES),
        (misspells, "misspells", "atraction", "does not compile: "),
        (reaches, "misspells", "atraction", "does not compile: "),
    ],
)
def test_a_broken_kernel_is_named_with_its_line_and_the_rule(broken, where, code, rule):
    class Broken(PositionBasedModel):
        sample_kernel = broken

    env = ClickEnv(Broken([0.5, 0.25], [1.0]))
    ways = [
        lambda: env.step([0]) if env.reset(seed=0) else None,
        lambda: env.model.sample([0], np.random.default_rng(0)),
        lambda: clickgym.run(clickgym.make_agent("Random", env, seed=0), env, 10, seed=0),
        lambda: clickgym.run(clickgym.make_agent("TopRank", env, seed=0, horizon=10), env, 10, seed=0),
    ]
    for way in ways:
        with pytest.raises(KernelError) as caught:
            way()
        message = str(caught.value)
        assert message.startswith(f"kernel {__name__}:{where}: line ")
        assert message.count("\n") == 0
        assert code in message
        assert rule in message
        assert caught.value.__cause__ is None
        assert pickle.loads(pickle.dumps(caught.value)).args == (message,)


def test_a_kernel_of_other_arguments_is_named_where_the_package_calls_it():
    class Broken(PositionBasedModel):
        @kernel
        def sample_kernel(parameters, ranking):
            return -1

    env = ClickEnv(Broken([0.5, 0.25], [1.0]))
    env.reset(seed=0)
    with pytest.raises(KernelError, match=r"session\w*, which calls .*Broken.sample_kernel: line .* does not compile: "):
        env.step([0])


def test_what_a_kernel_cannot_read_is_named():
    with pytest.raises(KernelError, match="'parameters' holds something else than numbers and arrays"):
        misspells(object(), np.arange(2), np.zeros(2), np.zeros(2, np.int8), np.zeros(2, np.int8))


def test_plain_functions_given_as_kernels_are_compiled():
    def sample(parameters, ranking, uniforms, clicks, examined):
        clicks[:] = 1
        return -1

    class Clicker(PositionBasedModel):
        sample_kernel = sample

        def expected_kernel(parameters, ranking, reward, cutoff, scratch):
            return 42.0

    class Fixed(CompiledAgent):
        def __init__(self, n_items, n_positions, *, seed=None):
            super().__init__(n_items, n_positions, seed)

        def _initial_state(self):
            return Outside(np.zeros(1))

        def rank_kernel(state, rng, ranking):
            for k in range(len(ranking)):
                ranking[k] = k

        @staticmethod
        def update_kernel(state, ranking, clicks):
            state.attraction[0] += clicks[0]

    env = ClickEnv(Clicker([0.5, 0.25], [1.0]))
    agent = Fixed(2, 1)
    result = clickgym.run(agent, env, 10, seed=0)
    assert (result.engine, agent.state.attraction[0]) == ("compiled", 10)
    assert env.model.expected_reward([0]) == 42.0


def test_what_is_no_function_is_refused_where_the_class_is_made():
    with pytest.raises(KernelError, match=r"Broken: sample_kernel is 3; expected a kernel"):

        class Broken(PositionBasedModel):
            sample_kernel = 3

    with pytest.raises(KernelError, match=r"expected is <function .*; expected a kernel: decorate it"):
        specialise(_caller, expected=lambda *arguments: 0.0)
