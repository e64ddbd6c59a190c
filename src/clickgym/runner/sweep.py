"""A sweep: every agent in every environment, several runs each; parallel and resumable, with one
tidy table.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from itertools import groupby, product
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, NamedTuple

import joblib
import numpy as np
from joblib.parallel import LokyBackend, get_active_backend
from numpy.typing import ArrayLike

from ..agents.agent import UnsuitedError
from ..core.checks import check_count, check_horizon, check_path, check_seed
from ..core.faults import WorkerError
from ..core.files import make_folder
from ..envs import ClickEnv, Users
from ..envs.any_env import sizes_of, users_of
from ..envs.meter import checkpoint_steps
from .hashes import Values, edited, files_of, hashes_of, is_built_in, loaded, values_in
from .make import (
    AgentLike,
    EnvLike,
    ResolvedAgent,
    ResolvedEnv,
    all_instances,
    by_label,
    make_agent,
    make_env,
    resolved_agent,
    resolved_env,
    spec_of,
)
from .play.loop import OnChunk
from .play.metrics import Metrics
from .play.play_run import Engine, check_episode, engine_of, play, warn_of_features
from .results import Results, write_folder
from .store import (
    RUNS,
    Cell,
    Config,
    FinishedRun,
    Journal,
    begun,
    check_cells,
    frame_of,
    read,
    run_seed,
    shown_of,
    versions,
)
from .workers import Progress, in_parallel, say_resumed, what_broke

AT_ONCE = 20_000
"""Sessions of small compiled runs that are played in one batch."""

Labels = tuple[str, str, str]
"""Of an environment, an instance and an agent."""


def sweep(
    envs: Iterable[EnvLike] | Mapping[str, EnvLike],
    agents: Iterable[AgentLike] | Mapping[str, AgentLike],
    horizon: float = 10_000,
    runs: int = 10,
    *,
    instances: Sequence[Any] | Literal["shipped"] | None = None,
    metrics: Sequence[str] = (),
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
    checkpoints: ArrayLike | None = None,
    engine: Engine = "auto",
    progress: bool = True,
) -> Results:
    """Run every agent in every environment several times, and return the results as a table.

    A finished run is saved at once; short runs in compiled code are saved after about 20,000
    sessions. A stopped sweep resumes when you call it again with the same arguments, or with a part
    of them, and ends with the same numbers. No number depends on the order of runs, on ``n_jobs``
    or on the engine. The seed of a run depends on ``seed``, the name of the instance and the number
    of the run. So all agents meet the same users, and a label is only a name. `run` with the
    ``seed`` in the rows of a run repeats this run. An object has the name by which it could be
    passed: the class `TopRank` is ``"TopRank"``, your own class ``"my_module:MyAgent"``. Give a
    label, in a mapping, to an object without such a name (a click model, arguments with an array).

    A run is known by its setting (versions, horizon, seed, checkpoints, metrics) and by its agent,
    environment and instance: name, arguments and, for a class of your own, the text of its file and
    of your own modules that it imports. If a run is in the folder, it is not played again. What
    clickgym cannot see, such as a file that your agent opens by itself, needs another folder. An
    agent is played, but not resumed, if it stands in a notebook or within a function, if an
    argument is an object such as an open file, or if its code was edited after its import.

    Args:
        envs: ids or specs, as ``"PBMRank-v0"``, ``"PBMRank-v0:reward=any_click"`` or
            ``"my_module:MyRank-v0"``; ``(id, arguments)``; a click model; or a mapping from labels
            to these.
        agents: names or specs, as ``"BatchRank"``, ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; classes or ``(class, arguments)``; or a mapping from labels to
            these.
        horizon: T, sessions per run; ``1e6`` is accepted.
        runs: runs per pair.
        instances: names, files or `Instance` objects; each is used in every environment.
            ``"shipped"``, alone or in the list, stands for all real queries of the package. None
            takes the default instances, which for most ids are one and the same query.
        metrics: as in `run`.
        seed: the seed of the whole sweep.
        out: the results folder, created if missing. None leaves no files.
        n_jobs: the number of workers, as in joblib: -1 for all processors. Compiled pairs run in
            threads, others in processes. If a ``joblib.parallel_config`` around the call names a
            backend, it runs all pairs.
        checkpoints, engine: as in `run`.
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
        WorkerError, OSError: a worker process died; or nothing more can be written. All runs
            saved before are kept.

    Warns:
        UserWarning: some runs are not resumed, with the reason.

    Example:
        >>> import clickgym
        >>> envs, agents = ["PBMRank-v0"], ["Random", "TopRank"]
        >>> results = clickgym.sweep(envs, agents, 1000, 2, checkpoints=[500])
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 2 runs, 1,000 sessions>
        >>> results.frame.shape
        (8, 13)
    """
    # An agent may change the working folder.
    folder = None if out is None else check_path("out", out).absolute()
    horizon, runs, seed = check_horizon(horizon), check_count("runs", runs), check_seed(seed)
    setting = {
        "clickgym": version("clickgym"),
        "versions": versions(),
        "horizon": horizon,
        "checkpoints": checkpoint_steps(horizon, checkpoints).tolist(),
        "metrics": list(Metrics(metrics).names),
    }
    envs, agents = by_label("environment", envs), by_label("agent", agents)
    config, pairs = _planned(
        envs, agents, instances, runs, seed, engine, setting, is_kept=folder is not None
    )
    finished = _finished_runs(config, pairs, out, folder, n_jobs, progress)
    return Results.of_rows(frame_of(finished, config), config)


# ---------------------------------------------------------------------------------------- planning


class Pair(NamedTuple):
    """What plays the runs of a cell.

    Attributes:
        env, agent: resolved specs.
        instance: what ``gym.make`` takes as one.
        engine: as `engine_of` returns it.
        at_once: the runs that a worker plays in one call.
    """

    env: ResolvedEnv
    agent: ResolvedAgent
    instance: Any
    engine: str
    at_once: int

    @property
    def workers(self) -> Literal["threads", "processes"]:
        """Threads for compiled runs, which do not hold Python's lock."""
        return "threads" if self.engine == "compiled" else "processes"


def _planned(
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    instances: Any,
    runs: int,
    seed: int,
    engine: Engine,
    setting: Mapping[str, Any],
    *,
    is_kept: bool,
) -> tuple[Config, dict[Labels, Pair]]:
    """Try every agent in every environment, so that whatever is refused is refused before a run.

    Args:
        envs, agents: by label.
        instances, runs, seed, engine: as in `sweep`.
        setting: of the sweep, as in `Config`.
        is_kept: whether the results go into a folder, so that a warning names what has none.

    Returns:
        What the sweep is of, and what plays each cell.

    Raises:
        ValueError: two instances are the same users, and would count as two; or an environment has
            other users each time that it is made.
        UnsuitedError: naming all agents that cannot play.
    """
    horizon, metrics = setting["horizon"], Metrics(setting["metrics"])
    of_env = {label: resolved_env(env) for label, env in envs.items()}
    of_agent = {label: resolved_agent(agent) for label, agent in agents.items()}
    known_envs = hashes_of("env", of_env, is_kept=is_kept)
    known_agents = hashes_of("agent", of_agent, is_kept=is_kept)
    known: dict[str, str] = {}  # of instances
    cells: list[Cell] = []
    pairs: dict[Labels, Pair] = {}
    unsuited: dict[str, UnsuitedError] = {}
    for (env_label, of_this), instance in product(of_env.items(), all_instances(instances)):
        env = make_env(of_this, instance)
        sizes_of(env)  # whatever is refused here is no agent's fault
        metrics.check_env(env.unwrapped)
        check_episode(env, horizon, env_label)
        name = getattr(env.unwrapped, "instance", "custom")
        if name not in known:
            content = loaded(name if instance is None else instance)
            known |= hashes_of("instance", {name: content}, is_kept=is_kept)
        users = users_of(env)
        if isinstance(of_this[0], FunctionType) and users != users_of(make_env(of_this, instance)):
            raise ValueError(
                f"{env_label} makes other users at each call, and all runs need the same; several "
                "users are several instances, which the function takes as instance"
            )
        for label, resolved in of_agent.items():
            try:
                agent = make_agent(resolved, env, horizon=horizon, seed=0)
                chosen = engine_of(agent, env, engine)
                metrics.check_agent(agent)
            except UnsuitedError as error:
                unsuited.setdefault(label, error)
                continue
            except ValueError as error:
                if type(error) is not ValueError or label in str(error):
                    raise
                raise ValueError(f"{label}: {error}") from error
            warn_of_features(agent, env)
            labels = env_label, name, label
            if labels in pairs:
                raise ValueError("two instances have the same name; give each its own name")
            starts_anew = chosen == "compiled" and type(env.unwrapped) is ClickEnv  # with each seed
            at_once = max(AT_ONCE // horizon, 1) if starts_anew else 1
            pairs[labels] = Pair(of_this, resolved, instance, chosen, at_once)
            spec = instance if isinstance(instance, str) else None
            specs = [spec_of(envs[env_label]), spec, spec_of(agents[label])]
            hashes = [known_envs[env_label], known[name], known_agents[label]]
            n_queries = users.n_queries if users else 1
            cells.append(Cell(*labels, specs, hashes, runs, n_queries, seed))
    if unsuited:
        raise UnsuitedError.of_all(unsuited)
    check_cells(cells)
    return Config(**setting, cells=cells), pairs


def _finished_runs(
    config: Config,
    pairs: Mapping[Labels, Pair],
    out: object,
    folder: Path | None,
    n_jobs: int,
    progress: bool,
) -> dict[str, FinishedRun]:
    """Play the runs that a folder does not have, and keep them there; return all by their keys.

    Args:
        config, pairs: of `_planned`.
        out: what messages call the folder.
        folder, n_jobs, progress: as in `sweep`.
    """
    finished, journal = ({}, None) if folder is None else _open(folder, config)
    trials = {key: (cell, run) for cell, run, key in config.trials()}
    left = {key: trial for key, trial in trials.items() if key not in finished}

    def keep(new: Mapping[str, FinishedRun]) -> None:
        finished.update(new)
        if journal is not None:
            journal.add(new)
        bar.finished(len(new))

    def count() -> str:
        return f"{sum(key in finished for key in trials)} of {len(trials)} runs"

    if out is not None and progress:
        say_resumed(out, count())
    with resumable(out, count):
        with Progress(progress, len(trials), len(left)) as bar:
            _play_all(_batches(left, config, pairs), n_jobs, keep)
        if folder is not None:
            write_folder(folder)
    return finished


def _open(folder: Path, config: Config) -> tuple[dict[str, FinishedRun], Journal | None]:
    """Open a results folder for a sweep; return its finished runs, and the file for further ones,
    None if all are there, and the table of the folder shows them already.

    Raises:
        ValueError: it holds something else.
    """
    make_folder(folder)
    configs, finished = read(folder)
    if not configs and {file.name for file in folder.glob("[!.]*")} - {RUNS}:
        raise ValueError(f"{folder} is not a results folder; choose another (--out)")
    before = [*begun(configs, finished).values()]
    is_shown = before and shown_of([*before, config]) == shown_of(before)
    if is_shown and all(key in finished for *_, key in config.trials()):
        return finished, None
    return finished, Journal(folder, config)


@contextmanager
def resumable(out: object, finished: Callable[[], str]) -> Iterator[None]:
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


class Batch(NamedTuple):
    """Runs of a cell that a worker plays in one call.

    Attributes:
        cell, pair: of what, and what plays them.
        runs: their numbers and keys.
        config: of the sweep, without its cells.
        users: the classes of users that are not of the package, by name: another process does not
            know those of a script or a notebook.
    """

    cell: Cell
    pair: Pair
    runs: Sequence[tuple[int, str]]
    config: Config
    users: Mapping[str, type[Users]]


def _batches(
    left: Mapping[str, tuple[Cell, int]], config: Config, pairs: Mapping[Labels, Pair]
) -> list[Batch]:
    """The batches of the runs that are left."""
    users = {name: users for name, users in Users.classes.items() if not is_built_in(users)}
    shared, batches = replace(config, cells=[]), []
    for labels, group in groupby(left.items(), key=lambda item: item[1][0][:3]):
        runs = [(cell, run, key) for key, (cell, run) in group]
        pair = pairs[labels]
        for start in range(0, len(runs), pair.at_once):
            some = [(run, key) for _, run, key in runs[start : start + pair.at_once]]
            batches.append(Batch(runs[0][0], pair, some, shared, users))
    return batches


def _play_all(
    batches: Sequence[Batch],
    n_jobs: int,
    keep: Callable[[Mapping[str, FinishedRun]], None],
) -> None:
    """Play batches, and keep the runs of each when it is finished, by their keys."""
    values = _values_of(batches, n_jobs)
    with nullcontext() if values is not None else joblib.parallel_config("sequential"):
        for workers in dict.fromkeys(batch.pair.workers for batch in batches):
            is_here, stop = _is_here(workers, n_jobs), threading.Event()

            def on_chunk(_: int, stop: threading.Event = stop) -> None:
                if stop.is_set():
                    raise InterruptedError

            some = [batch for batch in batches if batch.pair.workers == workers]
            tasks = [(_play, batch, on_chunk if is_here else None) for batch in some]
            try:
                for finished in in_parallel(tasks, n_jobs, workers, values=values):
                    keep(finished)
            except BrokenExecutor as error:
                raise WorkerError(what_broke(error)) from None
            finally:
                stop.set()


def _values_of(batches: Sequence[Batch], n_jobs: int) -> Values | None:
    """What this program has set in the own modules that worker processes import for some batches;
    None if one was edited after its import, so that this process must play all runs itself.

    Warns:
        UserWarning: one was.
    """
    resolved: dict[tuple[str, str], Any] = {}
    for cell, pair, *_ in batches:
        if not _is_here(pair.workers, n_jobs):
            resolved |= {("env", cell.env): pair.env, ("agent", cell.agent): pair.agent}
    files = {name: file for one in resolved.values() for name, file in files_of(one).items()}
    files.pop("__main__", None)  # its classes are sent whole
    if file := edited(files):
        warnings.warn(
            f"{file} was edited after its import: all runs are played in this process, as with "
            "n_jobs=1; to use all processors, restart Python",
            stacklevel=4,
        )
        return None
    return values_in(files)


def _is_here(workers: str, n_jobs: int) -> bool:
    """Whether workers of a kind play in this process."""
    backend, _ = get_active_backend(prefer=workers)
    if isinstance(backend, LokyBackend) and joblib.effective_n_jobs(n_jobs) == 1:
        return True  # joblib starts no process for one job
    return bool(getattr(backend, "supports_sharedmem", False))


def _play(batch: Batch, on_chunk: OnChunk | None) -> dict[str, FinishedRun]:
    """Play the runs of a batch; return their measurements by key."""
    cell, pair, config = batch.cell, batch.pair, batch.config
    Users.classes.update(batch.users)
    env, steps = make_env(pair.env, pair.instance), np.array(config.checkpoints)
    finished: dict[str, FinishedRun] = {}
    for run, key in batch.runs:
        seed = run_seed(cell.seed, cell.instance, run, cell.n_queries)
        agent = make_agent(pair.agent, env, horizon=config.horizon, seed=seed)
        metrics = Metrics(config.metrics)
        result = play(agent, env, pair.engine, steps, metrics, seed, on_chunk)
        finished[key] = FinishedRun.of(result)
    return finished
