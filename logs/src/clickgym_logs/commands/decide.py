"""``clickgym decide``: from a click log to the list to show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from clickgym.core.console import compiling_told, errors, output
from clickgym.core.terminal import Column, print_table, say

from ..decide import LEVEL, UNITS, Decision, decide_all, write_decisions
from ..decide import decide as decide_
from ..readers import read_log
from .logs import Columns, Cutoff, Log, names


def decide(
    log: Log,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder of the page, [bold]decisions.html[/], and of its data; created if missing.",
        ),
    ],
    query: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The query to decide.",
            show_default="the most frequent",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Decide the N most frequent queries; the level is corrected for their number.",
            show_default=False,
        ),
    ] = None,
    reward: Annotated[
        str,
        typer.Option(
            metavar="|".join(UNITS),
            help="Reward of a session: its number of clicks, or 1 for at least one click.",
        ),
    ] = "clicks",
    cutoff: Cutoff = None,
    level: Annotated[
        float,
        typer.Option(
            metavar="P",
            help="The highest probability of recommending a list that is no better; below 0.5.",
        ),
    ] = LEVEL,
    columns: Columns = "",
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of the sessions held out to choose a click model.")
    ] = 0,
) -> None:
    """Recommend a list for a query of a click log, if one was measured to be better.

    A list is better if the log shows it often and it earned more than the production list in the
    same blocks of time. A click model only proposes a list, with the length of the A/B test that
    would settle it.

    [bold]Examples[/]

      clickgym decide log.csv --query shoes --out results/shoes

    Only the first five positions; the reward is 1 for at least one click:

      clickgym decide log.csv --query shoes --cutoff 5 --reward any_click --out results/shoes

      clickgym decide log.csv --top 50 --out results/queries
    """
    if query is not None and top is not None:
        raise ValueError(f"--query {query} cannot be given with --top; expected one of them")
    settings: dict[str, Any] = {"reward": reward, "cutoff": cutoff, "level": level, "seed": seed}
    with compiling_told(errors()):
        sessions = read_log(log, columns=names(columns))
        decisions = (
            [decide_(sessions, query, **settings)]
            if top is None
            else decide_all(sessions, top, **settings)
        )
    files = write_decisions(decisions, out)
    console = output()
    if top is None:
        _print(decisions[0])
    else:
        rows = [
            (each.query, f"{each.n_sessions:,}", each.verdict, ", ".join(each.recommended or ()))
            for each in decisions
        ]
        heads = [Column("query"), Column("sessions", right=True), Column("verdict"), Column("list")]
        print_table(console, heads, rows)
    say(console, f"In {out}: {', '.join(file.name for file in files)}")


def _print(decision: Decision) -> None:
    console = output()
    say(
        console,
        f"{decision.sentence} (query {decision.query}, {decision.n_sessions:,} sessions)",
        "bold",
    )
    say(console, f"Production: {', '.join(decision.production)}")
    if decision.measured:
        rows = []
        for each in decision.measured:
            low, high = each.interval
            figures = f"{each.difference:+.4f}", f"{low:+.4f} to {high:+.4f}", f"{each.p_value:.2g}"
            rows.append((f"{each.sessions:,}", *figures, ", ".join(each.labels)))
        heads = [Column(name, right=True) for name in ("sessions", "gain", "interval", "p")]
        print_table(console, [*heads, Column("list")], rows)
    if decision.refused:
        say(
            console,
            f"{len(decision.refused)} lists cannot be compared: the lists changed with time",
        )
    if (proposed := decision.proposal) is not None:
        say(
            console,
            f"The click model {proposed.model} proposes {', '.join(proposed.labels)} ({proposed.gain:+.4f}); an A/B test of "
            f"{proposed.sessions:,} sessions would settle it",
        )
