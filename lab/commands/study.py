"""``clickgym study``: experiments of papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import Pdf, errors, output
from ...runner.progress import Progress
from ..studies.play import draw_again, run_study
from .listing import list_
from .names import studies

__all__ = ["study"]


def study(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(
        metavar="ID...", help="Studies, before the options; [bold]clickgym list studies[/] names them.", show_default=False,
        autocompletion=studies,
    )] = None,
    scale: Annotated[float, typer.Option(
        metavar="S", help="Fraction of the horizon; queries and runs are reduced by its fourth root. 1 is the paper's work.",
    )] = 0.01,
    out: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Folder of the results; created if missing, resumed if it exists.", show_default=False,
    )] = None,
    instances: Annotated[list[str] | None, typer.Option(
        "--instances", "-i", metavar="NAME|FILE...", show_default="the shipped real queries",
        help="The queries: names, or JSON files of your own.",
    )] = None,
    from_: Annotated[list[Path] | None, typer.Option(
        "--from", metavar="DIR", help="Play nothing: judge and draw what is in this folder; may be given several times.",
        show_default=False,
    )] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers; -1 for one per processor. Changes no number.")] = -1,
    pdf: Pdf = False,
    list_them: Annotated[bool, typer.Option("--list", help="Name the studies, and run nothing.")] = False,
) -> None:  # fmt: skip
    """Do a paper's experiment again, draw its figure, and judge what the paper says about it.

    [bold]Examples[/]

    A hundredth of the paper's horizon:

      clickgym study zoghi-fig1 --scale 0.01 --out results/zoghi

    Three figures of the same runs, which are done once, on queries of your own:

      clickgym study bubble-fig1 bubble-fig2 bubble-fig4 --instances queries/*.json --out results/bubble

    The figure of results that others have passed on, without playing:

      clickgym study zoghi-fig2 --from docs/results --out figures

    Each run is written when it ends: stop with Ctrl-C, and go on later with the same command.
    """
    if list_them:
        return list_("studies")
    if not names:
        raise ValueError("no study was named; clickgym study --list names them")
    if out is None:
        raise ValueError("the results need a folder; give --out DIR")
    if from_:
        if instances:
            raise ValueError("--from plays nothing; its results have their own queries, so --instances means nothing beside it")
        draw_again(names, from_, out, output(), pdf=pdf)
        return
    progress = context.obj = Progress(errors(), lines=False)
    with progress:
        run_study(names, scale, out, output(), queries=instances, seed=seed, n_jobs=jobs, callback=progress, pdf=pdf)
