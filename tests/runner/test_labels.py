"""Labels that are typed: one grammar for the command line, for files and in Python; seeds, tables
and folders hang on them.
"""

import html
import shutil
from pathlib import Path

import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.agents import CascadeTS
from clickgym.command_line import main
from clickgym.runner.labels import by_label, parse_spec, split_label

ENVS = ["easy users=PBMRank-v0:instance=uniform:seed=3", "CMRank-v0"]
AGENTS = ["mine=own_random:Mine:boldness=2.0", "b c=TopRank", "told=Oracle", "Random"]
OWN = """
import clickgym
class Mine(clickgym.agents.Random):
    def __init__(self, n_items, n_positions, *, boldness=1.0, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory, undrawn_here):
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
        ("my.module:MyAgent", None, "my.module:MyAgent", {}),
        ("my:Agent:alpha=0.1", None, "my:Agent", {"alpha": 0.1}),
        ("PBMRank-v0:instance=uniform:seed=3", None, "PBMRank-v0", {"instance": "uniform:seed=3"}),
        ("mine=TopRank", "mine", "TopRank", {}),
        ("mine=my:Agent", "mine", "my:Agent", {}),
        ("mine=my:Agent:alpha=0.1", "mine", "my:Agent", {"alpha": 0.1}),
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
        ("ε=EpsilonGreedy:epsilon=0.1", "ε", "EpsilonGreedy", {"epsilon": 0.1}),
    ],
)
def test_label_before_the_equals_sign(text, label, name, arguments):
    there, spec = split_label(text)
    assert there == label
    assert parse_spec(spec) == (name, arguments)
    assert list(by_label("agent", [text])) == [text if label is None else label]


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        (["=TopRank"], "the label of agent 'TopRank' is ''; expected some words"),
        ([" =TopRank"], "is ' '; expected some words"),
        (["a\nb=TopRank"], "is 'a.nb'; expected some words"),
        (["a\u202eb=TopRank"], "expected some words"),
        (["mine=TopRank", "mine=BatchRank"], "agent 'mine' is named twice"),
        (["mine=TopRank", "mine=TopRank"], "agent 'mine' is named twice"),
        (["TopRank", "TopRank=TopRank"], "agent 'TopRank' is named twice"),
        (["TopRank=BatchRank"], "the label 'TopRank' is the name of something else"),
        (["PBMRank-v0=BatchRank"], "the label 'PBMRank-v0' is the name of something else"),
        (
            ["mine=other=TopRank"],
            "'other=TopRank': only a sweep takes labels; expected 'TopRank'",
        ),
        (["mine="], "unknown agent ''"),
    ],
)
def test_bad_labels_are_refused_in_one_line(agents, message, tmp_path, refused):
    with pytest.raises(ValueError, match=message):
        clickgym.sweep(["PBMRank-v0"], agents, 10, 1, out=tmp_path / "new")
    words = ["--horizon", "10", "--runs", "1", "--out", str(tmp_path / "new")]
    assert refused(["run", "PBMRank-v0", "--agents", *agents, *words]).count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_label_is_refused_where_it_means_nothing(capsys, tmp_path):
    for call in (
        lambda: clickgym.run("mine=TopRank", "PBMRank-v0", 10),
        lambda: clickgym.run("TopRank", "mine=PBMRank-v0", 10),
        lambda: clickgym.sweep(["PBMRank-v0"], {"other": "mine=TopRank"}, 10, 1),
    ):
        with pytest.raises(ValueError, match="only a sweep takes labels"):
            call()


# ------------------------------------------------------------------------------------------ results


@pytest.mark.usefixtures("undrawn")
def test_seeds_hang_on_the_label_as_in_python(here):
    from_python = clickgym.sweep(
        {"easy users": ("PBMRank-v0", {"instance": "uniform:seed=3"}), "CMRank-v0": "CMRank-v0"},
        {
            "mine": ("own_random:Mine", {"boldness": 2.0}),
            "b c": "TopRank",
            "told": "Oracle",
            "Random": "Random",
        },
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
    other = unlabelled.filter(polars.col("agent") != "Random").drop("agent")
    # another label has other seeds
    assert not other.equals(rows.filter(agent="mine").drop("agent"))


def test_the_configuration_says_what_labels_stand_for(here):
    config = clickgym.Results(here / "out").config
    assert config["envs"] == {"easy users": ENVS[0].partition("=")[2], ENVS[1]: ENVS[1]}
    assert config["agents"] == {
        "mine": "own_random:Mine:boldness=2.0",
        "b c": "TopRank",
        "told": "Oracle",
        "Random": "Random",
    }


@pytest.mark.usefixtures("undrawn")
def test_label_of_something_else(here, refused):
    shutil.copytree("out", "grown")
    words = [
        "run",
        ENVS[1],
        "--horizon",
        "50",
        "--runs",
        "3",
        "--jobs",
        "1",
        "--out",
        "grown",
        "--agents",
    ]
    assert "another configuration (mine: " in refused([*words, "mine=own_random:Mine:boldness=3.0"])
    (here / "own_random.py").write_text(OWN + "# edited\n")
    assert "another configuration (source of mine: " in refused(
        [*words, "mine=own_random:Mine:boldness=2.0"]
    )
    (here / "own_random.py").write_text(OWN)
    assert main([*words, "mine=own_random:Mine:boldness=2.0"]) == 0
    assert clickgym.Results("grown").frame.filter(agent="mine", run=2).height > 0
    assert "another configuration (easy users: " in refused(
        ["run", "easy users=PBMRank-v0:instance=uniform:seed=3,cutoff=1", *words[2:], "Random"]
    )


@pytest.mark.usefixtures("undrawn")
def test_labels_in_reports(here, capsys, printed):
    capsys.readouterr()
    out = printed(["report", "out", "--html"])
    assert "easy users" in out
    assert "b c" in out
    assert "no lower bound" not in out
    page = html.unescape(Path("out/report.html").read_text(encoding="utf-8"))
    assert (
        f"clickgym run '{ENVS[0]}' CMRank-v0 --agents {AGENTS[0]} 'b c=TopRank' told=Oracle Random"
        in page
    )
    assert main(["report", "out", "--agents", "told", "b c", "--environments", "easy users"]) == 0
    assert "CMRank-v0" not in capsys.readouterr().out


def test_labels_that_cannot_be_typed(tmp_path):
    agents = {
        "a/b": "Random",
        "x=1": CascadeTS,
        "first": (CascadeTS, {"feedback": "first_click"}),
    }
    results = clickgym.sweep(["PBMRank-v0"], agents, 20, 1, out=tmp_path / "out")
    assert results.config["agents"] == {
        "a/b": "Random",
        "x=1": "CascadeTS",
        "first": "CascadeTS:feedback=first_click",
    }
