"""``clickgym list``: what there is to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ...core.checks import unknown
from ...core.console import Json, bold, output, print_json
from ...core.terminal import Column, print_table
from ...runner.catalogue import Row, list_agents, list_environments, list_instances, list_metrics
from ..studies import STUDIES

__all__ = ["list_"]


def _studies() -> list[Row]:
    return [{"name": name, "about": study.title, "paper": study.paper} for name, study in STUDIES.items()]


_ROWS: Mapping[str, Callable[[], Sequence[Row]]] = {
    "environments": lambda: list_environments().rows,
    "instances": lambda: list_instances().rows,
    "agents": lambda: list_agents().rows,
    "metrics": lambda: list_metrics().rows,
    "studies": _studies,
}
# What is shown of each beside its name, the most important first, with what it is called where it has no room.
_SHOWN = {
    "environments": ("Environments, by their users", {"about": "users"}),
    "instances": ("Instances (--instance)", {"about": "description"}),
    "agents": ("Agents (--agents)", {"paper": "paper", "click_models": "click models", "told": "what it is told"}),
    "metrics": ("Metrics (--metrics)", {"about": "what it measures"}),
    "studies": ("Studies", {"about": "title", "paper": "paper"}),
}
KINDS = tuple(_ROWS)


def list_(
    what: Annotated[str, typer.Argument(
        metavar="KIND", show_default=False,
        help=f"Only {', '.join(map(bold, KINDS[:-1]))} or {bold(KINDS[-1])}; by default all.",
    )] = "",
    as_json: Json = False,
) -> None:  # fmt: skip
    """What there is to run: environments, instances, agents, metrics and studies.

    [bold]clickgym show NAME[/] tells more of each.
    """
    if what not in ["", *KINDS]:
        raise ValueError(unknown("kind", what, KINDS))
    there = {kind: rows() for kind, rows in _ROWS.items() if what in ("", kind)}
    if as_json:
        print_json(there)
        return
    console = output()
    for kind, rows in there.items():
        title, shown = _SHOWN[kind]
        _print(console, title, list(shown.values()), [[row["name"], *(_in_words(row, key) for key in shown)] for row in rows])


def _in_words(row: Row, key: str) -> str:
    if key == "told":
        return f"is told {row[key]}" if row[key] else ""
    return f"for {row[key]}" if key == "click_models" else row[key]


def _print(console: Console, title: str, about: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    columns = [Column("name"), *(Column(name, rank=rank, words=True) for rank, name in enumerate(about))]
    print_table(console, columns, [(Text(row[0], "bold"), *row[1:]) for row in rows], title=title, headings=False)
    console.print()
