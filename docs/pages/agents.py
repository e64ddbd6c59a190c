"""Documentation page of an agent, made from its docstring, its class, its scores and the studies; families of agents."""

from __future__ import annotations

import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import prose

from clickgym import list_agents
from clickgym.agents import ANY_LIST, ITS_DISPLAYS, LAST_DISPLAY, ContextualAgent, StateAgent
from clickgym.core.docstrings import sections
from clickgym.core.formats import duration, markdown_table
from clickgym.core.templates import templates
from clickgym.runner import PUBLISHED, STANDS, needs, stands
from clickgym.runner.describe import abilities
from clickgym_lab.bench.leaderboard import place_text
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import reference
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.study import Study

from .advice import NEEDED, Case, advice, case_of
from .citing import bibtex, cited

FAMILIES = (
    "Cascade", "Position-based", "Elimination and sorting", "A bandit per position", "Nonstationary", "Several click models",
    "Linear", "Learned rankers", "Users with a memory", "Generic reinforcement learning", "Baselines", "Others",
)  # fmt: skip
"""The agents by what kind of algorithm they are."""
BY_FILE = {
    "ranked_bandits": "A bandit per position",
    "mix_ts": "Several click models",
    "generic_rl": "Generic reinforcement learning",
    "baselines": "Baselines",
}
"""The families of files whose agents say nothing that tells their family."""
BY_NEEDS = {"state": "Users with a memory", "judged documents": "Learned rankers", "features": "Linear"}
"""The families of agents that need such knowledge."""
BY_USERS = {"changes": "Nonstationary", "alike": "Elimination and sorting", "PBM": "Position-based", "CM": "Cascade"}
"""The families of the other agents, by the first of these words in their `click_models`."""

ON_PAGE = ("Idea", "Algorithm", "Source", "Deviations from the paper")
"""The sections of a docstring that have places of their own on the page."""
SIZES = ("L = 10, K = 5", "L = 100, K = 10", "L = 1,000, K = 10")
LEARNS = {
    ANY_LIST: "any list, also of a log (off-policy)",
    ITS_DISPLAYS: "its own lists only, in any order of their clicks",
    LAST_DISPLAY: "its own last list only",
}
"""From which lists agents learn, in words."""
SCORED = {"change": "change", "bots": "bots", "late clicks": "late"}
"""The ability of the scorecard that measures each of `STANDS`."""


# -------------------------------------------------------------------------------------------------------------- families


def family_of(name: str) -> str:
    """The family of an agent.

    Example:
        >>> family_of("TopRank")
        'Elimination and sorting'
    """
    agent: Any = PUBLISHED[name]
    file, needed = agent.__module__.rpartition(".")[2], needs(agent).partition(" and ")[0]
    if file in BY_FILE or needed in BY_NEEDS:
        return BY_FILE.get(file) or BY_NEEDS[needed]
    return next((family for words, family in BY_USERS.items() if words in agent.click_models), "Others")


def agents_of(family: str) -> list[str]:
    """The names of the agents of a family, in the order of the alphabet."""
    return [name for name in sorted(PUBLISHED, key=str.lower) if family_of(name) == family]


def family_page(family: str) -> str:
    """The page that lists the agents of a family, in Markdown."""
    about = {row["name"]: row for row in list_agents().rows}
    rows = [(f"[`{name}`](../agents/{name}.md)", about[name]["about"], about[name]["paper"]) for name in agents_of(family)]
    return "\n\n".join([f"# {family}", "\n".join(markdown_table([("agent", "what it does", "paper"), *rows]))]) + "\n"


# ------------------------------------------------------------------------------------------------------------ docstrings


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


# ------------------------------------------------------------------------------------------------------------------ page


def page(name: str) -> str:
    """The page of an agent, in Markdown.

    Args:
        name: of the agent.
    """
    case, parts = case_of(name), sections(PUBLISHED[name].__doc__ or "")
    agent, papers, (env, instance) = case.agent, cited(case.agent), env_of(name)
    studies = {key: study for key, study in STUDIES.items() if (prose.DOCS / "studies" / f"{key}.md").exists()}
    pages = templates(Path(__file__).parent)
    pages.filters["linked"] = partial(in_markdown, own=name)
    text = pages.get_template("agent.md").render(
        name=name,
        case=case,
        text=parts,
        summary=parts[""].partition("\n\n")[0],
        env=env,
        instance=instance,
        algorithm=inspect.cleandoc(parts["Algorithm"].removeprefix("::")),
        said=advice(case),
        needed=_needed(case),
        told=getattr(agent, "told", {}),
        learns_from=LEARNS.get(agent.learns_from, agent.learns_from),
        can=abilities(agent),
        robust=[(what, stands(agent).get(what, ""), _score(case, SCORED[what])) for what in STANDS],
        time=_time(name),
        papers=papers,
        bibtex=re.sub(r", (\w+)=\{", r",\n  \1={", bibtex(papers)).replace("}}\n", "}\n}\n").rstrip(),
        place_text=place_text,
        all_studies=STUDIES,
        studies={key: study for key, study in studies.items() if _plays(name, study)},
    )
    return f"{text}\n"


def env_of(name: str) -> tuple[str, str | None]:
    """An environment that suits an agent, by the click models of its class, and its instance; None is the default one.

    Example:
        >>> env_of("TopRank"), env_of("CascadeSWUCB")
        (('CMRank-v0', None), ('NonStationaryCMRank-v0', None))
    """
    agent: Any = PUBLISHED[name]
    if issubclass(agent, StateAgent):
        return "CascadeMDPRank-v0", None
    model = next(iter(re.findall(r"\b(?:CM|PBM|DCM|UBM)\b", agent.click_models)), "PBM")
    if issubclass(agent, ContextualAgent):
        return f"Contextual{model}Rank-v0", None
    if "changes" in agent.click_models:
        return f"NonStationary{model}Rank-v0", None
    return f"{model}Rank-v0" + ":reward=satisfaction" * (model == "DCM"), None


def _plays(name: str, study: Study) -> bool:
    return any(name == label.partition(":")[0] for part in study.parts for label in part.agents)


def _needed(case: Case) -> list[str]:
    """What an agent cannot do without, its horizon among it."""
    what = needs(case.agent)
    wanted = [NEEDED.get(what, what)] * (what != "nothing") + ["the horizon"] * case.needs_horizon
    if case.ranks_items and what == "nothing" and "initial" in case.agent.told:
        wanted.append("a production list as `initial`, without which it begins with random lists")
    return wanted


def _score(case: Case, ability: str) -> tuple[str, Any] | None:
    """An ability, and what the leaderboard shows of it."""
    score = case.place.standing.abilities.get(ability) if case.place else None
    return None if score is None else (ability, score)


def _time(name: str) -> str:
    """The measured times of a session; else the mean of all sessions of the scorecard."""
    measured = re.search(rf"^\| {name} +\|" + r" +([\d.]+ µs) \|" * len(SIZES) + "$", prose.section("growth.py"), re.MULTILINE)
    if measured:
        return "; ".join(f"{time} ({size})" for size, time in zip(SIZES, measured.groups(), strict=True))
    rows = reference(CURRENT).filter(agent=name)
    sessions, seconds = sum(CURRENT.by_name[task].horizon for task in rows["task"]), float(rows["seconds"].sum())
    return f"{duration(1e9 * seconds / sessions)}, the mean over the scorecard" if sessions and seconds else "not measured yet"
