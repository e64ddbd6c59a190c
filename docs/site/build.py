"""Build the website: collect the pages, make those of agents and of the API from the package, and let Sphinx write HTML.

make site
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

sys.path.append(str(Path(__file__).parents[1]))  # where the folder of pages is

from pages.advice import case_of
from pages.agent_pictures import regret_figure, svg
from pages.agents import FAMILIES, agents_of, family_of, family_page, page
from pages.landing import curves_figure, landing
from places import ROOT, pages, places_of, relinked

import clickgym
from clickgym import agents, envs, offline, runner
from clickgym.core.formats import amount
from clickgym.core.templates import templates
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from clickgym.runner import PUBLISHED, digest
from clickgym_lab.bench.boards import REPOSITORY, boards_notes, boards_tables, filters_html, table_html
from clickgym_lab.bench.conclusions import RECOMMENDING, conclusions
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import agent_of

HERE = Path(__file__).parent
SCRIPTS = ("tables.js", "filters.js", "board.js")
"""Of the boards, as they are in pages of their own."""
BESIDE = {
    "course/checks.py": "examples/course/checks.py",
}
"""What notebooks call as they are executed, by its place in the site."""


def collect(source: Path) -> None:
    """Copy the pages that are written by hand or by `make pages`, their links turned to where things are in the site."""
    kept = pages()
    places = places_of(kept)
    for place, path in kept.items():
        target = source / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(relinked(path.read_text(encoding="utf-8"), path, place, places), encoding="utf-8")
        elif path.suffix == ".ipynb":
            book = json.loads(path.read_text(encoding="utf-8"))
            for cell in book["cells"]:
                if cell["cell_type"] == "markdown":
                    cell["source"] = relinked("".join(cell["source"]), path, place, places)
            describe_figures(book["cells"])
            target.write_text(json.dumps(book), encoding="utf-8")
        else:
            shutil.copy(path, target)
    for place, path in BESIDE.items():
        shutil.copy(ROOT / path, source / place)


def describe_figures(cells: list[dict[str, Any]]) -> None:
    """Give the figures of code cells an alternative text: the headings above the cell.

    Args:
        cells: of a notebook; their metadata are changed.
    """
    headings: dict[int, str] = {}
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for marks, heading in re.findall(r"^(#+) (.+)$", "".join(cell["source"]), flags=re.MULTILINE):
                headings = {level: above for level, above in headings.items() if level < len(marks)} | {len(marks): heading}
        elif cell["cell_type"] == "code":
            cell["metadata"]["mystnb"] = {"image": {"alt": f"Figure: {' – '.join(headings.values())}"}}


# ------------------------------------------------------------------------------------------------- pages made from the package


def _documented(module: str, name: str) -> str:
    thing = getattr(sys.modules[module], name)
    directive = "autoclass" if inspect.isclass(thing) else "autofunction" if callable(thing) else "autodata"
    members = "\n   :members:\n   :show-inheritance:" if directive == "autoclass" and module != "clickgym.agents" else ""
    members += "\n   :inherited-members:" if name == "Scorecard" else ""  # its scores are of a class of their own
    return f"```{{eval-rst}}\n.. {directive}:: {module}.{name}{members}\n```"


def api_page(module: str) -> str:
    """Every public name of a package; agents have pages of their own."""
    package = sys.modules[module]
    parts = [f"# API of {module}", (inspect.getdoc(package) or "").partition("\n")[0]]
    for name in package.__all__:
        thing = getattr(package, name)
        if module == "clickgym.agents" and name in PUBLISHED:
            parts.append(f"- [`{name}`](../agents/{name}.md)")
        elif module == "clickgym" and name in envs.__all__:
            parts.append(f"- [`{name}`](clickgym.envs.md#{name.lower()})")
        elif isinstance(thing, Mapping):
            parts += [f"## {name}", f"A mapping, by name: {', '.join(f'`{key}`' for key in thing)}."]
        elif not inspect.ismodule(thing) and name != "__version__":
            parts += [f"## {name}", _documented(module, name)]
    return "\n\n".join(parts) + "\n"


BLOCK = re.compile(r"<!-- boards -->.*?<!-- end of boards -->", flags=re.DOTALL)


def board_page(text: str) -> str:
    """The page of the leaderboard with tables that are sorted and filtered in place of those in Markdown.

    Args:
        text: of the page, with marks where the tables are.
    """
    parts = [_raw(filters_html())]
    for table in boards_tables():
        rows = table_html(table, links=_agent_address)
        parts += [f"### {table.title}", table.about, _raw(f'<div class="scroll boards" tabindex="0">\n{rows}\n</div>')]
    parts += boards_notes()
    scripts = "".join(f'<script src="_static/{name}"></script>' for name in SCRIPTS)
    return "---\nhide-toc: true\n---\n\n" + BLOCK.sub(lambda _: "\n\n".join([*parts, _raw(scripts)]), text)


def _agent_address(line: str) -> str:
    """The page of the agent of a line."""
    name = agent_of(line)
    return f"agents/{name}.html" if name in PUBLISHED else ""


def _raw(html: str) -> str:
    """HTML in a page in Markdown."""
    return f"```{{raw}} html\n{html}\n```"


def write(source: Path) -> None:
    """All pages that are made from the package, and the tables of contents."""
    for folder in ("agents", "api", "families"):
        (source / folder).mkdir(exist_ok=True)
    present = {family_of(name) for name in PUBLISHED}
    families = {family.lower().replace(" ", "-"): family for family in FAMILIES if family in present}
    for name in PUBLISHED:
        (source / "agents" / f"{name}.md").write_text(page(name), encoding="utf-8")
        if (figure := regret_figure(case_of(name))) is not None:
            (source / "agents" / f"{name}-regret.svg").write_bytes(svg(figure))
    for file, family in families.items():
        (source / "families" / f"{file}.md").write_text(family_page(family), encoding="utf-8")
    for package in (clickgym, envs, agents, offline):
        (source / "api" / f"{package.__name__}.md").write_text(api_page(package.__name__), encoding="utf-8")
    contents = {
        "environments.md": [f"environments/{name}" for name in (ENVIRONMENTS | CONTEXTUAL | MEMORY)],
        "agents.md": [f"families/{file}" for file in families],
        "studies.md": [f"studies/{path.stem}" for path in sorted((source / "studies").glob("*.md"))],
    }
    contents |= {
        f"families/{file}.md": [f"../agents/{name}" for name in agents_of(family)] for file, family in families.items()
    }
    for place, entries in contents.items():
        with (source / place).open("a", encoding="utf-8") as page_file:
            page_file.write("\n".join(["", "```{toctree}", ":hidden:", "", *entries, "```", ""]))
    listed = source / "agents.md"
    linked = re.sub(r"^\| `(\w+)` \|", r"| [`\1`](agents/\1.md) |", listed.read_text(encoding="utf-8"), flags=re.MULTILINE)
    listed.write_text(linked, encoding="utf-8")
    facts = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    findings = "\n".join(conclusions(f"{REPOSITORY}docs")[:RECOMMENDING])
    findings = relinked(findings, ROOT / "README.md", "index.md", places_of(pages()))
    (source / "index.md").write_text(landing(HERE / "index.md", findings, facts), encoding="utf-8")
    (source / "regret.svg").write_bytes(svg(curves_figure()))
    shutil.copytree(HERE / "static", source / "static")
    forms = templates(ROOT / "docs" / "pages")
    forms.filters["amount"] = amount
    (source / "tasks.md").write_text(forms.get_template("tasks.md").render(protocol=CURRENT), encoding="utf-8")
    board = source / "leaderboard.md"
    board.write_text(board_page(board.read_text(encoding="utf-8")), encoding="utf-8")


def notebook_cache() -> Path:
    """The folder of the outputs of notebooks, so that only those are executed that were edited.

    Sphinx compares the cells of a notebook. What they import has a digest, which names the folder; outputs of other versions
    are removed.
    """
    folders = [*envs.__path__, *agents.__path__, *offline.__path__, *runner.__path__, *clickgym.__path__]
    files = [path for folder in folders for path in sorted(Path(folder).rglob("*")) if path.suffix in (".py", ".json")]
    files += [ROOT / path for path in BESIDE.values()]
    folder = ROOT / "build" / "notebook-cache" / digest(b"".join(path.read_bytes() for path in files))
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    return folder


def main() -> int:
    """Build; the code of Sphinx is returned, which is not 0 on any warning, as of a link that leads nowhere."""
    parser = argparse.ArgumentParser(description="Build the website.")
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "build" / "site")
    out = parser.parse_args().out
    source = out.parent / f"{out.name}-source"
    for folder in (source, out):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    collect(source)
    write(source)
    from sphinx.cmd.build import main as sphinx  # only the build needs it, not the tests of what is collected

    kept = f"-Dnb_execution_cache_path={notebook_cache()}"
    return sphinx(["-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE), kept, str(source), str(out)])


if __name__ == "__main__":
    sys.exit(main())
