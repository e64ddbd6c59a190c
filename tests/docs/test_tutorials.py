"""Tests of the two tutorials, "a first comparison" and "from an idea to a table": their commands
and programs run, and print what the pages show.
"""

from __future__ import annotations

import re

import pytest

from tests.helpers.pages import blocks, commands, page, squeezed

pytestmark = pytest.mark.usefixtures("undrawn")

FIRST, IDEA = page("docs/first_comparison"), page("docs/idea_to_table")
(AGENT,) = (code for code in blocks(FIRST, "python") if "class " in code)
SCRIPT = "".join(code for code in blocks(FIRST, "python") if code != AGENT)
IDEA_AGENT, *IDEA_SCRIPTS = blocks(IDEA, "python")
RUN, REPEAT, LATEX = commands(IDEA)


def small(words):
    """Reduce a command to few sessions and runs, on the default instance."""
    command = " ".join(words).replace("--instances shipped ", "")
    few = re.sub(r"--horizon \S+ --runs \d+", "--horizon 50 --runs 2", command)
    return [*few.split(), "--jobs", "1"]


@pytest.fixture
def at_work(write, tmp_path, monkeypatch):
    """The folder of a reader who has saved the agents."""
    write(my_module=AGENT, half_seen=IDEA_AGENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_first_comparison_in_few_sessions(at_work, printed):
    for command in commands(FIRST):
        assert "TopRank" in printed(small(command), 100)


@pytest.mark.slow
def test_what_the_first_comparison_shows(at_work, printed, program):
    """Each line of the page is printed. The printed tables have more columns than the page
    shows.
    """
    (at_work / "step.py").write_text(f"if __name__ == '__main__':\n    exec({SCRIPT!r})\n")
    found = squeezed(program(at_work / "step.py", folder=at_work))
    for command in commands(FIRST):
        found += squeezed(printed([*command, "--jobs", "1"], 200))
    shown = blocks(FIRST, "text")
    assert len(shown) == 6
    for line in squeezed("".join(shown)):
        assert line == "..." or any(line in other for other in found), line


def test_from_an_idea_to_a_table_in_few_sessions(at_work, printed):
    """The tutorial yields a table, LaTeX and a figure."""
    assert "HalfSeen" in printed(small(RUN), 100)
    latex = printed(LATEX)
    assert latex.startswith(r"\begin{table}")
    assert latex.count("HalfSeen &") == 1
    assert "HalfSeen" in printed(small(REPEAT), 100)
    for script in IDEA_SCRIPTS:
        exec(script, {})
    assert (at_work / "figure.pdf").exists()


@pytest.mark.slow
def test_what_the_idea_gives(at_work, printed, capsys):
    """Checks the numbers of both comparisons and of the second test, and the table in LaTeX."""
    table, repeated, ranked = blocks(IDEA, "text")
    for command, shown in ((RUN, table), (REPEAT, repeated)):
        found = squeezed(printed([*command, "--jobs", "1"], 100))
        for line in squeezed(shown):
            assert any(line in other for other in found), line
    (script,) = (text for text in IDEA_SCRIPTS if "wilcoxon" in text)
    exec(script, {})
    assert capsys.readouterr().out == ranked
    assert printed(LATEX).strip() == blocks(IDEA, "latex")[0].strip()
