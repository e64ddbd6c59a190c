"""Results folders: they grow without a changed number, refuse what contradicts, and notice
damage.
"""

import io
import json
import os
import re
import shutil
import sys
import warnings
from pathlib import Path

import polars
import pytest
from polars.testing import assert_frame_equal
from rich.console import Console
from scipy.stats import ttest_ind

import clickgym
from clickgym.__main__ import main
from clickgym.core.files import FORMAT
from clickgym.core.statistics import half_width
from clickgym.runner.callback import Callback
from clickgym.runner.progress import Progress
from clickgym.runner.reports.figures import regret_figure
from clickgym.runner.reports.page import to_html
from clickgym.runner.results import Trial, read_parts, read_results, trials_of
from clickgym.runner.summaries import average, pairwise, ranked
from clickgym.runner.words import commands_of, heading

ENVS, AGENTS, INSTANCES = (
    ["PBMRank-v0", "CMRank-v0"],
    ["TopRank", "Random"],
    ["yandex-9", "yandex-990"],
)
ALL = {"envs": ENVS, "agents": AGENTS, "runs": 3, "instances": INSTANCES}
FIRST = {"envs": ENVS[:1], "agents": AGENTS[:1], "runs": 2, "instances": INSTANCES[:1]}


def sweep(out, **changed):
    """A small sweep of everything, in one thread, with some arguments changed."""
    arguments = {"horizon": 300, "seed": 5, "checkpoints": [10, 300], "n_jobs": 1, **ALL, **changed}
    return clickgym.sweep(
        arguments.pop("envs"), arguments.pop("agents"), out=out, **arguments
    ).frame


class Played(Callback):
    """What was played, in order; a run may be interrupted."""

    def __init__(self, at_most=None):
        self.trials, self.at_most = [], at_most

    def finished(self, trial, frame, counted):
        self.trials.append(trial)
        if len(self.trials) == self.at_most:
            raise KeyboardInterrupt


def files(folder):
    """Every file with its bytes and when it was written."""
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of one sweep over everything."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    sweep(folder)
    return folder


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder of parts with other numbers of runs, and an agent that is in one environment
    only.
    """
    folder = tmp_path_factory.mktemp("mixed") / "out"
    sweep(folder, runs=2)
    sweep(folder, envs=ENVS[:1], agents=["TopRank", "Oracle", "EpsilonGreedy"], runs=4)
    return folder


# ---------------------------------------------------------------------------------------------------------------- growing


@pytest.mark.parametrize("key", ["envs", "agents", "runs", "instances"])
def test_a_folder_that_grew_is_that_of_one_sweep(whole, tmp_path, key):
    sweep(tmp_path / "out", **{key: FIRST[key]})
    before = read_results(tmp_path / "out")[0]
    played = Played()
    returned = sweep(tmp_path / "out", callback=played)
    table, timings, config = read_results(tmp_path / "out")
    wanted = read_results(whole)[0]
    assert_frame_equal(table, wanted)
    assert_frame_equal(returned, wanted)
    assert timings.height == 24
    assert not set(played.trials) & {
        Trial(*row) for row in before.select(Trial._fields).iter_rows()
    }
    assert len(played.trials) == 24 - before.filter(step=300).height
    assert [part[key] for part in config["parts"]] == [FIRST[key], ALL[key]]
    assert {key: config[key] for key in ALL} == ALL


def test_a_sweep_returns_what_it_was_asked_for_and_the_folder_holds_all(whole):
    before = files(whole)
    table = sweep(whole, **FIRST)
    assert_frame_equal(
        table,
        read_results(whole)[0]
        .filter(env=ENVS[0], agent=AGENTS[0], instance=INSTANCES[0])
        .filter(polars.col("run") < 2),
    )
    assert files(whole) == before


def test_growth_that_was_interrupted_goes_on(whole, tmp_path):
    sweep(tmp_path / "out", agents=AGENTS[:1])
    first = read_results(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "out", callback=Played(at_most=5))
    table, _, config = read_results(
        tmp_path / "out"
    )  # what was finished before is still there to be reported
    assert_frame_equal(table, first[0])
    assert config == first[2]
    played = Played()
    sweep(tmp_path / "out", callback=played)
    assert len(played.trials) == 12 - 5
    assert_frame_equal(read_results(tmp_path / "out")[0], read_results(whole)[0])
    assert len(read_parts(tmp_path / "out" / "config.json")) == 2


def test_growth_beside_an_unfinished_part_counts_what_is_finished(tmp_path):
    sweep(tmp_path / "out", **FIRST)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "out", callback=Played(at_most=3))
    sweep(tmp_path / "out", **FIRST | {"agents": ["Oracle"]})
    table, _, config = read_results(tmp_path / "out")
    assert (
        table["agent"].unique(maintain_order=True).to_list()
        == config["agents"]
        == ["TopRank", "Oracle"]
    )


def test_a_finished_sweep_is_not_written_again(whole, refused):
    words = [
        "run",
        *ENVS,
        "--agents",
        *AGENTS,
        "--instance",
        *INSTANCES,
        "--horizon",
        "300",
        "--runs",
        "3",
        "--seed",
        "5",
    ]
    before = files(whole)
    assert_frame_equal(sweep(whole), read_results(whole)[0])
    assert files(whole) == before
    assert "another configuration (checkpoints: " in refused([*words, "--out", str(whole)])


@pytest.mark.usefixtures("undrawn")
def test_a_folder_that_may_only_be_read_is_reported(tmp_path, monkeypatch, printed):
    words = [
        "run",
        *ENVS,
        "--agents",
        *AGENTS,
        "--horizon",
        "300",
        "--runs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    out = printed(words)
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    for name in ("write_text", "replace", "rename"):
        monkeypatch.setattr(Path, name, lambda *_: pytest.fail("something is written"))
    again = printed(words)
    assert again.strip()
    assert out.startswith(again)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"checkpoints": [20, 300]}, r"checkpoints: \[10, 300\] there, \[20, 300\] now"),
        ({"engine": "python"}, 'engine: "auto" there, "python" now'),
    ],
)
def test_what_contradicts_is_refused(whole, changed, message):
    before = files(whole)
    with pytest.raises(
        ValueError,
        match=f"holds results of another configuration .*{message}.*; choose another folder",
    ):
        sweep(whole, **changed)
    assert files(whole) == before


@pytest.mark.usefixtures("undrawn")
def test_other_versions_warn_once_and_are_recorded(tmp_path, capsys):
    words = [
        "run",
        "PBMRank-v0",
        "--agents",
        "Random",
        "--horizon",
        "50",
        "--out",
        str(tmp_path / "out"),
        "--runs",
    ]
    assert main([*words, "1"]) == 0
    file = tmp_path / "out" / "config.json"
    config = json.loads(file.read_text())
    now = config["parts"][0]["versions"]["numpy"]
    config["parts"][0]["versions"]["numpy"] = "1.0"
    del config["checksum"]
    file.write_text(json.dumps(config))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clickgym.sweep(["PBMRank-v0"], ["Random"], 50, 1, out=tmp_path / "out")  # nothing is added
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    with pytest.warns(
        UserWarning, match=f"made with other versions .numpy 1.0 there, {now} now"
    ) as caught:
        clickgym.sweep(["PBMRank-v0"], ["Random"], 50, 2, out=tmp_path / "copy")
    assert [warning.filename for warning in caught] == [__file__]
    capsys.readouterr()
    assert main([*words, "3"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert sum("made with other versions" in line for line in lines) == 1
    assert [part["versions"]["numpy"] for part in read_parts(file)] == ["1.0", now]


def test_a_configuration_of_another_version_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"format": 3, "parts": []}')
    with pytest.raises(
        ValueError, match=r"config.json is of another version of clickgym: its format is 3, and "
    ):
        read_results(tmp_path)


# ---------------------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("edited", "message"),
    [
        ({"envs": ["DCMRank-v0"]}, "results.parquet has Trial"),
        ({"envs": [3]}, "config.json is not the configuration of a sweep"),
        ({"labels": {"agents": ["Random"]}}, "config.json is not the configuration of a sweep"),
        ({"labels": {"agents": {"mine": 3}}}, "config.json is not the configuration of a sweep"),
        ({"agents": ["Random"]}, "results.parquet has Trial.*, which config.json does not name"),
        ({"instances": ["yandex-990"]}, "results.parquet has Trial"),
        ({"pairs": []}, "results.parquet has Trial"),
        ({"runs": 9}, "results.parquet has all runs of no part of config.json"),
        ({"runs": 1}, "which config.json does not name"),
        ({"runs": 0}, "config.json is not the configuration of a sweep"),
        (
            {"checkpoints": [10, 200, 300]},
            "the steps of results.parquet are not the checkpoints of config.json",
        ),
        ({"checkpoints": []}, "config.json is not the configuration of a sweep"),
        ({"metrics": ["ndcg"]}, "results.parquet has no column 'ndcg'"),
    ],
)
def test_files_that_do_not_fit_one_another_are_refused_in_one_line(
    tmp_path, edited, message, refused
):
    sweep(tmp_path / "out", **FIRST)
    shutil.rmtree(tmp_path / "out" / "cells")  # as folders are passed on
    file = tmp_path / "out" / "config.json"
    (part,) = json.loads(file.read_text())["parts"]
    file.write_text(json.dumps({"format": FORMAT, "parts": [part | edited]}))
    told = refused(["report", str(tmp_path / "out")])
    assert told.count("\n") == 1
    assert re.search(message, told), told


def test_tables_of_different_runs_and_of_other_types_are_refused(tmp_path, whole):
    sweep(tmp_path / "out", **FIRST)
    timings = tmp_path / "out" / "timings.parquet"
    polars.read_parquet(timings).head(1).write_parquet(timings)
    with pytest.raises(
        ValueError,
        match=r"are inconsistent: results.parquet and timings.parquet have different runs",
    ):
        read_results(tmp_path / "out")
    polars.read_parquet(timings).with_columns(run=polars.lit([0])).write_parquet(timings)
    with pytest.raises(
        ValueError, match=r"timings.parquet is damaged .its column 'run' holds List"
    ):
        read_results(tmp_path / "out")


def rewritten(change, keep_metadata=True):
    def damage(path):
        metadata = polars.read_parquet_metadata(path) if keep_metadata else {}
        metadata.pop("ARROW:schema", None)
        change(polars.read_parquet(path)).write_parquet(path, metadata=metadata)

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-7]), ""),
        (
            rewritten(lambda frame: frame.with_columns(polars.col("regret") + 1e-9)),
            "its checksum differs",
        ),
        (
            rewritten(lambda frame: frame.with_columns(run=7), keep_metadata=False),
            "it belongs to another run",
        ),
        (
            rewritten(lambda frame: frame.head(1), keep_metadata=False),
            "its steps are not the checkpoints of config.json",
        ),
    ],
)
def test_a_damaged_trial_is_named_with_the_cure(tmp_path, damage, message):
    table = sweep(tmp_path / "out", **FIRST)
    path = tmp_path / "out" / "cells" / Trial(ENVS[0], INSTANCES[0], AGENTS[0], 1).file
    damage(path)
    with pytest.raises(
        ValueError, match=rf"{path.name} is damaged \(.*{message}.*\); delete it to have Trial"
    ):
        sweep(tmp_path / "out", **FIRST)
    path.unlink()
    assert_frame_equal(sweep(tmp_path / "out", **FIRST), table)


# ------------------------------------------------------------------------------------------------- reports of what grew


def test_each_agent_has_the_interval_of_its_own_runs(mixed):
    table = read_results(mixed)[0].filter(env=ENVS[0], step=300)
    rows = {row["agent"]: row for row in average(table, ["env", "agent"]).iter_rows(named=True)}
    values = {
        agent: table.filter(agent=agent).group_by("run").agg(polars.col("regret").mean())["regret"]
        for agent in rows
    }
    assert {agent: row["runs"] for agent, row in rows.items()} == {
        "TopRank": 4,
        "Random": 2,
        "Oracle": 4,
        "EpsilonGreedy": 4,
    }
    for agent, row in rows.items():
        assert row["regret_ci95"] == pytest.approx(
            values[agent].std() * half_width(len(values[agent]))
        )
    pairs = pairwise(table)
    raw = [
        ttest_ind(values[row["better"]], values[row["worse"]], equal_var=False).pvalue
        for row in pairs.iter_rows(named=True)
    ]
    assert pairs["p"].min() == pytest.approx(len(raw) * min(raw), rel=1e-3)


def test_what_cannot_be_compared_is_not(tmp_path):
    sweep(tmp_path / "out", envs=ENVS[:1])
    sweep(tmp_path / "out", envs=ENVS[:1], agents=["Oracle"], instances=INSTANCES[:1])
    sweep(tmp_path / "out", envs=ENVS[:1], agents=["EpsilonGreedy"], runs=1)
    sweep(tmp_path / "out", envs=ENVS[:1], agents=["Fixed"], runs=2, instances=INSTANCES[:1])
    sweep(tmp_path / "out", envs=ENVS[:1], agents=["Fixed"], runs=1)
    table, timings, config = read_results(tmp_path / "out")
    rows = {row["agent"]: row for row in ranked(table, timings).iter_rows(named=True)}
    assert rows["Oracle"]["instances"] == 1
    assert (rows["Fixed"]["instances"], rows["Fixed"]["runs"]) == (
        2,
        1,
    )  # its second run is on one of two instances only
    assert rows["EpsilonGreedy"]["alike"] is None
    tested = pairwise(table).filter(polars.col("differ").is_not_null())
    assert tested.select("better", "worse").rows() == [("TopRank", "Random")]
    assert rows["Oracle"]["alike"] == sorted(
        row["place"] for agent, row in rows.items() if agent != "Oracle"
    )
    assert "are not compared; they count as tied" in to_html(table, timings, config)


@pytest.mark.usefixtures("undrawn")
def test_reports_speak_of_all_parts(mixed, capsys):
    table, timings, config = read_results(mixed)
    commands = commands_of(config)
    assert len(commands) == 2
    assert "over 2 to 4 runs" in heading(config)
    figure = regret_figure(table, config)
    assert figure.get_supxlabel().count("clickgym run") == 2
    assert "2 to 4 runs" in figure.get_suptitle()
    assert [len(panel.get_lines()) for panel in figure.axes] == [4, 2]
    assert not [
        text for panel in figure.axes[1:] for text in panel.texts
    ]  # an agent that is not there has not "no regret"
    page = to_html(table, timings, config)
    assert "these commands make the same numbers" in page
    assert "2 to 4 runs of each of 4 agents" in page


# -------------------------------------------------------------------------------------------------------------- in memory


def test_a_sweep_without_a_folder_leaves_no_files(whole, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert_frame_equal(sweep(None), read_results(whole)[0])
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")


def test_progress_is_a_bar_where_one_can_be_drawn(monkeypatch, capsys):
    sweep(None, **FIRST, progress=True)
    assert capsys.readouterr().err.startswith("PBMRank-v0  TopRank  regret ")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    for progress in (None, True, False):
        monkeypatch.setattr(sys, "stderr", terminal)
        sweep(None, **FIRST, progress=progress)
        assert bool(terminal.getvalue()) == (progress is not False)
        terminal.seek(0)
        terminal.truncate()
    assert Progress(Console(force_jupyter=True, file=io.StringIO())).drawn
    with pytest.raises(ValueError, match="progress and callback cannot both be given"):
        sweep(None, **FIRST, progress=True, callback=Callback())


def test_trials_of_parts_are_in_the_order_of_one_sweep():
    part = {"envs": ["e"], "instances": ["i"], "agents": ["a"], "runs": 1, "pairs": ["e i"]}
    other = part | {"envs": ["f", "e"], "agents": ["b", "a"], "pairs": ["e i", "f i"], "runs": 2}
    assert ["".join(map(str, trial)) for trial in trials_of([part, other])] == [
        f"{env}i{agent}{run}" for env in "ef" for agent in "ab" for run in range(2)
    ]
