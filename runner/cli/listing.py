"""``clickgym list``: what there is to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ...agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS
from ...envs import CONTEXTUAL, ENVIRONMENTS, list_instances
from ...envs.checks import unknown
from ..describe import describe_metric
from ..metrics import DERIVED, METRICS
from ..reports.terminal import Column, print_table
from .console import Json, bold, output, print_json

__all__ = ["list_"]


def _agents() -> list[dict[str, Any]]:
    ranks: dict[str, Any] = {**AGENTS, **CONTEXTUAL_AGENTS, **LEARNERS}
    return [
        {
            "name": name,
            "paper": agent.paper,
            "click_models": agent.click_models,
            "told": list(getattr(agent, "told", {})),
        }
        for name, agent in ranks.items()
    ]


def _studies() -> list[dict[str, Any]]:
    from ..studies import STUDIES

    return [{"name": name, "title": study.title, "paper": study.paper} for name, study in STUDIES.items()]


_ROWS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "environments": lambda: [{"name": name, "users": env.about} for name, env in (ENVIRONMENTS | CONTEXTUAL).items()],
    "instances": lambda: [{"name": name, "description": text} for name, text in list_instances().items()],
    "agents": _agents,
    "metrics": lambda: [{"name": name, "measures": describe_metric(name).about} for name in METRICS | DERIVED],
    "studies": _studies,
}
_TITLES = {
    "environments": ("Environments, by their users", ["users"]),
    "instances": ("Instances (--instance)", ["description"]),
    "agents": ("Agents (--agents)", ["paper", "click models", "what it is told"]),
    "metrics": ("Metrics (--metrics)", ["what it measures"]),
    "studies": ("Studies", ["title", "paper"]),
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
        title, headings = _TITLES[kind]
        _print(console, title, headings, [list(map(_in_words, row.items())) for row in rows])


def _in_words(entry: tuple[str, Any]) -> str:
    key, value = entry
    if key == "told":
        return f"is told {', '.join(value)}" if value else ""
    return f"for {value}" if key == "click_models" else str(value)


def _print(console: Console, title: str, about: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    columns = [Column("name"), *(Column(name, rank=rank, words=True) for rank, name in enumerate(about))]
    print_table(console, columns, [(Text(row[0], "bold"), *row[1:]) for row in rows], title=title, headings=False)
    console.print()
