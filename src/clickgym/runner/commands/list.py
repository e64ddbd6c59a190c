"""``clickgym list``, which prints all environments, instances, agents and metrics."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ...agents import AGENTS
from ...core.checks import check_choice
from ...envs import ENVIRONMENTS, list_instances
from ...measure.metrics import METRICS
from ..console import Column, output_console, print_table

WIDEST = 100
"""The largest width of a line in characters, even if the output is a file or a pipe."""
KINDS = ("environments", "instances", "agents", "metrics")


def list_(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KIND", help=f"What to list: {', '.join(KINDS)}. By default, list all of them."
        ),
    ] = None,
) -> None:
    """List the environments, instances, agents and metrics.

    \b
    clickgym list agents
    clickgym list

    To read about one name in detail, run clickgym show NAME.
    """
    kind_names = [_kind(word) for word in kinds or KINDS]
    console = output_console()
    console.width = min(console.width, WIDEST)
    for kind in kind_names:
        columns, rows = _rows_of(kind)
        print_table(console, columns, rows, title=kind.capitalize(), headings=len(columns) > 2)
        console.print()


def _kind(word: str) -> str:
    """Return the entry of `KINDS` that starts with a word, such as ``env``, ``envs`` or
    ``environment``.
    """
    beginning = word.removesuffix("s")
    return next((kind for kind in KINDS if kind.startswith(beginning)), "") or check_choice(
        "kind", word, KINDS
    )


def _rows_of(kind: str) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("name"), Column("about")]
    if kind == "environments":
        return columns, [[name, environment.about] for name, environment in ENVIRONMENTS.items()]
    if kind == "instances":
        return columns, [[name, about] for name, about in list_instances().items()]
    if kind == "metrics":
        return columns, [[name, metric.description] for name, metric in METRICS.items()]
    columns = [Column(name) for name in ("name", "made for", "requires", "paper")]
    agents: dict[str, Any] = {**AGENTS}
    return columns, [
        [name, agent.click_models, ", ".join(agent.requires) or "–", agent.paper]
        for name, agent in agents.items()
    ]
