"""What a package of somebody else brings takes part like our own, and leaves nothing behind that
others could not do without.

The click model is that of docs/own_click_model.md, the agent that of docs/compiled_agent.md.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from polars.testing import assert_frame_equal
from registries import restored

import clickgym
from clickgym.agents import TopRank
from clickgym.command_line import main
from clickgym.envs import Instance

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("compiled_agent", "own_click_model")

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

METRIC = """
from typing import NamedTuple

import numpy as np

from clickgym.envs import kernel
from clickgym.runner import METRICS, Metric


class Worth(NamedTuple):
    worth: np.ndarray


@kernel
def worth(context, ranking, clicks, expectation):
    return context.worth[ranking[0]]


METRICS["worth"] = Metric(
    "worth of the first item", worth, lambda env: Worth(env.task.model.attraction.copy())
)
"""

EVERYTHING = """
import json, sys
import gymnasium as gym, numpy as np
import clickgym
from clickgym.envs import Instance, load_instance
import ownpkg
from ownpkg.agents import Optimist
from ownpkg.models import FadingModel

users = FadingModel([0.2, 0.7, 0.4, 0.1], 0.8, 2)
told = {}

def play(name, env, agent, **arguments):
    agent = clickgym.make_agent(agent, env, seed=0)
    result = clickgym.run(agent, env, 200, seed=0, **arguments)
    told[name] = [result.engine, result.regret[-1]]
    return agent

if __name__ == "__main__":
    parameters = {"attraction": [0.2, 0.7, 0.4, 0.1], "patience": 0.8, "n_positions": 2}
    env = gym.make("OwnRank-v0", **parameters)
    assert env.unwrapped.model == users
    play("own model, our agent", env, "Random")
    play("our model, own plain agent", gym.make("PBMRank-v0"), "ownpkg.agents:TopRank")
    import ownpkg.metrics
    metrics = ["worth", "ndcg"]
    name = "own model, own agent, own metric"
    agent = play(name, env, "ownpkg.agents:Optimist", metrics=metrics)
    others = users.with_items(attraction=[0.7, 0.2, 0.1, 0.4])
    changing = gym.make("NonStationaryOwnRank-v0", models=[users, others], starts=[0, 9])
    play("changing", changing, "ownpkg.agents:Optimist")
    linear = {"base": users, "theta": [0.1, 0.2, 0.3, 0.4, 0.5], "items": np.eye(5)}
    play("contextual", gym.make("ContextualOwnRank-v0", **linear), "Random")

    for id, arguments in (
        ("OwnRank-v0", parameters),
        ("NonStationaryOwnRank-v0", {"models": [users, users], "starts": [0, 9]}),
        ("ContextualOwnRank-v0", linear),
    ):
        envs = gym.make_vec(id, num_envs=3, **arguments)
        envs.reset(seed=0)
        envs.action_space.seed(0)
        told[f"streams of {id}"] = envs.step(envs.action_space.sample())[-1]["regret"].tolist()

    Instance("own", {"Fading": users}, n_positions=2).save("own.json")
    assert load_instance("own.json").model("Fading") == users
    assert gym.make("OwnRank-v0", instance="own.json").unwrapped.model == users
    agent.save("own.npz")

    out, jobs = sys.argv[1], int(sys.argv[2])
    names = ["TopRank", "ownpkg.agents:TopRank", "ownpkg.agents:Optimist:credit=2"]
    table = clickgym.sweep(["PBMRank-v0"], names, 200, 2, out=out, n_jobs=jobs).frame
    last = table.filter(table["step"] == 200).sort("agent", "run")
    told["sweep"] = [last["agent"].to_list(), last["regret"].to_list()]
    # Own environments, by Gymnasium's notation, and one of another kind; the folder grows.
    shops = ["ownpkg:Shop-v0", "ownpkg:Shop-v0:tells=false"]
    more = clickgym.sweep(shops, names[1:], 200, 2, out=out, n_jobs=jobs).frame
    told["shop"] = more.filter(more["step"] == 200)["regret"].to_list()
    more = {"out": out, "n_jobs": jobs, "instances": ["own.json"]}
    own = clickgym.sweep(["ownpkg:OwnRank-v0"], names[:2], 200, 2, **more).frame
    told["own"] = own.filter(own["step"] == 200)["regret"].to_list()
    assert clickgym.run("ownpkg.agents:Optimist", users, 200, seed=0).engine == "compiled"
    print(json.dumps(told))
"""

STRANGER = """
import contextlib, warnings
warnings.simplefilter("error")
import gymnasium as gym
import clickgym
env = gym.make("PBMRank-v0")
clickgym.run(clickgym.make_agent("TopRank", env, seed=0, horizon=100), env, 100, seed=0)
for id in ("NonStationaryPBMRank-v0", "ContextualPBMRank-v0"):
    envs = gym.make_vec(id, 2)
    envs.reset(seed=0)

from clickgym.command_line import main
with contextlib.redirect_stderr(None):  # progress
    words = "run PBMRank-v0 --agents TopRank --horizon 200 --runs 2 --out seven"
    assert main(words.split()) == 0
"""


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
        "metrics": METRIC,
        "shop": SHOP,
    }
    (folder / "lib" / "ownpkg").mkdir(parents=True)
    (folder / "work").mkdir()
    for name, code in sources.items():
        (folder / "lib" / "ownpkg" / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


def python(shop, *words, with_package=True, exit_code=0):
    path = str(shop / "lib") if with_package else ""
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(shop / "cache")}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=shop / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == exit_code, done.stderr
    return done


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


@pytest.fixture(scope="module")
def printed(shop):
    """What the script prints with an empty cache and two workers."""
    (shop / "everything.py").write_text(EVERYTHING, encoding="utf-8")
    return python(shop, "-W", "error", shop / "everything.py", "one", "2").stdout


@pytest.mark.slow  # in the quick tests, this process does what the tests below need
def test_everything_in_a_script(shop, printed):
    assert list((shop / "cache").rglob("*.nbc")), "our kernels are kept"
    told = json.loads(printed)
    assert {name: result[0] for name, result in told.items() if "agent" in name} == {
        "own model, our agent": "compiled",
        "our model, own plain agent": "python",
        "own model, own agent, own metric": "compiled",
    }
    agents, regret = told["sweep"]
    assert agents == [
        name
        for name in ("TopRank", "ownpkg.agents:Optimist:credit=2", "ownpkg.agents:TopRank")
        for _ in range(2)
    ]
    assert regret[4] == regret[5], "always the same list"
    assert len(set(regret)) == 5
    assert [value is None for value in told["shop"]] == [False] * 4 + [True] * 4, (
        "regret is known where it is told"
    )
    assert len(told["own"]) == 4
    words = "run PBMRank-v0 --horizon 200 --runs 2 --out line --agents"
    names = ["TopRank", "ownpkg.agents:TopRank", "ownpkg.agents:Optimist:credit=2"]
    python(shop, "-m", "clickgym", *words.split(), *names)
    script, line = (
        polars.read_parquet(shop / "work" / out / "results.parquet") for out in ("one", "line")
    )
    assert line["regret"].to_list() == script.filter(env="PBMRank-v0")["regret"].to_list()


@pytest.mark.slow
def test_everything_in_a_script_with_an_empty_and_a_filled_cache(shop, printed):
    assert python(shop, "-W", "error", shop / "everything.py", "two", "1").stdout == printed


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


def test_own_agents_on_the_command_line(shop, command):
    """They are run by name, as a sweep runs them."""
    names = ["TopRank", "ownpkg.agents:TopRank", "ownpkg.agents:Optimist:credit=2"]
    words = "run PBMRank-v0 --horizon 200 --runs 2 --out three --agents"
    printed = command(*words.split(), *names).out
    assert all(name in printed for name in names)
    line = clickgym.Results(shop / "work" / "three").frame
    assert_frame_equal(line, clickgym.sweep(["PBMRank-v0"], names, 200, 2).frame)


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


NOTEBOOK = """
import json
import clickgym
from clickgym.agents import Agent
class Mine(Agent):
    def __init__(self, n_items, n_positions, *, seed=None):
        self.n_positions = n_positions
    def rank(self, observation):
        return list(range(self.n_positions))
    def update(self, observation, ranking, clicks, reward):
        pass
# next cell
from ownpkg.models import FadingModel
users = FadingModel([0.2, 0.7, 0.4, 0.1], 0.8, 2)
table = clickgym.sweep({"mine": users}, [Mine, clickgym.agents.TopRank], 200, 2, n_jobs=2).frame
print(table.filter(table["step"] == 200)["agent"].to_list())
"""


def test_classes_of_a_notebook_take_part_with_worker_processes(shop, monkeypatch):
    """Skipped where what runs notebooks is not installed: nbclient and ipykernel."""
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(shop / "lib"))
    cells = [nbformat.v4.new_code_cell(cell) for cell in NOTEBOOK.split("# next cell")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
    printed = "".join(out.get("text", "") for cell in notebook.cells for out in cell.outputs)
    assert "'__main__:Mine', '__main__:Mine', 'TopRank', 'TopRank'" in printed


def test_a_kernel_that_allocates_is_told_in_one_line(command):
    words = "run PBMRank-v0 --agents ownpkg.agents:Sorting --horizon 200 --runs 2 --out four"
    told = command(*words.split(), exit_code=2).err.splitlines()
    assert re.search(
        r"^clickgym: .*ownpkg\.agents:sort: line \d+ of .*agents\.py.*np\.argsort.* allocates",
        told[-1],
    )
    assert sum("kernel" in line for line in told) == 1
    assert "Traceback" not in told


@pytest.mark.slow
@pytest.mark.usefixtures("printed")
def test_who_does_not_have_the_package_does_not_need_it(shop):
    assert python(shop, "-c", STRANGER, with_package=False).stderr == ""
