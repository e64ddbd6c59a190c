"""Settings and fixtures for all tests; property tests try the same examples every time."""

import gc
import importlib
import os
import re
import runpy
import sys
from contextlib import nullcontext

import pytest
from hypothesis import settings

settings.register_profile("clickgym", derandomize=True, deadline=None)  # first calls compile
settings.load_profile("clickgym")
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and commands obey it
os.environ.update(LOKY_MAX_CPU_COUNT="1", OMP_NUM_THREADS="1")  # workers only on request
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "examples", "")
gc.set_threshold(1_000_000, 20, 20)  # garbage collection took a tenth of the time

AGENT = """
from clickgym.agents import Agent

class Forward(Agent):
    shift = 0

    def __init__(self, n_items, n_positions, *, seed=None):
        self.ranking = list(range(n_positions))

    def rank(self, observation):
        return self.ranking

    def update(self, observation, ranking, clicks, reward): ...
"""
"""An agent in a module of a user, for `write`."""


@pytest.fixture(autouse=True)
def kernels_as_python(request):
    """Run kernels as Python in the tests marked so, because compiling takes longer than most tests
    run.
    """
    from clickgym.core.kernels import uncompiled

    marks = [mark.name for mark in request.node.iter_markers()]
    with uncompiled() if "uncompiled" in marks and "compiled" not in marks else nullcontext():
        yield


@pytest.fixture(autouse=True)
def restored(tmp_path_factory):
    """Remove what a test registered, and the examples and modules that it wrote."""
    from tests.helpers.registries import restored

    written, paths = (str(tmp_path_factory.getbasetemp()), EXAMPLES), list(sys.path)
    before = set(sys.modules)  # together with the modules that fixtures of a whole file wrote
    with restored():
        yield
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(written):
            del sys.modules[name]
    sys.path[:] = paths


def draw_nothing(patch):
    """Write empty figure files."""
    patch.setattr("clickgym.runner.reports.figures.figure_bytes", lambda *_: b"")
    empty = {"regret.png": b"", "regret.svg": b""}
    patch.setattr("clickgym.Results._figure_files", lambda _: empty)


@pytest.fixture
def undrawn(monkeypatch):
    """Empty figure files, for tests that do not check pictures."""
    draw_nothing(monkeypatch)


@pytest.fixture
def printed(monkeypatch, capsys):
    """What a command prints, in a terminal with a given number of columns or without a terminal."""
    from clickgym.cli import main

    def run(words, width=None):
        with monkeypatch.context() as patch:
            terminal = f"COLUMNS={width} TTY_COMPATIBLE=1 TERM=xterm NO_COLOR=1"
            for setting in [] if width is None else terminal.split():
                patch.setenv(*setting.split("="))
            assert main(words) == 0
        return re.sub("\x1b[^m]*m", "", capsys.readouterr().out)

    return run


@pytest.fixture
def refused(capsys):
    """The error message of a command with invalid arguments."""
    from clickgym.cli import main

    def run(words):
        assert main(words) == 2
        return capsys.readouterr().err

    return run


@pytest.fixture
def program(monkeypatch, capsys):
    """The output of a Python program that runs in a folder, within this process, which has already
    imported everything.
    """

    def run(file, *words, folder):
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(os.path.dirname(file))
        monkeypatch.setattr(sys, "argv", [str(file), *words])
        runpy.run_path(str(file), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write modules of a user into a folder on the import path."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits in one second look the same

    def write(**files):
        for name, text in files.items():
            file = tmp_path / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        importlib.invalidate_caches()

    return write
