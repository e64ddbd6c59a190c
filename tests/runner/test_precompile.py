"""``clickgym precompile``: what it compiles is what a run in an empty home needs, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import clickgym
from clickgym.__main__ import main
from clickgym.runner import precompile as room

PLAY = """
import json, sys
from numba.core import event
import clickgym
with event.install_recorder("numba:compile") as recorder:
    regret = [clickgym.run("TopRank", "CMRank-v0", 1000, seed=0, engine=engine).regret[-1] for engine in ("auto", "python")]
print(json.dumps({"regret": regret, "compiled": len(recorder.buffer), "linalg": "scipy.linalg" in sys.modules}))
"""


def play(home, **variables):
    environment = os.environ | {"XDG_CACHE_HOME": str(home)} | variables
    done = subprocess.run(
        [sys.executable, "-c", PLAY], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    assert not done.stderr
    return json.loads(done.stdout)


def test_an_empty_home_with_a_portable_folder_compiles_nothing_and_plays_the_same(tmp_path, capsys):
    folder = tmp_path / "kernels"
    words = ["precompile", "--agents", "TopRank", "--envs", "CMRank-v0", "--portable", "--out", str(folder)]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert printed.err == "CMRank-v0: TopRank\n"
    assert printed.out.endswith(f" in {folder}; use them with CLICKGYM_KERNELS={folder}\n")
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}, "for whoever runs the container"
    assert {path.suffix for path in folder.iterdir()} == {".nbc"}
    home = tmp_path / "home"
    played = play(home, CLICKGYM_KERNELS=str(folder))
    here = clickgym.run("TopRank", "CMRank-v0", 1000, seed=0).regret[-1]
    assert played == {"regret": [here, here], "compiled": 0, "linalg": False}
    assert not home.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agents", "TopRnk"], "unknown agent 'TopRnk'"),
        (["--agents", "PPO"], "agent 'PPO' learns by a library of its own, and has no kernels to compile"),
        (["--agents", "mine_too:Mine"], "agent 'mine_too:Mine' is not of the package"),
        (["--agents", "LinearTS"], "LinearTS ranks by "),
        (["--envs", "CMRnk-v0"], "unknown environment 'CMRnk-v0'"),
        (["--envs", "CartPole-v1"], "environment 'CartPole-v1' is not of the package"),
    ],
)
def test_what_cannot_be_compiled_is_refused_before_the_folder_is_made(tmp_path, monkeypatch, capsys, words, message):
    (tmp_path / "mine_too.py").write_text("from clickgym.agents import TopRank\n\nclass Mine(TopRank):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    given = ["--agents", "TopRank"] if "--envs" in words else ["--envs", "CMRank-v0"]
    assert main(["precompile", *given, *words, "--out", str(tmp_path / "out")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"clickgym: {message}")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps the folders of users apart")
def test_a_folder_that_others_may_write_is_refused(tmp_path, capsys):
    tmp_path.chmod(0o777)
    assert main(["precompile", "--agents", "TopRank", "--envs", "CMRank-v0", "--out", str(tmp_path)]) == 2
    assert "other users may write to" in capsys.readouterr().err


def test_kernels_that_cannot_be_written_are_no_success(tmp_path, monkeypatch, capsys):
    """As on a full disk, where compiled kernels are otherwise only not kept."""
    monkeypatch.setattr(room, "make_folder", lambda out: out.touch())
    assert main(["precompile", "--agents", "Random", "--envs", "CMRank-v0", "--out", str(tmp_path / "file")]) == 2
    assert "kernels of CMRank-v0 could not be compiled: compiled kernels are not kept on disk" in capsys.readouterr().err


def test_by_default_every_agent_that_has_kernels_goes_where_it_can_play(tmp_path, monkeypatch):
    compiled = {}
    monkeypatch.setattr(room, "_compile", lambda out, env, agents, variables: compiled.setdefault(env, agents))
    room.precompile(tmp_path, envs=["CMRank-v0", "ContextualCMRank-v0"])
    assert {"TopRank", "MixTS", "PBMTS", "Oracle"} <= set(compiled["CMRank-v0"])
    assert not {"PPO", "LinearTS", "CascadeVI"} & set(compiled["CMRank-v0"])
    assert {"LinearTS", "Random"} <= set(compiled["ContextualCMRank-v0"])
