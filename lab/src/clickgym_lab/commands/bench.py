"""``clickgym bench``: the scorecard of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from clickgym.core.console import Cluster, errors, output
from clickgym.core.terminal import Column, print_table, say
from clickgym.core.workers import on_cluster
from clickgym.runner import Progress
from clickgym.runner.commands import names
from clickgym.runner.reports import write_figure

from ..bench.card import Scorecard
from ..bench.card import bench as bench_
from ..bench.figures import curves_figure
from ..bench.judge import judge as judge_
from ..bench.paper import check_beside

JUDGE = "clickgym bench --judge lab/submissions/NAME --out DIR"
HOW_TO_JUDGE = f"--judge needs --out DIR, takes only --seed, --unconfined and --jobs, and plays on this machine: {JUDGE}"


def bench(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(
        metavar="AGENT", help="The agent, before the options: your own [bold]module:Class[/], or a built-in one.",
        show_default=False, autocompletion=names.agents,
    )] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Folder of the scorecard and of its runs; created if missing, resumed if it exists. "
        "With [bold]--plot[/]: the file of the figure.",
        show_default=False,
    )] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Run fewer tasks, and fewer runs of each: for slow agents in plain Python and for generic RL.",
    )] = False,
    plot: Annotated[str | None, typer.Option(
        metavar="ABILITY", help="Run nothing: draw the curves of the best built-in agents in this ability into the file "
        "[bold]--out[/].",
        show_default=False,
    )] = None,
    judge: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Judge a submission, the folder [bold]lab/submissions/NAME[/]: run its agent on all tasks of the "
        "test set and of a secret set, each run in a sandbox of its own, and write the result into [bold]--out[/]. "
        "Warning: this executes the submitted agent's code.",
        show_default=False,
    )] = None,
    unconfined: Annotated[bool, typer.Option(
        "--unconfined", help="With [bold]--judge[/], where bubblewrap is missing: run the submitted code without sandboxes. "
        "The result is not called judged.",
    )] = False,
    seed: Annotated[int | None, typer.Option(
        metavar="N", help="Seed of the secret set of [bold]--judge[/]; give it to repeat a judgement. By default a random one.",
        show_default=False,
    )] = None,
    beside: Annotated[list[str] | None, typer.Option(
        metavar="LINE...", help="Built-in agents to show beside AGENT in [bold]scorecard.tex[/] and in the curves: "
        'CascadeTS, or "CascadeTS, tuned". By default the leaders of the leaderboard.',
        show_default=False,
    )] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Worker processes; -1 for one per CPU. Results stay the same.")] = -1,
    cluster: Cluster = None,
) -> None:  # fmt: skip
    """Run an agent on the tasks of the scorecard, and compare its scores with those of the built-in agents.

    Runs only AGENT: the results of the built-in agents ship with the package. Writes [bold]scorecard.html[/], a page;
    [bold]scorecard.md[/], for an appendix, with the agent's line of the leaderboard; [bold]scorecard.tex[/], a table for a
    paper; [bold]scorecard.bib[/], the BibTeX entry to cite; and the runs, so that others can repeat them.

    [bold]Examples[/]

      clickgym bench my_module:MyAgent --out results/mine

    A table for a paper, beside baselines of your choice:

      clickgym bench my_module:MyAgent --out results/mine --beside CascadeTS TopRank

    Judge a submission to the leaderboard:

      clickgym bench --judge lab/submissions/NAME --out results/NAME

    A figure of the built-in agents for a paper, without running anything:

      clickgym bench --plot late --out late.pdf

    The command saves each run when the run ends. You can stop it with Ctrl-C and resume with the same command.
    """
    given = [name for name in context.params if _is_given(context, name)]
    if plot is not None:
        _check_alone(given, ["plot", "out"], "--plot needs --out FILE, and takes no other option: --plot late --out late.pdf")
        _plot(plot, out)
        return
    if judge is not None:
        _check_alone(given, ["judge", "out", *{"seed", "unconfined", "jobs"}.intersection(given)], HOW_TO_JUDGE)
        _judge(judge, out, seed, unconfined, jobs)
    if seed is not None:
        raise ValueError("--seed is only for --judge: the protocol fixes the seeds of a scorecard")
    if unconfined:
        raise ValueError("--unconfined is only for --judge: elsewhere there is no sandbox")
    if agent is None or out is None:
        raise ValueError("expected an agent and a folder: clickgym bench my_module:MyAgent --out DIR")
    check_beside(beside)
    progress = context.obj = Progress(errors(), lines=False)
    with progress, on_cluster(cluster):
        card = bench_(agent, out=out, quick=quick, n_jobs=jobs, callback=progress)
    files = card.save(out, beside)
    console = output()
    _print(console, card)
    say(console, f"In {out}: {', '.join(file.name for file in files)}")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE" and name != "trust"


def _check_alone(given: Sequence[str], expected: Sequence[str], message: str) -> None:
    """Refuse options that do not go with what was asked for, and the lack of one that does."""
    if sorted(given) != sorted(expected):
        raise ValueError(message)


def _plot(ability: str, out: Path | None) -> None:
    """Draw the curves of an ability into a file."""
    assert out is not None
    write_figure(curves_figure(ability), out)
    say(output(), f"In {out.parent}: {out.name}")


def _judge(folder: Path, out: Path | None, seed: int | None, unconfined: bool, jobs: int) -> NoReturn:
    """Judge a submission, say and write what came of it, and exit."""
    assert out is not None
    if out.resolve().is_relative_to(folder.resolve()):
        raise ValueError(
            f"--out {out} lies in the folder of the submission, where the submitted agent could read it; choose another folder"
        )
    say(errors(), f"Warning: this executes the code in {folder}.", "bold")
    with Progress(errors(), lines=False) as progress:  # nothing is kept of a judging that is stopped
        judgement = judge_(folder, seed=seed, unconfined=unconfined, n_jobs=jobs, callback=progress)
    files, console = judgement.save(out), output()
    columns = [Column("ability"), *(Column(name, right=True) for name in judgement.columns)]
    print_table(console, columns, judgement.rows, title=f"{judgement.name}: {judgement.agent}")
    console.print()
    say(console, judgement.how)
    say(console, f"{judgement.claim}.", "bold")
    say(console, f"Seed of the secret set: {judgement.seed}")
    say(console, f"In {out}: {', '.join(file.name for file in files)}")
    raise typer.Exit(0 if judgement.claim.right else 1)


def _print(console: Console, card: Scorecard) -> None:
    overall, abilities = card.standing.overall, card.standing.abilities
    columns = [Column("ability"), Column("score (95 % interval)"), Column("tasks", rank=2, right=True)]
    columns.append(Column("what it is about", rank=1, words=True))
    rows = [
        (name.replace("_", " "), str(score), str(card.n_tasks(name)), card.protocol.columns()[name])
        for name, score in abilities.items()
    ]
    print_table(console, columns, [*rows, ("overall", str(overall), "", "")], title=f"Scorecard of {card.agent}")
    console.print()
    for sentence in card.summary:
        say(console, sentence)
