"""``clickgym tune``: the hyper-parameters with which an agent has the lowest regret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..console import Cluster, output
from ..terminal import say
from ..tuning import TRIALS
from ..tuning import tune as tune_
from ..workers import on_cluster
from .logs import Columns, Start, typed_log
from .run import Instances, Jobs, Seed


def tune(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            show_default=False,
            help="The agent, before the options: CascadeKLUCB, or your own module:Class.",
        ),
    ],
    envs: Annotated[
        list[str],
        typer.Option(
            "--environments",
            "-e",
            metavar="ENV...",
            show_default=False,
            help="Environments, as after clickgym run.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Folder of the study; created if missing, resumed if it exists.",
        ),
    ],
    trials: Annotated[int, typer.Option(metavar="N", help="Number of trials.")] = 40,
    instance: Instances = None,
    horizon: Annotated[float, typer.Option(metavar="T", help="Sessions per run.")] = 10_000,
    runs: Annotated[
        int, typer.Option(metavar="N", help="Runs of each trial in each environment and instance.")
    ] = 4,
    seed: Seed = 0,
    start: Start = None,
    columns: Columns = "",
    jobs: Jobs = -1,
    cluster: Cluster = None,
) -> None:
    """Search for the hyper-parameters that give an agent the lowest regret, by Optuna.

    \b
    clickgym tune CascadeKLUCB:feedback=first_click --environments CMRank-v0 \\
        --instance uniform:seed=1 --out tuned

    The search space is the attribute search_space of the agent's class, without what has a value.
    The score is the regret divided by that of random lists. Test the result on other instances
    than these. The same command resumes, also with more trials.
    """
    log = typed_log(start, columns)
    with on_cluster(cluster):
        tuning = tune_(
            agent,
            envs,
            trials,
            horizon=horizon,
            instances=instance,
            runs=runs,
            seed=seed,
            start=log,
            out=out,
            n_jobs=jobs,
        )
    console = output()
    scores = f"{tuning.agent} has {tuning.score:.3g}, and {agent} as it is"
    say(console, f"In new runs {scores} {tuning.default_score:.3g}.", "bold")
    say(console, f"All trials are in {out / TRIALS}.")
