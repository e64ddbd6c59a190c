"""``clickgym report``: table, figure and page of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ...core.files import locked, make_folder
from ..console import output
from ..reports.latex import to_latex
from ..reports.report import write_files
from ..reports.table import print_results
from ..results import CONFIG, Results
from ..terminal import say
from .run import Reference


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
    agents: Annotated[
        list[str] | None,
        typer.Option("--agents", "-a", metavar="AGENT...", help="Only these, in this order."),
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option("--environments", "-e", metavar="ENV...", help="Only these, in this order."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the files, created if missing; by default that of the results. Files "
            "of a selection are written only with --out.",
        ),
    ] = None,
    reference: Reference = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the table in LaTeX, and write nothing.")
    ] = False,
) -> None:
    """Print the table of the results in a folder, and write their figure.

    \b
    clickgym report results/first --html
    clickgym report results/first --agents BatchRank TopRank --out figures
    clickgym report results/first --reference TopRank --latex > table.tex
    """
    selected, target = bool(agents or environments), out or folder
    if selected and out is not None and out.resolve() == folder.resolve():
        raise ValueError(
            "the files of a selection would overwrite those of all; name another --out"
        )
    results, console = Results(folder).select(agents, environments), output()
    if latex:
        console.print(Text(to_latex(results, reference)), soft_wrap=True)
        return
    make_folder(target)
    print_results(console, results, reference)
    if selected and out is None:
        say(console, "Nothing is written of a selection; --out DIR names a folder for its files.")
    else:
        with locked(target / CONFIG):
            names = write_files(target, results, html=html, reference=reference)
        say(console, f"Results in {target}: {', '.join(names)}")
