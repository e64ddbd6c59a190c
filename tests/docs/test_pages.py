"""Tests of the pages: those that programs write are complete and up to date, and links lead to
existing files.
"""

import json
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
import rl_page
from make_pages import pages
from pages import agent_page
from scipy import stats

from clickgym.agents import AGENTS, Learner
from clickgym.agents.published import FAMILIES, MADE_FOR
from clickgym.bench.board import OURS
from clickgym.envs import CLICK_MODELS, ENVIRONMENTS, UserModel
from clickgym.runner.reports.bibliography import papers

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.recipe
def test_made_pages_are_up_to_date():
    """Judging the shipped results of all studies again gives what the pages say."""
    for file, text in pages().items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name}: run make pages"


@pytest.mark.recipe
@pytest.mark.parametrize("name", [*AGENTS, *UserModel.classes])
def test_every_source_is_in_the_bibliography(name):
    """Then `clickgym report --bib` has an entry for each paper of an agent or click model."""
    thing = AGENTS.get(name) or UserModel.classes[name]
    source = re.search(r"\n    Source:((?:.+\n)*)", f"{thing.__doc__}\n")
    titles = re.findall(r"\*(.+?)\*", " ".join(source[1].split())) if source else []
    entries = {plain(title_of(entry)) for entry in papers(thing)}
    assert {plain(title) for title in titles} <= entries, "complete references.bib and bibtex_keys"


def title_of(entry):
    return re.sub(r"},\n[\s\S]*", "", entry.split("title={")[1])


def plain(title):
    """A title without accents and without BibTeX's braces."""
    letters = unicodedata.normalize("NFD", re.sub(r"\\[`'\"~]|[{}\\]", "", title))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@pytest.mark.recipe
def test_readme_lists_every_agent():
    """Each row of the table is a family, in the order of all tables. Agents that are told more than
    clicks are marked with a dagger. The first author and the year follow the name.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"## Algorithms\n\n[^\n]*\n[|-]+\n(.*?)\n\n", text, re.DOTALL)[1]
    rows = dict(re.findall(r"^\| (.*?) \| (.*)$", listed, re.MULTILINE))
    named = {
        title: re.findall(r"(\w+)(†?)(?: \([^)]*\))?(?:,| \|$)", row) for title, row in rows.items()
    }
    expected = {
        MADE_FOR[family]: [(agent.__name__, "†" if agent.requires else "") for agent in agents]
        for family, agents in FAMILIES.items()
    }
    missing = [row for row in expected.items() if row not in named.items()]
    assert [*named.items()] == [*expected.items()], f"README.md, Algorithms: {missing}"
    for names, author, year in re.findall(r"([\w†, ]+) \((?:after )?(\w+) (\d+)\b", listed):
        for name in re.findall(r"\w+", names):
            assert re.match(rf"(after )?{author} .*{year}", AGENTS[name].paper), name


@pytest.mark.recipe
def test_readme_lists_every_environment():
    """Those that also exist with prefixes come first, because a sentence counts them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+-v0)`\]", text.partition("## Environments")[2], re.MULTILINE)
    ids = [env_id for env_id, environment in ENVIRONMENTS.items() if not environment.form]
    assert sorted(listed) == sorted(ids), f"README.md, Environments: {set(ids) ^ set(listed)}"
    with_forms = [env_id for env_id in listed if f"NonStationary{env_id}" in ENVIRONMENTS]
    assert listed[: len(with_forms)] == with_forms


@pytest.mark.parametrize("name", AGENTS)
def test_the_site_has_the_pseudo_code_of_each_agent(name):
    is_of_library = issubclass(AGENTS[name], Learner)  # documented by stable-baselines3
    assert ("```text\n" in agent_page(name)) != is_of_library, f"{name} has no section Algorithm"


WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@pytest.mark.recipe
def test_numbers_of_agents_and_environments():
    """Where the README and the paper state a number, it is right. The message says what to edit."""
    published = [agent for agent in AGENTS.values() if not issubclass(agent, Learner)]
    n_published = len(published) - len(FAMILIES["baselines"]) - len(OURS)
    n_forms = len({environment.form for environment in ENVIRONMENTS.values()})
    stated = {
        r"NUMBER environments\*\*": len(ENVIRONMENTS),
        "NUMBER models of how people click": len(CLICK_MODELS),
        "NUMBER click models": len(CLICK_MODELS),
        "each in NUMBER forms": n_forms,
        "The first NUMBER also exist": len(CLICK_MODELS),
        r"and NUMBER more\.": len(ENVIRONMENTS) - n_forms * len(CLICK_MODELS),
        "NUMBER (?:published algorithms|algorithms from the literature)": n_published,
        "Of the NUMBER,": n_published,
        "NUMBER baselines": len(FAMILIES["baselines"]),
    }
    files = ("README.md", "paper.md")
    texts = {file: " ".join((ROOT / file).read_text("utf-8").split()) for file in files}
    wrong = []
    for words, count in stated.items():
        pattern = words.replace("NUMBER", rf"\b(\d+|{'|'.join(WORDS)})")
        expected = {str(count), *WORDS[count : count + 1]}
        for file, text in texts.items():
            for match in re.finditer(pattern, text):
                if match[1] not in expected:
                    wrong.append(f"{file} says {match[0]!r}: there are {count}, so edit it")
    assert not wrong, "\n".join(wrong)


@pytest.mark.recipe
def test_shares_of_the_readme():
    """The percentages for bandits and RL algorithms in the README equal those lost in the shipped
    runs.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("Does it pay?")[2]
    shares = {
        (world, agent): 100 * part["share"].to_numpy()
        for (world, agent), part in rl_page.runs().group_by("world", "agent")
    }
    journeys = rl_page.journey_regrets()
    real = rl_page.memory_regrets()["journey:query=yandex-9982"]
    of_journeys, of_real = journeys["Random"] / 100, real["Random"].mean() / 100
    compared = ("CascadeKLUCB", "PPO, tuned", "SlateQ", "CascadeVI:bonus=0")
    expected = [
        shares["PBMRank-v0", "CascadeKLUCB"],
        shares["PBMRank-v0", "A2C"],
        shares["personal", rl_page.best_networks()[1]],
        shares["personal", rl_page.best_setting("PPO")],
        *(journeys[agent] / of_journeys for agent in compared),
        *(real[agent] / of_real for agent in compared),
    ]
    shown = re.findall(r"\| (?:\*\*)?([\d.]+) ± ([\d.]+)", text)
    for (mean, half), values in zip(shown, expected, strict=True):
        interval = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
        for printed, value in ((mean, values.mean()), (half, interval)):
            digits = len(printed.partition(".")[2])
            assert f"{value:.{digits}f}" == printed, (mean, half)


def text_of(file):
    """The Markdown of a page or of a notebook, without blocks of code."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"^( *)(```+|:::+).*?^\1\2 *$", "", text, flags=re.DOTALL | re.MULTILINE)


def links_of(file):
    """The targets of the links and pictures of a page, except those in code."""
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text_of(file))
    inline = re.findall(r"\]\(<?([^\s()<>]+(?:\([^\s()]*\)[^\s()<>]*)?)>?(?: \"[^\"]*\")?\)", text)
    return [*inline, *re.findall(r"<[^>]*\b(?:href|src)=\"([^\"]+)\"", text)]


@cache
def anchors_of(file):
    """The anchors of a page's headings, as GitHub makes them."""
    anchors = Counter()
    for heading in re.findall(r"^#+ +(.+?)[ #]*$", text_of(file), re.MULTILINE):
        shown = re.sub(r"!?\[(.*?)\]\(.*?\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w -]", "", shown).replace(" ", "-")
        anchors[f"{anchor}-{anchors[anchor]}" if anchors[anchor] else anchor] += 1
    return set(anchors)


def target_of(file, link):
    """The file and the anchor of a link into the repository; None for any other link."""
    link = unquote(link)
    site = "https://github.com/clickgym/clickgym"
    own = re.fullmatch(rf"{site}/?(#.*)?", link)
    path, _, anchor = f"/README.md{own[1] or ''}".partition("#") if own else link.partition("#")
    path = re.sub(r"^https://.+/clickgym/clickgym/(blob/|tree/|raw/)?main/", "/", path)
    if re.match(r"\w+:", path):
        return None
    is_home = file.parent.name == "site"  # its page is at the root
    folder = ROOT if path.startswith("/") or is_home else file.parent
    return (folder / path.lstrip("/")).resolve() if path else file, anchor


def test_no_link_is_dead():
    """Each link of a page or a notebook into the repository leads to an existing file, and to an
    existing heading if it names one.
    """
    rooms = ("docs", "examples", "speed", ".github")
    pages = [*ROOT.glob("*.md"), *(file for room in rooms for file in (ROOT / room).rglob("*.md"))]
    dead = []
    for file in [*pages, *(ROOT / "examples").rglob("*.ipynb")]:
        for link in links_of(file):
            target, anchor = target_of(file, link) or (file, "")
            is_made = target.parent == ROOT / "docs" / "api"  # by docs/site/build.py
            has_anchor = not anchor or target.suffix != ".md" or anchor in anchors_of(target)
            if not is_made and not (target.exists() and has_anchor):
                dead.append(f"{file.relative_to(ROOT)}: {link}")
    assert not dead
