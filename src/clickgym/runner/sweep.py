"""A sweep: every agent in every environment, several runs each; parallel and resumable, with one
tidy table.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import joblib
import numpy as np
from joblib.parallel import LokyBackend, get_active_backend
from numpy.typing import ArrayLike

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
from ..core.files import make_folder
from ..core.formats import counted
from ..envs import ClickEnv, Users
from ..envs.any_env import users_of
from ..envs.instances.instance import shipped_instances
from .config import COLUMNS, Config, Setting, provenance, versions
from .identity import UNKNOWN, OwnCode, identities, is_ours, loaded
from .labels import AgentLike, EnvLike, by_label, own_label
from .make import AgentMaker, EnvMaker, agent_maker, env_maker, make_agent, make_env, prepared_agent
from .play.metrics import Metrics
from .play.pair import Engine, check_episode, engine_of, traits_of
from .play.record import OnChunk
from .play.run import Result, checkpoint_steps, play
from .progress import Progress
from .results import Results, Trial, begin, open_store, run_seed, shape_of, table_of, write_config
from .store import Row, Store
from .workers import check_workers, in_parallel, what_broke

SHIPPED: Literal["shipped"] = "shipped"
"""The name that stands for all shipped instances."""


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

    A finished run is saved at once, and only then shown as finished. A stopped sweep resumes when
    you call it again with the same arguments, or with a part of them, and ends with the same
    numbers. They do not depend on the order, on ``n_jobs`` or on the engine. The seed of a run
    depends on ``seed``, the name of the instance and the number of the run: all agents meet the
    same users, a label is only a name, and `run` with the ``seed`` in the rows of a run repeats it.
    An object has the name by which it could be passed: the class `TopRank` is ``"TopRank"``, your
    own class ``"my_module:MyAgent"``. Give a label, in a mapping, to an object without such a name
    (a click model, arguments with an array).

    A folder has one small file for each finished run, named by a hash of all that the run depends
    on: versions, horizon, seed, checkpoints and metrics, the parameters of the users, the
    agent with its arguments, and the code of your own agent with the modules that it imports. If the file is there, the run is finished. If something has changed,
    clickgym plays it anew, and the tables show it. If you undo the change, the old runs are there
    again. So a folder can grow by environments, instances, agents and runs. An argument without
    content to compare, such as an open file, is allowed, but its runs are not resumed.

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
        progress: whether to show a bar in a terminal (on stderr) and in a notebook; in a file or a
            pipe, a line a minute.

    Returns:
        The results of all that was asked for. The folder holds, of these and of all other sweeps
        into it, ``results.parquet``, ``summary.csv``, ``regret.png`` and ``regret.svg``,
        ``config.json`` and files of runs.

    Raises:
        ValueError, TypeError: on bad arguments, before any work starts; on a folder that holds
            something else, or results of another version of clickgym's files.
        UnsuitedError: agents do not suit the environments; all are named.
        AgentError, SessionError: an agent proposed a bad list, or an agent or an environment
            failed. All runs finished before are kept.
        WorkerError, FileError: a worker process died, or has other code of your own class than this
            process; or nothing more can be written. All runs finished before are kept.

    Warns:
        UserWarning: clickgym plays runs of the folder anew, with the reason; it cannot compare what
            a label stands for; or files are damaged.

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
    used = _instances(instances)
    again = [again] if isinstance(again, str) else check_labels("again", again)
    setting = Setting(
        clickgym=version("clickgym"),
        versions=versions(),
        horizon=horizon,
        seed=check_seed(seed),
        checkpoints=checkpoint_steps(horizon, checkpoints).tolist(),
        metrics=list(Metrics(metrics).names),
    )
    envs, agents = by_label("environment", envs), by_label("agent", agents)
    job, trials, config = _plan(setting, envs, agents, used, runs, engine, out is not None)
    for label in again:
        check_choice("label of again", label, [*envs, *job.instances, *agents])
    hashes = {labels: config.key(*labels) for labels in dict.fromkeys(it[:3] for it in trials)}
    keys = {trial: f"{hashes[trial[:3]]}-{trial.run}" for trial in trials}
    shape, rows, before, store = shape_of(config), dict[str, Row](), None, None
    if out is not None:
        make_folder(out)
        store = open_store(out)
        before, config = begin(store, config)
        write_config(out, config)
        labels = product(config.envs, config.instances, config.agents)
        store.remove(config.key(*names) for names in labels if set(again) & set(names))
        rows = store.rows(keys.values(), shape)
    left = {key: trial for trial, key in keys.items() if key not in rows}
    if before is not None and store is not None:
        for line in _news(before, config, _finished_before(left.values(), before, store)):
            warnings.warn(line, stacklevel=2)

    def keep(trial: Trial, result: Result) -> None:
        row = rows[keys[trial]] = Row.of(result)
        if store is not None:
            store.add(keys[trial], "-".join(trial[:3]), row, shape)
        bar.finished()

    def kept() -> str:
        return f"{sum(key in rows for key in keys.values())} of {len(trials)} runs"

    with resumable(out, kept):
        with Progress(is_shown, horizon, len(trials), len(left)) as bar:
            for prefer in ("threads", "processes"):
                chosen = [trial for trial in left.values() if trials[trial] == prefer]
                if chosen:
                    _play_all(chosen, job, n_jobs, prefer, bar, keep)
        if out is not None and store is not None:
            from .reports.report import update_files  # matplotlib is slow to load

            update_files(out, store)
    return Results(table_of(rows, keys, config), config)


def _finished_before(trials: Iterable[Trial], before: Config, store: Store) -> list[Trial]:
    """Those of some trials that are finished in a folder with what its tables showed before."""
    every = product(*(before.identities[column] for column in COLUMNS))
    hashes = {labels: before.key(*labels) for labels in every}
    return [it for it in trials if f"{hashes.get(it[:3])}-{it.run}" in store]


def _news(before: Config, now: Config, anew: Sequence[Trial]) -> Iterator[str]:
    """Why runs of a folder are played anew, in lines.

    Args:
        before, now: what its tables showed before, and what they show now.
        anew: what is to be played, and was finished before.
    """
    if changes := before.changes(now):
        if anew:
            are = counted(len(anew), "run is", "runs are")
            yield f"{are} played anew ({'; '.join(changes)}); the others are kept"
        return
    for column, known in before.identities.items():
        for label, identity in known.items():
            count = sum(getattr(trial, column) == label for trial in anew)
            new = now.identities[column].get(label, identity)
            if count and new != identity and not new.startswith(UNKNOWN):
                are = counted(count, "run is", "runs are")
                yield f"{label} has changed: {are} played anew"


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


class Prepared(NamedTuple):
    """The objects that consecutive compiled runs of an agent in a `ClickEnv` share. Runs of the
    next agent there share all of them but the maker of the agent.
    """

    labels: tuple[str, str, str]
    env: gym.Env  # a seed starts it anew
    traits: EnvTraits
    make: Callable[[Seed], BaseAgent]


class Last(threading.local):
    """Per-thread cache of the objects of the last compiled run. Each process has its own."""

    prepared: Prepared | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Last, ()


class Job(NamedTuple):
    """The data that all runs of a sweep share. joblib sends it to worker processes; threads share
    it.

    Attributes:
        setting: of the sweep.
        engine: as it was asked for.
        envs, agents: what makes the environments and the agents, by label.
        instances: what is taken as an instance, by its name in results.
        queries: of each instance with several queries their number.
        users: the classes of users that are not of the package, by name: another process does not
            know those of a script or a notebook.
        code: that of one's own of agents and environments, by column and label.
        imports: what tells whether workers that are still there know another code.
        last: what the last run of a thread leaves to the next.
    """

    setting: Setting
    engine: Engine
    envs: Mapping[str, EnvMaker]
    agents: Mapping[str, AgentMaker]
    instances: Mapping[str, Any]
    queries: Mapping[str, int]
    users: Mapping[str, type[Users]]
    code: Mapping[tuple[str, str], OwnCode]
    imports: str
    last: Last

    def pair(self, trial: Trial, seed: int) -> tuple[BaseAgent, gym.Env, str]:
        """Make the agent of a trial with a seed, and the environment, unless the last run of this
        thread left it; with the engine that plays them.
        """
        last = self.last.prepared
        if last is None or last.labels != trial[:3]:
            self.code["env", trial.env].check(trial.env, self.envs[trial.env][0])
            self.code["agent", trial.agent].check(trial.agent, self.agents[trial.agent][0])
            if last is None or last.labels[:2] != trial[:2]:
                Users.classes.update(self.users)
                env = make_env(self.envs[trial.env], self.instances[trial.instance])
                traits = traits_of(env)
            else:
                env, traits = last.env, last.traits
            maker, horizon = self.agents[trial.agent], self.setting.horizon
            make = prepared_agent(maker, env, horizon=horizon)
            last = Prepared(trial[:3], env, traits, make)
        agent = last.make(seed)
        engine = engine_of(agent, last.env, self.engine, traits=last.traits)
        is_anew = engine == "compiled" and type(last.env.unwrapped) is ClickEnv
        self.last.prepared = last if is_anew else None
        return agent, last.env, engine


class Plan(NamedTuple):
    """The runs that a sweep is to play.

    Attributes:
        job: what all runs share.
        trials: all of them in the order of the table, each with what plays it: ``"threads"`` for
            compiled pairs, ``"processes"`` for others.
        config: of the results.
    """

    job: Job
    trials: dict[Trial, str]
    config: Config


def _instances(instances: Any) -> list[Any]:
    """Return the instances of a sweep; None is the default of each environment.

    Raises:
        TypeError: they are no list.
    """
    if instances is None:
        return [None]
    listed = [SHIPPED] if isinstance(instances, str) and instances == SHIPPED else instances
    if not (is_sequence(listed) and len(listed)):
        raise TypeError(
            f'instances is {short(instances)}; expected a list of instances, or "{SHIPPED}"'
        )
    used: list[Any] = []
    for instance in listed:
        is_all = isinstance(instance, str) and instance == SHIPPED
        used += shipped_instances() if is_all else [instance]
    return used


def _plan(
    setting: Setting,
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    instances: Sequence[Any],
    runs: int,
    engine: Engine,
    is_kept: bool,
) -> Plan:
    """Make every environment and every agent once, to see that they fit, and plan all runs.

    Args:
        setting: of the sweep.
        envs, agents: by label.
        instances, runs: as in `sweep`.
        engine: as in `sweep`.
        is_kept: whether the results go into a folder, where what has no identity is told.

    Raises:
        UnsuitedError: naming all agents that cannot play.
    """
    env_makers = {label: env_maker(env) for label, env in envs.items()}
    agent_makers = {label: agent_maker(agent) for label, agent in agents.items()}
    # of agents before any is made: a class may count them; of environments when their ids are known
    told = partial(identities, warns=is_kept, stacklevel=4)
    of_agents = told("agent", agent_makers)
    code = {("agent", label): OwnCode.of(it) for label, (it, _) in agent_makers.items()}
    metrics = Metrics(setting.metrics)
    named: dict[str, Any] = {}
    places: dict[str, list[str]] = {}
    queries: dict[str, int] = {}
    trials: dict[Trial, str] = {}
    unsuited: dict[str, UnsuitedError] = {}
    for env_label, env_pair in env_makers.items():
        for instance in instances:
            env = make_env(env_pair, instance)
            metrics.check_env(env.unwrapped)
            name = getattr(env.unwrapped, "instance", "custom")
            places.setdefault(env_label, []).append(name)
            played = users_of(env)
            _, *changes = (0,) if played is None else played.starts
            if changes and changes[0] >= setting.horizon:
                warnings.warn(
                    f"the users of {env_label} ({name}) first change after session "
                    f"{changes[0]:,}, but a run has only {setting.horizon:,} sessions",
                    stacklevel=3,
                )
            if played is not None and played.n_queries > 1:
                queries[name] = played.n_queries
            check_episode(env, setting.horizon, env_label)
            is_file = isinstance(instance, str | os.PathLike) and str(instance).endswith(".json")
            named[name] = str(Path(instance).resolve()) if is_file else instance
            for label, agent_pair in agent_makers.items():
                try:
                    agent = make_agent(agent_pair, env, horizon=setting.horizon, seed=0)
                    chosen = engine_of(agent, env, engine)
                    metrics.check_agent(agent)
                except UnsuitedError as error:
                    unsuited.setdefault(label, error)
                    continue
                if Trial(env_label, name, label, 0) in trials:
                    raise ValueError("two instances have the same name; give each its own name")
                prefer = "threads" if chosen == "compiled" else "processes"
                trials |= {Trial(env_label, name, label, run): prefer for run in range(runs)}
    if unsuited:
        raise UnsuitedError.of_all(unsuited)
    used = {name: loaded(name if it is None else it) for name, it in named.items()}
    code |= {("env", label): OwnCode.of(it) for label, (it, _) in env_makers.items()}
    imported = [
        of_agents[label] for label, (it, given) in agent_makers.items() if given or not is_ours(it)
    ]
    imports = repr([imported, [code["env", label] for label in env_makers]])
    made = provenance()
    config = Config(
        **vars(setting),
        engine=engine,
        runs=runs,
        envs={label: own_label(env) for label, env in envs.items()},
        instances={name: it if isinstance(it, str) else None for name, it in named.items()},
        agents={label: own_label(agent) for label, agent in agents.items()},
        identities={
            "env": told("env", env_makers),
            "instance": told("instance", used),
            "agent": of_agents,
        },
        places=places,
        queries=queries,
        **{key: made[key] for key in ("commit", "made", "processor")},
    )
    users = {name: users for name, users in Users.classes.items() if not is_ours(users)}
    job = Job(
        *(setting, engine, env_makers, agent_makers, named, queries, users, code),
        *(imports, Last()),
    )
    return Plan(job, trials, config)


# ----------------------------------------------------------------------------------------- playing


def _play_all(
    trials: Sequence[Trial],
    job: Job,
    n_jobs: int,
    prefer: str,
    bar: Progress,
    keep: Callable[[Trial, Result], None],
) -> None:
    """Play trials in threads or in processes, and keep each when it is finished."""
    backend, _ = get_active_backend(prefer=prefer)
    is_here = getattr(backend, "supports_sharedmem", False)
    if isinstance(backend, LokyBackend) and joblib.effective_n_jobs(n_jobs) == 1:
        is_here = True  # joblib starts no process for one job
    stop = threading.Event()

    def on_chunk(sessions: int) -> None:
        if stop.is_set():
            raise InterruptedError
        bar.played(sessions)

    calls = [(_play, trial, job, on_chunk if is_here else None) for trial in trials]
    results = in_parallel(calls, n_jobs, prefer, code=job.imports)
    try:
        for trial, result in results:
            if not is_here:
                bar.played(job.setting.horizon)
            keep(trial, result)
    except BrokenExecutor as error:
        raise WorkerError(what_broke(error)) from None
    finally:
        stop.set()


def _play(trial: Trial, job: Job, on_chunk: OnChunk | None) -> tuple[Trial, Result]:
    """Play a trial; return it with its measurements."""
    n_queries = job.queries.get(trial.instance, 1)
    seed = run_seed(job.setting.seed, trial.instance, trial.run, n_queries)
    result = play(
        *job.pair(trial, seed),
        np.array(job.setting.checkpoints),
        Metrics(job.setting.metrics),
        seed,
        on_chunk,
    )
    return trial, result
