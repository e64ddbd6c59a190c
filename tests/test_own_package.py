"""What a package of somebody else brings takes part like our own, and leaves nothing behind that
others could not do without.

The click model is that of docs/own_click_model.md, the agent that of docs/own_agent.md.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal
from registries import restored

import clickgym
from clickgym.agents import TopRank
from clickgym.envs import Instance

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("own_agent", "own_click_model")

REGISTRATION = """
import clickgym

clickgym.register_click_model("OwnRank-v0", "ownpkg.models:FadingModel")
"""


OTHERS = '''

from clickgym.agents import Agent


class TopRank(Agent):
    """Called like one of ours; plain Python."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.n_positions = n_positions

    def rank(self, observation):
        return np.arange(self.n_positions)

    def update(self, observation, ranking, clicks, reward):
        pass
'''


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a package, a working folder, and a cache."""
    folder = tmp_path_factory.mktemp("elsewhere")
    files = {
        file: code
        for page in PAGES
        for code in re.findall(
            r"```python\n(.*?)```",
            (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"),
            re.DOTALL,
        )
        for file in re.findall(r"^# (\w+)", code)
    }
    sources = {
        "__init__": REGISTRATION,
        "models": files["fading"],
        "agents": files["optimist"] + OTHERS,
    }
    (folder / "lib" / "ownpkg").mkdir(parents=True)
    (folder / "work").mkdir()
    for name, code in sources.items():
        (folder / "lib" / "ownpkg" / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "ownpkg"]:
        del sys.modules[name]


def test_a_saved_agent_is_loaded_by_its_class(shop, monkeypatch):
    with monkeypatch.context() as patch, restored():
        patch.syspath_prepend(shop / "lib")
        importlib.import_module("ownpkg.agents").Optimist(4, 2, seed=0).save(shop / "own.npz")
    forget()
    with pytest.raises(ValueError, match=r"holds a Optimist, not a TopRank"):
        TopRank.load(shop / "own.npz")
    assert "ownpkg" not in sys.modules
    monkeypatch.syspath_prepend(shop / "lib")
    agent = importlib.import_module("ownpkg.agents").Optimist.load(shop / "own.npz")
    assert len(set(agent.rank().tolist())) == 2
    forget()


@pytest.mark.usefixtures("undrawn")
def test_own_environments_on_the_command_line(shop, printed, monkeypatch):
    """They are named in the notation of Gymnasium, and run as by `sweep`."""
    monkeypatch.chdir(shop / "work")
    monkeypatch.syspath_prepend(shop / "lib")
    forget()
    users = importlib.import_module("ownpkg.models").FadingModel([0.2, 0.7, 0.4, 0.1], 0.8, 2)
    Instance("own", {"Fading": users}, n_positions=2).save("own.json")
    forget()
    names = ["TopRank", "ownpkg.agents:TopRank"]
    words = "run ownpkg:OwnRank-v0 --instances own.json --horizon 200 --runs 2 --out out --jobs 1"
    assert "ownpkg:OwnRank-v0" in printed([*words.split(), "--agents", *names])
    swept = clickgym.sweep(["ownpkg:OwnRank-v0"], names, 200, 2, instances=["own.json"])
    assert_frame_equal(clickgym.Results("out").frame, swept.frame)
    forget()


def test_the_working_folder_hides_no_module_of_python(tmp_path, monkeypatch):
    (tmp_path / "zipapp.py").write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "zipapp", raising=False)
    with pytest.raises(TypeError, match="makes no agents"):
        clickgym.sweep(["PBMRank-v0"], ["zipapp:create_archive"], 10, 1)
