"""Results folders: they grow and resume without a changed number, refuse what contradicts, and
notice damage.
"""

import json
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.__main__ import main
from clickgym.core.files import FORMAT
from clickgym.envs import PositionBasedModel
from clickgym.runner.config import Config
from clickgym.runner.results import (
    RUNS,
    RunFiles,
    Trial,
    file_name,
    read_config,
    read_results,
    write_run,
)

ENVS, AGENTS = ["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random"]
INSTANCES = ["yandex-9", "yandex-990"]
LISTED = {"envs": ENVS, "agents": AGENTS, "instances": INSTANCES}
ALL = LISTED | {"runs": 3}
FIRST = {"envs": ENVS[:1], "agents": AGENTS[:1], "runs": 2, "instances": INSTANCES[:1]}
ONE = Trial(ENVS[0], INSTANCES[0], AGENTS[0], 1)
pytestmark = pytest.mark.usefixtures("undrawn")


def sweep(out, **changed):
    """The numbers of a small sweep of everything, in one thread, with some arguments changed."""
    arguments = {"horizon": 300, "seed": 5, "checkpoints": [10, 300], "n_jobs": 1, **ALL, **changed}
    envs, agents = arguments.pop("envs"), arguments.pop("agents")
    return clickgym.sweep(envs, agents, out=out, **arguments).frame


def numbers(out):
    return clickgym.Results(out).frame


@pytest.fixture
def played(monkeypatch):
    """What is played, in order; ``played.at_most`` interrupts after so many runs."""
    played = SimpleNamespace(trials=[], at_most=None)

    def write(path, frame):
        write_run(path, frame)
        played.trials.append(Trial(*frame.select(Trial._fields).row(0)))
        if len(played.trials) == played.at_most:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["clickgym.runner.sweep"], "write_run", write)
    return played


def path_of_one(out):
    return out / RUNS / RunFiles(read_config(out).labels.values()).path(ONE)


def files(folder):
    """Every file with its bytes and when it was written."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def edit(folder, **changed):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, undrawn_here):
    """The folder of one sweep over everything."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    sweep(folder)
    return folder


# ---------------------------------------------------------------------------------- what is there


def test_files_of_a_python_sweep(whole):
    """`sweep(out=)` in Python writes what the command line writes."""
    assert {path.name for path in whole.iterdir()} == {
        *("config.json", "runs", "results.parquet", "summary.csv", "regret.png", "regret.svg")
    }
    runs = {path.relative_to(whole / RUNS).as_posix() for path in (whole / RUNS).rglob("*.parquet")}
    assert "PBMRank-v0/yandex-9/TopRank-2.parquet" in runs
    assert len(runs) == 24
    table = polars.read_parquet(whole / "results.parquet")
    assert_frame_equal(table, read_results(whole)[0])
    columns = "env instance agent run step regret reward clicks engine seconds"
    assert table.columns == columns.split()


def test_configuration(whole):
    config = read_results(whole)[1].to_json()
    assert {key: list(config[key]) for key in LISTED} == LISTED
    assert config["runs"] == 3
    assert config["clickgym"] == clickgym.__version__
    assert {"numba", "numpy", "processor"} <= set(config["versions"])
    assert config["command"] == (
        "clickgym run PBMRank-v0 CMRank-v0 --agents TopRank Random --instance yandex-9 yandex-990 "
        "--horizon 300 --runs 3 --seed 5"
    )


def test_command_repeats_the_numbers(tmp_path):
    envs, agents = {"easy": "PBMRank-v0:cutoff=3"}, {"mine": "TopRank:delta=0.1", "R": "Random"}
    options = {"metrics": ["ndcg"], "engine": "python", "n_jobs": 1}
    clickgym.sweep(envs, agents, 20, 2, out=tmp_path / "a", **options)
    _, *words = read_results(tmp_path / "a")[1].command.split()
    assert words[1] == "easy=PBMRank-v0:cutoff=3"
    assert words[3:5] == ["mine=TopRank:delta=0.1", "R=Random"]
    assert main([*words, "--out", str(tmp_path / "b")]) == 0
    assert_frame_equal(numbers(tmp_path / "a"), numbers(tmp_path / "b"))


@pytest.mark.parametrize("label", ["a/b", "..", "café ~", "x" * 300, "y" * 299 + "z"])
def test_names_of_files(label, tmp_path):
    clickgym.sweep({label: "PBMRank-v0"}, {label: "Random"}, 10, 1, out=tmp_path / "out")
    (file,) = (tmp_path / "out" / RUNS).rglob("*.parquet")
    assert set(file_name(label)) <= set("%._-") | {c for c in file_name(label) if c.isalnum()}
    assert len(file.name) < 255
    assert clickgym.Results(tmp_path / "out").names("agent") == [label]


def test_labels_that_differ_by_case_only(tmp_path):
    """On macOS and Windows `mine` and `MINE` are one file. Whoever came first keeps the plain name,
    also in a folder that grows.
    """
    envs, agents = {"shop": "PBMRank-v0"}, {"mine": "Random", "Mine": "Oracle"}
    for more in ({}, {"MINE": "Fixed"}):
        clickgym.sweep(envs, agents | more, 20, 2, out=tmp_path, n_jobs=1)
    other = {"Shop": "PBMRank-v0:reward=any_click"}
    clickgym.sweep(other, {"MINE": "Fixed"}, 20, 2, out=tmp_path, n_jobs=1)
    found = [str(file.relative_to(tmp_path)).lower() for file in tmp_path.rglob("*.parquet")]
    assert len(set(found)) == 2 * 3 + 2 + len(["results.parquet"])
    assert "runs/shop/yandex-9982/mine-0.parquet" in found
    results = clickgym.Results(tmp_path)
    assert results.names("agent") == ["mine", "Mine", "MINE"]
    alone = clickgym.sweep(envs, {"MINE": "Fixed"}, 20, 2, n_jobs=1).frame
    assert_frame_equal(results.frame.filter(env="shop", agent="MINE"), alone)


# ------------------------------------------------------------------------------ growing, resuming


@pytest.mark.parametrize("key", ALL)
def test_grown_folder_equals_one_sweep(whole, tmp_path, played, key):
    before = sweep(tmp_path / "out", **{key: FIRST[key]})
    played.trials.clear()
    returned = sweep(tmp_path / "out")
    assert_frame_equal(returned, numbers(whole))
    assert_frame_equal(numbers(tmp_path / "out"), numbers(whole))
    assert not set(played.trials) & {Trial(*row) for row in before.select(Trial._fields).rows()}
    assert len(played.trials) == 24 - before.filter(step=300).height
    config = read_results(tmp_path / "out")[1].to_json()
    assert {key: list(config[key]) for key in LISTED} == LISTED
    assert config["runs"] == 3


def test_part_of_a_finished_folder(whole, played):
    """A part is returned, nothing is played or written, and the folder keeps the whole."""
    before = files(whole)
    table = sweep(whole, **FIRST)
    part = {"env": ENVS[0], "agent": AGENTS[0], "instance": INSTANCES[0]}
    assert_frame_equal(table, numbers(whole).filter(polars.col("run") < 2, **part))
    assert not played.trials
    assert files(whole) == before


@pytest.mark.parametrize("agents", [AGENTS, AGENTS[:1], AGENTS[1:]])
def test_interrupted_sweep_resumes_in_parts(whole, tmp_path, played, agents):
    """Also by a part of its agents, whether all their runs are there or none."""
    out, played.at_most = tmp_path / "out", 3
    with pytest.raises(KeyboardInterrupt):
        sweep(out, instances=INSTANCES[:1])
    wanted = numbers(whole).filter(polars.col("agent").is_in(agents), instance=INSTANCES[0])
    assert_frame_equal(sweep(out, instances=INSTANCES[:1], agents=agents), wanted)
    assert_frame_equal(sweep(out), numbers(whole))


def test_half_finished_folder_is_reported(tmp_path, played, printed):
    """`report` works on what is finished."""
    out, played.at_most = tmp_path / "out", 5
    with pytest.raises(KeyboardInterrupt):
        sweep(out)
    assert "(mean ± 95 % interval over 2 to 3 runs)" in printed(["report", str(out)])
    assert (out / "regret.png").exists()
    assert polars.read_parquet(out / "results.parquet").filter(step=300).height == 5
    shutil.rmtree(out / RUNS)
    with pytest.raises(ValueError, match="holds no finished run yet"):
        clickgym.Results(out)


def test_files_are_written_again_after_a_stop(whole, tmp_path):
    """A process that was killed between its last run and the tables leaves older tables."""
    folder = shutil.copytree(whole, tmp_path / "out")
    wanted = (folder / "summary.csv").read_bytes()
    (folder / "summary.csv").write_text("old")
    (folder / "results.parquet").write_bytes(b"old")
    sweep(folder)
    assert (folder / "summary.csv").read_bytes() == wanted
    assert (folder / "results.parquet").read_bytes() == (whole / "results.parquet").read_bytes()


def test_sweep_without_a_folder_leaves_no_files(whole, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert_frame_equal(sweep(None), numbers(whole))
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")


# -------------------------------------------------------------------------- what contradicts


CONFIG = {
    "clickgym": "4.0.0",
    "commit": "a",
    "versions": {"numpy": "2"},
    "envs": {"CMRank-v0": "CMRank-v0"},
    "instances": {"i": None},
    "agents": {"mine": "mine.py:Mine"},
    "horizon": 1,
    "runs": 1,
    "seed": 0,
    "checkpoints": [1],
    "engine": "auto",
    "metrics": [],
    "delay": None,
    "sources": {"mine": "c"},
}


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("clickgym", "5.0.0", "clickgym"),
        ("horizon", 2, "horizon"),
        ("seed", 1, "seed"),
        ("checkpoints", [2], "checkpoints"),
        ("engine", "python", "engine"),
        ("metrics", ["ndcg"], "metrics"),
        ("delay", "batch:2", "delay"),
        ("agents", {"mine": "TopRank"}, "mine"),
        ("sources", {"mine": "other"}, "source of mine"),
    ],
)
def test_each_contradiction_is_named(key, value, named):
    config = Config.from_json("here", CONFIG)
    assert config.extended(Path("here"), config) == config
    with pytest.raises(ValueError, match=rf"^here .* configuration \({named}: [^;]*\); .*--out"):
        config.extended(Path("here"), Config.from_json("there", CONFIG | {key: value}))


def test_other_agents_may_stand_beside():
    other = {"agents": {"theirs": None}, "sources": {"theirs": "e"}, "runs": 2}
    here, there = (Config.from_json("here", content) for content in (CONFIG, CONFIG | other))
    both = here.extended(Path("here"), there)
    assert (list(both.agents), both.runs) == (["mine", "theirs"], 2)
    assert both.sources == {"mine": "c", "theirs": "e"}
    assert both.to_json() == {"format": FORMAT, "command": both.command} | CONFIG | {
        "made": "",
        "runs": 2,
        "agents": CONFIG["agents"] | other["agents"],
        "sources": CONFIG["sources"] | other["sources"],
    }


OWN = """
from clickgym.agents import Random
from clickgym.envs import CascadeModel
import clickgym

class Mine(Random):
    pass

class Shop(CascadeModel):
    short = "Shop"

clickgym.register_click_model("ShopRank-v0", Shop)
"""


@pytest.mark.parametrize(
    "users",
    [
        lambda last: PositionBasedModel([0.5, 0.2, last], [1.0, 0.5]),
        lambda last: ("CMRank-v0", {"attraction": np.array([0.5, last]), "n_positions": 1}),
    ],
)
def test_changed_users_of_a_label(users, tmp_path):
    """Users have no spec, so a label alone does not tell that they are others."""

    def regret(last):
        shop = {"shop": users(last)}
        return clickgym.sweep(shop, ["Random"], 10, 2, out=tmp_path, n_jobs=1).frame["regret"]

    assert regret(0.1).equals(regret(0.1))
    with pytest.raises(ValueError, match="source of shop"):
        regret(0.3)


@pytest.mark.parametrize(
    "words",
    [
        "PBMRank-v0 --agents changing:Mine",
        "changing:ShopRank-v0:attraction=[0.5,0.2],n_positions=1 --agents Random",
    ],
)
def test_changed_source_of_an_own_class(words, tmp_path, monkeypatch, refused):
    """One line refuses, and names --out."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "changing.py").write_text(OWN)
    words = ["run", *words.split(), "--horizon", "10", "--runs", "1", "--out", "out", "--jobs", "1"]
    assert main(words) == 0
    (tmp_path / "changing.py").write_text(OWN + "\n# another line\n")
    before = files(tmp_path / "out")
    line = refused(words)
    assert "source of " in line
    assert line.rstrip().endswith("choose another folder (--out)")
    assert files(tmp_path / "out") == before


def test_other_versions_warn_once(tmp_path):
    out = tmp_path / "out"
    sweep(out, **FIRST)
    now = json.loads((out / "config.json").read_text())["versions"]
    edit(out, versions=now | {"numpy": "1.0"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sweep(out, **FIRST | {"runs": 3})
    (warning,) = caught
    assert f"numpy: '1.0' there, {now['numpy']!r} now" in str(warning.message)
    assert read_results(out)[1].versions["numpy"] == "1.0"


# ---------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("edited", "named"),
    [
        ({"format": FORMAT - 1}, "another version"),
        ({"envs": [3]}, "config.json"),
        ({"sources": None}, "config.json"),
        ({"horizon": "300"}, "horizon is '300'"),
        ({"checkpoints": [10, "300"]}, "checkpoints is"),
        ({"instances": {"yandex-9": 9}}, "instances is"),
        ({"agents": {"Random": "Random"}}, "TopRank"),
        ({"agents": {}}, "TopRank"),
        ({"checkpoints": [10, 200, 300]}, "checkpoints"),
        ({"metrics": ["ndcg"]}, "ndcg"),
    ],
)
def test_configuration_that_does_not_fit(tmp_path, edited, named, refused):
    sweep(tmp_path / "out", **FIRST)
    edit(tmp_path / "out", **edited)
    line = refused(["report", str(tmp_path / "out")])
    assert line.count("\n") == 1
    assert named in line


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.with_columns(run=7),
        lambda frame: frame.with_columns(env=polars.lit(ENVS[1])),
        lambda frame: frame.with_columns(agent=polars.lit("b")),
        lambda frame: frame.with_columns(instance=polars.lit("b")),
        lambda frame: frame.head(1),
        lambda frame: frame.with_columns(polars.col("step") - 1),  # as many, but other checkpoints
        None,
    ],
)
def test_damaged_run_is_named_with_the_cure(tmp_path, change):
    """A file of another run is refused by each of its names, however undamaged it is."""
    table, path = sweep(tmp_path / "out", **FIRST), path_of_one(tmp_path / "out")
    if change is None:
        path.write_bytes(path.read_bytes()[:-7])
    else:
        write_run(path, change(polars.read_parquet(path)))
    with pytest.raises(ValueError, match=rf"{path.name} is damaged .*; delete it to"):
        sweep(tmp_path / "out", **FIRST)
    path.unlink()
    assert_frame_equal(sweep(tmp_path / "out", **FIRST), table)


def test_run_in_two_files(tmp_path):
    sweep(tmp_path / "out", **FIRST)
    path = path_of_one(tmp_path / "out")
    shutil.copy(path, path.with_name("copy.parquet"))
    with pytest.raises(ValueError, match=r"copy.parquet is damaged \(it belongs to another run\)"):
        clickgym.Results(tmp_path / "out")


def test_folder_of_something_else(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match="is not a results folder"):
        sweep(tmp_path, **FIRST)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
