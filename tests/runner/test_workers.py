"""Workers play the code that the process that started them has."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from textwrap import dedent

import pytest

import clickgym
from clickgym.runner.own_code import changed, hashes_behind

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


HELPER = "WORST = [9, 8]\nclass Settings:\n    shown = WORST\nSETTINGS = Settings()\n"
OWN = """
    import functools
    import helper
    from clickgym.agents import Agent

    LISTS = {"best": [2, 4]}

    def again(function):
        return functools.wraps(function)(lambda *arguments: function(*arguments))

    class Base(Agent):
        first = 1

    class Mine(Base):
        def __init__(self, n_items, n_positions, *, best=True, seed=None): ...

        @again
        def rank(self, observation):
            from late import SHOWN
            return SHOWN or LISTS or helper.SETTINGS.shown

        @property
        def best(self):
            return 1

        def update(self, observation, ranking, clicks, reward): ...
"""
CHANGES = {
    "own.Mine.shown": lambda own: setattr(own.Mine, "shown", [1]),
    "own.Mine.first": lambda own: setattr(own.Base, "first", 2),
    "own.Mine.update": lambda own: setattr(own.Mine, "update", lambda *seen: None),
    "own.Mine.__init__": lambda own: own.Mine.__init__.__kwdefaults__.update(best=False),
    "own.Mine.best": lambda own: setattr(own.Mine, "best", property(lambda self: 2)),
    "own.Mine.rank": lambda own: setattr(own.Mine, "rank", own.again(lambda self, seen: 1)),
    "own.LISTS": lambda own: own.LISTS.update(best=[4, 2]),
    "helper.SETTINGS": lambda own: setattr(own.helper, "SETTINGS", None),
    "late.SHOWN": lambda own: setattr(importlib.import_module("late"), "SHOWN", 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_new_python_would_not_import_is_named(write, name):
    write("late", "SHOWN = None")
    write("helper", HELPER)
    own = write("own", dedent(OWN))
    assert changed([hashes_behind((own.Mine, {}))]) == []
    CHANGES[name](own)
    names = changed([hashes_behind((own.Mine, {}))])
    assert name in names


def test_one_job_and_two_play_the_class_that_the_caller_has(write, tmp_path):
    """After an edit without a reload, and with an attribute that was set; nothing of it is kept."""
    agent, regret = rank_with(write, "self.shown"), []
    agent.shown = [4, 3, 2, 1, 0]
    for n_jobs in (1, 2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=n_jobs)
        regret.append(results.frame["regret"].to_list())
        named = [str(one.message).partition(" is ")[0] for one in caught]
        assert named == ["edited_agent.Forward.shown"] * (n_jobs - 1)
    assert regret[0] == regret[1]
    for shown in ([4, 3, 2, 1, 0], [0, 1, 2, 3, 4]):
        agent.shown = shown
        with pytest.warns(UserWarning, match="it is run, but not resumed, because edited_agent"):
            kept = clickgym.sweep(
                ["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=1, out=tmp_path / "out"
            )
        regret.append(kept.frame["regret"].to_list())
    assert regret[2] == regret[0] != regret[3]


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
