"""``clickgym study``: experiments of papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from clickgym.core.files import make_folder, write_whole
from clickgym.runner.console import Cluster, Jobs, Seed, output
from clickgym.runner.reports import save_figure
from clickgym.runner.terminal import Column, print_table, say
from clickgym.runner.workers import on_cluster

from ..studies import find_study, studies
from ..studies.page import page
from ..studies.study import Measured, Setting, naming_its_line, read_all, run_study

PLAYED, KEPT = "What to play", "Results"
"""The sections of the help text, before that on speed."""


def study(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            rich_help_panel=PLAYED,
            metavar="ID...",
            help="Studies that --list names, or files of your own.",
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            rich_help_panel=PLAYED,
            metavar="S",
            help="Multiply the horizon of the paper by S, and its queries and runs by the fourth "
            "root of S. 1 is the whole experiment.",
        ),
    ] = 0.01,
    runs: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=PLAYED,
            metavar="N",
            min=1,
            help="Play N runs of each pair instead of the paper's.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=KEPT,
            metavar="DIR",
            help="Folder of the results. If it exists, the command goes on where it stopped.",
        ),
    ] = None,
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instances",
            "-i",
            rich_help_panel=PLAYED,
            metavar="NAME|FILE...",
            show_default="the shipped real queries",
            help="The queries: names of instances, or your own JSON files.",
        ),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            rich_help_panel=KEPT,
            metavar="DIR",
            help="Judge and draw the results in this folder, and play nothing.",
        ),
    ] = None,
    seed: Seed = 0,
    again: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=KEPT,
            metavar="LABEL...",
            help="Delete the runs of these agents, environments or instances, and play them anew.",
        ),
    ] = None,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the studies and exit.")] = False,
) -> None:
    """Repeat the experiment of a paper: its numbers beside ours, its figure, and what it says.

    A hundredth of the paper's horizon:

    clickgym study zoghi-fig1 --scale 0.01 --out results/zoghi

    Three figures of the same runs, on your own queries:

    \b
    clickgym study bubble-fig1 bubble-fig2 bubble-fig4 \\
        --instances queries/*.json --out results/bubble

    The page and the figures of existing results, without running anything:

    clickgym study zoghi-fig2 --from lab/results --out figures

    Each run is saved when it ends. You can stop the command with Ctrl-C: the same command goes on
    where it stopped.
    """
    if list_them:
        columns = [Column("study"), Column("title", words=True), Column("paper", words=True)]
        rows = [(study.name, study.title, study.paper) for study in studies().values()]
        print_table(output(), columns, rows)
        return
    if not names or out is None:
        raise ValueError(
            "expected a study and a folder, as in: clickgym study zoghi-fig1 --out DIR"
        )
    found = {name: find_study(name) for name in names}
    for name, study in found.items():
        with naming_its_line(name), on_cluster(cluster):
            if from_ is not None:
                _write(out, read_all(study, from_))
            else:
                setting = Setting(out, scale, runs, seed, jobs, instances, again or ())
                _write(out, [run_study(study, setting)])


def _write(out: Path, results: list[Measured]) -> None:
    """Write figures and page of a study, and print what was found on the largest set of queries."""
    name, console = results[0].study.name, output()
    make_folder(out)
    files = [f"{name}.md"]
    write_whole(out / files[0], page(results))
    for result in results:
        saved = save_figure(result.study.draw(result.results), out / result.name, result.origin)
        files += [file.name for file in saved]
    _print(console, results[0])
    say(console, f"Results in {out}: {', '.join(files)}")


def _print(console: Console, result: Measured) -> None:
    study = result.study
    if result.judged:
        columns = [Column("the paper's words", words=True), Column("measured", words=True)]
        rows = [
            (row.statement.quote, Text(row.measured.replace("; ", "\n")), row.verdict)
            for row in result.judged
        ]
        title = f"{study.name}: {study.title} ({study.paper})"
        print_table(console, [*columns, Column("verdict", words=True)], rows, title=title)
    for sentence in study.seen(result.results) if study.seen is not None else ():
        say(console, f"- {sentence}")
    console.print()
