"""``clickgym tune``: the hyper-parameters with which an agent loses least."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from polars import col

from ...core.console import Cluster, Json, errors, output, print_json
from ...core.terminal import Column, print_table, say
from ...core.workers import on_cluster
from ..progress import Progress
from ..tuning import TRIALS
from ..tuning import tune as tune_
from .names import agents as agent_names
from .names import environments, instances
from .run import number


def tune(
    context: typer.Context,
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            autocompletion=agent_names,
            show_default=False,
            help="The agent, before the options, as [bold]CascadeKLUCB[/] or your own [bold]module:Class[/].",
        ),
    ],
    envs: Annotated[
        list[str],
        typer.Option(
            "--environments",
            "-e",
            metavar="ENV...",
            show_default=False,
            autocompletion=environments,
            help="One or more environments, as after [bold]clickgym run[/].",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder of the study; created if missing, resumed if it exists.",
        ),
    ],
    trials: Annotated[int, typer.Option(metavar="N", help="Number of trials.")] = 40,
    instance: Annotated[
        list[str] | None,
        typer.Option(
            "--instances",
            "-i",
            metavar="NAME|FILE...",
            show_default="a real search query",
            autocompletion=instances,
            help="One or more instances. Keep the instances on which you will test the result apart.",
        ),
    ] = None,
    horizon: Annotated[str, typer.Option(metavar="T", help="Sessions per run.")] = "10000",
    runs: Annotated[
        int, typer.Option(metavar="N", help="Runs of each trial in each environment and instance.")
    ] = 4,
    seed: Annotated[
        int, typer.Option(metavar="N", help="The same seed gives the same result.")
    ] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            metavar="N", help="Worker processes; -1 for one per CPU. Results stay the same."
        ),
    ] = -1,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Search for the hyper-parameters that give an agent the lowest regret, by Optuna.

    The search space is the attribute [bold]search_space[/] of the class of the agent, without what
    it is given a value of. The score is the regret divided by the regret of random lists.

    [bold]Example[/]

      clickgym tune CascadeKLUCB:feedback=first_click --environments CMRank-v0 --instances
      uniform:seed=1 --out tuned

    [bold]Stop and resume[/]

    You can stop the command with Ctrl-C and resume with the same command, or with more trials.
    """
    progress = context.obj = Progress(errors())
    with progress, on_cluster(cluster):
        tuning = tune_(
            agent,
            envs,
            trials,
            horizon=number(horizon),
            instances=instance,
            runs=runs,
            seed=seed,
            out=out,
            n_jobs=jobs,
            callback=progress,
        )
    if as_json:
        document = {
            key: getattr(tuning, key)
            for key in ("agent", "hyperparameters", "score", "default_score")
        }
        print_json({"folder": str(out), **document, "trials": tuning.trials.to_dicts()})
    console = output(as_json)
    best = tuning.trials.filter(col("state") == "COMPLETE").sort("score").head(10)
    columns = [Column(name, right=name != "state") for name in best.columns]
    rows = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row]
        for row in best.iter_rows()
    ]
    print_table(
        console, columns, rows, title="The best trials: regret as a share of that of random lists"
    )
    say(
        console,
        f"In new runs {tuning.agent} has {tuning.score:.3g}, and {agent} as it is {tuning.default_score:.3g}.",
        "bold",
    )
    say(console, f"All trials are in {out / TRIALS}.")
