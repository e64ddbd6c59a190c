"""The pages of agents: what each docstring must have, and the parts of a page."""

import re
from pathlib import Path

import pytest
from pages import agent_page, bibliography, papers, plain

from clickgym.core.docstrings import sections
from clickgym.envs import CLICK_MODELS, MixtureModel
from clickgym.runner.labels import PUBLISHED
from clickgym_lab.mix_ts import MixTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("agent", [*PUBLISHED.values(), MixTS])
def test_a_docstring_has_the_idea_in_five_sentences_and_the_algorithm_in_pseudo_code(agent):
    text = sections(agent.__doc__)
    idea, algorithm = text["Idea"], text["Algorithm"]
    assert "\n\n" not in idea
    assert idea.endswith(".")
    assert 4 <= len(re.findall(r"[.!?](?=\s+[A-Z`]|$)", idea)) <= 6
    marker, empty, *lines = algorithm.splitlines()
    assert (marker, empty) == ("::", "")
    assert 8 <= len(lines) <= 30
    assert all(lines)  # none of them empty


@pytest.mark.parametrize("name", PUBLISHED)
def test_page_of_an_agent(name):
    """Its papers are in the BibTeX file, and its studies ship."""
    text = agent_page(name)
    parts = [f"# {name}", "Made for: ", f"{name}(n_items", "## Idea", "## BibTeX"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_papers_of_an_agent():
    text = agent_page("BCMPTS")
    assert "@inproceedings{mpts,\n" in text
    assert "@inproceedings{pbmbandits,\n" in text
    assert "[pbm-synthetic](../../lab/results/pbm-synthetic.md)" in text


@pytest.mark.parametrize("model", CLICK_MODELS.values(), ids=list(CLICK_MODELS))
def test_papers_of_a_click_model(model):
    if model is not MixtureModel:
        assert papers(model)


def test_every_paper_is_named():
    """By an agent, a click model, an estimator or the paper about the package."""
    files = [
        file
        for folder in ("agents", "envs", "src", "logs/src", "lab/src")
        for file in (ROOT / folder).rglob("*.py")
    ]
    texts = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in files)
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper.md").read_text(encoding="utf-8")))
    text = plain(texts)
    for title, entry in bibliography().items():
        key = entry.partition("{")[2].partition(",")[0]
        assert title in text or key in cited, key
