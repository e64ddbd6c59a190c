"""Tests of the page on a first click log: its programs and commands run, and print what the page
shows.
"""

from __future__ import annotations

import re
import shlex

import pytest

from clickgym.core.kernels import uncompiled
from tests.helpers.pages import page, squeezed

PAGE = page("docs/first_log")
STEPS = [
    (kind, text, shown)
    for kind, text, shown in re.findall(
        r"```(python|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, re.DOTALL
    )
    if kind == "python" or text.startswith("clickgym")
]
TIME = r"[\d.]+ [nµ]s$"
"""Times, which differ from machine to machine."""


def take_steps(folder, program, printed, monkeypatch, changed):
    """Yield what each step of the page prints, and what the page shows. `changed` contains texts to
    replace before the step runs.
    """
    monkeypatch.chdir(folder)
    for kind, text, shown in STEPS:
        for full, small in changed.items():
            text = text.replace(full, small)
        if kind == "python":
            (folder / "shop.py").write_text(text, encoding="utf-8")  # the first one is
            yield program(folder / "shop.py", folder=folder), shown
        else:
            words = shlex.split(text.replace("\\\n", " "))[1:]
            words += ["--jobs", "1"] * (words[0] == "run")
            yield printed(words, 100), shown


@pytest.mark.usefixtures("undrawn")
def test_steps_run_with_fewer_sessions(tmp_path, program, printed, monkeypatch):
    changed = {"12000": "600", "--horizon 1e4 --runs 5": "--horizon 300 --runs 2"}
    steps = take_steps(tmp_path, program, printed, monkeypatch, changed)
    with uncompiled():
        shop, log = next(steps)[0], next(steps)[0]
    checked, fitted = next(steps)[0], next(steps)[0]
    with uncompiled():
        played, truth = (found for found, _ in steps)
    assert shop == ""
    assert "log.csv: 3,600 sessions, " in log
    assert "DBN" in checked
    assert "users.json: query yandex-990, 600 sessions, 6 items (DBN, CCM, PBM)" in fitted
    assert "CascadeTS" in played
    assert truth.count("clicks a session") == 4


@pytest.mark.slow
def test_what_the_page_shows(tmp_path, program, printed, monkeypatch):
    """Compares the output of each step, and the first lines of the log."""
    for found, shown in take_steps(tmp_path, program, printed, monkeypatch, {}):
        words = " ".join(found.split())
        for line in squeezed(re.sub(TIME, "", shown, flags=re.MULTILINE)):
            assert line == "..." or line in words, line
    (head,) = re.findall(r"head -n 6 log.csv\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert (tmp_path / "log.csv").read_text(encoding="utf-8").startswith(head)
