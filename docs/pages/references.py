"""BibTeX entries of the papers that docstrings name."""

from __future__ import annotations

import inspect
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from clickgym import agents

FILE = Path(__file__).parents[1] / "references.bib"


@cache
def entries() -> dict[str, str]:
    """The entries of `FILE` by their titles, as `plain` has them."""
    text = FILE.read_text(encoding="utf-8")
    return {plain(entry.split("title={")[1]): entry.strip() for entry in re.split(r"\n(?=@)", text)}


def plain(title: str) -> str:
    """A title up to its end in BibTeX, without accents."""
    letters = unicodedata.normalize("NFD", re.sub(r"},\n[\s\S]*|\\[`'\"~]|[{}\\]", "", title))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def papers(thing: Any) -> list[str]:
    """The entries of the papers under *Source* of a class, also of an agent that it refers to (as
    for `...`); none for a baseline.

    Raises:
        KeyError: `FILE` does not have a title.
        TypeError: the docstring has no source.
    """
    text = inspect.cleandoc(thing.__doc__ or "") + "\n"
    source = " ".join(re.search(r"^Source:\s+((?:.+\n)+)", text, re.MULTILINE)[1].split())
    found = [entries()[plain(title)] for title in re.findall(r"\*(.+?)\*", source)]
    for name in re.findall(r"as for `(\w+)`", source):
        found += papers(getattr(agents, name))
    return list(dict.fromkeys(found))
