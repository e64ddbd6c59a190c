"""``clickgym bench``: the scorecard of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from ...core.console import errors, output
from ...core.terminal import Column, print_table, say
from ...runner.commands.names import agents as agent_names
from ...runner.progress import Progress
from ..bench.card import Scorecard
from ..bench.card import bench as bench_
from ..bench.tasks import ABILITIES
from ..bench.verify import read_submission
from ..bench.verify import verify as verify_

__all__ = ["bench"]


def bench(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(
        metavar="AGENT", help="The agent, before the options: [bold]module:Class[/], or a published one.", show_default=False,
        autocompletion=agent_names,
    )] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Folder of the card and of what is played; made if need be, gone on with if begun.",
        show_default=False,
    )] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Only a few of the tasks, and fewer runs: for agents in plain Python, and for generic RL.",
    )] = False,
    verify: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Play nothing new: play some of this folder again, a random tenth. An agent that is not one of the "
        "package takes [bold]--trust[/], which runs its code.",
        show_default=False,
    )] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers; -1 for one per processor. Changes no number.")] = -1,
) -> None:  # fmt: skip
    """Let an agent play the tasks of the scorecard, and compare it with the agents of the package.

    Only the newcomer plays; the results of the others are there. What is written: [bold]scorecard.html[/], a page;
    [bold]scorecard.md[/], for an appendix, with its line of the leaderboard; and what was played, to be verified.

    [bold]Examples[/]

      clickgym bench my_module:MyAgent --out results/mine

    Does this folder hold what its agent does?

      clickgym bench --verify results/mine

    Each run is written when it ends: stop with Ctrl-C, and go on later with the same command.
    """
    if verify is not None:
        if agent is not None or out is not None or quick or jobs != -1:
            raise ValueError("--verify plays the agent that the folder names, and writes nothing; give it alone")
        _verify(verify)
    if agent is None or out is None:
        raise ValueError("expected an agent and a folder: clickgym bench my_module:MyAgent --out DIR")
    progress = context.obj = Progress(errors(), lines=False)
    with progress:
        card = bench_(agent, out=out, quick=quick, n_jobs=jobs, callback=progress)
    files = card.save(out)
    console = output()
    _print(console, card)
    say(console, f"In {out}: {', '.join(file.name for file in files)}")


def _verify(folder: Path) -> NoReturn:
    """Play some of a folder again, say what came of it, and exit."""
    say(errors(), f"The code of {read_submission(folder).agent} is executed now, as its author wrote it.", "bold")
    verdict, console = verify_(folder), output()
    say(console, f"{verdict}.", "bold")
    say(console, f"Its runs make an overall score of {verdict.standing.overall} over {verdict.standing.n_tasks} tasks.")
    raise typer.Exit(0 if verdict.right else 1)


def _print(console: Console, card: Scorecard) -> None:
    overall, abilities, _ = card.standing
    columns = [Column("ability"), Column("score (95 % interval)"), Column("tasks", rank=2, right=True)]
    columns.append(Column("what it is about", rank=1, words=True))
    rows = [(name.replace("_", " "), str(score), str(card.n_tasks(name)), ABILITIES[name]) for name, score in abilities.items()]
    print_table(console, columns, [*rows, ("overall", str(overall), "", "")], title=f"Scorecard of {card.agent}")
    console.print()
    for sentence in card.summary:
        say(console, sentence)
