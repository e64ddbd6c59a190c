"""Sweep over many pairs and many runs: resumable, parallel, with one tidy table."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import polars
from joblib.parallel import get_active_backend
from llvmlite.binding import get_host_cpu_name
from numpy.typing import ArrayLike, NDArray

from ..core.checks import (
    MOST_SESSIONS,
    check_count,
    check_horizon,
    check_path,
    check_seed,
    is_sequence,
    short,
)
from ..core.faults import WorkerError
from ..core.modules import looking_in
from ..core.workers import check_workers, deaf_to_interrupts, watched
from .callback import Callback
from .cast import Cast
from .delay import check_delay, check_learns_late
from .labels import (
    PUBLISHED,
    AgentLike,
    EnvLike,
    by_label,
    source_hash,
    typed_specs,
)
from .make import Place, Player, place_of, player_of
from .metrics import Metrics
from .pairs import ENGINES, Engine, Pair, pair_of
from .progress import listener_of
from .results import (
    TIMED,
    Trial,
    open_folder,
    table_of,
    timings_of,
    write_tables,
    write_trial,
)
from .run import checkpoint_steps, play
from .sweep_results import Results

MOST_TRIALS = 1_000_000


def sweep(
    envs: Iterable[EnvLike] | Mapping[str, EnvLike],
    agents: Iterable[AgentLike] | Mapping[str, AgentLike],
    horizon: int,
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
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Results:
    """Run every agent in every environment several times, and return the results as a table.

    Each finished run is saved at once. A stopped sweep continues when you call it again with the
    same arguments, and ends with the same table. The numbers depend on ``seed`` and on the names of
    environment, instance, agent and run. They do not depend on the order, on ``n_jobs`` or on the
    engine. An object has the name by which it could be passed: the class `TopRank` is
    ``"TopRank"``, your own class ``"my_module:MyAgent"``. Give a label, in a mapping, to an object
    without such a name (a click model, a lambda, a partial with an array). A folder can grow:
    further environments, instances, agents and runs are added, and finished runs are not repeated.

    Args:
        envs: ids or specs, as ``"PBMRank-v0"``, ``"PBMRank-v0:reward=any_click"`` or
            ``"my_module:MyRank-v0"``; an ``EnvSpec``, a function that returns an environment, a
            click model; or a mapping from labels to such.
        agents: names or specs, as ``"BatchRank"``, ``"CascadeKLUCB:feedback=first_click"`` or
            ``"my_module:MyAgent"``; classes, a `functools.partial` of one; or a mapping from labels
            to such.
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
        callback: a `Callback`, which receives the progress and the expected cost of learners. To
            estimate the cost, each learner plays for about a second.
        progress: whether to show a bar on stderr, or, where a bar is impossible, a line for each
            finished pair. None shows it only in a terminal or a notebook, and only without a
            ``callback``.

    Returns:
        The results of all that was asked for: ``.table()``, ``.plot()``, ``.pairwise()``, and as
        ``.frame`` the rows: env, instance, agent, run, step, regret, reward, clicks, then further
        metrics. They are also in ``out/results.parquet``, beside whatever else the folder holds,
        with the configuration and versions in ``out/config.json`` and the time of each run in
        ``out/timings.parquet``.

    Raises:
        ValueError, TypeError: on bad arguments, before any work starts; on a folder that holds
            something else, or results that contradict: of another horizon, seed, checkpoints,
            engine, metrics or delay, of another click model or another source of an agent.
        AgentError, SessionError: an agent proposed a bad list or failed, or an environment did; all
            runs finished before are kept.
        WorkerError, FileError: a worker process was killed, or nothing more can be written;
            likewise.

    Warns:
        UserWarning: the folder holds results made with other versions of packages.

    Example:
        >>> import clickgym
        >>> results = clickgym.sweep(["PBMRank-v0"], ["Random", "TopRank"], 1000, 2, checkpoints=[500])
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 2 runs, 1,000 sessions>
        >>> results.frame.shape
        (8, 8)
    """
    check_workers(n_jobs)
    out = None if out is None else check_path("out", out)
    work = _checked(horizon, seed, checkpoints, engine, metrics, delay)
    job = prepare(places_of(envs), players_of(agents), runs, instances, work)
    with listener_of(progress, callback) as listener, folder_or_temporary(out) as folder:
        return play_into(Path(folder), job, n_jobs, listener)


def folder_or_temporary(out: Path | None) -> AbstractContextManager[str | Path]:
    """Context of the folder in which results are kept; of one that is removed afterwards if none is
    named.
    """
    return tempfile.TemporaryDirectory() if out is None else nullcontext(out)


def play_into(out: Path, job: Job, n_jobs: int, callback: Callback) -> Results:
    """Play what is not done, write it, and return the results of all that was asked for."""
    done = open_folder(out, job.part)
    _play_all(job, done, out, n_jobs, callback)
    finished = write_tables(out)
    frames = [finished[trial] for trial in job.trials]
    return Results._of(table_of(frames, job.work.metrics), timings_of(frames), job.part)


# ------------------------------------------------------------------------------------------------- before any work starts


@dataclass(frozen=True)
class Work:
    """What every trial shares; it goes to other processes."""

    horizon: int
    seed: int
    checkpoints: NDArray[np.int64]
    engine: Engine = "auto"
    metrics: tuple[str, ...] = ()
    delay: str | None = None
    folder: Path = field(
        default_factory=Path.cwd
    )  # where users' modules and files are looked for, wherever a worker started
    cast: Cast = field(default_factory=Cast)


class Job(NamedTuple):
    """A sweep, ready to be played."""

    work: Work
    trials: dict[Trial, str]  # in the order of the table, each with the engine of its pair
    part: dict[str, Any]  # of the configuration


def places_of(envs: Iterable[EnvLike] | Mapping[str, EnvLike]) -> dict[str, Place]:
    """Resolve the environments of a sweep, by label."""
    return {label: place_of(env) for label, env in by_label("environment", envs).items()}


def players_of(agents: Iterable[AgentLike] | Mapping[str, AgentLike]) -> dict[str, Player]:
    """Resolve the agents of a sweep, by label."""
    return {label: player_of(agent) for label, agent in by_label("agent", agents).items()}


def listed(instances: Sequence[Any] | None) -> list[Any]:
    """The instances of a sweep; None, the default of each environment, is one."""
    if instances is not None and not is_sequence(instances):
        raise TypeError(f"instances is {short(instances)}; expected a list of instances")
    return [None] if instances is None else list(instances)


def prepare(
    places: Mapping[str, Place],
    players: Mapping[str, Player],
    runs: int,
    instances: Sequence[Any] | None,
    work: Work,
) -> Job:
    """Make everything once, to see that all fits; nothing is played.

    Args:
        places, players: where is played, and who plays, by label.
        runs, instances: as in `sweep`.
        work: what is played; its cast is filled here.

    Raises:
        ValueError, TypeError: as in `sweep`.
    """
    runs, instances = check_count("runs", runs), listed(instances)
    _check_size(len(places) * len(instances) * len(players) * runs, work)
    work = replace(work, cast=Cast(places, players))
    trials, pairs = _plan(instances, runs, work)
    return Job(work, trials, _configuration(trials, pairs, runs, work))


def _check_size(trials: int, work: Work) -> None:
    """Refuse what would never end, before anything is made."""
    sessions = trials * work.horizon
    if trials > MOST_TRIALS or sessions > MOST_SESSIONS:
        expected = f"at most {MOST_TRIALS:,} trials and {MOST_SESSIONS:,} sessions"
        raise ValueError(f"{trials:,} trials are {sessions:,} sessions; expected {expected}")


def _checked(
    horizon: int,
    seed: int,
    checkpoints: Any,
    engine: Engine,
    metrics: Sequence[str],
    delay: str | None,
) -> Work:
    horizon = check_horizon(horizon)
    steps, names = checkpoint_steps(horizon, checkpoints), Metrics(metrics).names
    return Work(horizon, check_seed(seed), steps, engine, names, check_delay(delay))


def _plan(instances: Sequence[Any], runs: int, work: Work) -> tuple[dict[Trial, str], list[str]]:
    """Make every environment and every agent once, to see that they fit.

    Returns:
        The engines of the trials; and the pairs of an environment and an instance.
    """
    trials: dict[Trial, str] = {}
    pairs: list[str] = []
    cast, measured = work.cast, Metrics(work.metrics)
    for env_label, venue in cast.places.items():
        for instance in instances:
            place = venue.at(instance)
            measured.contexts(place.core)
            name = place.instance
            if f"{env_label} {name}" in pairs:
                raise ValueError("two instances have the same name; give each its own name")
            pairs.append(f"{env_label} {name}")
            is_file = isinstance(instance, str | os.PathLike) and str(instance).endswith(".json")
            cast.instances[name] = str(Path(instance).resolve()) if is_file else instance
            for agent_label, player in cast.players.items():
                agent = player.make(place, work.horizon, 0)
                pair = pair_of(
                    agent, place, work.engine, agent_label, f"{agent_label} in {env_label}"
                )
                measured.check(pair)
                if work.delay is not None:
                    check_learns_late(pair)
                trials |= dict.fromkeys(
                    (Trial(env_label, name, agent_label, index) for index in range(runs)),
                    pair.engine,
                )
    if not trials:
        raise ValueError("no instance was named")
    return trials, pairs


def _configuration(
    trials: Mapping[Trial, str], pairs: list[str], runs: int, work: Work
) -> dict[str, Any]:
    """What results depend on, and what they were made with: a part of a folder's configuration."""
    packages = ["numba", "numpy"]
    if not set(ENGINES).issuperset(trials.values()):  # a library plays
        packages += ["stable-baselines3", "sb3-contrib", "torch"]
    cast = work.cast
    labels = {
        kind: typed_specs({label: each.given for label, each in things.items()})
        for kind, things in (("envs", cast.places), ("agents", cast.players))
    }
    return {
        "clickgym": version("clickgym"),
        "commit": _commit(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "envs": list(cast.places),
        "instances": list(cast.instances),
        "given": {
            name: file
            for name, file in cast.instances.items()
            if isinstance(file, str) and file != name
        },
        "agents": list(cast.players),
        **({"labels": labels} if any(labels.values()) else {}),
        "horizon": work.horizon,
        "runs": runs,
        "seed": work.seed,
        "checkpoints": work.checkpoints.tolist(),
        "engine": work.engine,
        "metrics": list(work.metrics),
        "delay": work.delay,
        "pairs": pairs,
        "sources": _sources(cast.players),
        "versions": {package: version(package) for package in packages}
        | {"processor": str(get_host_cpu_name())},
    }


def _commit() -> str:
    """The commit of the checkout in which the package lies; empty outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _sources(players: Mapping[str, Player]) -> dict[str, str]:
    """Hashes of the sources of agents that are not published, by label."""
    makers = {
        label: getattr(player.maker, "adopted", player.maker) for label, player in players.items()
    }
    return {
        label: source_hash(maker)
        for label, maker in makers.items()
        if maker not in PUBLISHED.values()
    }


# ---------------------------------------------------------------------------------------------------------------- playing


def _play_all(
    job: Job, done: Mapping[Trial, polars.DataFrame], out: Path, n_jobs: int, callback: Callback
) -> None:
    """Play and write what is not done: compiled pairs in threads, then the others in processes."""
    work, trials, _ = job
    callback.start(list(trials), done, work.horizon)
    due = [trial for trial in trials if trial not in done]
    _report_costs(
        [trial for trial in due if trials[trial] not in ENGINES],
        work,
        joblib.effective_n_jobs(n_jobs),
        callback,
    )
    for compiled, prefer in ((True, "threads"), (False, "processes")):
        alike = [trial for trial in due if (trials[trial] == "compiled") == compiled]
        if alike:
            _play_some(alike, work, out, n_jobs, prefer, callback)


def _play_some(
    trials: list[Trial], work: Work, out: Path, n_jobs: int, prefer: str, callback: Callback
) -> None:
    backend, _ = get_active_backend(prefer=prefer)
    shared = getattr(
        backend, "supports_sharedmem", False
    )  # threads of this process, so that progress can be told as it goes
    stop = threading.Event()

    def on_chunk(sessions: int) -> None:
        if stop.is_set():
            raise InterruptedError
        callback.sessions(sessions)

    if n_jobs > 1:  # more than there are trials would be made for nothing
        n_jobs = max(min(n_jobs, len(trials)), 2)  # a single one would be this process itself
    parallel = joblib.Parallel(
        n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered", batch_size=1
    )
    with deaf_to_interrupts():
        arguments = ((trial, work, on_chunk if shared else None) for trial in trials)
        results = parallel(joblib.delayed(watched)(os.getpid(), _play, *each) for each in arguments)
    try:
        for trial, frame in results:
            write_trial(out, trial, frame)
            callback.finished(trial, frame, counted=shared)
    except BrokenExecutor:
        raise WorkerError("a worker process was killed, perhaps because memory ran out") from None
    finally:
        stop.set()


def _report_costs(trials: Sequence[Trial], work: Work, workers: int, callback: Callback) -> None:
    if (
        type(callback).cost is Callback.cost
    ):  # nobody listens, and to find out what learners cost takes seconds
        return
    first = {trial.agent: trial for trial in reversed(trials)}
    for name, runs in Counter(trial.agent for trial in trials).items():
        from .learners.play import expected_seconds  # imports torch: only where a learner is

        callback.cost(name, expected_seconds(_pair(first[name], work), work.horizon), runs, workers)


def _pair(trial: Trial, work: Work) -> Pair:
    with looking_in(work.folder):
        place = work.cast.places[trial.env].at(work.cast.instances[trial.instance])
        agent = work.cast.players[trial.agent].make(place, work.horizon, trial.seeds(work.seed)[1])
        return pair_of(agent, place, work.engine)


def _play(
    trial: Trial, work: Work, on_chunk: Callable[[int], None] | None
) -> tuple[Trial, polars.DataFrame]:
    pair, metrics = _pair(trial, work), Metrics(work.metrics)
    result = play(pair, work.checkpoints, metrics, trial.seeds(work.seed)[0], on_chunk, work.delay)
    names = {"env": trial.env, "instance": trial.instance, "agent": trial.agent}
    names |= {name: getattr(result, name) for name in TIMED[len(Trial._fields) :]}
    return trial, result.to_frame(trial.run).with_columns(
        polars.lit(value).alias(name) for name, value in names.items()
    )
