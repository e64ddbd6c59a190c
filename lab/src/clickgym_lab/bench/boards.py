"""The boards as tables of a page; a small script sorts and filters them, and without it they are plain tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars

from clickgym.core.formats import clock
from clickgym.core.templates import templates
from clickgym.runner import PUBLISHED

from .leaderboard import TRUST, Place, leaderboard, models_of, ratio_text, secret_text
from .protocol import CURRENT, STAGES, Board, Protocol
from .reference import agent_of, lines, reference
from .score import Estimate, standing

FOLDER = Path(__file__).parent
REPOSITORY = "https://github.com/clickgym/clickgym/blob/main/"
MODELS = ["CM", "PBM", "DCM", "UBM", "any"]
"""The click models that agents are asked to be made for."""


class Table(NamedTuple):
    """A board as a table of a page.

    Attributes:
        key: its name in addresses.
        title, about: what stands above it.
        places: its rows.
        abilities: of which it has columns.
        board: that it shows.
        models: of which it has columns, too.
        stages: after so many sessions it has a score, too.
    """

    key: str
    title: str
    about: str
    places: Sequence[Place]
    abilities: Sequence[str]
    board: Board
    models: Sequence[str] = ()
    stages: Sequence[int] = ()


def boards_tables(protocol: Protocol = CURRENT) -> list[Table]:
    """The tables of a version: one for each board, then those over the tasks of ``--quick``.

    Args:
        protocol: the version.
    """
    tables = [
        Table(
            f"board-{board.name.replace(' ', '-')}",
            f"Board: {board.name}",
            f"{board.about[0].upper()}{board.about[1:]}.",
            leaderboard(protocol, board),
            list(protocol.columns(board)),
            board,
            models_of(protocol, board),
            STAGES,
        )
        for board in protocol.boards
    ]
    return [table for table in tables if table.places] + [
        Table(
            f"quick-{board.name.replace(' ', '-')}",
            f"Generic reinforcement learning beside the board {board.name}",
            f"Over the tasks of --quick alone: generic reinforcement learning plays no others, with {protocol.learners} runs.",
            places,
            list(protocol.columns(board)),
            board,
        )
        for board in protocol.boards
        for places in [leaderboard(protocol, board, None, True)]
        if any(lines(protocol)[place.agent].learns for place in places)
    ]


def boards_notes(protocol: Protocol = CURRENT) -> list[str]:
    """Explanations for readers of the tables of a version, in paragraphs."""
    return [
        protocol.how,
        "The place of a line is one more than the number of lines that are better by a test with Holm’s correction over "
        "all pairs of the board, each pair over the tasks that both play, and no less than that of any line above. Lines that "
        "are not told apart are tied; each names them.",
        "MixTS is our own agent: it was developed on the development tasks without a limit, a budget that its rivals did not "
        "have. The scale is logarithmic and rewards the last factor of two in regret as much as the first. The 16 real queries "
        "return in several abilities, which the bootstrap draws independently: intervals are somewhat too narrow.",
        "Worst tenth: the mean over the tenth of the tasks of the board in which the line scores least. Regret: as a "
        "multiple of that of CascadeKLUCB (on the board features: of CMLinUCB), the geometric mean over the tasks that "
        "both play. After 1,000 and after 10,000 sessions: the overall score at that moment, with anchors of that moment.",
        "A tuned line has the hyper-parameters that clickgym tune found on development tasks, with one budget for every "
        "agent; those of its paper have the line as published. Played by: "
        + "; ".join(f"{label}: {meaning}" for label, meaning in TRUST.items())
        + ". Secret score: the overall score on tasks that were drawn as the line was judged. The time is that of one "
        "processor for all runs.",
        *_oracle(protocol),
    ]


def _oracle(protocol: Protocol) -> list[str]:
    """What can be reached, where the agent that is told the best list was played."""
    rows = reference(protocol).filter(polars.col("agent") == "Oracle")
    if rows.is_empty():
        return []
    overall = standing(rows, protocol, protocol.boards[0]).overall
    return [f"Oracle, which is told the best list and stands on no board, scores {overall} overall: more cannot be reached."]


def filters_html() -> str:
    """The HTML form with which readers choose rows and columns; it needs the script."""
    return templates(FOLDER).get_template("filters.html").render(models=MODELS)


def table_html(table: Table, protocol: Protocol = CURRENT, links: Callable[[str], str] | None = None) -> str:
    """A board in HTML.

    Args:
        table: of `boards_tables`.
        protocol: the version.
        links: the address of an agent's page, empty for one that has none; None takes its source.
    """
    pages = templates(FOLDER)
    pages.filters |= {"clock": clock}
    values = table_values(links)
    return pages.get_template("board.html").render(table=table, abilities=protocol.columns(), **values)


def table_values(links: Callable[[str], str] | None = None) -> dict[str, object]:
    """The values that the template of a table uses."""
    return {"links": links or source_link, "ratio": ratio_text, "secret": secret_text, "bare": _bare}


def source_link(agent: str) -> str:
    """The address of the source of an agent of the package, where its docstring names its paper; empty for others.

    Example:
        >>> source_link("TopRank").startswith(REPOSITORY)
        True
    """
    name = agent_of(agent)
    return f"{REPOSITORY}{source_file(name)}" if name in PUBLISHED else ""


def source_file(agent: str) -> str:
    """The file of an agent of the package, in its repository."""
    module: str = PUBLISHED[agent].__module__
    return f"{module.removeprefix('clickgym.').replace('.', '/')}.py"


def _bare(value: float | None) -> Estimate | None:
    """A score without an interval; None where there is none."""
    return None if value is None or math.isnan(value) else Estimate(value, math.nan, math.nan)
