"""The website: every page has its place, every link leads somewhere, and the code of the pages
runs.
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from posixpath import normpath

import gymnasium as gym
import numpy as np
import pytest
from pages import described

import clickgym
import clickgym_logs
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS
from clickgym.envs import ENVIRONMENTS, load_instance

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def module(name):
    spec = importlib.util.spec_from_file_location(f"site_{name}", DOCS / "site" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(DOCS / "site"))  # as a script has its folder
    try:
        spec.loader.exec_module(loaded)
    finally:
        sys.path.remove(str(DOCS / "site"))
    return loaded


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """What Sphinx is given."""
    build = module("build")
    build.SOURCE = tmp_path_factory.mktemp("source")
    build.collect()
    build.write_made_pages()
    return build.SOURCE


def test_every_page_stands_in_a_table_of_contents(source):
    entries = set()
    for page in source.rglob("*.md"):
        for tree in re.findall(
            r"```{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL
        ):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            for line in lines:
                files = page.parent.glob(f"{line}.*") if "*" in line else [page.parent / line]
                entries |= {
                    normpath(file.relative_to(source).with_suffix("").as_posix()) for file in files
                }
    pages = {
        path.relative_to(source).with_suffix("").as_posix()
        for path in source.rglob("*")
        if path.suffix in (".md", ".ipynb")
    }
    assert pages - entries == {"index", "docs/README"}


def test_links_of_pages_lead_somewhere(source):
    for page in source.rglob("*"):
        if page.suffix in (".md", ".ipynb") and page != source / "docs" / "README.md":
            text = page.read_text(encoding="utf-8")
            for link in re.findall(r"\]\((?!https?:|#)([\w./-]+\.(?:md|py|ipynb|gif))", text):
                assert (page.parent / link).exists(), (page, link)


def test_every_agent_and_every_environment_has_a_page(source):
    assert {path.stem for path in (source / "docs" / "agents").glob("*.md")} == {
        *AGENTS,
        *CONTEXTUAL_AGENTS,
        *STATE_AGENTS,
        *LEARNERS,
    }
    assert {path.stem for path in (source / "docs" / "environments").glob("*.md")} == {
        environment.model for environment in ENVIRONMENTS.values()
    }
    page = (source / "docs" / "agents" / "TopRank.md").read_text(encoding="utf-8")
    for words in ("TopRank(n_items, n_positions", "Lattimore", "lab/results/bubble-fig1.md"):
        assert words in page


def test_every_public_name_is_in_the_interface(source):
    for package in (clickgym, clickgym.envs, clickgym.agents, clickgym_logs):
        page = (source / "docs" / "api" / f"{package.__name__}.md").read_text(encoding="utf-8")
        for name in package.__all__:
            thing = getattr(package, name)
            assert (
                name == "__version__"
                or type(thing).__name__ == "module"
                or re.search(rf"\b{name}\b", page)
            ), name


def test_pictures_of_pages_have_words_and_titles_differ(source):
    titles = {}
    for path in source.rglob("*.md"):
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "![](" not in text, path
        titles[path.relative_to(source).as_posix()] = re.search(
            r"^# (.+)$", text, flags=re.MULTILINE
        )[1]
    assert len(titles) > 60
    assert {
        page: title for page, title in titles.items() if list(titles.values()).count(title) > 1
    } == {}


def test_docstring_in_markdown():
    def ranked(items):
        """Rank.

        Args:
            items: ids, the
                best first.

        Example:
            >>> 1
            1
        """

    assert described(ranked) == (
        "```python\nranked(items)\n```\n\nRank.\n\n**Args**\n\n- `items`: ids, the\n    best first."
        "\n\n**Example**\n\n```pycon\n>>> 1\n1\n```"
    )


def given(folder):
    """What the pages speak of as yours: a log, ratings, a results folder."""
    rng = np.random.default_rng(0)
    env = gym.make("PBMRank-v0")
    log = clickgym_logs.record(clickgym.make_agent("Random", env, seed=0), env, 2000, seed=0)
    clickgym_logs.write_tidy(log, folder / "log.csv")
    relabelled = clickgym_logs.ClickLog(
        log.items, log.clicks, np.zeros(len(log.items), int), log.item_labels, ("shoes",)
    )
    clickgym_logs.write_tidy(relabelled, folder / "shoes.csv")
    ratings = [f"{user},{film},{rng.integers(1, 6)}" for user in range(30) for film in range(40)]
    (folder / "ratings.csv").write_text("\n".join(["userId,movieId,rating", *ratings]) + "\n")
    load_instance("linear:n_items=4,n_positions=4,n_pool=50").save(folder / "four.json")
    clickgym.sweep(
        ["PBMRank-v0"],
        ["BatchRank", "TopRank"],
        1000,
        2,
        out=folder / "results" / "first",
        progress=False,
    )


SMALLER = {
    "results.to_pandas()": "results.to_pandas",  # which is not installed for the tests
    "log.tsv.gz": "shoes.csv",
    "horizon=100_000": "horizon=1000",
    "horizon=1_000_000": "horizon=1000",
    'Client("scheduler:8786")': "Client(processes=False, dashboard_address=None)",
    "10**7, runs=10": "1000, runs=2",
    "10**4, 5": "100, 2",
    "20_000, seed=0": "500, seed=0",
    "total_timesteps=100_000": "total_timesteps=100",
    "PlackettLucePolicy(scores": "PlackettLucePolicy(list(range(10))",
}


@pytest.mark.parametrize(
    "page",
    [
        "agents",
        "contextual",
        "environments",
        "from_log_to_decision",
        "logs",
        "off_policy",
        "runner",
        "site/index",
        "stateful_users",
    ],
)
def test_the_code_of_a_page_runs(page, tmp_path):
    """At a smaller size; `test_outsiders`, `test_examples` and `test_evaluation` run that of the
    other pages.
    """
    given(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    assert code
    for full, small in SMALLER.items():
        code = code.replace(full, small)
    (tmp_path / "page.py").write_text(
        f"if __name__ == '__main__':\n    exec({code!r})\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_site_is_built_without_a_warning():
    """Warnings are errors: a name that is not found, a page without a place, a heading out of
    order.
    """
    pytest.importorskip("sphinx", reason="make site installs it")
    done = subprocess.run(
        [sys.executable, DOCS / "site" / "build.py"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
