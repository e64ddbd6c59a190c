"""What the commands print in terminals of any width: no name and no number is cut."""

import io
import re
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import clickgym
from clickgym.agents import Agent
from clickgym.runner.console import Column, print_table
from clickgym.runner.progress import Progress

WIDTHS = (60, 80, 100, 140)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of the longest names there are."""
    folder = tmp_path_factory.mktemp("results") / "out"
    agents = ["TopRank", "BatchRank", "CascadeKLUCB:feedback=first_click"]
    clickgym.sweep(["PBMRank-v0", "NonStationaryPBMRank-v0"], agents, 10_000, 3, out=folder)
    return folder


# --------------------------------------------------------------------------------------- the helper


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.text("ab1,", min_size=1, max_size=30), min_size=3, max_size=3), min_size=1
    ),
    st.integers(1, 150),
)
def test_a_table_loses_nothing(rows, width):
    """Names and numbers stay whole in a console of any width, and so does each word."""
    text = io.StringIO()
    columns = [Column("name"), Column("number", right=True), Column("a few words", words=True)]
    console = Console(file=text, force_terminal=True, width=width, no_color=True)
    print_table(console, columns, [(*row[:2], f"{row[2]} words") for row in rows])
    out = text.getvalue()
    for cell in ("name", "number", "words", *(cell for row in rows for cell in row)):
        assert cell in out


# ------------------------------------------------------------------------------------- the commands


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("words", ["report", "list", "show lagree2016-small", "show yandex-990"])
def test_no_name_and_no_number_is_cut(words, printed, results):
    """It is there, or in a column that is said to be left out, whatever the width; the width 0,
    which containers and build tools set, is none.
    """
    words = words.split() if words != "report" else ["report", str(results)]
    unlimited = printed(words).partition("Results in")[0]
    numbers = {word for word in unlimited.split() if re.search(r"\d|-v0|_", word)}
    for width in (0, *WIDTHS):
        out = printed(words, width)
        assert "…" not in out
        assert numbers <= set(out.split()) or (width and "columns also:" in out)


# ----------------------------------------------------------------------------------------- progress


def written(monkeypatch, *, is_terminal):
    """What is written to standard error."""
    text = io.StringIO()
    text.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", text)
    return text


@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_progress_fits_into_the_terminal(width, monkeypatch):
    stderr = written(monkeypatch, is_terminal=True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    with Progress(True, 10**12, 10, 10) as progress:
        progress.played(10**12)
        progress.finished()
    frames = re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", stderr.getvalue()).splitlines()
    assert all("…" not in frame and cell_len(frame.rstrip()) <= width for frame in frames)
    assert any("run 2 of 10" in frame for frame in frames)
    assert ("10 %" in stderr.getvalue()) == (width >= 80)


def test_progress_in_a_file_is_a_line_now_and_then(monkeypatch):
    """By sessions and finished runs; ``FORCE_COLOR`` makes no bar of it."""
    stderr = written(monkeypatch, is_terminal=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Progress(True, 1000, 3, 2) as progress:
        for seconds, sessions in ((1, 50), (61, 40), (62, 60), (111, 450), (121, 50)):
            now[0] = seconds
            progress.played(sessions)
        progress.played(350)
        progress.finished()
    lines = [line.partition(" %")[0] for line in stderr.getvalue().splitlines()]
    assert lines == ["clickgym: run 2 of 3, 36", "clickgym: run 2 of 3, 55"]
    assert "\x1b" not in stderr.getvalue()
    with Progress(False, 1000, 2, 2) as progress:
        now[0] = 999
        progress.played(10)
    assert len(stderr.getvalue().splitlines()) == 2


def test_progress_is_a_bar_where_one_can_be_drawn(monkeypatch, capsys):
    words = {"envs": ["PBMRank-v0"], "agents": ["TopRank"], "horizon": 300, "runs": 2}
    clickgym.sweep(**words)
    assert capsys.readouterr().err == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    for progress in (True, False):
        monkeypatch.setattr(sys, "stderr", terminal)
        clickgym.sweep(**words, progress=progress)
        assert bool(terminal.getvalue()) == progress
        terminal.seek(0)
        terminal.truncate()


class Plain(Agent):
    def __init__(self, n_items, n_positions, *, seed=None):
        self.ranking = range(n_positions)

    def rank(self, observation):
        return self.ranking

    def update(self, observation, ranking, clicks, reward): ...


def test_time_left_is_not_told_where_engines_differ(monkeypatch):
    """A session in plain Python takes a thousand times as long as a compiled one."""
    monkeypatch.setenv("TERM", "xterm")
    agents = {"plain": Plain, "TopRank": "TopRank"}
    for names, is_told in ((["plain"], True), (["TopRank"], True), (agents, False)):
        stderr = written(monkeypatch, is_terminal=True)
        chosen = {name: agents[name] for name in names}
        clickgym.sweep(["PBMRank-v0"], chosen, 300, 2, n_jobs=1)
        assert bool(re.search(r"[\d-]:[\d-]{2}:[\d-]{2}", stderr.getvalue())) == is_told
