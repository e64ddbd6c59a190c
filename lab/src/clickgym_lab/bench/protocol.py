"""The tasks of the scorecard, their anchors, the numbers of runs, and the seeds; docs/scorecard.md
says the rules in words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from clickgym.core.files import read_json
from clickgym.runner import Trial

from .anchors import Anchor
from .task import Task
from .task_set import ABOUT, task_set

ANCHORS = "anchors.json"
"""In the folder of the data: of each task the loss of random lists, the best loss, and whose it
is.
"""
STAGES = (1_000, 10_000)
"""At these steps, and at the end, the losses that ship are exact."""
BESIDE = ("long_run",)
"""Abilities that `bench` does not play, for only fast agents can play them."""
PLAYER = "agent"
"""The name of every agent in sweeps of the scorecard, so that no seed depends on names."""


@dataclass(frozen=True, eq=False)
class Protocol:
    """What is played for the scorecard.

    Attributes:
        make_tasks: makes the tasks, also those that are dropped.
        data: the folder of the anchors and of the reference results.
        abilities: what an agent may be good at, with a line about each.
        runs, quick_runs: of each task, all of them or those of ``--quick``.
        seed: of all runs.
    """

    make_tasks: Callable[[], tuple[Task, ...]]
    data: Path
    abilities: dict[str, str]
    runs: int = 5
    quick_runs: int = 2
    seed: int = 0

    @cached_property
    def candidates(self) -> tuple[Task, ...]:
        """All tasks, in the order of the abilities."""
        return self.make_tasks()

    @cached_property
    def by_name(self) -> dict[str, Task]:
        """All tasks by their names."""
        return {task.name: task for task in self.candidates}

    @cached_property
    def anchors(self) -> dict[str, Anchor]:
        """The anchors of each task by its name."""
        return {
            name: Anchor(
                random, best, agent, self.by_name[name].horizon, self.by_name[name].allowance
            )
            for name, (random, best, agent) in read_json(self.data / ANCHORS).items()
        }

    @cache  # noqa: B019 (there are few protocols)
    def tasks(self, quick: bool = False) -> tuple[Task, ...]:
        """The tasks that an agent plays for its scorecard: those whose anchors differ enough,
        without those of `BESIDE`.

        Args:
            quick: those of ``--quick``, or all.

        Example:
            >>> len(CURRENT.tasks(quick=True)) < len(CURRENT.tasks()) / 10
            True
        """
        kept = (
            task
            for task in self.candidates
            if task.ability not in BESIDE and self.anchors[task.name].kept
        )
        return tuple(task for task in kept if task.quick or not quick)

    def checkpoints(self, horizon: int) -> list[int]:
        """The steps at which losses are kept: five in each power of ten, then the end.

        Example:
            >>> CURRENT.checkpoints(1000)
            [16, 25, 40, 63, 100, 158, 251, 398, 631, 1000]
        """
        steps = np.round(10 ** (np.arange(6, 31) / 5)).astype(int).tolist()
        return [step for step in steps if step < horizon] + [horizon]

    def stages(self, task: Task) -> list[int]:
        """The steps at which the losses of a task that ship are exact, the last its end."""
        return sorted({*(stage for stage in STAGES if stage < task.horizon), task.horizon})

    def n_runs(self, quick: bool) -> int:
        """The runs of each task: all of them, or those of ``--quick``."""
        return self.quick_runs if quick else self.runs

    def trial(self, task: Task, run: int) -> Trial:
        """The name from which the seeds of a run derive."""
        return Trial(task.name, task.instance, PLAYER, run)


CURRENT = Protocol(task_set, Path(__file__).parent / "data" / "version3", ABOUT)
