"""Tests of results folders: each holds one sweep, which can be resumed and extended; what is
rejected; what is joined; and damage or several commands at once do no harm.
"""

import importlib
import json
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.core.kernels import uncompiled
from clickgym.envs import load_instance
from clickgym.measure.result import HOW_PLAYED
from tests.conftest import draw_nothing

ENVS, AGENTS = ["PBMRank-v0", "CMRank-v0"], ["TopRank", "Random"]
INSTANCES = ["yandex-9", "yandex-990"]
ALL = {"envs": ENVS, "agents": AGENTS, "instances": INSTANCES, "runs": 3}
FIRST = {"envs": ENVS[:1], "agents": AGENTS[:1], "runs": 2, "instances": INSTANCES[:1]}
pytestmark = [pytest.mark.uncompiled, pytest.mark.usefixtures("undrawn")]


def sweep(out, **changed):
    """Return the numbers of a small sweep over everything, in one thread, with some arguments
    changed.
    """
    arguments = {"horizon": 100, "seed": 5, "checkpoints": [10, 100], "n_jobs": 1, **ALL, **changed}
    envs, agents = arguments.pop("envs"), arguments.pop("agents")
    return clickgym.sweep(envs, agents, out=out, **arguments).frame


def numbers(*folders):
    return clickgym.Results(list(folders)).frame


@pytest.fixture
def played(monkeypatch):
    """A counter of the runs played; ``played.at_most`` interrupts the sweep after that number, and
    ``played.first`` is called before the first run.
    """
    played = SimpleNamespace(count=0, at_most=None, first=None)
    module = importlib.import_module("clickgym.runner.sweep.jobs")
    play_run = module.play_run

    def counted(*arguments):
        if played.count == played.at_most:
            raise KeyboardInterrupt
        played.count += 1
        if played.count == 1 and played.first:
            played.first()
        return play_run(*arguments)

    monkeypatch.setattr(module, "play_run", counted)
    return played


def files_of(folder):
    return sorted((folder / "runs").iterdir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of one sweep over everything."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch, uncompiled():
        draw_nothing(patch)
        sweep(folder)
    return folder


# ------------------------------------------------------------------------------ growing, resuming


@pytest.mark.parametrize("key", ALL)
def test_grown_folder_equals_one_sweep(whole, tmp_path, played, key):
    """A folder that grew in two calls has the same numbers as one sweep, and repeating a call plays
    no run and returns only what the call asks for.
    """
    first = sweep(tmp_path, **{key: FIRST[key]})
    assert_frame_equal(sweep(tmp_path), numbers(whole))
    assert_frame_equal(sweep(tmp_path), numbers(whole))
    assert_frame_equal(sweep(tmp_path, **{key: FIRST[key]}), first)
    assert played.count == 24
    assert_frame_equal(numbers(tmp_path), numbers(whole))
    assert_frame_equal(
        polars.read_parquet(tmp_path / "results.parquet").drop(HOW_PLAYED), numbers(whole)
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        *("config.json", "runs", "results.parquet", "summary.csv", "regret.png", "regret.svg")
    }
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["versions"]["clickgym"], config["horizon"]) == (clickgym.__version__, 100)


def test_interrupted_sweep_says_what_is_kept_and_resumes(whole, tmp_path, played, printed):
    out, played.at_most = tmp_path / "out", 5
    with pytest.raises(KeyboardInterrupt, match=r"^stopped; 3 of 24 runs are saved in .*out: "):
        sweep(out)
    report = printed(["report", str(out)])
    assert "(mean ± 95 %" in report
    assert re.search(f"not finished: 21 .*{AGENTS[1]} 12", report)
    assert "not finished: 3 " in printed(["report", str(out), "-a", AGENTS[0], "-e", ENVS[0]])
    assert polars.read_parquet(out / "results.parquet").filter(step=100).height == 3
    played.at_most = None
    assert_frame_equal(sweep(out), numbers(whole))
    assert played.count == 2 + 24  # two of the three that one call plays were lost
    assert "not finished" not in printed(["report", str(out)])


# ---------------------------------------------------------------------------- another sweep


OTHERS = {
    "horizon is 100, not 400": {"horizon": 400, "checkpoints": [10, 400]},
    "checkpoints is [10, 100], not [100]": {"checkpoints": [100]},
    "metrics is [], not ['ndcg']": {"metrics": ["ndcg"]},
    "seed is 5, not 6": {"seed": 6},
}


@pytest.mark.parametrize("told", OTHERS)
def test_another_sweep_is_refused_in_a_line_or_overwrites(tmp_path, monkeypatch, played, told):
    monkeypatch.chdir(tmp_path)
    sweep("out", **FIRST)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    cure = "choose another folder (--out), or delete its runs and start again (--overwrite)"
    whole = f"out holds another sweep: {told}; {cure}"
    with pytest.raises(ValueError, match=f"^{re.escape(whole)}$"):
        sweep("out", **FIRST | OTHERS[told])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert played.count == 2
    assert_frame_equal(sweep("out", **FIRST | OTHERS[told], overwrite=True), numbers("out"))
    assert played.count > 2


@pytest.mark.parametrize("name", ["thesis.txt", "config.json"])
def test_overwrite_leaves_other_files_alone(tmp_path, name):
    (tmp_path / name).write_text('{"model_type": "precious"}')
    with pytest.raises(ValueError, match="is not a results folder; choose another"):
        sweep(tmp_path, **FIRST, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_label_that_stands_for_something_else(tmp_path, played):
    """Only finished runs count: until then, a label may change."""
    mine, other = ({"mine": ("EpsilonGreedy", {"epsilon": value})} for value in (0.1, 0.2))
    failing, played.at_most = {"agents": {"first": "Random", **other}}, 2
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, **FIRST | failing)
    played.at_most = None
    assert sweep(tmp_path, **FIRST | {"agents": mine})["agent"].unique().to_list() == ["mine"]
    with pytest.raises(ValueError, match=r"mine needs another label .*because .* Eps"):
        sweep(tmp_path, **FIRST | failing)


def test_two_commands_that_begin_different_sweeps_at_once(tmp_path, played):
    """The command that began first goes on; the other one is refused, though no run is finished."""

    def begin_another():
        with pytest.raises(ValueError, match="holds another sweep: seed is 5, not 6"):
            sweep(tmp_path, **FIRST, seed=6)

    played.first = begin_another
    sweep(tmp_path, **FIRST)
    assert numbers(tmp_path)["sweep_seed"].unique().to_list() == [5]


def test_a_file_that_an_argument_names(tmp_path):
    """The file is named in an argument, like the file of a trained model."""
    file = tmp_path / "users.json"
    for name, cure in (("yandex-9", ""), ("yandex-990", r"because \S*users.json has changed")):
        replace(load_instance(name), name="mine").save(file)
        arguments = FIRST | {"envs": {"E": ("PBMRank-v0", {"instance": str(file)})}}
        with pytest.raises(ValueError, match=cure) if cure else nullcontext():
            sweep(tmp_path / "out", **arguments | {"instances": None})


# ---------------------------------------------------------------- damage, copies, other folders


def test_line_that_is_cut_short_is_played_again(whole, tmp_path, played):
    folder = shutil.copytree(whole, tmp_path / "out")
    [file] = files_of(folder)
    file.write_bytes(file.read_bytes()[:-40])
    assert numbers(folder).filter(step=100).height == 23
    assert_frame_equal(sweep(folder), numbers(whole))
    assert played.count == 1


def test_a_report_joins_folders(whole, tmp_path, printed):
    """The folders hold other agents, other metrics, or other seeds of the same agents, whose runs
    count as further runs. No run is counted twice, and the report is written only into another
    folder.
    """
    a, b, c, d = (tmp_path / name for name in "abcd")
    sweep(a, agents=AGENTS[:1])
    sweep(b, agents={"Rnd": "Random"})
    both = numbers(whole).with_columns(polars.col("agent").replace("Random", "Rnd"))
    order = ["env", "instance", "agent", "run", "step"]
    assert_frame_equal(numbers(a, b, a).sort(order), both.sort(order))
    assert "No files" in printed(["report", str(a), str(b)])
    assert "TopRank" in printed(["report", str(a), str(b), "--out", str(tmp_path / "both")])
    assert (tmp_path / "both" / "summary.csv").exists()
    sweep(d, metrics=["ndcg"])
    assert_frame_equal(numbers(a, d).sort(order), numbers(d).sort(order))
    assert numbers(b, d)["ndcg"].null_count() == len(numbers(b))
    sweep(c, seed=6)
    results = clickgym.Results([whole, c])
    assert results.table()["runs"].to_list() == [6] * 4
    assert results.n_missing == 0


def test_a_folder_without_a_finished_run_is_left_out(whole, tmp_path, played):
    """The folder holds a sweep that was started but not finished, or that failed."""
    played.at_most = 0
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, **FIRST)
    with pytest.raises(ValueError, match=r"^no run is finished yet in .*; to continue, run"):
        numbers(tmp_path)
    with pytest.warns(UserWarning, match="has no finished run yet, and is left out"):
        assert_frame_equal(numbers(whole, tmp_path), numbers(whole))
