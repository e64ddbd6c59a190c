"""Results folders: they grow and resume without a changed number, refuse what contradicts, and
notice damage.
"""

import importlib
import json
import os
import shutil
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.__main__ import main
from clickgym.agents import EpsilonGreedy
from clickgym.core.files import FORMAT, LOCK
from clickgym.envs import PositionBasedModel
from clickgym.runner.config import Config, keys
from clickgym.runner.results import (
    RUNS,
    RunFiles,
    Trial,
    file_name,
    read_config,
    read_results,
    write_runs,
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


SWEEP = importlib.import_module("clickgym.runner.sweep")


@pytest.fixture(autouse=True, scope="module")
def a_file_for_each_run():
    """What happens to one file happens to one run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SWEEP, "WRITE_EVERY", 0.0)
        yield


@pytest.fixture
def played(monkeypatch):
    """What is played, in order; ``played.at_most`` interrupts after so many runs."""
    played = SimpleNamespace(trials=[], at_most=None)

    def write(path, frame, config):
        write_runs(path, frame, config)
        played.trials.append(Trial(*frame.select(Trial._fields).row(0)))
        if len(played.trials) == played.at_most:
            raise KeyboardInterrupt

    monkeypatch.setattr(SWEEP, "write_runs", write)
    return played


def path_of_one(out):
    return out / RUNS / RunFiles(read_config(out).labels).path(ONE)


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
    columns = "env instance agent run seed step regret reward clicks engine seconds"
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
    "identities": {"env CMRank-v0": "a", "instance i": "b", "agent mine": "c"},
    "start": {},
    "start_words": [],
}


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("clickgym", "6.0.0", "clickgym"),
        ("horizon", 2, "horizon"),
        ("seed", 1, "seed"),
        ("checkpoints", [2], "checkpoints"),
        ("engine", "python", "engine"),
        ("metrics", ["ndcg"], "metrics"),
        ("delay", "batch:2", "delay"),
    ],
)
def test_each_contradiction_is_named(key, value, named):
    config = Config.from_json("here", CONFIG)
    assert config.extended(Path("here"), config) == config
    there = Config.from_json("there", CONFIG | {key: value})
    line = rf"^here .* configuration \({named}: [^;]*\); choose another folder \(--out\)$"
    with pytest.raises(ValueError, match=line):
        config.extended(Path("here"), there, again=["mine", "CMRank-v0", "i"])


@pytest.mark.parametrize("key", CONFIG["identities"])
def test_changed_label_is_named_with_the_option(key):
    config, label = Config.from_json("here", CONFIG), key.partition(" ")[2]
    other = CONFIG["identities"] | {key: "other"}
    there = Config.from_json("there", CONFIG | {"identities": other})
    line = rf"^here .* configuration \({key} has changed\); .*\(--out\).* \(--again {label}\)$"
    with pytest.raises(ValueError, match=line):
        config.extended(Path("here"), there)
    assert config.extended(Path("here"), there, again=[label]).identities == other


def test_meaning_of_a_label_is_not_its_words():
    """Other words for the same are no change; the words of a change are told."""
    config = Config.from_json("here", CONFIG)
    there = Config.from_json("there", CONFIG | {"agents": {"mine": "theirs.py:Mine"}})
    assert config.extended(Path("here"), there).agents == there.agents
    there = replace(there, identities={"agent mine": "other"})
    with pytest.raises(ValueError, match=r"mine has changed: mine.py:Mine there, theirs.py:Mine"):
        config.extended(Path("here"), there)


def test_other_agents_may_stand_beside():
    other = {"agents": {"theirs": None}, "identities": {"agent theirs": "e"}, "runs": 2}
    here, there = (Config.from_json("here", content) for content in (CONFIG, CONFIG | other))
    both = here.extended(Path("here"), there)
    assert (list(both.agents), both.runs) == (["mine", "theirs"], 2)
    assert both.to_json() == {"format": FORMAT, "command": both.command} | CONFIG | {
        "made": "",
        "runs": 2,
        "agents": CONFIG["agents"] | other["agents"],
        "identities": CONFIG["identities"] | other["identities"],
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
    with pytest.raises(ValueError, match="env shop has changed"):
        regret(0.3)


@pytest.mark.parametrize(
    "words",
    [
        "PBMRank-v0 --agents changing:Mine",
        "changing:ShopRank-v0:attraction=[0.5,0.2],n_positions=1 --agents Random",
    ],
)
def test_changed_source_of_an_own_class(words, tmp_path, monkeypatch, refused):
    """One line refuses, and names --out and --again."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "changing.py").write_text(OWN)
    words = ["run", *words.split(), "--horizon", "10", "--runs", "1", "--out", "out", "--jobs", "1"]
    assert main(words) == 0
    before = files(tmp_path / "out")
    (tmp_path / "changing.py").write_text(OWN + "\n# a comment\n")
    assert main(words) == 0
    assert files(tmp_path / "out") == before
    (tmp_path / "changing.py").write_text(OWN + "\nadded = 1\n")
    sys.modules.pop("changing")
    gym.registry.pop("ShopRank-v0")
    line = refused(words)
    assert " has changed" in line
    assert "choose another folder (--out), or run again what has changed (--again " in line
    assert files(tmp_path / "out") == before
    assert main([*words, "--again", line.rpartition("--again ")[2].strip("\n)'")]) == 0
    assert files(tmp_path / "out") != before


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
        ({"identities": None}, "config.json"),
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
        write_runs(path, change(polars.read_parquet(path)), read_config(tmp_path / "out"))
    with pytest.raises(ValueError, match=rf"{path.name} is damaged .*; delete it to"):
        sweep(tmp_path / "out", **FIRST)
    path.unlink()
    assert_frame_equal(sweep(tmp_path / "out", **FIRST), table)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "dangling"])
def test_run_that_is_no_file(tmp_path, kind):
    """It is not read: a pipe has no end to wait for, and a device may have none at all."""
    sweep(tmp_path / "out", **FIRST)
    path = path_of_one(tmp_path / "out")
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else tmp_path / "none")
    with pytest.raises(ValueError, match=rf"{path.name} is damaged \(it is not a regular file\)"):
        sweep(tmp_path / "out", **FIRST)


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


# ------------------------------------------------- what runs are of, and repeating them


def finished(out):
    return {path.name: path.read_bytes() for path in (out / RUNS).rglob("*.parquet")}


def agents(c):
    return {"mine": lambda **sizes: EpsilonGreedy(**sizes, epsilon=c), "other": "Random"}


def test_changed_agent_is_repeated_and_the_rest_kept(tmp_path):
    """Its earlier runs are removed, also those that this sweep does not ask for."""
    sweep(tmp_path, **FIRST | {"agents": agents(0.1), "runs": 3})
    before = finished(tmp_path)
    changed = FIRST | {"agents": agents(0.2)}
    with pytest.raises(ValueError, match=r"agent mine has changed.*--again mine"):
        sweep(tmp_path, **changed)
    assert finished(tmp_path) == before
    table = sweep(tmp_path, **changed, again="mine")
    after = finished(tmp_path)
    assert before.keys() - after.keys() == {"mine-2.parquet"}
    assert {name for name in after if after[name] != before[name]} == {
        *("mine-0.parquet", "mine-1.parquet")
    }
    assert_frame_equal(sweep(tmp_path, **changed), table)
    assert_frame_equal(sweep(tmp_path / "anew", **changed), table)


@pytest.mark.parametrize("again", [[AGENTS[0]], [ENVS[0]], [INSTANCES[0]], "TopRank"])
def test_repeated_without_a_change(whole, tmp_path, played, again):
    folder = shutil.copytree(whole, tmp_path / "out")
    assert_frame_equal(sweep(folder, again=again), numbers(whole))
    labels = {again} if isinstance(again, str) else set(again)
    assert len(played.trials) == 12
    assert all(set(trial) & labels for trial in played.trials)


def test_unknown_label_is_not_repeated(tmp_path):
    with pytest.raises(ValueError, match="label of again 'TopRnak'; did you mean 'TopRank'"):
        sweep(tmp_path / "out", **FIRST, again=["TopRnak"])
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_compared_is_run_but_not_resumed(tmp_path, played):
    """All its earlier runs are removed, because they may be of something else."""
    lock = threading.Lock()  # has no content
    unknown = {"mine": lambda **sizes: lock and EpsilonGreedy(**sizes), "other": "Random"}
    arguments = FIRST | {"agents": unknown}
    with pytest.warns(UserWarning, match=r"^agent mine is run, but not resumed, because .*lock"):
        table = sweep(tmp_path / "out", **arguments | {"runs": 3})
    played.trials.clear()
    with pytest.warns(UserWarning, match="agent mine is run, but not resumed"):
        again = sweep(tmp_path / "out", **arguments)
    assert_frame_equal(again, table.filter(polars.col("run") < 2))
    assert [(trial.agent, trial.run) for trial in played.trials] == [("mine", 0), ("mine", 1)]
    names = {"mine-0", "mine-1", "other-0", "other-1", "other-2"}
    assert {Path(name).stem for name in finished(tmp_path / "out")} == names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sweep(None, **arguments)


def test_several_runs_in_a_file(whole, tmp_path, played):
    """They are read as if each had its own."""
    folder = shutil.copytree(whole, tmp_path / "out")
    config, place = read_config(folder), path_of_one(folder).parent
    frames = [polars.read_parquet(place / f"{AGENTS[0]}-{run}.parquet") for run in range(3)]
    for run in range(3):
        (place / f"{AGENTS[0]}-{run}.parquet").unlink()
    write_runs(place / f"{AGENTS[0]}-0.parquet", polars.concat(frames), config)
    assert_frame_equal(numbers(folder), numbers(whole))
    played.trials.clear()
    assert_frame_equal(sweep(folder, runs=2), numbers(whole).filter(polars.col("run") < 2))
    assert not played.trials
    write_runs(place / f"{AGENTS[0]}-1.parquet", frames[1], config)
    with pytest.raises(ValueError, match=r"TopRank-1.parquet is damaged \(it belongs to another"):
        clickgym.Results(folder)


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 6},
        {"engine": "python"},
        {"clickgym": "5.0.1"},
        *({"identities": {key: "other"}} for key in keys(*ONE[:3])),
        None,
    ],
)
def test_foreign_run_is_refused_by_name(whole, tmp_path, changed):
    """Of another sweep, however undamaged; or of another program, without a checksum."""
    folder = shutil.copytree(whole, tmp_path / "out")
    path, config = path_of_one(folder), read_config(folder)
    frame, named = polars.read_parquet(path).with_columns(regret=0.0), "it is of other users"
    if changed is None:
        frame.write_parquet(path)
        named = "it has no checksum"
    else:
        identities = config.identities | changed.get("identities", {})
        write_runs(path, frame, replace(config, **changed | {"identities": identities}))
    named = "it is of the seed 6; expected 5" if changed == {"seed": 6} else named
    for read in (lambda: sweep(folder), lambda: clickgym.Results(folder)):
        with pytest.raises(ValueError, match=rf"TopRank-1.parquet is damaged \({named}.*; delete"):
            read()


def test_more_runs_agents_and_environments_resume(tmp_path, played):
    """Also if they stand in the program that defines the agent."""
    script = "class Mine(EpsilonGreedy): pass\nresults = sweep(out, **FIRST | {'agents': [Mine]})\n"
    for more, count in [("", 2), (", 'runs': 3", 1), (", 'envs': ENVS, 'runs': 3", 3), ("", 0)]:
        played.trials.clear()
        scope = {**globals(), "__name__": "__main__", "out": tmp_path / "out"}
        text = script.replace("[Mine]", f"{{'mine': Mine}}{more}")
        exec(compile(text, "<stdin>", "exec"), scope)
        assert len(played.trials) == count


def test_two_sweeps_fill_a_folder_at_once(whole, tmp_path):
    """No label of either is lost, and the last tables are of all runs."""
    barrier = threading.Barrier(4)

    def part(number):
        barrier.wait()
        sweep(tmp_path / "out", envs=ENVS[number % 2 :][:1], agents=AGENTS[number // 2 :][:1])

    threads = [threading.Thread(target=part, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    columns = ["env", "instance", "agent", "run", "step"]
    assert_frame_equal(numbers(tmp_path / "out").sort(columns), numbers(whole).sort(columns))
    table = polars.read_parquet(tmp_path / "out" / "results.parquet")
    assert_frame_equal(table, read_results(tmp_path / "out")[0])
    assert not (tmp_path / "out" / LOCK).exists()


@pytest.mark.parametrize("name", ["summary.csv", "regret.svg", "regret.png", "results.parquet"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"damaged")])
def test_damaged_tables_are_written_again(whole, tmp_path, name, damage):
    folder = shutil.copytree(whole, tmp_path / "out")
    damage(folder / name)
    sweep(folder, **FIRST)
    assert (folder / name).read_bytes() == (whole / name).read_bytes()


def test_interrupt_says_what_is_kept(tmp_path, played):
    out, played.at_most = tmp_path / "out", 3
    with pytest.raises(KeyboardInterrupt) as stopped:
        sweep(out)
    assert str(stopped.value) == (
        f"stopped; 3 of 24 runs are kept in {out}: the same command resumes"
    )
    played.trials.clear()
    with pytest.raises(KeyboardInterrupt) as stopped:
        sweep(None)
    assert not stopped.value.args


def test_folder_of_version_4(whole, tmp_path, refused):
    folder = shutil.copytree(whole, tmp_path / "out")
    edit(folder, format=4, sources={})
    words = f"run PBMRank-v0 -a Random --horizon 10 --runs 1 --out {folder}"
    assert refused(words.split()).count("\n") == 1
    assert "another version" in refused(words.split())
