"""``clickgym list``: the names of environments, instances, agents and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from ...core.checks import unknown
from ...core.console import Json, bold, output, print_json
from ...core.terminal import Column, print_table
from ..catalogue import Row, list_agents, list_environments, list_instances, list_metrics


class _Kind(NamedTuple):
    """What `clickgym list` prints of a kind: its rows, a title, the columns beside the name with
    what each is called, the most important first, and what sets rows apart.
    """

    rows: Callable[[], Sequence[Row]]
    title: str
    columns: Mapping[str, str]
    group: str = ""


_AGENTS = {"click_models": "made for", "paper": "paper", "requires": "requires"}
_KINDS = {
    "environments": _Kind(
        lambda: list_environments().rows, "Environments, by their users", {"about": "users"}
    ),
    "instances": _Kind(
        lambda: list_instances().rows, "Instances (--instance)", {"about": "description"}
    ),
    "agents": _Kind(
        lambda: list_agents().rows, "Agents (--agents), by what they need", _AGENTS, group="needs"
    ),
    "metrics": _Kind(
        lambda: list_metrics().rows, "Metrics (--metrics)", {"about": "what it measures"}
    ),
}
KINDS = tuple(_KINDS)


def list_(
    what: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            show_default=False,
            help=f"List only {', '.join(map(bold, KINDS[:-1]))} or {bold(KINDS[-1])}; by default all.",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """List the environments, instances, agents and metrics.

    [bold]clickgym show NAME[/] describes one of them in detail. Agents are grouped by what they
    need besides clicks.
    """
    if what not in ["", *KINDS]:
        raise ValueError(unknown("kind", what, KINDS))
    wanted = [what] if what else KINDS
    rows = {kind: _KINDS[kind].rows() for kind in wanted}
    if as_json:
        print_json(rows)
        return
    console = output()
    for kind in rows:
        _print(console, _KINDS[kind], rows[kind])


def _print(console: Console, kind: _Kind, rows: Sequence[Row]) -> None:
    columns = [
        Column("name"),
        *(Column(name, rank=rank, words=True) for rank, name in enumerate(kind.columns.values())),
    ]
    cells: list[list[str | Text]] = [
        [Text(row["name"], "bold"), *(row[key] for key in kind.columns)] for row in rows
    ]
    if not kind.group:
        print_table(console, columns, cells, title=kind.title, headings=False)
    else:
        named = [
            [f"{kind.group} {row[kind.group]}", *own] for row, own in zip(rows, cells, strict=True)
        ]
        print_table(console, [Column(kind.group), *columns], named, title=kind.title, groups=True)
    console.print()
