"""Labels that are typed: one grammar for the command line, for files and in Python; seeds, tables
and folders hang on them.
"""

import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.command_line import main
from clickgym.core.specs import parse_spec
from clickgym.runner.names import by_label, split_label

ENVS = ["easy users=PBMRank-v0:instance=uniform:seed=3", "CMRank-v0"]
AGENTS = ["mine=own_random:Mine:boldness=2.0", "b c=TopRank", "told=Oracle", "Random"]
OBJECTS = [("own_random:Mine", {"boldness": 2.0}), "TopRank", "Oracle", "Random"]
OWN = """
import clickgym
class Mine(clickgym.agents.Random):
    def __init__(self, n_items, n_positions, *, boldness=1.0, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    (folder / "own_random.py").write_text(OWN)
    words = ["--horizon", "50", "--runs", "2", "--jobs", "1", "--out", str(folder / "out")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", *ENVS, "--agents", *AGENTS, *words]) == 0
    return folder


@pytest.fixture
def here(played, monkeypatch):
    monkeypatch.chdir(played)
    return played


# ------------------------------------------------------------------------------------------ grammar


@pytest.mark.parametrize(
    ("text", "label", "name", "arguments"),
    [
        ("TopRank", None, "TopRank", {}),
        ("TopRank:delta=0.1", None, "TopRank", {"delta": 0.1}),
        ("my:Agent:alpha=0.1", None, "my:Agent", {"alpha": 0.1}),
        ("PBMRank-v0:instance=uniform:seed=3", None, "PBMRank-v0", {"instance": "uniform:seed=3"}),
        ("mine=TopRank", "mine", "TopRank", {}),
        (
            "mine, tuned (2)=my:Agent:alpha=0.1,beta=[1,2]",
            "mine, tuned (2)",
            "my:Agent",
            {"alpha": 0.1, "beta": [1, 2]},
        ),
        (
            "easy=PBMRank-v0:instance=uniform:seed=3",
            "easy",
            "PBMRank-v0",
            {"instance": "uniform:seed=3"},
        ),
    ],
)
def test_label_before_the_equals_sign(text, label, name, arguments):
    there, spec = split_label(text)
    assert there == label
    assert parse_spec(spec) == (name, arguments)
    assert list(by_label("agent", [text])) == [text if label is None else label]


@pytest.mark.parametrize(
    ("text", "value"),
    [("False", False), ("false", False), ("None", None), (".5", 0.5), ("1e3", 1000.0), ("a", "a")],
)
def test_values_are_read_as_by_python(text, value):
    assert parse_spec(f"Agent:alpha={text},beta=1") == ("Agent", {"alpha": value, "beta": 1})


def test_arguments_stand_between_commas():
    with pytest.raises(ValueError, match=r"commas, as in n_envs=64,n_steps=4$"):
        parse_spec("PPO:n_envs=64:n_steps=4")


# ------------------------------------------------------------------------------------------ results


@pytest.mark.usefixtures("undrawn")
def test_a_label_is_only_a_name(here):
    """It changes no digit, neither that of an agent nor that of an environment."""
    from_python = clickgym.sweep(
        {"easy users": ("PBMRank-v0", {"instance": "uniform:seed=3"}), "CMRank-v0": "CMRank-v0"},
        dict(zip(("mine", "b c", "told", "Random"), OBJECTS, strict=True)),
        50,
        2,
    )
    table = clickgym.Results("out").frame
    assert_frame_equal(from_python.frame, table)
    unlabelled = clickgym.sweep(
        ["CMRank-v0"], ["own_random:Mine:boldness=2.0", "Random"], 50, 2, n_jobs=1
    ).frame
    rows = table.filter(env="CMRank-v0")
    assert unlabelled.filter(agent="Random").equals(rows.filter(agent="Random"))
    own = unlabelled.filter(polars.col("agent") != "Random").drop("agent")
    assert own.equals(rows.filter(agent="mine").drop("agent"))
    named = clickgym.sweep({"other": "CMRank-v0"}, ["Random"], 50, 2, n_jobs=1).frame
    assert named.drop("env").equals(rows.filter(agent="Random").drop("env"))
