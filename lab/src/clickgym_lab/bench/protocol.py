"""The scorecard: which tasks are played, for how many sessions, and how results are scored.

Nothing of a version may change, which its fingerprint holds; docs/scorecard.md says the rules in words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clickgym.core.files import read_json
from clickgym.runner import Trial, digest, model_digest

from .anchors import Anchor
from .task import Task
from .task_set import ABOUT, DEVELOPMENT_SEED, TEST_SEED, task_set

DATA = Path(__file__).parent / "data"
ANCHORS, ADDED = "anchors.json", "added.json"
"""Of the tasks of a version, which is frozen; and of those that were added since."""
STAGES = (1_000, 10_000)
"""After so many sessions there are scores, beside those at the end."""
BESIDE = ("long_run",)
"""Abilities that no overall score counts, for only lines of the package play them, and only fast ones."""
PLAYER = "agent"
"""The name of every agent in sweeps of the scorecard, so that no seed depends on names."""


class Board(NamedTuple):
    """A board: it ranks agents that may be given the same knowledge.

    Attributes:
        name: of the board.
        abilities: over which the overall score is.
        about: who stands on it, in a sentence.
        sources: the facts that its agents may be told, as their classes name them; None for any.
        base: the agent whose regret is the unit of a plain reading.
        beside: abilities that it shows, and that its overall score does not count.
    """

    name: str
    abilities: tuple[str, ...]
    about: str = ""
    sources: frozenset[str] | None = None
    base: str = "CascadeKLUCB"
    beside: tuple[str, ...] = ()

    def admits(self, sources: Collection[str], abilities: Collection[str]) -> bool:
        """Whether an agent with this knowledge that plays these abilities may be ranked on the board."""
        allowed = self.sources is None or self.sources.issuperset(sources)
        return allowed and not set(self.abilities).isdisjoint(abilities)


@dataclass(frozen=True, eq=False)
class Protocol:
    """A version of the scorecard.

    Attributes:
        version: its number.
        abilities: what an agent may be good at, with a line about each.
        boards: an agent stands on the first that admits it, and on those that share no ability with that.
        make_tasks: makes the tasks, also those that are dropped, and those that only a later version counts.
        how: the rules in short, for those who read scores.
        data: the folder of the anchors and of the reference results.
        frozen: the fingerprint; empty for tasks that are not frozen, as those of a secret set.
        extends: the fingerprint of the version whose tasks it all has: what was played of that is resumed.
        runs, quick_runs: of each task, all of them or those of ``--quick``.
        seed, anchor_seed: of all runs, and of those from which the anchors are.
        learners: the runs that generic reinforcement learning plays.
    """

    version: int
    abilities: Mapping[str, str]
    boards: tuple[Board, ...]
    make_tasks: Callable[[], tuple[Task, ...]]
    how: str
    data: Path
    frozen: str = ""
    extends: str = ""
    runs: int = 5
    quick_runs: int = 2
    seed: int = 0
    anchor_seed: int = 1
    learners: int = 3

    @cached_property
    def candidates(self) -> tuple[Task, ...]:
        """All tasks of the version, in the order of the abilities."""
        return tuple(task for task in self.make_tasks() if task.since <= self.version)

    @cached_property
    def added(self) -> tuple[Task, ...]:
        """The tasks that were added since the version was frozen; each is an ability of its own, which no board counts."""
        return tuple(task._replace(ability=task.name) for task in self.make_tasks() if task.since > self.version)

    @cached_property
    def by_name(self) -> dict[str, Task]:
        """All tasks by their names."""
        return {task.name: task for task in (*self.candidates, *self.added)}

    @cached_property
    def playing(self) -> list[str]:
        """The abilities that some line has still to play: they have no anchors yet, and no board counts them."""
        return [*dict.fromkeys(task.ability for task in self.candidates if task.name not in self.anchors)]

    @cache  # noqa: B019 (there are few protocols)
    def columns(self, board: Board | None = None) -> Mapping[str, str]:
        """What has a score, with a line about each: the abilities of a board, or all, and the tasks that were added to them."""
        shown = self.abilities if board is None else (*board.abilities, *board.beside)
        own = {name: about for name, about in self.abilities.items() if name in shown and name not in self.playing}
        return own | {task.name: task.about for task in self.make_tasks() if task.since > self.version and task.ability in own}

    @cached_property
    def anchors(self) -> dict[str, dict[int, Anchor]]:
        """The anchors of each task by its name, and by the sessions after which they were.

        Raises:
            ValueError: nobody has made them yet.
        """
        self.check_anchors()
        files = [file for file in (self.data / ANCHORS, self.data / ADDED) if file.exists()]
        content = {name: stages for file in files for name, stages in read_json(file).items()}
        return {
            name: {
                int(horizon): Anchor(random, best, agent, int(horizon), self.by_name[name].allowance)
                for horizon, (random, best, agent) in stages.items()
            }
            for name, stages in content.items()
        }

    def check_anchors(self) -> None:
        """Raise an error if a version has no anchors yet, so that nothing can be scored."""
        if not self.has_anchors:
            raise ValueError(
                f"version {self.version} of the scorecard has no anchors yet, so that nothing can be scored; its reference run "
                "makes them: python benchmarks/shipped/scorecard.py FOLDER"
            )

    @property
    def has_anchors(self) -> bool:
        """Whether its anchors were made."""
        return (self.data / ANCHORS).exists()

    @cache  # noqa: B019 (there are few protocols)
    def tasks(self, quick: bool = False, stage: int | None = None) -> tuple[Task, ...]:
        """The tasks that boards count, and that whoever takes part plays: those of `BESIDE` are not among them.

        Args:
            quick: those of ``--quick``, or all.
            stage: after how many sessions; None takes the end of each task, which also counts where a task ends earlier.

        Example:
            >>> len(CURRENT.tasks(quick=True)) < len(CURRENT.tasks()) / 10
            True
        """
        own = (task for task in self.candidates if task.name in self.anchors and task.ability not in BESIDE)
        return tuple(task for task in own if self.anchor(task, stage).kept and (task.quick or not quick))

    def tasks_of(self, board: Board) -> list[Task]:
        """The tasks of a board that are scored.

        Example:
            >>> sum(len(CURRENT.tasks_of(board)) for board in CURRENT.boards if board.name != "extra knowledge")
            393
        """
        return [task for task in self.tasks() if task.ability in board.abilities]

    def models_of(self, board: Board) -> list[str]:
        """The click models of the tasks of a board."""
        return list(dict.fromkeys(task.click_model for task in self.tasks_of(board)))

    def anchor(self, task: Task, stage: int | None = None) -> Anchor:
        """The anchor of a task at a stage; see `tasks`."""
        return self.anchors[task.name][task.horizon if stage is None else min(stage, task.horizon)]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the protocol: of tasks, users with all parameters, runs and seeds."""
        parts: list[Any] = [self.version, self.runs, self.quick_runs, self.seed, self.anchor_seed]
        for task in self.candidates:
            env: Any = task.make().unwrapped
            parts.append([*task[:-1], model_digest(env.model)])  # since when it counts says the version
            if env.initial_ranking is not None:
                parts.append(env.initial_ranking.tolist())
        return digest(json.dumps(parts).encode())

    def checkpoints(self, horizon: int) -> list[int]:
        """The steps at which losses are kept: five in each power of ten, then the end.

        Example:
            >>> CURRENT.checkpoints(1000)
            [16, 25, 40, 63, 100, 158, 251, 398, 631, 1000]
        """
        steps = np.round(10 ** (np.arange(6, 31) / 5)).astype(int).tolist()
        return [step for step in steps if step < horizon] + [horizon]

    def stages(self, task: Task) -> list[int]:
        """The steps at which a task has scores, the last its end."""
        return sorted({*(stage for stage in STAGES if stage < task.horizon), task.horizon})

    def n_runs(self, quick: bool) -> int:
        """The runs of each task: all of them, or those of ``--quick``."""
        return self.quick_runs if quick else self.runs

    def trial(self, task: Task, run: int) -> Trial:
        """The name from which the seeds of a run derive."""
        return Trial(task.name, task.instance, PLAYER, run)

    def first_board(self, abilities: Collection[str]) -> Board:
        """The first board with one of these abilities."""
        return next(board for board in self.boards if not set(board.abilities).isdisjoint(abilities))

    def boards_of(self, sources: Collection[str], abilities: Collection[str]) -> list[Board]:
        """The boards of an agent; the board for which it is made comes first.

        Args:
            sources: the facts that it is told.
            abilities: those of which it plays a task.
        """
        boards: list[Board] = []
        for board in self.boards:
            if board.admits(sources, abilities) and all(set(board.abilities).isdisjoint(each.abilities) for each in boards):
                boards.append(board)
        return boards


LIST = frozenset({"initial_ranking"})
EXAMINATION = frozenset({"examination", "browsing"})
BY_FEATURES = ("contextual", "personal")
WITHOUT_FEATURES = tuple(ability for ability in ABOUT if ability not in (*BY_FEATURES, *BESIDE, "memory"))

CURRENT = Protocol(
    version=3,
    abilities=ABOUT,
    boards=(
        Board(
            "no extra knowledge", WITHOUT_FEATURES, "agents that are told nothing but what is free to all", LIST, beside=BESIDE
        ),
        Board(
            "extra knowledge",
            WITHOUT_FEATURES,
            "agents that are told the true examination probabilities",
            LIST | EXAMINATION,
            beside=BESIDE,
        ),
        Board("features", BY_FEATURES, "agents that rank by features", EXAMINATION, "CMLinUCB"),
        Board("memory", ("memory",), "agents before users whom clicks change", LIST | {"mean_sessions", "click_rewards"}),
    ),
    make_tasks=lambda: task_set(TEST_SEED, real=True),
    how=(
        "A score of 0 is what random lists lose, 1 the best loss that was known when the version was frozen; between them "
        "the scale is logarithmic. The score of an ability is the mean over its tasks, the overall score the mean over "
        "the abilities of the board. A task that an agent cannot play counts 0 and is shown as –. Intervals are 95 % "
        "intervals of a bootstrap over the instances of each ability, and over the runs of each task."
    ),
    data=DATA / "version3",
    frozen="a17a89f45c3b107a",
    extends="4c270544bef919e7",
)

DEVELOPMENT = replace(CURRENT, make_tasks=lambda: task_set(DEVELOPMENT_SEED, real=False))
"""The tasks on which hyper-parameters are chosen; they have no anchors."""
