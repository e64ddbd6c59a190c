"""What plays the tasks of the scorecard, and what an agent is given before its first session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import gymnasium as gym
import numpy as np
import polars
from numpy.typing import NDArray

import clickgym
from clickgym.agents import Agent, CompiledAgent, Learner, Random
from clickgym.agents.agent import UnsuitedError
from clickgym.runner.config import versions
from clickgym.runner.identity import identities
from clickgym.runner.make import agent_maker, make_agent, maker_name, observed_sizes, requirements
from clickgym.runner.names import AgentLike
from clickgym.runner.play.pair import engine_of
from clickgym.runner.store import Journal, Row, read
from clickgym.runner.sweep import resumable
from clickgym.runner.workers import in_parallel

from .tasks import Task

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


def prepared(agent: AgentLike, task: Task, env: gym.Env, seed: int) -> Any:
    """An agent, ready for the first session of a task.

    Args:
        agent: as `clickgym.run` takes it.
        task: whose log it learns from, if it learns from any list.
        env: of the task.
        seed: of the agent.
    """
    known, (maker, passed) = {}, agent_maker(agent)
    is_open = "examination" in requirements(maker) and "examination" not in passed
    if is_open and _has_items(env):
        known["examination"] = examination(env)
    made: Any = make_agent(agent, env, horizon=task.horizon, seed=seed, **known)
    if task.log and isinstance(made, Agent) and made.learns_from_any_list:
        rankings, clicks = log_of_production(task, seed)
        made.learn_sessions(rankings, clicks, clicks.sum(axis=1).astype(float))
    return made


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


def log_of_production(task: Task, seed: int, exchanged: float = EXCHANGED) -> Log:
    """A log of the production list, in some of whose sessions two items, drawn at random among
    all, have exchanged their places.

    Args:
        task: with a production list; its ``log`` is the number of sessions.
        seed: of the exchanges and of the clicks.
        exchanged: in what share of the sessions.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    core: Any = task.make().unwrapped
    lists = np.tile(core.initial_ranking, (task.log, 1))
    n_items = lists.shape[1]
    rows = np.flatnonzero(rng.random(task.log) < exchanged)
    first = rng.integers(n_items, size=len(rows))
    second = (first + rng.integers(1, n_items, size=len(rows))) % n_items
    lists[rows, first], lists[rows, second] = lists[rows, second], lists[rows, first]
    rankings = np.ascontiguousarray(lists[:, : core.model.n_positions])
    envs = gym.make_vec(task.env, num_envs=task.log, instance=task.instance)
    envs.reset(seed=int(rng.integers(2**31)))
    return Log(rankings, envs.step(rankings)[0])


def playable(agent: AgentLike, tasks: Iterable[Task]) -> list[Task]:
    """The tasks that an agent can play.

    Only agents that rank by features, learners and random lists play tasks whose candidates have
    features; an agent that needs what the environment does not know does not play. Other errors of
    an agent are raised.
    """
    maker: Any = agent_maker(agent)[0]
    by_features = "n_features" in observed_sizes(maker)
    everywhere = isinstance(maker, type) and issubclass(maker, Learner | Random)
    fitting = [task for task in tasks if everywhere or task.has_features == by_features]
    return [task for task in fitting if _suits(agent, task)]


def _suits(agent: AgentLike, task: Task) -> bool:
    try:
        env = task.make()
        engine_of(prepared(agent, task._replace(log=0), env, 0), env)
    except UnsuitedError:
        return False
    return True


def play(
    agent: AgentLike,
    tasks: Sequence[Task],
    runs: int,
    out: Path,
    *,
    seed: int = 0,
    n_jobs: int = -1,
    watch: Callable[[Iterable[polars.DataFrame]], Iterable[polars.DataFrame]] = iter,
) -> polars.DataFrame:
    """Play tasks that have not been played yet.

    Args:
        agent: as `clickgym.run` takes it.
        tasks: that it can play.
        runs: of each.
        out: a folder with a file of each run; resumed if it exists. What has no content to compare
            is played, but not resumed.
        seed: of all runs.
        n_jobs: workers: threads for compiled agents, else processes.
        watch: iterates over the tables of the tasks as they are finished.

    Returns:
        One row for each task and run: ``task``, ``run``, ``loss`` and ``seconds``.

    """
    maker, passed = agent_maker(agent)
    (known,) = identities("agent", {maker_name(maker): (maker, passed)}).values()
    used = [version("clickgym"), *versions().values()]
    keys = {task: f"{known} {task} {seed} {used}" for task in tasks}
    hashes = {task: sha256(keys[task].encode()).hexdigest()[:32] for task in tasks}
    compiled = isinstance(maker, type) and issubclass(maker, CompiledAgent)
    prefer = "threads" if compiled else "processes"
    _, rows = read([out])
    journal = Journal(out, {"agent": str(agent), "seed": seed})
    calls = [
        (play_task, agent, task, hashes[task], runs, found_of(rows, hashes[task]), journal, seed)
        for task in tasks
    ]
    finished: list[polars.DataFrame] = []
    with resumable(out, lambda: f"{len(finished)} of {len(tasks)} tasks"):
        for table in watch(in_parallel(calls, n_jobs, prefer, "generator", code=known)):
            finished.append(table)
    return polars.concat(finished)


def found_of(rows: Mapping[str, Row], key: str) -> dict[str, Row]:
    """The finished runs whose keys begin with a hash."""
    return {name: row for name, row in rows.items() if name.startswith(key)}


def play_task(
    agent: AgentLike,
    task: Task,
    key: str,
    runs: int,
    found: Mapping[str, Row],
    journal: Journal,
    seed: int,
) -> polars.DataFrame:
    """Play the runs of a task that have not been played yet.

    The seeds of a run depend on the name of the task and the number of the run, so that all agents
    meet the same users.

    Args:
        agent, task, runs, seed: as in `play`.
        key: a hash of what the runs depend on.
        found: the finished runs by their keys.
        journal: keeps the others.
    """
    rows = []
    metrics = [] if task.measure == "regret" else [task.measure]
    env = task.make()
    for number in range(runs):
        row = found.get(f"{key}-{number}")
        if row is None:
            seeds = np.random.SeedSequence(seed, spawn_key=(crc32(task.name.encode()), number))
            env_seed, agent_seed = map(int, seeds.generate_state(2))
            player = prepared(agent, task, env, agent_seed)
            steps = [task.horizon]
            result = clickgym.run(
                player, env, task.horizon, seed=env_seed, checkpoints=steps, metrics=metrics
            )
            loss = result.to_frame()[task.measure].to_numpy()[-1:].astype("<f8")
            row = Row(result.engine, result.seconds, loss.tobytes())
            journal.add({f"{key}-{number}": row})
        rows.append((task.name, number, *np.frombuffer(row.measured).tolist(), row.seconds))
    return polars.DataFrame(rows, COLUMNS, orient="row")
