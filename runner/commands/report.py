"""``clickgym report``: table, figure and pages of finished results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import Json, Pdf, output, print_json
from ..reports.document import results_document
from ..reports.report import Format, write_report

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(
        metavar="DIR", help="Folder of a finished [bold]clickgym run[/].", show_default=False,
    )],
    html: Annotated[bool, typer.Option("--html", help="Write [bold]report.html[/]: curves and tables to explore.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write the table as [bold]report.md[/].")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Write the table as [bold]report.tex[/], for booktabs.")] = False,
    pdf: Pdf = False,
    bounds: Annotated[bool, typer.Option("--bounds", help="Draw the lower and upper bounds of the theory, too.")] = False,
    agents: Annotated[list[str] | None, typer.Option(
        "--agents", "-a", metavar="AGENT...", show_default="all", help="Which agents, in this order.",
    )] = None,
    environments: Annotated[list[str] | None, typer.Option(
        "--environments", "-e", metavar="ENV...", show_default="all", help="Which environments, in this order.",
    )] = None,
    per_instance: Annotated[bool, typer.Option(
        "--per-instance", help="A table and a panel for each instance, in place of means over them.",
    )] = False,
    log: Annotated[bool, typer.Option("--log/--linear", help="The axes of the figure, and of the page as it opens.")] = True,
    out: Annotated[Path | None, typer.Option(
        metavar="DIR", show_default="that of the results", help="Folder to write into; made if need be.",
    )] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Make table and figure again from the results in a folder, and reports of them.

    [bold]Examples[/]

    One page that needs no network; table and figure for a paper; all are written into the folder:

      clickgym report results/first --html --latex --pdf

    Two agents in one environment, on linear axes, written elsewhere:

      clickgym report results/first --agents BatchRank TopRank --environments CMRank-v0 --linear --out figures
    """
    formats: dict[Format, bool] = {"html": html, "md": markdown, "tex": latex}
    write_report(
        folder, output(as_json), [name for name, is_wanted in formats.items() if is_wanted], agents=agents,
        environments=environments, per_instance=per_instance, log=log, out=out, bounds=bounds, pdf=pdf,
    )  # fmt: skip
    if as_json:
        print_json(results_document(folder, agents, environments))
