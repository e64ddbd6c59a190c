"""What plays the tasks of the scorecard, and what an agent is given before its first session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import polars
from numpy.typing import NDArray

import clickgym
from clickgym.agents import Agent
from clickgym.runner import AgentLike, Callback, UnsuitedError, make_agent, player_of

from .tasks import Task

PLAYER = "agent"
"""The name of every agent in sweeps of the scorecard, so that no seed depends on names."""
ANCHOR_SEED = 1
"""Of the runs that make the anchors; those of the board have seed 0."""
EXCHANGED = 0.2
"""The share of the sessions of a log in which two items have exchanged their places."""
RANDOM_LISTS = 200
COLUMNS = {
    "task": polars.String,
    "run": polars.Int64,
    "loss": polars.Float32,
    "seconds": polars.Float32,
}


class Log(NamedTuple):
    """Sessions from which an agent learns: ``(n, K)`` each."""

    rankings: NDArray[np.int64]
    clicks: NDArray[np.int8]


@dataclass(frozen=True)
class Prepared:
    """A maker of agents that have learned from the log of a task.

    Attributes:
        agent: as `clickgym.sweep` takes it.
        task: what it will play.
    """

    agent: AgentLike
    task: Task

    def __call__(self, n_items: int, n_positions: int, *, horizon: int, seed: Any = None) -> Any:
        """An agent, ready for its first session; sizes are those of the task."""
        env, known = _env_of(self.task), {}
        if "examination" in player_of(self.agent).asks and _has_items(env):
            known["examination"] = examination(env)
        agent: Any = make_agent(self.agent, env, horizon=horizon, seed=seed, **known)
        if self.task.log and isinstance(agent, Agent) and agent.learns_from_any_list:
            log_seed = np.random.SeedSequence(seed, spawn_key=(1,))
            for ranking, clicks in zip(
                *log_of_production(env, self.task.log, log_seed), strict=True
            ):
                agent.update(None, ranking, clicks, float(clicks.sum()))
        return agent


@cache
def _env_of(task: Task) -> gym.Env:
    """The environment that says what an agent is given; it is not played."""
    return task.make()


def _has_items(env: gym.Env) -> bool:
    """Whether its users choose among items that stay, and have no memory."""
    return hasattr(getattr(env.unwrapped, "model", None), "epochs")


def examination(env: gym.Env) -> NDArray[np.float64]:
    """The examination probabilities of positions: of the model, or in the mean over random lists
    where they depend on the items.
    """
    model: Any = env.unwrapped.model.epochs[0]  # type: ignore[attr-defined]
    weights = model.position_weights()
    if weights is not None:
        return weights
    rng = np.random.default_rng(0)
    lists = [rng.permutation(model.n_items)[: model.n_positions] for _ in range(RANDOM_LISTS)]
    return np.mean([model.examination_probabilities(ranking) for ranking in lists], axis=0)


def log_of_production(env: gym.Env, n: int, seed: Any, exchanged: float = EXCHANGED) -> Log:
    """A log of the production list, in some of whose sessions two items, drawn at random among
    all, have exchanged their places.

    Args:
        env: with a production list.
        n: how many sessions.
        seed: of the exchanges and of the clicks.
        exchanged: in what share of the sessions.
    """
    core: Any = env.unwrapped
    users, rng = core.model, np.random.default_rng(seed)
    lists = np.tile(core.initial_ranking, (n, 1))
    n_items = lists.shape[1]
    rows = np.flatnonzero(rng.random(n) < exchanged)
    first = rng.integers(n_items, size=len(rows))
    second = (first + rng.integers(1, n_items, size=len(rows))) % n_items
    lists[rows, first], lists[rows, second] = lists[rows, second], lists[rows, first]
    rankings = np.ascontiguousarray(lists[:, : users.n_positions])
    return Log(rankings, np.array([users.sample(ranking, rng) for ranking in rankings]))


def playable(agent: AgentLike, tasks: Iterable[Task]) -> list[Task]:
    """The tasks that an agent can play.

    Only agents that rank by features, and random lists, play tasks whose candidates have features;
    an agent that needs what the environment does not know does not play. Other errors of an agent
    are raised.
    """
    player = player_of(agent)
    by_features = "n_features" in player.observes
    everywhere = player.label == "Random" or hasattr(player.maker, "representations")
    fitting = [task for task in tasks if everywhere or task.has_features == by_features]
    return [task for task in fitting if _suits(agent, task)]


def _suits(agent: AgentLike, task: Task) -> bool:
    env = task._replace(log=0)
    try:
        Prepared(agent, env)(0, 0, horizon=task.horizon, seed=0)
    except UnsuitedError:
        return False
    return True


def play(
    agent: AgentLike,
    tasks: Iterable[Task],
    runs: int,
    out: Path,
    *,
    seed: int = 0,
    n_jobs: int = -1,
    callback: Callback | None = None,
) -> polars.DataFrame:
    """Play tasks that have not been played yet.

    Args:
        agent: as `clickgym.sweep` takes it.
        tasks: that it can play.
        runs: of each.
        out: a folder with a folder of each task; resumed if it exists.
        seed, n_jobs, callback: as in `clickgym.sweep`.

    Returns:
        One row for each task and run: ``task``, ``run``, ``loss`` and ``seconds``.
    """
    frames = [polars.DataFrame(schema=COLUMNS)]
    for task in tasks:
        results = clickgym.sweep(
            {task.name: (task.env, {"instance": task.instance})},
            {PLAYER: Prepared(agent, task)},
            task.horizon,
            runs,
            seed=seed,
            out=out / task.name,
            n_jobs=n_jobs,
            checkpoints=[task.horizon],
            metrics=[] if task.measure == "regret" else [task.measure],
            callback=callback,
            progress=False,
        )
        rows = results.frame.join(results.timings.select("run", "seconds"), on="run")
        named = rows.with_columns(task=polars.lit(task.name), loss=polars.col(task.measure))
        frames.append(named.select(polars.col(name).cast(kind) for name, kind in COLUMNS.items()))
    return polars.concat(frames).filter(polars.col("run") < runs)
