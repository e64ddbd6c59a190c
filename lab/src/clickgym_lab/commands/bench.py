"""``clickgym bench``: the scorecard of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clickgym.core.console import Cluster, errors, output
from clickgym.core.terminal import Column, print_table, say
from clickgym.core.workers import on_cluster
from clickgym.runner import Progress
from clickgym.runner.commands import names
from clickgym.runner.reports import write_figure

from ..bench.card import bench as bench_
from ..bench.figures import curves_figure


def bench(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT",
            help="The agent, before the options: your own [bold]module:Class[/], or a built-in one.",
            show_default=False,
            autocompletion=names.agents,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the scorecard and of its runs; created if missing, resumed if it exists. "
            "With [bold]--plot[/]: the file of the figure.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run fewer tasks, and fewer runs of each: for slow agents in plain Python and for generic RL.",
        ),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="ABILITY",
            help="Run nothing: draw the curves of the best built-in agents in this ability into the file "
            "[bold]--out[/].",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            metavar="N", help="Worker processes; -1 for one per CPU. Results stay the same."
        ),
    ] = -1,
    cluster: Cluster = None,
) -> None:
    """Run an agent on the tasks of the scorecard, and compare its scores with those of the built-in
    agents.

    Runs only AGENT: the results of the built-in agents ship with the package. Writes
    [bold]scorecard.md[/], and the runs, so that others can repeat them.

    [bold]Examples[/]

      clickgym bench my_module:MyAgent --out results/mine

    A figure of the built-in agents for a paper, without running anything:

      clickgym bench --plot change --out change.pdf

    The command saves each run when the run ends. You can stop it with Ctrl-C and resume with the
    same command.
    """
    if plot is not None:
        if agent is not None or quick or out is None:
            raise ValueError(
                "--plot needs --out FILE, and takes no agent: --plot change --out change.pdf"
            )
        write_figure(curves_figure(plot), out)
        say(output(), f"In {out.parent}: {out.name}")
        return
    if agent is None or out is None:
        raise ValueError(
            "expected an agent and a folder: clickgym bench my_module:MyAgent --out DIR"
        )
    progress = context.obj = Progress(errors(), lines=False)
    with progress, on_cluster(cluster):
        card = bench_(agent, out=out, quick=quick, n_jobs=jobs, callback=progress)
    file, console = card.save(out), output()
    columns = [Column("ability"), Column("score (95 % interval)"), Column("best built-in agent")]
    columns += [Column("tasks", rank=2, right=True), Column("what it is about", rank=1, words=True)]
    print_table(console, columns, card.rows, title=f"Scorecard of {card.agent}")
    console.print()
    if quick:
        say(
            console,
            f"A first look: {card.protocol.quick_runs} runs of few tasks tell whether it learns at all.",
        )
    say(console, f"In {out}: {file.name}")
