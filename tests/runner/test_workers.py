"""Workers play the code that the process that started them has."""

from __future__ import annotations

import importlib
import subprocess
import sys
from textwrap import dedent

import pytest

import clickgym

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
def test_workers_know_an_edit(write):
    regret = []
    for text in ("list(range(n_positions))", "[*range(n_positions)][::-1]"):
        agent = rank_with(write, text)
        for n_jobs in (1, 2):
            results = clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=n_jobs)
            regret.append(results.frame["regret"].to_list())
    assert regret[0] == regret[1] != regret[2] == regret[3]


@pytest.mark.slow
def test_exit_in_a_worker(write):
    agent = write("edited_agent", dedent(MODULE.replace("self.ranking\n", "exit(3)\n"))).Forward
    with pytest.raises(clickgym.AgentError, match="Forward in PBMRank-v0, step 1: SystemExit: 3"):
        clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=2)


FORKED = """
import multiprocessing
import clickgym

def regret(seed):
    results = clickgym.sweep(["PBMRank-v0"], ["Random"], 100, 2, seed=seed, progress=False)
    return results.table()["regret"].item()

def fault(seed):
    found = []
    for use in (lambda: regret(seed), lambda: clickgym.Results("none"), run.to_frame):
        try:
            use()
        except RuntimeError as error:
            found.append(str(error))
    return found

def in_child(function):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map_async(function, [7]).get(300)

run = clickgym.run("Random", "PBMRank-v0", 10, seed=0)
alone = in_child(regret)
assert alone == [regret(7)], alone
(found,) = in_child(fault)
assert len(found) == 3 and all("spawn" in text for text in found), found
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not fork by default")
def test_forked_process():
    """Before a sweep it plays as any other; after one Polars would hang, and it says so."""
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=600)
