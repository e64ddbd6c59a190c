"""The command `study` completes the names of studies."""

import pytest
from terminal_output import asking

from clickgym.command_line import main


def test_shells_complete_the_names_of_studies(monkeypatch, capsys):
    for name, value in asking("clickgym study zoghi").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["zoghi-fig1", "zoghi-fig2"]
