"""Tests of the kernel cache, and that an error in a kernel names its line."""

import gc
import importlib
import itertools
import sys
import time
import types
from collections import namedtuple
from functools import partial
from textwrap import dedent

import numpy as np
import pytest

import clickgym
from clickgym.core import statistics
from clickgym.core.kernels import KernelError, RepeatedCalls, cache_folder, clock, entry, kernel
from clickgym.runner.play.additional_metrics import make_metrics_kernel, measure_nothing
from tests.helpers.programs import output
from tests.helpers.slow import slow

numba = pytest.importorskip("numba")

FILES = {
    "constants_of_it": "FACTOR = 3.0\n",
    "package_of_it/__init__": "",
    "package_of_it/rules": """
        import numpy as np
        from clickgym.core.kernels import kernel

        TABLE = np.ones(2)

        @kernel
        def moved(x):
            return np.rint(x) + 0.0
    """,
    "callee_of_it": """
        from clickgym.core.kernels import kernel
        from constants_of_it import FACTOR
        from package_of_it.rules import TABLE, moved

        @kernel
        def scaled(x):
            return FACTOR * moved(TABLE[1] * x)
    """,
    "it": """
        from typing import NamedTuple
        import numpy as np
        from clickgym.core.kernels import entry, kernel
        from callee_of_it import scaled

        class State(NamedTuple):
            first: np.ndarray
            second: np.ndarray

        class Outer(NamedTuple):
            state: State

        @kernel
        def difference(state, i):
            return state.first[i] - state.second[i]

        def bound(function):
            @kernel
            def loop(outer, n):
                total = 0.0
                for i in range(n):
                    total += function(difference(outer.state, i))
                return total

            return loop

        def result():
            return entry(bound(scaled))(Outer(State(np.ones(4), np.zeros(4))), 4)
    """,
}
"""A user's modules: a kernel that calls others through a closure and through other files."""
RULES = "package_of_it/rules"


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Write the modules, with edits, and import them anew; return the result, and how many
    functions were compiled for it.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.syspath_prepend(tmp_path)

    def play(edits=()):
        texts = {name: dedent(text) for name, text in FILES.items()}
        for name, old, new in edits:
            assert old in texts[name]
            texts[name] = texts[name].replace(old, new)
        for name, text in texts.items():
            file = tmp_path / f"{name}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            sys.modules.pop(name.removesuffix("/__init__").replace("/", "."), None)
        importlib.invalidate_caches()
        before = _machine_codes()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)  # or two quick edits look the same
            result = importlib.import_module("it").result()
        return result, _machine_codes() - before

    return play


def _machine_codes():
    return len(list(cache_folder().glob("__pycache__/*.nbc")))


EDITS = {
    "constant": ("constants_of_it", "3.0", "5.0", 20.0),
    "fields": ("it", "first: np.ndarray\n    second:", "second: np.ndarray\n    first:", -12.0),
    "closure": ("it", "total = 0.0", "total = 1.0", 13.0),
    "array of a module": (RULES, "TABLE = np.ones", "TABLE = 2 * np.ones", 24.0),
    "kernel of a module in a package": (RULES, "+ 0.0", "+ 1.0", 24.0),
}
ELSEWHERE = {
    "comment": ("it", "def bound", "# a comment\n\ndef bound"),
    "other constant": ("constants_of_it", "FACTOR", "OTHER = 1\nFACTOR"),
}


def test_edits(play, monkeypatch):
    """An edit to anything that a kernel calls triggers compilation, undoing the edit finds the old
    version again, and an edit elsewhere compiles nothing. `NUMBA_BOUNDSCHECK=1` compiles
    separately.
    """
    assert play() == (12.0, 1)
    for name, (*edit, result) in EDITS.items():
        assert play([edit]) == (result, 1), name
    for name, edit in ELSEWHERE.items():
        assert play([edit]) == (12.0, 0), name
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert play() == (12.0, 1)


def test_folder_that_cannot_be_written(play, tmp_path):
    """Kernels still compile, and one warning tells what the missing cache costs."""
    (tmp_path / "cache").write_text("a file")
    with pytest.warns(UserWarning, match="cannot be saved to disk"):
        assert play() == (12.0, 0)


@numba.njit
def doubled(x):
    return 2.0 * x


@kernel
def calls_numba(x):
    return doubled(x)


@kernel
def reads_a_module(x):
    return x + statistics.CONFIDENCE


@pytest.mark.parametrize(("function", "result"), [(calls_numba, 2.0), (reads_a_module, 1.95)])
def test_code_of_unknown_content_is_not_kept(monkeypatch, tmp_path, function, result):
    """The kernel calls a function that only numba knows, or reads an attribute of a module outside
    any library.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert entry(function)(1.0) == result
    assert _machine_codes() == 0


STEPS_OF_ALL_KINDS = """
import gymnasium as gym
import clickgym
from numba.core.event import install_recorder

KINDS = {"PBMRank-v0": "TopRank", "ContextualPBMRank-v0": "C2UCB", "CascadeMDPRank-v0": "CascadeVI"}
with install_recorder("numba:compile") as compiled:
    for env_id, name in KINDS.items():
        for env in gym.make(env_id), gym.make_vec(env_id, num_envs=2):
            env.reset(seed=0)
            env.step(env.action_space.sample())
        agent = clickgym.make_agent(name, gym.make(env_id), horizon=10, seed=0)
        clickgym.run(agent, gym.make(env_id), 10, seed=0)
print(len(compiled.buffer))
"""


def test_second_process_compiles_nothing():
    """Steps, vector environments, spaces and runs of all kinds of environments load their kernels
    from disk.
    """
    first, second = (output(sys.executable, "-c", STEPS_OF_ALL_KINDS) for _ in range(2))
    assert first
    assert second == "0\n"


def test_who_waits_for_compilation_is_told_so_once(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    as_in_a_terminal = "import sys; sys.stdout.isatty, sys.stderr = lambda: True, sys.stdout; "
    two = (
        "from clickgym.core.kernels import entry; entry(lambda x: x)(1); entry(lambda x: x + 1)(1)"
    )
    assert output(sys.executable, "-c", as_in_a_terminal + two).count("compiling") == 1


REMOVED = [
    "import sys; sys.modules['numba'] = None",  # an import of it fails
    *slow("import numba.core.options; del numba.core.options.DefaultOptions"),  # compiles it all
]
REST = """
import clickgym
from clickgym.core.kernels import entry, kernel

@kernel
def halved(x):
    return x / 2

@kernel
def quartered(x):
    return halved(halved(x))

print(entry(quartered)(3.0), clickgym.run("Random", "PBMRank-v0", 300, seed=0).regret[-1].hex())
"""


@pytest.mark.parametrize("removed", REMOVED)
def test_digits_without_numba_or_its_undocumented_parts(removed):
    """Another version of numba may lack these parts (see docs/internals.md)."""
    regret = clickgym.run("Random", "PBMRank-v0", 300, seed=0).regret[-1]
    assert output(sys.executable, "-c", removed + REST) == f"0.75 {regret.hex()}\n"


@kernel
def halve(x):
    return 0.5 * x


def test_copies_of_kernels_in_a_worker_process(monkeypatch, tmp_path):
    """joblib sends the kernels of a script by value, so the worker has copies of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    copied = types.FunctionType(halve.__code__, globals(), "copied")
    copied.__dict__.update(vars(halve))

    @kernel
    def calls_a_copy(x):
        return copied(x)

    assert entry(calls_a_copy)(3.0) == 1.5


@kernel
def misspells(x):
    return halve(x).name


@kernel
def allocates(x):
    array = np.zeros(3)
    return array[0] + x


@kernel
def starts_a_list(x):
    rest = []
    return x + len(rest)


@kernel
def calls(x):
    return 1.0 + allocates(x)


@kernel
def undefined(x):
    return x + items  # noqa: F821


ERRORS = [
    (undefined, "kernel undefined: NameError: name 'items' is not defined$"),
    (misspells, r"line \d+ of \S+, 'return halve\(x\).name': Unknown attribute 'name'"),
    (starts_a_list, "kernel starts_a_list: the kernel creates an array, list"),
    (calls, r"line \d+ of \S+, 'array = np.zeros\(3\)': the kernel creates an array"),
]
"""A kernel, and the error message it causes."""


@pytest.mark.parametrize(("function", "message"), ERRORS)
def test_error_says_where_and_why(function, message):
    for call in entry(function), partial(RepeatedCalls(), function):
        with pytest.raises(KernelError, match=f"^a kernel does not compile: {message}") as error:
            call(1.0)
        assert "\n" not in str(error.value)


def test_error_names_the_kernel_that_clickgym_calls():
    with pytest.raises(KernelError, match=r"compile: kernel undefined: .*too many.*arguments\"\.$"):
        entry(make_metrics_kernel(undefined, 3, measure_nothing))((None,), 0, 0, 0.0, np.zeros(4))


@kernel
def adds(total, rng):
    if total[0] < 0.0:
        raise ValueError("below zero")
    total[0] += rng.random()
    return total[0]


def test_time_without_compilation(monkeypatch):
    """The compilation time of every kernel is subtracted, with the collection of the garbage that
    compiling leaves. In this test, every reading of the clock and every collection take one second.
    """
    ticks = map(float, itertools.count())
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    left_out = []
    gc.callbacks.append(lambda phase, info: next(ticks) if phase == "start" else None)
    for _ in range(3):

        @kernel
        def new(x):
            return x

        entry(new)(1.0)
        left_out.append(time.perf_counter() - clock())
    gc.callbacks.pop()
    assert np.diff(left_out).tolist() == [2, 2]


def test_repeated_calls():
    """Repeated calls see what arrays contain now, accept other arrays, continue after an error, and
    store only the last arguments.
    """
    calls, uniforms = RepeatedCalls(), np.random.default_rng(0).random(4)
    rng, one, other = np.random.default_rng(0), np.zeros(1), np.ones(1)
    before = sys.getrefcount(one)
    assert calls(adds, one, rng) == uniforms[0]
    assert calls(adds, one, rng) == one[0] == uniforms[:2].sum()
    assert calls(adds, other, rng) == 1.0 + uniforms[2]
    assert sys.getrefcount(one) == before
    other[0] = -1.0
    with pytest.raises(ValueError, match="below zero"):
        calls(adds, other, rng)
    other[0] = 2.0
    assert calls(adds, other, rng) == 2.0 + uniforms[3]


@kernel
def first_of(state):
    return state.x[0]


def test_classes_with_one_name():
    """Classes of states that have the same name and fields, as after a cell of a notebook ran
    twice, each get their own compiled version.
    """
    calls = RepeatedCalls()
    for value in 1.0, 2.0:
        state = namedtuple("State", "x")(np.array([value]))
        assert calls(first_of, state) == entry(first_of)(state) == value
