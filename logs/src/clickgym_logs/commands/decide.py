"""``clickgym decide``: from a click log to the list to show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from clickgym.core.console import announce_compiling, errors, output
from clickgym.core.terminal import Column, print_table, say

from ..decide import LEVEL, Decision, decide_all
from ..decide import decide as decide_
from ..names import csv_fields, csv_line
from ..page import MOST_ROWS, figures, not_shown, proposal_sentence, write_decisions
from ..readers import read_log
from .logs import Columns, Cutoff, Log, Reward, Seed, names


def decide(
    log: Log,
    query: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The query.", show_default="the most frequent"),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="All queries, as a table; the level is corrected for them."),
    ] = False,
    production: Annotated[
        str | None,
        typer.Option(
            metavar="ITEM,...",
            help="The list in production.",
            show_default="the most frequent of the last twentieth, or of the last 200 sessions",
        ),
    ] = None,
    reward: Reward = "clicks",
    cutoff: Cutoff = None,
    level: Annotated[
        float,
        typer.Option(
            metavar="P", help="The highest probability that a list is called better and is not."
        ),
    ] = LEVEL,
    columns: Columns = "",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the page, decisions.html, and of its data.",
            show_default="none is written",
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Decide which list to show for a query of a click log, if one was measured to be better.

    A list is better if it earned significantly more than today's production list, side by side with
    it, and still does. So the log needs its times. A click model only proposes a list, with the
    length of the A/B test that would settle it.

    \b
    clickgym decide log.csv --query shoes --out results/shoes

    \b
    clickgym decide log.csv --query shoes --production a,c,b --cutoff 5 \\
        --reward any_click

    \b
    clickgym decide log.csv --all --out results/queries
    """
    if every and (query is not None or production is not None):
        raise ValueError("--all decides every query; expected no --query and no --production")
    settings: dict[str, Any] = {"reward": reward, "cutoff": cutoff, "level": level}
    with announce_compiling(errors()):
        sessions = read_log(log, columns=names(columns))
        if every:
            decisions = decide_all(sessions, **settings)
        else:
            today = None if production is None else csv_fields(production)
            decisions = [decide_(sessions, query, production=today, seed=seed, **settings)]
    files = [] if out is None else write_decisions(decisions, out)
    if every:
        _print_all(decisions)
    else:
        _print(decisions[0])
    if files:
        say(output(), f"In {out}: {', '.join(file.name for file in files)}")


def _print_all(decisions: list[Decision]) -> None:
    rows = [
        (
            decision.query,
            f"{decision.n_sessions:,}",
            decision.verdict,
            csv_line(decision.recommended or decision.production),
        )
        for decision in decisions
    ]
    heads = [Column("query"), Column("sessions", right=True), Column("verdict"), Column("list")]
    print_table(output(), heads, rows)


def _print(decision: Decision) -> None:
    console = output()
    say(console, decision.sentence, "bold")
    rows: list[tuple[str, ...]] = [
        (f"{decision.n_production:,}", "in production", "", "", "", csv_line(decision.production))
    ]
    rows += [
        (f"{entry.sessions:,}", *figures(decision, entry), csv_line(entry.labels))
        for entry in decision.measured[:MOST_ROWS]
    ]
    numbers = [Column(name, right=True) for name in ("gain", "interval", "p")]
    heads = [Column("sessions", right=True), Column("verdict"), *numbers, Column("list")]
    print_table(console, heads, rows, title=f"{decision.query}: {decision.n_sessions:,} sessions")
    for sentence in (not_shown(decision), proposal_sentence(decision), *decision.cautions):
        if sentence:
            say(console, sentence)
