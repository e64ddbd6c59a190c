"""Leaderboard: one row for each line (an agent with its hyper-parameters), one column for each ability."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

import polars
from polars import col

from clickgym.core.formats import clock
from clickgym.runner import AgentLike, Player, player_of

from .protocol import CURRENT, STAGES, Board, Protocol
from .reference import Line, lines, reference
from .score import Estimate, Pair, Standing, counted_rows, pairs, regret_ratio, standing

TRUST = {
    "ours": "we played it",
    "judged": "the judge played what its author had sent",
    "claimed": "only its author played it",
    "retired": "we played it; later versions have it no more",
}
"""Who played a line."""


class Place(NamedTuple):
    """A row of the leaderboard.

    Attributes:
        agent: what it is called.
        standing: its scores.
        told: what it is told of the environment.
        click_models: those that it is made for.
        seconds: of one processor, for all its runs.
        ratio: how many times the regret of the base of the board it has, over common tasks.
        number: one more than the number of lines that are better, and no less than that of a line that stands higher; 0 for
            an agent on no board.
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
    tied: tuple[str, ...] = ()
    changes: str = ""
    early: Mapping[int, Place] = {}
    trust: str = "ours"
    secret: Estimate | None = None


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
        >>> leaderboard()[-1].number == len(leaderboard())
        True
    """
    board = board or protocol.boards[0]
    tables = tables_of(protocol, board, stage, quick)
    places = [_place(name, rows, protocol, standing(rows, protocol, board, quick, stage)) for name, rows in tables.items()]
    places.sort(key=lambda place: -place.standing.overall.value)
    compared = pairs({place.agent: tables[place.agent] for place in places}, protocol, board)
    base = tables.get(board.base, reference(protocol, stage).filter(agent=board.base))
    stages = STAGES if stage is None and not quick else ()
    early = {step: {place.agent: place for place in leaderboard(protocol, board, step)} for step in stages}
    standings = [among(place.agent, compared) for place in places]
    numbers = itertools.accumulate((own["number"] for own in standings), max)
    return [
        place._replace(
            **own | {"number": number},
            ratio=regret_ratio(tables[place.agent], base, protocol),
            early={step: of[place.agent] for step, of in early.items() if place.agent in of},
        )
        for place, own, number in zip(places, standings, numbers, strict=True)
    ]


def among(agent: str, compared: Mapping[tuple[str, str], Pair]) -> dict[str, Any]:
    """Where a line stands among those that it is compared with.

    Args:
        agent: the line.
        compared: as `pairs` returns them.

    Returns:
        ``number``, one more than the lines that are better; ``tied``, those that it is not told apart from.
    """
    own: dict[str, tuple[Pair, int]] = {}
    for (one, other), pair in compared.items():
        if agent == one:
            own[other] = pair, 1
        elif agent == other:
            own[one] = pair, -1
    better = sum(pair.differ and sign * pair.difference.value < 0 for pair, sign in own.values())
    return {"number": 1 + better, "tied": tuple(name for name, (pair, _) in own.items() if not pair.differ)}


def tables_of(protocol: Protocol, board: Board | None, stage: int | None, quick: bool) -> dict[str, polars.DataFrame]:
    """The scores of the lines of a board by name; of generic reinforcement learning by the tasks of ``--quick`` alone.

    Args:
        protocol, board, stage, quick: as in `leaderboard`.
    """
    table = reference(protocol, stage)
    if quick:
        table = table.filter(col("task").is_in([task.name for task in protocol.tasks(quick=True)]))
    tables = {str(name): rows for (name,), rows in table.group_by(["agent"], maintain_order=True)}
    if board is None:
        return tables
    of_board = {}
    for name, rows in tables.items():
        line = lines(protocol)[name]
        boards = protocol.boards_of(_about(line)["sources"], rows["ability"].unique().to_list())
        if board in boards and (quick or not line.learns):
            of_board[name] = rows
    return of_board


def _place(name: str, rows: polars.DataFrame, protocol: Protocol, result: Standing) -> Place:
    line = lines(protocol)[name]
    about, seconds = _about(line), float(counted_rows(rows, protocol)["seconds"].sum())
    place = Place(name, result, tuple(about["told"]), about["click_models"], seconds)
    secret = Estimate(*about["secret"]) if "secret" in about else None
    return place._replace(changes=line.changes, trust=line.trust, secret=secret)


def _about(line: Line) -> Mapping[str, Any]:
    """What the class of a line says of itself: ``sources``, ``told``, ``click_models``."""
    return line.about or about_of(line.agent)


def about_of(agent: AgentLike) -> dict[str, Any]:
    """What the class of an agent says of itself: ``sources``, the facts that it is ``told``, and its ``click_models``."""
    player = player_of(agent)
    return {"sources": list(sources_of(player)), "told": list(player.told), "click_models": player.click_models}


def header(protocol: Protocol = CURRENT, board: Board | None = None) -> tuple[str, ...]:
    """The heads of the columns of a board."""
    abilities = (name.replace("_", " ") for name in protocol.columns(board))
    if board is None:
        return ("agent", "overall", "tasks", *abilities, "is told", "made for", "time")
    early = (f"after {stage:,}" for stage in STAGES)
    beside = ("worst tenth", "regret", "tied with", "is told", "tuning changed", "played by", "secret score", "time")
    return ("place", "agent", "overall", *early, *abilities, *models_of(protocol, board), *beside)


def models_of(protocol: Protocol, board: Board) -> list[str]:
    """The click models of the tasks of a board."""
    return list(dict.fromkeys(task.click_model for task in protocol.tasks() if task.ability in board.abilities))


def row_of(place: Place, protocol: Protocol = CURRENT, board: Board | None = None) -> tuple[str, ...]:
    """The cells under `header`."""
    abilities = place.standing.abilities
    scores = [_score(abilities[name].value) if name in abilities else "–" for name in protocol.columns(board)]
    knowledge, overall, time = ", ".join(place.told) or "–", str(place.standing.overall), clock(place.seconds)
    if board is None:
        return (place.agent, overall, str(place.standing.n_tasks), *scores, knowledge, place.click_models, time)
    early = [_score(place.early[stage].standing.overall.value) if stage in place.early else "–" for stage in STAGES]
    models = [_score(place.standing.models.get(model, math.nan)) for model in models_of(protocol, board)]
    tied = "; ".join(place.tied) or "–"
    played = place.changes or "–", place.trust, secret_text(place), time
    beside = (_score(place.standing.worst), ratio_text(place), tied, knowledge, *played)
    return (str(place.number), place.agent, overall, *early, *scores, *models, *beside)


def ratio_text(place: Place) -> str:
    """The regret multiple that is shown beside a score.

    Example:
        >>> from clickgym_lab.bench.score import Estimate
        >>> ratio_text(Place("A", Standing(Estimate(1.0, 0.9, 1.1), {}, 1), (), "any", 1.0, ratio=0.513))
        '0.51 ×'
    """
    return "–" if math.isnan(place.ratio) else f"{place.ratio:.2g} ×"


def secret_text(place: Place) -> str:
    """The score on secret tasks, with its interval, or that there is none."""
    return "not judged" if place.secret is None else str(place.secret)


def _score(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:z.2f}"
