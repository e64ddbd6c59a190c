"""The boards as tables of a page; a small script sorts and filters them, and without it they are plain tables."""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars

from clickgym.core.formats import clock
from clickgym.core.templates import templates
from clickgym.runner import PUBLISHED

from .leaderboard import TRUST, Place, cells_of, leaderboard, place_text, ratio_text
from .protocol import CURRENT, Board, Protocol
from .reference import agent_of, lines, reference
from .score import standing

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
        abilities: of which it has squares.
        board: that it shows.
        details: all figures of its lines as CSV, in base64; empty for a first look.
    """

    key: str
    title: str
    about: str
    places: Sequence[Place]
    abilities: Sequence[str]
    board: Board
    details: str = ""


def boards_tables(protocol: Protocol = CURRENT) -> list[Table]:
    """The tables of a version: one for each board, then those over the tasks of ``--quick``.

    Args:
        protocol: the version.
    """
    tables, quick = [], []
    for board in protocol.boards:
        places, first = leaderboard(protocol, board), leaderboard(protocol, board, None, True)
        key, abilities, ranked = board.name.replace(" ", "-"), list(protocol.columns(board)), {place.agent for place in places}
        if places:
            about = f"{board.about[0].upper()}{board.about[1:]}. {len(protocol.tasks_of(board))} tasks."
            details = _details(places, protocol, board)
            tables.append(Table(f"board-{key}", f"Board: {board.name}", about, places, abilities, board, details))
        if any(lines(protocol)[place.agent].learns and place.agent not in ranked for place in first):
            title = f"Generic reinforcement learning beside the board {board.name}"
            about = (
                f"A first look: generic reinforcement learning plays the tasks of --quick alone, with {protocol.learners} runs;"
                " an ability that it has not played yet does not count. That tells no places, no intervals and no bad runs."
            )
            quick.append(Table(f"quick-{key}", title, about, first, abilities, board))
    return tables + quick


def _details(places: Sequence[Place], protocol: Protocol, board: Board) -> str:
    rows, text = [cells_of(place, protocol, board) for place in places], io.StringIO()
    csv.writer(text).writerows([rows[0], *(row.values() for row in rows)])
    return b64encode(text.getvalue().encode()).decode()


def boards_notes(protocol: Protocol = CURRENT) -> list[str]:
    """Explanations for readers of the tables of a version, in paragraphs."""
    dropped = [task.name for task in protocol.candidates if task.name in protocol.anchors and not protocol.anchor(task).kept]
    rows = reference(protocol).filter(polars.col("agent") == "Oracle")
    oracle = None if rows.is_empty() else standing(rows, protocol, protocol.boards[0]).overall
    values = {"protocol": protocol, "dropped": dropped, "trust": TRUST, "oracle": oracle}
    return templates(FOLDER).get_template("notes.md").render(**values).strip().split("\n\n")


def filters_html() -> str:
    """The HTML form with which readers choose rows and columns; it needs the script."""
    return templates(FOLDER).get_template("filters.html").render(models=MODELS)


def table_html(table: Table, links: Callable[[str], str] | None = None) -> str:
    """A board in HTML.

    Args:
        table: of `boards_tables`.
        links: the address of an agent's page, empty for one that has none; None takes its source.
    """
    pages = templates(FOLDER)
    pages.filters |= {"clock": clock}
    return pages.get_template("board.html").render(table=table, **table_values(links))


def table_values(links: Callable[[str], str] | None = None) -> dict[str, object]:
    """The values that the template of a table uses."""
    return {"links": links or source_link, "ratio": ratio_text, "number": place_text, "words": strip_words}


def strip_words(table: Table, place: Place) -> str:
    """The scores of a line in the abilities, for those who do not see squares."""
    scores = place.standing.abilities
    return ", ".join(f"{name.replace('_', ' ')} {scores[name].value:z.2f}" for name in table.abilities if name in scores)


BLOCKS = "▁▂▃▄▅▆▇█"


def strip_text(table: Table, place: Place) -> str:
    """The squares of a line as characters: the higher, the higher the score; – for an ability that is not played."""
    scores = [place.standing.abilities.get(name) for name in table.abilities]
    return "".join("–" if score is None else BLOCKS[round(7 * min(max(score.value, 0.0), 1.0))] for score in scores)


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
