"""Build the website: collect the pages in the folders of the repository, make those of agents,
click models and studies, and run Sphinx.

make site
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import crowd
import rl_page
from figures import grid
from make_pages import study_figures, study_pages
from matplotlib.figure import Figure
from pages import (
    agent_page,
    environment_page,
    home,
    ids_of,
    models,
    package_page,
)
from polars import col

import clickgym
from clickgym.agents import AGENTS, CompiledAgent
from clickgym.bench.result_files import read_results
from clickgym.envs import ENVIRONMENTS

HERE, ROOT = Path(__file__).parent, Path(__file__).resolve().parents[2]
OUT, SOURCE = ROOT / "build" / "site", ROOT / "build" / "site-source"
RESULTS = "examples/papers/results"
PACKAGES = ("clickgym", "clickgym.envs", "clickgym.agents", "clickgym.logs")
PAGES = (
    "docs/*.*",
    "examples/**/*.*",
    "speed/README.md",
    "C*.*",
    "SECURITY.md",
)
LINKED = ("tools/*.*", "tools/data/*.parquet", "tests/*.py", "src/clickgym/*.bib", "src/**/*.py")
"""Files that are no pages; a link leads to a copy of them."""


def collect() -> None:
    """Copy the pages, and what they link to, to the same places as in the repository."""
    shutil.copytree(HERE / "static", SOURCE / "static")
    _, heading, pages = (ROOT / "docs" / "README.md").read_text(encoding="utf-8").partition("## ")
    linked = re.sub(r"\]\((?!https:)(\.\./)?", lambda link: "](" if link[1] else "](docs/", pages)
    home = (HERE / "index.md").read_text(encoding="utf-8")
    home = home.replace("<!-- the map of docs/README.md -->", heading + linked)
    (SOURCE / "index.md").write_text(home, encoding="utf-8")
    for pattern in PAGES + LINKED:
        for file in ROOT.glob(pattern):
            target = SOURCE / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)


def write_generated_pages() -> None:
    """Write all pages that are made from the packages, and link the overviews to them."""
    folders = {
        "agents": {name: agent_page(name) for name in AGENTS},
        "environments": {name: environment_page(name) for name in models()},
        "api": {package: package_page(package) for package in PACKAGES},
    }
    for name, text in study_pages(has_picture=True):
        page_text = f"---\nno-search: true\n---\n{text}"
        (SOURCE / RESULTS / f"{name}.md").write_text(page_text, encoding="utf-8")
    links = {name: f"agents/{name}.md" for name in AGENTS}
    links |= {env_id: f"environments/{users.model}.md" for env_id, users in ENVIRONMENTS.items()}
    for folder, texts in folders.items():
        (SOURCE / "docs" / folder).mkdir(exist_ok=True)
        for name, text in texts.items():
            (SOURCE / "docs" / folder / f"{name}.md").write_text(text, encoding="utf-8")
    folders[f"../{RESULTS}"] = {file.stem: "" for file in sorted((SOURCE / RESULTS).glob("*.md"))}
    for page, folder in {
        "agents": "agents",
        "environments": "environments",
        "studies": f"../{RESULTS}",
    }.items():
        file = SOURCE / "docs" / f"{page}.md"
        text = re.sub(
            r"\[`([\w-]+)`\]\(\.\./src/[\w/]+\.py\)",
            lambda match: f"[`{match[1]}`]({links[match[1]]})",
            file.read_text(encoding="utf-8"),
        )
        contents = "\n".join(f"{folder}/{name}" for name in folders[folder])
        file.write_text(f"{text}\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n", encoding="utf-8")


def draw() -> None:
    """Draw the figures of studies, agents and environments."""
    for name, figure in study_figures():
        figure.savefig(SOURCE / RESULTS / f"{name}.png", dpi=200)
    for name, figure in agent_figures():
        figure.savefig(SOURCE / "docs" / "agents" / f"{name}.png", dpi=200)
    for name in models():
        picture = SOURCE / "docs" / "environments" / f"{name}.png"
        crowd.draw_figure(ids_of(name)[0]).savefig(picture, dpi=150)


def agent_figures() -> Iterator[tuple[str, Figure]]:
    """Yield the regret of each agent where it is at home, beside a known one and random lists; that
    of networks, which take long, is shipped.
    """
    shipped = read_results(rl_page.FILE)[0].filter(instance="linear:seed=21")
    homes = {name: home(name) for name in AGENTS}
    for env in dict.fromkeys(homes.values()):
        names = [name for name in AGENTS if homes[name] == env]
        rivals = ["LinearTS", "C2UCB"] if "Contextual" in env else ["CascadeKLUCB", "TopRank"]
        names_played = [name for name in names if issubclass(AGENTS[name], CompiledAgent)]
        agents = list(dict.fromkeys([*names_played, *rivals, "Random"]))
        rows = clickgym.sweep([env], agents, 1e5, 5, progress=False).frame
        for name in names:
            rival = rivals[name == rivals[0]]
            runs = rows if name in names_played else shipped
            figure, [axes] = grid(1, label="cumulative regret")
            rl_page.draw(axes, runs.filter(col("agent").is_in([name, rival, "Random"])))
            figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=9)
            n_runs = runs.filter(agent=name)["run"].n_unique()
            texts = {0: "no runs are shipped", 1: "one run"}
            runs_text = texts.get(n_runs, f"mean of {n_runs} runs, and their range")
            axes.set_title(f"{env}, {runs['instance'][0]}: {runs_text}", fontsize=10)
            yield name, figure


def main() -> int:
    """Build; Sphinx's code is returned, which is not 0 on any warning, as of a dead link."""
    from sphinx.cmd.build import main as sphinx  # the tests of what is collected do without it

    for folder in (SOURCE, OUT):
        shutil.rmtree(folder, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    collect()
    write_generated_pages()
    draw()
    return sphinx(["-q", "-W", "--keep-going", "-c", str(HERE), str(SOURCE), str(OUT)])


if __name__ == "__main__":
    sys.exit(main())
