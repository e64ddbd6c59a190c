"""No worker outlives the process that started it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from textwrap import dedent

import numpy as np
import pytest

import clickgym
from clickgym.core.faults import WorkerError

NAPPER = """
import os, time
from clickgym.agents import Agent

class Napper(Agent):
    def __init__(self, n_items, n_positions, *, seed=None):
        self.items = list(range(n_positions))

    def rank(self, observation):
        open(f"worker {os.getpid()}", "w").close()
        time.sleep(60)
        return self.items

    def update(self, observation, ranking, clicks, reward): ...
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process is not told of its parent")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "napper.py").write_text(NAPPER)
    words = "run PBMRank-v0 --agents napper:Napper --horizon 10 --runs 2 --jobs 2"
    command = [sys.executable, "-m", "clickgym", *words.split()]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as parent:
        wait_until(lambda: len(list(tmp_path.glob("worker *"))) == 2)
        parent.kill()
    workers = [int(file.name.split()[1]) for file in tmp_path.glob("worker *")]
    wait_until(lambda: not any(map(alive, workers)))


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


def rank_with(write, text):
    return write("edited_agent", dedent(MODULE.replace("list(range(n_positions))", text))).Forward


@pytest.mark.slow
def test_an_agent_that_is_edited_while_its_sweep_runs(write, tmp_path, monkeypatch):
    """A worker that would import the new source ends the sweep."""
    agent = rank_with(write, "list(range(n_positions))")
    (tmp_path / "edited_agent.py").write_text(dedent(MODULE) + "a = 1")
    numbers = {"agents": {"it": agent}, "horizon": 50, "runs": 2, "n_jobs": 2}
    line = "it is another in a worker process: the module edited_agent was edited since"
    module = importlib.import_module("clickgym.runner.sweep")
    in_parallel = module.in_parallel

    def edited(*arguments, **options):
        (tmp_path / "edited_agent.py").write_text(dedent(MODULE) + "a = 2")
        return in_parallel(*arguments, **options)

    monkeypatch.setattr(module, "in_parallel", edited)
    with pytest.raises(WorkerError, match=line):
        clickgym.sweep(["PBMRank-v0"], **numbers)


@pytest.mark.slow
def test_an_attribute_that_a_worker_would_not_have(write):
    agent = rank_with(write, "list(range(n_positions))")
    agent.size = np.arange(3)
    clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=1)
    with pytest.raises(WorkerError, match=r"Forward\.size was set outside of its module"):
        clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=2)


@pytest.mark.slow
def test_workers_know_an_edit(write):
    regret = []
    for text in ("list(range(n_positions))", "[*range(n_positions)][::-1]"):
        agent = rank_with(write, text)
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


def wait_until(is_so):
    due = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < due
        time.sleep(0.1)
