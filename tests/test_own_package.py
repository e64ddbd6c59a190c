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
from clickgym.command_line import main
from clickgym.envs import Instance

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("own_agent", "own_click_model")

REGISTRATION = """
import clickgym

import gymnasium

clickgym.register_click_model("OwnRank-v0", "ownpkg.models:FadingModel")
gymnasium.register("Shop-v0", "ownpkg.shop:Shop")
"""

SHOP = """
import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary, MultiDiscrete


class Shop(gym.Env):
    \"\"\"Sells by rules of its own: an environment of another kind, which tells its regret.\"\"\"

    action_space = MultiDiscrete([4, 4])
    observation_space = MultiBinary(2)

    def __init__(self, tells=True):
        self.tells = tells

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.int8), {}

    def step(self, action):
        chance = np.array([0.1, 0.3, 0.5, 0.7])[action]
        clicks = (self.np_random.random(2) < chance).astype(np.int8)
        info = {"expected_reward": chance.sum(), "optimal_reward": 1.2} if self.tells else {}
        return clicks, float(clicks.sum()), False, False, info
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


@kernel
def sort(state, rng, ranking):
    for k in range(len(ranking)):
        ranking[k] = np.argsort(state.rate)[k]


class Sorting(Optimist):
    rank_kernel = sort
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
        "shop": SHOP,
    }
    (folder / "lib" / "ownpkg").mkdir(parents=True)
    (folder / "work").mkdir()
    for name, code in sources.items():
        (folder / "lib" / "ownpkg" / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "ownpkg"]:
        del sys.modules[name]


@pytest.fixture
def command(shop, undrawn, capsys, monkeypatch):
    """The command line where the package can be imported, but is not yet; workers have it too: the
    script tries that.
    """
    monkeypatch.chdir(shop / "work")
    monkeypatch.syspath_prepend(shop / "lib")
    forget()

    def run(*words, exit_code=0):
        assert main([*words, "--jobs", "1"] if words[0] == "run" else words) == exit_code
        return capsys.readouterr()

    yield run
    forget()


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


def test_own_environments_on_the_command_line(shop, command):
    """They are named in the notation of Gymnasium, run and reported."""
    users = importlib.import_module("ownpkg.models").FadingModel([0.2, 0.7, 0.4, 0.1], 0.8, 2)
    Instance("own", {"Fading": users}, n_positions=2).save("own.json")
    forget()
    names = ["TopRank", "ownpkg.agents:TopRank"]
    words = "run ownpkg:OwnRank-v0 --instance own.json --horizon 200 --runs 2 --out five --agents"
    printed = command(*words.split(), *names).out
    assert "ownpkg:OwnRank-v0" in printed
    line = clickgym.Results(shop / "work" / "five").frame
    swept = clickgym.sweep(["ownpkg:OwnRank-v0"], names, 200, 2, instances=["own.json"])
    assert_frame_equal(line, swept.frame)
    words = "run ownpkg:Shop-v0:tells=false --agents ownpkg.agents:TopRank --horizon 200 --runs 2"
    printed = command(*words.split(), "--out", "six").out
    assert "Regret is unknown in ownpkg:Shop-v0:tells=false:" in printed
    assert "reward" in command("report", "six").out


def test_a_kernel_that_allocates_is_told_in_one_line(command):
    words = "run PBMRank-v0 --agents ownpkg.agents:Sorting --horizon 200 --runs 2 --out four"
    told = command(*words.split(), exit_code=2).err.splitlines()
    assert re.search(
        r"^clickgym: .*ownpkg\.agents:sort: line \d+ of .*agents\.py.*np\.argsort.* allocates",
        told[-1],
    )
    assert sum("kernel" in line for line in told) == 1
    assert "Traceback" not in told
