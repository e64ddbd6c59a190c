"""Scorecard of an agent: its results in the tasks and its comparison with the built-in agents, as text, table and page."""

from __future__ import annotations

import json
import os
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from clickgym.core.checks import check_flag, check_kind, check_path
from clickgym.core.files import make_folder, read_json, write_whole
from clickgym.core.notebook import html_table
from clickgym.core.workers import check_workers
from clickgym.runner import AgentLike, Callback, Player, Progress, by_label, player_of

from .leaderboard import sources_of
from .pages import scorecard_html, scorecard_markdown, scorecard_summary
from .paper import card_bibtex, card_latex, card_sentence
from .play import n_sessions, play, suited
from .played import Played
from .protocol import CURRENT
from .reference import machine
from .score import scored

CONFIG, PLAYS = "bench.json", "plays"


@dataclass(frozen=True)
class Scorecard(Played):
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

    Example:
        >>> import clickgym
        >>> card = clickgym.bench("Random", quick=True)
        >>> abs(card.standing.overall.value) < 0.05
        True
    """

    @cached_property
    def summary(self) -> list[str]:
        """The overall score, the best and the worst abilities, in sentences."""
        return scorecard_summary(self)

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
            (name, each.value, each.low, each.high, self.n_tasks(name), self.protocol.columns()[name])
            for name, each in self.standing.abilities.items()
        ]
        return html_table(" ".join(self.summary), rows, ("ability", "score", "from", "to", "tasks", "about"), most=None)


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
    """Run an agent on the tasks of the scorecard, and compare its scores with those of the built-in agents.

    Only this agent is run: the results of the built-in agents ship with the package.

    Args:
        agent: as `sweep` takes it: a class, a name, ``"module:Class"``, a `functools.partial`, or a mapping with one label.
        out: a folder that keeps the runs, to resume them and for verification; created if missing. None keeps nothing.
        quick: play fewer tasks and fewer runs: for slow agents in plain Python and for generic RL.
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
    tasks = protocol.tasks(quick)
    suitable = suited(player, tasks)
    if not suitable:
        raise ValueError(f"{label} cannot play any of the {len(tasks)} tasks")
    suitable += suited(player, [task for task in protocol.added if task.quick or not quick])
    with tempfile.TemporaryDirectory() as temporary, _listener(callback, progress) as listener:
        folder = Path(temporary) if out is None else out
        config: dict[str, Any] = {"agent": label, "protocol": protocol.version, "fingerprint": protocol.fingerprint}
        config = _open(folder, config, quick)
        runs = protocol.n_runs(quick)
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
    )


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
    before = config_now(read_json(file) if file.exists() else config)
    for key, value in config.items():
        if before.get(key) != value:
            raise ValueError(f"{folder} holds a scorecard of {key} {before.get(key)!r}, not {value!r}; choose another folder")
    now = {"machines": [], "finished": [], **before}
    if not {"full", _kind(quick)} & set(now["finished"]):
        now["machines"] = [*dict.fromkeys([*now["machines"], machine()])]
    make_folder(folder)
    _write(folder, now)
    return now


def config_now(config: dict[str, Any]) -> dict[str, Any]:
    """What a folder of `bench` says of itself.

    What was played of the version that this one extends is of this one, and unfinished.
    """
    if CURRENT.extends and config.get("fingerprint") == CURRENT.extends:
        config = config | {"protocol": CURRENT.version, "fingerprint": CURRENT.fingerprint, "finished": []}
    return config


def _write(folder: Path, config: dict[str, Any]) -> None:
    write_whole(folder / CONFIG, json.dumps(config, indent=1) + "\n")
