"""`sweep`, which runs every agent in every environment several times: in parallel, resumable, and
with all results in one table.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import product, zip_longest
from pathlib import Path
from pickle import PicklingError
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..agents import FrozenPolicy
from ..agents.agent import UnsuitedError
from ..core.checks import check_count, check_horizon, check_path, is_integer, value_error
from ..core.errors import WorkerError
from ..core.modules import module_of
from ..envs import ClickEnv, UserModel
from ..envs.any_env import sizes_of, user_model_of
from ..measure.meter import checkpoint_steps
from .make import (
    AgentLike,
    EnvLike,
    ResolvedAgent,
    ResolvedEnv,
    all_instances,
    by_label,
    make_env,
    make_resolved_agent,
    own_copies,
    resolve_agent,
    resolve_env,
)
from .meaning import meaning_of
from .play.loop import OnChunk
from .play.metrics import Metrics, is_own
from .play.play_run import (
    Engine,
    check_episode,
    check_wrappers,
    engine_of,
    play_run,
    warn_of_features,
)
from .results import Results
from .store import (
    Cell,
    Config,
    FinishedRuns,
    RunKey,
    add_runs,
    new_file,
    open_folder,
    rows_of_sweep,
    run_seed,
    versions,
)
from .workers import (
    Progress,
    broken_pool_message,
    is_here,
    print_resumed,
    run_in_parallel,
    set_values,
)

SESSIONS_PER_CALL = 20_000
"""The approximate number of sessions that a worker plays in one call, if the runs are short and
compiled.
"""


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
    overwrite: bool = False,
) -> Results:
    """Run every agent in every environment several times, and return the results.

    All agents have the same users: the seed of a run depends only on ``seed``, the instance and the
    run's number. Results do not depend on the order of runs, on ``n_jobs`` or on the engine. To
    repeat a single run, pass the ``seed`` in its rows to `clickgym.run`. Each run gets its own
    copies of the arguments of its agent and its environment, except of a trained model in
    `FrozenPolicy`; a warning names arguments that cannot be copied.

    If you pass ``out``, each run is saved as soon as it is finished (short compiled runs are saved
    together, about every 20,000 sessions). A folder contains one sweep. If you repeat a call, only
    the missing runs are played. If you add agents, environments, instances or runs, the new runs
    are added to the folder, and only the results for this call are returned. An error is raised if
    the seed, the horizon, the metrics or the versions of NumPy, numba or RL libraries differ, or if
    a label no longer stands for the same thing, for example because you edited your class or a
    module that the class imports. clickgym cannot compare the code of lambdas, or of classes
    defined in a notebook, so these require a new folder for each sweep.

    Args:
        envs: a list of environments: ids such as ``"PBMRank-v0"``,
            ``"PBMRank-v0:reward=any_click"`` or ``"my_module:MyRank-v0"``; ``(id, arguments)``;
            click models; or a mapping from labels to these. An environment without a name, such as
            a click model, needs a label.
        agents: a list of agents: names such as ``"BatchRank"``,
            ``"CascadeKLUCB:feedback=first_click"`` or ``"my_module:MyAgent"``; classes or ``(class,
            arguments)``; or a mapping from labels to these. An agent without a name, such as a
            class with an array among its arguments, needs a label.
        horizon: T, the number of sessions in each run; floats such as ``1e6`` are accepted.
        runs: the number of runs for each pair of an agent and an environment.
        instances: names, files or `Instance` objects; every environment is run with each instance.
            ``"shipped"``, alone or in the list, stands for all real queries in the package. By
            default, each id has its own default instance, which is the same query for most ids.
        metrics: the names of additional metrics: of `clickgym.runner.METRICS`, or
            ``"my_module:my_metric"`` for your own `clickgym.runner.Metric`; by default, none.
        seed: the seed of the whole sweep.
        out: the results folder, created if missing; by default, nothing is saved.
        n_jobs: the number of workers; by default, -1, which means one worker per processor.
            Compiled runs are played in threads, other runs in processes. To choose another joblib
            backend, put a ``joblib.parallel_config`` around the call.
        checkpoints: the numbers of sessions, from 1 to T, after which totals are recorded; by
            default, about 150 numbers, densest at the start.
        engine: ``"compiled"``, ``"python"``, or ``"auto"``, which uses the compiled engine if
            possible.
        progress: whether the progress of the sweep is shown on stderr: as a bar in a terminal, and
            elsewhere as a line after ten seconds and then one line a minute. Once a twentieth of
            the sessions is played, the time left is shown, too.
        overwrite: whether the runs that are already in the folder are deleted first.

    Returns:
        The results. If you pass ``out``, the folder then contains ``results.parquet``,
        ``summary.csv``, ``regret.png``, ``regret.svg``, ``config.json`` and the folder ``runs``.

    Raises:
        ValueError, TypeError: an argument is invalid, which is checked before the first run; or
            the folder contains another sweep or other files.
        UnsuitedError: some agents do not suit the environments; the message names all of them.
        AgentError, SessionError: an agent or an environment failed. Runs that were already saved
            are kept.
        WorkerError, OSError: a worker process died, or a file cannot be written. Runs that were
            already saved are kept.

    Example:
        >>> import clickgym
        >>> envs, agents = ["PBMRank-v0"], ["Random", "TopRank"]
        >>> results = clickgym.sweep(envs, agents, 1000, 2, checkpoints=[500])
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 2 runs, 1,000 sessions>
        >>> results.frame.shape
        (8, 14)
    """
    # The path is made absolute, because an agent may change the working folder.
    folder = None if out is None else check_path("out", out).absolute()
    horizon, runs = check_horizon(horizon), check_count("runs", runs)
    seed = check_count("seed", seed, 0, 2**63 - 1)  # a column of the results has 64 bits
    metrics, steps = Metrics(metrics).names, checkpoint_steps(horizon, checkpoints).tolist()
    if n_jobs == 0 or not (n_jobs is None or is_integer(n_jobs)):
        raise value_error("n_jobs", n_jobs, "a number of workers, or -1 for all processors")
    envs, agents = by_label("environment", envs), by_label("agent", agents)
    plans = _make_plans(envs, agents, instances, horizon, runs, metrics, engine)
    env_of = {plan.cell.env: plan.env for plan in plans}
    agent_of = {plan.cell.agent: plan.agent for plan in plans}
    instance_of = {plan.cell.instance: plan.instance for plan in plans}
    instance_of = {
        label: label if instance is None else instance for label, instance in instance_of.items()
    }
    packages = [name for maker, _ in agent_of.values() for name in getattr(maker, "packages", ())]
    config = Config(
        versions=versions(packages),
        horizon=horizon,
        checkpoints=steps,
        metrics=[*metrics],
        own_metrics={
            name: meaning_of(name, module_of("metric", name)) for name in metrics if is_own(name)
        },
        seed=seed,
        envs={label: meaning_of(env, env_of[label]) for label, env in envs.items()},
        instances={
            label: meaning_of(instance, instance) for label, instance in instance_of.items()
        },
        agents={label: meaning_of(agent, agent_of[label]) for label, agent in agents.items()},
        cells=[plan.cell for plan in plans],
    )
    folder_config, finished_runs = config, FinishedRuns()
    if folder is not None:
        folder_config, finished_runs = open_folder(folder, config, out, overwrite=overwrite)
    keys = [*config.run_keys()]

    def progress_text() -> str:
        return f"{sum(key in finished_runs for key in keys)} of {len(keys)} runs"

    if progress and any(key in finished_runs for key in keys):
        print_resumed(out, progress_text())
    with resumable(out, progress_text):
        _play_missing(plans, config, finished_runs, folder, n_jobs, progress=progress)
        results = Results.of_rows(rows_of_sweep(finished_runs, config), [config])
        if folder is not None:  # the folder's table and figure cover all runs in the folder
            folder_results = results
            if folder_config != config:
                folder_results = Results.of_rows(
                    rows_of_sweep(finished_runs, folder_config), [folder_config]
                )
            if not folder_results.are_in(folder):
                folder_results.write(folder)
    return results


# ---------------------------------------------------------------------------------------- planning


class Plan(NamedTuple):
    """A plan that says how the runs of a cell are played.

    Attributes:
        cell: the cell, with its labels and its number of runs.
        env: the environment, as returned by `resolve_env`.
        agent: the agent, as returned by `resolve_agent`.
        instance: the instance for ``gym.make``; None for the environment's default instance.
        engine: the name of the engine, as returned by `engine_of`.
        n_queries: the number of queries in the instance; each run plays one of them.
        runs_per_call: the number of runs that a worker plays in one call.
    """

    cell: Cell
    env: ResolvedEnv
    agent: ResolvedAgent
    instance: Any
    engine: str
    n_queries: int
    runs_per_call: int

    @property
    def workers(self) -> Literal["threads", "processes"]:
        """The kind of workers: threads for compiled runs, which release the GIL; else processes."""
        return "threads" if self.engine == "compiled" else "processes"


def _make_plans(
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    instances: Any,
    horizon: int,
    runs: int,
    metrics: Sequence[str],
    engine: Engine,
) -> list[Plan]:
    """Plan the runs of a sweep, and try every agent in every environment, so that errors are raised
    before the first run.

    Args:
        envs: the environments by label.
        agents: the agents by label.
        instances, horizon, runs, metrics, engine: the arguments of `sweep`.

    Raises:
        ValueError: two instances have the same name, or an argument is invalid.
        UnsuitedError: some agents do not suit the environments; the message names all of them.
    """
    resolved_envs = {label: resolve_env(env) for label, env in envs.items()}
    resolved_agents = {label: resolve_agent(agent) for label, agent in agents.items()}
    _warn_of_shared_arguments(resolved_envs | resolved_agents)
    plans: list[Plan] = []
    pairs = set[tuple[str, str]]()
    errors: dict[str, UnsuitedError] = {}
    for (env_label, resolved_env), instance in product(
        resolved_envs.items(), all_instances(instances)
    ):
        env = make_env(resolved_env, instance, copies_arguments=True)
        sizes_of(env)  # an error here comes from the environment, not from an agent
        Metrics(metrics).check_env(env.unwrapped)
        check_wrappers(env, env_label)
        check_episode(env, horizon, env_label)
        pair = env_label, getattr(env.unwrapped, "instance", "custom")
        if pair in pairs:
            raise ValueError("two instances have the same name; give each instance its own name")
        pairs.add(pair)
        model = user_model_of(env)
        n_queries = model.n_queries if model else 1
        changes = tuple(model.starts[1:]) if model else ()
        for label, resolved_agent in resolved_agents.items():
            try:
                engine_name = _engine_of(resolved_agent, env, label, horizon, metrics, engine)
            except UnsuitedError as error:
                errors.setdefault(label, error)
                continue
            # Runs can share an environment if a reset with a seed restarts its users.
            starts_anew = engine_name == "compiled" and type(env.unwrapped) is ClickEnv
            runs_per_call = max(SESSIONS_PER_CALL // horizon, 1) if starts_anew else 1
            cell = Cell(*pair, label, runs, changes)
            plans.append(
                Plan(
                    cell,
                    resolved_env,
                    resolved_agent,
                    instance,
                    engine_name,
                    n_queries,
                    runs_per_call,
                )
            )
    if errors:
        raise UnsuitedError.of_all(errors)
    return plans


def _warn_of_shared_arguments(resolved: Mapping[str, tuple[Any, dict[str, Any]]]) -> None:
    """Warn if an argument of an agent or environment cannot be copied for each run.

    Args:
        resolved: agents and environments by label, as returned by `resolve_agent` and
            `resolve_env`.
    """
    for label, (maker, arguments) in resolved.items():
        *_, shared = own_copies(maker, arguments)
        if shared:
            warnings.warn(
                f"{label}: all runs share {', '.join(shared)}, which cannot be copied; a run may "
                "find what another run has changed there",
                stacklevel=4,
            )


def _engine_of(
    resolved_agent: ResolvedAgent,
    env: Any,
    label: str,
    horizon: int,
    metrics: Sequence[str],
    engine: Engine,
) -> str:
    """Return the engine that runs an agent in an environment. Errors name the agent's label."""
    try:
        agent = make_resolved_agent(resolved_agent, env, horizon, 0, copies_arguments=True)
        engine_name = engine_of(agent, env, engine)
        Metrics(metrics).check_agent(agent)
    except ValueError as error:
        if type(error) is not ValueError or label in str(error):
            raise
        raise ValueError(f"{label}: {error}") from error
    warn_of_features(agent, env)
    return engine_name


# ----------------------------------------------------------------------------------------- playing


@contextmanager
def resumable(out: object, progress_text: Callable[[], str]) -> Iterator[None]:
    """Context manager that makes a KeyboardInterrupt say what is saved and how to resume.

    Args:
        out: the folder in which runs are saved; None if nothing is saved.
        progress_text: a function that returns a text such as ``"3 of 24 runs"``.
    """
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        message = (
            f"stopped; {progress_text()} are saved in {out}: run the same command again to resume"
        )
        raise KeyboardInterrupt(message) from None


def _play_missing(
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
        plans: the plans that `_make_plans` returned.
        config: the configuration of the sweep.
        finished_runs: the runs that are already finished, by key.
        folder: the folder in which each finished run is saved; None to save nothing.
        n_jobs: the number of workers; -1 means one worker per processor.
        progress: whether the progress is shown.
    """
    file = None if folder is None else new_file(folder)
    jobs = _missing_jobs(plans, finished_runs)
    n_left = sum(len(numbers) for _, numbers in jobs)
    n_runs = sum(plan.cell.runs for plan in plans)
    with Progress(progress, n_runs, n_runs - n_left, config.horizon) as bar:
        for workers in dict.fromkeys(plan.workers for plan, _ in jobs):
            group = [job for job in jobs if job[0].workers == workers]
            for runs in _play_jobs(group, config, workers, n_jobs, bar):
                finished_runs.update(runs)
                if file is not None:
                    add_runs(file, runs)
                bar.add_finished(len(runs))


Job = tuple[Plan, Sequence[int]]
"""The runs that a worker plays in one call: the plan of their cell, and the runs' numbers."""


def _missing_jobs(plans: Sequence[Plan], finished_runs: Container[RunKey]) -> list[Job]:
    """Return jobs for all runs that are not finished.

    The pairs of an environment and an agent take turns. All kernels are therefore compiled at the
    start, an agent that fails does so soon, and the time that the first jobs take says how long the
    others will take.
    """
    jobs_of_pair: dict[tuple[str, str], list[Job]] = {}
    for plan in plans:
        env, instance, agent, runs, _ = plan.cell
        missing = [run for run in range(runs) if (env, instance, agent, run) not in finished_runs]
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

    files = {name: value for meaning in config.code() for name, value in meaning.files.items()}
    calls: list[Any]
    try:
        if is_here(workers, n_jobs):
            calls = [(play_runs, *job, config, on_chunk) for job in jobs]
            yield from run_in_parallel(calls, n_jobs, workers, files=files)
        else:
            user_classes = {
                name: value
                for name, value in UserModel.classes.items()
                if not value.__module__.startswith("clickgym.")
            }
            with bar.counts(len(jobs)) as counts:
                calls = [
                    (play_runs_in_worker, *job, config, user_classes, counts[i : i + 1])
                    for i, job in enumerate(jobs)
                ]
                yield from run_in_parallel(calls, n_jobs, workers, files=files)
    except BrokenExecutor as error:
        raise WorkerError(broken_pool_message(error)) from None
    except PicklingError as error:
        raise TypeError(
            f"{broken_pool_message(error)}; define its class in a module that workers can "
            "import, or pass n_jobs=1 to run in the current process"
        ) from None
    finally:
        stop.set()


def play_runs_in_worker(
    plan: Plan,
    numbers: Sequence[int],
    config: Config,
    users: Mapping[str, type[UserModel]],
    count: NDArray[np.int64],
) -> FinishedRuns:
    """Play runs of a cell in a worker process, and return the runs by key.

    Constants and class attributes are first set to the values that they have in the calling
    process.

    Args:
        plan: the plan of the cell.
        numbers: the numbers of the runs to play.
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
    for meaning in config.code():
        set_values(meaning.values)
    return play_runs(plan, numbers, config, on_chunk)


def play_runs(
    plan: Plan, numbers: Sequence[int], config: Config, on_chunk: OnChunk | None = None
) -> FinishedRuns:
    """Play runs of a cell, and return the runs by key.

    Args:
        plan: the plan of the cell.
        numbers: the numbers of the runs to play.
        config: the configuration of the sweep.
        on_chunk: a function that is called from time to time with the number of sessions since its
            last call; by default, none.
    """
    env = make_env(plan.env, plan.instance, copies_arguments=True)
    steps = np.array(config.checkpoints)
    env_label, instance, agent_label = plan.cell[:3]
    runs = FinishedRuns()
    for number in numbers:
        seed = run_seed(config.seed, instance, number, plan.n_queries)
        agent = make_resolved_agent(plan.agent, env, config.horizon, seed, copies_arguments=True)
        if plan.engine == FrozenPolicy.engine:
            engine_of(agent, env)  # tells the agent the space of observations, which it flattens
        result = play_run(agent, env, plan.engine, steps, Metrics(config.metrics), seed, on_chunk)
        runs[env_label, instance, agent_label, number] = replace(
            result, env=env_label, instance=instance, agent=agent_label, seed=seed
        )
    return runs
