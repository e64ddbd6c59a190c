"""Scorecard of an agent: its results in the tasks and its comparison with the built-in agents, as text, table and page."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars
from polars import col
from rich.console import Console

from clickgym.core.checks import check_choice, check_flag, check_kind, check_path
from clickgym.core.files import make_folder, read_json, write_whole
from clickgym.core.notebook import html_table
from clickgym.core.workers import check_workers
from clickgym.runner import PUBLISHED, AgentLike, Callback, Player, Progress, by_label, player_of, search_space_of

from .leaderboard import Place, among, sources_of, tables_of
from .pages import scorecard_html, scorecard_markdown, scorecard_summary
from .paper import card_bibtex, card_latex, card_sentence
from .play import n_sessions, play, suited
from .protocol import CURRENT, DEVELOPMENT, STAGES, Board, Protocol
from .reference import agent_of, changes_of, lines, machine, reference
from .score import WORST, Estimate, Pair, Standing, improvement, pairs, regret_ratio, scored, standing
from .tuned import tune_line

CONFIG, PLAYS, TUNING = "bench.json", "plays", "tuning"


class Comparison(NamedTuple):
    """Comparison with one built-in agent: the probability to beat it, over the tasks that both have played.

    If both are on one board, also the difference of their overall scores over these tasks.
    """

    agent: str
    improvement: Estimate
    n_tasks: int
    pair: Pair | None = None


@dataclass(frozen=True)
class Scorecard:
    """The results of an agent in the tasks of the scorecard, and its scores; a notebook shows it as a table.

    Attributes:
        agent: the name of the agent in results.
        told: the arguments with which the agent is given knowledge of the environment.
        click_models: the click models for which the agent is made, by its own account.
        quick: whether only the tasks of ``--quick`` were played.
        table: one row for each task and run, with ``loss``, ``score`` and ``seconds``.
        curves: one row for each task, run and checkpoint, with ``step``, ``regret`` and ``loss``.
        protocol: the version of the tasks and of the scores.
        sources: the kinds of knowledge that the agent is given.
        tuning: the spec of the tuned agent; empty without tuning.

    Example:
        >>> import clickgym
        >>> card = clickgym.bench("Random", quick=True)
        >>> abs(card.standing.overall.value) < 0.05
        True
    """

    agent: str
    told: tuple[str, ...]
    click_models: str
    quick: bool
    table: polars.DataFrame
    curves: polars.DataFrame
    protocol: Protocol = CURRENT
    sources: tuple[str, ...] = ()
    tuning: str = ""

    @cached_property
    def board(self) -> Board | None:
        """The board on which the agent is ranked; None if it is given knowledge that no board allows."""
        boards = self.protocol.boards_of(self.sources, self.table["ability"].unique().to_list())
        return boards[0] if boards else None

    @cached_property
    def standing(self) -> Standing:
        """The scores: overall and by ability."""
        return standing(self.table, self.protocol, self.board, self.quick)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The comparisons with all built-in agents; the agent that is easiest to beat comes first."""
        others = reference(self.protocol).filter(col("agent") != self.agent).group_by(["agent"], maintain_order=True)
        tables = {str(name): rows for (name,), rows in others}
        results = {name: improvement(self.table, rows, self.protocol) for name, rows in tables.items()}
        differences = self._differences()
        comparisons = [
            Comparison(name, *result, differences.get(name)) for name, result in results.items() if result is not None
        ]
        return sorted(comparisons, key=lambda each: -each.improvement.value)

    def _differences(self) -> dict[str, Pair]:
        """The pairs with the other lines of its board, corrected for their number."""
        if self.board is None:
            return {}
        others = tables_of(self.protocol, self.board, None, self.quick)
        compared = pairs(
            {self.agent: self.table, **{name: rows for name, rows in others.items() if name != self.agent}},
            self.protocol,
            self.board,
            of=self.agent,
        )
        return {other: pair for (_, other), pair in compared.items()}

    def n_tasks(self, ability: str) -> int:
        """How many tasks of an ability the agent has played; the ValueError names an ability that does not exist."""
        check_choice("ability", ability, self.protocol.abilities)
        return self.table.filter(col("ability") == ability)["task"].n_unique()

    @property
    def command(self) -> str:
        """The command that makes the same card; Python code if the agent has no name that others can type."""
        if self.agent in PUBLISHED or (":" in self.agent and not self.agent.startswith("__main__:")):
            return f"clickgym bench {self.agent}{' --quick' * self.quick}{' --tuned' * bool(self.tuning)} --out DIR"
        agent = "agent" if ":" in self.agent else f"{{{self.agent!r}: agent}}"
        options = f"{', quick=True' * self.quick}{', tuned=True' * bool(self.tuning)}"
        return f"clickgym.bench({agent}{options}, out=DIR)"

    @cached_property
    def place(self) -> Place:
        """The agent's row of the leaderboard."""
        seconds = float(self.table["seconds"].sum())
        place = Place(self.agent, self.standing, self.told, self.click_models, seconds)
        if self.board is None:
            return place
        compared = {(self.agent, each.agent): each.pair for each in self.comparisons if each.pair is not None}
        base = reference(self.protocol).filter(agent=self.board.base)
        return place._replace(
            **among(self.agent, compared),
            ratio=regret_ratio(self.table, base, self.protocol),
            changes=self.changes,
            early={step: place._replace(standing=standing_) for step, standing_ in self._early().items()},
            trust="claimed",
        )

    def _early(self) -> dict[int, Standing]:
        """What it was worth after fewer sessions."""
        tables = {step: scored(self.curves, self.protocol, step) for step in STAGES}
        return {
            step: standing(table, self.protocol, self.board, self.quick, step)
            for step, table in tables.items()
            if not table.is_empty()
        }

    @property
    def changes(self) -> str:
        """What tuning has changed, in words; empty without changes."""
        return changes_of(self.tuning) if self.tuning else ""

    @cached_property
    def settings(self) -> list[tuple[str, Estimate, str]]:
        """The built-in agents of the same class, as published and tuned: name, overall score, and what tuning changed."""
        own = {name: line for name, line in lines(self.protocol).items() if agent_of(name) == self.agent.partition(":")[0]}
        tables = tables_of(self.protocol, None, None, self.quick)
        return [
            (name, standing(tables[name], self.protocol, self.board, self.quick).overall, line.changes or "as published")
            for name, line in own.items()
            if name in tables
        ]

    @property
    def worst(self) -> list[tuple[str, str, float, float, float, str, float]]:
        """The tenth of the board's tasks with the lowest scores, lowest first, with the columns of `of_tasks`."""
        counted = self.protocol.abilities if self.board is None else self.board.abilities
        rows = sorted((row for row in self.of_tasks if row[0] in counted), key=lambda row: row[-1])
        return rows[: math.ceil(WORST * len(rows))]

    @cached_property
    def of_tasks(self) -> list[tuple[str, str, float, float, float, str, float]]:
        """A table with one row for each task.

        It has the ability, the measure, the mean loss, the losses of random lists and of the best agent, the name of this
        agent, and the mean score.
        """
        means = self.table.group_by("task", maintain_order=True).agg(col("loss", "score").mean())
        losses = {name: (loss, score) for name, loss, score in means.iter_rows()}
        return [
            (
                task.ability,
                f"{task.about} ({task.instance})",
                losses[task.name][0],
                *self.protocol.anchors[task.name][task.horizon][:3],
                losses[task.name][1],
            )
            for task in self.protocol.tasks(self.quick)
            if task.name in losses
        ]

    @cached_property
    def summary(self) -> list[str]:
        """The overall score, the best and the worst abilities, in sentences."""
        return scorecard_summary(self, *self._by_click_model())

    def _by_click_model(self) -> tuple[float | None, float | None]:
        """The mean scores of ``misspecified`` under the click models that it names, and under the others."""
        rows = self.table.filter(col("ability") == "misspecified")
        model = col("env").str.strip_suffix("Rank-v0")
        own = model.is_in(re.findall(r"\w+", self.click_models))
        means = [rows.filter(rule)["score"].mean() for rule in (own, ~own)]
        return means[0], means[1]  # type: ignore[return-value]  # of floats

    def to_markdown(self) -> str:
        """The card for a paper's appendix: summary, abilities, the line of the leaderboard, comparisons and tasks."""
        return scorecard_markdown(self)

    def to_html(self) -> str:
        """The card as one HTML page that needs no other file."""
        return scorecard_html(self)

    def to_latex(self, beside: Sequence[str] | None = None) -> str:
        """A LaTeX table with its scores beside those of built-in agents, for a document with the package booktabs.

        Args:
            beside: names of lines, as ``"CascadeTS"`` or ``"CascadeKLUCB, tuned"``; None takes those that lead its board.

        Raises:
            ValueError: there is no such line.
        """
        return card_latex(self, beside)

    def to_bibtex(self) -> str:
        """The BibTeX entry of the scorecard, with its version and fingerprint."""
        return card_bibtex(self.protocol)

    @cached_property
    def sentence(self) -> str:
        """One sentence about the scores for a paper."""
        return card_sentence(self)

    def save(self, folder: str | os.PathLike[str], beside: Sequence[str] | None = None) -> list[Path]:
        """Write ``scorecard.html``, ``scorecard.md``, ``scorecard.tex`` and ``scorecard.bib``.

        Args:
            folder: made if need be.
            beside: as in `to_latex`; they are drawn beside the curves, too.

        Returns:
            The files.

        Raises:
            ValueError: there is no such line, before anything is written.
        """
        folder = check_path("folder", folder)
        texts = {
            "html": scorecard_html(self, beside),
            "md": self.to_markdown(),
            "tex": self.to_latex(beside),
            "bib": self.to_bibtex(),
        }
        make_folder(folder)
        files = {folder / f"scorecard.{kind}": text for kind, text in texts.items()}
        for file, text in files.items():
            write_whole(file, text)
        return list(files)

    def __repr__(self) -> str:
        return "\n".join(textwrap.fill(sentence, 100) for sentence in self.summary)

    def _repr_html_(self) -> str:
        rows = [
            (name, each.value, each.low, each.high, self.n_tasks(name), self.protocol.abilities[name])
            for name, each in self.standing.abilities.items()
        ]
        return html_table(" ".join(self.summary), rows, ("ability", "score", "from", "to", "tasks", "about"), most=None)


def bench(
    agent: AgentLike,
    *,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
    tuned: bool = False,
    n_jobs: int = -1,
    progress: bool | None = None,
    callback: Callback | None = None,
    on_block: Callable[[str], object] | None = None,
) -> Scorecard:
    """Run an agent on the tasks of the scorecard, and compare its scores with those of the built-in agents.

    Only this agent is run: the results of the built-in agents ship with the package.

    Args:
        agent: as `sweep` takes it: a class, a name, ``"module:Class"``, a `functools.partial`, or a mapping with one label.
        out: a folder that keeps the runs, to resume them and for verification; created if missing. None keeps nothing.
        quick: play fewer tasks and fewer runs: for slow agents in plain Python and for generic RL.
        tuned: tune the agent first, on development tasks, with the budget that every tuned built-in agent had.
        n_jobs: as in `sweep`.
        progress: show a bar on stderr; None shows it in a terminal and in a notebook.
        callback: receives the progress of each sweep instead.
        on_block: is called before each sweep with its name.

    Returns:
        The card; its ``save`` writes it.

    Raises:
        ValueError, TypeError: on a bad argument, before any work starts; on an agent that cannot play any of the tasks; on a
            folder that holds the results of another agent, protocol or version of it.
        AgentError: the agent proposed a bad list, or failed; what was played is kept.

    Example:
        >>> import clickgym
        >>> card = clickgym.bench("Random", quick=True)
        >>> card.agent, card.table["run"].n_unique()
        ('Random', 2)
    """
    quick, progress = check_flag("quick", quick), None if progress is None else check_flag("progress", progress)
    protocol = CURRENT
    out = None if out is None else check_path("out", out)
    check_workers(n_jobs)
    label, player = _one_agent(agent)
    tasks, board = protocol.tasks(quick), _tuned_on(protocol, label, player) if check_flag("tuned", tuned) else None
    suitable = suited(player, tasks)
    if not suitable:
        raise ValueError(f"{label} cannot play any of the {len(tasks)} tasks")
    with tempfile.TemporaryDirectory() as temporary, _listener(callback, progress) as listener:
        folder = Path(temporary) if out is None else out
        config: dict[str, Any] = {"agent": label, "protocol": protocol.version, "fingerprint": protocol.fingerprint}
        config = _open(folder, config | {"tuned": tuned}, quick)
        if board is not None:
            line = tune_line(DEVELOPMENT, board, player, folder / TUNING, n_jobs=n_jobs, callback=listener)
            player, config["tuning"] = player_of(line.player), line.agent
        runs = protocol.quick_runs if quick else protocol.runs
        listener.whole(f"{len(suitable)} tasks", n_sessions(suitable, runs))
        played = play(
            protocol, label, player, suitable, runs, folder / PLAYS, n_jobs=n_jobs, callback=listener, on_block=on_block
        )
        config["finished"] = [*dict.fromkeys([*config["finished"], _kind(quick)])]
        _write(folder, config)
    return Scorecard(
        label,
        tuple(player.told),
        player.click_models,
        quick,
        scored(played, protocol),
        played,
        protocol,
        tuple(sources_of(player)),
        config.get("tuning", ""),
    )


def _tuned_on(protocol: Protocol, label: str, player: Player) -> Board:
    """The board on whose development tasks an agent is tuned, if it can be."""
    search_space_of(player.given)  # refuses an agent with nothing to tune
    boards = protocol.boards_of(sources_of(player), {task.ability for task in suited(player, DEVELOPMENT.candidates)})
    if not boards:
        raise ValueError(
            f"{label} is on no leaderboard of version {protocol.version}, because it needs knowledge that none of them allows"
        )
    return boards[0]


def _one_agent(agent: AgentLike) -> tuple[str, Player]:
    if not isinstance(agent, Mapping):
        player_of(agent)  # refuses a label, too: by the name alone others can verify what is played
    labelled = by_label("agent", agent if isinstance(agent, Mapping) else [agent])
    if len(labelled) != 1:
        raise ValueError(f"one agent is played at a time, got {', '.join(labelled)}")
    [(label, player)] = labelled.items()
    return label, player_of(player)  # refuses what makes no agent


def _listener(callback: Callback | None, progress: bool | None) -> AbstractContextManager[Callback]:
    """What is called with the progress of the sweeps."""
    check_kind("callback", callback, Callback | None, "a Callback")
    bar = Progress(Console(stderr=True), lines=False)
    return bar if callback is None and (progress or (progress is None and bar.drawn)) else nullcontext(callback or Callback())


def _kind(quick: bool) -> str:
    return "quick" if quick else "full"


def _open(folder: Path, config: dict[str, Any], quick: bool) -> dict[str, Any]:
    """Refuse a folder that is about something else, before anything is played into it; note which machine plays, if one does.

    Returns:
        What stands in the folder beside ``config``: ``machines``, and what is ``finished``.
    """
    file = folder / CONFIG
    before = read_json(file) if file.exists() else config
    for key, value in config.items():
        if before.get(key) != value:
            raise ValueError(f"{folder} holds a scorecard of {key} {before.get(key)!r}, not {value!r}; choose another folder")
    now = {"machines": [], "finished": [], **before}
    if not {"full", _kind(quick)} & set(now["finished"]):
        now["machines"] = [*dict.fromkeys([*now["machines"], machine()])]
    make_folder(folder)
    _write(folder, now)
    return now


def _write(folder: Path, config: dict[str, Any]) -> None:
    write_whole(folder / CONFIG, json.dumps(config, indent=1) + "\n")
