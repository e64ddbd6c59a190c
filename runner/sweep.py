"""Many pairs, many runs: a resumable, parallel sweep with one tidy table."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import joblib
import numpy as np
import polars
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray

from ..agents import Agent, Learner
from ..envs import ClickModel
from ..envs.checks import check_count, check_horizon, check_seed, unknown
from .loop import playable, why_not_compiled
from .make import PUBLISHED, Spec, agent_class, label, make_agent, make_env, parse_spec
from .metrics import Metrics
from .run import ENGINES, Engine, check_tensorboard, checkpoint_steps, run

__all__ = ["Cell", "Watcher", "make_folder", "model_digest", "read_results", "sweep", "write_whole"]

CONFIG, TABLE, TIMINGS, CELLS = "config.json", "results.parquet", "timings.parquet", "cells"
COLUMNS = ("env", "instance", "agent", "run", "step", "regret", "reward", "clicks")


class Cell(NamedTuple):
    """One run of one pair; its names are what its seeds derive from."""

    env: str
    instance: str
    agent: str
    run: int

    @property
    def file(self) -> str:
        return hashlib.sha256("\n".join(map(str, self)).encode()).hexdigest()[:20] + ".parquet"

    def seeds(self, seed: int) -> tuple[int, int]:
        """Seeds of the environment and of the agent: children of ``seed`` by name, so that no other cell matters."""
        key = np.frombuffer(hashlib.sha256("\n".join(map(str, self)).encode()).digest(), np.uint32)
        env, agent = np.random.SeedSequence(seed, spawn_key=tuple(key.tolist())).generate_state(2, np.uint64)
        return int(env), int(agent)


class Watcher:
    """What a sweep tells as it goes; subclass to show it. All methods may be called from any thread."""

    def start(self, cells: Sequence[Cell], done: Mapping[Cell, polars.DataFrame], horizon: int) -> None:
        """Before any work: all cells, and the tables of those that an earlier sweep finished."""

    def cost(self, agent: str, seconds: float, runs: int, workers: int) -> None:
        """After `start`, for each learner: what a run is expected to take, and how many there are to be done by how many
        workers."""

    def sessions(self, count: int) -> None:
        """So many more sessions were played (only from cells that run in this process)."""

    def finished(self, cell: Cell, frame: polars.DataFrame, counted: bool) -> None:
        """A cell was written; ``counted`` says whether its sessions were reported."""


@dataclass(frozen=True)
class _Work:
    """What every cell needs to know; it goes to other processes."""

    horizon: int
    seed: int
    checkpoints: NDArray[np.int64]
    engine: Engine
    metrics: tuple[str, ...]
    instances: dict[str, str | None]  # what to pass to make_env, by the instance's name
    folder: Path  # where users' modules and files are looked for; a worker may have been started elsewhere
    tensorboard: Path | None


def sweep(
    envs: Iterable[Spec],
    agents: Iterable[Spec],
    horizon: int,
    runs: int,
    *,
    seed: int = 0,
    out: str | os.PathLike[str],
    instances: Sequence[str] | None = None,
    n_jobs: int = -1,
    checkpoints: ArrayLike | None = None,
    engine: Engine = "auto",
    metrics: Sequence[str] = (),
    watcher: Watcher | None = None,
    tensorboard: str | os.PathLike[str] | None = None,
) -> polars.DataFrame:
    """Run every agent in every environment several times and tabulate.

    Every finished run is written at once, whole; a sweep that was stopped goes on where it was when called again with the
    same arguments, and ends with the same table. The numbers depend on the names of environment, instance, agent and run
    and on ``seed``, not on their order, on ``n_jobs`` or on the engine.

    Args:
        envs: ids or specs, as ``"PBMRank-v0"`` or ``"PBMRank-v0:reward=any_click"``.
        agents: names or specs, as ``"BatchRank"``, ``"CascadeKLUCB:feedback=first_click"`` or ``"my_module:MyAgent"``.
        horizon: T, sessions per run; ``1e6`` is accepted.
        runs: runs per pair.
        seed: of the whole sweep.
        out: the results folder; made if need be.
        instances: names or files of instances, each taken for every environment; None takes the default instance.
        n_jobs: workers, as in joblib: -1 for all processors. Compiled pairs run in threads, the others in processes, unless a
            ``joblib.parallel_config`` around the call names a backend (Dask, Ray): then it serves all.
        checkpoints, engine, metrics: as in `run`.
        watcher: is told of the progress, and what the learners among the agents will cost: each plays for about a second to
            find out.
        tensorboard: a folder to which each run of a learner logs, in a folder of its own; None writes nothing.

    Returns:
        The table: env, instance, agent, run, step, regret, reward, clicks, then further metrics. It is also in
        ``out/results.parquet``, with the configuration and versions in ``out/config.json`` and the time of each run in
        ``out/timings.parquet``.

    Raises:
        ValueError, TypeError: on bad arguments, before any work starts; on a folder that holds something else, or results of
            another configuration.
        AgentError: an agent proposed a bad list; all runs finished before are kept.

    Example:
        >>> import tempfile, clickgym
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = clickgym.sweep(["PBMRank-v0"], ["Random", "TopRank"], 1000, 2, out=folder, checkpoints=[500])
        >>> table.shape
        (8, 8)
    """
    horizon, runs = check_horizon(horizon), check_count("runs", runs)
    if engine not in ENGINES:
        raise ValueError(unknown("engine", engine, ENGINES))
    seed = check_seed(seed)
    if not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}; expected a number of workers, or -1 for one per processor")
    if tensorboard is not None:
        check_tensorboard()
    steps = checkpoint_steps(horizon, checkpoints)
    measured = Metrics(metrics)
    env_specs, agent_specs = _distinct("environment", envs), _distinct("agent", agents)
    cells, in_threads, learners, models, named = [], set(), set(), {}, {}
    for env_label, env_spec in env_specs.items():
        for instance in [None] if instances is None else instances:
            env: Any = make_env(env_spec, instance)
            name = env.unwrapped.instance
            measured.contexts(env.unwrapped)
            named[name] = str(Path(instance).resolve()) if instance is not None and instance.endswith(".json") else instance
            models[f"{env_label} {name}"] = model_digest(env.unwrapped.model)
            for agent_label, agent_spec in agent_specs.items():
                agent_name, hyperparameters = parse_spec(agent_spec)
                agent = make_agent(agent_name, env, horizon=horizon, seed=0, **hyperparameters)
                obstacle = why_not_compiled(agent, env)
                if isinstance(agent, Learner):
                    playable(agent, env)
                    if engine != "auto":
                        raise ValueError(f"engine={engine!r} cannot serve {agent_label}: {agent.engine} brings its own loop")
                if engine == "compiled" and obstacle is not None:
                    raise ValueError(f"engine='compiled' cannot serve {agent_label} in {env_label}: {obstacle}")
                for index in range(runs):
                    cell = Cell(env_label, name, agent_label, index)
                    cells.append(cell)
                    if obstacle is None and engine != "python":
                        in_threads.add(cell)
                    if isinstance(agent, Learner):
                        learners.add(cell)
    if len(set(cells)) < len(cells):
        raise ValueError("two instances have the same name; their results could not be told apart")
    config = {
        "clickgym": version("clickgym"),
        "envs": list(env_specs),
        "instances": list(named),
        "agents": list(agent_specs),
        "horizon": horizon,
        "runs": runs,
        "seed": seed,
        "checkpoints": steps.tolist(),
        "engine": engine,
        "metrics": list(measured.names),
        "models": models,
        "sources": {name: _source_digest(spec) for name, spec in agent_specs.items() if _is_own(spec)},
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in ("gymnasium", "numpy", "numba", "joblib", "polars")}
        | ({package: version(package) for package in ("stable-baselines3", "sb3-contrib", "torch")} if learners else {}),
    }
    out = Path(out)
    _open_folder(out, config)
    done = {cell: _read_cell(out, cell) for cell in cells if (out / CELLS / cell.file).exists()}
    work = _Work(
        horizon, seed, steps, engine, measured.names, named, Path.cwd(), None if tensorboard is None else Path(tensorboard)
    )
    listener = Watcher() if watcher is None else watcher
    listener.start(cells, done, horizon)
    if watcher is not None:  # the trials take seconds, which nobody should wait for unheard
        left = [cell for cell in cells if cell in learners and cell not in done]
        _tell_costs(left, work, joblib.effective_n_jobs(n_jobs), listener)
    for prefer, wanted in (("threads", True), ("processes", False)):
        left = [cell for cell in cells if cell not in done and (cell in in_threads) == wanted]
        if left:
            _play_all(left, work, out, n_jobs, prefer, listener)
    frames = [_read_cell(out, cell) for cell in cells]
    table = polars.concat([frame.select(*COLUMNS, *measured.names) for frame in frames])
    timed = ("env", "instance", "agent", "run", "engine", "seconds", "training_sessions", "training_seconds")
    timings = polars.concat([frame.select(timed).head(1) for frame in frames])
    write_whole(out / TIMINGS, timings.write_parquet)
    write_whole(out / TABLE, table.write_parquet)
    return table


def read_results(folder: str | os.PathLike[str]) -> tuple[polars.DataFrame, polars.DataFrame, dict[str, Any]]:
    """The table, the timings and the configuration of a finished sweep.

    Args:
        folder: what `sweep` was given as ``out``.

    Raises:
        ValueError: the folder is not one of finished results.
    """
    folder = Path(folder)
    config = _read_config(folder)
    if not (folder / TABLE).exists():
        raise ValueError(f"{folder} holds an unfinished sweep; run it again with the same arguments to finish it")
    try:
        return _read(folder / TABLE), _read(folder / TIMINGS), config
    except (OSError, polars.exceptions.PolarsError) as error:
        raise ValueError(f"{folder} holds a damaged table: {error}") from None


# ------------------------------------------------------------------------------------------------------------- the cells


def _play_all(cells: list[Cell], work: _Work, out: Path, n_jobs: int, prefer: str, watcher: Watcher) -> None:
    backend, _ = get_active_backend(prefer=prefer)
    shared = getattr(backend, "supports_sharedmem", False)  # threads of this process, so that progress can be told as it goes
    stop = threading.Event()

    def on_chunk(sessions: int) -> None:
        if stop.is_set():
            raise InterruptedError
        watcher.sessions(sessions)

    parallel = joblib.Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered", batch_size=1)
    results = parallel(joblib.delayed(_play)(cell, work, on_chunk if shared else None) for cell in cells)
    try:
        for cell, frame in results:
            write_whole(out / CELLS / cell.file, frame.write_parquet)
            watcher.finished(cell, frame, counted=shared)
    finally:
        stop.set()


def _tell_costs(cells: Sequence[Cell], work: _Work, workers: int, watcher: Watcher) -> None:
    first = {cell.agent: cell for cell in reversed(cells)}
    for name, runs in Counter(cell.agent for cell in cells).items():
        from .learners.play import expected_seconds  # imports torch: only where a learner is

        env, agent = _pair(first[name], work)
        assert isinstance(agent, Learner)
        watcher.cost(name, expected_seconds(agent, env, work.horizon), runs, workers)


def _pair(cell: Cell, work: _Work) -> tuple[gym.Env, Agent | Learner]:
    env = make_env(cell.env, work.instances[cell.instance])
    name, hyperparameters = parse_spec(cell.agent)
    made = agent_class(name, work.folder)
    return env, make_agent(made, env, horizon=work.horizon, seed=cell.seeds(work.seed)[1], **hyperparameters)


def _play(cell: Cell, work: _Work, on_chunk: Callable[[int], None] | None) -> tuple[Cell, polars.DataFrame]:
    env, agent = _pair(cell, work)
    log = None
    if work.tensorboard is not None and isinstance(agent, Learner):
        log = work.tensorboard.joinpath(*(re.sub(r"[^\w.=,-]+", "_", str(part)) for part in cell))
    result = run(
        agent,
        env,
        work.horizon,
        seed=cell.seeds(work.seed)[0],
        checkpoints=work.checkpoints,
        engine=work.engine,
        metrics=work.metrics,
        on_chunk=on_chunk,
        tensorboard=log,
    )
    frame = result.to_frame(cell.run).with_columns(
        env=polars.lit(cell.env),
        instance=polars.lit(cell.instance),
        agent=polars.lit(cell.agent),
        engine=polars.lit(result.engine),
        seconds=polars.lit(result.seconds),
        training_sessions=polars.lit(result.training_sessions),
        training_seconds=polars.lit(result.training_seconds),
    )
    return cell, frame


# ------------------------------------------------------------------------------------------------------------ the folder


def make_folder(out: Path) -> None:
    """Make the folder of results, if need be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{out} is a file, or below one; the results need a folder") from None


def _open_folder(out: Path, config: dict[str, Any]) -> None:
    """Make the folder and write the configuration, or check that the folder holds the same."""
    make_folder(out)
    if any(out.iterdir()):
        before = _read_config(out)
        changed = [key for key in config if before.get(key) != config[key]]
        if changed:
            what = "; ".join(f"{key}: {_short(before.get(key))} there, {_short(config[key])} now" for key in changed)
            raise ValueError(f"{out} holds results of another configuration ({what}); choose another folder")
    else:
        write_whole(out / CONFIG, lambda path: path.write_text(json.dumps(config, indent=1) + "\n"))
    (out / CELLS).mkdir(exist_ok=True)


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text())
    except FileNotFoundError:
        raise ValueError(f"{folder} is not a results folder: it has no {CONFIG}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / CONFIG} cannot be read: {error}") from None
    if not isinstance(config, dict) or "clickgym" not in config:
        raise ValueError(f"{folder / CONFIG} is not the configuration of a sweep")
    return config


def _read(path: Path) -> polars.DataFrame:
    return polars.read_parquet(path, glob=False)  # a folder's name may have brackets


def _read_cell(out: Path, cell: Cell) -> polars.DataFrame:
    path = out / CELLS / cell.file
    try:
        frame = _read(path)
        if frame.select("env", "instance", "agent", "run").row(0) != tuple(cell):
            raise ValueError("it belongs to another run")
        return frame
    except (OSError, ValueError, polars.exceptions.PolarsError) as error:
        raise ValueError(f"{path} is damaged ({error}); delete it to have {cell} computed again") from None


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _distinct(what: str, specs: Iterable[Spec]) -> dict[str, Spec]:
    """The specs by label."""
    if isinstance(specs, str):
        raise TypeError(f"expected a list of {what}s, got the string {specs!r}")
    labelled = [(label(spec), spec) for spec in specs]
    if not labelled:
        raise ValueError(f"no {what} was named")
    for name, _ in labelled:
        if sum(other == name for other, _ in labelled) > 1:
            raise ValueError(f"{what} {name!r} is named twice")
    return dict(labelled)


def _is_own(spec: Spec) -> bool:
    return parse_spec(spec)[0] not in PUBLISHED


def _source_digest(spec: Spec) -> str:
    """Identifies the source of a user's agent: results of two versions must not be mixed."""
    return _digest(Path(inspect.getfile(agent_class(parse_spec(spec)[0]))).read_bytes())


def model_digest(model: ClickModel) -> str:
    """Identifies a click model with its parameters, as a configuration keeps it."""
    return _digest(json.dumps(model.to_dict(), sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
