"""A sweep: every agent in every environment, several runs each; parallel and resumable, with one
tidy table.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

import gymnasium as gym
import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike
from rich.console import Console

from ..agents.agent import BaseAgent, EnvTraits, Seed, UnsuitedError
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
from ..core.files import locked
from ..core.memory import check_memory
from ..envs import ClickEnv, Users
from ..envs.any_env import Sizes, sizes_of, users_of
from .config import Config, Setting, provenance
from .delay import Delay, check_learns_late
from .engines import Engine, engine_facing, engine_of, traits_of
from .identity import identities, is_ours, loaded
from .labels import AgentLike, EnvLike, by_label, own_label
from .make import AgentMaker, EnvMaker, agent_maker, env_maker, make_agent, make_env, prepared_agent
from .metrics import Metrics
from .progress import Progress
from .results import (
    CONFIG,
    RUNS,
    FinishedRuns,
    Results,
    Trial,
    open_folder,
    rows_of,
    run_seed,
    write_runs,
)
from .run import Result, checkpoint_steps, play
from .warm_start import Past, TypedLog, cautions, past_sessions
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
    start: Any = None,
    again: str | Sequence[str] = (),
    progress: bool = True,
) -> Results:
    """Run every agent in every environment several times, and return the results as a table.

    A finished run is saved within a second, with others of its agent and environment in one file,
    and only then shown as finished. A stopped sweep resumes when you call it again with the same
    arguments, or with a part of them, and ends with the same numbers. They do not depend on the
    order, on ``n_jobs`` or on the engine. The seed of a run depends on ``seed``, the name of the
    instance and the number of the run: all agents meet the same users, a label is only a name, and
    `run` with the ``seed`` in the rows of a run repeats it. An object has the name by which it
    could be passed: the class `TopRank` is ``"TopRank"``, your own class ``"my_module:MyAgent"``.
    Give a label, in a mapping, to an object without such a name (a click model, arguments with an
    array). A folder can grow: further environments, instances, agents and runs are added, and
    finished runs are not repeated.

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
        start: a click log from which the agents learn before session 1, each from the sessions of
            the query and of the items of its environment, as `clickgym.make_agent` says of ``log``.
        again: labels of agents, environments or instances whose runs are repeated. If such a label
            has changed, all its earlier runs are removed from the folder; other runs stay.
        progress: whether to show a bar in a terminal (on stderr) and in a notebook; in a file or a
            pipe, a line a minute.

    Returns:
        The results of all that was asked for. The folder holds, of these and of all other sweeps
        into it, ``results.parquet``, ``summary.csv``, ``regret.png`` and ``regret.svg``,
        ``config.json`` and files of runs.

    Raises:
        ValueError, TypeError: on bad arguments, before any work starts; on a folder that holds
            something else, or results that contradict: of another version, horizon, seed,
            checkpoints, engine, metrics, delay or log, or of a label that stood for something else.
        UnsuitedError: agents do not suit the environments, late clicks or the log; all are named.
        AgentError, SessionError: an agent proposed a bad list or failed, or an environment did; all
            runs finished before are kept.
        WorkerError, FileError: a worker process died, or nothing more can be written;
            likewise.

    Warns:
        UserWarning: the folder is of other versions of packages, or of another processor; what a
            label stands for cannot be compared; the log may be of other users.

    Example:
        >>> import clickgym
        >>> envs, agents = ["PBMRank-v0"], ["Random", "TopRank"]
        >>> results = clickgym.sweep(envs, agents, 1000, 2, checkpoints=[500])
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 2 runs, 1,000 sessions>
        >>> results.frame.shape
        (8, 9)
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
    setting = Setting(
        clickgym=version("clickgym"),
        horizon=horizon,
        seed=check_seed(seed),
        checkpoints=checkpoint_steps(horizon, checkpoints).tolist(),
        engine=engine,
        metrics=list(Metrics(metrics).names),
        delay=delay,
    )
    envs, agents = by_label("environment", envs), by_label("agent", agents)
    used = [None] if instances is None else instances
    is_kept = out is not None
    job, trials, planned, kinds = _plan(setting, envs, agents, used, runs, n_jobs, is_kept, start)
    for label in again:
        check_choice("label of again", label, [*envs, *job.instances, *agents])
    folder = tempfile.TemporaryDirectory() if out is None else nullcontext(out)
    kept: list[Trial] = []
    with folder as name, resumable(out, lambda: f"{len(kept)} of {len(trials)} runs"):
        finished = FinishedRuns(Path(name), open_folder(Path(name), planned, again))
        for caution in cautions([it.facts for it in job.pasts.values()], kinds, delay is not None):
            warnings.warn(caution, stacklevel=2)
        _read_finished(finished, trials, again)
        kept += (trial for trial in trials if trial in finished)
        left = [trial for trial in trials if trial not in finished]

        def on_written(trial: Trial, seconds: float) -> None:
            kept.append(trial)
            bar.finished(trial, seconds)

        at_once = joblib.effective_n_jobs(n_jobs)
        with (
            Progress(Console(stderr=True), is_shown, horizon, len(trials), left, at_once) as bar,
            Batches(finished, on_written) as batches,
        ):
            for prefer in ("threads", "processes"):
                due = [trial for trial in left if trials[trial] == prefer]
                if due:
                    _play_all(due, job, n_jobs, prefer, bar, batches.add)
        if out is not None:
            from .reports.report import update_files  # matplotlib is slow to load

            update_files(out)
    return Results(finished.table(trials), finished.config)


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


# ---------------------------------------------------------------------------------------- the plan


class Cell(NamedTuple):
    """What compiled runs of an agent in a `ClickEnv` share, one after the other; those of the next
    agent there share all but what makes it.
    """

    labels: tuple[str, str, str]
    env: gym.Env  # a seed starts it anew
    traits: EnvTraits
    sizes: Sizes
    make: Callable[[Seed], BaseAgent]


class Last(threading.local):
    """What the last compiled run of a thread leaves to the next; another process begins without."""

    cell: Cell | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Last, ()


class Job(NamedTuple):
    """What all runs of a sweep share; joblib sends it to worker processes, threads share it.

    Attributes:
        setting: of the sweep.
        envs, agents: what makes the environments and the agents, by label.
        instances: what is taken as an instance, by its name in results.
        users: the classes of users that are not of the package, by name: another process does not
            know those of a script or a notebook.
        pasts: what agents learn before session 1, by environment and instance; empty without a log.
        last: what the last run of a thread leaves to the next.
    """

    setting: Setting
    envs: Mapping[str, EnvMaker]
    agents: Mapping[str, AgentMaker]
    instances: Mapping[str, Any]
    users: Mapping[str, type[Users]]
    pasts: Mapping[tuple[str, str], Past]
    last: Last

    def pair(self, trial: Trial, seed: int) -> tuple[BaseAgent, gym.Env, str]:
        """Make the agent of a trial with a seed, and the environment, unless the last run of this
        thread left it; with the engine that plays them.
        """
        cell = self.last.cell
        if cell is None or cell.labels != trial[:3]:
            if cell is None or cell.labels[:2] != trial[:2]:
                Users.classes.update(self.users)
                env = make_env(self.envs[trial.env], self.instances[trial.instance])
                place = env, traits_of(env), sizes_of(env)
            else:
                place = cell[1:4]
            past = self.pasts.get((trial.env, trial.instance))
            maker, horizon = self.agents[trial.agent], self.setting.horizon
            make = prepared_agent(maker, place[0], horizon=horizon, log=past)
            cell = Cell(trial[:3], *place, make)
        agent = cell.make(seed)
        engine = engine_facing(agent, cell.traits, cell.sizes, self.setting.engine)
        is_anew = engine == "compiled" and type(cell.env.unwrapped) is ClickEnv
        self.last.cell = cell if is_anew else None
        return agent, cell.env, engine


class Plan(NamedTuple):
    """What a sweep is to play.

    Attributes:
        job: what all runs share.
        trials: all of them in the order of the table, each with what plays it: ``"threads"`` for
            compiled pairs, ``"processes"`` for others.
        config: of the results.
        kinds: the classes of the agents by label.
    """

    job: Job
    trials: dict[Trial, str]
    config: Config
    kinds: dict[str, type[BaseAgent]]


def _plan(
    setting: Setting,
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    instances: Sequence[Any],
    runs: int,
    n_jobs: int,
    is_kept: bool,
    start: Any,
) -> Plan:
    """Make every environment and every agent once, to see that they fit, and plan all runs.

    Args:
        setting: of the sweep.
        envs, agents: by label.
        instances, runs, n_jobs: as in `sweep`.
        start: as in `sweep`.
        is_kept: whether the results go into a folder, which needs identities.

    Raises:
        UnsuitedError: naming all agents that cannot play.
    """
    env_makers = {label: env_maker(env) for label, env in envs.items()}
    agent_makers = {label: agent_maker(agent) for label, agent in agents.items()}
    # of agents before any is made: a class may count them; of environments when their ids are known
    known = identities("agent", agent_makers, stacklevel=4) if is_kept else {}
    backend, _ = get_active_backend(prefer="threads")  # a cluster has other memory
    is_here = getattr(backend, "supports_sharedmem", False)
    at_once = min(joblib.effective_n_jobs(n_jobs), runs) if is_here else 1
    metrics = Metrics(setting.metrics)
    named: dict[str, Any] = {}
    trials: dict[Trial, str] = {}
    pasts: dict[tuple[str, str], Past] = {}
    unsuited: dict[str, UnsuitedError] = {}
    kinds: dict[str, type[BaseAgent]] = {}
    words = start.words if isinstance(start, TypedLog) else ["--start", "LOG"]
    for env_label, env_pair in env_makers.items():
        for instance in instances:
            env = make_env(env_pair, instance)
            metrics.contexts(env.unwrapped)
            name = getattr(env.unwrapped, "instance", "custom")
            played = users_of(env)
            _, *changes = (0,) if played is None else played.starts
            if changes and changes[0] >= setting.horizon:
                warnings.warn(
                    f"the users of {env_label} ({name}) change first after session "
                    f"{changes[0]:,}: not within {setting.horizon:,} sessions",
                    stacklevel=3,
                )
            is_file = isinstance(instance, str | os.PathLike) and str(instance).endswith(".json")
            named[name] = str(Path(instance).resolve()) if is_file else instance
            past = None
            if start is not None:
                pasts[env_label, name] = past_sessions(start, env)
                past = pasts[env_label, name].empty
            for label, agent_pair in agent_makers.items():
                try:
                    agent = make_agent(agent_pair, env, horizon=setting.horizon, seed=0, log=past)
                    prefer = _check_pair(setting, agent, env, label, at_once)
                except UnsuitedError as error:
                    unsuited.setdefault(label, error)
                    continue
                kinds[label] = type(agent)
                if Trial(env_label, name, label, 0) in trials:
                    raise ValueError("two instances have the same name; give each its own name")
                trials |= {Trial(env_label, name, label, run): prefer for run in range(runs)}
    if unsuited:
        raise UnsuitedError.of_all(unsuited)
    if is_kept:
        used = {name: loaded(name if it is None else it) for name, it in named.items()}
        known |= identities("env", env_makers, stacklevel=4)
        known |= identities("instance", used, stacklevel=4)
    config = Config(
        **vars(setting),
        runs=runs,
        envs={label: own_label(env) for label, env in envs.items()},
        instances={name: it if isinstance(it, str) else None for name, it in named.items()},
        agents={label: own_label(agent) for label, agent in agents.items()},
        identities=known,
        start=_facts(pasts),
        start_words=words if pasts else [],
        **provenance(),
    )
    users = {name: users for name, users in Users.classes.items() if not is_ours(users)}
    job = Job(setting, env_makers, agent_makers, named, users, pasts, Last())
    return Plan(job, trials, config, kinds)


def _facts(pasts: Mapping[tuple[str, str], Past]) -> dict[str, dict[str, dict[str, str | int]]]:
    """What a configuration says of logs, by environment and instance."""
    facts: dict[str, dict[str, dict[str, str | int]]] = {env: {} for env, _ in pasts}
    for (env, instance), past in pasts.items():
        facts[env][instance] = past.facts
    return facts


def _check_pair(setting: Setting, agent: BaseAgent, env: gym.Env, label: str, at_once: int) -> str:
    """Check that an agent can play in an environment, ``at_once`` runs at a time; return what plays
    them, ``"threads"`` or ``"processes"``.
    """
    engine = engine_of(agent, env, setting.engine)
    if setting.delay is not None:
        check_learns_late(agent, env)
    if engine != "compiled":
        return "processes"
    if at_once > 1:
        holder = f"{at_once} runs at a time of {label} hold large arrays"
        check_memory(holder, at_once * agent.n_bytes, "choose fewer jobs (n_jobs)")
    return "threads"


# ----------------------------------------------------------------------------------------- playing


def _read_finished(finished: FinishedRuns, trials: Collection[Trial], again: Sequence[str]) -> None:
    """Read those trials that the folder has already. Runs of labels that are repeated are removed;
    further runs in their files stay.
    """
    last = {trial[:3]: trial.run for trial in trials}
    found = finished.files.found(finished.out / RUNS)
    due = [path for path, first in found.items() if first.run <= last.get(first[:3], -1)]
    repeated = [path for path in due if set(found[path][:3]) & set(again)]
    for path in repeated:
        with suppress(ValueError):  # of a damaged file nothing can stay
            there = FinishedRuns(finished.out, finished.config)
            there.read([path])
            if others := [trial for trial in there if trial not in trials]:
                file = finished.out / RUNS / finished.files.path(others[0])
                write_runs(file, there.table(others), finished.config)
        (finished.out / RUNS / path).unlink()
    finished.read(path for path in due if path not in repeated)


WRITE_EVERY = 1.0
"""The seconds that a finished run waits for others, to share a file with those of its labels."""


class Batches:
    """Context in which finished runs are written within `WRITE_EVERY` seconds, several of an agent
    in an environment into one file; at its end, all are.

    Args:
        finished: the runs in files, which grow by those that are written.
        on_written: called with each of these, and the seconds that it took.
    """

    def __init__(
        self, finished: FinishedRuns, on_written: Callable[[Trial, float], object]
    ) -> None:
        self._finished, self._on_written = finished, on_written
        self._waiting: dict[Trial, tuple[Result, float]] = {}
        self._lock, self._due = threading.Lock(), time.monotonic() + WRITE_EVERY
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._write()

    def add(self, trial: Trial, result: Result, seconds: float) -> None:
        """Keep a run that took so many seconds."""
        with self._lock:
            self._waiting[trial] = result, seconds
            left = self._due - time.monotonic()
            if left > 0 and self._timer is None:  # the next run may take long
                self._timer = threading.Timer(left, self._write_late)
                self._timer.daemon = True
                self._timer.start()
        if left <= 0:
            self._write()

    def _write_late(self) -> None:
        with suppress(Exception):  # what is not written still waits, and is tried again
            self._write()

    def _write(self) -> None:
        """Write what waits."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            of_labels = defaultdict(list)
            for trial in self._waiting:
                of_labels[trial[:3]].append(trial)
            for trials in of_labels.values():
                self._write_file(sorted(trials))
                for trial in trials:
                    self._on_written(trial, self._waiting.pop(trial)[1])
            self._due = time.monotonic() + WRITE_EVERY

    def _write_file(self, trials: list[Trial]) -> None:
        """Write runs of an agent in an environment, but those that another process wrote."""
        finished, last = self._finished, trials[-1]
        starts = (last._replace(run=run) for run in range(last.run + 1))
        paths = [path for path in map(finished.files.path, starts) if path not in finished.paths]
        with locked(finished.out / CONFIG):
            finished.read(path for path in paths if (finished.out / RUNS / path).exists())
            runs = {trial: self._waiting[trial][0] for trial in trials if trial not in finished}
            if runs:
                path, frame = finished.files.path(next(iter(runs))), rows_of(runs)
                write_runs(finished.out / RUNS / path, frame, finished.config)
                finished.add(path, runs, frame)


def _play_all(
    trials: Sequence[Trial],
    job: Job,
    n_jobs: int,
    prefer: str,
    progress: Progress,
    keep: Callable[[Trial, Result, float], None],
) -> None:
    """Play trials in threads or in processes, and keep each when it is finished."""
    backend, _ = get_active_backend(prefer=prefer)
    shared = getattr(backend, "supports_sharedmem", False)  # threads, which report their progress
    stop = threading.Event()

    def counter(trial: Trial) -> Callable[[int], None]:
        played = 0

        def on_chunk(sessions: int) -> None:
            nonlocal played
            if stop.is_set():
                raise InterruptedError
            played += sessions
            progress.played(trial, played)

        return on_chunk

    with nullcontext(map(counter, trials)) if shared else progress.watching(trials) as counters:
        calls = [(_play, trial, job, count) for trial, count in zip(trials, counters, strict=True)]
        results = in_parallel(calls, n_jobs, prefer)
        try:
            for trial, result, seconds in results:
                progress.played(trial, job.setting.horizon)
                keep(trial, result, seconds)
        except BrokenExecutor as error:
            raise WorkerError(what_broke(error)) from None
        finally:
            stop.set()


def _play(trial: Trial, job: Job, on_chunk: Callable[[int], None]) -> tuple[Trial, Result, float]:
    """Play a trial; return it with its measurements, and the seconds that it took."""
    before = time.monotonic()
    on_chunk(0)
    seed = run_seed(job.setting.seed, trial.instance, trial.run)
    result = play(
        *job.pair(trial, seed),
        np.array(job.setting.checkpoints),
        Metrics(job.setting.metrics),
        seed,
        on_chunk,
        job.setting.delay,
    )
    return trial, result, time.monotonic() - before
