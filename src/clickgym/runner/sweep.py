"""A sweep: every agent in every environment, several runs each; parallel and resumable, with one
tidy table.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
from joblib.parallel import LokyBackend, get_active_backend
from numpy.typing import ArrayLike

from ..core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_horizon,
    check_labels,
    check_path,
    check_seed,
)
from ..core.faults import WorkerError
from ..core.files import make_folder
from ..core.forks import check_fork
from ..core.formats import counted
from ..envs import Users
from ..envs.meter import checkpoint_steps
from ..envs.result import Result
from .config import Config, Setting, Trial, run_seed, shown_of, versions
from .identity import UNKNOWN
from .make import make_agent, make_env
from .names import AgentLike, EnvLike, by_label
from .plan import Job, Labels, Plan, Workers, plan_of
from .play.loop import OnChunk
from .play.measuring import Metrics
from .play.pair import Engine, engine_of
from .play.play_run import play
from .progress import Progress, say_resumed
from .results import Results
from .rows import check_folder, frame_of
from .store import FinishedRun, Journal, forget, read
from .workers import check_workers, in_parallel, what_broke


def sweep(
    envs: Iterable[EnvLike] | Mapping[str, EnvLike],
    agents: Iterable[AgentLike] | Mapping[str, AgentLike],
    horizon: float,
    runs: int,
    *,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    instances: Sequence[Any] | Literal["shipped"] | None = None,
    n_jobs: int = -1,
    checkpoints: ArrayLike | None = None,
    engine: Engine = "auto",
    metrics: Sequence[str] = (),
    again: str | Sequence[str] = (),
    progress: bool = True,
) -> Results:
    """Run every agent in every environment several times, and return the results as a table.

    A finished run is saved at once; short runs in compiled code are saved after about 20,000
    sessions. A stopped sweep resumes when you call it again with the same arguments, or with a part
    of them, and ends with the same numbers. They do not depend on the order, on ``n_jobs`` or on
    the engine. The seed of a run depends on ``seed``, the name of the instance and the number of
    the run: all agents meet the same users, a label is only a name, and `run` with the ``seed`` in
    the rows of a run repeats it. An object has the name by which it could be passed: the class
    `TopRank` is ``"TopRank"``, your own class ``"my_module:MyAgent"``. Give a label, in a mapping,
    to an object without such a name (a click model, arguments with an array).

    A run is known by its setting (versions, horizon, seed, checkpoints, metrics) and by its agent,
    environment and instance: name, arguments and, for a class of your own, the code of its file, of
    the files of its base classes, and of your own modules that these files import. A class of a
    script counts by the whole script. Comments and docstrings do not count. If a run is in the
    folder, it is not played again. What clickgym cannot see, such as a file that your agent opens
    by itself, needs ``again`` or another folder. Played, but not resumed is an agent that stands in
    a notebook or within a function, one with an argument such as an open file, and one whose code
    was edited after this process started.

    Args:
        envs: ids or specs, as ``"PBMRank-v0"``, ``"PBMRank-v0:reward=any_click"`` or
            ``"my_module:MyRank-v0"``; ``(id, arguments)``; a click model; or a mapping from labels
            to such.
        agents: names or specs, as ``"BatchRank"``, ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; classes or ``(class, arguments)``; or a mapping from labels to
            such.
        horizon: T, sessions per run; ``1e6`` is accepted.
        runs: runs per pair.
        seed: the seed of the whole sweep.
        out: the results folder, created if missing. None leaves no files.
        instances: names, files or `Instance` objects; each is used in every environment.
            ``"shipped"``, alone or in the list, stands for all real queries of the package. None
            takes the default instances, which for most ids are one and the same query.
        n_jobs: the number of workers, as in joblib: -1 for all processors. Compiled pairs run in
            threads, others in processes. If a ``joblib.parallel_config`` around the call names a
            backend (Dask), it runs all pairs.
        checkpoints, engine, metrics: as in `run`.
        again: labels of agents, environments or instances whose runs are deleted and played anew,
            for changes that clickgym cannot see, as in a file that an agent opens by itself.
        progress: whether to show a bar in a terminal (on stderr), and elsewhere a line a minute.

    Returns:
        The results of all that was asked for. The folder holds, of these and of all other sweeps
        into it, ``results.parquet``, ``summary.csv``, ``regret.png`` and ``regret.svg``,
        ``config.json`` and the folder ``runs``.

    Raises:
        ValueError, TypeError: on bad arguments, before any work starts; on a folder that holds
            something else, or results of another version of clickgym's files.
        UnsuitedError: agents do not suit the environments; all are named.
        AgentError, SessionError: an agent proposed a bad list, or an agent or an environment
            failed. All runs saved before are kept.
        RuntimeError: the process was forked from one that had used Polars.
        WorkerError, FileError: a worker process died; or nothing more can be written. All runs
            saved before are kept.

    Warns:
        UserWarning: clickgym plays finished runs anew, with the reason; or it does not resume some.

    Example:
        >>> import clickgym
        >>> envs, agents = ["PBMRank-v0"], ["Random", "TopRank"]
        >>> results = clickgym.sweep(envs, agents, 1000, 2, checkpoints=[500])
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 2 runs, 1,000 sessions>
        >>> results.frame.shape
        (8, 9)
    """
    check_fork()
    check_workers(n_jobs)
    is_shown = check_flag("progress", progress)
    out = None if out is None else check_path("out", out)
    folder = None if out is None else out.absolute()  # an agent may change the working folder
    horizon, runs = check_horizon(horizon), check_count("runs", runs)
    setting = Setting(
        clickgym=version("clickgym"),
        versions=versions(),
        horizon=horizon,
        seed=check_seed(seed),
        checkpoints=checkpoint_steps(horizon, checkpoints).tolist(),
        metrics=list(Metrics(metrics).names),
    )
    envs, agents = by_label("environment", envs), by_label("agent", agents)
    plan = plan_of(setting, envs, agents, instances, runs, engine, is_kept=folder is not None)
    config, trials = plan.config, plan.config.trials
    again = [again] if isinstance(again, str) else check_labels("again", again)
    for label in again:
        check_choice("label of again", label, [*config.envs, *config.instances, *config.agents])
    finished: dict[str, FinishedRun] = {}
    journal: Journal | None = None
    if folder is not None:
        finished, journal = _open(folder, config, again)
    left = {key: trial for trial, key in trials.items() if key not in finished}

    def keep(results: Mapping[str, Result]) -> None:
        new = {key: FinishedRun.of(result) for key, result in results.items()}
        finished.update(new)
        if journal is not None:
            journal.add(new)
        bar.finished(len(new))

    def count() -> str:
        return f"{sum(key in finished for key in trials.values())} of {len(trials)} runs"

    if out is not None and is_shown:
        say_resumed(out, count(), plan.own)
    with resumable(out, count):
        workers = {plan.batches[trial[:3]].workers for trial in left.values()}
        with Progress(is_shown, horizon, len(trials), len(left), len(workers) < 2) as bar:
            _play_all(left, plan, n_jobs, bar, keep)
        if folder is not None:
            from .reports.report import update_files  # matplotlib is slow to load

            update_files(folder, Results(folder))
    return Results(frame_of(finished, config), config)


def _open(
    folder: Path, config: Config, again: Collection[str]
) -> tuple[dict[str, FinishedRun], Journal | None]:
    """Open a results folder for a sweep.

    Args:
        folder: of the results.
        config: of the sweep.
        again: labels whose runs are removed.

    Returns:
        The finished runs of the folder, and the file for further ones; None if all are there, and
        the table of the folder shows them already.

    Warns:
        UserWarning: runs that were finished are played anew, with the reason.
    """
    make_folder(folder)
    check_folder(folder)
    if again:
        forget(folder, {cell.key for cell in config.cells if set(again) & set(cell[:3])})
    headers, finished = read([folder])
    before = [Config.from_json(folder, header) for _, header in headers]
    if before:
        shown = shown_of(before)
        _warn_of_changes(shown, config, finished)
        shows_all = shown_of([*before, config]).trials == shown.trials
        if shows_all and finished.keys() >= set(config.trials.values()):
            return finished, None
    return finished, Journal(folder, config.to_json())


def _warn_of_changes(before: Config, now: Config, finished: Collection[str]) -> None:
    """Warn if runs are played anew that were finished with what the labels meant before."""
    old = {trial for trial, key in before.trials.items() if key in finished}
    played = {trial: key for trial, key in now.trials.items() if not key.startswith(UNKNOWN)}
    anew = [trial for trial, key in played.items() if key not in finished and trial in old]
    if anew:
        agents = ", ".join(dict.fromkeys(trial.agent for trial in anew))
        why = "; ".join(before.changes(now)) or f"{agents}, or the users, have changed"
        are = counted(len(anew), "run is", "runs are")
        warnings.warn(f"{are} played anew ({why}); the old ones are kept", stacklevel=4)


@contextmanager
def resumable(out: Path | None, finished: Callable[[], str]) -> Iterator[None]:
    """Context in which a KeyboardInterrupt gets a message of what is kept.

    Args:
        out: the folder; None if nothing is kept.
        finished: returns what is finished, in words.
    """
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        words = f"stopped; {finished()} are kept in {out}: the same command resumes"
        raise KeyboardInterrupt(words) from None


# ----------------------------------------------------------------------------------------- playing


Batch = tuple[Labels, list[tuple[int, str]]]
"""The labels of a cell, and some of its runs, which are played together: number and key."""


def _play_all(
    left: Mapping[str, Trial],
    plan: Plan,
    n_jobs: int,
    bar: Progress,
    keep: Callable[[Mapping[str, Result]], None],
) -> None:
    """Play trials, and keep them when they are finished.

    Args:
        left: the trials by their keys.
        plan: of the sweep.
        n_jobs: as in `sweep`.
        bar: shows the progress.
        keep: is called with the results of some trials by their keys.
    """
    batches: dict[Workers, list[Batch]] = {"threads": [], "processes": []}
    for labels, group in groupby(left.items(), key=lambda pair: pair[1][:3]):
        runs, (workers, size) = [(trial.run, key) for key, trial in group], plan.batches[labels]
        batches[workers] += [(labels, runs[i : i + size]) for i in range(0, len(runs), size)]
    for workers in batches:
        if batches[workers]:
            _play_batches(batches[workers], plan, n_jobs, workers, bar, keep)


def _play_batches(
    batches: Sequence[Batch],
    plan: Plan,
    n_jobs: int,
    workers: Workers,
    bar: Progress,
    keep: Callable[[Mapping[str, Result]], None],
) -> None:
    """Play some batches in threads or in processes."""
    backend, _ = get_active_backend(prefer=workers)
    is_in_process = getattr(backend, "supports_sharedmem", False)
    if isinstance(backend, LokyBackend) and joblib.effective_n_jobs(n_jobs) == 1:
        is_in_process = True  # joblib starts no process for one job
    stop = threading.Event()

    def on_chunk(sessions: int) -> None:
        if stop.is_set():
            raise InterruptedError
        bar.played(sessions)

    tasks = [(_play, plan.job, batch, on_chunk if is_in_process else None) for batch in batches]
    try:
        for results in in_parallel(tasks, n_jobs, workers, code=plan.code):
            if not is_in_process:
                bar.played(plan.job.setting.horizon * len(results))
            keep(results)
    except BrokenExecutor as error:
        raise WorkerError(what_broke(error)) from None
    finally:
        stop.set()


def _play(job: Job, batch: Batch, on_chunk: OnChunk | None) -> dict[str, Result]:
    """Play the runs of a batch; return their measurements by key."""
    (label, instance, agent_label), runs = batch
    setting, steps = job.setting, np.array(job.setting.checkpoints)
    Users.classes.update(job.users)
    env, engine = make_env(job.envs[label], job.instances[instance]), ""
    results: dict[str, Result] = {}
    for run, key in runs:
        seed = run_seed(setting.seed, instance, run, job.queries.get(instance, 1))
        agent = make_agent(job.agents[agent_label], env, horizon=setting.horizon, seed=seed)
        engine = engine or engine_of(agent, env, job.engine)
        results[key] = play(agent, env, engine, steps, Metrics(setting.metrics), seed, on_chunk)
    return results
