"""``clickgym run``: run agents in environments. Each argument of `sweep` is an option."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..console import output, say
from ..play.metrics import METRICS
from ..reports.table import print_results
from ..results import FIGURE, ROWS, SUMMARY
from ..sweep import sweep

compare_option = partial(typer.Option, rich_help_panel="What to compare")
result_option = partial(typer.Option, rich_help_panel="Results")
speed_option = partial(typer.Option, rich_help_panel="Speed")
"""The options in each section of the help text."""

JobCount = Annotated[
    int,
    speed_option(
        *("--n-jobs", "--jobs", "-j"),
        metavar="N",
        help="Worker processes, or -1 for one per CPU. Results do not depend on this number.",
    ),
]


def run(
    envs: Annotated[
        list[str],
        typer.Argument(
            rich_help_panel="What to compare",
            metavar="ENV",
            show_default=False,
            help="Environments, before the options: an id such as PBMRank-v0; an id with "
            "arguments, such as PBMRank-v0:reward=any_click; or your own module:MyRank-v0, an id "
            "that the module registers.",
        ),
    ],
    agents: Annotated[
        list[str],
        compare_option(
            *("--agents", "-a"),
            metavar="AGENT...",
            help="Agents: a name such as BatchRank; a name with arguments, such as "
            "TopRank:delta=0.1; or your own module:Class. A label for tables and figures goes "
            "first: mine=module:Class:alpha=0.1.",
        ),
    ],
    horizon: Annotated[
        float, compare_option(metavar="T", help="Sessions per run, such as 100000 or 1e5.")
    ] = 10_000,
    runs: Annotated[int, compare_option(metavar="N", help="Runs per agent and environment.")] = 10,
    instances: Annotated[
        list[str] | None,
        compare_option(
            *("--instances", "-i"),
            metavar="NAME|FILE...",
            help="Instances: names, or your own JSON files. Every environment runs with each of "
            "them. 'shipped' stands for all real queries in the package; the default is one of "
            "these.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        compare_option(
            *("--metrics", "-m"),
            metavar="METRIC...",
            help=f"Metrics besides regret and reward: {', '.join(METRICS)}.",
        ),
    ] = None,
    seed: Annotated[
        int, result_option(metavar="N", help="The same seed gives the same numbers.")
    ] = 0,
    out: Annotated[
        Path | None,
        result_option(
            metavar="DIR",
            help=(
                "Folder for the results, created if missing. If it already holds this sweep, "
                "only the missing runs are played. Without --out, the table is printed and "
                "nothing is saved."
            ),
        ),
    ] = None,
    n_jobs: JobCount = -1,
    checkpoints: Annotated[
        list[float] | None,
        result_option(
            metavar="STEP...",
            help="Save totals after these numbers of sessions; by default, at about 150 points of "
            "a run.",
        ),
    ] = None,
    engine: Annotated[
        str,
        speed_option(
            metavar="auto|compiled|python",
            help="Which engine runs the agents. Results do not depend on the engine.",
        ),
    ] = "auto",
    progress: Annotated[bool, speed_option(help="Show the progress of the runs.")] = True,
    overwrite: Annotated[
        bool, result_option("--overwrite", help="Delete the runs in the folder, and start again.")
    ] = False,
) -> None:
    """Run every agent in every environment, and print a table of their regret.

    Two agents on the simulated users of a real search query, ten runs each:

    clickgym run PBMRank-v0 --agents BatchRank TopRank --horizon 1e5 --out results/first

    Your own agent from my_module.py, with an argument and a short name:

    \b
    clickgym run DCMRank-v0 --agents mine=my_module:MyAgent:alpha=0.5 BatchRank \\
        --horizon 1e5 --out results/mine

    With --out, each run is saved when it ends. You can stop the command with Ctrl-C. The same
    command then continues where it stopped. Other agents or more runs are added to the folder;
    another seed or horizon needs another folder.
    """
    chosen: Any = engine
    results = sweep(
        envs,
        agents,
        horizon,
        runs,
        instances=instances,
        metrics=metrics or (),
        seed=seed,
        out=out,
        n_jobs=n_jobs,
        checkpoints=checkpoints,
        engine=chosen,
        progress=progress,
        overwrite=overwrite,
    )
    print_results(output(), results)
    if out is None:
        say(
            output(),
            "Nothing was saved. To save the runs, the table and the figure, name a folder with "
            "--out DIR.",
        )
    else:
        names = f"{FIGURE}.png, {FIGURE}.svg, {SUMMARY}, {ROWS}"
        say(output(), f"Results in {out}: {names}")
