"""Scores of tasks, of abilities and of boards, with intervals; and which agents differ significantly.

The rules are those of docs/scorecard.md, which were written before any result was seen.

Intervals are 95 % intervals of a bootstrap. In every replicate the instances have random weights, one each wherever it returns,
and the runs of each task are drawn anew. Every agent has the same draws, so that differences have replicates, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import polars
from numpy.typing import ArrayLike, NDArray
from polars import col
from scipy.stats import norm, trim_mean

from clickgym.core.statistics import worst_tenth

from .protocol import CURRENT, Board, Protocol
from .task import Task

REPLICATES = 1000
LEVEL = 0.05
"""The most that the probability of any wrong verdict among all pairs of a board may be."""
FIRST_RUNS = 5
"""The bad run of a task is the worst of so many."""
WORST = 0.1
"""The share of the tasks that are shown as the worst, as `worst_tenth` takes it."""

Scores = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number with its 95 % interval, nan where one run tells none."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.high - self.low

    def __str__(self) -> str:
        """
        Example:
            >>> print(Estimate(0.914, 0.9, 0.93), Estimate(0.5, math.nan, math.nan))
            0.91 (0.90 to 0.93) 0.50
        """
        return f"{self.value:z.2f}" + ("" if math.isnan(self.low) else f" ({self.low:z.2f} to {self.high:z.2f})")


class Standing(NamedTuple):
    """What an agent is worth on a board.

    Attributes:
        overall: the mean over the abilities of the board.
        abilities: the score of each ability of which it plays a task, those of other boards, too, and of each task that was
            added since.
        n_tasks: how many of the tasks of the board it plays.
        models: the mean over the tasks of the board with each click model.
        worst: the mean over the tenth of the tasks of the board in which it scores least.
        bad: as ``overall``, of the worst of the first `FIRST_RUNS` runs of each task; None for a line with fewer.
        linear: as ``overall``, of the share of the loss of random lists that is saved, at least -1.
    """

    overall: Estimate
    abilities: Mapping[str, Estimate]
    n_tasks: int
    models: Mapping[str, float] = {}
    worst: float = math.nan
    bad: Estimate | None = None
    linear: float = math.nan


class Pair(NamedTuple):
    """Two agents over the tasks that both play.

    Attributes:
        difference: of their overall scores over these tasks, the first minus the second.
        p: of the hypothesis that there is none; 1 where one run tells nothing.
        n_tasks: how many tasks.
    """

    difference: Estimate
    p: float
    n_tasks: int

    @property
    def differ(self) -> bool:
        """Whether they are told apart."""
        return self.p < LEVEL

    @property
    def verdict(self) -> int:
        """1 where the first is better, -1 where it is worse, 0 where they are not told apart."""
        return int(np.sign(self.difference.value)) if self.differ else 0


def scored(table: polars.DataFrame, protocol: Protocol = CURRENT, stage: int | None = None) -> polars.DataFrame:
    """The rows of tasks that count, with their ``score``.

    Args:
        table: with ``task`` and ``loss``, and ``step``, if there are rows of several; as `play` returns it.
        protocol: the version.
        stage: as in `Protocol.tasks`.
    """
    frames = []
    with_anchors = table.filter(col("task").is_in(list(protocol.anchors)))
    for (name,), rows in with_anchors.group_by(["task"], maintain_order=True):
        anchor = protocol.anchor(protocol.by_name[str(name)], stage)
        if anchor.kept:
            rows = rows.filter(col("step") == anchor.horizon) if "step" in table.columns else rows
            # As the results that ship are kept, so that equal runs tie.
            loss = rows["loss"].cast(polars.Float32).cast(polars.Float64).to_numpy()
            frames.append(rows.with_columns(score=anchor.score(loss)))
    return polars.concat(frames) if frames else table.clear().with_columns(score=polars.lit(0.0))


# ----------------------------------------------------------------------------------------------------- abilities and boards


class Replicated(NamedTuple):
    """A mean, what it is in each replicate, and whether there are several runs to draw from."""

    value: float
    replicates: Scores
    several: bool = True

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval, which a single run does not tell."""
        low, high = np.quantile(self.replicates, [0.025, 0.975]) if self.several else (math.nan, math.nan)
        return Estimate(self.value, float(low), float(high))


def standing(
    table: polars.DataFrame,
    protocol: Protocol = CURRENT,
    board: Board | None = None,
    quick: bool = False,
    stage: int | None = None,
) -> Standing:
    """The scores of an agent: overall and by ability.

    Args:
        table: its rows of `scored`.
        protocol: the version.
        board: whose abilities the overall score is over; None takes the first board of which it plays an ability.
        quick: only the tasks of ``--quick`` were to be played.
        stage: as in `scored`.
    """
    by_task = _by_task(table)
    of_abilities = _by_ability(by_task, table, protocol)
    board = board or protocol.first_board(of_abilities)
    due = protocol.tasks(quick, stage)
    _fill(of_abilities, due)
    of_board = {task.name: task for task in due if task.ability in board.abilities}
    abilities = {task.ability for task in of_board.values()} | of_abilities.keys()
    counted = [ability for ability in board.abilities if ability in abilities]
    replicated = _replicated(of_abilities, protocol, False if quick else None)
    means = _means(of_board, of_abilities)
    return Standing(
        overall=_mean(replicated, counted).estimate,
        abilities={ability: each.estimate for ability, each in replicated.items()},
        n_tasks=len(by_task.keys() & means.keys()),
        models=_by_model(of_board, means),
        worst=worst_tenth(list(means.values())),
        bad=None if quick else _bad_run(by_task, of_abilities, protocol, counted),
        linear=_linear(table, of_board.values(), protocol, stage),
    )


def _bad_run(
    by_task: Mapping[str, Scores], of_abilities: Mapping[str, Mapping[str, Scores]], protocol: Protocol, counted: Sequence[str]
) -> Estimate | None:
    """The overall score of the worst of the first runs of each task; None where one was played less often."""
    if min(map(len, by_task.values())) < FIRST_RUNS:
        return None
    worst_runs = {
        ability: {task: own[:FIRST_RUNS].min(keepdims=True) for task, own in scores.items()}
        for ability, scores in of_abilities.items()
    }
    return _mean(_replicated(worst_runs, protocol, True), counted).estimate


def _linear(table: polars.DataFrame, due: Iterable[Task], protocol: Protocol, stage: int | None) -> float:
    """The share of the loss of random lists that an agent saves: the mean over the abilities of the tasks that are due."""
    losses = dict(table.group_by("task").agg(col("loss").mean()).iter_rows())
    shares: dict[str, list[float]] = {}
    for task in due:
        random = protocol.anchor(task, stage).random
        shares.setdefault(task.ability, []).append(max(1.0 - losses.get(task.name, random) / random, -1.0))
    return float(np.mean([np.mean(own) for own in shares.values()])) if shares else math.nan


def _means(tasks: Iterable[str], of_abilities: Mapping[str, Mapping[str, Scores]]) -> dict[str, float]:
    """The mean score of each task; 0 for those of abilities that are not played."""
    played = {task: float(own.mean()) for scores in of_abilities.values() for task, own in scores.items()}
    return {task: played.get(task, 0.0) for task in tasks}


def _by_task(table: polars.DataFrame) -> dict[str, Scores]:
    """The scores of each task, in the order of the runs."""
    table = table.sort("run", maintain_order=True)
    return {str(name): rows["score"].to_numpy() for (name,), rows in table.group_by(["task"], maintain_order=True)}


def _by_ability(scores: Mapping[str, Scores], table: polars.DataFrame, protocol: Protocol) -> dict[str, dict[str, Scores]]:
    """The scores of the runs by task, by ability in the order of the protocol, then of tasks that were added."""
    of_task = dict(table.select("task", "ability").unique(maintain_order=True).iter_rows())
    groups = {
        ability: {task: own for task, own in scores.items() if of_task[task] == ability} for ability in protocol.columns()
    }
    return {ability: own for ability, own in groups.items() if own}


def _fill(of_abilities: dict[str, dict[str, Scores]], due: Iterable[Task]) -> None:
    """Zeros for tasks that were not played, of abilities that were, and all in the order of the protocol."""
    played = {task: scores for own in of_abilities.values() for task, scores in own.items()}
    absent = np.zeros(max(map(len, played.values())))
    for task in due:
        own = of_abilities.get(task.ability)
        if own is not None:
            own[task.name] = own.pop(task.name, absent)


def _replicated(
    of_abilities: Mapping[str, Mapping[str, Scores]], protocol: Protocol, several: bool | None = None
) -> dict[str, Replicated]:
    """The mean of each ability with its replicates; the same draws for all agents that play the same tasks.

    ``several``: whether they tell an interval; None for where there are several runs.
    """
    rng = np.random.default_rng(0)
    result = {}
    for ability, scores in of_abilities.items():
        samples = np.concatenate([_redrawn(each, rng) for each in scores.values()], axis=1)
        weights = np.repeat(_weights_of(scores, protocol), list(map(len, scores.values())), axis=1)
        # The mean over all; it adds in another order than numpy's, and frozen scores have its last digit.
        value = float(trim_mean(np.concatenate(list(scores.values())), 0.0))
        told = max(map(len, scores.values())) > 1 if several is None else several
        result[ability] = Replicated(value, (samples * weights).sum(axis=-1) / weights.sum(axis=-1), told)
    return result


def _mean(replicated: Mapping[str, Replicated], counted: Collection[str]) -> Replicated:
    """The mean over some abilities, of which those that are not given are 0."""
    own = [replicated[ability] for ability in counted if ability in replicated]
    absent = [0.0] * (len(counted) - len(own))
    value = float(np.mean([each.value for each in own] + absent))
    replicates = np.mean([each.replicates for each in own] + [np.zeros(REPLICATES)] * len(absent), axis=0)
    return Replicated(value, replicates, any(each.several for each in own))


def _by_model(tasks: Mapping[str, Task], means: Mapping[str, float]) -> dict[str, float]:
    """The mean over the tasks with each click model."""
    groups: dict[str, list[float]] = {}
    for name, mean in means.items():
        groups.setdefault(tasks[name].click_model, []).append(mean)
    return {model: float(np.mean(values)) for model, values in groups.items()}


# -------------------------------------------------------------------------------------------------------------------- pairs


def pairs(
    tables: Mapping[str, polars.DataFrame], protocol: Protocol, board: Board, of: str | None = None
) -> dict[tuple[str, str], Pair]:
    """Which lines of a board are told apart, each two over the tasks that both play.

    The difference of two overall scores is taken as normal with the standard error of its replicates. Holm's correction is over
    all pairs.

    Args:
        tables: rows of `scored` by line.
        protocol: the version.
        board: whose abilities count.
        of: only the pairs of this line, which is the first; None takes all.

    Returns:
        A pair for each two lines in the order of ``tables``, with corrected p-values; those without a common task are left out.
    """
    tables = {name: rows.filter(col("ability").is_in(board.abilities)) for name, rows in tables.items()}
    scores = {name: _by_task(rows) for name, rows in tables.items()}
    means: dict[tuple[str, frozenset[str]], Replicated] = {}

    def mean_of(name: str, tasks: frozenset[str]) -> Replicated:
        if (name, tasks) not in means:
            own = {task: scores[name][task] for task in sorted(tasks)}
            replicated = _replicated(_by_ability(own, tables[name].filter(col("task").is_in(tasks)), protocol), protocol)
            means[name, tasks] = _mean(replicated, replicated)
        return means[name, tasks]

    result = {}
    for one, other in itertools.combinations(tables, 2):
        shared = frozenset(scores[one]) & frozenset(scores[other])
        if shared and of in (None, one):
            first, second = mean_of(one, shared), mean_of(other, shared)
            result[one, other] = _pair(first, second, len(shared))
    corrected = holm(np.array([pair.p for pair in result.values()]))
    return {names: pair._replace(p=float(p)) for (names, pair), p in zip(result.items(), corrected, strict=True)}


def _pair(one: Replicated, other: Replicated, n_tasks: int) -> Pair:
    difference = Replicated(one.value - other.value, one.replicates - other.replicates)
    error = float(difference.replicates.std(ddof=1))
    p = 2 * float(norm.sf(abs(difference.value) / error)) if error > 0 else float(difference.value == 0)
    return Pair(difference.estimate, p, n_tasks)


def regret_ratios(agents: Sequence[str], base: str, table: polars.DataFrame) -> dict[str, float]:
    """The loss of each agent as a multiple of that of one agent: geometric means over the tasks that all play.

    Args:
        agents: their names.
        base: the name of the other.
        table: rows of `scored`, without a loss of 0.
    """
    names = {*agents, base}
    rows = table.filter(col("agent").is_in(names)).filter(col("agent").n_unique().over("task") == len(names))
    losses = dict(rows.group_by("agent").agg(col("loss").log().mean().exp()).iter_rows())
    return {name: losses[name] / losses[base] for name in agents}


def regret_ratio(one: polars.DataFrame, other: polars.DataFrame, protocol: Protocol) -> float:
    """The regret of one agent as a multiple of another's: the geometric mean over the tasks that both play.

    Args:
        one, other: their rows of `scored`; tasks with another measure do not count, and no regret counts as less than that of
            one session of random lists.
        protocol: the version.

    Returns:
        The ratio; nan where they share no task.
    """
    floors = {task.name: protocol.anchor(task).random / task.horizon for task in protocol.tasks() if task.measure == "regret"}
    losses = []
    for rows in (one, other):
        means = rows.filter(col("task").is_in(list(floors))).group_by("task").agg(col("loss").mean())
        losses.append({task: max(loss, floors[task]) for task, loss in means.iter_rows()})
    shared = losses[0].keys() & losses[1].keys()
    if not shared:
        return math.nan
    return math.exp(sum(math.log(losses[0][task] / losses[1][task]) for task in sorted(shared)) / len(shared))


def improvement(one: polars.DataFrame, other: polars.DataFrame, protocol: Protocol = CURRENT) -> tuple[Estimate, int] | None:
    """The probability that one agent beats another in a task that both play, and the number of such tasks; None without any.

    Args:
        one, other: their rows of `scored`.
        protocol: the version.
    """
    counted = col("ability").is_in(list(protocol.abilities))  # not the tasks that were added since the version was frozen
    mine, theirs = (_by_task(table.filter(counted)) for table in (one, other))
    shared = [name for name in mine if name in theirs]
    if not shared:
        return None
    rng = np.random.default_rng(0)
    value = np.mean([better(mine[name][None], theirs[name][None])[0] for name in shared])
    samples = np.stack([better(_redrawn(mine[name], rng), _redrawn(theirs[name], rng)) for name in shared], axis=1)
    samples = np.average(samples, axis=1, weights=_weights_of(shared, protocol))
    several = max(len(scores[name]) for scores in (mine, theirs) for name in shared) > 1
    return Replicated(float(value), samples, several).estimate, len(shared)


def better(one: Scores, other: Scores) -> Scores:
    """How often a run of one is better than a run of the other, ties counted half: ``(n, runs)`` each.

    Example:
        >>> better(np.array([[1.0, 2.0]]), np.array([[1.0, 1.5, 3.0]]))
        array([0.41666667])
    """
    difference = np.sign(one[:, :, None] - other[:, None, :])
    return (1.0 + difference.mean(axis=(1, 2))) / 2.0


# ------------------------------------------------------------------------------------------------------------ the bootstrap


def _redrawn(scores: Scores, rng: np.random.Generator) -> Scores:
    """The runs of a task drawn anew, with replacement: ``(REPLICATES, runs)``."""
    return scores[rng.integers(len(scores), size=(REPLICATES, len(scores)))]


def _weights_of(tasks: Iterable[str], protocol: Protocol) -> Scores:
    """The weights of the instances of some tasks: ``(REPLICATES, tasks)``."""
    return np.stack([_weights(protocol)[protocol.by_name[task].query] for task in tasks], axis=1)


@cache
def _weights(protocol: Protocol) -> dict[str, Scores]:
    """The weights of each instance in all replicates, the same wherever it returns; ids do not make another one."""
    rng = np.random.default_rng(1)
    return {
        query: rng.exponential(size=REPLICATES) for query in dict.fromkeys(task.query for task in protocol.by_name.values())
    }


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Correct the p-values of several tests by Holm's procedure.

    Args:
        p_values: of the tests.

    Returns:
        As many: whoever rejects those below a level is wrong about any with at most that probability.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values)
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected
