"""``clickgym show``: what there is to know of an instance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...envs import load_instance
from ..theory.assumptions import Finding

__all__ = ["show"]


def show(
    instance: Annotated[str, typer.Argument(
        metavar="INSTANCE", show_default=False,
        help="A name that [bold]clickgym list instances[/] gives, or a JSON file of your own.",
    )],
    positions: Annotated[int | None, typer.Option(
        metavar="K", help="Positions of a list.", show_default="the instance's",
    )] = None,
) -> None:  # fmt: skip
    """Describe an instance: its click models, their best lists, and which assumptions of the papers hold.

    [bold]Examples[/]

      clickgym show yandex-990

      clickgym show uniform:n_items=20,n_positions=5,seed=1 --positions 3

    BatchRank is proved to learn under the assumptions of Zoghi 2017, TopRank and BubbleRank under those of Li 2019a. Where one
    fails, the lists that show it are named; there an algorithm may learn another list than the best.
    """
    from ..theory.describe import describe_instance

    description = describe_instance(load_instance(instance), positions)
    chosen, labels, console = description.instance, description.labels, Console(highlight=False)
    console.print(Text(chosen.name, "bold"))
    facts = {
        "about": chosen.description,
        "origin": chosen.origin,
        "sizes": f"{chosen.n_items} items, {description.n_positions} positions",
        "labels": _items(range(chosen.n_items), labels) if labels else "",
        "in production": "" if chosen.initial_ranking is None else _items(chosen.initial_ranking),
    }
    _print_grid(console, [(name, text) for name, text in facts.items() if text])
    for model in description.models:
        console.print()
        console.print(Text(model.kind, "bold underline"))
        _print_grid(console, list(model.parameters.items()))
        if model.best:
            rows = [
                (
                    best.reward,
                    "?" if best.ranking is None else f"{best.value:.4f}",
                    *([] if best.production is None else [f"{best.production:.4f}"]),
                    best.note if best.ranking is None else _items(best.ranking, labels),
                )
                for best in model.best
            ]
            current = [] if chosen.initial_ranking is None else ["in production"]
            _print_grid(console, rows, "reward", "best", *current, "best list")
        if model.note:
            console.print(Padding(Text(model.note), (1, 0, 0, 2)))
        if model.findings:
            _print_grid(console, _verdicts(model.findings), "assumption", "", "statement, and where it fails most")


def _verdicts(findings: Iterable[Finding]) -> list[tuple[str, Text, Text]]:
    """What was found, in one row what both papers assume."""
    names: dict[str, list[str]] = {}
    by_statement = {finding.statement: finding for finding in findings}
    for finding in findings:
        names.setdefault(finding.statement, []).append(finding.name)
    return [
        (
            "\n".join(names[statement]),
            Text("holds", "green") if finding.holds else Text("FAILS", "bold red"),
            Text(statement).append("" if finding.holds else f"\n{_two_lines(finding.counterexample)}", "italic"),
        )
        for statement, finding in by_statement.items()
    ]


def _two_lines(counterexample: str) -> str:
    """Its two numbers one below the other, and no line end within a list."""
    return re.sub(r"(?<=\d), (?=\d)", ",", counterexample).replace(" but ", "\nbut ")


def _items(items: Iterable[int], labels: Sequence[str] = ()) -> str:
    return ", ".join(f"{item} ({labels[item]})" for item in items) if labels else " ".join(map(str, items))


def _print_grid(console: Console, rows: Sequence[Sequence[str | Text]], *headings: str) -> None:
    """Print columns of which the last folds, and under headings what is apart from what stands above."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=bool(headings), header_style="dim")
    for column in range(len(rows[0])):
        last = column == len(rows[0]) - 1
        table.add_column(headings[column] if headings else "", no_wrap=not last, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console.print(Padding(table, (int(bool(headings)), 0, 0, 2)))
