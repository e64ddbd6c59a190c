"""Links of a built site that lead nowhere: to a page, a place on a page, or a file of the repository that does not exist."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urlsplit

__all__ = ["broken"]


class _Page(HTMLParser):
    """The links of a page, and the places on it that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif value and (name == "id" or (name == "name" and tag == "a")):
                self.places.add(value)


def broken(site: Path, repository: Path, address: str) -> list[str]:
    """The links that lead nowhere, each with its page.

    Args:
        site: the folder of a built site.
        repository: the folder of the project.
        address: of the project's repository; links to other sites are not followed.
    """
    pages = {path.relative_to(site).as_posix(): _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    root = f"/{address.rpartition('/')[2]}/"  # of the published site
    wrong = []
    for name in sorted(pages):
        for link in sorted(pages[name].links):
            if link.startswith(address):
                kind, _, path = urlsplit(link.removeprefix(address)).path.lstrip("/").partition("/main/")
                right = kind not in ("blob", "edit", "tree") or (repository / unquote(path)).exists()
            else:
                page, path = ("", link.removeprefix(root)) if link.startswith(root) else (name, link)
                right = _leads_within(site, pages, page, path)
            if not right:
                wrong.append(f"{name}: {link}")
    return wrong


def _leads_within(site: Path, pages: dict[str, _Page], name: str, link: str) -> bool:
    """Whether a link of a page to the same site has its file and its place there."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    there = normpath((Path(name).parent / unquote(parts.path)).as_posix()) if parts.path else name
    if there in pages:
        return unquote(parts.fragment) in pages[there].places
    return (site / there).is_file()
