"""``clickgym list``: what there is to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from ...core.checks import unknown
from ...core.console import Json, bold, output, print_json
from ...core.terminal import Column, print_table
from ...runner.catalogue import Row, list_agents, list_environments, list_instances, list_metrics
from ..studies import STUDIES

__all__ = ["list_"]


class _Kind(NamedTuple):
    """What `clickgym list` prints of a kind: its rows, a title, and the columns beside the name with what each is called, the
    most important first."""

    rows: Callable[[], Sequence[Row]]
    title: str
    columns: Mapping[str, str]


def _studies() -> list[Row]:
    return [{"name": name, "about": study.title, "paper": study.paper} for name, study in STUDIES.items()]


_AGENTS = {"paper": "paper", "click_models": "click models", "told": "what it is told"}
_KINDS = {
    "environments": _Kind(lambda: list_environments().rows, "Environments, by their users", {"about": "users"}),
    "instances": _Kind(lambda: list_instances().rows, "Instances (--instance)", {"about": "description"}),
    "agents": _Kind(lambda: list_agents().rows, "Agents (--agents)", _AGENTS),
    "metrics": _Kind(lambda: list_metrics().rows, "Metrics (--metrics)", {"about": "what it measures"}),
    "studies": _Kind(_studies, "Studies", {"about": "title", "paper": "paper"}),
}
KINDS = tuple(_KINDS)


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
    rows = {kind: each.rows() for kind, each in _KINDS.items() if what in ("", kind)}
    if as_json:
        print_json(rows)
        return
    console = output()
    for kind in rows:
        _print(console, _KINDS[kind], rows[kind])


def _in_words(row: Row, key: str) -> str:
    if key == "told":
        return f"is told {row[key]}" if row[key] else ""
    return f"for {row[key]}" if key == "click_models" else row[key]


def _print(console: Console, kind: _Kind, rows: Sequence[Row]) -> None:
    columns = [Column("name"), *(Column(name, rank=rank, words=True) for rank, name in enumerate(kind.columns.values()))]
    cells: list[list[str | Text]] = []
    for row in rows:
        cells.append([Text(row["name"], "bold"), *(_in_words(row, key) for key in kind.columns)])
    print_table(console, columns, cells, title=kind.title, headings=False)
    console.print()
