"""Play the tasks of the scorecard: those that an agent can play, and the loss that it ends with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import polars
from polars import col

from ...agents import Learner
from ...runner.callback import Callback
from ...runner.labels import AgentLike, UnsuitedError, own_label
from ...runner.loop import playable
from ...runner.make import agent_maker, make_agent
from ...runner.results import Trial, read_results
from ...runner.run import run
from ...runner.sweep import sweep
from .tasks import SEED, Task

__all__ = ["COLUMNS", "blocks", "columns_of", "play", "play_one", "suited"]

COLUMNS = ["task", "ability", "env", "instance", "agent", "run", "horizon", "loss", "seconds"]
"""Of a table of what was played."""
REFERENCE = ("Random",)
"""Plays everything, as what a list is worth that knows nothing."""


def suited(agent: AgentLike, tasks: Iterable[Task]) -> list[Task]:
    """The tasks that an agent can play.

    Candidates that change are for agents that are told their features, but for those that rank the same candidates in every
    session; an agent that ranks by the user's state, or that must be told what only some environments know, plays where it is
    told. Nothing else excuses an agent: what it raises is raised.

    Args:
        agent: as `sweep` takes it.
        tasks: of the protocol.

    Example:
        >>> from clickgym.lab.bench.tasks import candidates
        >>> {task.ability for task in suited("CascadeVI", candidates())}
        {'memory'}
    """
    maker, hyperparameters = agent_maker(agent)
    by_features = "n_features" in inspect.signature(maker).parameters
    return [
        task
        for task in tasks
        if (own_label(agent) in REFERENCE or (task.ability == "contextual") == by_features)
        and _accepts((maker, hyperparameters), task)
    ]


def _accepts(agent: AgentLike, task: Task) -> bool:
    env = task.make()
    try:
        built = make_agent(agent, env, horizon=task.horizon, seed=0)
        if isinstance(built, Learner):
            playable(built, env)
    except UnsuitedError:
        return False
    return True


def blocks(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Tasks that one sweep can play, by name: of one ability, environment, horizon and measure."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(f"{task.ability}-{task.env}-{task.horizon}", []).append(task)
    return groups


def columns_of(ability: str) -> list[polars.Expr]:
    """What a table of a sweep lacks: each row's ``task``, as `Task.name` has it, its ``ability`` and its ``horizon``."""
    named = polars.format("{} {} {}", polars.lit(ability), "env", "instance").alias("task")
    return [named, polars.lit(ability).alias("ability"), col("step").alias("horizon")]


def play(
    label: str,
    agent: AgentLike,
    tasks: Sequence[Task],
    runs: int,
    out: Path,
    *,
    seed: int = SEED,
    n_jobs: int = -1,
    callback: Callback | None = None,
    on_block: Callable[[str], object] | None = None,
) -> polars.DataFrame:
    """Play tasks, as far as they have not been played.

    Args:
        label: what results call the agent.
        agent: as `sweep` takes it.
        tasks: that it can play.
        runs: of each.
        out: the folder of its sweeps, each in one of its own; one that was begun is gone on with.
        seed, n_jobs, callback: as in `sweep`.
        on_block: called before each sweep with its name.

    Returns:
        One row for each task and run: ``task``, ``ability``, ``env``, ``instance``, ``agent``, ``run``, ``horizon``, ``loss``,
        the regret or what else is measured, and ``seconds``.
    """
    frames = []
    for name, block in blocks(tasks).items():
        if on_block is not None:
            on_block(name)
        first = block[0]
        sweep(
            [first.env],
            {label: agent},
            first.horizon,
            runs,
            seed=seed,
            out=out / name,
            instances=[task.instance for task in block],
            n_jobs=n_jobs,
            checkpoints=[first.horizon],
            metrics=_metrics(first),
            callback=callback,
        )
        table, timings, _ = read_results(out / name)
        played = table.join(timings.select("instance", "agent", "run", "seconds"), on=["instance", "agent", "run"]).filter(
            col("instance").is_in([task.instance for task in block]), col("run") < runs, col("agent") == label
        )
        frames.append(played.with_columns(*columns_of(first.ability), loss=first.measure).select(COLUMNS))
    return polars.concat(frames)


def play_one(label: str, agent: AgentLike, task: Task, index: int) -> float:
    """The loss of a single run, with the seeds that it has in `play`."""
    env = task.make()
    seed, agent_seed = Trial(task.env, task.instance, label, index).seeds(SEED)
    built = make_agent(agent, env, horizon=task.horizon, seed=agent_seed)
    result = run(built, env, task.horizon, seed=seed, checkpoints=[task.horizon], metrics=_metrics(task))
    return float(result.to_frame()[task.measure][-1])


def _metrics(task: Task) -> list[str]:
    return [] if task.measure == "regret" else [task.measure]
