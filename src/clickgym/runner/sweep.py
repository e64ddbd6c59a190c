"""A sweep: every agent in every environment, several runs each; parallel and resumable, with one
tidy table.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import joblib
import numpy as np
import polars
from joblib.parallel import get_active_backend
from llvmlite.binding import get_host_cpu_name
from numpy.typing import ArrayLike
from rich.console import Console

from ..agents.agent import BaseAgent
from ..core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_horizon,
    check_labels,
    check_path,
    check_seed,
    is_sequence,
    short,
)
from ..core.faults import WorkerError
from ..core.memory import check_memory
from ..envs import Users
from .config import Config
from .delay import Delay, check_learns_late
from .engines import Engine, engine_of
from .identity import identities, is_ours, loaded
from .labels import AgentLike, EnvLike, by_label, own_label
from .make import AgentMaker, EnvMaker, agent_maker, env_maker, make_agent, make_env
from .metrics import Metrics
from .progress import Progress
from .results import RUNS, Results, RunFiles, Trial, open_folder, read_runs, write_runs
from .run import checkpoint_steps, play
from .workers import check_workers, in_parallel, what_broke


def sweep(
    envs: Iterable[EnvLike] | Mapping[str, EnvLike],
    agents: Iterable[AgentLike] | Mapping[str, AgentLike],
    horizon: float,
    runs: int,
    *,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    instances: Sequence[Any] | None = None,
    n_jobs: int = -1,
    checkpoints: ArrayLike | None = None,
    engine: Engine = "auto",
    metrics: Sequence[str] = (),
    delay: str | None = None,
    again: str | Sequence[str] = (),
    progress: bool = True,
) -> Results:
    """Run every agent in every environment several times, and return the results as a table.

    Each finished run is saved at once. A stopped sweep resumes when you call it again with the same
    arguments, or with a part of them, and ends with the same numbers. They depend on ``seed`` and
    on the names of environment, instance, agent and run. They do not depend on the order, on
    ``n_jobs`` or on the engine. An object has the name by which it could be passed: the class
    `TopRank` is ``"TopRank"``, your own class ``"my_module:MyAgent"``. Give a label, in a mapping,
    to an object without such a name (a click model, arguments with an array). A folder
    can grow: further environments, instances, agents and runs are added, and finished runs are not
    repeated.

    A label stands for what it was: the parameters of an instance, the sources of your own classes
    with the modules that they import, the values of arguments. A folder refuses a label that stands
    for something else than before, unless ``again`` names it. What has no content to compare, such
    as an argument with an open file, is run, but its runs are not resumed.

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
        instances: names, files or `Instance` objects; each is used in every environment. None takes
            the default instances.
        n_jobs: the number of workers, as in joblib: -1 for all processors. Compiled pairs run in
            threads, others in processes. If a ``joblib.parallel_config`` around the call names a
            backend (Dask), it runs all pairs.
        checkpoints, engine, metrics, delay: as in `run`.
        again: labels of agents, environments or instances whose runs are repeated. If such a label
            has changed, all its earlier runs are removed from the folder; other runs stay.
        progress: whether to show a bar in a terminal (on stderr) and in a notebook.

    Returns:
        The results of all that was asked for. The folder holds, of these and of all other sweeps
        into it, ``results.parquet``, ``summary.csv``, ``regret.png`` and ``regret.svg``,
        ``config.json`` and one file for each run.

    Raises:
        ValueError, TypeError: on bad arguments, before any work starts; on a folder that holds
            something else, or results that contradict: of another version, horizon, seed,
            checkpoints, engine, metrics or delay, or of a label that stood for something else.
        AgentError, SessionError: an agent proposed a bad list or failed, or an environment did; all
            runs finished before are kept.
        WorkerError, FileError: a worker process was killed, or nothing more can be written;
            likewise.

    Warns:
        UserWarning: the folder is of other versions of packages, or of another processor; what a
            label stands for cannot be compared.

    Example:
        >>> import clickgym
        >>> envs, agents = ["PBMRank-v0"], ["Random", "TopRank"]
        >>> results = clickgym.sweep(envs, agents, 1000, 2, checkpoints=[500])
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 2 runs, 1,000 sessions>
        >>> results.frame.shape
        (8, 8)
    """
    check_workers(n_jobs)
    is_shown = check_flag("progress", progress)
    out = None if out is None else check_path("out", out)
    horizon, runs = check_horizon(horizon), check_count("runs", runs)
    if instances is not None and not (is_sequence(instances) and len(instances)):
        raise TypeError(f"instances is {short(instances)}; expected a list of instances")
    again = [again] if isinstance(again, str) else check_labels("again", again)
    if delay is not None:
        Delay(delay, seed=0)  # refuses a bad one before any work
    steps, named = checkpoint_steps(horizon, checkpoints), Metrics(metrics).names
    labelled = by_label("environment", envs), by_label("agent", agents)
    job = Job(
        envs={label: env_maker(env) for label, env in labelled[0].items()},
        agents={label: agent_maker(agent) for label, agent in labelled[1].items()},
        config=Config(
            clickgym=version("clickgym"),
            horizon=horizon,
            seed=check_seed(seed),
            checkpoints=steps.tolist(),
            engine=engine,
            metrics=list(named),
            delay=delay,
            runs=runs,
            envs={label: own_label(env) for label, env in labelled[0].items()},
            instances={},
            agents={label: own_label(agent) for label, agent in labelled[1].items()},
            identities={},
            commit=_commit(),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={
                "numba": version("numba"),
                "numpy": version("numpy"),
                "processor": str(get_host_cpu_name()),
            },
        ),
        instances={},
        users={name: users for name, users in Users.classes.items() if not is_ours(users)},
    )
    # of agents before any is made: a class may count them; of environments when their ids are known
    known = {} if out is None else identities("agent", job.agents)
    trials = _plan(job, [None] if instances is None else instances, n_jobs)
    if out is not None:
        used = {name: name if it is None else it for name, it in job.instances.items()}
        known |= identities("env", job.envs)
        known |= identities("instance", {name: loaded(it) for name, it in used.items()})
    for label in again:
        check_choice("label of again", label, [*job.envs, *job.instances, *job.agents])
    now = replace(
        job.config,
        instances={
            name: instance if isinstance(instance, str) else None
            for name, instance in job.instances.items()
        },
        identities=known,
    )
    folder = tempfile.TemporaryDirectory() if out is None else nullcontext(out)
    frames: dict[Trial, polars.DataFrame] = {}
    with folder as name, resumable(out, lambda: f"{len(frames)} of {len(trials)} runs"):
        place = Path(name)
        config = open_folder(place, now, again)
        files = RunFiles(config.labels)
        kept = [trial for trial in trials if not set(trial[:3]) & set(again)]
        last = {trial[:3]: trial.run for trial in kept}
        found = files.found(place / RUNS).items()
        paths = [path for path, first in found if first.run <= last.get(first[:3], -1)]
        present = read_runs(place, paths, config, files)
        frames |= {trial: present[trial] for trial in kept if trial in present}

        def keep(trial: Trial, frame: polars.DataFrame) -> None:
            write_runs(place / RUNS / files.path(trial), frame, config)
            frames[trial] = frame

        with Progress(Console(stderr=True), is_shown, horizon, len(trials), len(frames)) as bar:
            for prefer in ("threads", "processes"):
                due = [trial for trial in trials if trial not in frames and trials[trial] == prefer]
                if due:
                    _play_all(due, job, n_jobs, prefer, bar, keep)
        if out is not None:
            from .reports.report import update_files  # matplotlib is slow to load

            update_files(out)
    return Results(polars.concat([frames[trial] for trial in trials]), config)


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


# --------------------------------------------------------------------------------- what is played


@dataclass(frozen=True)
class Job:
    """What all runs of a sweep share; joblib sends it to worker processes, threads share it.

    Attributes:
        envs, agents: what makes the environments and the agents, by label.
        config: the configuration, without instances and sources.
        instances: what is taken as an instance, by its name in results.
        users: the classes of users that are not of the package, by name: another process does not
            know those of a script or a notebook.
    """

    envs: Mapping[str, EnvMaker]
    agents: Mapping[str, AgentMaker]
    config: Config
    instances: dict[str, Any]
    users: Mapping[str, type[Users]]

    def pair(self, trial: Trial) -> tuple[BaseAgent, gym.Env, str]:
        """Make the agent and the environment of a trial; with the engine that plays them."""
        Users.classes.update(self.users)
        env = make_env(self.envs[trial.env], self.instances[trial.instance])
        horizon, seed = self.config.horizon, trial.seeds(self.config.seed)[1]
        agent = make_agent(self.agents[trial.agent], env, horizon=horizon, seed=seed)
        return agent, env, engine_of(agent, env, self.config.engine)


def _plan(job: Job, instances: Sequence[Any], n_jobs: int) -> dict[Trial, str]:
    """Make every environment and every agent once, to see that they fit.

    Args:
        job: what is played; its instances are filled here.
        instances, n_jobs: as in `sweep`.

    Returns:
        All trials in the order of the table, each with what plays it: ``"threads"`` for compiled
        pairs, ``"processes"`` for others.
    """
    trials: dict[Trial, str] = {}
    config, runs = job.config, job.config.runs
    backend, _ = get_active_backend(prefer="threads")  # a cluster has other memory
    is_here = getattr(backend, "supports_sharedmem", False)
    at_once = min(joblib.effective_n_jobs(n_jobs), runs) if is_here else 1
    metrics = Metrics(config.metrics)
    for env_label, env_pair in job.envs.items():
        for instance in instances:
            env = make_env(env_pair, instance)
            metrics.contexts(env.unwrapped)
            name = getattr(env.unwrapped, "instance", "custom")
            is_file = isinstance(instance, str | os.PathLike) and str(instance).endswith(".json")
            job.instances[name] = str(Path(instance).resolve()) if is_file else instance
            for label, agent_pair in job.agents.items():
                agent = make_agent(agent_pair, env, horizon=config.horizon, seed=0)
                engine = engine_of(agent, env, config.engine)
                if config.delay is not None:
                    check_learns_late(agent, env)
                if Trial(env_label, name, label, 0) in trials:
                    raise ValueError("two instances have the same name; give each its own name")
                prefer = "threads" if engine == "compiled" else "processes"
                if at_once > 1 and prefer == "threads":
                    holder = f"{at_once} runs at a time of {label} hold large arrays"
                    check_memory(holder, at_once * agent.n_bytes, "choose fewer jobs (n_jobs)")
                trials |= {Trial(env_label, name, label, run): prefer for run in range(runs)}
    return trials


def _commit() -> str:
    """The commit of the checkout in which the package lies; empty outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


# ----------------------------------------------------------------------------------------- playing


def _play_all(
    trials: Sequence[Trial],
    job: Job,
    n_jobs: int,
    prefer: str,
    progress: Progress,
    keep: Callable[[Trial, polars.DataFrame], None],
) -> None:
    """Play trials in threads or in processes, and keep each when it is finished."""
    backend, _ = get_active_backend(prefer=prefer)
    shared = getattr(backend, "supports_sharedmem", False)  # threads, which report their progress
    stop = threading.Event()

    def on_chunk(sessions: int) -> None:
        if stop.is_set():
            raise InterruptedError
        progress.sessions(sessions)

    calls = [(_play, trial, job, on_chunk if shared else None) for trial in trials]
    results = in_parallel(calls, n_jobs, prefer)
    try:
        for trial, frame in results:
            keep(trial, frame)
            if not shared:
                progress.sessions(job.config.horizon)
            progress.finished()
    except BrokenExecutor as error:
        raise WorkerError(what_broke(error)) from None
    finally:
        stop.set()


def _play(
    trial: Trial, job: Job, on_chunk: Callable[[int], None] | None
) -> tuple[Trial, polars.DataFrame]:
    result = play(
        *job.pair(trial),
        np.array(job.config.checkpoints),
        Metrics(job.config.metrics),
        trial.seeds(job.config.seed)[0],
        on_chunk,
        job.config.delay,
    )
    names = {"env": trial.env, "instance": trial.instance, "agent": trial.agent}
    measured = {"engine": result.engine, "seconds": result.seconds}
    columns = {name: polars.lit(value) for name, value in {**names, **measured}.items()}
    return trial, result.to_frame(trial.run).with_columns(**columns)
