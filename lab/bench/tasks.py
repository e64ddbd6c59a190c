"""Tasks of the scorecard, version 1: what is played, for how long, and what of it counts.

A task is three words and a number that anybody can type: an environment, an instance of it and a horizon. Nothing here may
change without a new version, which a fingerprint holds (`fingerprint`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from ...runner.labels import digest, model_digest
from ...runner.make import make_env

__all__ = ["ABILITIES", "FINGERPRINT", "QUICK_RUNS", "RUNS", "VERSION", "Task", "candidates", "fingerprint"]

VERSION = 1
FINGERPRINT = "0158662396cf637f"
"""What `fingerprint` must be as long as this is version 1."""
RUNS = 5
"""Runs of each task."""
QUICK_RUNS = 2
"""With ``--quick``, and of fewer tasks."""
PROTOCOL = json.loads(Path(__file__).parent.joinpath("data", "tasks.json").read_text(encoding="utf-8"))
"""The abilities, and the tasks in groups: click models and instances of one ability, horizon and measure."""
SEED, ANCHOR_SEED = 0, 1
"""Of all runs, and of those from which the anchors are."""

ABILITIES: dict[str, str] = PROTOCOL["abilities"]
"""What an agent may be good at, with a line about it."""


class Task(NamedTuple):
    """One task.

    Attributes:
        ability: of `ABILITIES`.
        env, instance: as ``clickgym run`` takes them.
        horizon: T, the sessions of a run.
        about: what it measures, in a sentence.
        measure: ``"regret"``, or the metric that counts in its place.
        quick: whether ``--quick`` plays it.
    """

    ability: str
    env: str
    instance: str
    horizon: int
    about: str
    measure: str = "regret"
    quick: bool = False

    @property
    def name(self) -> str:
        """What results call it.

        Example:
            >>> candidates()[0].name
            'standard CMRank-v0 yandex-9:shuffle=1'
        """
        return f"{self.ability} {self.env} {self.instance}"

    def make(self) -> gym.Env:
        """The environment.

        Example:
            >>> candidates()[0].make().action_space
            RankedList(n_items=10, n_positions=5)
        """
        return make_env(self.env, self.instance)


@cache
def candidates() -> tuple[Task, ...]:
    """All tasks of the protocol, in the order of `ABILITIES`.

    Example:
        >>> print(candidates()[0].about)
        Regret of 100,000 sessions with the query yandex-9 under the CM
    """
    return tuple(
        task._replace(instance=task.instance if task.ability == "contextual" else _shuffled(task.instance, number))
        for number, task in enumerate(_groups(), 1)
    )


def _shuffled(instance: str, seed: int) -> str:
    """Under other item ids; the candidates of contextual tasks are drawn in random order anyway."""
    return f"{instance}{',' if ':' in instance else ':'}shuffle={seed}"


def _groups() -> Iterator[Task]:
    """A task for every environment and instance of each group; those of ``safety`` are not in models whose best list is not in
    the order of attraction, by which the metric counts what is worse."""
    for group in PROTOCOL["tasks"]:
        horizon = group["horizon"]
        for model, instance in itertools.product(group["models"], group["instances"]):
            about = group["about"].format(horizon=horizon, instance=instance, model=model)
            measure, quick = group.get("measure", "regret"), [model, instance] in group.get("quick", [])
            yield Task(group["ability"], f"{model}Rank-v0", instance, horizon, about, measure, quick)


@cache
def fingerprint() -> str:
    """Identifies the protocol: tasks, their users with all parameters, runs and seeds."""
    parts: list[Any] = [VERSION, RUNS, QUICK_RUNS, SEED, ANCHOR_SEED]
    for task in candidates():
        users: Any = task.make().unwrapped
        parts.append([*task, model_digest(users.model)])
    return digest(json.dumps(parts).encode())
