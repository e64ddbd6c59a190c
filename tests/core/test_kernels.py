"""Compilation: what is kept on disk, when it is used again, and that it is never stale."""

from __future__ import annotations

import compileall
import errno
import importlib
import json
import os
import pickle
import py_compile
import shutil
import subprocess
import sys
import time
import tomllib
import warnings
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from slow import slow

import clickgym
from clickgym.agents import CompiledAgent
from clickgym.agents.kernels import kl, x_log_x
from clickgym.core import kernels
from clickgym.core.kernels import cache_folder, kernel, specialise
from clickgym.envs import CascadeModel, ClickEnv, KernelError, PositionBasedModel
from clickgym.envs.session import session

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]

PLAY = """
import json, warnings
from numba.core import event
from numba.core.dispatcher import LiftedCode
with warnings.catch_warnings(record=True) as caught, event.install_recorder("numba:compile") as recorder:
    warnings.simplefilter("always")
    from clickgym.envs import ClickEnv, PositionBasedModel, first
    from clickgym.core.kernels import cache_folder
    env = ClickEnv(PositionBasedModel([0.5, 0.25], [1.0, 1.0]))
    env.reset(seed=0)
    values = {
        "step": env.step([0, 1])[-1]["expected_reward"],
        "outer": first.outer(1.0),
        "apart": first.apart(1.0),
        "difference": first.difference(first.Pair(5.0, right=2.0, left=9.0)),
        "bound": first.bound(1.0),
        "looks_up": first.looks_up(1.0),
        "leaves": first.leaves(first.np.zeros(1)),
        "beyond": first.beyond(first.np.zeros(1)),
    }
# Also numba's own, which are never cached alone; not the parts that run in Python, of which numba keeps no machine code.
compiled = [each.data["dispatcher"] for _, each in recorder.buffer]
compiled = [each.py_func for each in compiled if not isinstance(each, LiftedCode)]
print(json.dumps({
    "file": __import__("clickgym").envs.__file__,
    "values": values,
    "folder": str(cache_folder()),
    "compiled": sorted({each.__name__ for each in compiled if each.__module__.startswith("clickgym.")}),
    "warnings": [str(warning.message) for warning in caught],
}))
"""
# Plays in copies of a process that has loaded what takes a new one most of its time: what the package imports, without it.
# They look for no garbage in that and do not take it down in the end, which would take longer than to play.
PLAY_IN_COPIES = """
import contextlib, gc, io, json, os, sys
import gymnasium, jinja2, numba.core.event, numpy, scipy
numba.njit(lambda rng, x: numpy.argsort(x)[0] + rng.random())(numpy.random.default_rng(0), numpy.ones(2))  # loads the compiler
gc.freeze()
for line in sys.stdin:
    script, package_parent, cache, copies = json.loads(line)
    for _ in range(copies):
        if not os.fork():
            os.environ["XDG_CACHE_HOME"] = cache
            sys.path.insert(0, package_parent)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(script, {"__name__": "__main__"})
            os.write(1, printed.getvalue().encode())  # at once: the copies share a pipe
            os._exit(0)
    for _ in range(copies):
        _, status = os.wait()
        if status:
            print(json.dumps(f"status {status}"), flush=True)
"""
# Kernels in three files, each of which calls one of the next, and one of every kind of thing that machine code depends on.
CHAIN = {
    "first": """
from typing import NamedTuple

import numpy as np
from numba import objmode

from . import second
from ..core.kernels import kernel, specialise
from .second import middle, plus, times

class Pair(NamedTuple):
    middle: float
    left: float
    right: float

@kernel
def outer(x):
    return middle(x) + 1.0

@kernel
def apart(x):
    return x - 1.0

@kernel
def difference(pair):
    return pair.left - pair.right

class Model:
    weigh = plus
    other = times

def template(x):
    return weigh(x)

bound = specialise(template, weigh=Model.weigh)

@kernel
def looks_up(x):
    return x + len(PAIRS)

PAIRS = ((1, 2.0), (3, 4.0))

def count(values):
    values[0] += 1.0

@kernel
def leaves(values):
    with objmode():
        count(values)
    return values[0]

@kernel
def beyond(values):
    return leaves(values) + 1.0
""",
    "second": """
from ..core.kernels import inner, kernel
from .third import lowest

@inner
def middle(x):
    return 2.0 * lowest(x)

@kernel
def plus(x):
    return x + 10.0

@kernel
def times(x):
    return x * 10.0
""",
    "third": """
from ..core.kernels import inner

SCALE = 4.0

@inner
def lowest(x):
    \"\"\"A docstring.\"\"\"
    return deepest(x) + 0.5

@inner
def deepest(x):
    return SCALE * x
""",
}
VALUES = {
    "step": 0.75,
    "outer": 10.0,
    "apart": 0.0,
    "difference": 7.0,
    "bound": 11.0,
    "looks_up": 3.0,
    "leaves": 1.0,
    "beyond": 2.0,
}


def play_in_a_new_process(package_parent, cache):
    """What callers and callees in several files give, and which of them had to be compiled."""
    environment = {**os.environ, "PYTHONPATH": str(package_parent), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", PLAY], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return of_the_copy(json.loads(done.stdout), package_parent)


def of_the_copy(result, package_parent):
    assert Path(result["file"]).is_relative_to(package_parent)
    return result


@pytest.fixture(scope="module")
def play_at_once():
    """As `play_in_a_new_process` in several processes at once, each at a tenth of its cost."""
    words = [sys.executable, "-B", "-c", PLAY_IN_COPIES]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def play_at_once(package_parent, cache, copies):
            print(json.dumps([PLAY, str(package_parent), str(cache), copies]), file=process.stdin, flush=True)
            return [of_the_copy(json.loads(process.stdout.readline()), package_parent) for _ in range(copies)]

        yield play_at_once
        process.stdin.close()


@pytest.fixture
def play(play_at_once):
    return lambda package_parent, cache: play_at_once(package_parent, cache, 1)[0]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A copy of the package with kernels of its own, and a cache that is filled by it; no test may change them."""
    parent, cache = tmp_path_factory.mktemp("original"), tmp_path_factory.mktemp("cache")
    for name, folder in sorted(FOLDERS.items()):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / folder, parent / Path(*name.split(".")), ignore=ignored)
    for name, source in CHAIN.items():
        (parent / "clickgym" / "envs" / f"{name}.py").write_text(source, encoding="utf-8")
    # Bytecode that is checked by the contents of the sources: an edit within a second, of the same size, is seen.
    compileall.compile_dir(parent, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    result = play_in_a_new_process(parent, cache)
    assert result["values"] == VALUES
    assert {"_session", "sample", "expected", "outer", "deepest", "apart", "template", "looks_up"} <= set(result["compiled"])
    assert result["warnings"] == []
    assert Path(result["folder"]).is_relative_to(cache)
    return parent, cache


@pytest.fixture
def package(original, tmp_path):
    """A copy of the package whose sources a test may change."""
    return shutil.copytree(original[0], tmp_path / "copy") / "clickgym"


@pytest.fixture
def cache(original, tmp_path):
    """A filled cache that a test may change."""
    return shutil.copytree(original[1], tmp_path / "cache")


def replace(file, old, new):
    source = file.read_text(encoding="utf-8")
    assert source.count(old) == 1
    file.write_text(source.replace(old, new), encoding="utf-8")


def test_a_second_process_compiles_nothing_whatever_is_edited_outside_of_kernels(play, package, cache):
    """Also from another folder, for the copy is not where the cache was filled."""
    replace(package / "envs" / "third.py", "A docstring.", "Another docstring,\n\n    of several lines.")
    replace(package / "envs" / "second.py", "@inner\n", "# a comment\n\n\n@inner\n")
    replace(package / "envs" / "first.py", "return x - 1.0", "return (\n        x  # why\n        - 1.0\n    )")
    replace(package / "envs" / "first.py", "class Model:\n", 'class Model:\n    """A model."""\n    unused = 3\n')
    replace(package / "runner" / "callback.py", "The callback of a sweep", "What listens to a sweep")
    (package / "envs" / "checks.py").open("a", encoding="utf-8").write("\n\ndef new():\n    return 1\n")
    for file in package.rglob("*.py"):
        os.utime(file, (0, 1_000_000_000))
    result = play(package.parent, cache)
    assert (result["values"], result["compiled"], result["warnings"]) == (VALUES, [], [])


DEEP = {"outer", "middle", "lowest", "deepest"}
EDITS = [  # in each row, of kernels that do not call one another: they are played at once, for it takes long to begin
    {
        "a kernel three calls deep": ("third", "return SCALE * x", "return SCALE * x + 1.0", {"outer": 12.0}, DEEP),
        "a tuple": ("first", "PAIRS = ((1, 2.0), ", "PAIRS = ((1, 2.0), (5, 6.0), ", {"looks_up": 4.0}, {"looks_up"}),
        "an option": ("first", "weigh=Model.weigh)", "weigh=Model.weigh, counted=True)", {}, {"template"}),
        "the order of fields": ("first", "left: float\n    right: float", "right: float\n    left: float", {}, {"difference"}),
    },
    {
        "a constant": ("third", "SCALE = 4.0", "SCALE = 5.0", {"outer": 12.0}, DEEP),
        "a bound attribute": ("first", "weigh = plus", "weigh = times", {"bound": 10.0}, {"template", "times"}),
        "the name of a field": ("first", "    middle: float", "    centre: float", {}, {"difference"}),
    },
    {
        "the type of a constant": ("third", "SCALE = 4.0", "SCALE = 4", {}, DEEP),
        "a bound kernel": ("second", "return x + 10.0", "return x + 20.0", {"bound": 21.0}, {"template", "plus"}),
    },
    {"a kernel between": ("second", "return 2.0 * lowest(x)", "return 3.0 * lowest(x)", {"outer": 14.5}, {"outer", "middle"})},
    {"a caller": ("first", "middle(x) + 1.0", "middle(x) + 2.0", {"outer": 11.0}, {"outer"})},
    {"which kernel is called": ("first", "middle(x) + 1.0", "plus(x) + 1.0", {"outer": 12.0}, {"outer"})},
]


@pytest.mark.parametrize("edits", [*EDITS[:3], *slow(*EDITS[3:5]), EDITS[5]], ids=", ".join)
def test_an_edit_is_seen_by_every_caller_and_by_no_other(play, package, cache, edits):
    wanted, stale = dict(VALUES), []
    for name, old, new, values, compiled in edits.values():
        replace(package / "envs" / f"{name}.py", old, new)
        wanted |= values
        stale += compiled
    result = play(package.parent, cache)
    assert (result["values"], sorted(result["compiled"])) == (wanted, sorted(stale))


def test_two_states_of_the_sources_stay_in_the_cache_side_by_side(play, original, package, cache):
    replace(package / "envs" / "third.py", "SCALE = 4.0", "SCALE = 5.0")
    replace(package / "envs" / "first.py", "weigh = plus", "weigh = times")
    assert play(package.parent, cache)["compiled"]
    for parent, values in ((original[0], VALUES), (package.parent, VALUES | {"outer": 12.0, "bound": 10.0})):
        again = play(parent, cache)
        assert (again["values"], again["compiled"], again["warnings"]) == (values, [], [])


def test_a_changed_callee_of_the_package_is_never_stale(play, package, cache):
    replace(package / "envs" / "position_based.py", "n_clicks += click\n", "n_clicks += 2.0 * click\n")
    result = play(package.parent, cache)
    assert result["values"] == VALUES | {"step": 1.5}
    assert set(result["compiled"]) == {"_session", "_sessions", "expected"}


def test_a_kernel_that_reads_what_has_no_key_is_compiled_each_time(play, package, cache):
    """As what a module of the package holds would have none."""
    replace(package / "envs" / "first.py", "return x - 1.0", "return second.plus(x) - 11.0")
    for _ in range(2):
        result = play(package.parent, cache)
        assert set(result["compiled"]) == {"apart"}


def test_a_function_that_a_kernel_calls_in_python_is_never_stale(play, package, cache):
    replace(package / "envs" / "first.py", "values[0] += 1.0", "values[0] += 2.0")
    replace(package / "envs" / "first.py", "leaves(values) + 1.0", "leaves(values) + 2.0")  # a caller, which reads the part
    result = play(package.parent, cache)
    assert result["values"] == VALUES | {"leaves": 2.0, "beyond": 4.0}
    assert (result["compiled"], result["warnings"]) == (["beyond"], [])


def test_every_kernel_of_the_package_has_a_key():
    for file in sorted(kernels._package_sources()):
        module = Path(file.relative_to(ROOT).as_posix().removeprefix("src/clickgym/")).with_suffix("")
        text = file.read_text(encoding="utf-8")
        if "@kernel" in text or "@inner" in text:
            members = vars(importlib.import_module(f"clickgym.{'.'.join(module.parts)}")).values()
            for compiled in [each for each in members if isinstance(each, Dispatcher)]:
                assert len(kernels._key(compiled)) == 64, compiled


def test_several_processes_fill_one_cache_at_once(play_at_once, package, tmp_path):
    for result in play_at_once(package.parent, tmp_path / "empty", 2):
        assert (result["values"], result["warnings"]) == (VALUES, [])
    (result,) = play_at_once(package.parent, tmp_path / "empty", 1)
    assert (result["values"], result["compiled"]) == (VALUES, [])
    assert {file.suffix for file in (tmp_path / "empty").rglob("*") if file.is_file()} == {".nbc", ""}, "no drafts"


def test_without_a_writable_folder_everything_works_and_one_warning_says_so(play, package, tmp_path):
    file = tmp_path / "file"
    file.touch()
    result = play(package.parent, file / "below")  # not even root can write below a file
    assert result["values"] == VALUES
    (message,) = result["warnings"]
    assert message.startswith(f"compiled kernels are not kept on disk: cannot write to {file}")
    assert message.endswith("unless XDG_CACHE_HOME names a folder that you alone may write")


def test_the_warning_about_the_cache_blames_the_line_that_called_the_package(tmp_path):
    (tmp_path / "file").touch()
    script = tmp_path / "script.py"
    script.write_text("from clickgym.agents import CascadeTS\n\nCascadeTS(3, 2, seed=0).rank()\n", encoding="utf-8")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "file" / "below")}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr.startswith(f"{script}:3: UserWarning: compiled kernels are not kept on disk: ")


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


def test_kernels_in_subfolders_count():
    folders = [ROOT / FOLDERS.get(f"clickgym.{name}", f"src/clickgym/{name}") for name in kernels.ROOMS]
    assert kernels._package_sources() == {path for folder in folders for path in folder.rglob("*.py")}


# what is not ours ----------------------------------------------------------------------------------------------------------


class Outside(NamedTuple):
    attraction: np.ndarray


def test_a_signature_with_a_type_from_outside_is_not_kept():
    class Local(NamedTuple):
        attraction: np.ndarray

    arrays = np.zeros(2), np.zeros((2, 2), np.int8), 1.0
    own = PositionBasedModel([0.5], [1.0]).parameters
    for value in (*arrays, own, (own, arrays), np.random.default_rng(0)):
        assert kernels._type(numba.typeof(value))
    for outside in (Outside(arrays[0]), Local(arrays[0]), (own, (Outside(arrays[0]),))):
        with pytest.raises(kernels._NoKeyError):
            kernels._type(numba.typeof(outside))
    compiled = kernels._compiled(x_log_x.py_func)
    assert compiled._cache._file((numba.typeof(own),), compiled.targetctx)
    assert compiled._cache._file((numba.typeof(Outside(arrays[0])),), compiled.targetctx) is None


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

    def compiled(function=x_log_x, arguments=(0.5,), anew=True):
        if anew:
            kernels._warnings.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = kernels._compiled(function.py_func)
            assert again(*arguments) == function(*arguments)
        told = [str(warning.message) for warning in caught]
        return sum(again.stats.cache_hits.values()), sum(again.stats.cache_misses.values()), told

    yield compiled
    kernels._warnings.clear()


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


@pytest.mark.parametrize("damage", [truncate, scramble, empty, change_machine_code, name_a_stranger])
def test_a_damaged_file_costs_a_compilation_and_a_warning(kept, tmp_path, damage):
    assert kept() == (0, 1, [])
    assert kept() == (1, 0, [])
    (file,) = tmp_path.rglob("*.nbc")
    damage(file)
    hits, misses, told = kept()
    assert (hits, misses) == (0, 1)
    assert [text.partition(":")[0] for text in told] == ["compiled kernels are not kept on disk"]
    assert kept() == (1, 0, [])


def test_an_unreadable_file_costs_a_compilation_each_time(kept, tmp_path):
    kept()
    (file,) = tmp_path.rglob("*.nbc")
    file.unlink()
    file.mkdir()
    for _ in range(2):
        hits, misses, told = kept()
        assert (hits, misses, len(told)) == (0, 1, 1)


def belong_to_another_user(path, monkeypatch):
    if os.getuid() == 0:
        os.chown(path, 12345, -1)
    else:
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)


def be_writable_by_the_group(path, monkeypatch):
    path.chmod(path.stat().st_mode | 0o020)


def be_writable_by_all(path, monkeypatch):
    path.chmod(path.stat().st_mode | 0o002)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps the caches of users apart")
@pytest.mark.parametrize("place", ["folder", "file"])
@pytest.mark.parametrize("let", [belong_to_another_user, be_writable_by_the_group, be_writable_by_all])
def test_nothing_is_read_that_another_user_may_write(kept, tmp_path, monkeypatch, let, place):
    """Whoever may write it knows the checksum, too: it is no secret."""
    kept()
    (file,) = tmp_path.glob("*.nbc")
    witness = tmp_path / "witness"
    payload = pickle.dumps(Touch(witness))
    file.write_bytes(kernels._checksum(file, payload) + payload)
    let(tmp_path if place == "folder" else file, monkeypatch)
    hits, misses, (told, *_) = kept()
    assert (hits, misses) == (0, 1)
    assert told.startswith(f"compiled kernels are not kept on disk: cannot read {file}: PermissionError")
    assert not witness.exists()


class Touch:
    """Unpickling it leaves a file behind."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return Path.touch, (self.witness,)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps the caches of users apart")
def test_only_the_user_may_read_what_is_written(kept, tmp_path, monkeypatch):
    before = os.umask(0)
    try:
        monkeypatch.setattr(kernels, "cache_folder", lambda: tmp_path / "kernels")
        assert kept() == (0, 1, [])
        assert kept() == (1, 0, [])
    finally:
        os.umask(before)
    (file,) = tmp_path.rglob("*.nbc")
    assert [path.stat().st_mode & 0o777 for path in (file.parent, file)] == [0o700, 0o600]
    file.parent.chmod(0o777)
    file.unlink()
    hits, misses, (told,) = kept()
    assert (hits, misses, list(tmp_path.rglob("*.nbc"))) == (0, 1, []), "nor is anything written there"
    assert "other users may write to" in told


def test_the_code_of_another_signature_is_not_used(kept, tmp_path):
    """Whatever brings it under a name that is not its own."""
    kept()
    (one,) = tmp_path.rglob("*.nbc")
    kept(arguments=(1,))
    (other,) = set(tmp_path.rglob("*.nbc")) - {one}
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
    assert not list(tmp_path.rglob("*.partial"))
    monkeypatch.undo()


def test_a_read_only_folder_is_read(kept, tmp_path, monkeypatch):
    def read_only(*arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    kept()
    (file,) = tmp_path.rglob("*.nbc")
    os.utime(file, (0, 0))
    for call in ("replace", "makedirs", "utime"):
        monkeypatch.setattr(os, call, read_only)
    monkeypatch.setattr(Path, "touch", read_only)
    assert kept() == (1, 0, [])
    hits, misses, told = kept(kl, (0.5, 0.25))
    assert (hits, misses, len(told)) == (0, 1, 1)


def test_what_nobody_uses_is_removed_by_age_only(kept, tmp_path, monkeypatch):
    folder = tmp_path / "kernels"
    monkeypatch.setattr(kernels, "cache_folder", lambda: folder)

    def grow_old(path, days):
        os.utime(path, (time.time() - days * 86400,) * 2)

    def names():
        return sorted(path.name for path in folder.iterdir() if path.suffix != ".nbc")

    def age_of_the_kernel():
        (file,) = folder.glob("x_log_x-*.nbc")
        return time.time() - file.stat().st_mtime

    assert kept() == (0, 1, [])
    assert names() == ["last-cleanup"]

    (file,) = folder.glob("*.nbc")
    for days, days_after_use in ((0.9, 0.9), (1.1, 0), (89, 0)):
        grow_old(file, days)
        assert kept() == (1, 0, [])
        assert age_of_the_kernel() == pytest.approx(days_after_use * 86400, abs=60), "used: young again, written once a day"
    (folder / "unused-0.nbc").touch()
    grow_old(folder / "unused-0.nbc", 91)
    kept(kl, (0.5, 0.25))
    assert (folder / "unused-0.nbc").exists(), "looked for only once a day"
    grow_old(folder / "last-cleanup", 1.1)
    kept(kl, (1, 1))
    assert names() == ["last-cleanup"]
    assert not (folder / "unused-0.nbc").exists()
    assert kept() == (1, 0, [])


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
    for way in ways if broken in (sorts, misspells) else ways[:2]:  # of the others no loop is compiled
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


@kernel
def halves(values):
    for i in range(len(values)):
        values[i] = values[i] / 2


@kernel
def halves_by(kernel_of_halves, values):
    halves(values)


def test_a_kernel_that_writes_floats_into_an_array_of_integers_is_refused_by_name():
    class State(NamedTuple):
        rate: np.ndarray

    @kernel
    def update(state):
        state.rate[0] = 0.5

    for cut in (np.arange(3), np.zeros(3, np.bool_)):
        with pytest.raises(KernelError) as caught:
            update(State(cut))
        assert str(caught.value).count("\n") == 0
        assert "update: line " in str(caught.value)
        assert f"writes a float into rate, an array of {'bool' if cut.dtype == bool else 'int64'}" in str(caught.value)
        assert not cut[0], "nothing was written"
        with pytest.raises(KernelError, match="writes a float into rate"):
            update(State(cut))  # the second time, too
    rate = np.arange(3.0)
    update(State(rate))
    assert rate[0] == 0.5
    with pytest.raises(KernelError, match="writes a float into values, an array of int64"):
        halves_by(0, np.arange(3))  # also in a kernel that it calls


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


# what kernels may do -------------------------------------------------------------------------------------------------------


@kernel
def halve(x, times):
    if times == 0:
        print("halved", x)
        return x
    return halve(x / 2.0, times - 1)


@kernel
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@kernel
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@kernel
def checked(x):
    if x < 0.0:
        raise ValueError("negative", 3)
    return x


@kernel
def second_of(pair, place):
    return pair[place]


@kernel
def calls_all(x):
    print("given", x)
    return checked(x) + halve(x, 2) + (1.0 if is_even(4) else 0.0) + second_of((1, x), 1)


@numba.njit
def plain(x):
    return checked(x) + 1.0


@kernel
def calls_plain(x):
    return plain(x)


def test_kernels_called_by_kernels_print_raise_and_recur_as_those_called_by_python(capfd):
    assert calls_all(4.0) == 4.0 + 1.0 + 1.0 + 4.0
    assert capfd.readouterr().out.split() == ["given", "4.0", "halved", "1.0"]
    assert (halve(2.0, 1), is_even(3), is_odd(3), checked(1.0), calls_plain(1.0)) == (1.0, False, True, 1.0, 2.0)
    for function in (checked, calls_all, calls_plain):
        with pytest.raises(ValueError, match="negative") as caught:
            function(-1.0)
        assert caught.value.args == ("negative", 3)


@pytest.mark.slow
def test_only_what_python_calls_is_translated_to_machine_code():
    assert calls_all(4.0)
    assert not second_of.overloads
    (part,) = second_of.part.overloads.values()
    assert part.library.get_pointer_to_function(part.fndesc.llvm_func_name) == 0
    assert second_of((1.0, 2.0), 1) == 2.0
    assert second_of.overloads
