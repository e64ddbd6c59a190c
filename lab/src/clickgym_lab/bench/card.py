"""Scorecard of an agent: its results in the tasks and its comparison with the built-in agents, as
tables.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars
from polars import col
from rich.console import Console

from clickgym.core.checks import check_flag, check_kind, check_path
from clickgym.core.files import make_folder, read_json, write_whole
from clickgym.core.formats import amount, markdown_table
from clickgym.core.workers import check_workers
from clickgym.runner import AgentLike, Callback, Player, Progress, by_label, player_of

from .play import n_sessions, play, suited
from .protocol import CURRENT, Protocol
from .reference import reference
from .score import Estimate, ability_scores, improvement, scored

CONFIG, PLAYS = "bench.json", "plays"
BESIDE_IT = ("Random", "Oracle")
"""Agents that are not shown as the best of the reference."""


class Comparison(NamedTuple):
    """Comparison with one built-in agent: the probability to beat it, over the tasks that both have
    played.
    """

    agent: str
    improvement: Estimate
    n_tasks: int


@dataclass(frozen=True)
class Scorecard:
    """The results of an agent in the tasks of the scorecard, and its scores.

    Attributes:
        agent: the name of the agent in results.
        requires: the arguments with which the agent gets knowledge of the environment.
        quick: whether only the tasks of ``--quick`` were played.
        table: one row for each task and run, with ``loss``, ``score`` and ``seconds``.
        protocol: the tasks.

    Example:
        >>> from clickgym_lab.bench.card import bench
        >>> card = bench("Random", quick=True)
        >>> abs(card.abilities["standard"].value) < 0.1
        True
    """

    agent: str
    requires: tuple[str, ...]
    quick: bool
    table: polars.DataFrame
    protocol: Protocol = CURRENT

    @cached_property
    def abilities(self) -> dict[str, Estimate]:
        """The score of each ability of which the agent plays a task."""
        return ability_scores(self.table, self.protocol, self.quick)

    @cached_property
    def best(self) -> dict[str, tuple[str, float]]:
        """Of each of these abilities the built-in agent with the highest score over the tasks of
        the card, and its score.
        """
        rows = reference(self.protocol).filter(
            col("task").is_in(self.table["task"].unique().implode())
        )
        rows = rows.filter(~col("agent").is_in([*BESIDE_IT, self.agent]))
        means = (
            rows.group_by("ability", "agent")
            .agg(col("score").mean())
            .sort("score", "agent", descending=[True, False])
        )
        first = means.unique("ability", keep="first", maintain_order=True)
        return {ability: (agent, score) for ability, agent, score in first.iter_rows()}

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The comparisons with all built-in agents; the agent that is easiest to beat comes
        first.
        """
        others = (
            reference(self.protocol)
            .filter(col("agent") != self.agent)
            .group_by(["agent"], maintain_order=True)
        )
        found = [
            Comparison(str(name), *result)
            for (name,), rows in others
            if (result := improvement(self.table, rows, self.protocol)) is not None
        ]
        return sorted(found, key=lambda comparison: -comparison.improvement.value)

    def n_tasks(self, ability: str) -> int:
        """How many tasks of an ability the agent has played."""
        return self.table.filter(col("ability") == ability)["task"].n_unique()

    @property
    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """A row for each ability: its name, the score, the best built-in agent with its score,
        tasks, and what it is about.
        """
        rows = []
        for name, score in self.abilities.items():
            agent, best = self.best.get(name, ("–", float("nan")))
            beside = f"{best:z.2f} ({agent})" if agent != "–" else "–"
            rows.append(
                (
                    name.replace("_", " "),
                    str(score),
                    beside,
                    str(self.n_tasks(name)),
                    self.protocol.abilities[name],
                )
            )
        return rows

    def to_markdown(self) -> str:
        """The card as a page: abilities, comparisons and tasks."""
        abilities = [
            (
                "ability",
                "score (95 % interval)",
                "best built-in agent",
                "tasks",
                "what it is about",
            ),
            *self.rows,
        ]
        parts = [
            f"# Scorecard of {self.agent}",
            f"clickgym {version('clickgym')}{', the tasks of --quick' if self.quick else ''}. A score of 0 is what random "
            "lists lose, 1 the best loss of the anchors; between them the scale is logarithmic.",
        ]
        if self.requires:
            parts.append(
                f"The agent requires {', '.join(self.requires)} where the environment knows it."
            )
        parts += ["## Abilities", "\n".join(markdown_table(abilities))]
        if not self.quick:
            compared = [
                (each.agent, str(each.improvement), str(each.n_tasks)) for each in self.comparisons
            ]
            header = ("agent", "probability of improvement (95 % interval)", "common tasks")
            parts += [
                "## Against the built-in agents",
                "\n".join(markdown_table([header, *compared])),
            ]
        columns = ("task", "what it measures", "loss", "random", "best of the anchors", "score")
        parts += ["## Tasks", "\n".join(markdown_table([columns, *self._task_rows()]))]
        return "\n\n".join(parts) + "\n"

    def _task_rows(self) -> list[tuple[str, ...]]:
        """A row for each task; losses and scores are means over runs."""
        means = self.table.group_by("task", maintain_order=True).agg(col("loss", "score").mean())
        rows: list[tuple[str, ...]] = []
        for name, loss, score in means.iter_rows():
            task, anchor = self.protocol.by_name[name], self.protocol.anchors[name]
            best = f"{amount(anchor.best)} ({anchor.agent})"
            about = f"{task.about} ({task.instance})"
            rows.append((name, about, amount(loss), amount(anchor.random), best, f"{score:z.2f}"))
        return rows

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``scorecard.md``.

        Args:
            folder: made if need be.

        Returns:
            The file.
        """
        folder = check_path("folder", folder)
        make_folder(folder)
        write_whole(folder / "scorecard.md", self.to_markdown())
        return folder / "scorecard.md"


def bench(
    agent: AgentLike,
    *,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
    n_jobs: int = -1,
    progress: bool | None = None,
    callback: Callback | None = None,
    on_block: Callable[[str], object] | None = None,
) -> Scorecard:
    """Run an agent on the tasks of the scorecard, and compare its scores with those of the built-in
    agents.

    Only this agent is run: the results of the built-in agents ship with the package.

    Args:
        agent: as `sweep` takes it: a class, a name, ``"module:Class"``, a `functools.partial`, or a
        mapping with one label.
        out: a folder that keeps the runs, to resume them; created if missing. None keeps nothing.
        quick: play fewer tasks and fewer runs: for slow agents in plain Python and for generic RL.
        n_jobs: as in `sweep`.
        progress: show a bar on stderr; None shows it in a terminal and in a notebook.
        callback: receives the progress of each sweep instead.
        on_block: is called before each sweep with its name.

    Returns:
        The card; its ``save`` writes it.

    Raises:
        ValueError, TypeError: on a bad argument, before any work starts; on an agent that cannot
            play any of the tasks; on a folder that holds the results of another agent or version of
            it.
        AgentError: the agent proposed a bad list, or failed; what was played is kept.

    Example:
        >>> from clickgym_lab.bench.card import bench
        >>> card = bench("Random", quick=True)
        >>> card.agent, card.table["run"].n_unique()
        ('Random', 2)
    """
    quick, progress = (
        check_flag("quick", quick),
        None if progress is None else check_flag("progress", progress),
    )
    out = None if out is None else check_path("out", out)
    check_workers(n_jobs)
    label, player = _one_agent(agent)
    tasks = CURRENT.tasks(quick)
    suitable = suited(player, tasks)
    if not suitable:
        raise ValueError(f"{label} cannot play any of the {len(tasks)} tasks")
    with tempfile.TemporaryDirectory() as temporary, _listener(callback, progress) as listener:
        folder = Path(temporary) if out is None else out
        _open(folder, label)
        runs = CURRENT.n_runs(quick)
        listener.whole(f"{len(suitable)} tasks", n_sessions(suitable, runs))
        played = play(
            CURRENT,
            label,
            player,
            suitable,
            runs,
            folder / PLAYS,
            n_jobs=n_jobs,
            callback=listener,
            on_block=on_block,
        )
    return Scorecard(label, tuple(player.requires), quick, scored(played))


def _one_agent(agent: AgentLike) -> tuple[str, Player]:
    if not isinstance(agent, Mapping):
        player_of(agent)  # refuses a label, too
    labelled = by_label("agent", agent if isinstance(agent, Mapping) else [agent])
    if len(labelled) != 1:
        raise ValueError(f"one agent is played at a time, got {', '.join(labelled)}")
    [(label, player)] = labelled.items()
    return label, player_of(player)  # refuses what makes no agent


def _listener(callback: Callback | None, progress: bool | None) -> AbstractContextManager[Callback]:
    """What is called with the progress of the sweeps."""
    check_kind("callback", callback, Callback | None, "a Callback")
    bar = Progress(Console(stderr=True), lines=False)
    return (
        bar
        if callback is None and (progress or (progress is None and bar.drawn))
        else nullcontext(callback or Callback())
    )


def _open(folder: Path, agent: str) -> None:
    """Make a folder that says whose scorecard it holds; refuse one of another agent or version."""
    file, config = folder / CONFIG, {"agent": agent, "clickgym": version("clickgym")}
    before: dict[str, Any] = read_json(file) if file.exists() else config
    for key, value in config.items():
        if before.get(key) != value:
            raise ValueError(
                f"{folder} holds a scorecard of {key} {before.get(key)!r}, not {value!r}; choose another folder"
            )
    make_folder(folder)
    write_whole(file, json.dumps(config, indent=1) + "\n")
