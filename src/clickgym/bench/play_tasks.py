"""Functions that run an agent on the tasks of the scorecard, after passing the agent what it must
know about the users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
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
from ..runner.fingerprint import fingerprint_of
from ..runner.make.agents import (
    AgentLike,
    make_resolved_agent,
    observed_sizes,
    requirements,
    resolve_agent,
)
from ..runner.make.copies import own_copies, warn_of_shared_arguments
from ..runner.make.environments import maker_name
from ..runner.play.run import engine_of, run
from ..runner.sweep.progress import print_resumed, resumable
from ..runner.sweep.workers import run_in_parallel
from .result_files import read_results, write_results
from .tasks import ScoredTask

ANCHOR_SEED = 1
"""The seed of the runs from which the anchors are computed. The runs on the board have the seed 0.
"""
RANDOM_LISTS = 200


def make_informed_agent(agent: AgentLike, env: gym.Env, horizon: int, seed: int) -> Any:
    """Make an agent for an environment, with its own copies of the arguments, as in a sweep.

    If the agent requires examination probabilities and its arguments contain none, the agent gets
    the probabilities that `mean_examination` returns. Environments whose items or users' states
    change between sessions have no such probabilities.
    """
    maker, arguments = resolve_agent(agent)
    has_epochs = hasattr(getattr(env.unwrapped, "model", None), "epochs")
    if has_epochs and "examination" in requirements(maker) and "examination" not in arguments:
        arguments = {**arguments, "examination": mean_examination(env)}
    return make_resolved_agent(own_copies((maker, arguments)), env, horizon, seed)


def mean_examination(env: gym.Env) -> NDArray[np.float64]:
    """Return the examination probability of each position in an environment. If the probability
    depends on the list, return its average over random lists.
    """
    model: Any = env.unwrapped.model.epochs[0]  # type: ignore[attr-defined]
    weights = model.position_weights()
    if weights is not None:
        return weights
    rng = np.random.default_rng(0)
    lists = [rng.permutation(model.n_items)[: model.n_positions] for _ in range(RANDOM_LISTS)]
    return np.mean([model.examination_probabilities(ranking) for ranking in lists], axis=0)


def playable_tasks(agent: AgentLike, tasks: Iterable[ScoredTask]) -> list[ScoredTask]:
    """Return the tasks that an agent can play.

    Agents that rank by features play only tasks with features, and other agents play only tasks
    without; RL algorithms and `Random` play both kinds. Tasks whose environment lacks something
    that the agent requires are left out. Any other error that the agent raises is passed on.
    """
    maker: Any = resolve_agent(agent)[0]
    by_features = "n_features" in observed_sizes(maker)
    takes_any_task = isinstance(maker, type) and issubclass(maker, Learner | Random)
    suitable = [task for task in tasks if takes_any_task or task.has_features == by_features]
    playable = []
    for task in suitable:
        with suppress(UnsuitedError):
            env = task.make()
            engine_of(make_informed_agent(agent, env, task.horizon, 0), env)
            playable.append(task)
    return playable


def play_tasks(
    agent: AgentLike,
    tasks: Sequence[ScoredTask],
    runs: int,
    out: Path,
    *,
    seed: int = 0,
    n_jobs: int = -1,
    track_progress: Callable[[Iterable[polars.DataFrame]], Iterable[polars.DataFrame]] = iter,
) -> polars.DataFrame:
    """Play every task that has no saved results, and return the results of all tasks.

    Args:
        agent: the agent, in any form that `clickgym.run` accepts.
        tasks: the tasks, all of which the agent must be able to play.
        runs: the number of runs of each task.
        out: a folder for the results of this agent, these tasks and this number of runs. The folder
            gets a file for each finished task, so that the same call resumes after an interruption.
        seed: the seed of all runs.
        n_jobs: the number of workers, which are threads for compiled agents and processes for other
            agents; by default, one per CPU.
        track_progress: a function that wraps the iterator over the tables of finished tasks, for
            example in a progress bar; by default, no progress is shown.

    Returns:
        A table with a row for each task and run, and the columns ``task``, ``run``, ``loss`` and
        ``seconds``.
    """
    resolved = resolve_agent(agent)
    warn_of_shared_arguments({maker_name(resolved[0]): resolved})
    make_folder(out)
    files = [out / f"{task.name}.parquet" for task in tasks]
    if n_saved := sum(file.exists() for file in files):
        print_resumed(out, f"{n_saved} of {len(tasks)} tasks")
    calls = [
        (play_task, agent, task, runs, seed, file) for task, file in zip(tasks, files, strict=True)
    ]
    is_compiled = isinstance(resolved[0], type) and issubclass(resolved[0], CompiledAgent)
    own_files = fingerprint_of(agent, resolved).files
    tables: list[polars.DataFrame] = []
    with resumable(out, lambda: len(tables), len(tasks), "tasks"):
        prefer = "threads" if is_compiled else "processes"
        for table in track_progress(run_in_parallel(calls, n_jobs, prefer, "generator", own_files)):
            tables.append(table)
    return polars.concat(tables)


def play_task(
    agent: AgentLike, task: ScoredTask, runs: int, seed: int, file: Path
) -> polars.DataFrame:
    """Play the runs of a task, or load their results if they are already saved.

    The seeds of a run depend only on ``seed``, on the task's name and on the number of the run, so
    that all agents play with the same users.
    """
    if file.exists():
        return read_results(file)[0]
    rows, env = [], task.make()
    metrics = [] if task.measure == "regret" else [task.measure]
    for number in range(runs):
        seeds = np.random.SeedSequence(seed, spawn_key=(crc32(task.name.encode()), number))
        env_seed, agent_seed = map(int, seeds.generate_state(2))
        new_agent = make_informed_agent(agent, env, task.horizon, agent_seed)
        result = run(
            new_agent, env, task.horizon, seed=env_seed, checkpoints=[task.horizon], metrics=metrics
        )
        loss = result.to_frame()[task.measure][-1]
        rows.append((task.name, number, loss, result.seconds))
    table = polars.DataFrame(rows, ["task", "run", "loss", "seconds"], orient="row")
    table = table.with_columns(polars.col("loss", "seconds").cast(polars.Float32))
    write_results(file, table, {})
    return table
