"""`list_agents`, `list_environments`, `list_instances`, `list_metrics`: names, each with a line, shown as tables."""

from __future__ import annotations

import os
from xml.etree import ElementTree

import polars
import pytest

import clickgym
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from clickgym.runner.catalogue import Catalogue
from clickgym.runner.metrics import DERIVED, LEARNED, METRICS

LISTS = {
    clickgym.list_agents: [*AGENTS, *CONTEXTUAL_AGENTS, *STATE_AGENTS, *LEARNERS],
    clickgym.list_environments: [*ENVIRONMENTS, *CONTEXTUAL, *MEMORY],
    clickgym.list_instances: [*clickgym.envs.list_instances()],
    clickgym.list_metrics: [*METRICS, *DERIVED, *LEARNED],
}
by_list = pytest.mark.parametrize(("listed", "names"), LISTS.items(), ids=[listed.__name__ for listed in LISTS])


@by_list
def test_everything_has_a_line_about_it(listed, names):
    found = listed()
    assert list(found) == names
    assert all(found.values())
    assert polars.DataFrame(found.rows)["name"].to_list() == names


@by_list
@pytest.mark.parametrize("columns", [20, 60, 200])
def test_a_terminal_shows_every_name_and_cuts_nothing(listed, names, columns, monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))
    lines = repr(listed()).splitlines()
    assert max(map(len, lines)) <= max(columns, max(map(len, names)) + 22)
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == names
    assert "".join("".join(lines).split()) == "".join(f"{name}{about}" for name, about in listed().items()).replace(" ", "")


@by_list
def test_a_notebook_shows_a_table(listed, names):
    rows = ElementTree.fromstring(f"<div>{listed()._repr_html_()}</div>").findall(".//tr")
    assert [row[0].text for row in rows] == ["name", *names]


def test_one_of_ones_own_is_listed():
    clickgym.register("CataloguedRank-v0", "PBM")
    try:
        assert "CataloguedRank-v0" in clickgym.list_environments()
    finally:
        for known in (ENVIRONMENTS, CONTEXTUAL):
            for name in [name for name in known if name.endswith("CataloguedRank-v0")]:
                del known[name]


def test_nothing_to_list_is_shown_too():
    assert repr(Catalogue([])) == Catalogue([])._repr_html_() == ""
