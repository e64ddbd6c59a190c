"""Sources: every class names its papers as the table of papers has them, and no paper of the table
is named by nothing.
"""

import re
from pathlib import Path

import pytest
from pages import citing
from pages.citing import bibtex, cited, citing_page, parts, references, source

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS
from clickgym.envs import CLICK_MODELS, CONTEXTUAL, ENVIRONMENTS, MEMORY
from clickgym_logs.estimation.estimator import MODEL_ESTIMATORS

ROOT = Path(__file__).resolve().parents[2]
THINGS = {name: thing for things in parts().values() for name, thing in things.items()}
IN_PAPER = set(re.findall(r"@(\w+)", (ROOT / "paper.md").read_text(encoding="utf-8")))
CASCADE = references()["cascadingbandits"].citation()


@pytest.mark.parametrize("name", THINGS)
def test_sources_name_papers_as_the_table_has_them(name):
    papers = cited(THINGS[name])
    assert papers or source(THINGS[name]).startswith("a baseline")


def test_everything_that_is_registered_is_on_the_page():
    users = {
        model
        for each in (ENVIRONMENTS | CONTEXTUAL | MEMORY).values()
        for model in (each.users, each.click_model)
    }
    registered = [AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS, LEARNERS, CLICK_MODELS, MODEL_ESTIMATORS]
    things = {*users, *(thing for registry in registered for thing in registry.values())}
    assert things <= set(THINGS.values())
    page = citing_page()
    for thing in things:
        keys = ", ".join(f"`{paper.key}`" for paper in cited(thing))
        assert f"| `{thing.__name__}` | {keys or 'none: a baseline'} |" in page


def test_every_source_in_a_docstring_is_found():
    """As many as there are lines that begin with the word, in the packages that are searched."""
    files = [
        file for room in ("agents", "envs", "logs/src") for file in (ROOT / room).rglob("*.py")
    ]
    lines = re.findall(
        r"^ +Sources?:",
        "\n".join(file.read_text(encoding="utf-8") for file in files),
        flags=re.MULTILINE,
    )
    assert len(lines) == sum(bool(source(thing)) for thing in THINGS.values())


def test_no_paper_is_named_by_nothing():
    named = {paper.key for thing in THINGS.values() for paper in cited(thing)}
    assert set(references()) == named | IN_PAPER


@pytest.mark.parametrize("reference", references().values(), ids=references())
def test_papers_are_whole(reference):
    assert reference.doi or reference.arxiv or reference.url
    assert not reference.arxiv or re.fullmatch(r"\d{4}\.\d{4,5}", reference.arxiv)
    assert not reference.doi or re.fullmatch(r"10\.\d{4,5}/\S+", reference.doi)
    assert all(", " in author or author == "others" for author in reference.authors)
    assert f"{{{reference.key}, title={{{reference.title}}}" in bibtex()


def test_every_paper_is_on_the_page_with_its_address():
    page = citing_page()
    for key, reference in references().items():
        assert f"- `{key}`: {reference.citation()}. {reference.link()}\n" in page
        assert any(
            where and where in reference.link()
            for where in (reference.doi, reference.arxiv, reference.url)
        )


def test_keys_and_titles_are_unique():
    assert len({reference.title for reference in references().values()}) == len(references())
    keys = re.findall(r"^@(?:article|book|inproceedings)\{(\w+), ", bibtex(), flags=re.MULTILINE)
    assert keys == sorted(references())
    assert bibtex().isascii()


def test_entries_are_those_of_bibtex():
    lines = {line.partition("{")[2].partition(",")[0]: line for line in bibtex().splitlines()}
    assert lines["ppo"] == (
        "@article{ppo, title={Proximal policy optimization algorithms}, author={Schulman, John and Wolski, Filip and Dhariwal, "
        "Prafulla and Radford, Alec and Klimov, Oleg}, journal={arXiv preprint arXiv:1707.06347}, year={2017}, "
        "eprint={1707.06347}, archiveprefix={arXiv}}"
    )
    assert (
        r"author={H{\"u}y{\"u}k, Alihan and Tekin, Cem}, booktitle={International Conference on Artificial"
        in lines["cts"]
    )
    assert r"@book{clickmodels" in lines["clickmodels"]
    assert r"publisher={Morgan \& Claypool}" in lines["clickmodels"]


def test_a_source_that_refers_to_another_has_its_papers():
    assert (
        source(CONTEXTUAL_AGENTS["PBMLinUCB"])
        == "as for `UBMLinUCB`, with weights of the position alone."
    )
    assert (
        cited(CONTEXTUAL_AGENTS["PBMLinUCB"])
        == cited(CONTEXTUAL_AGENTS["UBMLinUCB"])
        == [references()["ubmlinucb"]]
    )
    assert [paper.key for paper in cited(AGENTS["BCMPTS"])] == ["mpts", "pbmbandits"]


def test_cascade_ts_names_those_who_draw_from_beta():
    assert [paper.key for paper in cited(AGENTS["CascadeTS"])] == ["cts", "cascadingts"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Does something.", "Faulty has no Source in its docstring; expected one"),
        (
            "A.\n\n    Source: somebody, 2015.",
            "the source of Faulty names no paper: 'somebody, 2015.'; expected *title*",
        ),
        (
            "A.\n\n    Source: Kveton, *Cascades*, ICML 2015.",
            r"names *Cascades*, which references.toml does not have",
        ),
        (f"A.\n\n    Source: {CASCADE.replace('2015', '2016')}.", f"expected {CASCADE!r} in it"),
        (f"A.\n\n    Source: {CASCADE.replace('Wen, ', '')}.", f"expected {CASCADE!r} in it"),
    ],
    ids=["no source", "no paper", "another title", "another year", "an author left out"],
)
def test_faulty_sources_are_refused(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        cited(type("Faulty", (), {"__doc__": text}))


def test_a_class_without_words_of_its_own_does_not_have_those_of_its_base():
    assert not source(type("Mine", (AGENTS["GRAB"],), {}))


def test_a_paper_that_is_lost_is_missed(monkeypatch):
    left = {key: reference for key, reference in references().items() if key != "grab"}
    monkeypatch.setattr(citing, "references", lambda: left)
    with pytest.raises(
        ValueError, match="names \\*Parametric graph for unimodal ranking bandit\\*, which"
    ):
        cited(AGENTS["GRAB"])
