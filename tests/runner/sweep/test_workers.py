"""Tests of worker processes: they run user modules in the state that the caller has; full disks and
workers that die are reported in one line, and finished runs are kept.
"""

from __future__ import annotations

import importlib
import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import joblib
import pytest

import clickgym
from clickgym.runner.sweep.progress import Progress
from tests.conftest import AGENT


def imported(write, name, text):
    """Import a module of a user anew."""
    write(**{name: text})
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def regret_of(agent, n_jobs):
    results = clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=n_jobs)
    return results.frame["regret"].to_list()


UP, DOWN = [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]


def test_one_job_and_several_play_what_the_caller_has_set_and_edited(write):
    """The values are set as attributes of a class, of its module, and of a module that this module
    imports. One value replaces an array by a list. After the module is edited and imported anew,
    the worker processes of the earlier sweeps do not run its old code. There are no more workers
    than runs.
    """
    settings = imported(write, "settings", "import numpy\nSHOWN = numpy.arange(5)")
    text = AGENT.replace("shift = 0", "shown = None")
    text = text.replace("list(range(n_positions))", "self.shown or SHOWN or settings.SHOWN")
    own = imported(write, "set_agent", f"import settings\nSHOWN = None\n{text}")
    for owner, attribute in ((settings, "SHOWN"), (own, "SHOWN"), (own.Forward, "shown")):
        regret = []
        for n_jobs, shown in ((1, DOWN), (8, DOWN), (8, UP)):
            setattr(owner, attribute, shown)
            regret.append(regret_of(own.Forward, n_jobs))
        assert regret[0] == regret[1] != regret[2], attribute
    agent = imported(write, "set_agent", AGENT.replace("self.ranking\n", f"{DOWN}\n")).Forward
    assert regret_of(agent, 1) == regret_of(agent, 8) == regret[0] != regret[2]
    assert len(multiprocessing.active_children()) == 2


def test_a_bar_of_sessions(write, monkeypatch, capsys):
    """In a terminal, a bar shows the sessions."""
    for setting in ("TTY_COMPATIBLE=1", "TERM=xterm"):
        monkeypatch.setenv(*setting.split("="))
    agent = imported(write, "own_agent", AGENT).Forward
    clickgym.sweep(["PBMRank-v0"], {"it": agent, "Random": "Random"}, 50, 2, n_jobs=1)
    shown = capsys.readouterr().err
    assert "4 of 4 runs" in shown
    assert "100%" in shown


def test_sessions_in_another_process_count_before_the_run_ends(write, monkeypatch, capsys):
    """Sessions are counted during a single run of 2 seconds, here in lines instead of a bar."""
    for name, seconds in (("FIRST_LINE", 0.0), ("LOOK_EVERY", 0.1)):
        monkeypatch.setattr(f"clickgym.runner.sweep.progress.{name}", seconds)
    slow = AGENT.replace("self.ranking\n", "time.sleep(0.01) or self.ranking\n")
    agent = imported(write, "slow_agent", f"import time\n{slow}").Forward
    clickgym.sweep(["PBMRank-v0"], {"it": agent}, 200, 1, n_jobs=2)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"clickgym: 0 of 1 runs, \d+ % of the sessions(, about \d+ s left)?", line)


def test_lines_of_progress_tell_the_time_left(monkeypatch, capsys):
    """The first line comes after ten seconds, even within a run, then one line per minute. The time
    left is told once both pairs have finished a run, from the times of the runs. Two of the ten
    runs had been finished before. Of the two workers, one has nothing to do at the end.
    """
    now = 0.0
    monkeypatch.setattr("clickgym.runner.sweep.progress.time.monotonic", lambda: now)

    def play(until: float, n_sessions: int) -> None:
        nonlocal now
        now = until
        progress.advance(n_sessions)

    first, second = pairs = [("PBMRank-v0", "Random"), ("PBMRank-v0", "TopRank")]
    with Progress(True, n_runs=10, n_finished=2, horizon=100, pairs=pairs) as progress:
        progress.begin(n_workers=2)
        for until in (3.0, 12.0, 22.0):
            play(until, 20)
        progress.add_finished(first, [10.0])
        play(72.0, 10)
        progress.add_finished(second, [30.0])
        play(132.0, 330)
        progress.add_finished(second, [22.0] * 5)
        play(192.0, 350)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "clickgym: 2 of 10 runs, 24 % of the sessions",
        "clickgym: 3 of 10 runs, 27 % of the sessions",
        "clickgym: 4 of 10 runs, 60 % of the sessions, about 40 s left",
        "clickgym: 9 of 10 runs, 95 % of the sessions, about 11 s left",
    ]


# -------------------------------------------------------------------- full disks and dying workers

KILLED = """
        if not os.path.exists("spared"):
            os.kill(os.getpid(), signal.SIGNAL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSEGV"])
def test_a_worker_that_dies(tmp_path, monkeypatch, signal):
    """One line reports it, and the sweep continues."""
    monkeypatch.chdir(tmp_path)
    killed = AGENT.replace("reward): ...", f"reward):{KILLED.replace('SIGNAL', signal)}")
    Path("victim.py").write_text(f"import os, signal\n{killed}")
    words = "run PBMRank-v0 -a Random victim:Forward --horizon 100 --runs 4 --jobs 2 --out out"
    command = [sys.executable, "-m", "clickgym", *words.split()]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 1
    *_, line = first.stderr.splitlines()  # after lines of progress, if it takes long
    assert line.startswith(f"clickgym: a worker process died ({signal})")
    Path("spared").touch()
    subprocess.run(command, capture_output=True, text=True, check=True)
    assert clickgym.Results("out").frame.filter(step=100).height == 8


def test_a_backend_that_returns_all_runs_at_the_end_is_refused(write):
    agent = imported(write, "late_agent", AGENT).Forward
    with (
        pytest.raises(ValueError, match=r"MultiprocessingBackend .*; choose loky, threading or"),
        joblib.parallel_config("multiprocessing"),
    ):
        clickgym.sweep(["PBMRank-v0"], {"it": agent}, 50, 2, n_jobs=2)
