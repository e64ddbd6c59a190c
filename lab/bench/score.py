"""Scores of tasks, of abilities and overall. These rules were written before any result was seen.

*Score.* Regret on a logarithmic scale between two anchors that never change: 0 is what uniformly random lists lose, 1 what the
best agent of the reference run lost on seeds of its own; a newcomer that is better has more than 1, one that is worse than
random lists less than 0. ``score = log(random / loss) / log(random / best)``, and no loss counts as less than that of one
session of random lists. (On a linear scale most agents that learn would lie between 0.95 and 1.)

*Anchors.* An anchor is the interquartile mean over the runs of an agent. Agents that are told a list set none (`LISTED`):
`Oracle` knows the best one, `Fixed` and `BubbleRank` begin with one that may be it; in ``safety``, which is about just that
list, all but `Oracle` may. Generic RL, which plays few tasks and runs, sets none. Tasks whose anchors differ less than
threefold are dropped.

*Together.* The score of an ability is the interquartile mean over its tasks and runs; the overall score is the mean over the
abilities that an agent plays, without those that are for agents of their own (`APART`), unless it plays nothing else. Intervals
are 95 % intervals of a bootstrap that draws the instances anew, and the runs within each task, so that they are about other
instances of the same kinds (version 1.0 drew only the runs). The probability of improvement is that of a run of one agent to
beat one of another in the same task, ties counted half, averaged over the tasks that both play.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars
from numpy.typing import NDArray
from scipy.stats import trim_mean

from .tasks import ABILITIES, Task, candidates

__all__ = [
    "ANCHORS", "APART", "DATA", "HOW", "LISTED", "Anchor", "Estimate", "Standing", "anchors", "better", "common", "counting",
    "improvement", "instance_of", "interquartile_mean", "regret_ratios", "scored", "standing", "tasks",
]  # fmt: skip

DATA = Path(__file__).parent / "data"
ANCHORS = DATA / "anchors.json"
LISTED = ("Oracle", "Fixed", "BubbleRank")
"""Agents that are told a list."""
APART = ("contextual", "memory")
HOW = (
    "A score of 0 is what uniformly random lists lose, 1 what the best agent of the reference lost in that task, on seeds of "
    "its own; between them the scale is logarithmic: half way is the geometric mean of the two. An agent that beats the best "
    "has more than 1. The score of an ability is the interquartile mean over its tasks and runs, the overall score the mean "
    "over the abilities that an agent plays, without contextual and memory, which are for agents of their own. Intervals are "
    "95 % intervals of a bootstrap over instances, and over the runs of each task."
)
"""The rules in short, for those who read scores."""
DIFFER = 3.0
REPLICATES = 1000
TRIMMED = 0.25

Scores = NDArray[np.float64]


class Anchor(NamedTuple):
    """What a task is measured with: the losses of random lists and of the best agent, and who that is."""

    random: float
    best: float
    agent: str

    @property
    def kept(self) -> bool:
        """Whether they differ enough for the task to show anything."""
        return 0 < self.random >= DIFFER * self.best

    def score(self, loss: Scores, horizon: int) -> Scores:
        """The scores of some losses.

        Example:
            >>> Anchor(1000.0, 10.0, "TopRank").score(np.array([1000.0, 100.0, 10.0, 1.0, 0.0]), horizon=1000)
            array([0. , 0.5, 1. , 1.5, 1.5])
        """
        floor = self.random / horizon
        return np.log(self.random / np.maximum(loss, floor)) / math.log(self.random / max(self.best, floor))


class Estimate(NamedTuple):
    """A number with its 95 % interval, nan where one run tells none."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """
        Example:
            >>> print(Estimate(0.914, 0.9, 0.93), Estimate(0.5, math.nan, math.nan))
            0.91 (0.90 to 0.93) 0.50
        """
        return f"{self.value:z.2f}" + ("" if math.isnan(self.low) else f" ({self.low:z.2f} to {self.high:z.2f})")


class Standing(NamedTuple):
    """What an agent is worth: overall, by ability as far as it plays its tasks, and how many tasks it plays."""

    overall: Estimate
    abilities: Mapping[str, Estimate]
    n_tasks: int


@cache
def anchors() -> dict[str, Anchor]:
    """The anchors of each task by its name."""
    return {name: Anchor(*anchor) for name, anchor in json.loads(ANCHORS.read_text(encoding="utf-8")).items()}


@cache
def tasks(quick: bool = False) -> tuple[Task, ...]:
    """The tasks of the protocol, those of ``--quick`` or all.

    Example:
        >>> len(tasks(quick=True)) < len(tasks()) / 10
        True
    """
    return tuple(task for task in candidates() if anchors()[task.name].kept and (task.quick or not quick))


def scored(table: polars.DataFrame) -> polars.DataFrame:
    """The rows of tasks that count, with their ``score``.

    Args:
        table: with ``task``, ``horizon`` and ``loss``, as `play` returns it.
    """
    frames = []
    for (name,), rows in table.group_by(["task"], maintain_order=True):
        anchor = anchors()[str(name)]
        if anchor.kept:
            # As the results that ship are kept, so that equal runs tie.
            loss = rows["loss"].cast(polars.Float32).cast(polars.Float64).to_numpy()
            score = anchor.score(loss, rows["horizon"][0])
            frames.append(rows.with_columns(score=polars.Series(score)))
    return polars.concat(frames) if frames else table.clear().with_columns(score=polars.lit(0.0))


def interquartile_mean(values: Scores) -> Scores:
    """The mean of the middle half, over the last axis.

    Example:
        >>> float(interquartile_mean(np.array([-9.0, 1.0, 2.0, 99.0])))
        1.5
    """
    return trim_mean(values, TRIMMED, axis=-1)


def counting(abilities: Iterable[str]) -> list[str]:
    """Those of an agent's abilities that count for what it is worth: all but those of `APART`, unless there are no others."""
    abilities = list(abilities)
    return [ability for ability in abilities if ability not in APART] or abilities


def standing(table: polars.DataFrame) -> Standing:
    """What an agent is worth.

    Args:
        table: its rows of `scored`.
    """
    rng = np.random.default_rng(0)
    of_abilities, replicates = {}, {}
    for ability in ABILITIES:
        scores = _by_task(table.filter(polars.col("ability") == ability))
        if scores:
            value = np.concatenate(list(scores.values()))
            samples = np.concatenate([_redrawn(each, rng) for each in scores.values()], axis=1)
            weights = np.repeat(_redrawn_instances(scores, rng), list(map(len, scores.values())), axis=1)
            replicates[ability] = _weighted_interquartile_mean(samples, weights)
            of_abilities[ability] = _estimate(float(interquartile_mean(value)), replicates[ability], scores.values())
    names = counting(of_abilities)
    overall = float(np.mean([of_abilities[ability].value for ability in names]))
    samples = np.mean([replicates[ability] for ability in names], axis=0)
    return Standing(_estimate(overall, samples, _by_task(table).values()), of_abilities, table["task"].n_unique())


def common(agents: Iterable[str], table: polars.DataFrame) -> polars.DataFrame:
    """The rows of some agents in the tasks that all of them play.

    Args:
        agents: their names.
        table: rows of `scored`.
    """
    names = list(agents)
    rows = table.filter(polars.col("agent").is_in(names))
    return rows.filter(polars.col("agent").n_unique().over("task") == len(set(names)))


def regret_ratios(agents: Iterable[str], base: str, table: polars.DataFrame) -> dict[str, float]:
    """How many times the loss of another agent each loses: geometric means over the tasks that all play.

    Args:
        agents: their names.
        base: the name of the other.
        table: rows of `scored`, without a loss of 0.
    """
    rows = common([*agents, base], table).group_by("agent").agg(polars.col("loss").log().mean().exp())
    losses = dict(rows.iter_rows())
    return {name: losses[name] / losses[base] for name in agents}


def instance_of(task: str) -> str:
    """The instance of a task, without its order of ids.

    Example:
        >>> instance_of("standard CMRank-v0 yandex-9:shuffle=1")
        'yandex-9'
    """
    return re.sub(r"[:,]shuffle=\d+$", "", task.rpartition(" ")[2])


def improvement(one: polars.DataFrame, other: polars.DataFrame) -> tuple[Estimate, int] | None:
    """The probability that one agent beats another in a task that both play, and how many there are; None if there is none.

    Args:
        one, other: their rows of `scored`.
    """
    mine, theirs = _by_task(one), _by_task(other)
    shared = [name for name in mine if name in theirs]
    if not shared:
        return None
    rng = np.random.default_rng(0)
    value = np.mean([better(mine[name][None], theirs[name][None])[0] for name in shared])
    samples = np.stack([better(_redrawn(mine[name], rng), _redrawn(theirs[name], rng)) for name in shared], axis=1)
    samples = np.average(samples, axis=1, weights=_redrawn_instances(shared, rng))
    both = [scores[name] for scores in (mine, theirs) for name in shared]
    return _estimate(float(value), samples, both), len(shared)


def better(one: Scores, other: Scores) -> Scores:
    """How often a run of one is better than a run of the other, ties counted half: ``(n, runs)`` each.

    Example:
        >>> better(np.array([[1.0, 2.0]]), np.array([[1.0, 1.5, 3.0]]))
        array([0.41666667])
    """
    difference = np.sign(one[:, :, None] - other[:, None, :])
    return (1.0 + difference.mean(axis=(1, 2))) / 2.0


def _by_task(table: polars.DataFrame) -> dict[str, Scores]:
    return {str(name): rows["score"].to_numpy() for (name,), rows in table.group_by(["task"], maintain_order=True)}


def _redrawn(scores: Scores, rng: np.random.Generator) -> Scores:
    """The runs of a task drawn anew, with replacement: ``(REPLICATES, runs)``."""
    return scores[rng.integers(len(scores), size=(REPLICATES, len(scores)))]


def _redrawn_instances(tasks: Iterable[str], rng: np.random.Generator) -> NDArray[np.int64]:
    """How often the instance of each task is drawn, with replacement: ``(REPLICATES, tasks)``; ids do not make another one."""
    unique, number = np.unique(list(map(instance_of, tasks)), return_inverse=True)
    return rng.multinomial(len(unique), np.full(len(unique), 1 / len(unique)), size=REPLICATES)[:, number]


def _weighted_interquartile_mean(values: Scores, weights: NDArray[np.int64]) -> Scores:
    """The mean of the middle half of the weight, over the last axis."""
    order = np.argsort(values, axis=-1)
    shares = np.take_along_axis(weights / weights.sum(axis=-1, keepdims=True), order, axis=-1)
    ends = np.cumsum(shares, axis=-1)
    middle = np.clip(ends, TRIMMED, 1 - TRIMMED) - np.clip(ends - shares, TRIMMED, 1 - TRIMMED)
    return (np.take_along_axis(values, order, axis=-1) * middle).sum(axis=-1) / (1 - 2 * TRIMMED)


def _estimate(value: float, replicates: Scores, scores: Iterable[Scores]) -> Estimate:
    if max(map(len, scores)) < 2:
        return Estimate(value, math.nan, math.nan)
    low, high = np.quantile(replicates, [0.025, 0.975])
    return Estimate(value, float(low), float(high))
