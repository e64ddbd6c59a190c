"""The page on a first comparison: its programs and commands print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "first_comparison.md").read_text(
    encoding="utf-8"
)
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(AGENT,) = (code for code in PROGRAMS if "class " in code)
COMMANDS = [
    shlex.split(text.replace("\\\n", " "))[1:]
    for text in re.findall(r"```sh\n(clickgym.*?)```", PAGE, re.DOTALL)
]
SHOWN = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
SMALL = {"1e4": "50", "5": "2", "3": "2", "--instance": "", "shipped": ""}
"""What a quick test plays."""


@pytest.fixture
def at_work(tmp_path, monkeypatch):
    """The folder of a reader who has saved the agent."""
    (tmp_path / "my_module.py").write_text(AGENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def squeezed(text):
    """The lines with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_commands_run(at_work, printed):
    """With few sessions."""
    for command in COMMANDS:
        words = [SMALL.get(word, word) for word in command]
        assert "TopRank" in printed([*filter(None, words), "--jobs", "1"], 100)


@pytest.mark.slow
def test_what_the_page_shows(at_work, printed, program):
    """Each line is printed; tables of commands have more columns than the page shows."""
    script = "".join(code for code in PROGRAMS if code != AGENT)
    (at_work / "step.py").write_text(f"if __name__ == '__main__':\n    exec({script!r})\n")
    found = squeezed(program(at_work / "step.py", folder=at_work))
    for command in COMMANDS:
        found += squeezed(printed([*command, "--jobs", "1"], 200))
    assert len(SHOWN) == 6
    for line in filter(None, squeezed("".join(SHOWN))):
        assert line == "..." or any(line in other for other in found), line
