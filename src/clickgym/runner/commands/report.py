"""``clickgym report``, which prints the table of saved results and draws their figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..console import output_console, print_text
from ..reports.bibliography import to_bibtex
from ..reports.table import print_results, results_by_instance, to_latex
from ..results import Results


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="One or more folders with the results of clickgym run or sweep, finished or not. "
            "Several folders are combined in one table.",
        ),
    ],
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agents",
            "-a",
            metavar="AGENT...",
            help="Show only these agents, in this order, and compare them with the first agent.",
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
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instances",
            "-i",
            metavar="INSTANCE...",
            help="Show only these instances, in this order, such as those of one family.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Folder for the table and figure files, created if missing; by default, the folder "
                "of the results. If you select agents, environments or instances, or name several "
                "folders, the command writes files only with --out."
            ),
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT",
            help="Compare the other agents with this agent; by default, with the first agent that "
            "can be compared.",
        ),
    ] = None,
    by_instance: Annotated[
        bool,
        typer.Option(
            "--by-instance",
            help="Print the table with rows for each instance, instead of averages over all "
            "instances. The files stay the same.",
        ),
    ] = False,
    measure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What the table compares, and sorts by: regret, reward or a metric that was "
            "measured. The files stay the same.",
        ),
    ] = "regret",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="NAME...",
            help="Show only these columns, such as regret difference p. The files stay the same.",
        ),
    ] = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the table as LaTeX, and write no files.")
    ] = False,
    bib: Annotated[
        bool,
        typer.Option(
            "--bib", help="Print BibTeX entries for the papers to cite, and write no files."
        ),
    ] = False,
) -> None:
    """Print the table of saved results, and draw their figure.

    Show everything that clickgym run saved in a folder:

    clickgym report results/first

    Show only two agents, in this order, and write their table and figure to a folder:

    clickgym report results/first --agents BatchRank TopRank --out figures

    Save the table as LaTeX, save BibTeX entries of the papers to cite, and combine two folders:

    \b
    clickgym report results/first --reference TopRank --latex > table.tex
    clickgym report results/first --bib > references.bib
    clickgym report results/first results/mine --out results/both

    The figure is made for a screen. For a paper or slides, draw it in Python, where you can choose
    the width and the names; see "Numbers for a paper" in docs/runner.md:

    clickgym.Results("results/first").plot("figure.pdf", width=3.3)
    """
    results, console = Results(folders).select(agents, environments, instances), output_console()
    if latex or bib:
        shown = results_by_instance(results) if by_instance else results
        if latex:
            text = to_latex(shown, reference, measure=measure, columns=columns)
        else:
            text = to_bibtex(results)
        console.print(Text(text), soft_wrap=True)
        return
    print_results(
        console, results, reference, by_instance=by_instance, measure=measure, columns=columns
    )
    if out is None and (agents or environments or instances or folders[1:]):
        print_text(
            console,
            "No files were written for this selection. To write them, name a folder with --out "
            "DIR.",
        )
        return
    target = out or folders[0]
    print_text(console, f"Results in {target}: {', '.join(results.write(target, reference))}")
