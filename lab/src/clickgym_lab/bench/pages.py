"""Scorecard and leaderboard as HTML pages that need no other file, and what is written in Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from clickgym.core.formats import amount, clock
from clickgym.core.templates import templates
from clickgym.runner.reports import picture

from .boards import MODELS, boards_notes, boards_tables, table_values
from .figures import card_figure
from .leaderboard import bad_text, cells_of, place_text, ratio_text
from .paper import card_bibtex, card_sentence, check_beside, leading
from .played import Played
from .protocol import CURRENT, Protocol
from .score import Estimate

FOLDER = Path(__file__).parent
END = 1.25
"""Where the axis of the bars ends."""


def scorecard_html(card: Played, beside: Sequence[str] | None = None) -> str:
    """The page of an agent: a bar for each ability, curves, comparisons, and the table of tasks, without a script.

    Args:
        card: of the agent.
        beside: names of lines whose curves are drawn, too; None takes those that lead its board.

    Raises:
        ValueError: there is no such line.
    """
    names = check_beside(beside, card.protocol)
    figure = card_figure(card, leading(card) if names is None else names)
    models = {name: Estimate(value, math.nan, math.nan) for name, value in card.standing.models.items()}
    return _render_card(
        "scorecard.html",
        card,
        abilities=[(name, card.protocol.columns()[name], each, _bar(each)) for name, each in card.standing.abilities.items()],
        models=[(name, each, _bar(each)) for name, each in models.items()],
        curves=picture(figure),
        one=100 / END,
        n_tasks=card.n_due,
        place=card.place,
        ratio=ratio_text(card.place),
        number=place_text(card.place),
        bad=bad_text(card.place),
    )


def scorecard_markdown(card: Played) -> str:
    """The card for a paper's appendix: summary, abilities, the line of the leaderboard, comparisons and tasks."""
    return _render_card("scorecard.md", card, line=cells_of(card.place, card.protocol, card.board))


def scorecard_summary(card: Played) -> list[str]:
    """Where an agent stands, where it is best and where worst, in sentences."""
    own, others = card.by_click_model()
    abilities = card.standing.abilities
    counted = [ability for ability in abilities if card.board is not None and ability in card.board.abilities]
    text = _render(
        "summary.md",
        card.protocol,
        card=card,
        own=own,
        others=others,
        order=sorted(counted, key=lambda ability: -abilities[ability].value),
        rows=sorted(card.of_tasks, key=lambda row: -row[-1]),
        ahead=sum(each.improvement.value > 0.5 for each in card.comparisons),
        n_tasks=card.n_due,
        quick_runs=card.protocol.quick_runs,
    )
    return text.strip("\n").split("\n")


def leaderboard_html(protocol: Protocol = CURRENT) -> str:
    """The page of the lines of the reference, to be sorted and filtered.

    Args:
        protocol: the version.
    """
    tables = boards_tables(protocol)
    return _render(
        "leaderboard.html",
        protocol,
        tables=tables,
        notes=boards_notes(protocol),
        models=MODELS,
        n_lines=len({place.agent for table in tables for place in table.places}),
        runs=protocol.runs,
        **table_values(),
    )


def _bar(score: Estimate) -> dict[str, float]:
    """Where a bar and its interval end, in percent of the axis."""
    value, low, high = (100 * min(max(end, 0.0), END) / END for end in score)
    return {"value": value, "low": low, "high": high, "known": low == low}


def _render_card(template: str, card: Played, **values: object) -> str:
    texts = {"summary": scorecard_summary(card), "sentence": card_sentence(card), "bibtex": card_bibtex(card.protocol)}
    return _render(template, card.protocol, card=card, **texts, **values)


def _render(template: str, protocol: Protocol, **values: object) -> str:
    pages = templates(FOLDER)
    pages.filters |= {"amount": amount, "clock": clock}
    shared = {
        "abilities": protocol.columns(),
        "how": protocol.how,
        "version": version("clickgym"),
        "protocol": protocol.version,
        "fingerprint": protocol.fingerprint,
    }
    return pages.get_template(template).render(**(shared | values)) + "\n"
