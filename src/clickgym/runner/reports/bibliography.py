"""BibTeX entries of the papers of agents and environments, which their docstrings name under
*Source*.
"""

from __future__ import annotations

import inspect
import re
import unicodedata
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from ... import agents
from ...core.faults import PACKAGE
from ...envs import ENVIRONMENTS
from ...envs.instances.instance import shipped_instances
from ..make import resolved_agent, resolved_env
from ..store import Column

if TYPE_CHECKING:
    from ..results import Results

REAL_QUERIES = "WSCD 2012: workshop on web search click data 2012"
"""The title behind the sessions from which the shipped queries were estimated."""


def to_bibtex(results: Results) -> str:
    """The entries of the papers of all agents and environments of some results, and of the data
    behind real queries, each with a line that names them.
    """
    users: dict[str, list[str]] = {}
    columns: tuple[Column, ...] = "agent", "env"
    for column in columns:
        for label in results.names(column):
            with suppress(Exception):  # other people's modules may be gone, or name no paper
                for entry in _entries(column, results.spec(column, label)):
                    users.setdefault(entry, []).append(label)
    names = results.names("instance")
    if real := [name for name in names if name.partition(":")[0] in shipped_instances()]:
        users[bibliography()[REAL_QUERIES]] = real
    return "\n\n".join(f"% {', '.join(users[entry])}\n{entry}" for entry in sorted(users))


def _entries(column: str, spec: str) -> list[str]:
    """The papers of an agent, or of a click model and of the users of whom it is a part."""
    if column == "agent":
        return papers(resolved_agent(spec)[0])
    environment = ENVIRONMENTS[getattr(resolved_env(spec)[0], "id", "")]
    has_more = "Source:" in (environment.users.__doc__ or "")
    more = papers(environment.users) if has_more else []
    return list(dict.fromkeys([*papers(environment.click_model), *more]))


# --------------------------------------------------------------------------------- the bibliography


@cache
def bibliography() -> dict[str, str]:
    """The entries of ``references.bib`` by their `plain` titles."""
    text = (PACKAGE / "references.bib").read_text(encoding="utf-8")
    return {plain(entry.split("title={")[1]): entry.strip() for entry in re.split(r"\n(?=@)", text)}


def plain(title: str) -> str:
    """A title without accents, up to its end in BibTeX."""
    letters = unicodedata.normalize("NFD", re.sub(r"},\n[\s\S]*|\\[`'\"~]|[{}\\]", "", title))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def source_of(thing: Any) -> str:
    """The text under *Source* of a docstring.

    Raises:
        LookupError: there is none.
    """
    text = inspect.cleandoc(thing.__doc__ or "") + "\n"
    found = re.search(r"^Source:\s+((?:.+\n)+)", text, re.MULTILINE)
    if found is None:
        raise LookupError(f"{thing.__name__}: its docstring has no section Source")
    return " ".join(found[1].split())


def papers(thing: Any) -> list[str]:
    """The entries of the papers under *Source* of a class, also of an agent that it refers to (as
    for `...`); none for a baseline.

    Raises:
        LookupError: the docstring has no source, or the bibliography does not have a title.
    """
    source = source_of(thing)
    titles = re.findall(r"\*(.+?)\*", source)
    for title in titles:
        if plain(title) not in bibliography():
            raise LookupError(f"references.bib has no entry with the title {title!r}")
    entries = [bibliography()[plain(title)] for title in titles]
    for name in re.findall(r"as for `(\w+)`", source):
        entries += papers(getattr(agents, name))
    return list(dict.fromkeys(entries))
