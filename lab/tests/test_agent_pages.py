"""The pages of agents: what each docstring must have, pictures that are small, and when to take an agent, by rule."""

import re
from pathlib import Path

import numpy as np
import pytest
from pages import advice
from pages import agent_pictures as pictures
from pages.agents import FAMILIES, family_of, family_page, page, sources

from clickgym.core.docstrings import sections
from clickgym.runner.labels import PUBLISHED
from clickgym.runner.make import make_agent, make_env
from clickgym_lab.bench.boards import Table
from clickgym_lab.bench.leaderboard import Place
from clickgym_lab.bench.protocol import Board
from clickgym_lab.bench.score import Estimate, Standing

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 30_000
"""Bytes of a picture."""


@pytest.fixture(scope="module")
def given():
    return sources(ROOT)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_docstring_has_the_idea_in_five_sentences_and_the_algorithm_in_pseudo_code(name):
    text = sections(PUBLISHED[name].__doc__)
    idea, algorithm = text["Idea"], text["Algorithm"]
    assert "\n\n" not in idea
    assert idea.endswith(".")
    assert 4 <= len(re.findall(r"[.!?](?=\s+[A-Z`]|$)", idea)) <= 6
    marker, empty, *lines = algorithm.splitlines()
    assert (marker, empty) == ("::", "")
    assert 8 <= len(lines) <= 20
    assert all(lines)  # one step per line, none of them empty


def test_every_agent_is_in_one_family():
    listed = [file for files in FAMILIES.values() for file in files]
    assert len(listed) == len(set(listed))
    assert {agent.__module__.rpartition(".")[2] for agent in PUBLISHED.values()} == set(listed)
    names = re.findall(r"^\.\./agents/(\w+)$", family_page("Cascade"), flags=re.MULTILINE)
    assert names == sorted(names, key=str.lower)
    assert {family_of(name) for name in names} == {"Cascade"}


def test_a_page_has_its_parts_in_order_and_small_pictures(given):
    text, files = page("TopRank", given)
    parts = [
        "# TopRank", "clickgym run CMRank-v0 --agents TopRank", "## The idea", "## The algorithm", "## How its list changes",
        "## When to take it", "## What it needs", "## Deviations", "## The paper", "@inproceedings{toprank",
        "## In the [leaderboard]", "## In the studies", "## Arguments",
    ]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "TopRank-lists.svg" in files
    for name, content in files.items():
        assert f"({name})" in text
        assert content.startswith(b"<?xml")
        assert len(content) <= LARGEST


def test_the_lists_of_an_agent_are_those_of_one_run():
    """Played in pieces, most of them compiled, an agent shows what it shows session by session."""
    shown = pictures.play("TopRank")
    env = make_env("CMRank-v0").unwrapped
    agent = make_agent("TopRank", env, horizon=100_000, seed=0)
    observation, info = env.reset(seed=0)
    for session in range(1, 1001):
        ranking = agent.rank(observation)
        if session in pictures.MOMENTS:
            order = {item: place for place, item in enumerate(info["optimal_ranking"], 1)}
            places = shown.places[pictures.MOMENTS.index(session)]
            assert [order.get(item, 0) for item in ranking] == places.tolist()
        observation, reward, *_ = env.step(ranking)
        agent.update(observation, ranking, observation, reward)


def test_lists_end_well_and_changes_of_users_are_marked():
    shown = pictures.play("CascadeKLUCB")
    assert shown.sessions.tolist() == list(pictures.MOMENTS)
    assert shown.places[-1].tolist() == [1, 2, 3, 4, 5]
    assert not shown.changes.any()
    assert pictures.play("CascadeSWUCB").changes.any()
    assert pictures.play("PPO") is None


def test_the_largest_picture_of_lists_is_small():
    n = len(pictures.MOMENTS)
    full = np.tile(np.arange(1, 6), (n, 1))
    content = pictures.svg(pictures.lists_figure(pictures.Shown("", None, np.array(pictures.MOMENTS), full, np.ones(n, bool))))
    assert len(content) <= LARGEST


# ---------------------------------------------------------------------------------------------------------------- rules


def case(name, score=0.5, best=0.9, n=8):
    """An agent with one score on a board of n agents, the best of which has another."""

    def place(agent, value):
        score = Estimate(value, value, value)
        return Place(agent, Standing(score, {"late": score}, 1), (), "any", 1.0)

    others = [place(f"other{i}", best - 0.01 * i) for i in range(n - 1)]
    places = sorted([place(name, score), *others], key=lambda each: -each.standing.overall.value)
    table = Table("board", "", "", places, ["late"], Board("board", ("late",)))
    own = next(each for each in places if each.agent == name)
    return advice.Case(name, PUBLISHED[name], table, own, {})


RULES = [  # a rule, an agent for which it says something and whether that is for the agent, and one of which it says nothing
    (advice.by_learning, case("Random"), True, case("TopRank")),
    (advice.by_click_model, case("PBMHB"), True, case("EpsilonGreedy")),
    (advice.by_knowledge, case("PBMUCB"), False, case("PBMHB")),
    (advice.by_horizon, case("BatchRank"), False, case("CascadeKLUCB")),
    (advice.by_candidates, case("GRAB"), False, case("TopRank")),
    (advice.by_log, case("CascadeTS"), True, case("Fixed")),
    (advice.by_log, case("TopRank"), False, case("PDGD")),
    (advice.by_what_it_stands, case("GLRCascadeKLUCB"), True, case("CascadeTS")),
    (advice.by_place, case("TopRank", 1.0), True, case("TopRank", 0.875)),
    (advice.by_place, case("TopRank", 0.1), False, case("Random", 0.0)),
    (advice.by_ability, case("TopRank", 0.88), True, case("TopRank", 0.6)),
    (advice.by_ability, case("TopRank", 0.4), False, case("Oracle", 2.0)),
    (advice.by_library, case("PPO"), True, case("TopRank")),
]


@pytest.mark.parametrize(("rule", "some", "take", "none"), RULES)
def test_a_rule_says_something_where_it_holds_and_nothing_elsewhere(rule, some, take, none):
    said = list(rule(some))
    assert said
    assert said[0].take is take
    assert not list(rule(none))


@pytest.mark.parametrize(
    ("rule", "bad", "figure", "good"),
    [
        (advice.by_batches, "CascadeSWUCB", "10", "CascadeTS"),
        (advice.by_early_bots, "PBMHB", "80 %", "GLRCascadeKLUCB"),
        (advice.by_churn, "BatchRank", "90 %", "MissingAgent"),
    ],
)
def test_a_rule_of_a_study_speaks_with_the_figures_of_the_page_for_practice(rule, bad, figure, good, given):
    [said] = rule(advice.Case(bad, PUBLISHED[bad], None, None, given.curves))
    assert not said.take
    assert figure in said.text
    assert not list(rule(advice.Case(good, PUBLISHED.get(good, PUBLISHED["TopRank"]), None, None, given.curves)))


def test_every_rule_is_tried():
    tried = {rule for rule, *_ in RULES} | {advice.by_batches, advice.by_early_bots, advice.by_churn}
    assert tried == set(advice.RULES)
