"""``clickgym run``: agents in environments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.checks import check_choice
from ..console import Cluster, output
from ..labels import by_label
from ..play.metrics import METRICS
from ..play.pair import Engine
from ..reports.report import SUMMARY
from ..reports.table import print_results
from ..results import TABLE, Results
from ..sweep import sweep
from ..terminal import say
from ..workers import on_cluster
from .logs import Columns, Start, typed_log

Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance",
        "-i",
        metavar="NAME|FILE...",
        help="Instances (names, or your own JSON files); every environment is run with each. By "
        "default a real search query.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")]
Jobs = Annotated[
    int,
    typer.Option(metavar="N", help="Worker processes; -1 for one per CPU. Results stay the same."),
]


Reference = Annotated[
    str | None,
    typer.Option(
        metavar="AGENT",
        show_default=False,
        help="The agent with which the others are compared; by default the first.",
    ),
]


def run(
    envs: Annotated[
        list[str],
        typer.Argument(
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
            metavar="AGENT...",
            show_default=False,
            help="Agents: BatchRank, with arguments TopRank:delta=0.1, your own module:Class, or "
            "with a label for tables and figures mine=module:Class:alpha=0.1.",
        ),
    ],
    horizon: Annotated[
        float,
        typer.Option(metavar="T", show_default=False, help="Sessions per run, as 100000 or 1e5."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Folder of the results; created if missing, resumed and extended if it exists. "
            "Without it the table is printed, and nothing is kept.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Runs per agent and environment.")] = 10,
    instance: Instances = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="The compiled loop, or a slower loop in Python with the same results; auto takes "
            "the compiled loop if the pair allows it.",
        ),
    ] = "auto",
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="METRIC...",
            help=f"Metrics besides regret and reward: {', '.join(METRICS)}.",
        ),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="batch:B|fixed:D|geometric:M",
            help="Delayed feedback: clicks reach the agent at the end of every B sessions, D "
            "sessions later, or M later on average. By default at once.",
        ),
    ] = None,
    start: Start = None,
    columns: Columns = "",
    again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL...",
            help="Delete the runs of these agents, environments or instances and play them anew: "
            "for changes that clickgym cannot see, as in a file that your agent opens by itself.",
        ),
    ] = None,
    reference: Reference = None,
) -> None:
    """Run every agent in every environment, and print or keep the table of the regret.

    \b
    clickgym run PBMRank-v0 CMRank-v0 --agents BatchRank TopRank \\
        --horizon 1e6 --out results/first
    clickgym run DCMRank-v0 --agents mine=my_module:MyAgent:alpha=0.5 BatchRank \\
        --instance query.json --horizon 1e5 --out results/mine
    clickgym run PBMRank-v0 --agents PBMHB CascadeTS Fixed --instance users.json \\
        --start log.csv --delay batch:1000 --horizon 1e4 --out results/warm

    In a folder (--out) each run is saved when it ends. You can stop the command with Ctrl-C; the
    same command, or one with a part of its agents, resumes. The same folder also takes further
    agents, environments, instances and runs. Runs of what has changed are played anew. The exit
    code is 1 if an agent or an environment fails in mid-run, 2 for wrong input.
    """
    log = typed_log(start, columns)
    if reference is not None:
        check_choice("reference", reference, by_label("agent", agents))
    with on_cluster(cluster):
        results = sweep(
            envs,
            agents,
            horizon,
            runs,
            seed=seed,
            out=out,
            instances=instance,
            n_jobs=jobs,
            engine=engine,
            metrics=metrics or (),
            delay=delay,
            start=log,
            again=again or (),
        )
    console = output()
    print_results(console, results if out is None else Results(out), reference)
    if out is None:
        say(console, "Nothing is kept: --out DIR keeps runs, table and figure.")
    else:
        say(console, f"Results in {out}: regret.png, regret.svg, {SUMMARY}, {TABLE}")
