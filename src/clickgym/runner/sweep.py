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
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import joblib
import numpy as np
from joblib.parallel import LokyBackend, get_active_backend
from numpy.typing import ArrayLike

from ..core.checks import check_count, check_flag, check_horizon, check_path, check_seed
from ..core.faults import WorkerError
from ..core.files import make_folder
from ..core.forks import check_fork
from ..envs import Users
from ..envs.meter import checkpoint_steps
from ..envs.result import Result
from .config import Cell, Config, begun, run_seed, shown_of, versions
from .identity import files_of, is_built_in
from .make import make_agent, make_env
from .names import AgentLike, EnvLike, by_label
from .own_code import Values, edited, values_in
from .plan import Labels, Pair, plan_of
from .play.loop import OnChunk
from .play.measuring import Metrics
from .play.pair import Engine, engine_of
from .play.play_run import play
from .progress import Progress, say_resumed
from .results import Results
from .store import RUNS, FinishedRun, Journal, frame_of, read
from .workers import check_workers, in_parallel, what_broke


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
    of them, and ends with the same numbers. They do not depend on the order, on ``n_jobs`` or on
    the engine. The seed of a run depends on ``seed``, the name of the instance and the number of
    the run: all agents meet the same users, a label is only a name, and `run` with the ``seed`` in
    the rows of a run repeats it. An object has the name by which it could be passed: the class
    `TopRank` is ``"TopRank"``, your own class ``"my_module:MyAgent"``. Give a label, in a mapping,
    to an object without such a name (a click model, arguments with an array).

    A run is known by its setting (versions, horizon, seed, checkpoints, metrics) and by its agent,
    environment and instance: name, arguments and, for a class of your own, the text of its file and
    of your own modules that it imports. If a run is in the folder, it is not played again. What
    clickgym cannot see, such as a file that your agent opens by itself, needs another folder.
    An agent is played, but not resumed, if it stands in a notebook or within a function, if an
    argument is such as an open file, or if its code was edited after its import.

    Args:
        envs: ids or specs, as ``"PBMRank-v0"``, ``"PBMRank-v0:reward=any_click"`` or
            ``"my_module:MyRank-v0"``; ``(id, arguments)``; a click model; or a mapping from labels
            to such.
        agents: names or specs, as ``"BatchRank"``, ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; classes or ``(class, arguments)``; or a mapping from labels to
            such.
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
            backend (Dask), it runs all pairs.
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
        RuntimeError: the process was forked from one that had used Polars.
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
    check_fork()
    check_workers(n_jobs)
    check_flag("progress", progress)
    folder = None if out is None else check_path("out", out)
    horizon, runs, seed = check_horizon(horizon), check_count("runs", runs), check_seed(seed)
    setting = {
        "clickgym": version("clickgym"),
        "versions": versions(),
        "horizon": horizon,
        "checkpoints": checkpoint_steps(horizon, checkpoints).tolist(),
        "metrics": list(Metrics(metrics).names),
    }
    envs, agents = by_label("environment", envs), by_label("agent", agents)
    is_kept = folder is not None
    config, pairs = plan_of(envs, agents, instances, runs, seed, engine, setting, is_kept=is_kept)
    whole = None if folder is None else folder.absolute()  # an agent may change the working folder
    finished, journal, others = ({}, None, set()) if whole is None else _open(whole, config)
    trials = {key: (cell, run) for cell, run, key in config.trials()}
    left = {key: trial for key, trial in trials.items() if key not in finished}

    def keep(results: Mapping[str, Result]) -> None:
        new = {key: FinishedRun.of(result) for key, result in results.items()}
        finished.update(new)
        if journal is not None:
            journal.add(new)
        bar.finished(len(new))

    def count() -> str:
        return f"{sum(key in finished for key in trials)} of {len(trials)} runs"

    if folder is not None and progress:
        n_anew = sum((*cell[:3], cell.seed, run) in others for cell, run in left.values())
        anew = f"; {n_anew} are played anew, because something of them is other than it was"
        say_resumed(folder, count(), anew if n_anew else "")
    with resumable(folder, count):
        used = {cell[:3]: pairs[cell[:3]] for cell, _ in left.values()}
        values = _values_of(used, n_jobs)
        batches = _batches(left, config, pairs)
        with Progress(progress, horizon, len(trials), len(left)) as bar:
            _play_all(batches, n_jobs, values, bar, keep)
        if whole is not None:
            from .reports.report import write_folder  # matplotlib is slow to load

            write_folder(whole)
    return Results(frame_of(finished, config), config)


def _open(
    folder: Path, config: Config
) -> tuple[dict[str, FinishedRun], Journal | None, set[tuple[Any, ...]]]:
    """Open a results folder for a sweep; return its finished runs; the file for further ones, None
    if all are there, and the table of the folder shows them already; and the labels, seeds and
    numbers of the finished runs of this setting.

    Raises:
        ValueError: it holds something else.
    """
    make_folder(folder)
    configs, finished = read(folder)
    if not configs and {file.name for file in folder.glob("[!.]*")} - {RUNS}:
        raise ValueError(f"{folder} is not a results folder; choose another (--out)")
    before = begun(configs.values(), finished)
    named = {
        (*cell[:3], cell.seed, run)
        for one in before
        if one.setting == config.setting
        for cell, run, key in one.trials()
        if key in finished
    }
    after = shown_of([*before, config])
    if before and after == shown_of(before) and all(key in finished for *_, key in config.trials()):
        return finished, None, named
    return finished, Journal(folder, config), named


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
    shared, batches = config.only([]), []
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
    values: Values | None,
    bar: Progress,
    keep: Callable[[Mapping[str, Result]], None],
) -> None:
    """Play batches, and keep the results of each when it is finished, by the keys of the runs;
    ``values`` is what `_values_of` returned.
    """
    for workers in dict.fromkeys(batch.pair.workers for batch in batches):
        is_here = values is None or _is_here(workers, n_jobs)
        stop = threading.Event()

        def on_chunk(sessions: int, stop: threading.Event = stop) -> None:
            if stop.is_set():
                raise InterruptedError
            bar.played(sessions)

        some = [batch for batch in batches if batch.pair.workers == workers]
        tasks = [(_play, batch, on_chunk if is_here else None) for batch in some]
        try:
            here = (_play(batch, on_chunk) for batch in some)
            all_here = values is None
            for results in here if all_here else in_parallel(tasks, n_jobs, workers, values=values):
                if not is_here:
                    bar.played(some[0].config.horizon * len(results))
                keep(results)
        except BrokenExecutor as error:
            raise WorkerError(what_broke(error)) from None
        finally:
            stop.set()


def _values_of(pairs: Mapping[Labels, Pair], n_jobs: int) -> Values | None:
    """What this program has set in the own modules that worker processes import for some pairs;
    None if one was edited after its import, so that this process must play all runs itself.

    Warns:
        UserWarning: one was.
    """
    recipes: dict[tuple[str, str], Any] = {}
    for (env, _, agent), pair in pairs.items():
        if not _is_here(pair.workers, n_jobs):
            recipes |= {("env", env): pair.env, ("agent", agent): pair.agent}
    files = {name: file for one in recipes.values() for name, file in files_of(one).items()}
    files.pop("__main__", None)  # its classes are sent whole
    if file := edited(files):
        warnings.warn(
            f"{file} was edited after its import: all runs are played in this process, as with "
            "n_jobs=1; to use all processors, restart Python",
            stacklevel=3,
        )
        return None
    return values_in(files)


def _is_here(workers: str, n_jobs: int) -> bool:
    """Whether workers of a kind play in this process."""
    backend, _ = get_active_backend(prefer=workers)
    if isinstance(backend, LokyBackend) and joblib.effective_n_jobs(n_jobs) == 1:
        return True  # joblib starts no process for one job
    return bool(getattr(backend, "supports_sharedmem", False))


def _play(batch: Batch, on_chunk: OnChunk | None) -> dict[str, Result]:
    """Play the runs of a batch; return their measurements by key."""
    cell, pair, config = batch.cell, batch.pair, batch.config
    Users.classes.update(batch.users)
    env, steps = make_env(pair.env, pair.instance), np.array(config.checkpoints)
    results: dict[str, Result] = {}
    engine = ""
    for run, key in batch.runs:
        seed = run_seed(cell.seed, cell.instance, run, cell.n_queries)
        agent = make_agent(pair.agent, env, horizon=config.horizon, seed=seed)
        engine = engine or engine_of(agent, env, pair.engine)
        results[key] = play(agent, env, engine, steps, Metrics(config.metrics), seed, on_chunk)
    return results
