"""Jobs of a sweep, which play its missing runs in parallel workers."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from pickle import PicklingError
from secrets import token_hex
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...agents import FrozenPolicy
from ...core.errors import SessionError, WorkerError
from ...envs import UserModel
from ..make.agents import make_resolved_agent
from ..make.copies import own_copies
from ..make.environments import make_env
from ..play.additional_metrics import AdditionalMetrics
from ..play.prepared_run import OnChunk
from ..play.run import engine_of, play_run
from ..results_folder import CONFIG, RUNS, Config, FinishedRuns, RunKey, add_runs, open_folder
from .plan import Plan
from .progress import Progress
from .seeds import run_seed
from .workers import (
    broken_pool_message,
    count_workers,
    run_in_parallel,
    runs_in_this_process,
    set_values,
)


def play_missing(
    plans: Sequence[Plan],
    config: Config,
    finished_runs: FinishedRuns,
    folder: Path | None,
    n_jobs: int,
    *,
    progress: bool,
) -> None:
    """Play the runs of a sweep that are missing in ``finished_runs``, and add them to it.

    Args:
        plans: the plans that `make_plans` returned.
        config: the configuration of the sweep.
        finished_runs: the runs that are already finished, by key.
        folder: the folder in which each finished run is saved; None to save nothing.
        n_jobs: the number of workers; -1 means one worker per processor.
        progress: whether the progress is shown.
    """
    file = None if folder is None else folder / RUNS / f"{token_hex(8)}.jsonl"
    opened = b"" if folder is None else (folder / CONFIG).read_bytes()
    jobs = _missing_jobs(plans, finished_runs)
    n_left = sum(len(run_indices) for _, run_indices in jobs)
    n_runs = sum(plan.cell.runs for plan in plans)
    pairs = {(plan.cell.env, plan.cell.agent) for plan, _ in jobs}
    finished = n_runs - n_left
    with Progress(progress, n_runs, finished, config.horizon, pairs) as bar:
        for workers in KINDS_OF_WORKERS:
            group = [job for job in jobs if job[0].workers == workers]
            if not group:
                continue
            bar.begin(count_workers(n_jobs, len(group)))
            for runs in _play_jobs(group, config, workers, n_jobs, bar):
                finished_runs.update(runs)
                if folder is not None and file is not None:
                    if (folder / CONFIG).read_bytes() != opened:  # another command has changed it
                        open_folder(folder, config, folder)
                        opened = (folder / CONFIG).read_bytes()
                    add_runs(file, runs)
                (env, _, agent, _), *_ = runs
                bar.add_finished((env, agent), [run.seconds for run in runs.values()])


KINDS_OF_WORKERS: tuple[Literal["threads", "processes"], ...] = ("threads", "processes")
"""The kinds of workers in the order in which they play. Processes come last because they play most
slowly, and the time left is known only while the last kind plays.
"""
Job = tuple[Plan, Sequence[int]]
"""The runs that a worker plays in one call: the plan of their cell, and the indices of the runs."""


def _missing_jobs(plans: Sequence[Plan], finished_runs: Container[RunKey]) -> list[Job]:
    """Return jobs for all runs that are not finished.

    The pairs of an environment and an agent take turns. All kernels are therefore compiled at the
    start, an agent that fails does so soon, and the time that the first jobs take says how long the
    others will take.
    """
    jobs_of_pair: dict[tuple[str, str], list[Job]] = {}
    for plan in plans:
        env, instance, agent, n_runs, _ = plan.cell
        missing = [run for run in range(n_runs) if (env, instance, agent, run) not in finished_runs]
        for start in range(0, len(missing), plan.runs_per_call):
            job = plan, missing[start : start + plan.runs_per_call]
            jobs_of_pair.setdefault((env, agent), []).append(job)
    turns = zip_longest(*jobs_of_pair.values())
    return [job for turn in turns for job in turn if job is not None]


def _play_jobs(
    jobs: Sequence[Job],
    config: Config,
    workers: Literal["threads", "processes"],
    n_jobs: int,
    bar: Progress,
) -> Iterator[FinishedRuns]:
    """Play jobs in workers, yield the runs of each finished job, and report progress to ``bar``."""
    stop = threading.Event()

    def on_chunk(n_sessions: int) -> None:
        if stop.is_set():
            raise InterruptedError
        bar.advance(n_sessions)

    fingerprints = config.fingerprints().values()
    files = {
        name: value for fingerprint in fingerprints for name, value in fingerprint.files.items()
    }
    calls: list[Any]
    try:
        if runs_in_this_process(workers, n_jobs):
            calls = [(play_runs, *job, config, on_chunk) for job in jobs]
            yield from run_in_parallel(calls, n_jobs, workers, files=files)
        else:
            user_classes = {
                name: value
                for name, value in UserModel.classes.items()
                if not value.__module__.startswith("clickgym.")
            }
            with bar.session_counters(len(jobs)) as counts:
                calls = [
                    (play_runs_in_worker, *job, config, user_classes, counts[i : i + 1])
                    for i, job in enumerate(jobs)
                ]
                yield from run_in_parallel(calls, n_jobs, workers, files=files)
    except BrokenExecutor as error:
        raise WorkerError(broken_pool_message(error)) from None
    except PicklingError as error:
        raise TypeError(
            f"{broken_pool_message(error)}; for a trained model, pass FrozenPolicy the saved file; "
            "define any other class in a module that workers can import, or pass n_jobs=1 to run "
            "in the current process"
        ) from None
    finally:
        stop.set()


def play_runs_in_worker(
    plan: Plan,
    run_indices: Sequence[int],
    config: Config,
    users: Mapping[str, type[UserModel]],
    count: NDArray[np.int64],
) -> FinishedRuns:
    """Play runs of a cell in a worker process, and return the runs by key.

    Constants and class attributes are first set to the values that they have in the calling
    process.

    Args:
        plan: the plan of the cell.
        run_indices: the indices of the runs to play.
        config: the configuration of the sweep.
        users: the classes of users that are defined outside clickgym, keyed by name. Without
            ``users``, the worker process would not know classes that a script or a notebook
            defines.
        count: ``(1,)`` array, shared with the caller, to which the number of played sessions is
            added.
    """

    def on_chunk(n_sessions: int) -> None:
        count[0] += n_sessions

    UserModel.classes.update(users)
    for fingerprint in config.fingerprints().values():
        set_values(fingerprint.values)
    return play_runs(plan, run_indices, config, on_chunk)


def play_runs(
    plan: Plan, run_indices: Sequence[int], config: Config, on_chunk: OnChunk | None = None
) -> FinishedRuns:
    """Play runs of a cell, and return the runs by key.

    Args:
        plan: the plan of the cell.
        run_indices: the indices of the runs to play.
        config: the configuration of the sweep.
        on_chunk: a function that is called from time to time with the number of sessions since its
            last call; by default, none.
    """
    env = make_env(own_copies(plan.env), plan.instance)
    steps = np.array(config.checkpoints)
    env_label, instance, agent_label = plan.cell[:3]
    runs = FinishedRuns()
    for run_index in run_indices:
        seed = run_seed(config.seed, instance, run_index, plan.n_queries)
        agent = make_resolved_agent(own_copies(plan.agent), env, config.horizon, seed)
        if isinstance(agent, FrozenPolicy):
            engine_of(agent, env)  # tells the agent the space of observations, which it flattens
        metrics = AdditionalMetrics(config.metrics)
        try:
            result = play_run(agent, env, plan.engine, steps, metrics, seed, on_chunk)
        except SessionError as error:
            place = f"agent {agent_label}, instance {instance}, run {run_index}, seed {seed}"
            raise type(error)(f"{error} [{place}]") from error
        runs[env_label, instance, agent_label, run_index] = replace(
            result,
            env=env_label,
            instance=instance,
            agent=agent_label,
            seed=None if plan.ignores_seed else seed,
        )
    return runs
