"""Runs of the scorecard's tasks, and what an agent is told before its first session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import gymnasium as gym
import numpy as np
import polars
from numpy.typing import NDArray

from ..agents import CompiledAgent, Learner, Random
from ..agents.agent import UnsuitedError
from ..core.files import make_folder
from ..runner.make import (
    AgentLike,
    make_agent,
    observed_sizes,
    requirements,
    resolve_agent,
)
from ..runner.meaning import meaning_of
from ..runner.play.play_run import engine_of, run
from ..runner.sweep import resumable
from ..runner.workers import run_in_parallel, say_resumed
from .result_files import read_results, write_results
from .tasks import ScoredTask

ANCHOR_SEED = 1
"""The seed of the runs from which the anchors are computed; the runs of the board have seed 0."""
RANDOM_LISTS = 200


def make_informed_agent(agent: AgentLike, env: gym.Env, horizon: int, seed: int) -> Any:
    """Make an agent. An agent that requires examination probabilities, and was given none, is told
    those that `examination` returns. Environments whose items or users' states change between
    sessions have none.
    """
    known, (maker, passed) = {}, resolve_agent(agent)
    stay = hasattr(getattr(env.unwrapped, "model", None), "epochs")
    if stay and "examination" in requirements(maker) and "examination" not in passed:
        known["examination"] = examination(env)
    return make_agent(agent, env, horizon=horizon, seed=seed, **known)


def examination(env: gym.Env) -> NDArray[np.float64]:
    """Return the examination probability of each position. Where this probability depends on the
    items shown, return its average over random lists.
    """
    model: Any = env.unwrapped.model.epochs[0]  # type: ignore[attr-defined]
    weights = model.position_weights()
    if weights is not None:
        return weights
    rng = np.random.default_rng(0)
    lists = [rng.permutation(model.n_items)[: model.n_positions] for _ in range(RANDOM_LISTS)]
    return np.mean([model.examination_probabilities(ranking) for ranking in lists], axis=0)


def playable_tasks(agent: AgentLike, tasks: Iterable[ScoredTask]) -> list[ScoredTask]:
    """The tasks that an agent can play.

    Agents that rank by features play only tasks with features, and other agents only tasks without;
    RL algorithms and `Random` play both kinds. An agent does not play a task whose environment
    lacks what the agent requires. Any other error of an agent is raised.
    """
    maker: Any = resolve_agent(agent)[0]
    by_features = "n_features" in observed_sizes(maker)
    everywhere = isinstance(maker, type) and issubclass(maker, Learner | Random)
    fitting = [task for task in tasks if everywhere or task.has_features == by_features]
    return [task for task in fitting if _suits(agent, task)]


def _suits(agent: AgentLike, task: ScoredTask) -> bool:
    try:
        env = task.make()
        engine_of(make_informed_agent(agent, env, task.horizon, 0), env)
    except UnsuitedError:
        return False
    return True


def play_tasks(
    agent: AgentLike,
    tasks: Sequence[ScoredTask],
    runs: int,
    out: Path,
    *,
    seed: int = 0,
    n_jobs: int = -1,
    watch: Callable[[Iterable[polars.DataFrame]], Iterable[polars.DataFrame]] = iter,
) -> polars.DataFrame:
    """Play the tasks that have not been played yet.

    Args:
        agent: as `clickgym.run` takes it.
        tasks: tasks that the agent can play.
        runs: the number of runs of each task.
        out: a folder for this agent, these tasks and this number of runs. It holds one file for
            each finished task, so that the same call can resume.
        seed: the seed of all runs.
        n_jobs: the number of workers: threads for compiled agents, processes for others.
        watch: wraps the iterator over the tables of finished tasks, for example in a progress bar.

    Returns:
        One row for each task and run: ``task``, ``run``, ``loss`` and ``seconds``.
    """
    resolved = resolve_agent(agent)
    make_folder(out)
    files = [out / f"{task.name}.parquet" for task in tasks]
    if there := sum(file.exists() for file in files):
        say_resumed(out, f"{there} of {len(tasks)} tasks")
    calls = [
        (play_task, agent, task, runs, seed, file) for task, file in zip(tasks, files, strict=True)
    ]
    compiled = isinstance(resolved[0], type) and issubclass(resolved[0], CompiledAgent)
    own_files = meaning_of(agent, resolved).files
    finished: list[polars.DataFrame] = []
    with resumable(out, lambda: f"{len(finished)} of {len(tasks)} tasks"):
        prefer = "threads" if compiled else "processes"
        for table in watch(run_in_parallel(calls, n_jobs, prefer, "generator", own_files)):
            finished.append(table)
    return polars.concat(finished)


def play_task(
    agent: AgentLike, task: ScoredTask, runs: int, seed: int, file: Path
) -> polars.DataFrame:
    """Play the runs of a task, or load them if they are already saved.

    The seeds of a run depend on the task's name and the run's number, so that all agents meet the
    same users.
    """
    if file.exists():
        return read_results(file)[0]
    rows, env = [], task.make()
    metrics = [] if task.measure == "regret" else [task.measure]
    for number in range(runs):
        seeds = np.random.SeedSequence(seed, spawn_key=(crc32(task.name.encode()), number))
        env_seed, agent_seed = map(int, seeds.generate_state(2))
        player = make_informed_agent(agent, env, task.horizon, agent_seed)
        result = run(
            player, env, task.horizon, seed=env_seed, checkpoints=[task.horizon], metrics=metrics
        )
        loss = result.to_frame()[task.measure][-1]
        rows.append((task.name, number, loss, result.seconds))
    table = polars.DataFrame(rows, ["task", "run", "loss", "seconds"], orient="row")
    table = table.with_columns(polars.col("loss", "seconds").cast(polars.Float32))
    write_results(file, table, {})
    return table
