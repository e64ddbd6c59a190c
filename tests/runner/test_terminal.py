"""What the commands print in terminals of any width: no name and no number is cut; what is left out
is said.
"""

import io
import re
import sys
import time

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core import event
from rich.cells import cell_len
from rich.console import Console
from slow import slow
from terminal_output import WIDTHS, check

import clickgym
from clickgym.core import compiling
from clickgym.core.compiling import CompilationNote, Compiling
from clickgym.core.terminal import Column, print_table, say
from clickgym.runner.progress import Progress
from clickgym.runner.results import Trial
from clickgym_logs import ClickLog, write_tidy


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of the longest names there are."""
    folder = tmp_path_factory.mktemp("results") / "out"
    agents = ["TopRank", "BatchRank", "CascadeKLUCB:feedback=first_click"]
    clickgym.sweep(["PBMRank-v0", "NonStationaryCMRank-v0"], agents, 10_000, 3, out=folder)
    return folder


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.csv"
    rng = np.random.default_rng(1)
    items = rng.permuted(np.tile(np.arange(12), (500, 1)), axis=1)[:, :10]
    write_tidy(
        ClickLog(
            items, rng.random(items.shape) < 0.2, [0] * 500, tuple("abcdefghijkl"), ("shoes",)
        ),
        path,
    )
    return path


# ------------------------------------------------------------------------------------------------------------ the helper


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.text("ab1,", min_size=1, max_size=30), min_size=4, max_size=4), min_size=1
    ),
    st.integers(1, 150),
)
def test_a_table_loses_nothing_that_it_does_not_name(rows, width):
    text = io.StringIO()
    columns = [
        Column("id"),
        Column("number", right=True),
        Column("words", rank=1, words=True),
        Column("engine", rank=2),
    ]
    print_table(
        Console(file=text, force_terminal=True, width=width, no_color=True),
        columns,
        rows,
        groups=True,
    )
    out = text.getvalue()
    left_out = (
        re.findall(r"engine|words", " ".join(out.split()).rpartition("columns also:")[2])
        if "also:" in out
        else []
    )
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            assert cell in out or column.name in left_out


def test_the_name_of_a_group_does_not_fill_a_line_that_is_read_by_a_program():
    text = io.StringIO()
    columns = [Column("group"), Column("name")]
    print_table(
        Console(file=text, width=1000), columns, [("first", "a"), ("second", "b")], groups=True
    )
    assert max(map(len, text.getvalue().splitlines())) < 10


def test_the_word_about_what_is_left_out_is_true():
    rows = [("CascadeKLUCB:feedback=first_click", "4,231 ± 39", "1.0595", "compiled")]
    columns = [
        Column("agent"),
        Column("regret", right=True),
        Column("reward", rank=1),
        Column("engine", rank=2),
    ]

    def at(width):
        text = io.StringIO()
        print_table(Console(file=text, width=width), columns, rows)
        return text.getvalue()

    assert "at 63 columns also: engine" in at(55)
    assert "also" not in at(63)
    assert "also: engine" in at(62)
    assert "also: reward, engine" in at(50)
    longer = at(30).splitlines()[1]  # what always stays is longer than the terminal
    assert longer == "CascadeKLUCB:feedback=first_click  4,231 ± 39"


def test_a_sentence_breaks_between_words_only():
    text = io.StringIO()
    say(Console(file=text, width=20), "Results in /a/very/long/path/to/a/folder: regret.png")
    assert text.getvalue().splitlines() == [
        "Results in",
        "/a/very/long/path/to/a/folder:",
        "regret.png",
    ]


# ---------------------------------------------------------------------------------------------------------- the commands


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "words",
    [
        "report",
        "fit",
        "evaluate",
        "list",
        "show TopRank",
        "show PBMRank-v0",
        "show lagree2016-small",
        "show yandex-990",
    ],
)
def test_no_name_and_no_number_is_cut(words, printed, results, log_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # into which `fit` writes
    words = {
        "report": ["report", str(results)],
        "fit": ["fit", str(log_file), "--model", "PBM", "SDBN", "--out", "q.json"],
        "evaluate": [
            "evaluate",
            str(log_file),
            "-p",
            "uniform",
            "--logging",
            "uniform",
            "-e",
            "ips",
            "item-position",
        ],
    }.get(words, words.split())
    unlimited = printed(words).partition("Results in")[0]
    for width in WIDTHS:
        check(printed(words, width).partition("Results in")[0], unlimited, width)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("width", WIDTHS)
def test_at_eighty_columns_the_engine_is_there(width, printed, results):
    out = printed(["report", str(results)], width)
    assert ("compiled" in out) == (width >= 80)
    assert ("columns also: time / session, engine" in out) == (width < 80)
    assert "4,231 ± 39" in out or re.search(r"\d,\d{3} ± \d+", out)


@pytest.mark.parametrize("width", [60, 140, *slow(80, 100)])
def test_lines_of_finished_pairs_break_between_fields(width, results):
    text = io.StringIO()
    files = sorted((results / "cells").iterdir())
    frames = [polars.read_parquet(file) for file in files]
    console = Console(file=text, force_terminal=True, width=width, no_color=True)
    with Progress(console) as progress:
        for frame in frames:
            trial = Trial(*frame.select("env", "instance", "agent").row(0), 0)
            progress.start([trial], {}, 10_000)
            progress.finished(trial, frame, counted=False)
    out = re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", text.getvalue())
    assert "…" not in out
    for frame in frames:
        env, agent, regret = frame.select("env", "agent", "regret").row(-1)
        assert env in out
        assert agent in out
        assert f"regret {regret:,.1f}" in out


# ------------------------------------------------------------------------------------------------------------------ show


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("TopRank", ["Lattimore", "horizon", "delta"]),
        ("PBMUCB", ["examination", "Lagrée"]),
        ("PPO", ["stable-baselines3"]),
        ("PBMRank-v0", ["examination", "χ_k"]),
        ("ContextualUBMRank-v0", ["candidates", "theta"]),
        ("ndcg", ["first five positions"]),
        ("window_regret", ["since the checkpoint before"]),
    ],
)
def test_show_tells_of_every_kind(name, told, printed):
    out = printed(["show", name])
    for word in told:
        assert word in out


def test_show_has_words_for_every_name_there_is(printed):
    from clickgym.envs import CONTEXTUAL, ENVIRONMENTS
    from clickgym.runner.labels import PUBLISHED
    from clickgym.runner.metrics import DERIVED, METRICS

    for name in [*PUBLISHED, *ENVIRONMENTS, *CONTEXTUAL, *METRICS, *DERIVED]:
        out = printed(["show", name])
        assert out.startswith(f"{name}\n")
        assert "no docstring" not in out


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("toprank", "agent 'TopRank'"),
        ("PBMRank-v1", "environment 'PBMRank-v0'"),
        ("ndgc", "metric 'ndcg'"),
        ("yandex-9983", "instance 'yandex-99"),
    ],
)
def test_a_wrong_name_suggests_across_all_kinds(wrong, meant, refused):
    assert f"did you mean the {meant}" in refused(["show", wrong])


# -------------------------------------------------------------------------------------------------------------- progress


@pytest.mark.parametrize("horizon", [10**4, 10**7, 10**12])
@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_the_bar_is_never_cut(width, horizon):
    text = io.StringIO()
    trials = [Trial("E", "i", "A", run) for run in range(10)]
    with Progress(Console(file=text, force_terminal=True, width=width, no_color=True)) as progress:
        progress.start(trials, {}, horizon)
        progress.sessions(horizon)
        progress._bar.refresh()
    frames = re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", text.getvalue()).splitlines()
    assert all("…" not in frame and cell_len(frame.rstrip()) <= width for frame in frames)
    assert any("run 1 of 10" in frame and "left" in frame for frame in frames)
    assert ("10 %" in text.getvalue()) == (width >= 80)


def test_that_kernels_are_compiled_is_shown_while_they_are():
    text = io.StringIO()
    trials = [Trial("E", "i", "A", run) for run in range(2)]
    with Progress(Console(file=text, force_terminal=True, width=100, no_color=True)) as progress:
        with event.trigger_event("numba:compile"):
            pass
        assert text.getvalue().count("compiling …") == 1  # before there is a bar
        progress.start(trials, {}, 100)
        descriptions = [progress._bar.tasks[0].description]
        with event.trigger_event("numba:compile"):
            with event.trigger_event("numba:compile"):  # of what it calls
                descriptions.append(progress._bar.tasks[0].description)
            descriptions.append(progress._bar.tasks[0].description)
        descriptions.append(progress._bar.tasks[0].description)
    assert descriptions == ["run 1 of 2", "compiling …", "compiling …", "run 1 of 2"]
    with event.trigger_event("numba:compile"):
        pass
    assert progress._bar.tasks[0].description == "run 1 of 2"


def as_terminal(monkeypatch):
    """A terminal instead of stderr, where a note is due at once."""
    monkeypatch.setattr(compiling, "PATIENCE", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def compile_for(seconds):
    with event.trigger_event("numba:compile"):
        time.sleep(seconds)


def test_compiling_is_noted_once_it_has_taken_long(monkeypatch):
    stderr = as_terminal(monkeypatch)
    with CompilationNote():
        compile_for(0.01)
    assert stderr.getvalue() == "", "soon done"
    with CompilationNote():
        compile_for(0.1)
        compile_for(0.1)
        compile_for(0.1)
    assert stderr.getvalue() == "compiling …\n"
    stderr.isatty = lambda: False
    with CompilationNote():
        compile_for(0.1)
        compile_for(0.1)
    assert stderr.getvalue() == "compiling …\n", "a file or a pipe"


def test_a_run_notes_that_it_compiles_unless_another_shows_its_progress(monkeypatch):
    stderr = as_terminal(monkeypatch)
    module = sys.modules["clickgym.runner.run"]
    play = module.play_compiled

    def slow(*arguments):
        compile_for(0.1)
        compile_for(0.1)
        return play(*arguments)

    monkeypatch.setattr(module, "play_compiled", slow)
    clickgym.sweep(["PBMRank-v0"], ["Random"], 10, 1, progress=False)
    with Compiling(lambda going_on: None):
        clickgym.run("Random", "PBMRank-v0", 10, seed=0)
    assert stderr.getvalue() == ""
    clickgym.run("Random", "PBMRank-v0", 10, seed=0)
    assert "compiling …" in stderr.getvalue()


def test_where_there_is_no_terminal_nothing_is_said_of_compiling():
    text = io.StringIO()
    with Progress(Console(file=text)), event.trigger_event("numba:compile"):
        pass
    assert text.getvalue() == ""
