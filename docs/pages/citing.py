"""The page on how to cite and the BibTeX file, made from the sources in docstrings and from
``references.toml``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import clickgym_logs
from clickgym import agents, envs
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS
from clickgym.core.formats import markdown_table
from clickgym.envs import ClickModel, Users
from clickgym_logs.estimation.estimator import MODEL_ESTIMATORS

TABLE = Path(__file__).with_name("references.toml")
ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0303": "~",
    "\u0308": '"',
}  # combining marks as LaTeX writes them
INTRODUCTION = """\
# How to cite

Cite clickgym with [`CITATION.cff`](../CITATION.cff), and the papers of the agents, click models and estimators that you used.
The tables below name these papers by their keys in [`paper.bib`](../paper.bib); the list at the end has the full references.
In the docstrings, *Source* names the algorithm or section of the paper. The real search queries in the package are from the
Relevance Prediction Challenge (`wscd2012`)."""


class Reference(NamedTuple):
    """A paper of ``references.toml``.

    Attributes:
        key: its name in BibTeX.
        title, venue, year: as docstrings have them.
        authors: each as "Surname, Given name"; "others" at the end of those that are not named.
        doi, arxiv, url: where it is to be found, at least one of them.
        volume, number, pages, publisher: of the article, or the book.
    """

    key: str
    title: str
    authors: tuple[str, ...]
    venue: str
    year: int
    doi: str = ""
    arxiv: str = ""
    url: str = ""
    volume: int | None = None
    number: int | None = None
    pages: str = ""
    publisher: str = ""

    def citation(self) -> str:
        """Authors, title, venue and year, as a docstring must name the paper.

        Example:
            >>> references()["lints"].citation()
            'Agrawal, Goyal, *Thompson sampling for contextual bandits with linear payoffs*, ICML 2013'
        """
        names = [author.partition(",")[0] for author in self.authors]
        text = f"{names[0]} et al." if "others" in names else ", ".join(names)
        return f"{text}, *{self.title}*, {self.venue} {self.year}"

    def link(self) -> str:
        """Where it is to be found, in Markdown."""
        if self.doi:
            return f"[doi:{self.doi}](https://doi.org/{self.doi})"
        return (
            f"[arXiv:{self.arxiv}](https://arxiv.org/abs/{self.arxiv})"
            if self.arxiv
            else f"<{self.url}>"
        )

    def bibtex(self, venues: Mapping[str, str]) -> str:
        """The entry, in one line.

        Args:
            venues: their names in full.
        """
        venue = (
            f"arXiv preprint arXiv:{self.arxiv}"
            if self.venue == "arXiv"
            else venues.get(self.venue, self.venue)
        )
        kind, where = (
            ("article", "journal")
            if self.volume or self.venue == "arXiv"
            else ("inproceedings", "booktitle")
        )
        if self.publisher:
            kind, where, venue = "book", "publisher", self.publisher
        fields = {"title": self.title, "author": " and ".join(self.authors), where: venue}
        fields |= {
            name: getattr(self, name) for name in ("volume", "number", "pages", "year", "doi")
        }
        fields |= {
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
            "url": self.url,
        }
        text = ", ".join(
            f"{name}={{{_latex(str(value))}}}" for name, value in fields.items() if value
        )
        return f"@{kind}{{{self.key}, {text}}}"


def _latex(text: str) -> str:
    """Text with the letters and signs that LaTeX writes otherwise."""
    text = unicodedata.normalize("NFD", text.replace("&", r"\&"))
    return re.sub(
        r"(\w)([\u0300-\u0308])", lambda found: f"{{\\{ACCENTS[found[2]]}{found[1]}}}", text
    )


@cache
def _table() -> tuple[dict[str, Reference], dict[str, str]]:
    """The papers by their keys, and the names of venues in full."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    venues = table.pop("venues")
    return {
        key: Reference(key, **entry | {"authors": tuple(entry["authors"])})
        for key, entry in table.items()
    }, venues


def references() -> dict[str, Reference]:
    """All papers by their keys, in the order of the file."""
    return _table()[0]


# ---------------------------------------------------------------------------------------------------------- docstrings


def source(thing: Any) -> str:
    """What the docstring of a class or function has under ``Source``, in one line; empty if it has
    none of its own.

    Example:
        >>> source(agents.PBMLinUCB)
        'as for `UBMLinUCB`, with weights of the position alone.'
    """
    text = inspect.cleandoc(
        (vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__) or ""
    )
    part = re.search(r"^Source:(?: |\n(?=    ))((?:.+\n?)+)", text, flags=re.MULTILINE)
    return " ".join(part[1].split()) if part else ""


def cited(thing: Any) -> list[Reference]:
    """The papers of a class or function, also those of another that its source refers to (as for
    `...`).

    Raises:
        ValueError: its docstring has no source; or one that names a paper otherwise than
            ``references.toml``, or none although it does not say that it is a baseline.
    """
    text, name = source(thing), thing.__name__
    if not text:
        raise ValueError(
            f"{name} has no Source in its docstring; expected one (a baseline says: Source: a baseline)"
        )
    papers = [_paper(name, text, title) for title in re.findall(r"\*(.+?)\*", text)]
    for other in re.findall(r"as for `(\w+)`", text):
        papers += cited(_sourced()[other])
    if not papers and not text.startswith("a baseline"):
        raise ValueError(
            f"the source of {name} names no paper: {text!r}; expected *title*, or: a baseline"
        )
    return list(dict.fromkeys(papers))


def _paper(name: str, text: str, title: str) -> Reference:
    """The paper of a title, named as it must be."""
    reference = next((each for each in references().values() if each.title == title), None)
    if reference is None:
        raise ValueError(f"the source of {name} names *{title}*, which {TABLE.name} does not have")
    if reference.citation() not in text:
        raise ValueError(
            f"the source of {name} is {text!r}; expected {reference.citation()!r} in it"
        )
    return reference


@cache
def _sourced() -> dict[str, Any]:
    """Every class and function of agents, environments and offline estimation that has a source, by
    its name.
    """
    return {
        name: thing
        for package in (agents, envs, clickgym_logs)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        for module in [importlib.import_module(found.name)]
        for name, thing in vars(module).items()
        if getattr(thing, "__module__", None) == module.__name__
        and callable(thing)
        and source(thing)
    }


# ---------------------------------------------------------------------------------------------------------------- pages


def parts() -> dict[str, dict[str, Any]]:
    """The classes and functions of the page by its headings: all that are registered, then the
    others that have a source.
    """
    users = {
        name: getattr(envs, name) for name in sorted(envs.__all__) if _is_model(getattr(envs, name))
    }
    table: dict[str, dict[str, Any]] = {
        "Agents": dict(AGENTS),
        "Agents that see features, or states": CONTEXTUAL_AGENTS | STATE_AGENTS,
        "Generic reinforcement learning": LEARNERS
        | {"PlackettLuceActorCritic": agents.PlackettLuceActorCritic},
        "Click models and other users": users,
        "Estimation of click models": {each.__name__: each for each in MODEL_ESTIMATORS.values()},
    }
    listed = {name for things in table.values() for name in things}
    others = {name: thing for name, thing in sorted(_sourced().items()) if name not in listed}
    return table | {"Logs, features and judgements": others}


def _is_model(thing: Any) -> bool:
    """Whether it is a model of users, and no base class of such models."""
    return (
        inspect.isclass(thing)
        and issubclass(thing, Users)
        and not inspect.isabstract(thing)
        and thing is not ClickModel
    )


def citing_page() -> str:
    """The page on how to cite."""
    sections = [INTRODUCTION]
    for heading, things in parts().items():
        rows = [(f"`{name}`", _keys(cited(thing))) for name, thing in things.items()]
        sections += [f"## {heading}", "\n".join(markdown_table([("name", "papers"), *rows]))]
    entries = [
        f"- `{key}`: {reference.citation()}. {reference.link()}"
        for key, reference in sorted(references().items())
    ]
    return "\n\n".join([*sections, "## The papers", "\n".join(entries)]) + "\n"


def _keys(papers: list[Reference]) -> str:
    return ", ".join(f"`{paper.key}`" for paper in papers) or "none: a baseline"


def bibtex(papers: Iterable[Reference] | None = None) -> str:
    """The BibTeX file of some papers.

    Args:
        papers: None takes all, by their keys.
    """
    known, venues = _table()
    chosen = [paper for _, paper in sorted(known.items())] if papers is None else papers
    return "".join(f"{reference.bibtex(venues)}\n" for reference in chosen)
