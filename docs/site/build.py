"""Build the website: collect the pages, make those of agents, environments and studies, run Sphinx.

make site
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

sys.path.append(str(Path(__file__).parents[1]))  # where the folder of pages is

from make_pages import study_figures, study_pages
from pages import agents as agent_pages
from pages import environments as environment_pages

import clickgym
import clickgym_logs
from clickgym import agents, envs
from clickgym.runner import PUBLISHED

HERE, ROOT = Path(__file__).parent, Path(__file__).resolve().parents[2]
OUT, SOURCE = ROOT / "build" / "site", ROOT / "build" / "site-source"
REPOSITORY = "https://github.com/clickgym/clickgym/blob/main/"
MOVED = {
    "benchmarks/README.md": "speed.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/site/index.md": "index.md",
    "examples/course/checks.py": "course/checks.py",
}
"""Pages that do not lie in ``docs/``, and their places in the site."""


def places() -> dict[str, str]:
    """The place in the site of each file that is copied, by its path in the repository."""
    files = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*.png"), *ROOT.glob("docs/*.bib")]
    found = {f"docs/{path.name}": path.name for path in files if path.name != "README.md"}
    for folder, place in (("examples", "tutorials"), ("examples/course", "course")):
        for path in sorted((ROOT / folder).glob("*.ipynb")):
            found[f"{folder}/{path.name}"] = f"{place}/{path.name}"
    return found | MOVED


def relinked(text: str, path: str, found: Mapping[str, str]) -> str:
    """A text with links that lead to other pages of the site, or to the repository.

    Args:
        text: in Markdown.
        path: of its file, in the repository.
        found: the place in the site of each file, by its path in the repository.

    Raises:
        ValueError: a link leads nowhere.
    """

    def turn(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        target = normpath((PurePosixPath(path).parent / link).as_posix())
        if link.startswith(REPOSITORY):
            target = link.removeprefix(REPOSITORY)
        if target == "docs/README.md":
            target = "docs/site/index.md"
        if target in found:
            folder = str(PurePosixPath(found[path]).parent)
            return f"]({relpath(found[target], folder)}{anchor})"
        if not (ROOT / target).exists():
            raise ValueError(f"{path}: the link {link} leads nowhere")
        return f"]({REPOSITORY}{target}{anchor})"

    link = rf"(?:{re.escape(REPOSITORY)}|(?!https?:|#|mailto:))[^)#\s]+"
    return re.sub(rf"\]\(({link})(#[^)]*)?\)", turn, text)


def collect() -> None:
    """Copy the pages that are written by hand or by `make pages`."""
    found = places()
    for path, place in found.items():
        target = SOURCE / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md") and place != "index.md":  # whose links are those of the site
            text = (ROOT / path).read_text(encoding="utf-8")
            target.write_text(relinked(text, path, found), encoding="utf-8")
        elif path.endswith(".ipynb"):
            book = json.loads((ROOT / path).read_text(encoding="utf-8"))
            for cell in book["cells"]:
                if cell["cell_type"] == "markdown":
                    cell["source"] = relinked("".join(cell["source"]), path, found)
            target.write_text(json.dumps(book), encoding="utf-8")
        else:
            shutil.copy(ROOT / path, target)


def api_page(module: str) -> str:
    """Every public name of a package; agents and click models have pages of their own."""
    package, models = sys.modules[module], environment_pages.models()
    pages = {model.__name__: f"environments/{name}.md" for name, model in models.items()}
    if module == "clickgym.agents":
        pages = {name: f"agents/{name}.md" for name in PUBLISHED}
    if module == "clickgym":
        pages |= dict.fromkeys(envs.__all__, "api/clickgym.envs.md")
    parts = [f"# API of {module}", (inspect.getdoc(package) or "").partition("\n\n")[0]]
    for name in package.__all__:
        thing = getattr(package, name)
        if name in pages:
            parts.append(f"- [`{name}`](../{pages[name]})")
        elif callable(thing):
            members = "\n   :members:" if inspect.isclass(thing) else ""
            kind = "class" if inspect.isclass(thing) else "function"
            directive = f".. auto{kind}:: {module}.{name}{members}"
            parts += [f"## {name}", f"```{{eval-rst}}\n{directive}\n```"]
        elif not inspect.ismodule(thing):
            parts.append(f"- `{name}`, a {type(thing).__name__}")
    return "\n\n".join(parts) + "\n"


def write_made_pages() -> None:
    """All pages that are made from the packages, and the tables of contents."""
    made = {
        "agents": {name: agent_pages.page(name) for name in PUBLISHED},
        "environments": {name: environment_pages.page(name) for name in environment_pages.models()},
        "studies": dict(study_pages()),
        "api": {
            package.__name__: api_page(package.__name__)
            for package in (clickgym, envs, agents, clickgym_logs)
        },
    }
    links = {name: f"agents/{name}.md" for name in made["agents"]}
    links |= {name: f"studies/{name}.md" for name in made["studies"]}
    for env_id, environment in environment_pages.IDS.items():
        links[env_id] = f"environments/{environment.model}.md"
    for folder, texts in made.items():
        (SOURCE / folder).mkdir(exist_ok=True)
        for name, text in texts.items():
            (SOURCE / folder / f"{name}.md").write_text(text, encoding="utf-8")
        overview = SOURCE / f"{folder}.md"
        if overview.exists():
            text = re.sub(
                r"^\| `([\w.-]+)` \|",
                lambda row: f"| [`{row[1]}`]({links[row[1]]}) |" if row[1] in links else row[0],
                overview.read_text(encoding="utf-8"),
                flags=re.MULTILINE,
            )
            contents = [f"{folder}/{name}" for name in texts]
            toctree = ["```{toctree}", ":hidden:", "", *contents, "```", ""]
            overview.write_text("\n".join([text, *toctree]), encoding="utf-8")
    for name, figure in study_figures():
        figure.savefig(SOURCE / "studies" / f"{name}.png", dpi=110)


def main() -> int:
    """Build; Sphinx's code is returned, which is not 0 on any warning, as of a dead link."""
    from sphinx.cmd.build import main as sphinx  # the tests of what is collected do without it

    for folder in (SOURCE, OUT):
        shutil.rmtree(folder, ignore_errors=True)
    collect()
    write_made_pages()
    shutil.copytree(HERE / "static", SOURCE / "static")
    return sphinx(["-q", "-W", "--keep-going", "-c", str(HERE), str(SOURCE), str(OUT)])


if __name__ == "__main__":
    sys.exit(main())
