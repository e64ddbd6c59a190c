"""``clickgym decide``: from a click log to the list to show."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...core.console import errors, output
from ...core.terminal import Column, print_table, say
from ...envs import REWARDS
from ...runner.commands.run import number
from ...runner.progress import Progress
from ..decision.decide import AGENTS
from ..decision.decide import decide as decide_
from ..decision.page import write_decision
from .logs import LOG_FORMAT, Columns, Duplicates, MaxMemory, columns_of

__all__ = ["decide"]


def decide(
    context: typer.Context,
    log: Annotated[Path, typer.Argument(
        metavar="LOG", help="The click log, before the options; whatever [bold]clickgym fit[/] reads.", show_default=False,
    )],
    out: Annotated[Path, typer.Option(
        metavar="DIR", help="Folder of the page, [bold]decision.html[/], and what it rests on; made if need be.",
    )],
    query: Annotated[str | None, typer.Option(
        metavar="NAME", help="The query to decide.", show_default="the most frequent",
    )] = None,
    agents: Annotated[list[str] | None, typer.Option(
        "--agents", "-a", metavar="AGENT...", help="The agents to compare, as for [bold]clickgym run[/].",
        show_default="BatchRank TopRank BubbleRank CascadeKLUCB EpsilonGreedy",
    )] = None,
    horizon: Annotated[str, typer.Option(
        metavar="T", help="Sessions per run of an agent, as [bold]100000[/] or [bold]1e5[/].",
    )] = "1e5",
    runs: Annotated[int, typer.Option(metavar="N", help="Runs per agent.")] = 5,
    reward: Annotated[str, typer.Option(
        metavar="|".join(REWARDS), help="What a list earns: its clicks, 1 for any, or 1 for a satisfied user.",
    )] = "clicks",
    cutoff: Annotated[int | None, typer.Option(
        metavar="N", help="Count only the first N positions.", show_default="all",
    )] = None,
    log_format: Annotated[str, typer.Option(
        "--format", metavar=LOG_FORMAT, help="As for [bold]clickgym fit[/].",
    )] = "auto",
    columns: Columns = "",
    duplicates: Duplicates = "refuse",
    max_memory: MaxMemory = "4GB",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same decision.")] = 0,
) -> None:  # fmt: skip
    """Decide which list to show for a query, what it would gain, and what speaks against it.

    Click models are fitted to a part of the log; agents learn to rank for the best of them; the held-out sessions say what the
    list of the best agent would have earned, by several estimators, which are tried on logged lists. Where the log does not
    show what the list does, nothing is recommended.

    [bold]Examples[/]

      clickgym decide log.csv --query shoes --out results/shoes

    The first five positions, and a click anywhere among them:

      clickgym decide log.csv --query shoes --cutoff 5 --reward any_click --out results/shoes
    """
    progress = context.obj = Progress(errors())
    with progress:
        decision = decide_(
            log, query, agents=agents or AGENTS, horizon=number(horizon), runs=runs, reward=reward, cutoff=cutoff, seed=seed,
            out=out, log_format=log_format, columns=columns_of(columns), duplicates=duplicates, max_memory=max_memory,
            callback=progress, on_step=partial(say, errors()),
        )  # fmt: skip
    files = write_decision(decision, out)
    console = output()
    say(console, f"{decision.headline} (query {decision.query})", "bold")
    for sentence in decision.summary:
        say(console, sentence)
    if decision.recommended is not None:
        say(console, f"List: {', '.join(decision.recommended)}")
    if decision.against:
        console.print()
        headed = [Column("speaks against it"), Column("why", words=True)]
        title = "What else to know" if decision.verdict == "unknown" else "What speaks against it"
        print_table(console, headed, [*decision.against.items()], headings=False, title=title)
        console.print()
    say(console, f"In {out}: {', '.join(file.name for file in files)}")
