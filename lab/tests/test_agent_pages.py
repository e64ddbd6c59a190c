"""The pages of agents: what each docstring must have, and the parts of a page."""

import re

import pytest
from pages.agents import page

from clickgym.core.docstrings import sections
from clickgym.runner.labels import PUBLISHED
from clickgym_lab.mix_ts import MixTS


@pytest.mark.parametrize("agent", [*PUBLISHED.values(), MixTS])
def test_a_docstring_has_the_idea_in_five_sentences_and_the_algorithm_in_pseudo_code(agent):
    text = sections(agent.__doc__)
    idea, algorithm = text["Idea"], text["Algorithm"]
    assert "\n\n" not in idea
    assert idea.endswith(".")
    assert 4 <= len(re.findall(r"[.!?](?=\s+[A-Z`]|$)", idea)) <= 6
    marker, empty, *lines = algorithm.splitlines()
    assert (marker, empty) == ("::", "")
    assert 8 <= len(lines) <= 20
    assert all(lines)  # one step per line, none of them empty


def test_a_page_has_its_parts_in_order():
    text = page("TopRank")
    parts = [
        "# TopRank",
        "clickgym run CMRank-v0 --agents TopRank",
        "## The idea",
        "## The algorithm",
        "## Deviations",
        "## The paper",
        "@inproceedings{toprank",
        "../studies/bubble-fig1.md",
        "## Arguments",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_agent_has_a_page(name):
    assert page(name).startswith(f"# {name}\n")
