"""``clickgym run``: agents in environments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.checks import check_choice
from ..console import output, say
from ..names import by_label
from ..play.metrics import METRICS
from ..reports.report import SUMMARY, TABLE
from ..reports.table import print_results
from ..sweep import sweep
from ..workers import on_cluster
from .options import Cluster, Jobs, Seed

COMPARED, KEPT = "What to compare", "Results"
"""The sections of the help text, in their order."""

Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance",
        "-i",
        rich_help_panel=COMPARED,
        metavar="NAME|FILE...",
        help="Instances (names, or your own JSON files); every environment is run with each. "
        "'shipped' stands for all real queries of the package; the default is one of them.",
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=KEPT,
        metavar="AGENT",
        show_default=False,
        help="The agent with which the others are compared; by default the first.",
    ),
]


def run(
    envs: Annotated[
        list[str],
        typer.Argument(
            rich_help_panel=COMPARED,
            metavar="ENVS",
            show_default=False,
            help="Environments, before the options: PBMRank-v0, PBMRank-v0:reward=any_click, or "
            "your own, which a module registers, module:MyRank-v0.",
        ),
    ],
    agents: Annotated[
        list[str],
        typer.Option(
            "--agents",
            "-a",
            rich_help_panel=COMPARED,
            metavar="AGENT...",
            show_default=False,
            help="Agents: BatchRank, with arguments TopRank:delta=0.1, your own module:Class, or "
            "with a label for tables and figures mine=module:Class:alpha=0.1.",
        ),
    ],
    horizon: Annotated[
        float,
        typer.Option(
            rich_help_panel=COMPARED,
            metavar="T",
            show_default=False,
            help="Sessions per run, as 100000 or 1e5; 10,000 by default.",
        ),
    ] = 10_000,
    runs: Annotated[
        int,
        typer.Option(rich_help_panel=COMPARED, metavar="N", help="Runs per agent and environment."),
    ] = 10,
    instance: Instances = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            rich_help_panel=COMPARED,
            metavar="METRIC...",
            help=f"Metrics besides regret and reward: {', '.join(METRICS)}.",
        ),
    ] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=KEPT,
            metavar="DIR",
            show_default=False,
            help="Folder of the results; created if missing, resumed and extended if it exists. "
            "Without it the table is printed, and nothing is kept.",
        ),
    ] = None,
    reference: Reference = None,
    jobs: Jobs = -1,
    cluster: Cluster = None,
) -> None:
    """Play every agent in every environment, and print the table of regret.

    Two agents on the simulated users of a real search query, ten runs each:

    clickgym run PBMRank-v0 --agents BatchRank TopRank --horizon 1e5 --out results/first

    Your own agent, in a file of yours, with an argument and a short name:

    \b
    clickgym run DCMRank-v0 --agents mine=my_module:MyAgent:alpha=0.5 BatchRank \\
        --horizon 1e5 --out results/mine

    With --out each run is saved when it ends. You can stop the command with Ctrl-C: the same
    command goes on where it stopped, and plays only what is new or has changed.
    """
    if reference is not None:
        check_choice("reference", reference, by_label("agent", agents))
    with on_cluster(cluster):
        results = sweep(
            envs,
            agents,
            horizon,
            runs,
            instances=instance,
            metrics=metrics or (),
            seed=seed,
            out=out,
            n_jobs=jobs,
        )
    console = output()
    print_results(console, results, reference)
    if out is None:
        say(console, "Nothing was kept. --out DIR keeps runs, table and figure.")
    else:
        names = f"regret.png, regret.svg, {SUMMARY}, {TABLE}"
        more = f"clickgym report {out} prints the table of the whole folder"
        say(console, f"Results in {out}: {names}; {more}")
