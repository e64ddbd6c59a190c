"""Play the tasks of the scorecard: which tasks an agent can play, and the losses of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import polars
from polars import col

from clickgym import Results, make_agent, run, sweep
from clickgym.runner import AgentLike, Callback, Player, UnsuitedError, pair_of, place_of, player_of

from .equipment import equipped
from .protocol import PLAYER, Protocol
from .task import Task

COLUMNS = [
    "task",
    "ability",
    "env",
    "instance",
    "agent",
    "run",
    "horizon",
    "step",
    "regret",
    "loss",
    "seconds",
]
"""Of a table of what was played."""
REFERENCE = ("Random",)
"""Plays everything, as what a list is worth that knows nothing."""


def suited(agent: AgentLike | Player, tasks: Iterable[Task]) -> list[Task]:
    """The tasks that an agent can play.

    Only agents that rank by features play tasks whose candidates have features. Generic RL by
    rankings sees features where there are some. An agent that ranks by the user's state, or that
    needs knowledge of the environment, plays the tasks in which it gets this. An agent may skip a
    task for no other reason; its exceptions are raised.

    Args:
        agent: as `sweep` takes it.
        tasks: of the protocol.

    Example:
        >>> from clickgym_lab.bench.protocol import CURRENT
        >>> {task.ability for task in suited("CascadeVI", CURRENT.candidates)}
        {'memory'}
    """
    player = player_of(agent)
    by_features = "n_features" in player.observes
    either = player.label in REFERENCE or _by_rankings(player)
    own = [task for task in tasks if either or task.env.startswith("Contextual") == by_features]
    return [task for task in own if _accepts(player, task)]


def _by_rankings(player: Player) -> bool:
    """Whether it is generic RL whose actions are rankings: those of its constructor, or the first
    that its class names.
    """
    first = next(iter(getattr(player.maker, "representations", ())), None)
    return player.hyperparameters.get("actions", first) == "rankings"


def _accepts(player: Player, task: Task) -> bool:
    place = place_of(task.make())
    try:
        pair_of(player_of(equipped(player, task)).make(place, task.horizon, 0), place)
    except UnsuitedError:
        return False
    return True


def blocks(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Tasks that one sweep plays, by name: of one ability, horizon, measure and log."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        name = f"{task.ability}-log-{task.log}" if task.log else task.ability
        groups.setdefault(name, []).append(task)
    return groups


def n_sessions(tasks: Iterable[Task], runs: int) -> int:
    """How many sessions all runs of some tasks have."""
    return runs * sum(task.horizon for task in tasks)


def play(
    protocol: Protocol,
    label: str,
    agent: AgentLike | Player,
    tasks: Sequence[Task],
    runs: int,
    out: Path,
    *,
    n_jobs: int = -1,
    callback: Callback | None = None,
    on_block: Callable[[str], object] | None = None,
) -> polars.DataFrame:
    """Play the tasks that have not been played yet.

    Args:
        protocol: the tasks, and the seeds of their runs.
        label: what results call the agent.
        agent: as `sweep` takes it.
        tasks: that it can play.
        runs: of each.
        out: the folder with a subfolder for each sweep; resumed if it exists.
        n_jobs, callback: as in `sweep`.
        on_block: called before each sweep with its name.

    Returns:
        One row for each task, run and checkpoint: ``task``, ``ability``, ``env``, ``instance``,
        ``agent``, ``run``, ``horizon``, ``step``, ``regret``, ``loss``, the regret or what else is
        measured, and ``seconds`` of the run.
    """
    frames = []
    for name, block in blocks(tasks).items():
        if on_block is not None:
            on_block(name)
        first = block[0]
        sweep(
            agents={PLAYER: equipped(agent, first)},
            envs={task.name: (task.env, {"instance": task.instance}) for task in block},
            horizon=first.horizon,
            runs=runs,
            seed=protocol.seed,
            out=out / name,
            n_jobs=n_jobs,
            checkpoints=protocol.checkpoints(first.horizon),
            metrics=_metrics(first),
            callback=callback,
        )
        frames.append(read_block(out / name, block, label).filter(col("run") < runs))
    return polars.concat(frames)


def read_block(folder: Path, block: Sequence[Task], label: str) -> polars.DataFrame:
    """Read the results of a block of tasks, in the form that `play` returns.

    Args:
        folder: of the sweep.
        block: its tasks; others in the folder do not count.
        label: what results call the agent.
    """
    results = Results(folder)
    keys = ["env", "instance", "agent", "run"]
    both = results.frame.join(
        results.timings.select(*keys, "seconds"), on=keys, maintain_order="left"
    )
    both = both.filter(agent=PLAYER).with_columns(
        polars.lit(label).alias("agent"), loss=block[0].measure
    )
    return described(both, block).select(COLUMNS)


def described(table: polars.DataFrame, tasks: Sequence[Task]) -> polars.DataFrame:
    """The rows of some tasks, in the table of a sweep, with ``task``, ``ability``, ``horizon`` and
    the environment's own name.

    Args:
        table: with ``env``, in which the name of the task stands, and ``instance``.
        tasks: those that count.
    """
    rows = [
        (task.name, task.instance, task.name, task.ability, task.env, task.horizon)
        for task in tasks
    ]
    names = polars.DataFrame(
        rows, ["env", "instance", "task", "ability", "own env", "horizon"], orient="row"
    )
    return table.join(names, on=["env", "instance"], maintain_order="left").with_columns(
        env="own env"
    )


def play_one(protocol: Protocol, agent: AgentLike, task: Task, index: int) -> float:
    """The loss of a single run, with the seeds that it has in `play`."""
    env = task.make()
    seed, agent_seed = protocol.trial(task, index).seeds(protocol.seed)
    built = make_agent(equipped(agent, task), env, horizon=task.horizon, seed=agent_seed)
    result = run(
        built, env, task.horizon, seed=seed, checkpoints=[task.horizon], metrics=_metrics(task)
    )
    return float(result.to_frame()[task.measure][-1])


def _metrics(task: Task) -> list[str]:
    return [] if task.measure == "regret" else [task.measure]
