"""What the commands print in terminals of any width: no name and no number is cut."""

import io
import pickle
import re
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core import event
from rich.cells import cell_len
from rich.console import Console

import clickgym
from clickgym.agents import Random
from clickgym.command_line import main
from clickgym.core import compiling
from clickgym.core.compiling import Compiling
from clickgym.runner.progress import CountedSessions, Progress, TimeLeft
from clickgym.runner.results import Trial
from clickgym.runner.terminal import Column, print_table

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


def test_words_make_room_for_names_and_numbers():
    columns = [Column("agent"), Column("regret", right=True), Column("paper", words=True)]
    rows = [("CascadeKLUCB", "4,231 ± 39", "Kveton et al. 2015, Algorithm 1")]
    text = io.StringIO()
    print_table(Console(file=text, width=40), columns, rows)
    heading, *lines = [line.rstrip() for line in text.getvalue().splitlines()]
    assert heading == "agent             regret  paper"
    assert lines[0] == "CascadeKLUCB  4,231 ± 39  Kveton et al."
    assert max(map(cell_len, lines)) <= 40
    assert " ".join(" ".join(lines).split()).endswith("2015, Algorithm 1")


def test_the_word_about_what_is_left_out_is_true():
    rows = [("CascadeKLUCB:feedback=first_click", "4,231 ± 39", "1.0595", "compiled")]
    columns = [Column("agent"), Column("regret", right=True)]
    columns += [Column("reward", rank=1), Column("engine", rank=2)]

    def at(width):
        text = io.StringIO()
        print_table(Console(file=text, width=width), columns, rows)
        return text.getvalue()

    assert "at 63 columns also: engine" in at(55)
    assert "also" not in at(63)
    assert "also: engine" in at(62)
    assert "also: reward, engine" in at(50)
    longer = at(30).splitlines()[1]  # what always stays is longer than the terminal
    assert longer.rstrip() == "CascadeKLUCB:feedback=first_click  4,231 ± 39"


@pytest.mark.parametrize("words", [["show", "LinearTS"], ["list", "Ω"]])
def test_commands_in_a_terminal_without_unicode(words, monkeypatch):
    """What it cannot show is escaped, also in an error."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    main(words)
    for stream in streams:
        stream.flush()
    assert b"\\u03" in b"".join(stream.buffer.getvalue() for stream in streams)


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


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("width", WIDTHS)
def test_regret_and_interval_stand_first(width, printed, results):
    out = printed(["report", str(results)], width)
    assert len(re.findall(r"\nagent +regret", out)) == 2
    assert len(re.findall(r"^\S+ +[\d,.]+ ± [\d,.]+", out, re.MULTILINE)) == 6


# ----------------------------------------------------------------------------------------- progress


RUNS = [Trial("PBMRank-v0", "yandex-9866", "TopRank", run) for run in range(10)]


@pytest.mark.parametrize("horizon", [10**4, 10**7, 10**12])
@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_the_bar_is_never_cut(width, horizon):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, no_color=True)
    with Progress(console, True, horizon, 10, RUNS) as progress:
        progress.finished(RUNS[0], 1e5)
        progress._bar.refresh()
    frames = re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", text.getvalue()).splitlines()
    assert all("…" not in frame and cell_len(frame.rstrip()) <= width for frame in frames)
    assert any("run 2 of 10" in frame and "10 days, 10:00:00 left" in frame for frame in frames)
    assert ("10 %" in text.getvalue()) == (width >= 80)


def test_time_left_is_of_the_runs_that_are_left():
    """Of each agent by its own speed: a bandit of a millisecond says nothing of a learner."""
    now = [0.0]
    bandit, *learners = RUNS[0], *(trial._replace(agent="PPO") for trial in RUNS[:4])
    left = TimeLeft(1000, [bandit, *learners], 2, clock=lambda: now[0])
    left.finished(bandit, 0.001)
    assert left.seconds() is None
    for trial in learners[:2]:
        left.played(trial, 0)
    now[0] = 8.0  # torch is loaded
    left.played(learners[0], 64)
    now[0] = 9.0
    left.played(learners[0], 96)
    assert left.seconds() is None, "too early to tell"
    now[0] = 18.0
    left.played(learners[0], 564)
    run = 10 / 500 * 1000  # seconds
    assert left.seconds() == pytest.approx((run * 0.436 + 3 * run) / 2)
    now[0] = 26.72
    left.finished(learners[0], 26.72)
    assert left.seconds() == pytest.approx(3 * run / 2)
    for trial in learners[1:3]:
        left.finished(trial, 5.0)
    assert left.seconds() == 5, "one run is left, and one worker idle"
    left.finished(learners[3], 5.0)
    assert left.seconds() == 0


def test_time_left_of_other_environments():
    """A cell that was not played is thought to last as the agent lasted elsewhere."""
    other = RUNS[0]._replace(env="ContextualPBMRank-v0")
    left = TimeLeft(1000, [RUNS[0], RUNS[1], other], 1)
    left.finished(RUNS[0], 2.0)
    assert left.seconds() == 4
    left.finished(other, 30.0)
    assert left.seconds() == 2


def test_progress_of_worker_processes(tmp_path):
    """Their sessions are seen while they play, and counted once when they end."""
    console = Console(file=io.StringIO(), force_terminal=True)
    with Progress(console, True, 1000, 2, RUNS[:2], 2) as progress:
        with progress.watching(RUNS[:2]) as counters:
            count = pickle.loads(pickle.dumps(counters[1]))
            for sessions in (0, 300, 200):
                count(sessions)
            wait_until(lambda: progress._bar.tasks[0].completed == 500)
            progress.finished(RUNS[1], 1.0)
        assert progress._bar.tasks[0].completed == 1000
    CountedSessions(tmp_path / "of another machine", 0)(64)


def test_progress_in_a_file_is_a_line_now_and_then():
    """By sessions and finished runs, in one process and by workers; none after the last run."""
    now, text = [0.0], io.StringIO()
    clock = {"clock": lambda: now[0]}
    with Progress(Console(file=text), True, 1000, 3, RUNS[1:3], 1, **clock) as progress:
        for seconds, sessions in ((1, 50), (61, 90), (62, 150), (111, 600), (121, 650)):
            now[0] = seconds
            progress.played(RUNS[1], sessions)
        now[0] = 161
        progress.finished(RUNS[1], 161.0)
        now[0] = 181
        with progress.watching(RUNS[2:3]) as (count,):
            count(100)
            wait_until(lambda: "run 3" in text.getvalue())
        progress.finished(RUNS[2], 1.0)
    assert text.getvalue().splitlines() == [
        "clickgym: run 2 of 3, 36 %",
        "clickgym: run 2 of 3, 55 %, 0:04:30 left",
        "clickgym: run 3 of 3, 70 %, 0:02:32 left",
    ]
    with Progress(Console(file=text), False, 1000, 2, RUNS[:2], 1, **clock) as progress:
        now[0] = 999
        progress.played(RUNS[0], 10)
    assert len(text.getvalue().splitlines()) == 3


def wait_until(is_so):
    due = time.monotonic() + 20
    while not is_so() and time.monotonic() < due:
        time.sleep(0.01)
    assert is_so()


def test_compiling_is_noted_unless_progress_is_shown(monkeypatch):
    """In a terminal, once it has taken long."""
    monkeypatch.setattr(compiling, "NOTE_AFTER", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)

    class Slow(Random):
        """It compiles before each list."""

        def rank(self, observation=None):
            with event.trigger_event("numba:compile"):
                time.sleep(0.1)
            return super().rank(observation)

    clickgym.sweep(["PBMRank-v0"], {"slow": Slow}, 2, 1, n_jobs=1, engine="python", progress=False)
    with Compiling(lambda going_on: None):
        clickgym.run(Slow, "PBMRank-v0", 2, seed=0, engine="python")
    assert terminal.getvalue() == ""
    clickgym.run(Slow, "PBMRank-v0", 2, seed=0, engine="python")
    assert "compiling …" in terminal.getvalue()


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


def test_progress_in_a_notebook_without_its_widgets(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(display=lambda table, display_id: shown.append(table) or handle)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    console = Console(force_jupyter=True, file=io.StringIO())
    with Progress(console, True, 100, 2, RUNS[:2]) as progress:
        progress.finished(RUNS[0], 1.0)
    assert len(shown) >= 2
