"""``clickgym list``: what there is to run."""

from __future__ import annotations

from collections.abc import Sequence
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
from .console import bold, output

__all__ = ["list_"]

KINDS = ("environments", "instances", "agents", "metrics", "studies")


def list_(
    what: Annotated[str, typer.Argument(
        metavar="KIND", show_default=False,
        help=f"Only {', '.join(map(bold, KINDS[:-1]))} or {bold(KINDS[-1])}; by default all.",
    )] = "",
) -> None:  # fmt: skip
    """What there is to run: environments, instances, agents, metrics and studies.

    [bold]clickgym show NAME[/] tells more of each.
    """
    if what not in ["", *KINDS]:
        raise ValueError(unknown("kind", what, KINDS))
    console = output()
    if what in ("", "environments"):
        rows = [(name, environment.about) for name, environment in (ENVIRONMENTS | CONTEXTUAL).items()]
        _print(console, "Environments, by their users", ["users"], rows)
    if what in ("", "instances"):
        _print(console, "Instances (--instance)", ["description"], list(list_instances().items()))
    if what in ("", "agents"):
        ranks: dict[str, Any] = {**AGENTS, **CONTEXTUAL_AGENTS, **LEARNERS}
        told = {name: ", ".join(getattr(agent, "told", {})) for name, agent in ranks.items()}
        _print(console, "Agents (--agents)", ["paper", "click models", "what it is told"], [
            (name, agent.paper, f"for {agent.click_models}", f"is told {told[name]}" if told[name] else "")
            for name, agent in ranks.items()
        ])  # fmt: skip
    if what in ("", "metrics"):
        described = [describe_metric(name) for name in METRICS | DERIVED]
        _print(console, "Metrics (--metrics)", ["what it measures"], [(metric.name, metric.about) for metric in described])
    if what in ("", "studies"):
        from ..studies import STUDIES

        studies = [(name, study.title, study.paper) for name, study in STUDIES.items()]
        _print(console, "Studies", ["title", "paper"], studies)


def _print(console: Console, title: str, about: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    columns = [Column("name"), *(Column(name, rank=rank, words=True) for rank, name in enumerate(about))]
    print_table(console, columns, [(Text(row[0], "bold"), *row[1:]) for row in rows], title=title, headings=False)
    console.print()
