"""The command ``clickgym bench``, which computes the scorecard of an agent."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from typing import Annotated
from urllib.parse import quote

import typer
from rich.progress import track

from ..agents import AGENTS
from ..core.checks import check_choice, check_path
from ..core.files import make_folder
from ..runner.commands.run import JobCount
from ..runner.console import Column, error_console, output_console, print_table, print_text
from ..runner.make.labels import label_objects
from .board import OURS, BoardLine, board, line_of, published_lines, requirements_text, save_line
from .play_tasks import play_tasks, playable_tasks
from .tasks import ABILITIES, all_tasks, quick_tasks

RUN_SECTION, RESULT_SECTION = "What to run", "Results"
"""The titles of the first two sections of the help text; a section on speed follows."""
RUNS = 5


def bench(
    agent: Annotated[
        str | None,
        typer.Argument(
            rich_help_panel=RUN_SECTION,
            metavar="AGENT",
            help="Your own agent, as module:Class, or a built-in agent. Without an agent, the "
            "command prints the board of the published agents.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=RESULT_SECTION,
            metavar="DIR",
            help=(
                "Folder for the results; required with an agent. If you stopped an earlier command "
                "with the same folder, this command continues where it stopped."
            ),
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            rich_help_panel=RUN_SECTION,
            help="Run the agent only once, in one task of each kind, for a first look or for a "
            "slow agent.",
        ),
    ] = False,
    ability: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=RUN_SECTION,
            metavar="NAME",
            help="Show the board only for this kind of task, such as 'long lists'.",
        ),
    ] = None,
    jobs: JobCount = -1,
) -> None:
    """Find out on which kinds of tasks an agent is strong or weak.

    Test your own agent, first in one task of each kind:

    clickgym bench my_module:MyAgent --quick --out results/mine

    Print the board of the published agents, for all tasks and for the tasks with long lists:

    clickgym bench

    clickgym bench --ability "long lists"

    The command runs only your agent, because clickgym ships the results of the published agents.
    The command also writes AGENT.parquet, which you can submit to add your agent to the board.

    Each task is saved as soon as it ends. You can stop the command with Ctrl-C, and continue later
    with the same command. If you have changed the agent in the meantime, delete the folder first.
    Once all tasks are finished, the same command runs all tasks again.
    """
    # The agent is imported before the ability is checked, because the module may add one.
    requirements = "" if agent is None else requirements_text(agent)
    if ability is not None:
        check_choice("ability", ability, ABILITIES)
    if agent is None:
        _print_boards(published_lines(), ability)
        return
    if out is None:
        raise ValueError("name a folder for the results: clickgym bench AGENT --out DIR")
    out = check_path("out", out).absolute()  # the agent may change the working folder
    make_folder(out)
    [label] = label_objects("agent", [agent])
    board_tasks = quick_tasks() if quick else all_tasks()
    tasks = playable_tasks(agent, board_tasks)
    if not tasks:
        raise ValueError(f"{label} is not suited to any task of the scorecard")
    console = error_console()
    track_progress = partial(
        track,
        description=label,
        total=len(tasks),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    runs_folder = out / ("quick" if quick else "plays") / quote(label, safe="")
    table = play_tasks(
        agent, tasks, 1 if quick else RUNS, runs_folder, n_jobs=jobs, track_progress=track_progress
    )
    line = line_of(label, requirements, table)
    command = f"clickgym bench {label}{' --quick' if quick else ''}"
    provenance = {"command": command, "clickgym": version("clickgym")}
    path = save_line(out, label, requirements, table, provenance)
    rmtree(runs_folder)  # by the next command, the agent may have changed
    _print_line(line, quick)
    abilities = {task.ability for task in board_tasks if task.has_features == tasks[0].has_features}
    if missing := abilities - {task.ability for task in tasks}:
        print_text(
            output_console(),
            f"Not played, so scored 0 on the board: {', '.join(sorted(missing))}.",
        )
    if not quick:
        _print_boards(
            [*(other for other in published_lines() if other.agent != label), line], ability
        )
    print_text(output_console(), f"Results in {out}: {path.name}")


def _print(title: str, table: list[list[str]], left_aligned: tuple[str, ...] = ("agent",)) -> None:
    """Print a table below its title. Only the columns in ``left_aligned`` are left-aligned."""
    header, *rows = table
    columns = [Column(name, align_right=name not in left_aligned) for name in header]
    print_table(output_console(), columns, rows, title=title)


def _print_boards(lines: list[BoardLine], ability: str | None) -> None:
    left_aligned = ("agent", "requires", "95 % interval", "best at", "worst at")
    for features in (False, True):
        table = board(lines, features, ability)
        if table[1:]:
            _print(
                "Agents that rank by features" if features else "Agents that rank items",
                table,
                left_aligned,
            )
            output_console().print()


def _print_line(line: BoardLine, quick: bool) -> None:
    """Print an agent's score in each ability, next to the score of the best published agent on the
    same tasks.
    """
    tasks = [task for task in all_tasks() if task.name in line.scores]
    rivals = AGENTS.keys() - {line.agent, *OURS}
    rival_scores = {
        rival.agent: rival.abilities(tasks) for rival in published_lines() if rival.agent in rivals
    }
    rows = [["ability", "score", *([] if quick else ["worst run"]), "best published"]]
    for ability, summary in line.abilities(tasks).items():
        values = {
            name: summaries[ability].value
            for name, summaries in rival_scores.items()
            if ability in summaries
        }
        best = max(values, key=lambda name: values[name], default="")
        best_rival = f"{best} {values[best]:.2f}" if best else ""
        worst_run = [] if quick else [f"{summary.worst_run:z.2f}"]
        rows.append([ability, f"{summary.value:z.2f}", *worst_run, best_rival])
    title = f"Scorecard of {line.agent}" + (": one run of one task of each kind" if quick else "")
    _print(title, rows, ("ability", "best published"))
    output_console().print()
