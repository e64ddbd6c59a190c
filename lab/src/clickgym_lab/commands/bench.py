"""``clickgym bench``: the scorecard of an agent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import polars
import typer
from rich.progress import track

from clickgym.agents import AGENTS
from clickgym.core.checks import check_choice
from clickgym.core.files import make_folder
from clickgym.runner.console import Cluster, Jobs, errors, output
from clickgym.runner.names import by_label
from clickgym.runner.progress import LINE_EVERY
from clickgym.runner.terminal import Column, print_table, say
from clickgym.runner.workers import on_cluster

from ..bench import unseen
from ..bench.board import (
    Line,
    abilities,
    board,
    line_of,
    published,
    requirements,
    save_line,
)
from ..bench.play import play, playable
from ..bench.tasks import ABILITIES, all_tasks, quick_tasks
from ..results import write_results

PLAYED, KEPT = "What to play", "Results"
"""The sections of the help text, before that on speed."""
RUNS = 5


def bench(
    agent: Annotated[
        str | None,
        typer.Argument(
            rich_help_panel=PLAYED,
            metavar="AGENT",
            help="Your own module:Class, or a built-in agent. Without an agent, the command "
            "prints the board of the published agents.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=KEPT,
            metavar="DIR",
            help="Folder of the results. If it exists, the command goes on where it stopped.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            rich_help_panel=PLAYED,
            help="Play one run of one task of each kind. This is for a first look, and for slow "
            "agents.",
        ),
    ] = False,
    ability: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=PLAYED,
            metavar="NAME",
            help="Print the board of one kind of tasks. "
            '"unseen queries" is a board of its own, which AGENT then plays.',
        ),
    ] = None,
    jobs: Jobs = -1,
    cluster: Cluster = None,
) -> None:
    """Find out where an agent is strong and where it is weak.

    Your own agent, at first in one task of each kind:

    clickgym bench my_module:MyAgent --quick --out results/mine

    The board of the published agents, in all tasks and in those with long lists:

    clickgym bench

    clickgym bench --ability "long lists"

    A policy that you have trained on other queries:

    \b
    clickgym bench my_module:my_policy --ability "unseen queries" \\
        --out results/mine

    The command plays your agent only, because the results of the published agents ship with
    clickgym. It writes AGENT.parquet, by which an agent can enter the board.

    Each run is saved when it ends. You can stop the command with Ctrl-C: the same command goes on
    where it stopped.
    """
    required = "" if agent is None else requirements(agent)  # its module may add an ability
    if ability is not None:
        check_choice("ability", ability, [*ABILITIES, unseen.NAME])
    if ability == unseen.NAME:
        _bench_unseen(agent, out, jobs, cluster)
        return
    if agent is None:
        _print_boards(published(), ability)
        return
    out = _folder(out)
    [label] = by_label("agent", [agent])
    wanted = quick_tasks() if quick else all_tasks()
    tasks = playable(agent, wanted)
    if not tasks:
        raise ValueError(f"{label} cannot play any task")
    watch = partial(_watched, label=label, total=len(tasks))
    with on_cluster(cluster):
        runs = 1 if quick else RUNS
        table = play(agent, tasks, runs, out / "plays", n_jobs=jobs, watch=watch)
    line = line_of(label, required, table)
    command = f"clickgym bench {label}{' --quick' if quick else ''}"
    made = {"command": command, "clickgym": version("clickgym")}
    path = save_line(out, label, line.requires, table, made)
    _print_line(line, quick)
    alike = {task.ability for task in wanted if task.has_features == tasks[0].has_features}
    if left := alike - {task.ability for task in tasks}:
        say(output(), f"Not played, and scored 0 on the board: {', '.join(sorted(left))}.")
    if not quick:
        _print_boards([*(other for other in published() if other.agent != label), line], ability)
    say(output(), f"In {out}: {path.name}")


def _folder(out: Path | None) -> Path:
    """Make the folder of the results."""
    if out is None:
        raise ValueError("expected a folder: clickgym bench AGENT --out DIR")
    make_folder(out)
    return out


def _bench_unseen(agent: str | None, out: Path | None, jobs: int, cluster: str | None) -> None:
    """Print the board of unseen queries, with an agent after it has played."""
    tables = dict(unseen.shipped())
    if agent is not None:
        out = _folder(out)
        [label] = by_label("agent", [agent])

        def refused(cell: unseen.Cell, error: ValueError) -> None:
            say(errors(), f"Not played: {cell.title} ({error})")

        with on_cluster(cluster):
            table = unseen.play(agent, out / "unseen", jobs, refused)
        if table.is_empty():
            raise ValueError(f"{label} cannot play any cell of {unseen.NAME}")
        command = f'clickgym bench {label} --ability "{unseen.NAME}"'
        made = {"agent": label, "command": command, "clickgym": version("clickgym")}
        write_results(unseen.file_of(out, label), table, made)
        tables[label] = table
    header, *rows = unseen.board(tables)
    columns = [Column(name, right=name != "agent") for name in header]
    title = "Unseen queries: share of the way from random lists (0) to told (1), ± 95 % interval"
    print_table(output(), columns, rows, title=title)
    if agent is not None:
        say(output(), f"In {out}: {unseen.file_of(Path(), label).name}")


def _watched(
    tables: Iterable[polars.DataFrame], label: str, total: int
) -> Iterator[polars.DataFrame]:
    """Show how many tables there are: by a bar, in a file or a pipe by a line a minute."""
    console = errors()
    if console.is_terminal or console.is_jupyter:
        yield from track(tables, label, total, console=console, transient=True)
        return
    due = time.monotonic() + LINE_EVERY
    for number, table in enumerate(tables, 1):
        yield table
        if time.monotonic() >= due:
            say(console, f"clickgym: {label}, {number} of {total} tasks")
            due = time.monotonic() + LINE_EVERY


def _print_boards(lines: list[Line], ability: str | None) -> None:
    for features in (False, True):
        header, *rows = board(lines, features, ability)
        if rows:
            title = "Agents that rank by features" if features else "Agents that rank items"
            numbers = ("score", "worst run", "µs per session")
            columns = [Column(name, right=name in numbers) for name in header]
            print_table(output(), columns, rows, title=title)
            output().print()


def _print_line(line: Line, quick: bool) -> None:
    """The scores of an agent in each ability, beside the best published agent in the same tasks."""
    tasks = [task for task in all_tasks() if task.name in line.scores]
    named = AGENTS.keys() - {line.agent}  # without our own
    others = {other.agent: abilities(other, tasks) for other in published() if other.agent in named}
    rows = []
    for ability, summary in abilities(line, tasks).items():
        values = {
            agent: scores[ability].value for agent, scores in others.items() if ability in scores
        }
        best = max(values, key=lambda agent: values[agent], default="")
        beside = f"{best} {values[best]:.2f}" if best else ""
        worst_run = [] if quick else [f"{summary.worst_run:z.2f}"]
        rows.append([ability, f"{summary.value:z.2f}", *worst_run, beside])
    columns = [Column("ability"), Column("score", right=True)]
    columns += [] if quick else [Column("worst run", right=True)]
    title = f"Scorecard of {line.agent}" + (", one run of one task each" if quick else "")
    print_table(output(), [*columns, Column("best published")], rows, title=title)
    output().print()
