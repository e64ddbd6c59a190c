"""Conclusions from the reference results, in sentences; a rule makes each sentence and its numbers from the results."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from polars import col
from scipy.stats import spearmanr

from clickgym.agents import AGENTS, LEARNERS
from clickgym.core.formats import markdown_table
from clickgym.core.statistics import worst_tenth
from clickgym.core.templates import templates
from clickgym.runner import PUBLISHED, stands

from .leaderboard import Place, bad_text, is_learner, is_tuned, leaderboard
from .protocol import CURRENT, Board, Protocol
from .reference import PUBLISHED_LINE, SAFE_LINE, agent_of, line_name, lines, reference
from .score import Standing, regret_ratios
from .task import Task

FOLDER = Path(__file__).parent
OURS = "MixTS"
PLANNER = "CascadeVI"
MUCH = 0.1
"""A gain of so much in score by tuning is large."""
RECOMMENDING = 3
"""So many of the first conclusions say which agent to take."""


def recommended(protocol: Protocol = CURRENT) -> dict[str, str]:
    """The recommended lines, by what matters: overall by the rule of the boards, and with the highest score in ``change`` and
    in ``safety``.

    In ``safety`` it is the score in the worst tenth of the runs: few runs that go badly hide in a mean.

    Only lines count that need no extra knowledge and run with their defaults or in safe mode. For safety, only agents that
    learn count.

    Args:
        protocol: the version.

    Returns:
        ``overall``, ``change`` and ``safety``, and ``published``: the best overall of those that are not our own.
    """
    places = [place for place in leaderboard(protocol, protocol.boards[0]) if not is_tuned(place) and is_learner(place)]
    best = {"change": _best_in("change", places).agent}
    best["safety"] = max(places, key=lambda place: worst(place.agent, "safety")).agent
    published = next(place.agent for place in places if agent_of(place.agent) != OURS)
    return {"overall": next(place.agent for place in places if place.recommended), "published": published, **best}


def tuned_lines(places: Mapping[str, Place]) -> tuple[list[tuple[Place, Place]], list[str]]:
    """Agents as published and tuned, from the largest gain down, and in words those that tuning took what they are made for.

    Agents that adapt to changes are made for ``change``, those that get the production ranking for ``safety``.

    Args:
        places: lines by name.
    """
    tuned = [(places[agent_of(name)], place) for name, place in places.items() if is_tuned(place)]
    tuned.sort(key=lambda pair: pair[0].score() - pair[1].score())
    spoilt = {pair[0].agent: words for pair in tuned if (words := _spoilt(*pair))}
    return [pair for pair in tuned if pair[0].agent not in spoilt], [*spoilt.values()]


def _spoilt(before: Place, after: Place) -> str:
    """What an agent lost by tuning of what it is made for; empty if nothing."""
    scores = [place.score("change") for place in (before, after)]
    if "change" in stands(PUBLISHED[before.agent]) and scores[0] - scores[1] > MUCH:
        return f"`{before.agent}` scores {scores[1]:.2f} in `change` instead of {scores[0]:.2f}"
    lists = [unsafe()[place.agent] for place in (before, after)]
    if "initial" in before.told and lists[1].tenth > lists[0].tenth:
        words = f"bad lists in the worst tenth of its runs instead of {lists[0].tenth:,.0f}"
        return f"`{before.agent}` shows {lists[1].tenth:,.0f} {words}"
    return ""


def worst(agent: str, ability: str | None = None) -> float:
    """The mean score of the tenth of the runs of a line that score least: in an ability, or on the board without knowledge.

    Whatever is recommended is shown with it beside its mean.
    """
    abilities = CURRENT.boards[0].abilities if ability is None else (ability,)
    return worst_tenth(reference(CURRENT).filter(col("ability").is_in(abilities), agent=agent)["score"])


def n_first(agent: str) -> int:
    """In how many tasks of the board without knowledge no other line as published or tuned scores more than a line."""
    board = CURRENT.boards[0]
    rows = reference(CURRENT).filter(
        col("agent").is_in([place.agent for place in leaderboard(CURRENT, board)]), col("ability").is_in(board.abilities)
    )
    means = rows.group_by("task", "agent").agg(col("score").mean())
    return means.filter(col("score") == col("score").max().over("task"), agent=agent).height


def conclusions(docs: str) -> list[str]:
    """The conclusions from the boards, items in Markdown; the first `RECOMMENDING` say which agent to take.

    Args:
        docs: where the pages lie that it links to.
    """
    free, extra, *_, last = CURRENT.boards
    places = {place.agent: place for board in (last, free, extra) for place in leaderboard(CURRENT, board)}
    tuned, spoilt = tuned_lines({name: place for name, place in places.items() if "change" in place.standing.abilities})
    take, quick = recommended(), {place.agent: place.standing.overall for place in leaderboard(CURRENT, free, quick=True)}
    text = _render(
        "conclusions.md",
        docs=docs,
        take=take,
        typed={name: lines(CURRENT)[name].agent for name in take.values()},
        places=places,
        informed=leaderboard(CURRENT, extra)[0],
        unsafe=unsafe(),
        rival="BubbleRank",
        worst=worst,
        first=n_first(take["overall"]),
        tuned=tuned,
        spoilt=spoilt,
        gained=sum(after.score() - before.score() > MUCH for before, after in tuned),
        quick=quick,
        generic=next(name for name in quick if agent_of(name) in LEARNERS),
        n_tasks=len(CURRENT.tasks_of(free)),
        much=MUCH,
        **_of_memory(),
    )
    return [f"- {item}" for item in text.removeprefix("- ").split("\n- ")]


def _of_memory() -> dict[str, object]:
    """Regrets in ``memory`` as multiples of that of the planner, which learns and plans ahead."""
    memory = reference(CURRENT).filter(ability="memory")
    agents = memory["agent"].unique().sort()
    bandits = [name for name in agents if agent_of(name) in AGENTS and name != "Oracle"]
    generic = [name for name in agents if agent_of(name) in LEARNERS]
    ratios = regret_ratios([*bandits, "PerState"], PLANNER, memory)
    common_task = regret_ratios([*bandits, *generic], PLANNER, memory)
    return {
        "planner": PLANNER,
        "ratios": ratios,
        "bandit": min(bandits, key=ratios.__getitem__),
        "generic_ratio": min(map(common_task.__getitem__, generic)),
        "bandit_ratio": min(map(common_task.__getitem__, bandits)),
    }


class Unsafe(NamedTuple):
    """Lists in ``safety`` that are much worse than the production ranking.

    Attributes:
        runs: how many runs there are.
        share: of the runs that show such lists.
        tenth: how many the worst tenth of the runs shows in the mean.
        most: how many the worst run shows.
    """

    runs: int
    share: float
    tenth: float
    most: float


def unsafe() -> dict[str, Unsafe]:
    """The lists of each line in ``safety`` that are much worse than the production ranking."""
    groups = reference(CURRENT).filter(ability="safety").group_by("agent")
    counts = {str(name): rows["loss"].to_numpy() for (name,), rows in groups}
    return {
        name: Unsafe(len(lists), float((lists > 0).mean()), -worst_tenth(-lists), float(lists.max()))
        for name, lists in counts.items()
    }


def _render(template: str, **values: object) -> str:
    return templates(FOLDER).get_template(template).render(**values).strip("\n")


def own_agent() -> str:
    """The scores of our own agent in each ability beside those of the best other agents, as a table in Markdown."""
    free, extra, *_ = CURRENT.boards
    places = {place.agent: place for place in leaderboard(CURRENT, free)}
    others, informed = [place for place in places.values() if agent_of(place.agent) != OURS], leaderboard(CURRENT, extra)
    own = [places[line_name(OURS, setting)] for setting in (PUBLISHED_LINE, SAFE_LINE)]
    overall = [f"{place.standing.overall}, {worst(place.agent):.2f}" for place in own]
    rows = [("*overall*", *overall, str(others[0].standing.overall), str(informed[0].standing.overall))]
    for ability in (name for name in free.abilities if name not in CURRENT.playing):
        scores = (f"{place.score(ability):.2f}, {worst(place.agent, ability):.2f}" for place in own)
        best = (_best_in(ability, group) for group in (others, informed))
        rows.append((ability, *scores, *(f"{place.score(ability):.2f} ({place.agent})" for place in best)))
    heads = (f"`{OURS}`, worst tenth of runs", f"`{OURS}:safe=true`, worst tenth", "best without extra knowledge")
    header = ("", *heads, "best with the examination probabilities")
    return "\n".join(markdown_table([header, *rows]))


def _best_in(ability: str, places: Iterable[Place]) -> Place:
    """Of the lines that play an ability the one that scores most."""
    return max((place for place in places if ability in place.standing.abilities), key=lambda place: place.score(ability))


def stability(sets: Sequence[Mapping[str, Mapping[str, float]]]) -> str:
    """How much the orders of the agents on several sets of tasks agree, as a table in Markdown with a row for each board.

    Args:
        sets: for each set the scores of the agents as published, by board.

    Example:
        >>> print(stability([{"features": {"MGD": 0.5, "PDGD": 0.4}}, {"features": {"MGD": 0.6, "PDGD": 0.3}}]))
        | board | agents | two sets, mean | two sets, least | set and test set, mean | first |
        | --- | --- | --- | --- | --- | --- |
        | features | 2 | 1.000 | 1.000 | 1.000 | `MGD` on 2 of 2 sets |
    """
    header = ("board", "agents", "two sets, mean", "two sets, least", "set and test set, mean", "first")
    boards = [board for board in CURRENT.boards if board.name in sets[0]]
    return "\n".join(markdown_table([header, *(_row(board, [scores[board.name] for scores in sets]) for board in boards)]))


def _row(board: Board, sets: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """A board in the table of `stability`."""
    test = {place.agent: place.score() for place in leaderboard(CURRENT, board)}
    here = [{name: value for name, value in scores.items() if name in test} for scores in sets]
    among = list(itertools.starmap(_agreement, itertools.combinations(here, 2)))
    with_test = [_agreement(scores, test) for scores in here]
    figures = (f"{figure:.3f}" for figure in (np.mean(among), min(among), np.mean(with_test)))
    first, times = Counter(max(scores, key=scores.__getitem__) for scores in here).most_common(1)[0]
    return board.name, f"{len(here[0])}", *figures, f"`{first}` on {times} of {len(sets)} sets"


def _agreement(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The rank correlation of the scores of the agents in one set with theirs in another."""
    return float(spearmanr(list(one.values()), [other[name] for name in one]).statistic)


def referee(sets: Sequence[Mapping[str, Mapping[str, float]]]) -> str:
    """A page in Markdown: each criticism of versions 1 and 2 of the scorecard, the answer to it, and the number.

    Args:
        sets: scores on sets of tasks that were drawn anew, as in `stability`.
    """
    free, extra, features, _ = CURRENT.boards
    shown = [(board, leaderboard(CURRENT, board)) for board in (free, extra, features)]
    counts = [(board.name, sum(len(place.tied) for place in found) // 2, math.comb(len(found), 2)) for board, found in shown]
    places = {place.agent: place for _, found in shown for place in found}
    anchors = Counter(CURRENT.anchor(task).agent for task in CURRENT.tasks())
    above = sum(any(score.value > 1 for score in place.standing.abilities.values()) for place in places.values())
    safety = [task for task in CURRENT.tasks() if task.ability == "safety"]
    text = _render(
        "referee.md", facts=_facts(shown), places=places, anchors=anchors, runs_only=RUNS_ONLY, safety=safety, boards=counts,
        cost=max(map(_cost_of_a_list, safety)), above=above, sets=sets, stability=stability(sets),
    )  # fmt: skip
    return f"{text}\n"


def _facts(boards: Sequence[tuple[Board, Sequence[Place]]]) -> dict[str, object]:
    """The figures of the answers to the criticism of version 2."""
    board, free = boards[0]
    scores, linear = [place.score() for place in free], [place.standing.linear for place in free]
    return {
        "board": board,
        "free": free,
        "n_tasks": len(CURRENT.tasks_of(board)),
        "spoilt": tuned_lines({place.agent: place for place in free})[1],
        "chosen": [(each.name, place) for each, found in boards for place in found if place.recommended],
        "gap": max(free, key=_gap),
        "wider": np.median([_wider(place.standing, board) for place in free]),
        "correlation": spearmanr(scores, linear).statistic,
        "own": next(place for place in free if place.agent == OURS),
        "bad": bad_text,
    }


def _gap(place: Place) -> float:
    """By how much a bad run scores less than the mean."""
    return -math.inf if place.standing.bad is None else place.score() - place.standing.bad.value


def _wider(result: Standing, board: Board) -> float:
    """How many times as wide the interval of the score is as if abilities were independent."""
    widths = [result.abilities[name].width for name in board.abilities if name in result.abilities]
    return result.overall.width / (math.hypot(*widths) / len(widths))


RUNS_ONLY = 0.012
"""The width of the interval of `CascadeTS` in version 1, which was over runs (0.775 to 0.787)."""


def _cost_of_a_list(task: Task) -> float:
    """By how much one list that is much worse than the production ranking lowers the score of a run without any."""
    none, one = CURRENT.anchors[task.name][task.horizon].score(np.array([0.0, 1.0]))
    return float(none - one)
