"""``clickgym report``: table, figure and pages of finished results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import Json, Pdf, output, print_json
from ..reports.document import results_document
from ..reports.report import Format, write_report


def report(
    folder: Annotated[Path, typer.Argument(
        metavar="DIR", help="Folder of a finished [bold]clickgym run[/].", show_default=False,
    )],
    html: Annotated[bool, typer.Option("--html", help="Write [bold]report.html[/], an interactive page with curves and "
    "tables.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write the table as [bold]report.md[/].")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Write the table as [bold]report.tex[/], for the LaTeX package "
    "booktabs.")] = False,
    pdf: Pdf = False,
    agents: Annotated[list[str] | None, typer.Option(
        "--agents", "-a", metavar="AGENT...", show_default="all", help="Only these agents, in this order.",
    )] = None,
    environments: Annotated[list[str] | None, typer.Option(
        "--environments", "-e", metavar="ENV...", show_default="all", help="Only these environments, in this order.",
    )] = None,
    per_instance: Annotated[bool, typer.Option(
        "--per-instance", help="Write a table and a panel for each instance instead of means over instances.",
    )] = False,
    log: Annotated[bool, typer.Option("--log/--linear", help="Logarithmic or linear axes.")] = True,
    out: Annotated[Path | None, typer.Option(
        metavar="DIR", show_default="that of the results", help="Folder of the files; created if missing.",
    )] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write the table, the figure and reports of the results in a folder.

    [bold]Examples[/]

    A page for the browser, and a table and a figure for a paper, written into the same folder:

      clickgym report results/first --html --latex --pdf

    Two agents in one environment, on linear axes, written into another folder:

      clickgym report results/first --agents BatchRank TopRank --environments CMRank-v0 --linear --out figures
    """
    formats: dict[Format, bool] = {"html": html, "md": markdown, "tex": latex}
    write_report(
        folder, output(as_json), [name for name, is_wanted in formats.items() if is_wanted], agents=agents,
        environments=environments, per_instance=per_instance, log=log, out=out, pdf=pdf,
    )  # fmt: skip
    if as_json:
        print_json(results_document(folder, agents, environments))
