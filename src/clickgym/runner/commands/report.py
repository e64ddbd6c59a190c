"""``clickgym report``: table, figure and page of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import Pdf, output
from ..reports.report import write_report


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="Folder of a clickgym run or sweep, finished or not.",
        ),
    ],
    html: Annotated[
        bool, typer.Option("--html", help="Write report.html, a page with figure and tables.")
    ] = False,
    pdf: Pdf = False,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agents",
            "-a",
            metavar="AGENT...",
            help="Only these agents, in this order; files are written only with --out.",
        ),
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--environments",
            "-e",
            metavar="ENV...",
            help="Only these environments, in this order; files are written only with --out.",
        ),
    ] = None,
    per_instance: Annotated[
        bool,
        typer.Option(
            "--per-instance",
            help="A table and a panel for each instance, instead of means over instances.",
        ),
    ] = False,
    log: Annotated[bool, typer.Option("--log/--linear", help="Logarithmic or linear axes.")] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the files, created if missing; by default that of the results.",
        ),
    ] = None,
) -> None:
    """Print the table of the results in a folder, and write their figure.

    \b
    clickgym report results/first --html --pdf
    clickgym report results/first --agents BatchRank TopRank --out figures
    """
    write_report(
        folder,
        output(),
        html=html,
        pdf=pdf,
        agents=agents,
        environments=environments,
        per_instance=per_instance,
        log=log,
        out=out,
    )
