"""What the commands print in terminals of any width: no name and no number is cut."""

import io
import re
import sys
import time

import pytest
from rich.cells import cell_len

import clickgym
from clickgym.runner.workers import Progress

WIDTHS = (60, 80, 100, 140)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of the longest names there are."""
    folder = tmp_path_factory.mktemp("results") / "out"
    agents = ["TopRank", "BatchRank", "CascadeKLUCB:feedback=first_click"]
    clickgym.sweep(["PBMRank-v0", "NonStationaryPBMRank-v0"], agents, 10_000, 3, out=folder)
    return folder


# ------------------------------------------------------------------------------------- the commands


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("words", ["report", "list", "show lagree2016-small", "show yandex-990"])
def test_no_name_and_no_number_is_cut(words, printed, results):
    """Whatever the width; the width 0, which containers and build tools set, is none."""
    words = words.split() if words != "report" else ["report", str(results)]
    unlimited = printed(words).partition("Results in")[0]
    numbers = {word for word in unlimited.split() if re.search(r"\d|-v0|_", word)}
    for width in (0, *WIDTHS):
        out = printed(words, width)
        assert "…" not in out
        assert width or numbers <= set(out.split())


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
