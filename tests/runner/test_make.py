"""What can be passed as agent and environment, and what it is called: one label for a name and for
the object behind it.
"""

import importlib
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from polars.testing import assert_frame_equal
from registries import restored
from slow import slow

import clickgym
from clickgym.agents import BatchRank, CascadeKLUCB, Fixed, Random, TopRank
from clickgym.envs import ClickEnv, PositionBasedModel, load_instance
from clickgym.envs.interface import sizes_of
from clickgym.runner.labels import by_label, own_label
from clickgym.runner.make import agent_class, make_env
from clickgym.runner.reports.figures import unit_of

MODEL = PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5])

MINE = """
import gymnasium as gym
import numpy as np
import clickgym
from clickgym.agents import Agent

class TopRank(Agent):  # named like one of the package
    def __init__(self, n_items, n_positions, *, shift=1, seed=None):
        self.items = np.random.default_rng(seed).permutation(n_items)
        self.n_positions, self.shift = n_positions, shift

    def rank(self, observation):
        return self.items[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.items = np.roll(self.items, self.shift)

class Outer:
    class Inner(TopRank):
        pass

class MineModel(clickgym.envs.PositionBasedModel):
    \"\"\"Users of a test.\"\"\"
    short = "MINE"
    title = "model of a test"
    default_instance = None

clickgym.register_click_model("MineRank-v0", MineModel)
"""


class Guest(gym.Env):
    """Not ours, but it takes lists and returns clicks."""

    action_space = gym.spaces.MultiDiscrete([4, 4])
    observation_space = gym.spaces.MultiBinary(2)


@pytest.fixture(scope="module", autouse=True)
def imported(tmp_path_factory):
    """A module of agents, models and environments: imported once, for the short name of its model
    is that of one class.
    """
    folder = tmp_path_factory.mktemp("module")
    (folder / "label_mine.py").write_text(MINE)
    with restored(), pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("label_mine")
        del sys.modules["label_mine"]


@pytest.fixture
def mine(tmp_path, monkeypatch, imported):
    """Work in a folder with that module; the module."""
    (tmp_path / "label_mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return imported


def sweep(envs, agents, out, **arguments):
    return clickgym.sweep(
        envs, agents, 200, 2, **{"seed": 3, "n_jobs": 1, "out": out} | arguments
    ).frame


# ---------------------------------------------------------------------------------------- one label


def test_labels_of_objects(mine):
    """An object has the label by which it could be passed."""
    labels = {
        "BatchRank": BatchRank,
        "CascadeKLUCB:feedback=first_click": (CascadeKLUCB, {"feedback": "first_click"}),
        "label_mine:TopRank": mine.TopRank,
        "label_mine:TopRank:shift=2": (mine.TopRank, {"shift": 2}),
        "label_mine:Outer.Inner": mine.Outer.Inner,
        'BatchRank:delta="0.5"': (BatchRank, {"delta": "0.5"}),
        "BubbleRank:initial=[2,0,1]": ("BubbleRank", {"initial": (2, 0, 1)}),
        "PBMRank-v0:reward=any_click": ("PBMRank-v0", {"reward": "any_click"}),
    }
    assert [own_label(thing) for thing in labels.values()] == list(labels)
    assert agent_class("label_mine:Outer.Inner") is mine.Outer.Inner

    class Local(Random):
        """It stands in a function."""

    without = [
        lambda: gym.make("PBMRank-v0"),
        Local,
        MODEL,
        (Fixed, {"ranking": np.array([1, 0])}),
        (BatchRank, {"delta": "a,b=c"}),
        ("PBMRank-v0", {"instance": load_instance("yandex-9")}),
    ]
    assert [own_label(thing) for thing in without] == [None] * len(without)


def test_names_of_stable_baselines3():
    sb3 = pytest.importorskip("stable_baselines3")
    assert (
        own_label(sb3.DDPG)
        == own_label(agent_class("stable_baselines3:DDPG"))
        == "stable_baselines3:DDPG"
    )
    assert type(clickgym.make_agent(sb3.DDPG, gym.make("PBMRank-v0"))).__name__ == "DDPG"


@pytest.mark.parametrize("n_jobs", [1, *slow(2)])
def test_objects_and_names_give_the_same_table(mine, tmp_path, n_jobs):
    """Each resumes the folder of the other."""
    names = ["TopRank", "CascadeKLUCB:feedback=first_click", "label_mine:TopRank:shift=2"]
    classes = [TopRank, (CascadeKLUCB, {"feedback": "first_click"}), (mine.TopRank, {"shift": 2})]
    envs = ["PBMRank-v0:reward=any_click"], [("PBMRank-v0", {"reward": "any_click"})]
    by_name = sweep(envs[0], names, "a")
    assert_frame_equal(sweep(envs[1], classes, "b", n_jobs=n_jobs), by_name)
    assert_frame_equal(sweep(envs[1], classes, "a"), by_name)
    assert_frame_equal(sweep(envs[0], names, "b"), by_name)


@pytest.mark.parametrize("n_jobs", [1, *slow(2)])
def test_labels_of_a_mapping(tmp_path, n_jobs):
    """They stand for anything that makes an agent or has users."""
    named = "PBMRank-v0:attraction=[0.5,0.4],examination=[1.0]"
    envs = {"model": MODEL.with_positions(1), "named": named}
    made, fixed = lambda **sizes: TopRank(horizon=200, **sizes), (Fixed, {"ranking": np.array([1])})
    table = sweep(envs, {"made": made, "fixed": fixed}, tmp_path / "a", n_jobs=n_jobs)
    assert table["env"].unique(maintain_order=True).to_list() == ["model", "named"]
    assert table["agent"].unique(maintain_order=True).to_list() == ["made", "fixed"]
    regret = table.filter(env="named", agent="fixed", step=200)["regret"].to_list()
    assert regret == pytest.approx([200 * 0.1] * 2)


def test_labels_that_are_names(tmp_path):
    assert list(by_label("agent", {"TopRank": TopRank})) == ["TopRank"]
    for label, thing in {"TopRank": BatchRank, "PBMRank-v0": MODEL, "a:b": TopRank}.items():
        with pytest.raises(ValueError, match="is the name of something else; choose another"):
            by_label("agent", {label: thing})
    for label in ("", " ", "a\nb", 3):
        with pytest.raises(ValueError, match="expected some words"):
            by_label("agent", {label: TopRank})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("TopRank", "BatchRank"),
        ("TopRank", (TopRank, {"delta": 0.1})),
    ],
)
def test_two_agents_under_one_label_are_not_mixed(first, second, tmp_path):
    sweep({"env": MODEL}, {"mine": first}, tmp_path / "out")
    with pytest.raises(ValueError, match=r"another configuration \(mine: "):
        sweep({"env": MODEL}, {"mine": second}, tmp_path / "out")


def test_two_environments_under_one_label_are_not_mixed(tmp_path):
    sweep({"mine": "PBMRank-v0"}, ["Random"], tmp_path / "out")
    with pytest.raises(ValueError, match=r"another configuration \(mine: "):
        sweep({"mine": "PBMRank-v0:reward=any_click"}, ["Random"], tmp_path / "out")


# --------------------------------------------------------------------------------- worker processes

SCRIPT = (
    MINE
    + """
import sys

if __name__ == "__main__":
    envs = ["PBMRank-v0", "MineRank-v0:attraction=[0.5,0.4,0.3],examination=[1.0,0.5]"]
    agents = [TopRank, (TopRank, {"shift": 2}), "__main__:Outer.Inner", "Random"]
    for out, n_jobs in (("one", 1), ("two", 2)):
        clickgym.sweep(envs, agents, 50, 2, out=out, n_jobs=n_jobs)
    labelled = {"mine": MineModel([0.5, 0.4], [1.0])}
    clickgym.sweep(labelled, {"it": (TopRank, {"shift": 3})}, 50, 2, out="three", n_jobs=2)
"""
)


@pytest.mark.parametrize("with_source", slow(True, False))
def test_classes_of_a_script(tmp_path, with_source):
    (tmp_path / "script.py").write_text(SCRIPT)
    words = ["script.py"] if with_source else ["-c", SCRIPT]
    # the second goes on with finished folders, so the same source is known by the same letters
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
    one, two, three = (clickgym.Results(tmp_path / out) for out in ("one", "two", "three"))
    assert_frame_equal(one.frame, two.frame)
    assert list(one.config["agents"]) == [
        "__main__:TopRank",
        "__main__:TopRank:shift=2",
        "__main__:Outer.Inner",
        "Random",
    ]
    assert three.frame["env"].unique(maintain_order=True).to_list() == ["mine"]
    assert (three.rows["engine"] == "python").all()


# -------------------------------------------------------------------------------------- one session


def test_run_takes_what_a_sweep_takes():
    made = clickgym.make_agent("TopRank", gym.make("PBMRank-v0"), horizon=300, seed=4)
    wanted = clickgym.run(made, gym.make("PBMRank-v0"), 300, seed=4)
    for agent, env in (
        ("TopRank", "PBMRank-v0"),
        (TopRank, ("PBMRank-v0", {})),
        ((TopRank, {}), gym.make("PBMRank-v0")),
    ):
        result = clickgym.run(agent, env, 300, seed=4)
        assert result.to_frame().equals(wanted.to_frame())
    assert clickgym.run("Random", MODEL, 10, seed=0).instance == "custom"


def test_sizes_of_foreign_environments():
    assert sizes_of(Guest())[:2] == (4, 2)
    agent = clickgym.make_agent("Random", Guest(), seed=0)
    assert (agent.n_items, agent.n_positions) == (4, 2)
    with pytest.raises(
        ValueError, match=r"Oracle requires ranking, which .*Guest.*: give ranking="
    ):
        clickgym.make_agent("Oracle", Guest())
    with pytest.raises(ValueError, match="C2UCB ranks by features"):
        clickgym.make_agent("C2UCB", Guest())
    with pytest.raises(ValueError, match="whose actions are ranked lists"):
        sizes_of(gym.make("CartPole-v1"))
    assert make_env("CartPole-v1").spec.id == "CartPole-v1"


# ----------------------------------------------------------------------------------------- refusals


REFUSED = [
    (
        lambda: sweep(["PBMRank-v0"], TopRank, "new"),
        TypeError,
        "expected a list of agents, got <class",
    ),
    (
        lambda: sweep(MODEL, ["Random"], "new"),
        TypeError,
        "expected a list of environments, got PositionBasedModel",
    ),
    (
        lambda: sweep(["PBMRank-v0"], [TopRank(10, 5, horizon=9)], "new"),
        ValueError,
        r'has no name; give it one in a mapping \{"my agent": ...\}',
    ),
    (
        lambda: sweep(["PBMRank-v0"], {"mine": TopRank(10, 5, horizon=9)}, "new"),
        TypeError,
        "is an agent, and one is made for each run: pass its class, TopRank",
    ),
    (
        lambda: sweep({"a": ClickEnv(MODEL)}, ["Random"], "new"),
        TypeError,
        "a sweep makes a new environment for each run",
    ),
    (
        lambda: sweep({"a": load_instance("yandex-9")}, ["Random"], "new"),
        TypeError,
        "expected an id, .id, arguments. or a click model, got Instance",
    ),
    (
        lambda: sweep([PositionBasedModel], ["Random"], "new"),
        TypeError,
        "expected an id, .id, arguments. or a click model",
    ),
    (
        lambda: sweep({"a": MODEL}, ["Random"], "new", instances=["yandex-9"]),
        ValueError,
        "has users of its own",
    ),
    (
        lambda: sweep({"a": lambda: 3}, ["Random"], "new"),
        TypeError,
        "returned is 3; expected an env",
    ),
    (
        lambda: sweep(["PBMRank-v0"], {"a": lambda **_: 3}, "new"),
        TypeError,
        "returned 3; expected an agent",
    ),
    (
        lambda: sweep(["PBMRank-v0"], [TopRank, "TopRank"], "new"),
        ValueError,
        "agent 'TopRank' is named twice",
    ),
    (
        lambda: sweep(["PBMRank-v0:instance=yandex-9"], ["Random"], "new", instances=["yandex-99"]),
        ValueError,
        "of its own",
    ),
    (
        lambda: sweep(["CartPol-v1"], ["Random"], "new"),
        ValueError,
        "did you mean 'CartPole-v1'.*is named module:Id-v0",
    ),
    (
        lambda: sweep(["json:My-v0"], ["Random"], "new"),
        ValueError,
        "the module 'json' registers no id 'My-v0'",
    ),
    (
        lambda: sweep(["PBMRank-v0"], ["json:dumps.nothing"], "new"),
        ValueError,
        "has no 'dumps.nothing'",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_is_refused_with_what_can(call, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call()
    assert not (tmp_path / "new").exists()


def test_trained_policies_are_refused():
    """The message names what plays them."""

    class Trained:
        def predict(self, observation):
            return [0] * 5

    with pytest.raises(TypeError, match=r"play it as clickgym.agents.FrozenPolicy\(..., model="):
        clickgym.run(Trained(), "PBMRank-v0", 10)
    frozen = clickgym.agents.FrozenPolicy(10, 5, model=Trained())
    assert clickgym.run(frozen, "PBMRank-v0", 10, seed=0).engine == "python"


# ------------------------------------------------------------------------------------------ reports


@pytest.mark.usefixtures("undrawn")
def test_reports_speak_of_every_label(mine, tmp_path, printed):
    sweep(
        {"users": MODEL, "PBMRank-v0": "PBMRank-v0"},
        {"a b": mine.TopRank, "Random": "Random"},
        tmp_path / "out",
    )
    assert "a b" in printed(["report", str(tmp_path / "out"), "--html"])
    assert [unit_of({}, env) for env in ("users", "MineRank-v0", "CartPole-v1")] == [
        "reward",
        "clicks",
        "reward",
    ]
