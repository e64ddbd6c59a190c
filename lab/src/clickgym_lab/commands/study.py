"""``clickgym study``: experiments of papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clickgym.core.console import Cluster, Pdf, errors, output
from clickgym.core.terminal import Column, print_table
from clickgym.core.workers import on_cluster
from clickgym.runner import Progress
from clickgym.runner.commands import names as known

from ..studies import STUDIES
from ..studies.play import draw_again, run_study


def studies(incomplete: str) -> list[str]:
    """Studies of which the name begins so."""
    return known.beginning(STUDIES, incomplete)


def study(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID...",
            help="Studies, before the options; [bold]--list[/] names them.",
            show_default=False,
            autocompletion=studies,
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Multiply the horizon of the paper by S, and its queries and runs by the fourth root of S; 1 is the "
            "whole experiment.",
        ),
    ] = 0.01,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the results; created if missing, resumed if it exists.",
            show_default=False,
        ),
    ] = None,
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instances",
            "-i",
            metavar="NAME|FILE...",
            show_default="the shipped real queries",
            help="The queries: names of instances, or your own JSON files.",
        ),
    ] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run nothing: draw the figure and check the statements from the results in this folder. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="The same seed gives the same numbers.")
    ] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            metavar="N", help="Worker processes; -1 for one per CPU. Results stay the same."
        ),
    ] = -1,
    cluster: Cluster = None,
    pdf: Pdf = False,
    list_them: Annotated[bool, typer.Option("--list", help="List the studies and exit.")] = False,
) -> None:
    """Repeat the experiment of a paper, draw its figure, and check the statements of the paper.

    [bold]Examples[/]

    A hundredth of the paper's horizon:

      clickgym study zoghi-fig1 --scale 0.01 --out results/zoghi

    Three figures of the same runs, on your own queries:

      clickgym study bubble-fig1 bubble-fig2 bubble-fig4 --instances queries/*.json --out
      results/bubble

    The figure of existing results, without running anything:

      clickgym study zoghi-fig2 --from lab/results --out figures

    The command saves each run when the run ends. You can stop it with Ctrl-C and resume with the
    same command.
    """
    if list_them:
        rows = [(name, study.title, study.paper) for name, study in STUDIES.items()]
        print_table(
            output(),
            [Column("study"), Column("title", words=True), Column("paper", words=True)],
            rows,
        )
        return
    if not names:
        raise ValueError("expected the name of a study; clickgym study --list prints them")
    if out is None:
        raise ValueError("expected a folder for the results: --out DIR")
    if from_:
        if instances:
            raise ValueError(
                "--instances cannot be given with --from: the results in its folder have their own queries"
            )
        draw_again(names, from_, out, output(), pdf=pdf)
        return
    progress = context.obj = Progress(errors(), lines=False)
    with progress, on_cluster(cluster):
        run_study(
            names,
            scale,
            out,
            output(),
            queries=instances,
            seed=seed,
            n_jobs=jobs,
            callback=progress,
            pdf=pdf,
        )
