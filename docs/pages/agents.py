"""Page of an agent: how to run it, its docstring, its BibTeX entries, and its studies."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from clickgym.agents import ContextualAgent, StateAgent
from clickgym.runner import PUBLISHED
from clickgym_lab.results import read_results
from clickgym_lab.studies import STUDIES

from .references import papers

RESULTS = Path(__file__).resolve().parents[2] / "lab" / "results"


def page(name: str) -> str:
    """The page of a published agent, in Markdown."""
    agent: Any = PUBLISHED[name]
    requires = ", ".join(getattr(agent, "requires", {})) or "nothing"
    bibtex = "\n\n".join(papers(agent)) or "% a baseline"
    command = f"clickgym run {env_of(name)} --agents {name} --horizon 1e5 --out results/{name}"
    parts = [
        f"# {name}",
        f"Made for: {agent.click_models}. Requires, besides clicks: {requires}.",
        f"```sh\n{command}\n```",
        f"```{{eval-rst}}\n.. autoclass:: clickgym.agents.{name}\n```",
        f"## BibTeX\n\n```bibtex\n{bibtex}\n```",
    ]
    studies = [study for study in STUDIES if name in agents_of(study)]
    if studies:
        links = ", ".join(f"[{study}](../studies/{study}.md)" for study in studies)
        parts.append(f"## Studies\n\n{name} plays in {links}.")
    return "\n\n".join(parts) + "\n"


@cache
def agents_of(study: str) -> set[str]:
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
