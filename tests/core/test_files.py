"""Tests that files are written atomically, that the first error is the one reported, and that
damaged files are rejected.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium as gym
import pytest

import clickgym
from clickgym.core.checks import check_path
from clickgym.core.files import write_whole
from clickgym.envs import load_instance
from clickgym.logs import read_judgments, read_log, record, write_tidy


def files_of(folder):
    return [(path.name, path.read_text()) for path in folder.iterdir()]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_failure_leaves_the_old_file(tmp_path, monkeypatch, error):
    """A failed write leaves no temporary file behind."""
    file = tmp_path / "a.txt"
    file.write_text("before")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(error):
        write_whole(file, "after")
    assert files_of(tmp_path) == [("a.txt", "before")]


# ------------------------------------------------------------ writing at once


def test_threads_write_one_file(tmp_path):
    """No write fails, and a reader always finds the complete content of one of the writers."""
    file, contents = tmp_path / "a.txt", [letter * 5000 for letter in "abcd"]
    write_whole(file, contents[0])
    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write_whole, file, content) for content in 25 * contents]
        while not all(future.done() for future in writing):
            assert file.read_text() in contents
    assert [future.exception() for future in writing] == 100 * [None]
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.uncompiled
@pytest.mark.usefixtures("undrawn")
def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    """Files are written there and read there. A user who does not exist has no home folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    instance, env = load_instance("uniform:n_items=4"), gym.make("PBMRank-v0")
    instance.save("~/users.json")
    assert load_instance("~/users.json").models == instance.models
    agent = clickgym.make_agent("TopRank", env, horizon=9, seed=0)
    agent.save("~/agent.npz")
    assert type(agent).load("~/agent.npz").n_items == agent.n_items
    log = record(agent, env, 9, seed=0)
    write_tidy(log, "~/log.csv")
    assert len(read_log("~/l*.csv")) == 9
    Path("home", "letor.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.2\n")
    assert read_judgments("~/letor.txt").features.shape == (2, 1)
    clickgym.sweep(["PBMRank-v0"], ["Random"], 9, 1, out="~/results", progress=False)
    assert clickgym.Results("~/results").horizon == 9
    assert os.listdir() == ["home"]
    assert check_path("path", "~nobody-here/a") == Path("~nobody-here/a")
