"""Documentation page of an agent, made from its docstring, its class, its scores and the studies; families of agents."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from clickgym import list_agents
from clickgym.agents import ANY_LIST, ITS_DISPLAYS, LAST_DISPLAY, CompiledAgent, ContextualAgent
from clickgym.core.docstrings import sections
from clickgym.core.formats import duration, markdown_table
from clickgym.runner import PUBLISHED, STANDS, needs, stands
from clickgym.runner.describe import abilities
from clickgym.serving.served import refusal
from clickgym_lab.bench.boards import boards_tables
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import SAFE_LINE, agent_of, reference
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.study import Curves

from .advice import NEEDED, Case, advice, case_of, practice
from .agent_pictures import MOMENTS, env_of, lists_figure, play, regret_figure, svg
from .citing import Reference, bibtex, cited

FAMILIES = {
    "Cascade": ("cascade", "kl_ucb", "pie"),
    "Position-based": ("position_based", "position_based_ts", "pbmhb", "grab"),
    "Elimination and sorting": ("batch_rank", "merge_rank", "top_rank", "uni_rank", "bubble_rank"),
    "A bandit per position": ("ranked_bandits",),
    "Nonstationary": ("cascade_nonstationary", "cascade_restarts"),
    "User browsing": ("ubm_ts",),
    "Linear": ("linear", "linear_ts", "linear_woful", "recur_rank"),
    "Learned rankers": ("pdgd", "pair_rank", "dueling", "coltr"),
    "Users with a memory": ("per_state", "cascade_vi"),
    "Generic reinforcement learning": ("generic_rl",),
    "Baselines": ("baselines",),
}
"""The agents by what kind of algorithm they are: the files of each family."""

ON_PAGE = ("Idea", "Algorithm", "Source", "Deviations from the paper")
"""The sections of a docstring that have places of their own on the page."""
SIZES = ("L = 10, K = 5", "L = 100, K = 10", "L = 1,000, K = 10")
SYMBOLS = "L is the number of items, K the number of positions, T the horizon (the number of sessions)."


class Sources(NamedTuple):
    """The data from which pages are made, beside the package.

    Attributes:
        curves: of the studies of practice, by part.
        times: of a session with 10, 100 and 1,000 items, by agent.
        studies: those that have a page.
    """

    curves: Mapping[str, Curves]
    times: Mapping[str, tuple[str, ...]]
    studies: frozenset[str]


class Page(NamedTuple):
    """The page of an agent.

    Attributes:
        text: in Markdown.
        pictures: their files, by name.
    """

    text: str
    pictures: Mapping[str, bytes]


def sources(root: Path) -> Sources:
    """Read the data from which pages are made.

    Args:
        root: the repository.
    """
    measured = (root / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) +\|" + r" +([\d.]+ µs) \|" * len(SIZES) + "$", measured, flags=re.MULTILINE)
    pages = frozenset(path.stem for path in (root / "docs" / "studies").glob("*.md"))
    return Sources(practice(root / "lab" / "results"), {name: tuple(times) for name, *times in rows}, pages)


# -------------------------------------------------------------------------------------------------------------- families


def family_of(name: str) -> str:
    """The family of an agent.

    Example:
        >>> family_of("TopRank")
        'Elimination and sorting'
    """
    module = PUBLISHED[name].__module__.rpartition(".")[2]
    return next(family for family, modules in FAMILIES.items() if module in modules)


def family_page(family: str) -> str:
    """The page that lists the agents of a family, in Markdown, with its table of contents."""
    names = [name for name in sorted(PUBLISHED, key=str.lower) if family_of(name) == family]
    about = {row["name"]: row for row in list_agents().rows}
    rows = [(f"[`{name}`](../agents/{name}.md)", about[name]["about"], about[name]["paper"]) for name in names]
    contents = "\n".join(["```{toctree}", ":hidden:", "", *(f"../agents/{name}" for name in names), "```"])
    return "\n\n".join([f"# {family}", "\n".join(markdown_table([("agent", "what it does", "paper"), *rows])), contents]) + "\n"


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


def page(name: str, given: Sources) -> Page:
    """The page of an agent.

    Args:
        name: of the agent.
        given: as `sources` returns it.
    """
    agent: Any = PUBLISHED[name]
    text = sections(agent.__doc__ or "")
    case = case_of(name, given.curves)
    pictures: dict[str, bytes] = {}
    summary = text[""].partition("\n\n")[0]
    parts = [f"# {name}", in_markdown(summary, name), f"```sh\n{_command(name)}\n```"]
    if idea := text.get("Idea"):
        parts += ["## The idea", in_markdown(idea, name)]
    if algorithm := text.get("Algorithm"):
        parts += ["## The algorithm", SYMBOLS, f"```text\n{inspect.cleandoc(algorithm.removeprefix('::'))}\n```"]
    if (figure := regret_figure(case)) is not None and case.table is not None:
        pictures[f"{name}-regret.svg"] = svg(figure)
        about = (
            "The mean regret over the tasks of an [ability](../scorecard.md#tasks) of the scorecard, in percent of the regret "
            f"of random lists. The panels show the first ability of its [board](../leaderboard.md), the one in which {name} "
            "scores highest, and the one in which it scores lowest."
        )
        parts += ["## Its regret", about, f"![Regret of {name} beside others, by sessions]({name}-regret.svg)"]
    parts += ["## How its list changes", *_lists(name, pictures)]
    parts += ["## When to take it", *_advice(name, advice(case))]
    parts += ["## What it needs, withstands and costs", "\n".join(markdown_table([("", ""), *_facts(case, given)]))]
    if deviations := text.get("Deviations from the paper"):
        parts += ["## Deviations from the paper"]
        parts += ["⚠ marks a deviation that can change results."] * ("⚠" in deviations)
        parts += [in_markdown(deviations, name)]
    parts += _papers(agent)
    parts += _standing(case)
    if studied := _studies(name, given.studies):
        parts += ["## In the studies", "\n".join(studied)]
    parts += ["## Arguments", f"```{{eval-rst}}\n.. autoclass:: clickgym.agents.{name}\n```"]
    return Page("\n\n".join(parts) + "\n", pictures)


def _command(name: str) -> str:
    env, instance = env_of(name)
    options = f" --instance {instance}" if instance else ""
    return f"clickgym run {env} --agents {name}{options} --horizon 1e5 --out results/{name}"


def _lists(name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """The picture of lists with its words, or why there is none."""
    shown = play(name)
    if shown is None:
        yield (
            "There is no picture: this agent trains in a loop of its own, on many streams of sessions at once, which takes too "
            "long for this page. The command above runs it; [generic reinforcement learning](../rl.md) shows its curve."
        )
        return
    pictures[f"{name}-lists.svg"] = svg(lists_figure(shown))
    last = int(shown.sessions[-1])
    where = f"`{shown.env}`" + (f" with the instance `{shown.instance}`" if shown.instance else " with its default instance")
    text = f"One run in {where}: the list of session 1, of session {int(shown.sessions[1])}, and so on to session {last:,}."
    if last < MOMENTS[-1]:
        text += " The pages of other agents show ten times as many sessions; a session of this agent takes much longer."
    text += " The number of an item is its position in the best list; a grey item is not in the best list."
    if shown.changes.any():
        text += " A dashed line says that the users have changed since the list before."
    yield text
    yield f"![The lists of {name} at {len(shown.sessions)} sessions]({name}-lists.svg)"


def _advice(name: str, said: list[Any]) -> Iterator[str]:
    """The sentences of the rules, those for the agent and those against it."""
    for take, heading in ((True, "Take it if"), (False, "Do not take it if")):
        own = [f"- {in_markdown(each.text, name)} ({each.source})" for each in said if each.take == take]
        if own:
            yield heading
            yield ";\n".join(own) + "."
        elif take:
            yield "Neither the scorecard nor a study gives a reason to take it."


def _facts(case: Case, given: Sources) -> Iterator[tuple[str, str]]:
    """What an agent is given, can do and withstands, and the time of a session."""
    about, agent = next(row for row in list_agents().rows if row["name"] == case.name), case.agent
    yield "made for the [click models](../glossary.md)", about["click_models"]
    yield "needs, besides clicks", _needed(case)
    told = ", ".join(f"`{key}`" for key in about["told"].split(", ") if key)
    yield "takes from a simulated environment", told or "nothing"
    yield "learns from", LEARNS.get(agent.learns_from, agent.learns_from)
    if case.ranks_items:
        can = abilities(agent)
        yield "can rank a part of the items (`candidates`)", _yes(can["candidates"])
        yield "can replace an item by a new one (`replace`)", _yes(can["replace"])
    if issubclass(agent, CompiledAgent):
        serves = not refusal(agent, issubclass(agent, ContextualAgent))
        yield "can [serve](../service.md) real users (`clickgym.Ranker`)", _yes(serves)
    evidence = stands(agent)
    for what in STANDS:
        yield f"robust to {what}", f"{_shown_by(evidence.get(what, ''))}{_score_in(SCORED[what], case)}"
    yield "time of a session", _times(case.name, given)


LEARNS = {
    ANY_LIST: "any list, also of a log (off-policy)",
    ITS_DISPLAYS: "its own lists only, in any order of their clicks",
    LAST_DISPLAY: "its own last list only",
}
"""From which lists agents learn, in words."""


def _needed(case: Case) -> str:
    """What an agent cannot do without, its horizon among it."""
    what = needs(case.agent)
    wanted = [NEEDED.get(what, what)] * (what != "nothing") + ["the horizon"] * case.needs_horizon
    if case.ranks_items and what == "nothing" and "initial" in case.agent.told:
        wanted.append("a production list as `initial`, without which it begins with random lists")
    return ", and ".join(wanted) or "nothing"


def _shown_by(evidence: str) -> str:
    """What shows that an agent stands something, in Markdown."""
    study, _, condition = evidence.partition(", with ")
    if not evidence:
        return "no study shows it"
    if study not in STUDIES:
        return "yes: a late click counts for the list on which it was made"
    return f"yes{f', with `{condition}`' * bool(condition)}: [{study}](../studies/{study}.md)"


SCORED = {"change": "change", "bots": "bots", "late clicks": "late"}
"""The ability of the scorecard that measures each of `STANDS`."""


def _score_in(ability: str, case: Case) -> str:
    """What the leaderboard shows of it, beside the studies."""
    score = case.place.standing.abilities.get(ability) if case.place else None
    return "" if score is None else f"; its score in `{ability}` is {score}"


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _times(name: str, given: Sources) -> str:
    """The measured times of a session; else the mean of all sessions of the scorecard."""
    if name in given.times:
        return "; ".join(f"{time} ({size})" for size, time in zip(SIZES, given.times[name], strict=True))
    rows = reference(CURRENT).filter(agent=name)
    tasks = CURRENT.by_name
    sessions, seconds = sum(tasks[task].horizon for task in rows["task"]), float(rows["seconds"].sum())
    return f"{duration(1e9 * seconds / sessions)}, the mean over the scorecard" if sessions and seconds else "not measured yet"


def _papers(agent: Any) -> Iterator[str]:
    papers: list[Reference] = cited(agent)
    ours = str(getattr(agent, "paper", "")).startswith("ours")
    yield "## The paper" if len(papers) < 2 and not ours else "## The papers"
    if not papers:
        yield "None: it is a baseline."
        return
    if ours:
        yield "This algorithm has no paper of its own; it is new in this package. It combines parts of these papers:"
    yield "\n".join(f"- {paper.citation()}. {paper.link()}" for paper in papers)
    entries = re.sub(r", (\w+)=\{", r",\n  \1={", bibtex(papers)).replace("}}\n", "}\n}\n")
    yield f"```bibtex\n{entries.rstrip()}\n```"


def _standing(case: Case) -> Iterator[str]:
    """Where an agent stands: its lines on each board of the newest version, by ability."""
    lines = [(table, place) for table in boards_tables() for place in table.places if agent_of(place.agent) == case.name]
    if lines:
        yield "## In the [leaderboard](../leaderboard.md)"
        yield (
            "A score of 0 is the regret of random lists, 1 the lowest regret that was known when the tasks were frozen, on a "
            "logarithmic scale; an agent that came later can score more. In brackets are 95 % intervals. The lines of a board "
            "are agents as published and tuned. The place of a line is one more than the number of lines that are certainly "
            "better, so several lines can share a place. The [rules](../scorecard.md) explain boards and abilities."
        )
    for table, place in lines:
        overall = f"overall {place.standing.overall}"
        tuned = place.agent.partition(", ")[2] or "as published"
        changes = f", tuning changed {place.changes}" if place.changes and tuned != SAFE_LINE else ""
        yield f"{table.title}, {tuned}: place {place.number} of {len(table.places)}, {overall}{changes}."
        scores = [
            (ability.replace("_", " "), str(score))
            for ability, score in place.standing.abilities.items()
            if ability in table.abilities
        ]
        yield "\n".join(markdown_table([("ability", "score"), *scores]))


def _studies(name: str, known: frozenset[str]) -> list[str]:
    """The studies that play an agent."""
    return [
        f"- [{key}](../studies/{key}.md): {study.title}"
        for key, study in STUDIES.items()
        if key in known and any(name == agent.partition(":")[0] for part in study.parts for agent in part.agents)
    ]
