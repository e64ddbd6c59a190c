"""Texts for a paper from a card: a LaTeX table beside baselines, a BibTeX entry, a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from clickgym.core.checks import check_labels, unknown
from clickgym.core.formats import one_line
from clickgym.core.templates import templates
from clickgym.runner.reports import TEX, latex_text

from .boards import REPOSITORY
from .leaderboard import place_text, tables_of
from .played import Played
from .protocol import CURRENT, Protocol
from .reference import first_lines, lines, made_in
from .score import Estimate, Standing, standing

FOLDER = Path(__file__).parent
DASH = r"\textendash{}"
MOST = 4
"""So many baselines stand in the table of a card, if none are named."""


def check_beside(beside: Sequence[str] | None, protocol: Protocol = CURRENT) -> list[str] | None:
    """Check names of lines of the reference.

    Args:
        beside: the names; None stands for those that lead the board.
        protocol: the version.

    Raises:
        ValueError: there is no such line.
    """
    if beside is None:
        return None
    names = list(check_labels("beside", beside))
    for name in names:
        if name not in lines(protocol):
            raise ValueError(unknown("line of the reference", name, lines(protocol)))
    return names


def leading(card: Played) -> list[str]:
    """The lines of the reference that score highest on the board of a card, of each agent the better one, without its own."""
    own = card.agent.partition(":")[0]
    overall = {name: each.overall.value for name, each in _standings(card).items()}
    return first_lines(sorted(overall, key=lambda name: -overall[name]), own, "Oracle")[:MOST]


def _standings(card: Played, names: Sequence[str] | None = None) -> dict[str, Standing]:
    """What lines of the reference are worth on the board of a card; without names those that stand on it."""
    board = card.board if card.board is not None else card.protocol.boards[0]
    tables = tables_of(card.protocol, board if names is None else None, None, card.quick)
    chosen = {name: rows for name, rows in tables.items() if names is None or name in names}
    if names is None:
        chosen = {name: rows for name, rows in chosen.items() if not rows.filter(ability=board.abilities[0]).is_empty()}
    return {name: standing(rows, card.protocol, board, card.quick) for name, rows in chosen.items()}


def card_latex(card: Played, beside: Sequence[str] | None = None) -> str:
    """A LaTeX float with the scores of a card beside those of built-in agents, for a document with the package booktabs.

    Args:
        card: of the agent.
        beside: names of lines; None takes those that lead its board.

    Raises:
        ValueError: there is no such line.
    """
    names = check_beside(beside, card.protocol)
    names = leading(card) if names is None else names
    of_lines = _standings(card, names)
    pages = templates(FOLDER).overlay(**TEX)
    pages.filters |= {"latex": latex_text, "one_line": one_line}
    text = pages.get_template("card.tex").render(
        card=card,
        protocol=card.protocol,
        version=version("clickgym"),
        columns=[(card.agent, card.standing), *((name, of_lines[name]) for name in names if name in of_lines)],
        abilities=[*card.standing.abilities],
        score=_score,
        interval=_interval,
    )
    return f"{text}\n"


def _score(score: Estimate | None) -> str:
    return DASH if score is None else _minus(f"{score.value:z.2f}")


def _interval(score: Estimate) -> str:
    return DASH if math.isnan(score.low) else _minus(f"{score.low:z.2f} to {score.high:z.2f}")


def _minus(numbers: str) -> str:
    """Numbers whose minus signs are no hyphens in LaTeX."""
    return numbers.replace("-", "$-$")


def card_bibtex(protocol: Protocol = CURRENT) -> str:
    """The entry of a version of the scorecard for BibTeX, with its fingerprint.

    Args:
        protocol: the version.
    """
    pages = templates(FOLDER).overlay(**TEX)
    values = {
        "protocol": protocol,
        "version": version("clickgym"),
        "year": made_in(protocol),
        "url": f"{REPOSITORY}docs/scorecard.md",
    }
    return pages.get_template("card.bib").render(**values) + "\n"


def card_sentence(card: Played) -> str:
    """One sentence about an agent for a paper, with board, tasks, version and fingerprint."""
    protocol, place = card.protocol, card.place
    on = f" on the board “{card.board.name}”" if card.board is not None else ""
    quick = " over its quick tasks, which are a first look," if card.quick else ""
    number = f", place {place_text(place)} by a test with Holm’s correction" if place.number else ""
    setting = f", tuned to {card.tuning}," if card.tuning else ""
    return (
        f"In version {protocol.version} of the clickgym scorecard (protocol fingerprint {protocol.fingerprint}, clickgym "
        f"{version('clickgym')}),{quick} {card.agent}{setting} scores {card.standing.overall} overall{on}{number}, where 0 is "
        "what random lists lose and 1 the best known loss, on a logarithmic scale; "
        f"it plays {card.standing.n_tasks} of {card.n_due} tasks."
    )
