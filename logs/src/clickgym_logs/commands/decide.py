"""``clickgym decide``: from a click log to the list to show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from clickgym.runner.console import announce_compiling, errors, output
from clickgym.runner.terminal import Column, print_table, say

from ..decide import LEVEL, decide_all
from ..decide import decide as decide_
from ..decision_table import WORDS, view_of_queries, view_of_query
from ..names import csv_fields, csv_line
from ..page import write_decisions
from ..readers import read_log
from .logs import Columns, Cutoff, Log, Reward, names


def decide(
    log: Log,
    query: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The query.",
            show_default="the most frequent; of an experiment, all together",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="All queries, in the order of what to do next; the level is corrected for them.",
        ),
    ] = False,
    production: Annotated[
        str | None,
        typer.Option(
            metavar="ITEM,...",
            help="The list in production; of an experiment, the arm.",
            show_default="the most frequent of the last twentieth, or of the last 200 sessions; "
            "the first arm by name",
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
) -> None:
    """Find out whether another list is better than the one in production.

    A list is better if it earned significantly more clicks than the production list, side by side
    with it. So the log needs its times. If no list is better, the most promising one is named, with
    the length of the A/B test that proves its expected gain.

    With a column user, errors are clustered by user. With a column arm, the arms of an experiment
    are compared, as a whole and by query; dates are enough then.

    \b
    clickgym decide log.csv --query shoes --out results/shoes

    \b
    clickgym decide log.csv --query shoes --production a,c,b --cutoff 5 \\
        --reward any_click

    \b
    clickgym decide log.csv --all --out results/queries
    """
    if every and query is not None:
        raise ValueError("--all decides every query; expected no --query")
    settings: dict[str, Any] = {"reward": reward, "cutoff": cutoff, "level": level}
    with announce_compiling(errors()):
        sessions = read_log(log, columns=names(columns))
        today = None if production is None else csv_fields(production)
        if every:
            decisions = decide_all(sessions, production=today, **settings)
        else:
            decisions = [decide_(sessions, query, production=today, **settings)]
    files = [] if out is None else write_decisions(decisions, out)
    console = output()
    view = view_of_queries(decisions) if every else view_of_query(decisions[0])
    say(console, view.sentence, "bold")
    heads = [
        Column(head, rank, right=head not in WORDS, words=not every and head in WORDS)
        for head, rank in view.heads.items()
    ]
    cells = [
        [cell if isinstance(cell, str) else csv_line(cell) for cell in row] for row in view.rows
    ]
    print_table(console, heads, cells, title=view.title)
    for sentence in view.notes:
        say(console, sentence)
    if files:
        say(console, f"In {out}: {', '.join(file.name for file in files)}")
