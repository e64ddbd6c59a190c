"""``clickgym report``: table, figure and pages of finished results."""

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
            help="Folder of a finished [bold]clickgym run[/].",
            show_default=False,
        ),
    ],
    html: Annotated[
        bool,
        typer.Option(
            "--html", help="Write [bold]report.html[/], an interactive page with curves and tables."
        ),
    ] = False,
    pdf: Pdf = False,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agents",
            "-a",
            metavar="AGENT...",
            show_default="all",
            help="Only these agents, in this order.",
        ),
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--environments",
            "-e",
            metavar="ENV...",
            show_default="all",
            help="Only these environments, in this order.",
        ),
    ] = None,
    per_instance: Annotated[
        bool,
        typer.Option(
            "--per-instance",
            help="Write a table and a panel for each instance instead of means over instances.",
        ),
    ] = False,
    log: Annotated[bool, typer.Option("--log/--linear", help="Logarithmic or linear axes.")] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default="that of the results",
            help="Folder of the files; created if missing.",
        ),
    ] = None,
) -> None:
    """Write the table, the figure and a page of the results in a folder.

    [bold]Examples[/]

    A page for the browser, and a figure for a paper, written into the same folder:

      clickgym report results/first --html --pdf

    Two agents in one environment, on linear axes, written into another folder:

      clickgym report results/first --agents BatchRank TopRank --environments CMRank-v0 --linear
      --out figures
    """
    write_report(
        folder,
        output(),
        html=html,
        agents=agents,
        environments=environments,
        per_instance=per_instance,
        log=log,
        out=out,
        pdf=pdf,
    )
