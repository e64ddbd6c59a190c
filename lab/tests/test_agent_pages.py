"""The pages of agents: what each docstring must have, a picture that is small, and when to take an agent, by rule."""

import re

import pytest
from pages import advice
from pages.agent_pictures import regret_figure, svg
from pages.agents import FAMILIES, family_of, family_page, page

from clickgym.core.docstrings import sections
from clickgym.runner.labels import PUBLISHED
from clickgym_lab.bench.boards import Table
from clickgym_lab.bench.leaderboard import Place
from clickgym_lab.bench.protocol import Board
from clickgym_lab.bench.score import Estimate, Standing

LARGEST = 30_000
"""Bytes of a picture."""


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
    families = {name: family_of(name) for name in PUBLISHED}
    assert {*FAMILIES} - {"Others"} <= set(families.values()) <= {*FAMILIES}
    examples = {
        "CascadeTS": "Cascade", "PBMTS": "Position-based", "TopRank": "Elimination and sorting",
        "MixTS": "Several click models",
        "GLRCascadeUCB": "Nonstationary", "PBMLinUCB": "Linear", "PairRank": "Learned rankers", "PPO": FAMILIES[9],
        "CascadeVI": "Users with a memory", "RankedExp3": "A bandit per position", "EpsilonGreedy": "Baselines",
    }  # fmt: skip
    assert examples.items() <= families.items()
    names = re.findall(r"\(\.\./agents/(\w+)\.md\)", family_page("Cascade"))
    assert names == sorted(names, key=str.lower)
    assert {family_of(name) for name in names} == {"Cascade"}


def test_a_page_has_its_parts_in_order_and_a_small_picture():
    text = page("TopRank")
    parts = [
        "# TopRank", "clickgym run CMRank-v0 --agents TopRank", "## The idea", "## The algorithm", "## Its regret",
        "(TopRank-regret.svg)", "## When to take it", "## What it needs", "## Deviations", "## The paper",
        "@inproceedings{toprank", "## In the [leaderboard]", "## In the studies", "## Arguments",
    ]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    content = svg(regret_figure(advice.case_of("TopRank")))
    assert content.startswith(b"<?xml")
    assert len(content) <= LARGEST


def test_an_agent_that_was_not_played_has_a_page():
    """As generic RL that would cost too much has one, and an agent that is new."""
    text = page("SAC")
    assert "## In the [leaderboard](../leaderboard.md)\n\nIt has not played yet.\n" in text
    assert "not measured yet" in text


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
    return advice.Case(name, PUBLISHED[name], [(table, own)])


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
def test_a_rule_of_a_study_speaks_with_the_figures_of_the_page_for_practice(rule, bad, figure, good):
    [said] = rule(advice.Case(bad, PUBLISHED[bad], []))
    assert not said.take
    assert figure in said.text
    assert not list(rule(advice.Case(good, PUBLISHED.get(good, PUBLISHED["TopRank"]), [])))


def test_every_rule_is_tried():
    tried = {rule for rule, *_ in RULES} | {advice.by_batches, advice.by_early_bots, advice.by_churn}
    assert tried == set(advice.RULES)
