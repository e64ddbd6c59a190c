"""Scorecards and submissions of earlier versions, of strangers, and wrong arguments."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import polars
import pytest
from polars import col

import clickgym
from clickgym_lab.bench.card import CONFIG
from clickgym_lab.bench.play import play_one
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import reference
from clickgym_lab.bench.score import scored, standing
from clickgym_lab.bench.submission import read_submission
from clickgym_lab.shipped import read_shipped

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
V20 = DATA / "v2.0"


def content(file: Path):
    return json.loads(file.read_text(encoding="utf-8"))


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")


@pytest.fixture(params=["Random", "submission"])
def scorecard(request, tmp_path, monkeypatch):
    """A folder that ``clickgym bench --quick`` wrote, by an agent of the package or a submitted one, and what was said."""
    unpack(V20 / "bench" / f"{request.param}.tar.xz", tmp_path / "bench")
    if request.param == "Random":
        return tmp_path / "bench", content(V20 / "bench" / "Random.json")
    monkeypatch.chdir(tmp_path / "bench")
    monkeypatch.syspath_prepend(str(tmp_path / "bench"))  # as `clickgym bench` does
    return tmp_path / "bench" / "results", content(V20 / "bench" / "results.json")


def test_a_submission_scores_what_it_did(scorecard):
    folder, then = scorecard
    with pytest.raises(ValueError, match="is unfinished; the same clickgym bench"):
        read_submission(folder)  # of version 2; it is gone on with, for version 3 adds tasks
    clickgym.bench(then["agent"], quick=True, out=folder, progress=False)
    agent, quick, table, protocol, made = read_submission(folder)
    assert (agent, quick) == (then["agent"], True)
    assert table.height >= then["n_runs"]
    assert ("clickgym", "2.0.0") in made
    abilities = standing(scored(table, protocol), protocol, quick=True).abilities
    assert {name: abilities[name].value for name in then["abilities"]} == then["abilities"]


def losses_and_scores(text):
    """The table of tasks, without its column of the best agents of the package: there come more of them."""
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[*row[:-2], row[-1]] for row in rows]


def test_a_scorecard_is_finished_from_what_was_played(scorecard):
    """Nothing is played again: seconds and files are those of then, and so are scores."""
    folder, then = scorecard
    files = {file: file.stat().st_mtime_ns for file in folder.glob("plays/*/cells/*")}
    card = clickgym.bench(then["agent"], quick=True, out=folder, progress=False)
    assert {file: file.stat().st_mtime_ns for file in files} == files != {}
    now = card.to_markdown().partition("## For a paper")[0].partition("## Tasks")[2].rstrip()
    before = losses_and_scores(then["tasks"])
    assert [row for row in losses_and_scores(now) if row in before] == before != []


def test_a_judgement_is_read_as_a_line_of_the_board():
    then, said = content(V20 / "bench" / "results.json"), content(V20 / "judgement" / "judgement.json")
    [line] = read_shipped(V20 / "judgement" / "submission.parquet")
    assert {key: line.made[key] for key in ("trust", "fingerprint")} == {
        "trust": "judged", "fingerprint": CURRENT.extends,
    }  # fmt: skip
    assert line.table["agent"].unique().to_list() == [said["name"]] == ["submission"]
    assert said["claim"]["right"]
    assert said["scores"]["judged"]["overall"][0] == pytest.approx(then["overall"], abs=1e-6)


def test_runs_of_a_submission_come_out_again(scorecard):
    folder, then = scorecard
    clickgym.bench(then["agent"], quick=True, out=folder, progress=False)
    table = read_submission(folder).table.filter(col("step") == col("horizon"), col("horizon") <= 1000)
    again = [play_one(CURRENT, "Random", CURRENT.by_name[task], run) for task, run in table["task", "run"].rows()]
    assert table["loss"].to_list() == pytest.approx(again)


def test_a_scorecard_of_a_stranger_imports_nothing(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')")
    config = {"agent": "stranger:Agent", "protocol": CURRENT.version, "fingerprint": CURRENT.fingerprint, "finished": ["quick"]}
    (tmp_path / CONFIG).write_text(json.dumps(config))
    assert read_submission(tmp_path).agent == "stranger:Agent"


def card():
    rows = reference(CURRENT).filter(polars.col("agent") == "Random")
    return clickgym.Scorecard("Random", (), "any", False, rows, rows, CURRENT)


CALLS = [
    (lambda: clickgym.bench("EpsilonGreedy:epsilon={0.1,0.2}"), ValueError, "epsilon has several values, which lists"),
    (lambda: clickgym.bench("mine=TopRank", quick=True), ValueError, "labels are only for the agents and environments"),
    (lambda: clickgym.bench("Random", out=3), TypeError, "out is 3; expected a path"),
    (lambda: card().n_tasks("speed"), ValueError, "unknown ability 'speed'"),
    (lambda: card().save(3), TypeError, "folder is 3; expected a path"),
    (lambda: clickgym.baselines("speed"), ValueError, "unknown ability 'speed'"),
    (lambda: clickgym.baselines(["late"]), ValueError, "unknown ability"),
    (lambda: clickgym.baselines("late", ["Random"]).table(per_instance="x"), ValueError, "per_instance is 'x'; expected True"),
    (lambda: clickgym.baselines("late", ["Random"]).plot(per_instance="x"), ValueError, "per_instance is 'x'; expected True"),


]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), CALLS, ids=range(len(CALLS)))
def test_python_names_the_fault(call, error, message):
    with pytest.raises(error, match=message):
        call()
