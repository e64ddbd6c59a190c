"""Studies in the commands of the library: `list`, `show` and completion."""

import json

import pytest
from slow import slow
from terminal_output import WIDTHS, asking, check

from clickgym.command_line import main
from clickgym_lab.studies import STUDIES


@pytest.mark.parametrize("name", [*[*STUDIES][:4], *slow(*[*STUDIES][4:])])
def test_a_study_is_shown_at_any_width(name, printed):
    unlimited = printed(["show", name])
    for width in WIDTHS:
        narrow = printed(["show", name], width)
        check(narrow, unlimited, width)
        for part in STUDIES[name].parts:
            assert all(agent in narrow for agent in part.agents)


def test_studies_are_listed(printed):
    assert [row["name"] for row in json.loads(printed(["list", "studies", "--json"]))["studies"]] == list(STUDIES)


def test_a_wrong_name_suggests_a_study(refused):
    assert "did you mean the study 'zoghi-fig" in refused(["show", "zoghi-fig"])


def test_shells_complete_the_names_of_studies(monkeypatch, capsys):
    for name, value in asking("clickgym study zoghi").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["zoghi-fig1", "zoghi-fig2"]


def test_show_tells_of_a_study(printed):
    out = printed(["show", "zoghi-fig2"])
    for word in ("Zoghi et al. 2017", "docs/studies/zoghi-fig2.md", "10,000,000", "BatchRank"):
        assert word in out
