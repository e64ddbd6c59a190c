"""Build the website: collect the pages, make those of agents and of the API from the package, and
let Sphinx write HTML.

make site
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # where the folder of pages is

from make_pages import study_figures, study_pages
from pages.agents import page as agent_page
from pages.environments import page as environment_page
from places import ROOT, pages, places_of, relinked

import clickgym
import clickgym_logs
from clickgym import agents, envs
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from clickgym.runner import PUBLISHED
from clickgym_lab.studies import STUDIES

HERE = Path(__file__).parent
SOURCES = ("agents", "envs", "src", "logs/src")
"""The folders of what notebooks import."""
BESIDE = {
    "course/checks.py": "examples/course/checks.py",
}
"""What notebooks call as they are executed, by its place in the site."""


def collect(source: Path) -> None:
    """Copy the pages that are written by hand or by `make pages`, their links turned to where
    things are in the site.
    """
    kept = pages()
    places = places_of(kept)
    for place, path in kept.items():
        target = source / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(
                relinked(path.read_text(encoding="utf-8"), path, place, places), encoding="utf-8"
            )
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
            for marks, heading in re.findall(
                r"^(#+) (.+)$", "".join(cell["source"]), flags=re.MULTILINE
            ):
                headings = {
                    level: above for level, above in headings.items() if level < len(marks)
                } | {len(marks): heading}
        elif cell["cell_type"] == "code":
            cell["metadata"]["mystnb"] = {
                "image": {"alt": f"Figure: {' – '.join(headings.values())}"}
            }


# ------------------------------------------------------------------------------------------------- pages made from the package


def _documented(module: str, name: str) -> str:
    thing = getattr(sys.modules[module], name)
    directive = (
        "autoclass" if inspect.isclass(thing) else "autofunction" if callable(thing) else "autodata"
    )
    members = (
        "\n   :members:\n   :show-inheritance:"
        if directive == "autoclass" and module != "clickgym.agents"
        else ""
    )
    return f"```{{eval-rst}}\n.. {directive}:: {module}.{name}{members}\n```"


def api_page(module: str) -> str:
    """Every public name of a package; agents have pages of their own."""
    package = sys.modules[module]
    parts = [
        f"# API of {module}",
        " ".join((inspect.getdoc(package) or "").partition("\n\n")[0].split()),
    ]
    for name in package.__all__:
        thing = getattr(package, name)
        if module == "clickgym.agents" and name in PUBLISHED:
            parts.append(f"- [`{name}`](../agents/{name}.md)")
        elif module == "clickgym" and name in envs.__all__:
            parts.append(f"- [`{name}`](clickgym.envs.md#{name.lower()})")
        elif isinstance(thing, Mapping):
            parts += [
                f"## {name}",
                f"A mapping, by name: {', '.join(f'`{key}`' for key in thing)}.",
            ]
        elif not inspect.ismodule(thing) and name != "__version__":
            parts += [f"## {name}", _documented(module, name)]
    return "\n\n".join(parts) + "\n"


def write(source: Path) -> None:
    """All pages that are made from the package, and the tables of contents."""
    for folder in ("agents", "api", "environments", "studies"):
        (source / folder).mkdir(exist_ok=True)
    environments = ENVIRONMENTS | CONTEXTUAL | MEMORY
    for name in PUBLISHED:
        (source / "agents" / f"{name}.md").write_text(agent_page(name), encoding="utf-8")
    for name in environments:
        (source / "environments" / f"{name}.md").write_text(
            f"# {name}\n\n{environment_page(name)}", encoding="utf-8"
        )
    for name, text in study_pages():
        (source / "studies" / f"{name}.md").write_text(text, encoding="utf-8")
    for name, figure in study_figures():
        figure.savefig(source / "studies" / f"{name}.png", dpi=110)
    for package in (clickgym, envs, agents, clickgym_logs):
        (source / "api" / f"{package.__name__}.md").write_text(
            api_page(package.__name__), encoding="utf-8"
        )
    for kind, names in (
        ("environments", environments),
        ("agents", PUBLISHED),
        ("studies", STUDIES),
    ):
        _list_pages(source / f"{kind}.md", kind, names)
    shutil.copytree(HERE / "static", source / "static")
    shutil.copy(HERE / "index.md", source / "index.md")


def _list_pages(page: Path, kind: str, names: Iterable[str]) -> None:
    """Let the table of an overview page lead to the pages that are made, and give it their
    contents.
    """
    linked = re.sub(
        r"^\| `([\w.-]+)` \|",
        rf"| [`\1`]({kind}/\1.md) |",
        page.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    entries = [f"{kind}/{name}" for name in names]
    page.write_text(
        "\n".join([linked, "```{toctree}", ":hidden:", "", *entries, "```", ""]), encoding="utf-8"
    )


def notebook_cache() -> Path:
    """The folder of the outputs of notebooks, so that only those are executed that were edited.

    Sphinx compares the cells of a notebook. What they import has a digest, which names the folder;
    outputs of other versions are removed.
    """
    files = [
        path
        for folder in SOURCES
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".json")
    ]
    files += [ROOT / path for path in BESIDE.values()]
    content = b"".join(path.read_bytes() for path in files)
    folder = ROOT / "build" / "notebook-cache" / hashlib.sha256(content).hexdigest()[:16]
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    return folder


def main() -> int:
    """Build; the code of Sphinx is returned, which is not 0 on any warning, as of a link that leads
    nowhere.
    """
    parser = argparse.ArgumentParser(description="Build the website.")
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "build" / "site")
    out = parser.parse_args().out
    source = out.parent / f"{out.name}-source"
    for folder in (source, out):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    collect(source)
    write(source)
    from sphinx.cmd.build import (
        main as sphinx,
    )  # only the build needs it, not the tests of what is collected

    kept = f"-Dnb_execution_cache_path={notebook_cache()}"
    return sphinx(
        ["-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE), kept, str(source), str(out)]
    )


if __name__ == "__main__":
    sys.exit(main())
