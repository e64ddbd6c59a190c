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

COMPARED, RESULTS = "What to compare", "Results"
"""The sections of the help text."""


def decide(
    log: Log,
    query: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=COMPARED,
            metavar="NAME",
            help="Compare the lists of this query.",
            show_default="the most frequent; of an experiment, all together",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            rich_help_panel=COMPARED,
            help="Decide every query. The table begins with the query to test first, and the level "
            "holds for all queries together.",
        ),
    ] = False,
    production: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=COMPARED,
            metavar="ITEM,...",
            help="The list that you show today. In an experiment it is an arm.",
            show_default="the most frequent list of the latest sessions; the first arm by name",
        ),
    ] = None,
    reward: Reward = "clicks",
    cutoff: Cutoff = None,
    level: Annotated[
        float,
        typer.Option(
            rich_help_panel=RESULTS,
            metavar="P",
            help="How often decide may call a list better that is not, at most.",
        ),
    ] = LEVEL,
    columns: Columns = "",
    out: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=RESULTS,
            metavar="DIR",
            help="Write the page decisions.html and its data into this folder.",
            show_default="none is written",
        ),
    ] = None,
) -> None:
    """Find out whether another list is better than today's.

    Every query of your log, and a page that shows the lists:

    clickgym decide log.csv --all --out results/queries

    One query, with all its lists:

    clickgym decide log.csv --query shoes --out results/shoes

    Another production list, the first five positions, and sessions with a click:

    \b
    clickgym decide log.csv --query shoes --production a,c,b --cutoff 5 \\
        --reward any_click

    A list is better if it earned significantly more clicks than the production list at the same
    times. So the log needs times to the second. If no list is proved better, the command names the
    most promising one, and how long an A/B test must last to prove its gain.

    Give the log a column user if your users come back: errors are then by user. If you ran an
    experiment, give it a column arm. Then the command compares arms, and dates are enough
    if no share changed within a day.
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
