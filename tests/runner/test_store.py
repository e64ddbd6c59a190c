"""What a folder writes down of a sweep: text, and digests of the files behind it."""

import importlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import clickgym
from clickgym.agents import EpsilonGreedy, Random, TopRank
from clickgym.envs import CLICK_MODELS, Instance, load_instance
from clickgym.runner.store import files_behind, text_of


def toy(last=0.1):
    models = {"PBM": CLICK_MODELS["PBM"](attraction=[0.5, last], examination=[1.0, 0.5])}
    return Instance("toy", models, 2)


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (TopRank, "TopRank"),
        ("TopRank:delta=0.10", "TopRank:delta=0.1"),
        ((EpsilonGreedy, {"epsilon": np.float32(0.5)}), "EpsilonGreedy:epsilon=0.5"),
        (("PBMUCB", {"examination": np.array([1.0, 0.5])}), "PBMUCB:examination=[1.0,0.5]"),
        ("PBMRank-v0:cutoff=3", "PBMRank-v0:cutoff=3"),
        (("PBMRank-v0", {"instance": "uniform:seed=3"}), "PBMRank-v0:instance=uniform:seed=3"),
        (lambda **sizes: TopRank(**sizes), None),
        ((Random, {"given": threading.Lock()}), None),
        ((Random, {"given": TopRank}), None),
    ],
)
def test_text(thing, text):
    assert text_of(thing) == text


@pytest.mark.parametrize(
    "made",
    [
        toy,
        lambda last=0.1: toy(last).models["PBM"],
        lambda last=0.1: ("PBMRank-v0", {"instance": toy(last)}),
    ],
)
def test_users_are_told_apart_by_their_numbers(made):
    assert text_of(made()) == text_of(made()) != text_of(made(0.2))
    assert text_of(load_instance("yandex-9")) == text_of(load_instance("yandex-9"))


def test_files_that_arguments_name(tmp_path, monkeypatch):
    """A model of stable-baselines3 is named without its suffix."""
    monkeypatch.chdir(tmp_path)
    digests = []
    for text in ("1", "1", "2"):
        (tmp_path / "model.zip").write_text(text)
        (tmp_path / "users.json").write_text(text)
        files = files_behind([(TopRank, {"model": "model"}), "users.json"])
        digests.append((files["model"], files["users.json"]))
    assert digests[0] == digests[1] != digests[2]


def test_own_modules_that_are_loaded(tmp_path, monkeypatch):
    """By the names of their files."""
    monkeypatch.syspath_prepend(tmp_path)
    before = files_behind(["TopRank"])
    (tmp_path / "pack").mkdir()
    for name in ("pack/__init__.py", "pack/part.py", "alone.py", "other.py"):
        (tmp_path / name).write_text("")
    for name in ("pack.part", "alone"):
        importlib.import_module(name)
    assert {*files_behind(["TopRank"])} - {*before} == {
        *("pack/__init__.py", "pack/part.py", "alone.py")
    }
    for name in ("pack.part", "pack", "alone"):
        monkeypatch.delitem(sys.modules, name)


SCRIPT = """
import sys
import clickgym
import gymnasium as gym
from clickgym.agents import Random

class Mine(Random): ...

gym.register("Lists-v0", lambda **_: gym.make("PBMRank-v0"))
agent = {"Mine": Mine}.get(sys.argv[1], "Random")
envs = [sys.argv[2]]
print([*clickgym.sweep(envs, [agent], 10, 1, n_jobs=1, progress=False).configs[0].files])
"""


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("agent", "env", "files"),
    [
        ("Mine", "PBMRank-v0", "['study.py']"),
        ("Random", "Lists-v0", "['study.py']"),
        ("Random", "PBMRank-v0", "[]"),
    ],
)
def test_a_script_counts_if_a_part_of_the_sweep_stands_in_it(tmp_path, agent, env, files):
    """And nothing of Python, of clickgym and of other packages."""
    (tmp_path / "study.py").write_text(SCRIPT)
    command = [sys.executable, "study.py", agent, env]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == files


@pytest.mark.usefixtures("undrawn")
def test_a_notebook_has_no_file(tmp_path, monkeypatch):
    """Its sweep is played and shown, and the next one needs a new folder."""
    module = type(sys)("__main__")
    exec("from clickgym.agents import Random\nclass Typed(Random): ...", vars(module))
    monkeypatch.setitem(sys.modules, "__main__", module)

    def sweep(**more):
        return clickgym.sweep(["PBMRank-v0"], [module.Typed], 10, 1, out=tmp_path, n_jobs=1, **more)

    assert sweep().frame.equals(clickgym.Results(tmp_path).frame)
    with pytest.raises(ValueError, match="what stands in a notebook cannot be compared with what"):
        sweep()
    sweep(overwrite=True)
