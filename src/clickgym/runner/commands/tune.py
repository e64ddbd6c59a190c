"""``clickgym tune``: the hyper-parameters with which an agent loses least."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from polars import col
from rich.console import Console

from ...core.console import Cluster, Json, errors, output, print_json
from ...core.terminal import Column, print_table, say
from ...core.workers import on_cluster
from ..progress import TuningProgress
from ..reports.figures import save_figure
from ..tuning import CONFIG, PRUNED, TRIALS, Tuning
from ..tuning import tune as tune_
from .names import agents as agent_names
from .names import environments, instances
from .run import number


def tune(
    context: typer.Context,
    agent: Annotated[list[str], typer.Argument(
        metavar="AGENT", autocompletion=agent_names, show_default=False,
        help="The agent, before the options, as [bold]CascadeKLUCB[/] or your own [bold]module:Class[/].",
    )],
    envs: Annotated[list[str], typer.Option(
        "--environments", "-e", metavar="ENV...", show_default=False, autocompletion=environments,
        help="One or more environments, as after [bold]clickgym run[/].",
    )],
    budget: Annotated[str, typer.Option(
        metavar="N", show_default=False, help="Total number of sessions that the search may use, as [bold]1e6[/].",
    )],
    out: Annotated[Path, typer.Option(
        metavar="DIR", help="Folder of the results; created if missing, resumed if it exists.",
    )],
    instance: Annotated[list[str] | None, typer.Option(
        "--instances", "-i", metavar="NAME|FILE...", show_default="a real search query", autocompletion=instances,
        help="One or more instances. Keep the instances on which you will test the result apart.",
    )] = None,
    horizon: Annotated[str, typer.Option(metavar="T", help="Sessions per run.")] = "10000",
    runs: Annotated[int, typer.Option(metavar="N", help="Runs of each trial in each environment and instance.")] = 4,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same result.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Worker processes; -1 for one per CPU. Results stay the same.")] = -1,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Search for the hyper-parameters that give an agent the lowest regret, within a budget of sessions.

    The search space is the attribute [bold]search_space[/] of the agent's class, or the values that you write in braces (in
    quotes). The score is the regret divided by the regret of random lists. The search stops a bad trial after some of its runs,
    and runs the best trials again with other seeds.

    [bold]Examples[/]

    On two random instances:

      clickgym tune CascadeKLUCB --environments CMRank-v0 --instances uniform:seed=1 uniform:seed=2 --budget 4e6 --out tuned

    Your own search spaces: a range on a logarithmic scale; a set of values beside a fixed value:

      clickgym tune "EpsilonGreedy:epsilon={0.001..0.5 log}" --environments PBMRank-v0 --budget 1e6 --out tuned

      clickgym tune "CascadeKLUCB:c={0,0.5,1,3},feedback=first_click" --environments DCMRank-v0 --budget 2e6 --out tuned

    [bold]Stop and resume[/]

    The command saves each run when the run ends. You can stop it with Ctrl-C and resume with the same command, or with a larger
    budget.
    """
    if len(agent) > 1:
        raise ValueError(f"one agent is tuned at a time, got {' '.join(agent)}; shells split braces: put quotes around them")
    progress = context.obj = TuningProgress(errors())
    with progress, on_cluster(cluster):
        tuning = tune_(
            agent[0], envs, number(budget), horizon=number(horizon), instances=instance, runs=runs, seed=seed, out=out,
            n_jobs=jobs, callback=progress,
        )  # fmt: skip
    files = save_figure(tuning.plot(), out / "tuning")
    _print(output(as_json), tuning, [out / TRIALS, out / CONFIG, *files])
    if as_json:
        print_json(_document(tuning, out))


def _print(console: Console, tuning: Tuning, files: Sequence[Path]) -> None:
    columns = [Column("agent"), Column("final (95 %)", right=True), Column("search (95 %)", right=True)]
    rows = tuning.best().select("agent", "final_score", "final_ci95", "score", "ci95").iter_rows()
    cells = [
        (f"{agent}, as it is" if agent == tuning.config["agent"] else agent, _score(final, final_ci95), _score(score, ci95))
        for agent, final, final_ci95, score, ci95 in rows
    ]
    config = tuning.config
    given_up = tuning.trials.filter(col("state") == PRUNED).height
    title = f"Regret as a share of that of random lists, after {config['horizon']:,} sessions"
    print_table(console, columns, cells, title=title)
    console.print()
    trials = f"{len(tuning.trials)} trials, {given_up} of them given up, {tuning.sessions:,} sessions"
    say(console, f"{trials}, on {', '.join(config['envs'])}: {', '.join(config['instances'])}.")
    if tuning.default_score is not None and tuning.agent == config["agent"]:
        say(console, f"No trial was better than {tuning.agent} as it is.", "bold")
    else:
        say(console, _verdict(tuning), "bold")
        command = ["clickgym", "run", *config["envs"], "--agents", config["agent"], tuning.agent]
        command += ["--horizon", str(config["horizon"])]
        say(console, f"Judge it on other instances: {shlex.join(command)} --instance NAME --out DIR")
    say(console, f"In {files[0].parent}: {', '.join(file.name for file in files)}")


def _verdict(tuning: Tuning) -> str:
    """The agent with the lowest score in the final, and whether the default is certainly worse."""
    finals = {row["agent"]: (row["final_score"], row["final_ci95"]) for row in tuning.best().iter_rows(named=True)}
    (score, ci95), (default, default_ci95) = finals[tuning.agent], finals.get(tuning.config["agent"], (None, None))
    if default is None:
        return f"Lowest score: {tuning.agent}"
    if None not in (ci95, default_ci95) and default - score > math.hypot(ci95, default_ci95):
        return f"Better than {tuning.config['agent']} as it is: {tuning.agent}"
    doubt = f"but {tuning.config['agent']} as it is may be as good: the intervals do not tell them apart"
    return f"Lowest score: {tuning.agent}, {doubt}"


def _score(score: float | None, ci95: float | None) -> str:
    if score is None:
        return ""
    return f"{score:.3g}" if ci95 is None else f"{score:.3g} ± {ci95:.2g}"


def _document(tuning: Tuning, out: Path) -> dict[str, Any]:
    """What is known of a tuning, for programs."""
    return {
        "folder": str(out),
        **{key: tuning.config[key] for key in ("clickgym", "envs", "instances", "horizon", "runs", "seed", "search_space")},
        **{key: getattr(tuning, key) for key in ("agent", "hyperparameters", "score", "default_score", "sessions")},
        "trials": tuning.trials.to_dicts(),
    }
