"""``clickgym move``: a store at another place, or of another agent."""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.console import compiling_told, errors, output
from ...core.terminal import say
from ...runner.commands.names import agents
from ..moving import move as move_

STORE = "a file, or [bold]postgresql://user@host/database?schema=clickgym[/]"


def move(
    old: Annotated[str, typer.Argument(
        metavar="OLD", show_default=False,
        help=f"The store of a Ranker: {STORE}. Stop the service first; OLD stays as it is.",
    )],
    new: Annotated[str, typer.Argument(
        metavar="NEW", show_default=False, help=f"The new store, {STORE}. There must be nothing yet.",
    )],
    agent: Annotated[str | None, typer.Option(
        "--agent", "-a", metavar="AGENT", autocompletion=agents, show_default="that of OLD, as it is",
        help="Another agent, which learns from the impressions of OLD, as [bold]MixTS[/] or your own [bold]module:Class[/]. "
        "Also the same one, if its code has changed since.",
    )] = None,
) -> None:  # fmt: skip
    """Move the store of a service: from SQLite to PostgreSQL, back, or to another agent.

    [bold]Examples[/]

      clickgym move ranker.db postgresql://me@db.example/shop

      clickgym move postgresql://me@db.example/shop ranker.db

      clickgym move ranker.db new.db --agent MixTS

    Items, queries, impressions, clicks, settings and the experiment (who showed what, credit, values) go along. The ids of
    impressions stay, so that clicks on lists that users still see count. Without --agent the agents are those of OLD. With it,
    the new agent learns from all lists of OLD as from lists of others; the report counts them, and the guard begins anew.

    A password comes from PGPASSWORD or the password file. NEW is written in one transaction.
    """
    with compiling_told(errors()):
        try:
            moved = move_(old, new, agent)
        except TypeError as error:  # of an argument that was typed
            raise ValueError(str(error)) from None
    say(
        output(),
        f"{moved.store}: {moved.impressions:,} impressions of {moved.queries:,} queries ({moved.open:,} open), "
        f"{moved.clicks:,} clicks; {moved.agent} {'as it was' if agent is None else 'has learned from them'}",
    )
