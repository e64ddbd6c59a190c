"""``clickgym run``: agents in environments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ...core.console import Cluster, Pdf, bold, errors, output
from ...core.workers import on_cluster
from ..metrics import DERIVED, METRICS
from ..pairs import ENGINES
from ..progress import Progress
from ..reports.report import write_report
from ..sweep import sweep
from .names import agents as agent_names
from .names import environments, instances
from .names import metrics as metric_names


def run(
    context: typer.Context,
    envs: Annotated[
        list[str],
        typer.Argument(
            metavar="ENVS...",
            autocompletion=environments,
            help="One or more environments, before the options: [bold]PBMRank-v0[/], [bold]PBMRank-v0:reward=any_click[/], or your "
            "own, which a module registers, [bold]module:MyRank-v0[/].",
        ),
    ],
    agents: Annotated[
        list[str],
        typer.Option(
            "--agents",
            "-a",
            metavar="AGENT...",
            show_default=False,
            autocompletion=agent_names,
            help="One or more agents: [bold]BatchRank[/], with arguments [bold]TopRank:delta=0.1[/], or your own "
            "[bold]module:Class[/], an agent or an algorithm in the style of stable-baselines3. Tables and figures use the label "
            "before an equals sign: [bold]mine=module:Class:alpha=0.1[/].",
        ),
    ],
    horizon: Annotated[
        str,
        typer.Option(
            metavar="T",
            help="Sessions per run, as [bold]100000[/] or [bold]1e5[/].",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder of the results; created if missing, resumed if it exists. More agents, environments, "
            "instances and runs are added to what it holds.",
        ),
    ],
    runs: Annotated[int, typer.Option(metavar="N", help="Runs per agent and environment.")] = 10,
    instance: Annotated[
        list[str] | None,
        typer.Option(
            "--instance",
            "-i",
            metavar="NAME|FILE...",
            show_default="a real search query",
            autocompletion=instances,
            help="One or more instances (names, or your own JSON files). Every environment is run with each of them.",
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
    engine: Annotated[
        str,
        typer.Option(
            metavar="|".join(ENGINES),
            help="The compiled loop, or a slower loop in Python with the same results; auto takes the "
            "compiled one if the pair allows it.",
        ),
    ] = "auto",
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="METRIC...",
            show_default="none",
            autocompletion=metric_names,
            help=f"Metrics besides regret and reward: {', '.join(map(bold, METRICS | DERIVED))}.",
        ),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="batch:B|fixed:D|geometric:M",
            show_default="none",
            help="Agents learn of clicks late: after each B sessions, after D, or after M on average.",
        ),
    ] = None,
    pdf: Pdf = False,
) -> None:
    """Run every agent in every environment, and write a table and a figure of the regret.

    [bold]Examples[/]

    Two algorithms on a real search query, under two click models:

      clickgym run PBMRank-v0 CMRank-v0 --agents BatchRank TopRank --horizon 1e6 --runs 10 --out
      results/first

    Your own agent, with an argument and a label, on your own query:

      clickgym run DCMRank-v0 --agents mine=my_module:MyAgent:alpha=0.5 BatchRank --instance
      query.json --horizon 1e5 --out new

    [bold]Stop, resume, extend[/]

    The command saves each run when the run ends. You can stop it with Ctrl-C and resume with the
    same command. The same folder also takes further agents, environments, instances and runs;
    horizon, seed, engine, metrics and delay must stay the same. If an agent or an environment fails during
    a run, the command prints the error, keeps all finished runs, and exits with code 1. Wrong input
    gives exit code 2.
    """
    progress = context.obj = Progress(errors())
    with progress, on_cluster(cluster):
        sweep(
            envs,
            agents,
            number(horizon),
            runs,
            seed=seed,
            out=out,
            instances=instance,
            n_jobs=jobs,
            engine=cast(Any, engine),
            metrics=metrics or (),
            delay=delay,
            callback=progress,
        )
    write_report(out, output(), pdf=pdf)


def number(text: str) -> Any:
    """What was written as a horizon; words are left to the check that every horizon meets."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text
