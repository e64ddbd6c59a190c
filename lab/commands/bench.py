"""``clickgym bench``: the scorecard of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from ...core.console import errors, output
from ...core.terminal import Column, print_table, say
from ...runner.commands.names import agents as agent_names
from ...runner.progress import Progress
from ...runner.reports.figures import write_figure
from ..bench.card import Scorecard
from ..bench.card import bench as bench_
from ..bench.figures import curves_figure
from ..bench.judge import judge as judge_
from ..bench.paper import check_beside
from ..bench.protocol import protocol_of
from ..bench.verify import read_submission
from ..bench.verify import verify as verify_

__all__ = ["bench"]

HOW_TO_JUDGE = "--judge takes --out DIR beside it, and --seed and --jobs: clickgym bench --judge submissions/NAME --out DIR"


def bench(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(
        metavar="AGENT", help="The agent, before the options: [bold]module:Class[/], or a published one.", show_default=False,
        autocompletion=agent_names,
    )] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Folder of the card and of what is played; created if missing, resumed if it exists.",
        show_default=False,
    )] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Only a few of the tasks, and fewer runs: for agents in plain Python, and for generic RL.",
    )] = False,
    plot: Annotated[str | None, typer.Option(
        metavar="ABILITY", help="Play nothing: draw the curves of the best agents of the package in this ability into the file "
        "[bold]--out[/], as late.pdf.",
        show_default=False,
    )] = None,
    verify: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Play nothing new: play some of this folder again, a random tenth. An agent that is not one of the "
        "package takes [bold]--trust[/], which runs its code.",
        show_default=False,
    )] = None,
    judge: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Judge a submission, as [bold]submissions/NAME[/]: play all that its card is about, on the test "
        "set and on a secret one, and write the result into [bold]--out[/]. Runs the code in it.",
        show_default=False,
    )] = None,
    seed: Annotated[int | None, typer.Option(
        metavar="N", help="Seed of the secret set of [bold]--judge[/], to repeat a judging; without it one is drawn.",
        show_default=False,
    )] = None,
    version: Annotated[int | None, typer.Option(
        metavar="N", help="Version of the tasks and of the scores; without it the newest.", show_default=False,
    )] = None,
    tuned: Annotated[bool, typer.Option(
        "--tuned", help="Tune the agent first, on development tasks, with the budget that all agents have.",
    )] = False,
    beside: Annotated[list[str] | None, typer.Option(
        metavar="LINE...", help="Lines of the reference beside the agent in [bold]scorecard.tex[/] and in its curves, as "
        'CascadeTS or "CascadeTS, tuned"; without it those that lead the board.',
        show_default=False,
    )] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers; -1 for one per processor. Changes no number.")] = -1,
) -> None:  # fmt: skip
    """Let an agent play the tasks of the scorecard, and compare it with the agents of the package.

    Plays only AGENT: the results of the other agents ship with the package. Writes [bold]scorecard.html[/], a page;
    [bold]scorecard.md[/], for an appendix, with its line of the leaderboard; for a paper [bold]scorecard.tex[/], a table beside
    baselines, and [bold]scorecard.bib[/], the entry to cite; and what was played, to be verified.

    [bold]Examples[/]

      clickgym bench my_module:MyAgent --out results/mine

    A table for a paper, beside baselines of your choice:

      clickgym bench my_module:MyAgent --out results/mine --beside CascadeTS TopRank

    Does this folder hold what its agent does?

      clickgym bench --verify results/mine

    What is a submission worth?

      clickgym bench --judge submissions/NAME --out results/NAME

    A figure for a paper, of which nothing is played:

      clickgym bench --plot late --out late.pdf

    Each run is written when it ends: stop with Ctrl-C, and go on later with the same command.
    """
    given = [name for name in context.params if _is_given(context, name)]
    if verify is not None:
        _check_alone(given, ["verify"], "--verify plays the agent that the folder names, and writes nothing; give it alone")
        _verify(verify)
    if plot is not None:
        _check_alone(given, ["plot", "out"], "--plot takes a file beside it, and nothing else: --plot late --out late.pdf")
        _plot(plot, out)
        return
    if judge is not None:
        _check_alone(given, ["judge", "out", *{"seed", "jobs"}.intersection(given)], HOW_TO_JUDGE)
        _judge(context, judge, out, seed, jobs)
    if seed is not None:
        raise ValueError("--seed goes with --judge only: the seeds of a card are those of the protocol")
    if agent is None or out is None:
        raise ValueError("expected an agent and a folder: clickgym bench my_module:MyAgent --out DIR")
    check_beside(beside, protocol_of(version))
    progress = context.obj = Progress(errors(), lines=False)
    with progress:
        card = bench_(agent, out=out, quick=quick, version=version, tuned=tuned, n_jobs=jobs, callback=progress)
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


def _verify(folder: Path) -> NoReturn:
    """Play some of a folder again, say what came of it, and exit."""
    say(errors(), f"The code of {read_submission(folder).agent} is executed now, as its author wrote it.", "bold")
    verdict, console = verify_(folder), output()
    say(console, f"{verdict}.", "bold")
    say(console, f"Its runs make an overall score of {verdict.standing.overall} over {verdict.standing.n_tasks} tasks.")
    raise typer.Exit(0 if verdict.right else 1)


def _judge(context: typer.Context, folder: Path, out: Path | None, seed: int | None, jobs: int) -> NoReturn:
    """Judge a submission, say and write what came of it, and exit."""
    assert out is not None
    if out.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"--out {out} lies in the submission, which its agent can read; choose another folder")
    say(errors(), f"The code in {folder} is executed now, as its author wrote it.", "bold")
    progress = context.obj = Progress(errors(), lines=False)
    with progress:
        judgement = judge_(folder, seed=seed, n_jobs=jobs, callback=progress)
    files, console = judgement.save(out), output()
    columns = [Column("ability"), *(Column(name, right=True) for name in ("submitted", "judged", "secret"))]
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
        (name.replace("_", " "), str(score), str(card.n_tasks(name)), card.protocol.abilities[name])
        for name, score in abilities.items()
    ]
    print_table(console, columns, [*rows, ("overall", str(overall), "", "")], title=f"Scorecard of {card.agent}")
    console.print()
    for sentence in card.summary:
        say(console, sentence)
