"""Tests of what can be passed as agent or environment, and of the labels: a name and the object
behind it have the same label.
"""

import importlib
import sys
import threading
import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.agents import BatchRank, CascadeDUCB, CascadeKLUCB, Fixed, Random, TopRank
from clickgym.core.specs import parse_spec
from clickgym.envs import ClickEnv, PiecewiseStationaryModel, PositionBasedModel, load_instance
from clickgym.runner.make.agents import resolve_agent
from clickgym.runner.make.labels import label_objects, spec_of, split_label
from tests.conftest import AGENT
from tests.helpers.programs import output
from tests.helpers.slow import slow

pytestmark = pytest.mark.uncompiled

MODEL = PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5])

MINE = f"""
import clickgym
{AGENT.replace("Forward", "TopRank").replace("seed=None", "shift=1, seed=None")}

class Outer:
    class Inner(TopRank):
        pass

"""
"""A user's agent that is named like one of the package, and a class within a class."""


@pytest.fixture
def mine(write, tmp_path, monkeypatch):
    """Work in a folder with the user's module, and return this module."""
    write(label_mine=MINE)
    monkeypatch.chdir(tmp_path)
    return importlib.import_module("label_mine")


def sweep(envs, agents, out, **arguments):
    settings = {"seed": 3, "n_jobs": 1, "out": out} | arguments
    return clickgym.sweep(envs, agents, 200, 2, **settings).frame


# ---------------------------------------------------------------------------------------- one label


def test_labels_of_objects(mine):
    """The label of an object is the spec by which it could be passed."""
    labels = {
        "BatchRank": BatchRank,
        "CascadeKLUCB:feedback=first_click": (CascadeKLUCB, {"feedback": "first_click"}),
        "label_mine:TopRank": mine.TopRank,
        "label_mine:TopRank:shift=2": (mine.TopRank, {"shift": 2}),
        "label_mine:Outer.Inner": mine.Outer.Inner,
        'BatchRank:delta="0.5"': (BatchRank, {"delta": "0.5"}),
        "BubbleRank:initial=[2,0,1]": ("BubbleRank", {"initial": (2, 0, 1)}),
        'PBMRank-v0:instance="uniform:n_items=20,seed=3"': (
            "PBMRank-v0",
            {"instance": "uniform:n_items=20,seed=3"},
        ),
        "PBMRank-v0:reward=any_click": ("PBMRank-v0", {"reward": "any_click"}),
    }
    assert [spec_of(thing) for thing in labels.values()] == list(labels)
    assert resolve_agent("label_mine:Outer.Inner") == (mine.Outer.Inner, {})

    class Local(Random):
        """An agent class that is defined inside a function."""

    without = [
        lambda: gym.make("PBMRank-v0"),
        Local,
        MODEL,
        (Fixed, {"ranking": np.array([1, 0])}),
        (BatchRank, {"delta": {1}}),
        ("PBMRank-v0", {"instance": load_instance("yandex-9")}),
    ]
    assert [spec_of(thing) for thing in without] == [None] * len(without)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("n_jobs", [1, *slow(2)])
def test_objects_and_names_give_the_same_table(mine, tmp_path, n_jobs):
    """A sweep by names resumes the folder of a sweep with the same objects, and the other way
    round.
    """
    names = ["TopRank", "CascadeKLUCB:feedback=first_click", "label_mine:TopRank:shift=2"]
    classes = [TopRank, (CascadeKLUCB, {"feedback": "first_click"}), (mine.TopRank, {"shift": 2})]
    envs = ["PBMRank-v0:reward=any_click"], [("PBMRank-v0", {"reward": "any_click"})]
    by_name = sweep(envs[0], names, "a")
    assert_frame_equal(sweep(envs[1], classes, "b", n_jobs=n_jobs), by_name)
    assert_frame_equal(sweep(envs[1], classes, "a"), by_name)
    assert_frame_equal(sweep(envs[0], names, "b"), by_name)


# --------------------------------------------------------------------------------- worker processes

SCRIPT = (
    MINE
    + """
class MineModel(clickgym.envs.PositionBasedModel):
    short = "MINE"
    default_instance = None

clickgym.register_click_model("MineRank-v0", MineModel)

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
    # the second goes on with finished folders: what has a file is the same in another process
    for _ in range(1 + with_source):
        output(sys.executable, *words, cwd=tmp_path)
    one, two, three = (clickgym.Results(tmp_path / out) for out in ("one", "two", "three"))
    assert_frame_equal(one.frame, two.frame)
    names = "__main__:TopRank __main__:TopRank:shift=2 __main__:Outer.Inner Random"
    assert one.names("agent") == names.split()
    assert three.frame["env"].unique(maintain_order=True).to_list() == ["mine"]
    assert (three.rows["engine"] == "python").all()


# ------------------------------------------------------------------------------- what was mistyped


def test_agents_that_ignore_features_are_told():
    envs, agents = ["ContextualPBMRank-v0", "PBMRank-v0"], ["TopRank", "Random", "CascadeTS"]
    given = {"instances": ["linear:seed=1", "linear:seed=2"], "n_jobs": 1}
    with pytest.warns(UserWarning, match="^CascadeTS ignores the features"):
        clickgym.sweep(envs[:1], [*agents, "LinearTS"], 10, 1, **given)
    with pytest.warns(UserWarning, match="^TopRank ignores .* ContextualPBMRank-v0 shows"):
        clickgym.run("TopRank", envs[0], 10, seed=0)
    with warnings.catch_warnings(action="error"):
        for reads in ("Random", "LinearTS"):
            clickgym.run(reads, envs[0], 10, seed=0)
        clickgym.sweep(envs[1:], agents, 10, 1, n_jobs=1)


def test_an_agent_gets_what_its_paper_assumes_known():
    """An agent that requires missing knowledge raises an error."""
    agent = clickgym.make_agent("PBMUCB", gym.make("PBMRank-v0"), seed=0)
    assert [*agent.filled_in] == ["n_items", "n_positions", "examination"]
    for name, env_id, message in (
        ("PBMUCB", "CascadeMDPRank-v0", "requires examination, which .* pass examination="),
        ("Fixed", "ContextualPBMRank-v0", "requires ranking, but .* new items in every session"),
    ):
        with pytest.raises(ValueError, match=f"^{name} {message}"):
            clickgym.make_agent(name, gym.make(env_id), seed=0)


def test_refusal_of_an_argument_names_the_agent():
    agents = ["Random", "GLRCascadeKLUCB"]
    with pytest.raises(ValueError, match=r"^GLRCascadeKLUCB: horizon is 1; expected .* from 2 "):
        clickgym.sweep(["PBMRank-v0"], agents, 1, 1, n_jobs=1)


# ------------------------------------------------------------------------------------------ grammar


@pytest.mark.parametrize(
    ("text", "label", "name", "arguments"),
    [
        ("TopRank", None, "TopRank", {}),
        ("my:Agent:alpha=0.1", None, "my:Agent", {"alpha": 0.1}),
        ("PBMRank-v0:instance=uniform:seed=3", None, "PBMRank-v0", {"instance": "uniform:seed=3"}),
        ("mine=TopRank", "mine", "TopRank", {}),
        ("mine, 2=my:Agent:a=.1,b=[1,2]", "mine, 2", "my:Agent", {"a": 0.1, "b": [1, 2]}),
        ("easy=E-v0:instance=uniform:seed=3", "easy", "E-v0", {"instance": "uniform:seed=3"}),
        ("A:a=False,b=None,c=1e3,d=w", None, "A", {"a": False, "b": None, "c": 1e3, "d": "w"}),
    ],
)
def test_label_name_and_arguments_of_what_is_typed(text, label, name, arguments):
    there, spec = split_label(text)
    assert there == label
    assert parse_spec(spec) == (name, arguments)
    assert list(label_objects("agent", [text])) == [spec_of(spec) if label is None else label]


@pytest.mark.parametrize("spec", ["uniform:n_items=10:seed=2", "PBMRank-v0:cutoff=2:reward=clicks"])
def test_a_colon_for_a_comma_is_named(spec):
    with pytest.raises(ValueError, match=f"^'{spec}': expected a comma before the next key"):
        parse_spec(spec)


def test_values_with_parts():
    """Values are JSON or Python literals; a value with brackets that cannot be read as either is
    an error, not a text.
    """
    arguments = {"b": {"c": [1, 2], "d": False}, "e": (3,)}
    assert parse_spec('A:b={"c":[1,2],"d":false},e=(3,)')[1] == arguments
    for text in ("dict(c=[1,2],d=3)", "{c:[1,2]}", "[1,2"):
        with pytest.raises(ValueError, match=r"^'A:b=.*': b: expected JSON or a Python literal"):
            parse_spec(f"A:b={text}")


class Writes(Random):
    """An agent that writes into its arguments, and stops if an earlier run has written there."""

    def __init__(self, n_items, n_positions, *, array, rng, notes, lock=None, seed=None):
        super().__init__(n_items, n_positions, seed=rng)
        assert not notes, "written by another run"
        notes["array"] = array
        array += 1


def written():
    return {"array": np.zeros(2), "rng": np.random.default_rng(5), "notes": {}}


def half_as_attractive(array):
    assert array.max() == 1, "written by another run"
    array /= 2
    return ClickEnv(PositionBasedModel(array, [1.0]))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_run_of_a_sweep_finds_its_arguments_unchanged(n_jobs):
    """The arguments may also be bound to the class or to the function of an environment."""
    agents = {"passed": (Writes, written()), "bound": partial(Writes, **written())}
    attraction = np.array([1.0, 0.5, 0.2])
    envs = {
        "passed": (half_as_attractive, {"array": attraction}),
        "bound": partial(half_as_attractive, attraction),
    }
    frame = clickgym.sweep(envs, agents, 50, 2, n_jobs=n_jobs).frame.filter(step=50)
    assert frame.height == 8
    assert frame["regret"].n_unique() == 1  # the same lists, because rng starts again
    assert attraction.max() == 1
    assert not agents["passed"][1]["notes"]


def test_arguments_that_cannot_be_copied_are_named():
    agent = Writes, {**written(), "lock": threading.Lock()}
    with pytest.warns(UserWarning, match="^mine: all runs share lock, which cannot be copied; "):
        clickgym.sweep(["PBMRank-v0"], {"mine": agent}, 50, 2, n_jobs=1)


def test_one_agent_gets_the_objects_that_are_passed():
    for make in (
        lambda agent: clickgym.make_agent(agent, gym.make("PBMRank-v0")),
        lambda agent: clickgym.run(agent, "PBMRank-v0", 50, seed=0),
    ):
        arguments = written()
        make((Writes, arguments))
        assert arguments["notes"]["array"] is arguments["array"]


class PassesOn(CascadeDUCB):
    def __init__(self, *sizes, **arguments):
        super().__init__(*sizes, **arguments)


def test_a_subclass_that_gets_no_horizon_is_named():
    with pytest.warns(UserWarning, match="PassesOn has no horizon"):
        clickgym.run(PassesOn, "CMRank-v0", 50, seed=0)


@pytest.mark.parametrize(("horizon", "is_told"), [(100, True), (101, False)])
def test_users_who_change_after_the_last_session_never_change(horizon, is_told):
    users = PiecewiseStationaryModel([MODEL, MODEL.relabelled([1, 2, 0])], [0, 100])
    with warnings.catch_warnings(record=True, action="always") as caught:
        clickgym.run("Random", users, horizon, seed=0)
    assert any("first change after session 100" in str(one.message) for one in caught) == is_told
