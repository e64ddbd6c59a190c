"""The page from an idea to a table in a paper: its commands run, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import clickgym

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "idea_to_table.md").read_text(
    encoding="utf-8"
)
AGENT, *SCRIPTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    shlex.split(text.replace("\\\n", " "))
    for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
]
RUN, REPEAT, LATEX = COMMANDS
TABLE, REPEATED, RANKED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
(IN_LATEX,) = re.findall(r"```latex\n(.*?)```", PAGE, re.DOTALL)
SMALL = {"5e3": "50", "20": "2"}
"""The sessions and the runs of a quick test."""


@pytest.fixture
def at_work(tmp_path, monkeypatch):
    """The folder of a reader who has saved the agent."""
    (tmp_path / "half_seen.py").write_text(AGENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def words_of(command, small):
    """The words of a command after its name, and before the file to which it prints."""
    words = command[1 : command.index(">")] if ">" in command else command[1:]
    return [SMALL.get(word, word) if small else word for word in words]


def squeezed(text):
    """The lines of a table, with single spaces: columns may be wider, and more may follow."""
    return [re.sub(" +", " ", line).strip() for line in text.splitlines()]


def test_every_step(at_work, printed):
    """With few sessions: table, LaTeX, and a figure in one column."""
    assert "HalfSeen" in printed([*words_of(RUN, True), "--jobs", "1"], 100)
    latex = printed(words_of(LATEX, True))
    assert latex.startswith(r"\begin{table}")
    assert latex.count("HalfSeen &") == 1
    assert "HalfSeen" in printed([*words_of(REPEAT, True), "--jobs", "1"], 100)
    for script in SCRIPTS:
        exec(script, {})
    assert (at_work / "figure.pdf").stat().st_size > 1000
    figure = clickgym.Results("results/idea").plot(width=3.3)
    assert figure.get_figwidth() == pytest.approx(3.3)


@pytest.mark.slow
def test_what_the_page_shows(at_work, printed, capsys):
    """The numbers of both comparisons and of the second test, and the table in LaTeX."""
    for command, shown in ((RUN, TABLE), (REPEAT, REPEATED)):
        found = squeezed(printed([*words_of(command, False), "--jobs", "1"], 100))
        for line in filter(None, squeezed(shown)):
            assert any(line in other for other in found), line
    (script,) = (text for text in SCRIPTS if "wilcoxon" in text)
    exec(script, {})
    assert capsys.readouterr().out == RANKED
    assert printed(words_of(LATEX, False)).strip() == IN_LATEX.strip()
