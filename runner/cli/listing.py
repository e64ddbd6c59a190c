"""``clickgym list``: what there is to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ...envs.checks import unknown
from ..catalogue import list_agents, list_environments, list_instances
from .console import bold, output

__all__ = ["list_"]

KINDS = ("environments", "instances", "agents", "studies")


def list_(
    what: Annotated[str, typer.Argument(
        metavar="KIND", show_default=False,
        help=f"Only {', '.join(map(bold, KINDS[:-1]))} or {bold(KINDS[-1])}; by default all.",
    )] = "",
) -> None:  # fmt: skip
    """What there is to run: environments, instances, agents and studies, one line each.

    The parameters of an environment are on its documentation page, those of an agent in its docstring:
    [bold]python -c "import clickgym; help(clickgym.agents.BatchRank)"[/]
    """
    if what not in ["", *KINDS]:
        raise ValueError(unknown("kind", what, KINDS))
    console = output()
    if what in ("", "environments"):
        _print_rows(console, "Environments, by their users", list(list_environments().items()))
    if what in ("", "instances"):
        _print_rows(console, "Instances (--instance)", list(list_instances().items()))
    if what in ("", "agents"):
        _print_rows(console, "Agents (--agents)", [
            (agent["name"], agent["paper"], f"for {agent['models']}", f"is told {agent['told']}" if agent["told"] else "")
            for agent in list_agents().rows
        ])  # fmt: skip
    if what in ("", "studies"):
        from ..studies import STUDIES

        _print_rows(console, "Studies", [(name, study.title, study.paper) for name, study in STUDIES.items()])


def _print_rows(console: Console, title: str, rows: Sequence[Sequence[str]]) -> None:
    table = Table.grid(padding=(0, 2))
    for column in range(len(rows[0])):
        # On a terminal one line each is worth more than the end of the longest lines.
        table.add_column(no_wrap=True, overflow="ellipsis", style="bold" if column == 0 else None)
    for row in rows:
        table.add_row(*row)
    console.print(f"[bold underline]{title}[/]")
    console.print(table, highlight=False)
    console.print()
