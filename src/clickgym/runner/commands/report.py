"""``clickgym report``: table and figure of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..console import output, say
from ..reports.bibliography import to_bibtex
from ..reports.table import print_results, to_latex
from ..results import Results


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            show_default=False,
            help="Folder of a clickgym run or sweep, finished or not; of several, one table.",
        ),
    ],
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agents",
            "-a",
            metavar="AGENT...",
            help="Only these; the first is the one with which the others are compared.",
        ),
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
            "of a selection, or of several folders, are written only with --out.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT",
            help="The agent with which the others are compared: by default the first.",
        ),
    ] = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the table in LaTeX, and write nothing.")
    ] = False,
    bib: Annotated[
        bool,
        typer.Option(
            "--bib", help="Print BibTeX entries of the papers to cite, and write nothing."
        ),
    ] = False,
) -> None:
    """Print the table of the results in a folder, and draw their figure.

    Everything that clickgym run has kept:

    clickgym report results/first

    Two agents only, in this order, with files of their own:

    clickgym report results/first --agents BatchRank TopRank --out figures

    A table for a paper, the papers of its agents and environments, and one table of two folders:

    \b
    clickgym report results/first --reference TopRank --latex > table.tex
    clickgym report results/first --bib > references.bib
    clickgym report results/first results/mine --out results/both
    """
    results, console = Results(folders).select(agents, environments), output()
    if latex or bib:
        text = to_latex(results, reference) if latex else to_bibtex(results)
        console.print(Text(text), soft_wrap=True)
        return
    print_results(console, results, reference)
    if out is None and (agents or environments or folders[1:]):
        say(console, "No files of a selection are written. --out DIR names a folder for them.")
        return
    target = out or folders[0]
    say(console, f"Results in {target}: {', '.join(results.write(target, reference))}")
