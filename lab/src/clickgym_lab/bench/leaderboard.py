"""Leaderboard: one row for each line (an agent with its hyper-parameters), one column for each ability."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import polars
from polars import col

from clickgym.core.formats import clock
from clickgym.runner import PUBLISHED, AgentLike, Player, learns, player_of

from .play import suited
from .protocol import CURRENT, STAGES, Board, Protocol
from .reference import TUNED_LINE, Line, agent_of, lines, reference
from .score import Estimate, Pair, Standing, pairs, regret_ratio, standing
from .task import Task

TRUST = {
    "ours": "we played it",
    "judged": "the judge played what its author had sent",
    "claimed": "only its author played it",
}
"""Who played a line."""


class Place(NamedTuple):
    """A row of the leaderboard.

    Attributes:
        agent: what it is called.
        standing: its scores.
        told: what it is told of the environment.
        click_models: those that it is made for.
        seconds: of one processor, for all its runs of the board.
        ratio: how many times the regret of the base of the board it has, over common tasks.
        number, last: the places that the data allow: behind the lines that are better, before those that are worse; 0 for
            an agent on no board, and where only ``--quick`` is looked at.
        recommended: whether it has the highest bad run of those that are not told apart from the line with the highest mean.
        tied: the lines that it is not told apart from.
        changes: what tuning has changed.
        early: its place after fewer sessions, by their number, where tasks of the board count so early; empty where only
            ``--quick`` is looked at.
        trust: who played it, by `TRUST`.
        secret: its overall score on the secret tasks of its judging; None for a line that was not judged.
    """

    agent: str
    standing: Standing
    told: tuple[str, ...]
    click_models: str
    seconds: float
    ratio: float = math.nan
    number: int = 0
    last: int = 0
    recommended: bool = False
    tied: tuple[str, ...] = ()
    changes: str = ""
    early: Mapping[int, Place] = {}
    trust: str = "ours"
    secret: Estimate | None = None

    def score(self, ability: str | None = None) -> float:
        """Its mean score overall, or in an ability that it plays."""
        return (self.standing.overall if ability is None else self.standing.abilities[ability]).value

    def among(self, compared: Mapping[tuple[str, str], Pair]) -> Place:
        """The same with ``number``, ``last`` and ``tied``, where it stands among the lines that it is compared with.

        Args:
            compared: as `pairs` returns them.
        """
        verdicts = {one: -pair.verdict for (one, other), pair in compared.items() if other == self.agent}
        verdicts |= {other: pair.verdict for (one, other), pair in compared.items() if one == self.agent}
        if not verdicts:
            return self
        counts, tied = Counter(verdicts.values()), tuple(name for name, verdict in verdicts.items() if not verdict)
        return self._replace(number=1 + counts[-1], last=1 + len(verdicts) - counts[1], tied=tied)


def sources_of(agent: AgentLike | Player) -> Collection[str]:
    """The kinds of knowledge that the environment gives an agent, beside values passed by hand."""
    return list(player_of(agent).asks.values())


@cache
def leaderboard(
    protocol: Protocol = CURRENT, board: Board | None = None, stage: int | None = None, quick: bool = False
) -> list[Place]:
    """The lines of the reference on a board, from the highest overall score down.

    Args:
        protocol: the version.
        board: None takes the first.
        stage: scores after so many sessions; None takes the end of each task.
        quick: over the tasks of ``--quick`` alone.

    Example:
        >>> leaderboard()[-1].last == len(leaderboard())
        True
    """
    board = board or protocol.boards[0]
    tables = tables_of(protocol, board, stage, quick)
    board = _played_by_generic(board, tables, protocol) if quick else board
    base = tables.get(board.base, reference(protocol, stage).filter(agent=board.base))
    places = [
        _place(name, rows_of(board, rows), base, protocol, standing(rows, protocol, board, quick, stage))
        for name, rows in tables.items()
    ]
    places.sort(key=lambda place: -place.score())
    if quick:
        return places
    compared = pairs({place.agent: tables[place.agent] for place in places}, protocol, board)
    early = _early(protocol, board) if stage is None else {}
    places = [place.among(compared)._replace(early=early.get(place.agent, {})) for place in places]
    best = _recommended(places)
    return [place._replace(recommended=place.agent == best) for place in places]


def _early(protocol: Protocol, board: Board) -> dict[str, dict[int, Place]]:
    """The places of each line on a board after fewer sessions, by their number."""
    early: dict[str, dict[int, Place]] = {}
    for stage in STAGES:
        for place in leaderboard(protocol, board, stage):
            early.setdefault(place.agent, {})[stage] = place
    return early


def _played_by_generic(board: Board, tables: Mapping[str, polars.DataFrame], protocol: Protocol) -> Board:
    """A board with the abilities that generic RL has played, too; as it is where that has played none."""
    learned = (rows for name, rows in tables.items() if lines(protocol)[name].learns)
    played = {ability for rows in learned for ability in rows["ability"].unique()}
    return board._replace(abilities=tuple(name for name in board.abilities if name in played or not played))


def _recommended(places: Sequence[Place]) -> str | None:
    """Who has the highest bad run of those that are not told apart from the line with the highest mean.

    Tuned lines, agents that do not learn, and lines without a bad run do not count.
    """
    able = [place for place in places if not is_tuned(place) and is_learner(place) and place.standing.bad is not None]
    if not able:
        return None
    near = [place for place in able if place.agent in (able[0].agent, *able[0].tied)]
    return max(near, key=lambda place: place.standing.bad or place.standing.overall).agent


def is_tuned(place: Place) -> bool:
    """Whether it is the tuned line of its agent."""
    return place.agent.endswith(f", {TUNED_LINE}")


def is_learner(place: Place) -> bool:
    """Whether a line is of an agent of the package that learns."""
    agent = PUBLISHED.get(agent_of(place.agent))
    return agent is not None and learns(agent)


def tables_of(protocol: Protocol, board: Board | None, stage: int | None, quick: bool) -> dict[str, polars.DataFrame]:
    """The scores of the lines of a board by name, and those that have still to play what they can.

    Args:
        protocol, board, stage, quick: as in `leaderboard`.
    """
    table = reference(protocol, stage)
    if quick:
        table = table.filter(col("task").is_in([task.name for task in protocol.tasks(quick=True)]))
    tables = {str(name): rows for (name,), rows in table.group_by(["agent"], maintain_order=True)}
    if board is None:
        return tables
    due = [] if quick else [task for task in protocol.tasks(stage=stage) if task.ability in board.abilities]
    return {name: rows for name, rows in tables.items() if _is_on(board, lines(protocol)[name], rows, due, protocol)}


def _is_on(board: Board, line: Line, rows: polars.DataFrame, due: Sequence[Task], protocol: Protocol) -> bool:
    """Whether a board admits a line, which has played what is due."""
    boards = protocol.boards_of(_about(line)["sources"], rows["ability"].unique().to_list())
    return board in boards and _has_played(line, due, set(rows["task"]))


def _has_played(line: Line, due: Sequence[Task], played: Collection[str]) -> bool:
    """Whether a line has played what is due and what it can play. The judge has seen to it that a submission has."""
    return bool(line.about) or not any(_can_play(line.agent, task) for task in due if task.name not in played)


@cache
def _can_play(agent: str, task: Task) -> bool:
    return bool(suited(agent, [task]))


def rows_of(board: Board, rows: polars.DataFrame) -> polars.DataFrame:
    """The rows of the abilities that a board counts."""
    return rows.filter(col("ability").is_in(board.abilities))


def _place(name: str, rows: polars.DataFrame, base: polars.DataFrame, protocol: Protocol, result: Standing) -> Place:
    line = lines(protocol)[name]
    about, seconds, ratio = _about(line), float(rows["seconds"].sum()), regret_ratio(rows, base, protocol)
    place = Place(name, result, tuple(about["told"]), about["click_models"], seconds, ratio)
    secret = Estimate(*about["secret"]) if "secret" in about else None
    return place._replace(changes=line.changes, trust=line.trust, secret=secret)


def _about(line: Line) -> Mapping[str, Any]:
    """What the class of a line says of itself: ``sources``, ``told``, ``click_models``."""
    return line.about or about_of(line.agent)


def about_of(agent: AgentLike) -> dict[str, Any]:
    """What the class of an agent says of itself: ``sources``, the facts that it is ``told``, and its ``click_models``."""
    player = player_of(agent)
    return {"sources": list(sources_of(player)), "told": list(player.told), "click_models": player.click_models}


HEADS = ("place", "agent", "score", "bad run", "regret", "needs", "time", "judged")
"""Of the columns of a board; then there is a square for each ability."""


def cells_of(place: Place, protocol: Protocol = CURRENT, board: Board | None = None) -> dict[str, str]:
    """All that is known of a line, by the heads of the table that can be downloaded; those of a board come first."""
    own, models = place.standing, [] if board is None else protocol.models_of(board)
    scores = {name: score.value for name, score in own.abilities.items()} | dict(own.models)
    early = {stage: each.score() for stage, each in place.early.items()}
    shown = (place_text(place), place.agent, str(own.overall), bad_text(place), ratio_text(place), ", ".join(place.told) or "–")
    return {
        **dict(zip(HEADS, (*shown, clock(place.seconds), place.trust), strict=True)),
        "linear": _score(own.linear),
        **{f"after {stage:,}": _score(early.get(stage, math.nan)) for stage in STAGES},
        **{name.replace("_", " "): _score(scores.get(name, math.nan)) for name in (*protocol.columns(board), *models)},
        "worst tenth": _score(own.worst),
        "tasks": str(own.n_tasks),
        "tied with": "; ".join(place.tied) or "–",
        "made for": place.click_models,
        "tuning changed": place.changes or "–",
        "secret score": "not judged" if place.secret is None else str(place.secret),
    }


def place_text(place: Place) -> str:
    """The places that the data allow.

    Example:
        >>> from clickgym_lab.bench.score import Estimate
        >>> place = Place("A", Standing(Estimate(1.0, 0.9, 1.1), {}, 1), (), "any", 1.0)
        >>> [place_text(place._replace(number=2, last=last)) for last in (2, 6)], place_text(place)
        (['2', '2–6'], '–')
    """
    ends = dict.fromkeys((place.number, place.last)) if place.number else ["–"]
    return "–".join(map(str, ends))


def bad_text(place: Place) -> str:
    """The score of the worst of the first five runs of each task, or that there are fewer."""
    return "–" if place.standing.bad is None else str(place.standing.bad)


def ratio_text(place: Place) -> str:
    """The regret multiple that is shown beside a score.

    Example:
        >>> from clickgym_lab.bench.score import Estimate
        >>> ratio_text(Place("A", Standing(Estimate(1.0, 0.9, 1.1), {}, 1), (), "any", 1.0, ratio=0.513))
        '0.51 ×'
    """
    return "–" if math.isnan(place.ratio) else f"{place.ratio:.2g} ×"


def _score(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:z.2f}"
