"""``clickgym run``, which runs agents in environments. Its options are arguments of `sweep`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.checks import check_choice
from ...measure.metrics import METRICS
from ..console import output_console, print_text
from ..play.additional_metrics import AdditionalMetrics
from ..reports.table import print_results
from ..results_folder import FIGURES, ROWS, SUMMARY
from ..sweep.sweep import sweep

compare_option = partial(typer.Option, rich_help_panel="What to compare")
result_option = partial(typer.Option, rich_help_panel="Results")
speed_option = partial(typer.Option, rich_help_panel="Speed")
"""Functions that define an option in one of the three sections of the help text."""

JobCount = Annotated[
    int,
    speed_option(
        *("--n-jobs", "--jobs", "-j"),
        metavar="N",
        help="Number of worker processes, or -1 for one per CPU. Results do not depend on this "
        "number.",
    ),
]


def run(
    envs: Annotated[
        list[str],
        typer.Argument(
            rich_help_panel="What to compare",
            metavar="ENV",
            show_default=False,
            help="One or more environments, before the options: an id such as PBMRank-v0; an id "
            "with arguments, such as PBMRank-v0:reward=any_click; or module:MyRank-v0, an id that "
            "your own module registers.",
        ),
    ],
    agents: Annotated[
        list[str],
        compare_option(
            *("--agents", "-a"),
            metavar="AGENT...",
            help="One or more agents: a name such as BatchRank; a name with arguments, such as "
            "TopRank:delta=0.1; or module:Class for your own agent. To choose the label in tables "
            "and figures, put it first: mine=module:Class:alpha=0.1.",
        ),
    ],
    horizon: Annotated[
        float,
        compare_option(metavar="T", help="Number of sessions per run, such as 100000 or 1e5."),
    ] = 10_000,
    runs: Annotated[int, compare_option(metavar="N", help="Runs per agent and environment.")] = 10,
    instances: Annotated[
        list[str] | None,
        compare_option(
            *("--instances", "-i"),
            metavar="NAME|FILE...",
            help="One or more instances: names, or your own JSON files, with LABEL= before a file "
            "to choose its name in tables. Every environment runs with each instance. 'shipped' "
            "means all real search queries in the package. By default, environments use one of "
            "these queries.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        compare_option(
            *("--metrics", "-m"),
            metavar="METRIC...",
            help=f"Metrics to measure in addition to regret and reward: {', '.join(METRICS)}; or "
            "module:name for your own metric, with LABEL= before it to choose its label.",
        ),
    ] = None,
    by_instance: Annotated[
        bool,
        result_option(
            "--by-instance",
            help="Print the table with rows for each instance, instead of averages over all "
            "instances.",
        ),
    ] = False,
    measure: Annotated[
        str,
        result_option(
            metavar="NAME",
            help="What the table compares, and sorts by: regret, reward or one of the --metrics, "
            "by its label if it has one. The files stay the same.",
        ),
    ] = "regret",
    seed: Annotated[
        int, result_option(metavar="N", help="Random seed. The same seed gives the same results.")
    ] = 0,
    out: Annotated[
        Path | None,
        result_option(
            metavar="DIR",
            help=(
                "Folder for the results, created if missing. If the folder already contains runs "
                "of this comparison, only the missing runs are played. Without --out, the command "
                "prints the table and saves nothing."
            ),
        ),
    ] = None,
    n_jobs: JobCount = -1,
    checkpoints: Annotated[
        list[float] | None,
        result_option(
            metavar="STEP...",
            help="Save regret, reward and metrics after these numbers of sessions; by default, at "
            "about 150 points of each run.",
        ),
    ] = None,
    engine: Annotated[
        str,
        speed_option(
            metavar="auto|compiled|python",
            help="The engine that runs the agents. Results do not depend on the engine.",
        ),
    ] = "auto",
    progress: Annotated[bool, speed_option(help="Show the progress of the runs.")] = True,
    overwrite: Annotated[
        bool,
        result_option("--overwrite", help="Delete all runs in the folder, and start again."),
    ] = False,
) -> None:
    """Run every agent in every environment, and print a table of their regret.

    Compare two agents with simulated users of a real search query, in ten runs each:

    clickgym run PBMRank-v0 --agents BatchRank TopRank --horizon 1e5 --out results/first

    Compare your own agent, from my_module.py, under the label "mine" and with an argument:

    \b
    clickgym run DCMRank-v0 --agents mine=my_module:MyAgent:alpha=0.5 BatchRank \\
        --horizon 1e5 --out results/mine

    With --out, each run is saved as soon as it ends. You can stop the command with Ctrl-C,
    and continue later with the same command. You can also add agents or runs to the folder; for a
    different seed or horizon, use a new folder.
    """
    measured = [*AdditionalMetrics(metrics or ()).names]
    if measure in METRICS and measure not in measured:
        raise ValueError(f"--measure {measure} needs --metrics {measure}")
    check_choice("measure", measure, ["regret", "reward", *measured])
    engine_name: Any = engine
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
        engine=engine_name,
        progress=progress,
        overwrite=overwrite,
    )
    print_results(output_console(), results, by_instance=by_instance, measure=measure)
    if out is None:
        print_text(
            output_console(),
            "Nothing was saved. To save the runs, the table and the figure, name a folder with "
            "--out DIR.",
        )
    else:
        names = ", ".join([*FIGURES, SUMMARY, ROWS])
        print_text(output_console(), f"Results in {out}: {names}")
