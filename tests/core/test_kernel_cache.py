"""The cache of kernels keeps its promises, and an error in a kernel names the kernel and the
line.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import time
from textwrap import dedent

import numba
import numpy as np
import pytest

import clickgym
from clickgym.core import parts
from clickgym.core.kernels import KernelError, cache_folder, clock, entry, kernel
from clickgym.envs import Instance, PositionBasedModel

FILES = {
    "constants_of_it": "FACTOR = 3.0\n",
    "package_of_it/__init__": "",
    "package_of_it/rules": """
        from enum import Enum
        import numba
        import numpy as np
        from clickgym.core.kernels import kernel

        SCALE = 1.0
        TABLE = np.ones(2)

        class Weight(Enum):
            ONE = 1.0

        @kernel
        def moved(x):
            return x + 0.0

        @kernel
        def by_default(x):
            return 1.0 * x

        @kernel
        def other(x):
            return 1.0 * x

        STEPS = (0.0, 1.0)
    """,
    "callee_of_it": """
        import package_of_it.rules
        import package_of_it.rules as known
        from clickgym.core.kernels import kernel
        from constants_of_it import FACTOR

        @kernel
        def scaled(x, by=1.0, then=known.by_default):
            x = known.SCALE * known.TABLE[1] * known.Weight.ONE.value * known.STEPS[1] * then(x)
            x = package_of_it.rules.moved(known.other(x))
            return FACTOR * x * by
    """,
    "it": """
        from typing import NamedTuple
        import numpy as np
        from clickgym.core.kernels import entry, kernel
        from callee_of_it import scaled

        class State(NamedTuple):
            first: np.ndarray
            second: np.ndarray

        @kernel
        def difference(state, i):
            return state.first[i] - state.second[i]

        def bound(function):
            @kernel
            def loop(state, n):
                total = 0.0
                for i in range(n):
                    total += function(difference(state, i))
                return total

            return loop

        def result():
            return entry(bound(scaled))(State(np.ones(4), np.zeros(4)), 4)
    """,
}
"""Modules of a user: a kernel that reaches others through a closure and through other files."""
RULES = "package_of_it/rules"


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Write the modules, with edits, and import them anew; the result, and how many functions were
    compiled for it.
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
            patch.setattr(sys, "dont_write_bytecode", True)  # or two edits in one second were one
            result = importlib.import_module("it").result()
        return result, _machine_codes() - before

    return play


def _machine_codes():
    return len(list(cache_folder().glob("__pycache__/*.nbc")))


EDITS = {
    "constant": ("constants_of_it", "3.0", "5.0", 20.0),
    "callee": ("callee_of_it", "FACTOR * x", "FACTOR + x", 16.0),
    "default": ("callee_of_it", "by=1.0", "by=2.0", 24.0),
    "fields": (
        "it",
        "    first: np.ndarray\n    second",
        "    second: np.ndarray\n    first",
        -12.0,
    ),
    "kernel": ("it", "state.first[i] - ", "2.0 * state.first[i] - ", 24.0),
    "closure": ("it", "total = 0.0", "total = 1.0", 13.0),
    "number of a module": (RULES, "SCALE = 1.0", "SCALE = 2.0", 24.0),
    "array of a module": (RULES, "TABLE = np.ones", "TABLE = 2 * np.ones", 24.0),
    "enumeration of a module": (RULES, "ONE = 1.0", "ONE = 2.0", 24.0),
    "kernel of a module in a package": (RULES, "x + 0.0", "x + 1.0", 24.0),
    "function as a default": (
        RULES,
        "default(x):\n    return 1",
        "default(x):\n    return 2",
        24.0,
    ),
    "number in a tuple": (RULES, "STEPS = (0.0, 1.0)", "STEPS = (0.0, 2.0)", 24.0),
    "kernel of a module": (RULES, "other(x):\n    return 1", "other(x):\n    return 2", 24.0),
}
ELSEWHERE = {
    "comment": ("it", "def bound", "# a comment\n\ndef bound"),
    "docstring": ("it", "        total = 0.0", '        """A docstring."""\n        total = 0.0'),
    "other kernel": ("it", "def bound", "@kernel\ndef another(x):\n    return x\n\ndef bound"),
    "other constant": ("constants_of_it", "FACTOR", "OTHER = 1\nFACTOR"),
    "other constant of a module": (RULES, "SCALE", "OTHER = 1\nSCALE"),
}


def test_edit_of_a_kernel(play):
    """An edit of anything that a kernel reaches is seen, and what was compiled before is found
    again.
    """
    assert play() == (12.0, 1)
    for name, (*edit, result) in EDITS.items():
        assert play([edit]) == (result, 1), name
        assert play() == (12.0, 0), name
        assert play([edit]) == (result, 0), name


def test_edit_elsewhere(play):
    """An edit of what a kernel does not reach compiles nothing, and the modules are those of a
    user.
    """
    assert play() == (12.0, 1)
    for name, edit in ELSEWHERE.items():
        assert play([edit]) == (12.0, 0), name


OTHER = "@kernel\ndef other"
UNKNOWN = [
    (
        "number of a module",
        ("callee_of_it", "x = known.SCALE", "it = known\n    x = it.SCALE"),
    ),
    *(
        ("kernel of a module", (RULES, OTHER, f"{decorator}\ndef other"))
        for decorator in (
            "@numba.vectorize",
            "@numba.njit",
            '@numba.njit(locals={"x": numba.float64})',
            '@numba.njit("float64(float64)")',
            "@numba.extending.register_jitable(error_model='numpy')",
        )
    ),
]
"""An edit in `EDITS` that the key would miss, and what makes a kernel read it in another way."""


@pytest.mark.parametrize(("name", "way"), UNKNOWN)
def test_kernel_that_reads_the_unknown(play, name, way):
    """It is compiled in every process, so that an edit runs new code there, too."""
    *edit, result = EDITS[name]
    assert play([way]) == (12.0, 0)
    assert play([way, edit]) == (result, 0)


def test_kernel_that_moved(tmp_path, monkeypatch):
    """The same code elsewhere names its own module and its own file when it raises."""
    code = """
        from clickgym.core.kernels import entry, kernel

        @kernel
        def refuse(x):
            if x > 0.0:
                raise ValueError("too large")
            return x
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for place in ("a/it.py", "a/that.py", "b/it.py"):
        file = tmp_path / place
        file.parent.mkdir(exist_ok=True)
        file.write_text(dedent(code))
        sys.modules.pop(file.stem, None)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(file.parent)
            module = importlib.import_module(file.stem)
        with pytest.raises(ValueError, match="too large") as error:
            entry(module.refuse)(1.0)
        last = error.traceback[-1]
        assert (str(last.path), last.lineno + 1, last.name) == (str(file), 7, "refuse")
        file.unlink()


def test_clock_stands_still_while_kernels_compile(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing comes from the disk

    @kernel
    def total(values):
        result = 0.0
        for value in values:
            result += value
        return result

    wall, counted = time.perf_counter(), clock()
    assert entry(total)(np.ones(3)) == 3.0
    assert clock() - counted < 0.1 * (time.perf_counter() - wall)


def test_folder_that_cannot_be_written(play, tmp_path):
    """Kernels are compiled all the same, and one warning says what it costs."""
    (tmp_path / "cache").write_text("a file")
    with pytest.warns(UserWarning, match="not kept on disk"):
        assert play() == (12.0, 0)


def doubled():
    """Call a new kernel, which finds its machine code on disk if it is there."""

    @kernel
    def double(x):
        return 2.0 * x

    return entry(double)(3.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the cache, with one kernel in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert doubled() == 6.0
    return cache_folder()


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_truncated_entry(folder, kind):
    """It is compiled again, and a warning names the folder."""
    [file] = folder.glob(f"__pycache__/*.{kind}")
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=f"you can delete {re.escape(str(folder))}"):
        assert doubled() == 6.0


def test_without_parts(play, monkeypatch):
    """Where numba lacks what parts rely on, kernels are compiled by its documented door."""
    monkeypatch.setattr(parts, "SHORT", False)
    assert play() == (12.0, 1)


def test_state_of_main(program, tmp_path, monkeypatch):
    """A state of a script is compiled in memory: its class cannot be found by its name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = dedent(FILES["it"]).replace(
        "from callee_of_it import scaled", "scaled = kernel(lambda x: 3.0 * x)"
    )
    file = tmp_path / "script.py"
    file.write_text(f"{script}\nprint(result())\n")
    assert program(file, folder=tmp_path) == "12.0\n"
    assert not list((tmp_path / "cache").rglob("*.nbc"))


def test_value_that_changes_in_the_process(play):
    """The process goes on with the old value. Another one, whose file has the new value, does not
    find what this one compiled.
    """
    assert play() == (12.0, 1)
    sys.modules["callee_of_it"].FACTOR = 5.0
    assert sys.modules["it"].result() == 12.0
    constant = "constants_of_it", "3.0", "5.0"
    assert play([constant]) == (20.0, 1)
    assert play([constant]) == (20.0, 0)


def test_value_that_changes_after_a_kernel_that_is_not_kept(play):
    play()
    module, unknown = importlib.reload(sys.modules["callee_of_it"]), numba.njit(lambda x: x)
    scaled, before = module.scaled, _machine_codes()
    assert entry(kernel(lambda x: unknown(scaled(x))))(1.0) == 3.0
    module.FACTOR = 5.0
    assert entry(kernel(lambda x: scaled(x) + 1.0))(1.0) == 4.0
    assert _machine_codes() == before


def test_value_that_comes_back(play):
    """It was read from disk first, so another value was the first that was compiled."""
    play()
    play()
    module = sys.modules["callee_of_it"]
    scaled, before = module.scaled, _machine_codes()
    module.FACTOR = 5.0
    assert entry(kernel(lambda x: scaled(x) + 1.0))(1.0) == 6.0
    module.FACTOR = 3.0
    assert entry(kernel(lambda x: scaled(x) + 2.0))(1.0) == 7.0
    assert _machine_codes() == before


STEPS_OF_ALL_KINDS = """
import gymnasium as gym
import clickgym
from numba.core.event import install_recorder

KINDS = {"PBMRank-v0": "TopRank", "ContextualCMRank-v0": "C2UCB", "CascadeMDPRank-v0": "CascadeVI"}
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
    """Steps, vectors, spaces and runs of all kinds of environments find their kernels on disk."""
    command = [sys.executable, "-c", STEPS_OF_ALL_KINDS]
    first, second = (subprocess.run(command, stdout=-1, check=True) for _ in range(2))
    assert first.stdout
    assert second.stdout == b"0\n"


OF_A_USER = """
from typing import Annotated, NamedTuple
import user_rules
from clickgym.agents import CompiledAgent
from clickgym.core.state import Ints

class State(NamedTuple):
    updates: Annotated[Ints, "1"]

def rank(state, rng, ranking):
    for position in range(len(ranking)):
        ranking[position] = user_rules.item_at(position)

def update(state, ranking, clicks):
    state.updates[0] += 1

class Mine(CompiledAgent):
    state_type, rank_kernel, update_kernel = State, rank, update

    def __init__(self, n_items, n_positions, *, seed=None):
        super().__init__(n_items, n_positions, seed)
"""
RULES_OF_A_USER = """
from clickgym.envs import kernel

@kernel
def item_at(position):
    return 1 - position
"""


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_sweep_after_an_edit(tmp_path, monkeypatch, engine):
    """What is played anew after an edit is the new code: here the best list, without regret."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    users = PositionBasedModel([0.9, 0.1], [1.0, 0.5])
    shop = Instance("shop", {users.kind: users}, 2)

    def regret(rules, **arguments):
        (tmp_path / "of_a_user.py").write_text(OF_A_USER)
        (tmp_path / "user_rules.py").write_text(rules)
        for name in ("of_a_user", "user_rules"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        results = clickgym.sweep(
            ["PBMRank-v0"],
            ["of_a_user:Mine"],
            10,
            1,
            instances=[shop],
            out=tmp_path / "out",
            n_jobs=1,
            engine=engine,
            progress=False,
            **arguments,
        )
        return results.rows["regret"][-1]

    assert regret(RULES_OF_A_USER) == pytest.approx(4.0)
    edited = RULES_OF_A_USER.replace("1 - position", "position")
    assert regret(edited, again=["of_a_user:Mine"]) == 0.0


@kernel
def halve(x):
    return 0.5 * x


@kernel
def misspells(x):
    return halve(x).name


@kernel
def allocates(x):
    array = np.zeros(3)
    return array[0] + x


@kernel
def recurses(x):
    return recurses(x)


@kernel
def reads(x):
    return FILES[x]


@kernel
def calls(x):
    return 1.0 + allocates(x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            misspells,
            r"test_kernel_cache:misspells: line .*'return halve\(x\).name', "
            "does not compile: Unknown attribute 'name'",
        ),
        *(
            (
                function,
                r"test_kernel_cache:allocates: line .*'array = np.zeros\(3\)', "
                "makes an array, list or string",
            )
            for function in (allocates, calls)
        ),
        (recurses, "test_kernel_cache:recurses calls itself"),
        (reads, "test_kernel_cache:reads: .*, does not compile: Untyped global name 'FILES'"),
    ],
)
@pytest.mark.parametrize("is_short", [True, False])
def test_error_names_kernel_and_line(monkeypatch, function, message, is_short):
    monkeypatch.setattr(parts, "SHORT", is_short)
    with pytest.raises(KernelError, match=message) as error:
        entry(function)(1.0)
    assert "\n" not in str(error.value)


PLAIN = """
import json, sys
import clickgym, gymnasium as gym
from clickgym.runner.make import make_agent

lists, stepped = [], {}


def note(frame, event, argument):
    stepped[name].append(frame.f_code.co_filename + " " + frame.f_code.co_name)


for name, env_id in json.loads(sys.argv[1]):
    env, stepped[name] = gym.make(env_id, disable_env_checker=True), []
    observation, _ = env.reset(seed=0)
    agent = make_agent(name, env, horizon=1000, seed=1)
    for _ in range(30):
        sys.settrace(note)
        ranking = agent.rank(observation)
        last, (observation, reward, terminated, *_) = observation, env.step(ranking)
        sys.settrace(None)
        clicks = observation["clicks"] if isinstance(observation, dict) else observation
        agent.update(last, ranking, clicks, reward)
        lists.append([ranking.tolist(), clicks.tolist()])
        if terminated:
            observation, _ = env.reset()
print(json.dumps([lists, stepped]))
"""
KERNELS = {"TopRank": "top_rank.py", "C2UCB": "linear.py", "CascadeVI": "cascade_vi.py"}


def test_lists_without_compilation(program, tmp_path):
    """With NUMBA_DISABLE_JIT=1 a debugger steps into the kernels' source, and the lists are the
    same: of users who do not change, of candidates that do, and of users with a memory.
    """
    pairs = zip(KERNELS, ("PBMRank-v0", "ContextualCMRank-v0", "CascadeMDPRank-v0"), strict=True)
    file, arguments = tmp_path / "plain.py", json.dumps([*pairs])
    file.write_text(PLAIN)
    lists, compiled = json.loads(program(file, arguments, folder=tmp_path))
    done = subprocess.run(
        [sys.executable, file, arguments],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    plain_lists, stepped = json.loads(done.stdout)
    assert lists == plain_lists
    for name in KERNELS:
        in_kernels = set(stepped[name]) - set(compiled[name])
        assert any(KERNELS[name] in place for place in in_kernels), f"{name}: rank"
        assert any("/envs/" in place for place in in_kernels), f"{name}: env.step"
