"""Where the files of the repository are in the site: which become pages, what links to them lead
to, where a page is from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from clickgym.runner import PUBLISHED

__all__ = ["REPOSITORY", "ROOT", "origins", "pages", "places_of", "relinked"]

REPOSITORY = "https://github.com/clickgym/clickgym/blob/main/"

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {  # pages that do not lie in docs/, by their place in the site
    "speed.md": "benchmarks/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}


def pages() -> dict[str, Path]:
    """The files that are copied, by their place in the site."""
    docs, examples = ROOT / "docs", ROOT / "examples"
    files = {
        path.relative_to(docs).as_posix(): path
        for kind in ("md", "png")
        for path in docs.rglob(f"*.{kind}")
    }
    kept = {
        place: path
        for place, path in files.items()
        if not place.startswith(("pages/", "site/", "README.md"))
    }
    kept |= {f"tutorials/{path.name}": path for path in sorted(examples.glob("*.ipynb"))}
    kept |= {f"course/{path.name}": path for path in sorted((examples / "course").glob("*.ipynb"))}
    return kept | {place: ROOT / path for place, path in ELSEWHERE.items()}


def places_of(files: Mapping[str, Path]) -> dict[str, str]:
    """The place of each file in the site, by its path in the repository.

    Args:
        files: as `pages` returns them.
    """
    return {path.relative_to(ROOT).as_posix(): place for place, path in files.items()} | {
        "docs/README.md": "index.md"
    }


def origins() -> dict[str, str]:
    """The file in the repository from which a page is made, by the name of the page."""
    copied = {
        place: path
        for path, place in places_of(pages()).items()
        if place.endswith((".md", ".ipynb"))
    }
    made = {f"agents/{name}.md": _source_file(agent) for name, agent in PUBLISHED.items()} | {
        "index.md": "docs/site/index.md"
    }
    return {place.rpartition(".")[0]: path for place, path in (copied | made).items()}


def _source_file(agent: type) -> str:
    """The file of an agent of the package, in its repository."""
    return f"{agent.__module__.removeprefix('clickgym.').replace('.', '/')}.py"


def relinked(text: str, path: Path, place: str, places: Mapping[str, str]) -> str:
    """A text with links that lead to other pages of the site, or to the repository.

    Args:
        text: in Markdown.
        path: of its file.
        place: of its page in the site.
        places: of all pages in the site, by their path in the repository.

    Raises:
        ValueError: a link leads nowhere.
    """

    def turn(found: re.Match[str]) -> str:
        link, anchor = found[2], found[3] or ""
        folder = PurePosixPath(path.relative_to(ROOT).as_posix()).parent
        there = normpath(
            link.removeprefix(REPOSITORY)
            if link.startswith(REPOSITORY)
            else (folder / link).as_posix()
        )
        if there in places:
            return f"{found[1]}{relpath(places[there], str(PurePosixPath(place).parent))}{anchor})"
        if not (ROOT / there).exists():
            raise ValueError(f"{path}: the link {link} leads nowhere")
        return f"{found[1]}{REPOSITORY}{there}{anchor})"

    return re.sub(
        rf"(\]\()({re.escape(REPOSITORY)}[^)#\s]*|(?!https?:|#|mailto:)[^)#\s]+)(#[^)]*)?\)",
        turn,
        text,
    )
