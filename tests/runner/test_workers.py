"""No worker outlives the process that started it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from textwrap import dedent

import pytest

import clickgym
from clickgym.runner.workers import SearchPath, _edition, watched

WORKER = """
import os, sys, time
from clickgym.runner.workers import SearchPath, watched
print(os.getpid(), flush=True)
watched(SearchPath(), int(sys.argv[1]), time.sleep, 60)
"""
PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process is not told of its parent")
def test_a_worker_ends_when_its_parent_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, WORKER], stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = int(parent.stdout.readline())
        time.sleep(0.5)
        os.kill(worker, 0)
        parent.kill()
        parent.wait()
        end = time.monotonic() + 10
        while time.monotonic() < end and alive(worker):
            time.sleep(0.1)
        if still := alive(worker):
            os.kill(worker, signal.SIGKILL)
        assert not still


ORPHAN = """
import sys, time
from clickgym.core.orphans import end_with
end_with(int(sys.argv[1]))
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process is not told of its parent")
def test_a_worker_whose_parent_is_gone_ends_before_its_first_task():
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    orphan = subprocess.run([sys.executable, "-c", ORPHAN, str(gone.pid)], timeout=50)
    assert orphan.returncode == 1


MODULE = """
    from clickgym.agents import Agent

    class Forward(Agent):
        def __init__(self, n_items, n_positions, *, seed=None):
            self.ranking = list(range(n_positions))

        def rank(self, observation):
            return self.ranking

        def update(self, observation, ranking, clicks, reward): ...
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a module and import it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits in one second are not one

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return write


def test_edition_of_modules(write):
    """It grows with an edit of a module; workers that do not know a new one can import it."""
    before = _edition()
    write("of_an_edition", "a = 1")
    assert _edition() == before
    write("of_an_edition", "a = 2")
    assert _edition() == before + 1 == _edition()


@pytest.mark.slow
def test_workers_know_an_edit(write):
    regret = []
    for text in (MODULE, MODULE.replace("list(range(n_positions))", "[*range(n_positions)][::-1]")):
        agent = write("edited_agent", dedent(text)).Forward
        for n_jobs in (1, 2):
            results = clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=n_jobs)
            regret.append(results.frame["regret"].to_list())
    assert regret[0] == regret[1] != regret[2] == regret[3]


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_is_no_worker_of_this_process_is_not_ended():
    assert watched(SearchPath(), os.getpid(), sum, [1, 2]) == 3
