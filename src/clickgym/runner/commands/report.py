"""``clickgym report``: the table and the figure of saved results."""

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
            metavar="DIR",
            show_default=False,
            help="Folder of a clickgym run or sweep, finished or not. Several folders make one "
            "table.",
        ),
    ],
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agents",
            "-a",
            metavar="AGENT...",
            help="Show only these agents, and compare the others with the first.",
        ),
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--environments",
            "-e",
            metavar="ENV...",
            help="Show only these environments, in this order.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Folder for the files, created if missing; by default, the results folder. If "
                "you select agents or environments, or name several folders, files are written "
                "only with --out."
            ),
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT",
            help="Compare the other agents with this one; by default, with the first.",
        ),
    ] = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the table in LaTeX, and write no files.")
    ] = False,
    bib: Annotated[
        bool,
        typer.Option(
            "--bib", help="Print BibTeX entries of the papers to cite, and write no files."
        ),
    ] = False,
) -> None:
    """Print the table of saved results, and draw their figure.

    Everything that clickgym run saved in a folder:

    clickgym report results/first

    Only two agents, in this order, with their own table and figure:

    clickgym report results/first --agents BatchRank TopRank --out figures

    A table for a paper, the papers to cite, and one table from two folders:

    \b
    clickgym report results/first --reference TopRank --latex > table.tex
    clickgym report results/first --bib > references.bib
    clickgym report results/first results/mine --out results/both

    The figure is made for a screen. For a paper or slides, draw a figure in Python, with a given
    width and your own names; see docs/runner.md, "Numbers for a paper":

    clickgym.Results("results/first").plot("figure.pdf", width=3.3)
    """
    results, console = Results(folders).select(agents, environments), output()
    if latex or bib:
        text = to_latex(results, reference) if latex else to_bibtex(results)
        console.print(Text(text), soft_wrap=True)
        return
    print_results(console, results, reference)
    if out is None and (agents or environments or folders[1:]):
        say(
            console,
            "No files were written for this selection. To write them, name a folder with --out "
            "DIR.",
        )
        return
    target = out or folders[0]
    say(console, f"Results in {target}: {', '.join(results.write(target, reference))}")
