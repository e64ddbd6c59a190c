"""Results folders: a run that is there is not played again, one whose key has changed is; what
tables show; damage, copies and several commands do no harm.
"""

import importlib
import json
import os
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.__main__ import main
from clickgym.agents import EpsilonGreedy
from clickgym.envs.result import TIMED

ENVS, AGENTS = ["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random"]
INSTANCES = ["yandex-9", "yandex-990"]
LISTED = {"envs": ENVS, "agents": AGENTS, "instances": INSTANCES}
ALL = LISTED | {"runs": 3}
FIRST = {"envs": ENVS[:1], "agents": AGENTS[:1], "runs": 2, "instances": INSTANCES[:1]}
pytestmark = [pytest.mark.uncompiled, pytest.mark.usefixtures("undrawn")]


def sweep(out, **changed):
    """The numbers of a small sweep of everything, in one thread, with some arguments changed."""
    arguments = {"horizon": 300, "seed": 5, "checkpoints": [10, 300], "n_jobs": 1, **ALL, **changed}
    envs, agents = arguments.pop("envs"), arguments.pop("agents")
    return clickgym.sweep(envs, agents, out=out, **arguments).frame


def numbers(*folders):
    return clickgym.Results(list(folders)).frame


@pytest.fixture
def played(monkeypatch):
    """How many runs were played; ``played.at_most`` interrupts after so many."""
    played = SimpleNamespace(count=0, at_most=None)
    module = importlib.import_module("clickgym.runner.sweep")
    play = module.play

    def counted(*arguments):
        if played.count == played.at_most:
            raise KeyboardInterrupt
        played.count += 1
        return play(*arguments)

    monkeypatch.setattr(module, "play", counted)
    return played


def files_of(folder):
    return sorted((folder / "runs").iterdir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of one sweep over everything."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    sweep(folder)
    return folder


# ------------------------------------------------------------------------------ growing, resuming


@pytest.mark.parametrize("key", ALL)
def test_grown_folder_equals_one_sweep(whole, tmp_path, played, key):
    """And a part of it is returned, and nothing is played or written again."""
    sweep(tmp_path, **{key: FIRST[key]})
    assert_frame_equal(sweep(tmp_path), numbers(whole))
    assert_frame_equal(
        polars.read_parquet(tmp_path / "results.parquet").drop(TIMED), numbers(whole)
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        *("config.json", "runs", "results.parquet", "summary.csv", "regret.png", "regret.svg")
    }
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["clickgym"], config["horizon"]) == (clickgym.__version__, 300)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    part = numbers(whole).filter(polars.col("run") < 2, env=ENVS[0], agent=AGENTS[0])
    assert_frame_equal(sweep(tmp_path, **FIRST), part.filter(instance=INSTANCES[0]))
    assert played.count == 24
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    (tmp_path / "results.parquet").unlink()
    sweep(tmp_path, **FIRST)
    assert_frame_equal(
        polars.read_parquet(tmp_path / "results.parquet").drop(TIMED), numbers(whole)
    )


def test_interrupted_sweep_says_what_is_kept_and_resumes(whole, tmp_path, played, printed):
    out, played.at_most = tmp_path / "out", 5
    with pytest.raises(KeyboardInterrupt, match=r"^stopped; 3 of 24 runs are kept in .*out: "):
        sweep(out)
    report = printed(["report", str(out)])
    assert "(mean ± 95 %" in report
    assert "not finished: 21." in report
    assert "not finished: 9." in printed(["report", str(out), "-a", AGENTS[0]])
    assert "not finished: 3." in printed(["report", str(out), "-a", AGENTS[0], "-e", ENVS[0]])
    assert polars.read_parquet(out / "results.parquet").filter(step=300).height == 3
    played.at_most = None
    assert_frame_equal(sweep(out), numbers(whole))
    assert played.count == 2 + 24  # two of the three that one call plays were lost
    assert "not finished" not in printed(["report", str(out)])


def test_two_seeds_in_one_folder_are_finished(tmp_path, printed):
    for seed in (1, 2):
        sweep(tmp_path, seed=seed, **FIRST)
    assert "not finished" not in printed(["report", str(tmp_path)])


def test_a_report_of_two_folders_writes_into_none(whole, tmp_path, printed):
    sweep(tmp_path, **FIRST | {"agents": ["CascadeTS"]})
    before = {path: path.read_bytes() for path in whole.glob("*.*")}
    assert "No files" in printed(["report", str(whole), str(tmp_path)])
    assert {path: path.read_bytes() for path in whole.glob("*.*")} == before


# ------------------------------------------------------------------- what is played anew


def test_runs_of_other_versions_are_other_runs(whole):
    config = clickgym.Results(whole).config
    other = replace(config, versions=config.versions | {"numpy": "1.0"})
    keys, others = ({key for *_, key in one.trials()} for one in (config, other))
    assert len(keys) == 24
    assert not keys & others


@pytest.mark.parametrize(
    "changed",
    [
        *({"horizon": 400}, {"checkpoints": [300]}, {"metrics": ["ndcg"]}),
        {"agents": {"mine": ("EpsilonGreedy", {"epsilon": 0.2})}},
    ],
)
def test_what_is_changed_is_played_anew_and_comes_back(tmp_path, played, changed):
    # for metrics another loop would be compiled
    one = FIRST | {"agents": {"mine": "EpsilonGreedy"}, "engine": "python"}
    first = sweep(tmp_path, **one)
    second = sweep(tmp_path, **one | changed)
    assert not first.equals(second)
    for shown in (second, first):
        with pytest.warns(UserWarning, match="^2 runs in .* are not shown: "):
            assert_frame_equal(numbers(tmp_path), shown)
        sweep(tmp_path, **one)
    assert played.count == 4


def test_a_label_is_only_a_name(tmp_path, played):
    """An engine, too; tables show the last label."""
    first = sweep(tmp_path, **FIRST | {"agents": {"a": "TopRank"}, "envs": {"x": ENVS[0]}})
    renamed = FIRST | {"agents": {"b": "TopRank"}, "envs": {"y": ENVS[0]}, "engine": "python"}
    assert_frame_equal(sweep(tmp_path, **renamed).drop("env", "agent"), first.drop("env", "agent"))
    assert played.count == 2
    assert clickgym.Results(tmp_path).names("agent") == ["b"]
    assert clickgym.Results(tmp_path).names("env") == ["y"]


def test_the_last_label_of_two_folders(tmp_path):
    """Is that of the newest sweep, whichever folder was first."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, label, seed in ((first, "a", 1), (second, "b", 1), (first, "a", 2)):
        sweep(folder, **FIRST | {"agents": {label: "TopRank"}, "seed": seed})
    assert clickgym.Results([first, second]).names("agent") == ["a"]


def test_what_cannot_be_compared_is_run_but_not_resumed(tmp_path, played):
    unknown = {"mine": lambda **sizes: EpsilonGreedy(**sizes), "other": "Random"}
    for count in (4, 6):
        with pytest.warns(
            UserWarning, match=r"^agent mine is run, but not resumed, because it has no "
        ):
            sweep(tmp_path, **FIRST | {"agents": unknown})
        assert played.count == count
    assert numbers(tmp_path).filter(step=300).height == 4


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
    "words",
    [
        "PBMRank-v0 --agents changing:Mine",
        "changing:ShopRank-v0:attraction=[0.5,0.2],n_positions=1 --agents Random",
    ],
)
def test_changed_source_of_an_own_class(words, tmp_path, monkeypatch, played, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["run", *words.split(), "--horizon", "10", "--runs", "1", "--out", "out", "--jobs", "1"]
    for text, count, there in ((OWN, 1, 0), (f"{OWN}added = 1", 2, 0), (OWN, 2, 1)):
        (tmp_path / "changing.py").write_text(text)
        sys.modules.pop("changing", None)
        clickgym.envs.Users.classes.pop("Shop", None)
        importlib.import_module("gymnasium").registry.pop("ShopRank-v0", None)
        importlib.invalidate_caches()
        assert main(words) == 0
        assert played.count == count
        assert f"{there} of 1 runs were in out already" in capsys.readouterr().err


# ---------------------------------------------------------------- damage, copies, other folders


@pytest.mark.parametrize("kept", [-40, 40])
def test_line_that_is_cut_short_is_played_again(whole, tmp_path, played, kept):
    """The last one; without the first one the others are of nothing."""
    folder = shutil.copytree(whole, tmp_path / "out")
    [file] = files_of(folder)
    file.write_bytes(file.read_bytes()[:kept])
    if kept > 0:
        with pytest.raises(ValueError, match="is not a results folder"):
            numbers(folder)
        return
    assert numbers(folder).filter(step=300).height == 23
    assert_frame_equal(sweep(folder), numbers(whole))
    assert played.count == 1


def test_folders_are_merged_by_copying_or_by_report(whole, tmp_path, printed):
    a, b = tmp_path / "a", tmp_path / "b"
    sweep(a, agents=AGENTS[:1])
    sweep(b, agents={"Rnd": "Random"})
    both = numbers(whole).with_columns(polars.col("agent").replace("Random", "Rnd"))
    order = ["env", "instance", "agent", "run", "step"]
    assert_frame_equal(numbers(a, b).sort(order), both.sort(order))
    assert "TopRank" in printed(["report", str(a), str(b), "--out", str(tmp_path / "c")])
    assert (tmp_path / "c" / "summary.csv").exists()
    shutil.copytree(b / "runs", a / "runs", dirs_exist_ok=True)
    assert_frame_equal(numbers(a).sort(order), both.sort(order))


class Moves(EpsilonGreedy):
    """Goes to another folder."""

    def rank(self, observation):
        os.chdir("/")
        return super().rank(observation)


def test_a_folder_is_that_of_the_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep("out", **FIRST | {"agents": {"mine": Moves}})
    assert (tmp_path / "out" / "results.parquet").exists()


class Failing(EpsilonGreedy):
    """Fails in its first session."""

    def rank(self, observation):
        raise RuntimeError("it is not finished")


def test_a_sweep_without_a_finished_run_hides_none(tmp_path):
    """It has begun, or it failed; later runs under its label do."""
    sweep(tmp_path, envs=ENVS[:1], agents={"mine": "TopRank"})
    before = numbers(tmp_path)
    with pytest.raises(clickgym.AgentError):
        sweep(tmp_path, envs=ENVS[:1], agents={"mine": Failing})
    assert_frame_equal(numbers(tmp_path), before)
    sweep(tmp_path, envs=ENVS[:1], agents={"mine": "Random"})
    with pytest.warns(UserWarning, match="^6 runs in .* are not shown: "):
        assert numbers(tmp_path)["regret"].to_list() != before["regret"].to_list()
