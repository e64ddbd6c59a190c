"""`list_agents`, `list_environments`, `list_instances`, `list_metrics`: names, each with a line,
shown as tables.
"""

import os
from itertools import groupby

import numpy as np
import polars
import pytest

import clickgym
from clickgym.agents import CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS, Agent
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from clickgym.runner.catalogue import NEEDS, Catalogue, needs
from clickgym.runner.labels import PUBLISHED
from clickgym.runner.metrics import DERIVED, METRICS

LISTS = {
    clickgym.list_agents: sorted(PUBLISHED, key=lambda name: NEEDS.index(needs(PUBLISHED[name]))),
    clickgym.list_environments: [*ENVIRONMENTS, *CONTEXTUAL, *MEMORY],
    clickgym.list_instances: [*clickgym.envs.list_instances()],
    clickgym.list_metrics: [*METRICS, *DERIVED],
}
by_list = pytest.mark.parametrize(
    ("listed", "names"), LISTS.items(), ids=[listed.__name__ for listed in LISTS]
)


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
    catalogue = listed()
    lines = repr(catalogue).splitlines()
    if catalogue.group:  # each below its heading
        headings = [line for line in lines if line and not line.startswith(" ")]
        assert headings == [f"needs {what}" for what in NEEDS]
        lines = [line[2:] for line in lines if line and line not in headings]
    assert max(map(len, lines)) <= max(columns, max(map(len, names)) + 22)
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == names
    assert "".join("".join(lines).split()) == "".join(
        f"{name}{about}" for name, about in catalogue.items()
    ).replace(" ", "")


def test_every_agent_is_in_one_group_of_those_that_need_the_same():
    rows = groupby(clickgym.list_agents().rows, key=lambda row: row["needs"])
    groups = [(what, [row["name"] for row in group]) for what, group in rows]
    assert [what for what, _ in groups] == list(NEEDS)
    assert sorted(name for _, names in groups for name in names) == sorted(PUBLISHED)
    assert set(dict(groups)["a list"]) == {"Fixed", "Oracle"}
    assert set(dict(groups)["state"]) == set(STATE_AGENTS)
    assert {*LEARNERS, "BubbleRank", "CascadeTS", "PBMHB"} <= set(dict(groups)["nothing"])
    features = ("features", "features and examination")
    assert {name for what in features for name in dict(groups)[what]} == set(CONTEXTUAL_AGENTS)
    assert {name for what, names in groups if "examination" in what for name in names} == {
        name
        for name, agent in PUBLISHED.items()
        if {"examination", "browsing"} & {*getattr(agent, "requires", {}).values()}
    }


class Plain(Agent):
    """Shows the first items."""

    def __init__(self, n_items, n_positions, *, examination, n_features, speed=2.0, seed=None):
        self.n_positions = n_positions

    def rank(self, observation):
        return np.arange(self.n_positions)

    def update(self, observation, ranking, clicks, reward):
        pass


class Requires(Plain):
    requires = {"examination": "examination"}


def test_needs_of_an_own_agent_follow_from_its_class():
    assert (needs(Plain), needs(Requires)) == ("features", "features and examination")


def test_one_of_ones_own_is_listed():
    clickgym.register_click_model("CataloguedRank-v0", "PBM")
    try:
        assert "CataloguedRank-v0" in clickgym.list_environments()
    finally:
        for known in (ENVIRONMENTS, CONTEXTUAL):
            for name in [name for name in known if name.endswith("CataloguedRank-v0")]:
                del known[name]


def test_nothing_to_list_is_shown_too():
    assert repr(Catalogue([])) == ""
