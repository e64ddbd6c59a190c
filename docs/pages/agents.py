"""Documentation page of an agent, made from its docstring and its class."""

from __future__ import annotations

import inspect
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

from clickgym.agents import ContextualAgent, StateAgent
from clickgym.core.docstrings import sections
from clickgym.core.templates import templates
from clickgym.runner import PUBLISHED
from clickgym_lab.results import read_results
from clickgym_lab.studies import STUDIES

from .citing import bibtex, cited

RESULTS = Path(__file__).resolve().parents[2] / "lab" / "results"
ON_PAGE = ("Idea", "Algorithm", "Source", "Deviations from the paper")
"""The sections of a docstring that have places of their own on the page."""


def in_markdown(text: str, own: str = "") -> str:
    """Text of a docstring, its names of agents with links to their pages, but for its own.

    Example:
        >>> in_markdown("``x`` of `TopRank`, see `rank`")
        '`x` of [`TopRank`](TopRank.md), see `rank`'
    """

    def turn(found: re.Match[str]) -> str:
        linked = found[1] in PUBLISHED and found[1] != own
        return f"[`{found[1]}`]({found[1]}.md)" if linked else f"`{found[1]}`"

    return re.sub(r"(?<!`)`(\w+)`(?!`)", turn, text).replace("``", "`")


def page(name: str) -> str:
    """The page of an agent, in Markdown.

    Args:
        name: of the agent.
    """
    agent, parts = PUBLISHED[name], sections(PUBLISHED[name].__doc__ or "")
    papers = cited(agent)
    pages = templates(Path(__file__).parent)
    pages.filters["linked"] = partial(in_markdown, own=name)
    text = pages.get_template("agent.md").render(
        name=name,
        agent=agent,
        text=parts,
        summary=parts[""].partition("\n\n")[0],
        env=env_of(name),
        algorithm=inspect.cleandoc(parts["Algorithm"].removeprefix("::")),
        papers=papers,
        bibtex=re.sub(r", (\w+)=\{", r",\n  \1={", bibtex(papers))
        .replace("}}\n", "}\n}\n")
        .rstrip(),
        studies=[study for study in STUDIES if name in _agents_of(study)],
    )
    return f"{text}\n"


@cache
def _agents_of(study: str) -> set[str]:
    """The agents of a study whose results ship."""
    table, _ = read_results(RESULTS / f"{study}.parquet")
    return {label.partition(":")[0] for label in table["agent"].unique()}


def env_of(name: str) -> str:
    """An environment that suits an agent, by the click models of its class.

    Example:
        >>> env_of("TopRank"), env_of("CascadeSWUCB")
        ('CMRank-v0', 'NonStationaryCMRank-v0')
    """
    agent: Any = PUBLISHED[name]
    if issubclass(agent, StateAgent):
        return "CascadeMDPRank-v0"
    model = next(iter(re.findall(r"\b(?:CM|PBM|DCM|UBM)\b", agent.click_models)), "PBM")
    if issubclass(agent, ContextualAgent):
        return f"Contextual{model}Rank-v0"
    if "changes" in agent.click_models:
        return f"NonStationary{model}Rank-v0"
    return f"{model}Rank-v0" + ":reward=satisfaction" * (model == "DCM")
